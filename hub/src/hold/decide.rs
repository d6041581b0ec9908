//! The rules of holding, without a database: requests are decided in order of arrival, each by
//! itself, over a [`Ledger`] that becomes what is written.
//!
//! Invariants
//! - A request that is refused changes nothing in the ledger, and does not fail its neighbours.
//! - A seat is given only if it is available, if its hold has run out by the ledger's clock, or if
//!   it is the buyer's own already.
//! - What a buyer holds and has bought never exceeds the limit of the event.

use std::collections::BTreeSet;

use chrono::{DateTime, TimeDelta, Utc};
use fullhouse_protocol::{
    holds::{Hold, HoldAnswer},
    seat::Status,
};
use uuid::Uuid;

use super::{
    Granted, Refusal, Release, Request, Rules, Take, Way, Wish, best,
    ledger::{Answered, HoldRow, Ledger, LineRules, SeatRow},
};
use crate::{
    admission::pass::{self, Bearer},
    seat_map::{Board, SeatNo},
};

/// What became of a request.
#[derive(Debug)]
pub enum Decision {
    Done(Result<Granted, Refusal>),
    /// The board proposed seats that are no longer free: propose again, and decide in the next batch.
    Again,
    /// The board had no seats to propose. It may have been late.
    NoneProposed,
}

/// What the decisions need besides the rows.
pub struct Context<'a> {
    pub board: &'a Board,
    /// No payment starts with less than this of the hold left.
    pub pay_margin: TimeDelta,
}

/// Decides one request. `proposals` are what the board offered for a wish of the best seats.
pub fn decide(ledger: &mut Ledger, context: &Context, request: &Request, proposals: &[Vec<SeatNo>]) -> Decision {
    match request {
        Request::Take(take) => decide_take(ledger, context, take, proposals),
        Request::Release(release) => Decision::Done(decide_release(ledger, context, release)),
        Request::Expire(holds) => {
            for id in holds {
                end_if_over(ledger, *id);
            }
            Decision::Done(Ok(Granted { hold: None, not_held: Vec::new(), now: ledger.now }))
        }
    }
}

fn decide_take(ledger: &mut Ledger, context: &Context, take: &Take, proposals: &[Vec<SeatNo>]) -> Decision {
    let done = |answer| Decision::Done(answer);
    let key = (take.buyer_id, take.key.name.clone());
    if let Some(first) = ledger.answered.get(&key) {
        return done(replay(first, &take.key.body_hash));
    }
    if let Err(refusal) = check_sale(ledger, take.rules).and_then(|()| check_way(ledger, take)) {
        return done(Err(refusal));
    }
    let current = ledger.hold_of.get(&take.buyer_id).copied().filter(|id| ledger.holds[id].is_live(ledger.now));
    if current.is_some_and(|id| ledger.holds[&id].frozen) {
        return done(Err(Refusal::HoldFrozen));
    }
    if current.is_none()
        && let Err(refusal) = check_room(ledger, take)
    {
        return done(Err(refusal));
    }
    let mine: BTreeSet<SeatNo> =
        current.map(|id| ledger.holds[&id].seats.iter().copied().collect()).unwrap_or_default();

    let wanted: Vec<SeatNo> = match &take.wish {
        Wish::Seats(set) => {
            let unknown: Vec<SeatNo> =
                set.as_slice().iter().copied().filter(|s| !ledger.seats.contains_key(s)).collect();
            if !unknown.is_empty() {
                return done(Err(Refusal::SeatUnknown(unknown)));
            }
            set.as_slice().to_vec()
        }
        Wish::Best(_) => {
            let fits = |seats: &&Vec<SeatNo>| seats.iter().all(|s| !mine.contains(s) && ledger.is_claimable(*s));
            match proposals.iter().find(fits) {
                Some(seats) => seats.clone(),
                None if proposals.is_empty() => return Decision::NoneProposed,
                None => return Decision::Again,
            }
        }
    };
    let kept: BTreeSet<SeatNo> =
        if take.replace { mine.iter().copied().filter(|s| wanted.contains(s)).collect() } else { mine.clone() };
    let (mut fresh, mut not_held): (Vec<SeatNo>, Vec<SeatNo>) =
        wanted.iter().copied().filter(|s| !mine.contains(s)).partition(|s| ledger.is_claimable(*s));
    if !not_held.is_empty() && (!take.fewer_ok || (fresh.is_empty() && kept.is_empty())) {
        return done(Err(Refusal::SeatsUnavailable { lost: not_held }));
    }

    let bought = ledger.bought.get(&take.buyer_id).copied().unwrap_or(0);
    let room = (ledger.event.seat_limit - bought).max(0) as usize;
    if kept.len() + fresh.len() > room {
        if !take.fewer_ok || room <= kept.len() {
            let (limit, held) = (ledger.event.seat_limit, mine.len() as i32);
            return done(Err(Refusal::LimitReached { limit, held, bought }));
        }
        not_held.extend(fresh.drain(room - kept.len()..));
    }
    let result: BTreeSet<SeatNo> = kept.iter().chain(&fresh).copied().collect();
    if take.rules == Rules::Fan
        && let Err(refusal) = check_good_order(ledger, context.board, take, &fresh, &result)
    {
        return done(Err(refusal));
    }

    let id = place(ledger, take.buyer_id, current, &mine, &fresh, &result);
    let hold = hold_json(&ledger.holds[&id], ledger.event.event_id, context.pay_margin);
    let granted = Granted { hold: Some(hold), not_held, now: ledger.now };
    remember(ledger, key, take, id, &granted);
    if let (Some(_), Way::ByRole(by)) = (&ledger.line, &take.way) {
        ledger.passed_by_role.push(by.clone());
    }
    done(Ok(granted))
}

/// The same key again: the first answer, or a refusal if the request is another one.
fn replay(first: &Answered, body_hash: &[u8]) -> Result<Granted, Refusal> {
    if first.body_hash != body_hash {
        return Err(Refusal::IdempotencyMismatch);
    }
    let answer: HoldAnswer = serde_json::from_str(&first.answer).map_err(|error| {
        tracing::error!(%error, "a stored answer can't be read");
        Refusal::Failed
    })?;
    Ok(Granted { hold: answer.hold, not_held: answer.not_held, now: answer.now })
}

fn remember(ledger: &mut Ledger, key: (Uuid, String), take: &Take, hold_id: Uuid, granted: &Granted) {
    let answer = HoldAnswer { hold: granted.hold.clone(), not_held: granted.not_held.clone(), now: granted.now };
    let answer = serde_json::to_string(&answer).expect("a hold is plain data");
    ledger.answered.insert(key.clone(), Answered { hold_id, body_hash: take.key.body_hash.to_vec(), answer });
    ledger.new_answers.push(key);
}

fn check_sale(ledger: &Ledger, rules: Rules) -> Result<(), Refusal> {
    let event = &ledger.event;
    match (event.sale_state.as_str(), rules) {
        ("cancelled", _) => Err(Refusal::EventCancelled),
        (_, Rules::Staff) => Ok(()),
        ("paused", Rules::Fan) => Err(Refusal::SalePaused),
        _ if ledger.now < event.on_sale_at => Err(Refusal::SaleNotOpen(event.on_sale_at)),
        _ if ledger.now >= event.off_sale_at => Err(Refusal::SaleClosed),
        _ => Ok(()),
    }
}

/// Where there is a waiting room, who takes seats needs its pass. Who holds seats already needs it for more of them.
fn check_way(ledger: &Ledger, take: &Take) -> Result<(), Refusal> {
    match (&ledger.line, &take.way) {
        (None, _) | (_, Way::ByRole(_)) => Ok(()),
        (Some(_), Way::WithPass { claim, account_id, session }) => {
            let row = claim.and_then(|claim| ledger.passes.get(&claim.id));
            let bearer = Bearer { account_id: *account_id, session };
            pass::check(claim.as_ref(), row, ledger.event.event_id, bearer, ledger.now).map_err(Refusal::Pass)
        }
    }
}

/// Whether one more may hold seats. The house's own may always.
fn check_room(ledger: &Ledger, take: &Take) -> Result<(), Refusal> {
    match ledger.line {
        _ if matches!(take.way, Way::ByRole(_)) => Ok(()),
        Some(LineRules { holds_live_max: Some(max), holds_live }) if holds_live >= max => {
            Err(Refusal::EventFullOfHolds)
        }
        _ => Ok(()),
    }
}

/// Churn, the smallest party, companions, seats apart, single seats.
fn check_good_order(
    ledger: &Ledger,
    board: &Board,
    take: &Take,
    fresh: &[SeatNo],
    result: &BTreeSet<SeatNo>,
) -> Result<(), Refusal> {
    let taken = ledger.taken_lately.get(&take.buyer_id).copied().unwrap_or(0);
    if taken.saturating_add(fresh.len() as i32) > ledger.event.churn_seats_max {
        return Err(Refusal::ChurnSpent);
    }
    if (result.len() as i32) < ledger.event.seats_min {
        return Err(Refusal::SeatsTooFew(ledger.event.seats_min));
    }
    if ledger.event.consecutive_rule && !best::side_by_side(&board.hall, result) {
        return Err(Refusal::SeatsApart);
    }
    let lonely = best::companions_alone(&board.hall, fresh, result);
    if !lonely.is_empty() {
        return Err(Refusal::CompanionNeedsAccessible(lonely));
    }
    if ledger.event.single_seat_rule {
        let free = |seat| match ledger.seats.get(&seat) {
            Some(_) => ledger.is_claimable(seat),
            None => board.is_available(seat),
        };
        let singles = best::singles_left(&board.hall, fresh, result, free);
        if !singles.is_empty() {
            return Err(Refusal::LeavesSingleSeat(singles));
        }
    }
    Ok(())
}

/// Makes `result` the buyer's hold: a new one, or the one they have, which keeps its deadline.
fn place(
    ledger: &mut Ledger,
    buyer_id: Uuid,
    current: Option<Uuid>,
    mine: &BTreeSet<SeatNo>,
    fresh: &[SeatNo],
    result: &BTreeSet<SeatNo>,
) -> Uuid {
    let id = match current {
        Some(id) => id,
        None => {
            if let Some(over) = ledger.hold_of.get(&buyer_id).copied() {
                end_if_over(ledger, over);
            }
            let id = Uuid::now_v7();
            let held_until = ledger.now + TimeDelta::seconds(ledger.event.hold_ttl_s.into());
            ledger.holds.insert(
                id,
                HoldRow {
                    id,
                    buyer_id,
                    seats: Vec::new(),
                    held_until,
                    frozen: false,
                    version: 1,
                    seats_taken: 0,
                    state: "live",
                },
            );
            ledger.new_holds.insert(id);
            ledger.hold_of.insert(buyer_id, id);
            if let Some(line) = &mut ledger.line {
                line.holds_live += 1;
            }
            id
        }
    };
    let held_until = ledger.holds[&id].held_until;
    for seat in mine.iter().filter(|s| !result.contains(s)) {
        ledger.free_if_of(*seat, id);
    }
    for &seat in fresh {
        ledger.change_seat(seat, Status::Held, Some(id), Some(held_until));
    }
    let taken = fresh.len() as i32;
    *ledger.taken_lately.entry(buyer_id).or_default() += taken;
    let hold = ledger.holds.get_mut(&id).expect("it was found or made above");
    if !hold.seats.iter().eq(result) {
        hold.seats = result.iter().copied().collect();
        hold.seats_taken += taken;
        ledger.touch_hold(id);
    }
    id
}

fn decide_release(ledger: &mut Ledger, context: &Context, release: &Release) -> Result<Granted, Refusal> {
    let nothing = Granted { hold: None, not_held: Vec::new(), now: ledger.now };
    let Some(hold) = ledger.holds.get(&release.hold_id) else {
        return Ok(nothing); // ended already: releasing twice is no error
    };
    if hold.buyer_id != release.buyer_id {
        return Err(Refusal::HoldUnknown);
    }
    if !hold.is_live(ledger.now) {
        end_if_over(ledger, release.hold_id);
        return Ok(nothing);
    }
    if hold.frozen {
        return Err(Refusal::HoldFrozen);
    }
    let (dropped, rest): (Vec<SeatNo>, Vec<SeatNo>) =
        hold.seats.iter().partition(|s| release.seats.as_ref().is_none_or(|set| set.contains(**s)));
    if !dropped.is_empty() {
        for seat in dropped {
            ledger.free_if_of(seat, release.hold_id);
        }
        let hold = ledger.holds.get_mut(&release.hold_id).expect("it was found above");
        if rest.is_empty() {
            hold.state = "released"; // seat_nos stay as they were: the record of what was held
        } else {
            hold.seats = rest;
        }
        ledger.touch_hold(release.hold_id);
    }
    let hold = &ledger.holds[&release.hold_id];
    let hold = (hold.state == "live").then(|| hold_json(hold, ledger.event.event_id, context.pay_margin));
    Ok(Granted { hold, ..nothing })
}

/// Ends a hold whose time has passed; frees those of its seats that nobody has taken since.
fn end_if_over(ledger: &mut Ledger, id: Uuid) {
    let Some(hold) = ledger.holds.get_mut(&id) else { return };
    if hold.state != "live" || hold.held_until > ledger.now {
        return;
    }
    hold.state = "expired";
    for seat in hold.seats.clone() {
        ledger.free_if_of(seat, id);
    }
    ledger.touch_hold(id);
}

fn hold_json(hold: &HoldRow, event_id: i64, pay_margin: TimeDelta) -> Hold {
    Hold {
        id: hold.id,
        event_id,
        seats: hold.seats.clone(),
        held_until: hold.held_until,
        pay_until: hold.held_until - pay_margin,
        frozen: hold.frozen,
        version: hold.version,
    }
}

impl Ledger {
    /// Whether anybody may have the seat: by its status, and by the clock if it is held.
    pub fn is_claimable(&self, seat: SeatNo) -> bool {
        self.seats.get(&seat).is_some_and(|row| row.is_claimable(self.now))
    }

    fn change_seat(&mut self, seat: SeatNo, status: Status, hold_id: Option<Uuid>, held_until: Option<DateTime<Utc>>) {
        let Some(row) = self.seats.get_mut(&seat) else { return };
        row.status = status;
        row.hold_id = hold_id;
        row.held_until = held_until;
        if self.dirty_seats.insert(seat) {
            row.version += 1;
        }
    }

    /// Frees a seat only if it still is this hold's: whoever took it over is left alone.
    fn free_if_of(&mut self, seat: SeatNo, hold_id: Uuid) {
        if self.seats.get(&seat).is_some_and(|row| row.status == Status::Held && row.hold_id == Some(hold_id)) {
            self.change_seat(seat, Status::Available, None, None);
        }
    }

    fn touch_hold(&mut self, id: Uuid) {
        if self.dirty_holds.insert(id)
            && !self.new_holds.contains(&id)
            && let Some(hold) = self.holds.get_mut(&id)
        {
            hold.version += 1;
        }
    }
}

impl SeatRow {
    pub fn is_claimable(&self, now: DateTime<Utc>) -> bool {
        match self.status {
            Status::Available => true,
            Status::Held => self.held_until.is_none_or(|until| until <= now),
            Status::Sold | Status::Blocked => false,
        }
    }
}

#[cfg(test)]
mod tests;
