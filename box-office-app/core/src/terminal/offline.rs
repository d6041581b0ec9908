//! A counter without a network: its till, what paper needs of the leased seats, and what a screen shows of both.
//!
//! Invariants:
//! - The till decides ([`crate::till`]); a sale is on the disk before its money is taken and its tickets are printed.
//! - What stands on a ticket is read when its seat is leased: nothing has to be asked when it is sold.
//! - Whoever is signed in sells, in their name. Where nobody has to be, it is nobody's.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
    time::Duration,
};

use chrono::{NaiveDateTime, SecondsFormat, Utc};
use fullhouse_protocol::{events::EventPage, lease::LeaseRequest, orders::TicketChoice, seat::SeatTrait};
use serde::{Deserialize, Serialize};
use tokio::{
    sync::{Notify, watch},
    task::{self, AbortHandle, JoinError},
    time::{sleep, timeout},
};
use uuid::Uuid;

use super::{
    Ask, AskError, Home, Record, Relay, Token,
    papers::{Language, PaperError, Papers, Printed},
};
use crate::{
    hub,
    lease::{CloseError, Granted, LeasedPlace, SellError, Sold, TakeError, Wanted},
    print::{Job, Page, Ticket},
    pulse,
    till::{BeginError, LeaseError, Settings, Standing, Till},
};

/// Under the terminal's own.
const FOLDER: &str = "journal";
/// The time that is left to sell is shown anew so often.
const SHOW_EVERY: Duration = Duration::from_secs(1);

#[derive(Debug, thiserror::Error)]
pub enum OfflineError {
    /// The journal could not be opened yet, or belongs to somebody else.
    #[error("nothing can be sold without a network here: {0}")]
    NotReady(String),
    #[error("somebody has to be signed in")]
    NobodySignedIn,
    #[error("that is not enough money: {total_minor} are to pay")]
    TooLittleCash { total_minor: i64 },
    #[error(transparent)]
    Hub(#[from] AskError),
    #[error(transparent)]
    Lease(#[from] LeaseError),
    #[error(transparent)]
    Sell(#[from] SellError),
    #[error(transparent)]
    Close(#[from] CloseError),
    #[error("a thread ended")]
    Thread(#[from] JoinError),
}

impl OfflineError {
    /// What a screen acts on; a hub's refusal keeps its own.
    pub fn code(&self) -> &str {
        match self {
            Self::NotReady(_) => "till_not_ready",
            Self::NobodySignedIn => "staff_required",
            Self::TooLittleCash { .. } => "tender_invalid",
            Self::Hub(AskError::Refused { code, .. }) => code,
            Self::Lease(LeaseError::Refused(refused)) => refused.code().unwrap_or("no_answer"),
            Self::Hub(_) | Self::Lease(LeaseError::Lost(_)) => "no_answer",
            Self::Lease(LeaseError::NotTaken(TakeError::Copied)) | Self::Close(CloseError::Copied) => "journal_copied",
            Self::Lease(LeaseError::NotTaken(_)) => "lease_not_taken",
            Self::Lease(LeaseError::Journal(_)) | Self::Sell(SellError::Journal(_)) => "journal_broken",
            Self::Sell(SellError::NoLease | SellError::TimeOver) => "lease_over",
            Self::Sell(SellError::SeatSold(_)) => "seats_unavailable",
            Self::Sell(SellError::TooMany(_)) => "limit_reached",
            Self::Sell(_) => "seat_unknown",
            Self::Close(_) => "journal_broken",
            Self::Thread(_) => "broken",
        }
    }
}

/// What is bought.
#[derive(Debug, Clone, Deserialize)]
pub struct SaleWish {
    pub lease_id: Uuid,
    pub tickets: Vec<TicketChoice>,
    /// In cash.
    pub received_minor: i64,
    pub language: String,
}

/// A seat as people find it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Place {
    pub seat_no: i32,
    pub section: String,
    pub row: String,
    pub number: String,
    /// A place to stand, and no seat.
    pub standing: bool,
    pub traits: Vec<SeatTrait>,
    /// What the house says of it for this performance.
    pub note: Option<String>,
}

/// A sale that is on the disk.
#[derive(Debug, Clone, Serialize)]
pub struct SoldHere {
    /// What stands on the tickets for an order's code, until the hub gives one.
    pub code: String,
    pub currency: String,
    pub total_minor: i64,
    pub change_minor: i64,
    pub seats: Vec<Place>,
    /// What became of each ticket; none if the printer could not be asked.
    pub printed: Vec<Printed>,
}

/// A lease that sells, or did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LeaseShown {
    pub lease_id: Uuid,
    pub event_id: i64,
    pub event: String,
    pub currency: String,
    /// Seats that one customer may have.
    pub seats_max: usize,
    /// 0: over.
    pub sells_for_s: u64,
    pub seats: Vec<SeatShown>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SeatShown {
    #[serde(flatten)]
    pub place: Place,
    /// By ticket type, the event's first one first; fees included.
    pub prices: Vec<(String, i64)>,
    pub sold: bool,
}

/// How a counter stands, without a network or with one.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Shown {
    /// Why nothing can be leased; none: it can.
    pub not_ready: Option<String>,
    #[serde(flatten)]
    pub standing: Standing,
    pub leases: Vec<LeaseShown>,
}

/// What paper says of a lease's seats.
struct Hall {
    event: String,
    venue: String,
    city: String,
    starts: NaiveDateTime,
    doors: Option<NaiveDateTime>,
    types: Vec<String>,
    places: BTreeMap<i32, Place>,
    granted: Granted,
}

/// Clones share it.
#[derive(Clone)]
pub struct Offline(Arc<Inner>);

struct Inner {
    record: Record,
    relay: Relay,
    papers: Papers,
    till: OnceLock<Till>,
    halls: Mutex<HashMap<Uuid, Arc<Hall>>>,
    shown: watch::Sender<Shown>,
    changed: Notify,
    runs: OnceLock<AbortHandle>,
}

impl Drop for Inner {
    fn drop(&mut self) {
        if let Some(runs) = self.runs.get() {
            runs.abort();
        }
    }
}

impl Offline {
    /// On a runtime. The journal is opened as soon as it can be: the first one needs the hub.
    pub fn begin(record: Record, relay: Relay, papers: Papers, home: &Home, token: &Token) -> Self {
        let settings = Settings {
            hub: record.hub.as_str().to_owned(),
            token: token.reveal().to_owned(),
            terminal_id: record.terminal_id,
            folder: home.folder().join(FOLDER),
        };
        let own = Self(Arc::new(Inner {
            record,
            relay,
            papers,
            till: OnceLock::new(),
            halls: Mutex::default(),
            shown: watch::Sender::new(Shown { not_ready: Some("no_answer".to_owned()), ..Shown::default() }),
            changed: Notify::new(),
            runs: OnceLock::new(),
        }));
        let runs = tokio::spawn(run(Arc::downgrade(&own.0), settings)).abort_handle();
        let _ = own.0.runs.set(runs); // it is empty
        own
    }

    /// How it stands, now and whenever that changes; the time that leases still sell, each second.
    pub fn shown(&self) -> watch::Receiver<Shown> {
        self.0.shown.subscribe()
    }

    /// Sales that the hub has not answered.
    pub fn unsettled(&self) -> usize {
        self.0.shown.borrow().standing.unsettled
    }

    /// Leases seats, and sells from them from now on.
    pub async fn lease(&self, ask: LeaseRequest) -> Result<Uuid, OfflineError> {
        let till = self.till()?;
        // Without its seats, which are megabytes of a stadium: the lease brings its own.
        let page = self.page(&format!("/api/events/{}?seats=none", ask.event_id)).await?;
        let staff = self.0.relay.staff_token();
        let lease_id = till.lease(&ask, staff.as_ref().map(Token::reveal)).await?;
        if let Some(granted) = till.granted(lease_id) {
            let all = if granted.seats.values().all(|seat| seat.place.is_some()) {
                None
            } else {
                // An older hub's. The seats are leased: without an answer paper has their numbers.
                self.page(&format!("/api/events/{}", ask.event_id)).await.ok()
            };
            self.halls().insert(lease_id, Arc::new(Hall::of(page, all, granted)));
        }
        self.0.changed.notify_one();
        Ok(lease_id)
    }

    async fn page(&self, target: &str) -> Result<EventPage<'static>, OfflineError> {
        let ask = Ask { method: "GET".into(), target: target.to_owned(), body: None, key: None };
        Ok(super::relay::read(self.0.relay.send(&ask).await?)?)
    }

    /// Sells from a lease for cash, and prints. The money may be taken once this has answered.
    pub async fn sell(&self, wish: SaleWish) -> Result<SoldHere, OfflineError> {
        let till = self.till()?;
        let staff_id = match self.0.relay.staff_id() {
            Some(id) => id,
            None if self.0.record.attended => return Err(OfflineError::NobodySignedIn),
            None => Uuid::nil(),
        };
        let hall = self.halls().get(&wish.lease_id).cloned().ok_or(SellError::NoLease)?;
        let total_minor = hall.total(&wish.tickets)?;
        let change_minor = wish.received_minor - total_minor;
        if change_minor < 0 {
            return Err(OfflineError::TooLittleCash { total_minor });
        }
        let (lease_id, tickets) = (wish.lease_id, wish.tickets);
        let sold = task::spawn_blocking(move || {
            let seats: Vec<(i32, &str)> = tickets.iter().map(|t| (t.seat_no, t.ticket_type.as_str())).collect();
            let sold_at = Utc::now().to_rfc3339_opts(SecondsFormat::Secs, true);
            till.sell(&Wanted { lease_id, seats: &seats, staff_id, sold_at: &sold_at })
        })
        .await??;
        self.0.changed.notify_one();
        let code =
            format!("{}-{}", &self.0.record.terminal_id.simple().to_string()[..4].to_uppercase(), sold.sale().seq);
        let jobs = hall.jobs(&sold, &code, Language::read(&wish.language).unwrap_or_default());
        let seats: HashMap<Uuid, i32> =
            jobs.iter().map(|(job, _)| job.id).zip(sold.sale().seats.iter().map(|seat| seat.seat_no)).collect();
        let seat_of = |job| seats.get(&job).copied().unwrap_or_default();
        let printed = self.0.papers.print_jobs(jobs, seat_of).await.unwrap_or_else(|error: PaperError| {
            tracing::error!(%error, seq = sold.sale().seq, "what was sold without a network is not printed");
            Vec::new()
        });
        Ok(SoldHere {
            code,
            currency: sold.sale().currency.clone(),
            total_minor: sold.sale().total_minor,
            change_minor,
            seats: sold.sale().seats.iter().map(|seat| hall.place(seat.seat_no)).collect(),
            printed,
        })
    }

    /// Ends selling from a lease; its seats go back as soon as the hub hears of it.
    pub async fn close(&self, lease_id: Uuid) -> Result<(), OfflineError> {
        let till = self.till()?;
        task::spawn_blocking(move || till.close(lease_id)).await??;
        self.0.changed.notify_one();
        Ok(())
    }

    fn till(&self) -> Result<Till, OfflineError> {
        let why = || self.0.shown.borrow().not_ready.clone().unwrap_or_default();
        self.0.till.get().cloned().ok_or_else(|| OfflineError::NotReady(why()))
    }

    fn halls(&self) -> MutexGuard<'_, HashMap<Uuid, Arc<Hall>>> {
        self.0.halls()
    }
}

impl Inner {
    fn halls(&self) -> MutexGuard<'_, HashMap<Uuid, Arc<Hall>>> {
        self.halls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn show(&self, till: &Till) {
        let mut halls = self.halls();
        let running = till.leases();
        halls.retain(|id, _| running.iter().any(|(known, _)| known == id));
        let leases = running.iter().filter_map(|(id, stands)| Some(halls.get(id)?.shown(*id, stands))).collect();
        let now = Shown { not_ready: None, standing: till.standing().borrow().clone(), leases };
        self.shown.send_if_modified(|shown| {
            let changed = *shown != now;
            *shown = now;
            changed
        });
    }
}

async fn run(inner: std::sync::Weak<Inner>, settings: Settings) {
    let Some(till) = open(&inner, settings).await else { return };
    let mut standing = till.standing();
    while let Some(inner) = inner.upgrade() {
        inner.show(&till);
        let _ = timeout(SHOW_EVERY, async {
            tokio::select! {
                _ = standing.changed() => {}
                () = inner.changed.notified() => {}
            }
        })
        .await;
    }
}

/// Opens the journal; the first one waits for the hub, and one that can't be opened for a person.
async fn open(inner: &std::sync::Weak<Inner>, settings: Settings) -> Option<Till> {
    let mut tries = 0;
    loop {
        let heart = inner.upgrade()?.relay.heart();
        match Till::beside(settings.clone(), heart).await {
            Ok(till) => {
                let _ = inner.upgrade()?.till.set(till.clone());
                return Some(till);
            }
            Err(error) => {
                let why = match &error {
                    BeginError::FirstNeedsHub(hub::AskError::Refused { code, .. }) => code.clone(),
                    BeginError::FirstNeedsHub(_) => "no_answer".to_owned(),
                    error => error.to_string(),
                };
                tracing::warn!(%error, "no journal yet");
                inner.upgrade()?.shown.send_modify(|shown| shown.not_ready = Some(why));
            }
        }
        tries += 1;
        sleep(pulse::wait(tries)).await;
    }
}

impl Hall {
    /// `all`: the page with its seats, of a hub that leases them without their places.
    fn of(page: EventPage<'static>, all: Option<EventPage<'static>>, granted: Granted) -> Self {
        let of_page = all.and_then(|page| page.seats).into_iter().flatten().map(|seat| {
            let (section, row, number) = (seat.section.into_owned(), seat.row.into_owned(), seat.number.into_owned());
            let (traits, note) = (Vec::new(), None);
            Place { seat_no: seat.seat_no, section, row, number, standing: seat.standing, traits, note }
        });
        let leased = granted.seats.iter().filter_map(|(seat_no, seat)| {
            let LeasedPlace { section, row, number, standing, traits, note } = seat.place.clone()?;
            Some(Place { seat_no: *seat_no, section, row, number, standing, traits, note })
        });
        let places = of_page
            .chain(leased)
            .filter(|place| granted.seats.contains_key(&place.seat_no))
            .map(|place| (place.seat_no, place))
            .collect();
        let mut types: Vec<String> = Vec::new();
        for price in page.price_levels.into_iter().flat_map(|level| level.prices) {
            if !types.contains(&price.ticket_type) {
                types.push(price.ticket_type);
            }
        }
        let event = page.event.summary;
        Self {
            event: event.name,
            venue: event.venue.name,
            city: event.venue.city,
            starts: event.starts_local,
            doors: event.doors_local,
            types,
            places,
            granted,
        }
    }

    fn place(&self, seat_no: i32) -> Place {
        let nameless = || Place {
            seat_no,
            section: String::new(),
            row: String::new(),
            number: seat_no.to_string(),
            standing: false,
            traits: Vec::new(),
            note: None,
        };
        self.places.get(&seat_no).cloned().unwrap_or_else(nameless)
    }

    /// What these tickets cost, as they were leased.
    fn total(&self, tickets: &[TicketChoice]) -> Result<i64, SellError> {
        let mut total = 0_i64;
        for ticket in tickets {
            let seat = self.granted.seats.get(&ticket.seat_no).ok_or(SellError::NotLeased(ticket.seat_no))?;
            let price = seat.prices.get(&ticket.ticket_type).ok_or(SellError::NoPrice(ticket.seat_no))?;
            total = total.checked_add(*price).ok_or(SellError::NoPrice(ticket.seat_no))?;
        }
        Ok(total)
    }

    fn jobs(&self, sold: &Sold, code: &str, language: Language) -> Vec<(Job, Page)> {
        let all = sold.sale().seats.len();
        let of = |(at, (seat, leased)): (usize, (&crate::lease::SoldSeat, &crate::lease::LeasedSeat))| {
            let place = self.place(seat.seat_no);
            let what = [code, &place.section, &place.row, &place.number];
            let what: Vec<&str> = what.into_iter().filter(|part| !part.trim().is_empty()).collect();
            let job =
                Job { id: Uuid::now_v7(), of_hub: false, ticket_id: Some(leased.ticket_id), what: what.join(" · ") };
            let ticket = Ticket {
                language,
                event: self.event.clone(),
                venue: self.venue.clone(),
                city: self.city.clone(),
                starts: self.starts,
                doors: self.doors,
                section: place.section,
                row: place.row,
                number: place.number,
                standing: place.standing,
                ticket_type: seat.ticket_type.clone(),
                price: Some((sold.sale().currency.clone(), seat.amount_minor)),
                holder: None,
                order: code.to_owned(),
                count: (at + 1, all),
                code: leased.code.clone(),
                told: language.seat_told(place.traits.iter().map(|told| told.code()), place.note.as_deref()),
            };
            (job, ticket.page())
        };
        sold.tickets().enumerate().map(of).collect()
    }

    fn shown(&self, lease_id: Uuid, stands: &crate::lease::Standing) -> LeaseShown {
        let seat = |(seat_no, leased): (&i32, &crate::lease::LeasedSeat)| {
            let mut prices: Vec<(String, i64)> = leased.prices.clone().into_iter().collect();
            prices.sort_by_key(|(kind, _)| self.types.iter().position(|known| known == kind));
            SeatShown { place: self.place(*seat_no), prices, sold: !stands.unsold.contains(seat_no) }
        };
        LeaseShown {
            lease_id,
            event_id: self.granted.event_id,
            event: self.event.clone(),
            currency: self.granted.currency.clone(),
            seats_max: self.granted.seats_max,
            sells_for_s: stands.sells_for_s,
            seats: self.granted.seats.iter().map(seat).collect(),
        }
    }
}
