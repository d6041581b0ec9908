//! A terminal's journal is taken in: each sale once, in order, and answered the same each time it comes.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, Utc};
use fullhouse_protocol::lease::{JournalAnswer, JournalEntry, NotSold, OfflineSale, Outcome, Settled, SoldSeat};
use sha2::{Digest, Sha256};
use sqlx::{PgPool, types::Json};
use uuid::Uuid;

use super::lock_journal;
use crate::{
    auth::Actor,
    checkout::{self, ConfirmError, LeasedSale, log},
    clock,
    db::{self, Tx},
    seat_map::SeatNo,
    ticket,
};

#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// Written by a version of the app that knows more than this hub, or less. It stays in the journal.
    #[error("sale {seq} can't be read: {why}")]
    Unreadable { seq: u64, why: String },
    /// Another sale has this number: the journal was lost and begun anew, or two machines have one token.
    #[error("another sale was settled as {seq}")]
    Conflict { seq: u64 },
    #[error("sale {next_seq} is missing")]
    Gap { next_seq: u64 },
    #[error(transparent)]
    Confirm(#[from] ConfirmError),
    #[error(transparent)]
    Database(#[from] sqlx::Error),
}

/// Whose journal it is.
#[derive(Debug, Clone)]
pub struct Seller {
    pub terminal_id: Uuid,
    pub actor: Actor,
}

/// Settles entries in their order, each in a transaction of its own, until one is refused: what was settled before it is
/// answered, and a refusal only if nothing was.
pub async fn settle(pool: &PgPool, seller: Seller, entries: Vec<JournalEntry>) -> Result<JournalAnswer, JournalError> {
    let mut settled = Vec::with_capacity(entries.len());
    for entry in entries {
        let (own, of, seq) = (pool.clone(), seller.clone(), entry.seq);
        match db::write(async move { settle_one(&own, &of, &entry).await }).await {
            Ok(outcome) => settled.push(Settled { seq, outcome }),
            Err(refused) if settled.is_empty() => return Err(refused),
            Err(refused) => {
                tracing::warn!(terminal.id = %seller.terminal_id, seq, error = %refused, "a journal is settled in part");
                break;
            }
        }
    }
    let next_seq = super::next_seq(&mut *pool.acquire().await?, seller.terminal_id).await?;
    Ok(JournalAnswer { settled, next_seq })
}

async fn settle_one(pool: &PgPool, seller: &Seller, entry: &JournalEntry) -> Result<Outcome, JournalError> {
    let unreadable = |why: String| JournalError::Unreadable { seq: entry.seq, why };
    let sale: OfflineSale = serde_json::from_str(&entry.body).map_err(|e| unreadable(e.to_string()))?;
    if sale.seq != entry.seq || i64::try_from(entry.seq).is_err() {
        return Err(unreadable(format!("it says that it is {}", sale.seq)));
    }
    let mut texts = sale.seats.iter().map(|seat| &seat.ticket_type).chain([&sale.currency, &sale.sold_at]);
    if texts.any(|text| text.contains('\0')) {
        return Err(unreadable("a text of it holds a NUL".to_owned())); // which the database keeps in none
    }
    let body_hash = Sha256::digest(&entry.body).to_vec();
    let mut tx = db::event_tx(pool, sale.event_id).await?;
    let next_seq = lock_journal(&mut tx, seller.terminal_id).await?;
    if entry.seq > next_seq {
        return Err(JournalError::Gap { next_seq });
    }
    if entry.seq < next_seq {
        return stored(&mut tx, seller.terminal_id, entry.seq, &body_hash).await;
    }
    let seller = &by_whom(&mut tx, seller, sale.staff_id).await?;
    seller.actor.acts(&mut tx).await?;
    // The cash is in a drawer already, whether a shift is open now or not.
    sqlx::query!("select set_config('fullhouse.settles', 'yes', true)").fetch_one(&mut *tx).await?;
    let now = clock::now(&mut tx).await?;
    let outcome = sell(&mut tx, seller, &sale, now).await?;
    write_down(&mut tx, seller, entry, &sale, body_hash, &outcome, now).await?;
    tx.commit().await?;
    Ok(outcome)
}

/// The same terminal, with the person who sold: as the journal says, for nobody need be signed in when it is settled. One
/// whom the house does not know sold nothing in its books: the terminal did.
async fn by_whom(tx: &mut Tx, seller: &Seller, staff_id: Uuid) -> sqlx::Result<Seller> {
    let found = sqlx::query_scalar!(
        r#"select s.name || ' at ' || t.name as "name!" from staff s, terminal t where s.id = $1 and t.id = $2 and t.attended"#,
        staff_id,
        seller.terminal_id
    )
    .fetch_optional(&mut **tx)
    .await?;
    let Some(name) = found else { return Ok(seller.clone()) };
    Ok(Seller { actor: Actor::at_terminal(name, seller.terminal_id, Some(staff_id)), ..seller.clone() })
}

/// What was answered before.
async fn stored(tx: &mut Tx, terminal_id: Uuid, seq: u64, body_hash: &[u8]) -> Result<Outcome, JournalError> {
    let row = sqlx::query!(
        "select body_hash, order_id, refusal, needs_person from journal_entry where terminal_id = $1 and seq = $2",
        terminal_id,
        seq.cast_signed()
    )
    .fetch_optional(&mut **tx)
    .await?
    .filter(|row| row.body_hash == body_hash)
    .ok_or(JournalError::Conflict { seq })?;
    Ok(super::list::outcome(row.order_id, row.refusal.as_deref(), row.needs_person)?)
}

struct Row {
    seat_no: SeatNo,
    ticket_id: Uuid,
    code: String,
    state: String,
    prices: Json<BTreeMap<String, i64>>,
    /// Blocked, as the write-off left it.
    untouched: bool,
}

/// Sells what may be sold, and says what became of it. The event's lock is held, so that nothing changes under it.
async fn sell(tx: &mut Tx, seller: &Seller, sale: &OfflineSale, now: DateTime<Utc>) -> Result<Outcome, JournalError> {
    let lease = sqlx::query!("select terminal_id, event_id, currency from lease where id = $1", sale.lease_id)
        .fetch_optional(&mut **tx)
        .await?
        .filter(|lease| lease.terminal_id == seller.terminal_id && lease.event_id == sale.event_id);
    let Some(lease) = lease else { return Ok(Outcome::NotSold { reason: NotSold::LeaseUnknown }) };
    let mut seats = sale.seats.clone();
    seats.sort_by_key(|s| s.seat_no);
    let rows = rows(tx, sale, &seats).await?;
    if let Some(reason) = refusal(sale, &lease.currency, &seats, &rows) {
        return Ok(Outcome::NotSold { reason });
    }
    let printed: Vec<ticket::Made> = rows
        .iter()
        .filter(|r| r.state == "leased")
        .map(|r| ticket::Made { seat_no: r.seat_no, ticket_id: r.ticket_id, code: r.code.clone() })
        .collect();
    let new_codes = printed.is_empty();
    let sold = LeasedSale {
        event_id: sale.event_id,
        terminal_id: seller.terminal_id,
        lease_id: sale.lease_id,
        seats: &seats,
        printed: (!new_codes).then_some(&printed[..]),
        actor: seller.actor.clone(),
    };
    let order_id = checkout::sell_leased(tx, &sold, now).await?;
    let said = format!("sold without a network at {}, by {}: number {}", sale.sold_at, sale.staff_id, sale.seq);
    log::note(tx, order_id, "note", &said, seller.actor.name(), now).await?;
    // Of an event that was called off meanwhile, it is given back like every other.
    sqlx::query!("update event_cancellation set finished_at = null where event_id = $1", sale.event_id)
        .execute(&mut **tx)
        .await?;
    Ok(Outcome::Sold { order_id, new_codes })
}

/// The lease's seats that were sold, by number.
async fn rows(tx: &mut Tx, sale: &OfflineSale, seats: &[SoldSeat]) -> sqlx::Result<Vec<Row>> {
    let seat_nos: Vec<SeatNo> = seats.iter().map(|s| s.seat_no).collect();
    sqlx::query_as!(
        Row,
        r#"select l.seat_no, l.ticket_id, l.code, l.state, l.prices as "prices: Json<BTreeMap<String, i64>>",
                  (s.status = 3 and s.lease_id is null and s.version = l.written_off_version) is true as "untouched!"
           from lease_seat l join event_seat s on s.event_id = l.event_id and s.seat_no = l.seat_no
           where l.lease_id = $1 and l.seat_no = any($2) order by l.seat_no"#,
        sale.lease_id,
        &seat_nos
    )
    .fetch_all(&mut **tx)
    .await
}

/// Why it is not sold. `seats` and `rows` are in the order of their numbers.
fn refusal(sale: &OfflineSale, currency: &str, seats: &[SoldSeat], rows: &[Row]) -> Option<NotSold> {
    let named: BTreeSet<SeatNo> = seats.iter().map(|s| s.seat_no).collect();
    if named.is_empty() || named.len() != seats.len() || rows.len() != seats.len() {
        return Some(NotSold::SeatUnknown);
    }
    let any = |states: &[&str]| rows.iter().any(|r| states.contains(&r.state.as_str()));
    if any(&["sold", "resold"]) {
        return Some(NotSold::SeatSold);
    }
    if any(&["returned"]) {
        return Some(NotSold::LeaseClosed);
    }
    let priced = |(seat, row): (&SoldSeat, &Row)| row.prices.get(&seat.ticket_type) == Some(&seat.amount_minor);
    let total: i64 = seats.iter().map(|s| s.amount_minor).fold(0, i64::saturating_add);
    if !seats.iter().zip(rows).all(priced) || total != sale.total_minor || currency != sale.currency {
        return Some(NotSold::PriceMismatch);
    }
    (any(&["written_off"]) && !rows.iter().all(|r| r.untouched)).then_some(NotSold::SeatGone)
}

async fn write_down(
    tx: &mut Tx,
    seller: &Seller,
    entry: &JournalEntry,
    sale: &OfflineSale,
    body_hash: Vec<u8>,
    outcome: &Outcome,
    now: DateTime<Utc>,
) -> sqlx::Result<()> {
    let (order_id, refusal, needs_person) = match outcome {
        Outcome::Sold { order_id, new_codes } => (Some(*order_id), None, *new_codes),
        Outcome::NotSold { reason } => (None, Some(reason.name()), true),
    };
    sqlx::query!(
        "insert into journal_entry (terminal_id, seq, body, body_hash, lease_id, event_id, currency, total_minor, order_id,
                                    refusal, needs_person, received_at)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)",
        seller.terminal_id,
        entry.seq.cast_signed(),
        entry.body,
        body_hash,
        sale.lease_id,
        sale.event_id,
        sale.currency,
        sale.total_minor,
        order_id,
        refusal,
        needs_person,
        now
    )
    .execute(&mut **tx)
    .await?;
    let moved = sqlx::query!(
        "update journal set next_seq = next_seq + 1 where terminal_id = $1 and next_seq = $2",
        seller.terminal_id,
        entry.seq.cast_signed()
    )
    .execute(&mut **tx)
    .await?;
    super::expect_rows(moved.rows_affected(), 1)
}
