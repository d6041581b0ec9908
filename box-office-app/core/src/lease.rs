//! Seats that a till owns for a while, and what it sells of them without a network.
//!
//! Invariants:
//! - A seat is sold at most once: what is sold is looked up, journalled and noted under one lock, and a lease that is
//!   closed, or was closed or taken by an earlier process, sells nothing.
//! - A lease sells only in the process that asked for it: `take` journals its id first, and refuses one that the
//!   journal knows. A restart therefore ends selling, whatever the hub still lists.
//! - Time ends selling, never ownership: it runs from before the lease was asked for, by a clock that counts sleep.
//!   Seats go back only by the closing report, which is journalled before anybody can see it.
//! - A journal that was copied takes no lease and closes none: the one that it was copied from may sell from them.
//! - A [`Sold`] exists only for a sale that is on the disk. Printing takes one.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Mutex, MutexGuard},
    time::Duration,
};

use fullhouse_protocol::lease::Lease;
pub use fullhouse_protocol::lease::{LeasedPlace, OfflineSale, SoldSeat};
use thiserror::Error;
use uuid::Uuid;

use crate::{
    clock::{Clock, SinceBoot},
    journal::{AppendError, Journal, LeaseMark, Medium},
};

#[cfg(test)]
mod tests;

/// A seat as it was leased.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeasedSeat {
    pub ticket_id: Uuid,
    /// Signed by the hub; what the ticket's QR code says. Dies if the seat goes back unsold.
    pub code: String,
    /// What it costs by ticket type, fees included, in minor units.
    pub prices: BTreeMap<String, i64>,
    /// What stands on its ticket, if the hub said so.
    pub place: Option<LeasedPlace>,
}

/// What a hub leased to this terminal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Granted {
    pub lease_id: Uuid,
    pub event_id: i64,
    pub currency: String,
    /// For how long it may sell, in seconds, from when it was asked for.
    pub sells_for_s: u32,
    /// The number that the hub expects this terminal's next sale to have, as it said when the lease was asked for.
    pub hub_next_seq: u64,
    /// Seats that one buyer may have.
    pub seats_max: usize,
    pub seats: BTreeMap<i32, LeasedSeat>,
}

impl From<Lease> for Granted {
    fn from(lease: Lease) -> Self {
        let seat = |s: fullhouse_protocol::lease::LeasedSeat| {
            (s.seat_no, LeasedSeat { ticket_id: s.ticket_id, code: s.code, prices: s.prices, place: s.place })
        };
        Self {
            lease_id: lease.lease_id,
            event_id: lease.event_id,
            currency: lease.currency,
            sells_for_s: lease.sells_for_s,
            hub_next_seq: lease.next_seq,
            seats_max: lease.seats_max,
            seats: lease.seats.into_iter().map(seat).collect(),
        }
    }
}

/// What a buyer wants of a lease.
#[derive(Debug, Clone)]
pub struct Wanted<'a> {
    pub lease_id: Uuid,
    /// Seat and ticket type.
    pub seats: &'a [(i32, &'a str)],
    pub staff_id: Uuid,
    pub sold_at: &'a str,
}

/// A sale that is on the disk.
#[derive(Debug, PartialEq, Eq)]
pub struct Sold {
    sale: OfflineSale,
    tickets: Vec<LeasedSeat>,
}

impl Sold {
    pub fn sale(&self) -> &OfflineSale {
        &self.sale
    }

    /// What to print: the seats in the order of the sale, with their tickets.
    pub fn tickets(&self) -> impl Iterator<Item = (&SoldSeat, &LeasedSeat)> {
        self.sale.seats.iter().zip(&self.tickets)
    }
}

/// Why nothing is sold.
#[derive(Debug, Error)]
pub enum SellError {
    /// Not of this process, or closed.
    #[error("no such lease sells here")]
    NoLease,
    #[error("the lease's time to sell is over")]
    TimeOver,
    #[error("no seat was asked for")]
    NoSeats,
    #[error("at most {0} seats a buyer")]
    TooMany(usize),
    #[error("seat {0} is not of this lease, or was asked for twice")]
    NotLeased(i32),
    #[error("seat {0} is sold")]
    SeatSold(i32),
    #[error("seat {0} has no price of this type")]
    NoPrice(i32),
    /// The seats are sold by nobody in this process: the sale may be on the disk.
    #[error("the sale could not be journalled")]
    Journal(#[source] AppendError),
}

/// Why a lease was not taken.
#[derive(Debug, Error)]
pub enum TakeError {
    /// A seat is leased here already: the hub would never lease it twice, so nothing is sold of this lease.
    #[error("seat {0} is of another lease here")]
    SeatLeased(i32),
    /// The hub knows sales that the journal here doesn't: it was lost, or put back from a copy. What is sold next
    /// would have a number that is taken.
    #[error("the journal goes on at {journal}, the hub at {hub}")]
    JournalBehind { journal: u64, hub: u64 },
    /// What is sold here would have numbers that the other one gives, too.
    #[error("the journal is a copy of another one")]
    Copied,
    #[error("the clock could not be read")]
    NoClock,
    #[error("the lease could not be journalled")]
    Journal(#[source] AppendError),
}

/// Why there is no closing report yet.
#[derive(Debug, Error)]
pub enum CloseError {
    #[error("the end of the lease could not be journalled")]
    Journal(#[source] AppendError),
    /// Whoever has the one that it was copied from may have sold from the lease since. A person has to write it off.
    #[error("the journal is a copy of another one")]
    Copied,
    /// Written by a version of this app that knew more, or less. A report without it would give sold seats back.
    #[error("sale {seq} could not be read")]
    Unreadable {
        seq: u64,
        #[source]
        why: serde_json::Error,
    },
}

/// What a terminal tells the hub when it gives a lease back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClosingReport {
    pub lease_id: Uuid,
    /// Of the journal; 0 if it never sold. The hub needs all up to it before it takes the seats.
    pub last_seq: u64,
    pub sold: BTreeSet<i32>,
}

/// How a lease stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Standing {
    /// Seconds that it still sells; 0: over.
    pub sells_for_s: u64,
    pub unsold: BTreeSet<i32>,
}

/// All leases of a terminal, and its journal.
pub struct Leases<C: Clock, M: Medium> {
    clock: C,
    inner: Mutex<Inner<M>>,
}

struct Inner<M: Medium> {
    journal: Journal<M>,
    /// Those that sell: taken by this process, not closed.
    leases: BTreeMap<Uuid, Running>,
}

struct Running {
    granted: Granted,
    sells_until: SinceBoot,
    /// Sold, or in doubt because its sale could not be journalled.
    gone: BTreeSet<i32>,
}

impl<C: Clock, M: Medium> Leases<C, M> {
    /// Nothing sells yet: leases of an earlier process can only be closed.
    pub fn new(clock: C, journal: Journal<M>) -> Self {
        Self { clock, inner: Mutex::new(Inner { journal, leases: BTreeMap::new() }) }
    }

    /// The time to ask a hub for a lease with: it is passed to [`Leases::take`] with the answer.
    ///
    /// # Errors
    /// [`TakeError::NoClock`], [`TakeError::Copied`].
    pub fn asking(&self) -> Result<SinceBoot, TakeError> {
        if self.is_copied() {
            return Err(TakeError::Copied);
        }
        self.clock.now().ok_or(TakeError::NoClock)
    }

    /// Begins to sell from a lease that was asked for at `asked_at`.
    ///
    /// # Errors
    /// [`TakeError`]: it sells nothing, and has to be closed.
    pub fn take(&self, granted: Granted, asked_at: SinceBoot) -> Result<(), TakeError> {
        let mut inner = self.inner();
        if inner.journal.is_copied() {
            return Err(TakeError::Copied);
        }
        let (journal, hub) = (inner.journal.next_number(), granted.hub_next_seq);
        if journal < hub {
            return Err(TakeError::JournalBehind { journal, hub });
        }
        let of_another = |no: &&i32| {
            inner.leases.values().any(|l| l.granted.seats.contains_key(*no) && l.granted.event_id == granted.event_id)
        };
        if let Some(no) = granted.seats.keys().find(of_another) {
            return Err(TakeError::SeatLeased(*no));
        }
        inner.journal.take_lease(granted.lease_id).map_err(TakeError::Journal)?;
        let sells_until = SinceBoot(asked_at.0 + Duration::from_secs(granted.sells_for_s.into()));
        inner.leases.insert(granted.lease_id, Running { granted, sells_until, gone: BTreeSet::new() });
        Ok(())
    }

    /// Sells, for cash that is on the counter. The money may be taken and the tickets printed once this has answered.
    ///
    /// # Errors
    /// [`SellError`]; nothing of it is sold.
    pub fn sell(&self, wanted: &Wanted<'_>) -> Result<Sold, SellError> {
        let mut inner = self.inner();
        let Inner { journal, leases } = &mut *inner;
        let lease = leases.get_mut(&wanted.lease_id).ok_or(SellError::NoLease)?;
        // Read under the lock: whoever waited for it may have waited too long.
        if self.clock.now().is_none_or(|now| now >= lease.sells_until) {
            return Err(SellError::TimeOver);
        }
        let (seats, tickets) = lease.choose(wanted.seats)?;
        let mut sale = OfflineSale {
            seq: 0,
            lease_id: wanted.lease_id,
            event_id: lease.granted.event_id,
            currency: lease.granted.currency.clone(),
            total_minor: total(&seats)?,
            seats,
            staff_id: wanted.staff_id,
            sold_at: wanted.sold_at.to_owned(),
        };
        // Before the write: if it fails, nobody knows whether they are sold, and so nobody else may have them.
        lease.gone.extend(sale.seats.iter().map(|s| s.seat_no));
        journal
            .sell(|seq| {
                sale.seq = seq;
                serde_json::to_vec(&sale).expect("numbers and strings have a JSON form")
            })
            .map_err(SellError::Journal)?;
        Ok(Sold { sale, tickets })
    }

    /// Ends selling from a lease, of this process or an earlier one, and says what to tell the hub. The same report
    /// each time, as long as nothing else is sold.
    ///
    /// # Errors
    /// [`CloseError`]; the lease sells nothing from then on all the same.
    pub fn close(&self, lease_id: Uuid) -> Result<ClosingReport, CloseError> {
        let mut inner = self.inner();
        inner.leases.remove(&lease_id);
        // What was closed before it was copied is closed there, too.
        let is_closed = matches!(inner.journal.lease(lease_id), Some(LeaseMark::Closed | LeaseMark::Reported));
        if inner.journal.is_copied() && !is_closed {
            return Err(CloseError::Copied);
        }
        inner.journal.close_lease(lease_id).map_err(CloseError::Journal)?;
        let mut sold = BTreeSet::new();
        for (seq, body) in inner.journal.sales() {
            let sale: OfflineSale = serde_json::from_slice(body).map_err(|why| CloseError::Unreadable { seq, why })?;
            if sale.lease_id == lease_id {
                sold.extend(sale.seats.iter().map(|s| s.seat_no));
            }
        }
        Ok(ClosingReport { lease_id, last_seq: inner.journal.next_number().saturating_sub(1), sold })
    }

    /// The journal is a copy: it tells what was sold, and takes and gives back nothing.
    pub fn is_copied(&self) -> bool {
        self.inner().journal.is_copied()
    }

    /// Leases that were taken, by this process or an earlier one, and not closed.
    pub fn to_close(&self) -> BTreeSet<Uuid> {
        self.inner().journal.leases_open()
    }

    /// Notes the key that a lease is about to be asked for with.
    ///
    /// # Errors
    /// [`Journal::ask_lease`]'s.
    pub fn ask(&self, key: Uuid) -> Result<(), AppendError> {
        self.inner().journal.ask_lease(key)
    }

    /// Whether a lease of the hub's is one that was asked for here, and whose answer never came: it has sold nothing.
    pub fn never_came(&self, lease_id: Uuid, key: Uuid) -> bool {
        let inner = self.inner();
        !inner.journal.is_copied() && inner.journal.lease(lease_id).is_none() && inner.journal.has_asked(key)
    }

    /// Whether the journal knows what becomes of a lease.
    pub fn knows(&self, lease_id: Uuid) -> bool {
        let inner = self.inner();
        match inner.journal.lease(lease_id) {
            Some(LeaseMark::Taken) => !inner.journal.is_copied(),
            mark => mark.is_some(),
        }
    }

    /// Leases that are closed here, and not known to be so at the hub.
    pub fn to_report(&self) -> BTreeSet<Uuid> {
        self.inner().journal.leases_unreported()
    }

    /// Keeps that the hub has a closing report.
    ///
    /// # Errors
    /// [`Journal::report_lease`]'s.
    pub fn reported(&self, lease_id: Uuid) -> Result<(), AppendError> {
        self.inner().journal.report_lease(lease_id)
    }

    /// Leases of this process, whether they still sell or not.
    pub fn running(&self) -> Vec<Uuid> {
        self.inner().leases.keys().copied().collect()
    }

    /// What the hub made of the sales that it answered, by number.
    pub fn outcomes(&self) -> Vec<(u64, Vec<u8>)> {
        let inner = self.inner();
        let numbers = inner.journal.sales().map(|(n, _)| n);
        numbers.filter_map(|n| Some((n, inner.journal.outcome(n)?.to_vec()))).collect()
    }

    /// Sales that the hub has not answered.
    pub fn unsettled(&self) -> usize {
        self.inner().journal.unsettled_count()
    }

    /// How a lease that this process took stands; `None` of any other.
    pub fn standing(&self, lease_id: Uuid) -> Option<Standing> {
        let inner = self.inner();
        let lease = inner.leases.get(&lease_id)?;
        let left = self.clock.now().map_or(Duration::ZERO, |now| lease.sells_until.0.saturating_sub(now.0));
        let unsold = lease.granted.seats.keys().filter(|no| !lease.gone.contains(no)).copied().collect();
        Some(Standing { sells_for_s: left.as_secs(), unsold })
    }

    /// What this process was granted, while it has not closed it.
    pub fn granted(&self, lease_id: Uuid) -> Option<Granted> {
        self.inner().leases.get(&lease_id).map(|lease| lease.granted.clone())
    }

    /// A lease that the journal knows as closed.
    pub fn is_closed(&self, lease_id: Uuid) -> bool {
        matches!(self.inner().journal.lease(lease_id), Some(LeaseMark::Closed | LeaseMark::Reported))
    }

    /// The next sales to send, the oldest first, at most `max` and, beyond the first, `bytes_max` of them: numbers and
    /// bodies as they were journalled.
    pub fn to_settle(&self, max: usize, bytes_max: usize) -> Vec<(u64, Vec<u8>)> {
        let mut bytes = 0;
        let fits = |(at, (_, body)): &(usize, (u64, &[u8]))| {
            bytes += body.len();
            *at == 0 || bytes <= bytes_max
        };
        let inner = self.inner();
        let next = inner.journal.unsettled().take(max).enumerate().take_while(fits);
        next.map(|(_, (n, body))| (n, body.to_vec())).collect()
    }

    /// Keeps what the hub made of a sale.
    ///
    /// # Errors
    /// [`Journal::settle`]'s.
    pub fn settle(&self, seq: u64, outcome: &[u8]) -> Result<(), AppendError> {
        self.inner().journal.settle(seq, outcome)
    }

    fn inner(&self) -> MutexGuard<'_, Inner<M>> {
        // Whoever panicked with it left seats gone rather than free, and a journal that calls itself broken.
        self.inner.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

impl Running {
    fn choose(&self, wanted: &[(i32, &str)]) -> Result<(Vec<SoldSeat>, Vec<LeasedSeat>), SellError> {
        if wanted.is_empty() {
            return Err(SellError::NoSeats);
        }
        if wanted.len() > self.granted.seats_max {
            return Err(SellError::TooMany(self.granted.seats_max));
        }
        let mut seen = BTreeSet::new();
        let mut chosen = (Vec::new(), Vec::new());
        for (seat_no, ticket_type) in wanted {
            let seat = self.granted.seats.get(seat_no).filter(|_| seen.insert(*seat_no));
            let seat = seat.ok_or(SellError::NotLeased(*seat_no))?;
            if self.gone.contains(seat_no) {
                return Err(SellError::SeatSold(*seat_no));
            }
            let amount_minor = *seat.prices.get(*ticket_type).ok_or(SellError::NoPrice(*seat_no))?;
            chosen.0.push(SoldSeat { seat_no: *seat_no, ticket_type: (*ticket_type).to_owned(), amount_minor });
            chosen.1.push(seat.clone());
        }
        Ok(chosen)
    }
}

fn total(seats: &[SoldSeat]) -> Result<i64, SellError> {
    let mut sum = 0_i64;
    for seat in seats {
        sum = sum.checked_add(seat.amount_minor).ok_or(SellError::NoPrice(seat.seat_no))?;
    }
    Ok(sum)
}
