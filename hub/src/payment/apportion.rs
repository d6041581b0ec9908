//! What of each line of an order goes back: pure, so that parts can be shown to add up.
//!
//! The rule: a seat takes its own price and its share of each fee line with it. Shares are fixed by
//! the seat's place among the order's seats, whatever is given back first: of a fee `f` over `n`
//! seats, the seat in place `i` has `⌊f·(i+1)/n⌋ − ⌊f·i/n⌋`, in steps that the provider can say.
//! Whoever is given back last takes whatever is left, so that the parts are what was paid.
//!
//! Invariants
//! - No line gives back more than it was; all parts together never more than the order.
//! - When the last seat has gone, nothing is left: no remainder stays with us, none is given twice.

use crate::catalog::event::RefundPolicy;

/// A line as it stands now. Lines of seats that were exchanged for others are not among them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    pub id: i64,
    /// None: a fee.
    pub seat_no: Option<i32>,
    pub amount_minor: i64,
    pub refunded_minor: i64,
    /// The seat was given back already.
    pub gone: bool,
}

impl Line {
    fn left(&self) -> i64 {
        self.amount_minor - self.refunded_minor
    }
}

/// What is to go back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum What {
    /// Whatever is left of the order, and all of its seats.
    All,
    /// These seats, each with its share of fees.
    Seats(Vec<i32>),
    /// An amount alone: the seats stay.
    Amount(i64),
    /// These seats, less what a policy keeps of each; what was kept of seats that went before stays kept.
    Within(Vec<i32>, RefundPolicy),
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ApportionError {
    #[error("the order does not have seats {0:?}")]
    SeatsNotSold(Vec<i32>),
    #[error("there is {left_minor} left")]
    MoreThanIsLeft { left_minor: i64 },
    #[error("the amount can't be said in steps of {step}")]
    NotInSteps { step: i64 },
}

/// What goes back of which line, and which seats go.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Parts {
    /// Line and amount; none of nothing.
    pub lines: Vec<(i64, i64)>,
    pub seats: Vec<i32>,
}

impl Parts {
    pub fn total(&self) -> i64 {
        self.lines.iter().map(|(_, amount)| amount).sum()
    }
}

/// Divides what is asked for over the lines. `step`: the smallest amount that can be given back.
pub fn apportion(lines: &[Line], what: &What, step: i64) -> Result<Parts, ApportionError> {
    match what {
        What::All => {
            let seats = lines.iter().filter(|l| !l.gone).filter_map(|l| l.seat_no).collect();
            Ok(Parts { lines: rest(lines), seats })
        }
        What::Seats(seats) => by_seats(lines, seats, step),
        What::Within(seats, policy) => within(lines, seats, *policy, step),
        What::Amount(amount) => Ok(Parts { lines: by_amount(lines, *amount, step)?, seats: Vec::new() }),
    }
}

fn rest(lines: &[Line]) -> Vec<(i64, i64)> {
    lines.iter().map(|l| (l.id, l.left())).filter(|(_, left)| *left > 0).collect()
}

fn by_seats(lines: &[Line], seats: &[i32], step: i64) -> Result<Parts, ApportionError> {
    let places: Vec<&Line> = lines.iter().filter(|l| l.seat_no.is_some()).collect();
    let going = |line: &Line| !line.gone && line.seat_no.is_some_and(|s| seats.contains(&s));
    let missing: Vec<i32> =
        seats.iter().copied().filter(|s| !places.iter().any(|l| going(l) && l.seat_no == Some(*s))).collect();
    if !missing.is_empty() || seats.is_empty() {
        return Err(ApportionError::SeatsNotSold(missing));
    }
    if places.iter().all(|l| l.gone || going(l)) {
        return apportion(lines, &What::All, step); // the last ones take what is left
    }
    let mut parts = Vec::new();
    for line in lines {
        let part = match line.seat_no {
            Some(_) if going(line) => line.left(),
            Some(_) => 0,
            None => {
                let shares = places.iter().enumerate().filter(|(_, l)| going(l));
                let share: i64 = shares.map(|(at, _)| share(line.amount_minor, at, places.len(), step)).sum();
                share.min(line.left())
            }
        };
        if part > 0 {
            parts.push((line.id, part));
        }
    }
    Ok(Parts { lines: parts, seats: seats.to_vec() })
}

fn within(lines: &[Line], seats: &[i32], policy: RefundPolicy, step: i64) -> Result<Parts, ApportionError> {
    let places: Vec<&Line> = lines.iter().filter(|l| l.seat_no.is_some()).collect();
    let going = |line: &Line| !line.gone && line.seat_no.is_some_and(|s| seats.contains(&s));
    let missing: Vec<i32> =
        seats.iter().copied().filter(|s| !places.iter().any(|l| going(l) && l.seat_no == Some(*s))).collect();
    if !missing.is_empty() || seats.is_empty() {
        return Err(ApportionError::SeatsNotSold(missing));
    }
    let last = places.iter().all(|l| l.gone || going(l));
    let mut parts = Vec::new();
    for line in lines {
        let part = match line.seat_no {
            Some(_) if going(line) => (line.left() - policy.keeps(line.amount_minor, step)).max(0),
            Some(_) => 0,
            None if policy.keep_fees => 0,
            // Every share of a fee went with its seat: the last ones take what the steps left over.
            None if last => line.left(),
            None => {
                let shares = places.iter().enumerate().filter(|(_, l)| going(l));
                shares.map(|(at, _)| share(line.amount_minor, at, places.len(), step)).sum::<i64>().min(line.left())
            }
        };
        if part > 0 {
            parts.push((line.id, part));
        }
    }
    Ok(Parts { lines: parts, seats: seats.to_vec() })
}

/// The part of `amount` that belongs to place `at` of `places`.
fn share(amount: i64, at: usize, places: usize, step: i64) -> i64 {
    let upto = |n: usize| scaled(amount, n as i64, places as i64, step);
    // The last place has what the steps could not say.
    if at + 1 == places { amount - upto(at) } else { upto(at + 1) - upto(at) }
}

/// `amount · part / whole`, rounded down to a step. Wide enough for any amount.
fn scaled(amount: i64, part: i64, whole: i64, step: i64) -> i64 {
    let steps = i128::from(amount) * i128::from(part) / (i128::from(whole) * i128::from(step));
    (steps * i128::from(step)) as i64 // not above `amount`
}

/// In proportion to what is left of each line.
fn by_amount(lines: &[Line], amount: i64, step: i64) -> Result<Vec<(i64, i64)>, ApportionError> {
    let left: i64 = lines.iter().map(Line::left).sum();
    if amount <= 0 || amount > left {
        return Err(ApportionError::MoreThanIsLeft { left_minor: left });
    }
    if amount % step != 0 && amount != left {
        return Err(ApportionError::NotInSteps { step });
    }
    if amount == left {
        return Ok(rest(lines));
    }
    let (mut upto, mut given, mut parts) = (0, 0, Vec::new());
    for line in lines.iter().filter(|l| l.left() > 0) {
        upto += line.left();
        let part = scaled(amount, upto, left, step) - given;
        given += part;
        if part > 0 {
            parts.push((line.id, part));
        }
    }
    Ok(parts)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn order(seats: &[i64], fees: &[i64]) -> Vec<Line> {
        let line = |(at, (seat, amount)): (usize, (bool, i64))| Line {
            id: at as i64 + 1,
            seat_no: seat.then_some(at as i32 * 7),
            amount_minor: amount,
            refunded_minor: 0,
            gone: false,
        };
        let all = seats.iter().map(|a| (true, *a)).chain(fees.iter().map(|a| (false, *a)));
        all.enumerate().map(line).collect()
    }

    /// As the database does it: the parts are counted on their lines, the seats go.
    fn give(lines: &mut [Line], parts: &Parts) {
        for (id, amount) in &parts.lines {
            let line = lines.iter_mut().find(|l| l.id == *id).expect("a line of this order");
            line.refunded_minor += amount;
            assert!(*amount > 0 && line.refunded_minor <= line.amount_minor, "{line:?}");
        }
        for line in lines.iter_mut().filter(|l| l.seat_no.is_some_and(|s| parts.seats.contains(&s))) {
            line.gone = true;
        }
    }

    #[test]
    fn three_seats_and_seven_per_cent_go_back_to_the_cent() {
        let mut lines = order(&[3_333, 3_333, 3_333], &[700]);
        let paid: i64 = lines.iter().map(|l| l.amount_minor).sum();
        let mut given = Vec::new();
        for seat in [0, 7, 14] {
            let parts = apportion(&lines, &What::Seats(vec![seat]), 1).unwrap();
            given.push(parts.total());
            give(&mut lines, &parts);
        }
        assert_eq!(given, [3_566, 3_566, 3_567]);
        assert_eq!(given.iter().sum::<i64>(), paid);
        assert_eq!(apportion(&lines, &What::Amount(1), 1), Err(ApportionError::MoreThanIsLeft { left_minor: 0 }));
        assert_eq!(apportion(&lines, &What::Seats(vec![0]), 1), Err(ApportionError::SeatsNotSold(vec![0])));
    }

    #[test]
    fn a_currency_that_is_said_in_tens_is_given_back_in_tens() {
        let mut lines = order(&[12_340, 12_340, 12_340], &[1_000]);
        for seat in [14, 0, 7] {
            let parts = apportion(&lines, &What::Seats(vec![seat]), 10).unwrap();
            assert_eq!(parts.total() % 10, 0);
            give(&mut lines, &parts);
        }
        assert!(lines.iter().all(|l| l.left() == 0));
        assert_eq!(apportion(&order(&[100], &[]), &What::Amount(15), 10), Err(ApportionError::NotInSteps { step: 10 }));
    }

    proptest! {
        /// In any order, mixed with amounts: never more than was paid, and all of it at the end.
        #[test]
        fn parts_add_up_to_what_was_paid(
            seats in prop::collection::vec(0i64..5_000_000, 1..7),
            fees in prop::collection::vec(0i64..100_000, 0..4),
            step in prop::sample::select(vec![1i64, 10, 100]),
            choices in prop::collection::vec((any::<prop::sample::Index>(), 0u8..3, 0.0f64..1.0), 0..20),
        ) {
            let in_steps = |all: Vec<i64>| all.into_iter().map(|a| a / step * step).collect::<Vec<_>>();
            let mut lines = order(&in_steps(seats), &in_steps(fees));
            let paid: i64 = lines.iter().map(|l| l.amount_minor).sum();
            let mut given = 0;
            for (which, kind, portion) in choices {
                let left: i64 = lines.iter().map(Line::left).sum();
                let here: Vec<i32> = lines.iter().filter(|l| !l.gone).filter_map(|l| l.seat_no).collect();
                if here.is_empty() { break; }
                let what = match kind {
                    0 => What::Amount((left as f64 * portion) as i64 / step * step),
                    1 => What::Seats(vec![here[which.index(here.len())]]),
                    _ => What::Seats(here[which.index(here.len())..].to_vec()),
                };
                let Ok(parts) = apportion(&lines, &what, step) else {
                    prop_assert!(matches!(what, What::Amount(0)), "{what:?}");
                    continue;
                };
                prop_assert_eq!(parts.total() % step, 0);
                given += parts.total();
                give(&mut lines, &parts);
            }
            let last = apportion(&lines, &What::All, step).unwrap();
            given += last.total();
            give(&mut lines, &last);
            prop_assert_eq!(given, paid);
            prop_assert!(lines.iter().all(|l| l.left() == 0 && (l.gone || l.seat_no.is_none())));
        }
    }
}
