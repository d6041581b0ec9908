//! The drawer of a shift: what should be in it, what can be given out of it, what was counted.
//!
//! Invariants:
//! - Money is whole minor units in `i64`, of one currency; nothing is rounded and nothing overflows in silence.
//! - What is expected (float + sales − refunds − drops + pay-ins − pay-outs) is the value of the pieces in the
//!   drawer, always: both are kept, by different sums.
//! - Nothing leaves that isn't there: change that can't be made of these pieces is refused before the sale, and the
//!   drawer stays as it was.
//! - A variance is kept as it is. The drawer never makes it zero.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use thiserror::Error;

#[cfg(test)]
mod tests;

/// Pieces by what one is worth in minor units. None of it is zero of something.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pieces(BTreeMap<i64, u32>);

/// What notes and coins a currency has, and how its amounts are written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Currency {
    code: String,
    exponent: u32,
    /// In minor units.
    denominations: BTreeSet<i64>,
}

/// Why the drawer refuses.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum CashError {
    #[error("the currency has no piece of {0}")]
    NoSuchPiece(i64),
    /// In minor units.
    #[error("{missing_minor} are missing")]
    TooLittle { missing_minor: i64 },
    /// The drawer's pieces don't make it. Ask for other money, or for less of it.
    #[error("{change_minor} can't be given in change")]
    NoChange { change_minor: i64 },
    #[error("the drawer has not as many pieces of {0}")]
    NotInDrawer(i64),
    #[error("an amount is below nothing, or more than can be counted")]
    Amount,
    #[error("a reason is needed")]
    NoReason,
}

impl Currency {
    /// One of `code`, with `exponent` digits behind the point (0, 2 or 3), and these pieces in minor units.
    ///
    /// # Errors
    /// [`CashError::Amount`] for another exponent, [`CashError::NoSuchPiece`] for a piece of nothing or less.
    pub fn new(code: &str, exponent: u32, denominations: &[i64]) -> Result<Self, CashError> {
        if ![0, 2, 3].contains(&exponent) || denominations.is_empty() {
            return Err(CashError::Amount);
        }
        if let Some(no) = denominations.iter().find(|d| **d <= 0) {
            return Err(CashError::NoSuchPiece(*no));
        }
        Ok(Self { code: code.to_owned(), exponent, denominations: denominations.iter().copied().collect() })
    }

    pub fn code(&self) -> &str {
        &self.code
    }

    /// In minor units, the largest first.
    pub fn denominations(&self) -> impl Iterator<Item = i64> {
        self.denominations.iter().rev().copied()
    }

    /// `1234` as `12.34`, `1234` or `1.234`.
    pub fn write(&self, amount_minor: i64) -> String {
        let sign = if amount_minor < 0 { "-" } else { "" };
        let one = 10_u64.pow(self.exponent);
        let (whole, part) = (amount_minor.unsigned_abs() / one, amount_minor.unsigned_abs() % one);
        match self.exponent {
            0 => format!("{sign}{whole}"),
            digits => format!("{sign}{whole}.{part:0width$}", width = digits as usize),
        }
    }

    /// What somebody typed: digits, and a point or a comma with at most the currency's digits behind it. `None` for
    /// anything else, as for signs and thousands' separators: they are typed by mistake more often than meant.
    pub fn read(&self, typed: &str) -> Option<i64> {
        let typed = typed.trim();
        let (whole, part) = typed.split_once(['.', ',']).unwrap_or((typed, ""));
        let digits = |s: &str| s.bytes().all(|b| b.is_ascii_digit());
        let behind = u32::try_from(part.len()).ok()?;
        if whole.is_empty() || !digits(whole) || !digits(part) || behind > self.exponent {
            return None;
        }
        if typed.len() > whole.len() && part.is_empty() {
            return None;
        }
        let whole: i64 = whole.parse().ok()?;
        let part: i64 = if part.is_empty() { 0 } else { part.parse().ok()? };
        let part = part * 10_i64.pow(self.exponent - behind);
        whole.checked_mul(10_i64.pow(self.exponent))?.checked_add(part)
    }
}

impl Pieces {
    /// Of pairs (worth in minor units, how many); the same worth may stand twice.
    ///
    /// # Errors
    /// [`CashError::Amount`] if they are too many.
    pub fn new(pieces: &[(i64, u32)]) -> Result<Self, CashError> {
        let mut all = Self::default();
        for (worth, count) in pieces {
            all = all.with(&Self(BTreeMap::from([(*worth, *count)])))?;
        }
        all.0.retain(|_, count| *count > 0);
        Ok(all)
    }

    /// Worth and count, the largest first.
    pub fn iter(&self) -> impl Iterator<Item = (i64, u32)> {
        self.0.iter().rev().map(|(worth, count)| (*worth, *count))
    }

    /// Their worth in minor units.
    ///
    /// # Errors
    /// [`CashError::Amount`] if it can't be counted.
    pub fn worth(&self) -> Result<i64, CashError> {
        self.0.iter().try_fold(0_i64, |sum, (worth, count)| {
            worth.checked_mul(i64::from(*count)).and_then(|all| sum.checked_add(all)).ok_or(CashError::Amount)
        })
    }

    fn with(&self, more: &Self) -> Result<Self, CashError> {
        let mut all = self.0.clone();
        for (worth, count) in &more.0 {
            let had = all.entry(*worth).or_default();
            *had = had.checked_add(*count).ok_or(CashError::Amount)?;
        }
        Ok(Self(all))
    }

    fn without(&self, less: &Self) -> Result<Self, CashError> {
        let mut all = self.0.clone();
        for (worth, count) in &less.0 {
            let had = all.get_mut(worth).ok_or(CashError::NotInDrawer(*worth))?;
            *had = had.checked_sub(*count).ok_or(CashError::NotInDrawer(*worth))?;
        }
        all.retain(|_, count| *count > 0);
        Ok(Self(all))
    }
}

/// Why money moved. Amounts are in minor units and never below nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Entry {
    Float {
        amount_minor: i64,
    },
    Sale {
        amount_minor: i64,
    },
    Refund {
        amount_minor: i64,
    },
    /// To the safe.
    Drop {
        amount_minor: i64,
    },
    PayIn {
        amount_minor: i64,
        reason: String,
    },
    PayOut {
        amount_minor: i64,
        reason: String,
    },
}

impl Entry {
    /// What it makes of the drawer's content, in minor units.
    pub fn moves_minor(&self) -> i64 {
        match self {
            Self::Float { amount_minor } | Self::Sale { amount_minor } | Self::PayIn { amount_minor, .. } => {
                *amount_minor
            }
            Self::Refund { amount_minor } | Self::Drop { amount_minor } | Self::PayOut { amount_minor, .. } => {
                -amount_minor
            }
        }
    }
}

/// What was counted at the end, against what should be there. Minor units.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Count {
    pub pieces: Pieces,
    pub counted_minor: i64,
    pub expected_minor: i64,
    /// Counted less expected: below nothing, money is missing.
    pub variance_minor: i64,
}

/// An open drawer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Drawer {
    currency: Currency,
    pieces: Pieces,
    entries: Vec<Entry>,
    expected_minor: i64,
}

impl Drawer {
    /// Opens it with a float, which may be nothing.
    ///
    /// # Errors
    /// [`CashError::NoSuchPiece`], `Amount`.
    pub fn open(currency: Currency, float: &Pieces) -> Result<Self, CashError> {
        let mut drawer = Self { currency, pieces: Pieces::default(), entries: Vec::new(), expected_minor: 0 };
        let amount_minor = drawer.known(float)?;
        let none = Pieces::default();
        drawer.enter(Entry::Float { amount_minor }, float, &none)?;
        Ok(drawer)
    }

    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    pub fn pieces(&self) -> &Pieces {
        &self.pieces
    }

    /// What should be in it, in minor units.
    pub fn expected_minor(&self) -> i64 {
        self.expected_minor
    }

    /// The change for `due_minor` of what is given: the fewest large pieces that the drawer, with what is given, has.
    /// Changes nothing: it is shown before the sale is made.
    ///
    /// # Errors
    /// [`CashError::TooLittle`], `NoChange`, `NoSuchPiece`, `Amount`.
    pub fn change(&self, due_minor: i64, given: &Pieces) -> Result<Pieces, CashError> {
        let given_minor = self.known(given)?;
        if due_minor < 0 {
            return Err(CashError::Amount);
        }
        let change_minor = given_minor.checked_sub(due_minor).ok_or(CashError::Amount)?;
        if change_minor < 0 {
            return Err(CashError::TooLittle { missing_minor: -change_minor });
        }
        make(&self.pieces.with(given)?, change_minor).ok_or(CashError::NoChange { change_minor })
    }

    /// Takes what is given for a sale, and answers the change.
    ///
    /// # Errors
    /// As [`Drawer::change`]; nothing is taken.
    pub fn sell(&mut self, due_minor: i64, given: &Pieces) -> Result<Pieces, CashError> {
        let change = self.change(due_minor, given)?;
        self.enter(Entry::Sale { amount_minor: due_minor }, given, &change)?;
        Ok(change)
    }

    /// Gives money back, in pieces that the drawer chooses, and answers them.
    ///
    /// # Errors
    /// [`CashError::NoChange`], `Amount`.
    pub fn refund(&mut self, amount_minor: i64) -> Result<Pieces, CashError> {
        if amount_minor < 0 {
            return Err(CashError::Amount);
        }
        let out = make(&self.pieces, amount_minor).ok_or(CashError::NoChange { change_minor: amount_minor })?;
        self.enter(Entry::Refund { amount_minor }, &Pieces::default(), &out)?;
        Ok(out)
    }

    /// To the safe.
    ///
    /// # Errors
    /// [`CashError::NotInDrawer`], `NoSuchPiece`, `Amount`.
    pub fn drop_to_safe(&mut self, out: &Pieces) -> Result<(), CashError> {
        let amount_minor = self.known(out)?;
        self.enter(Entry::Drop { amount_minor }, &Pieces::default(), out)
    }

    /// # Errors
    /// [`CashError::NoReason`], `NoSuchPiece`, `Amount`.
    pub fn pay_in(&mut self, pieces: &Pieces, reason: &str) -> Result<(), CashError> {
        let (amount_minor, reason) = (self.known(pieces)?, given_reason(reason)?);
        self.enter(Entry::PayIn { amount_minor, reason }, pieces, &Pieces::default())
    }

    /// # Errors
    /// [`CashError::NoReason`], `NotInDrawer`, `NoSuchPiece`, `Amount`.
    pub fn pay_out(&mut self, pieces: &Pieces, reason: &str) -> Result<(), CashError> {
        let (amount_minor, reason) = (self.known(pieces)?, given_reason(reason)?);
        self.enter(Entry::PayOut { amount_minor, reason }, &Pieces::default(), pieces)
    }

    /// Sets what was counted against what should be there. The drawer stays as it is.
    ///
    /// # Errors
    /// [`CashError::NoSuchPiece`], `Amount`.
    pub fn count(&self, pieces: &Pieces) -> Result<Count, CashError> {
        let counted_minor = self.known(pieces)?;
        let variance_minor = counted_minor.checked_sub(self.expected_minor).ok_or(CashError::Amount)?;
        Ok(Count { pieces: pieces.clone(), counted_minor, expected_minor: self.expected_minor, variance_minor })
    }

    /// Worth of pieces that the currency has.
    fn known(&self, pieces: &Pieces) -> Result<i64, CashError> {
        match pieces.0.keys().find(|worth| !self.currency.denominations.contains(worth)) {
            Some(worth) => Err(CashError::NoSuchPiece(*worth)),
            None => pieces.worth(),
        }
    }

    /// All or nothing.
    fn enter(&mut self, entry: Entry, into: &Pieces, out: &Pieces) -> Result<(), CashError> {
        let pieces = self.pieces.with(into)?.without(out)?;
        let expected = self.expected_minor.checked_add(entry.moves_minor()).ok_or(CashError::Amount)?;
        debug_assert_eq!(pieces.worth(), Ok(expected));
        (self.pieces, self.expected_minor) = (pieces, expected);
        self.entries.push(entry);
        Ok(())
    }
}

fn given_reason(reason: &str) -> Result<String, CashError> {
    let reason = reason.trim();
    if reason.is_empty() { Err(CashError::NoReason) } else { Ok(reason.to_owned()) }
}

/// `amount_minor` of these pieces: greedy, and where that ends in nothing, with one large piece less. `None` if no
/// choice of them makes it. What can't be made of the smaller pieces is remembered, so that it is tried once.
fn make(pieces: &Pieces, amount_minor: i64) -> Option<Pieces> {
    fn from(have: &[(i64, u32)], rest: i64, dead: &mut BTreeSet<(usize, i64)>, out: &mut Vec<(i64, u32)>) -> bool {
        if rest == 0 {
            return true;
        }
        let Some(((worth, count), smaller)) = have.split_first() else { return false };
        // Too little, or no sum of these at all: most dead ends are seen from here.
        let all: i64 = have.iter().map(|(worth, count)| worth * i64::from(*count)).sum();
        let step = have.iter().fold(0, |step, (worth, _)| divisor(step, *worth));
        if all < rest || rest % step != 0 {
            return false;
        }
        if dead.contains(&(have.len(), rest)) {
            return false;
        }
        let most = u32::try_from(rest / worth).unwrap_or(u32::MAX).min(*count);
        for takes in (0..=most).rev() {
            out.push((*worth, takes));
            if from(smaller, rest - worth * i64::from(takes), dead, out) {
                return true;
            }
            out.pop();
        }
        dead.insert((have.len(), rest));
        false
    }
    // Their sum can be counted, and so can every part's.
    pieces.worth().ok()?;
    let have: Vec<_> = pieces.iter().collect();
    let mut out = Vec::new();
    from(&have, amount_minor, &mut BTreeSet::new(), &mut out).then_some(())?;
    Pieces::new(&out).ok()
}

/// The greatest that divides both; of nothing and something, the something.
fn divisor(a: i64, b: i64) -> i64 {
    if b == 0 { a } else { divisor(b, a % b) }
}
