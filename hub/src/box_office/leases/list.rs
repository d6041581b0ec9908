//! How leases stand, and which journalled sales need a person.

use chrono::TimeDelta;
use fullhouse_protocol::lease::{
    JournalListed, LeaseListed, Leases, NotSold, OfflineSale, Outcome, OwnLease, OwnLeases,
};
use sqlx::PgPool;
use uuid::Uuid;

use super::{next_seq, state_of};
use crate::{auth::Actor, clock, db};

/// Ended leases, and sales that need a person, that are shown.
const SHOWN_MAX: i64 = 200;

/// Those of a terminal that are open.
pub async fn own(pool: &PgPool, terminal_id: Uuid) -> sqlx::Result<OwnLeases> {
    let leases = sqlx::query_as!(
        OwnLease,
        "select id as lease_id, key from lease where terminal_id = $1 and state = 'open' order by id",
        terminal_id
    )
    .fetch_all(pool)
    .await?;
    Ok(OwnLeases { leases, next_seq: next_seq(&mut *pool.acquire().await?, terminal_id).await? })
}

/// All that are open, the latest that ended, and what of the journals needs a person.
pub async fn listed(pool: &PgPool) -> sqlx::Result<Leases> {
    let mut db = pool.acquire().await?;
    let now = clock::now(&mut db).await?;
    let leases = sqlx::query!(
        r#"select l.id, l.terminal_id, t.name as terminal, l.event_id, e.name as event, l.state, l.granted_by, l.granted_at,
                  l.sells_for_s, l.ended_at, l.ended_by, l.reason, s.seats as "seats!", s.sold as "sold!"
           from ((select * from lease where state = 'open')
                 union all (select * from lease where state <> 'open' order by ended_at desc limit $1)) as l
           join terminal t on t.id = l.terminal_id join event e on e.id = l.event_id
           cross join lateral (select count(*) as seats, count(*) filter (where state in ('sold', 'resold')) as sold
                               from lease_seat where lease_id = l.id) as s
           order by l.state = 'open' desc, coalesce(l.ended_at, l.granted_at) desc, l.id"#,
        SHOWN_MAX
    )
    .fetch_all(&mut *db)
    .await?;
    let leases = leases.into_iter().map(|l| LeaseListed {
        id: l.id.unwrap_or_default(),
        terminal_id: l.terminal_id.unwrap_or_default(),
        terminal: l.terminal,
        event_id: l.event_id.unwrap_or_default(),
        event: l.event,
        state: state_of(l.state.as_deref().unwrap_or_default()),
        seats: l.seats,
        sold: l.sold,
        granted_by: l.granted_by.unwrap_or_default(),
        granted_at: l.granted_at.unwrap_or_default(),
        sells_until: l.granted_at.unwrap_or_default() + TimeDelta::seconds(l.sells_for_s.unwrap_or_default().into()),
        ended_at: l.ended_at,
        ended_by: l.ended_by,
        reason: l.reason,
    });
    let leases = leases.collect();
    let rows = sqlx::query!(
        "select j.terminal_id, t.name as terminal, j.seq, j.body, j.order_id, j.refusal, j.needs_person, j.received_at
         from journal_entry j join terminal t on t.id = j.terminal_id
         where j.needs_person and j.seen_at is null order by j.received_at, j.terminal_id, j.seq limit $1",
        SHOWN_MAX
    )
    .fetch_all(&mut *db)
    .await?;
    let mut to_see_to = Vec::with_capacity(rows.len());
    for row in rows {
        let sale: OfflineSale = serde_json::from_str(&row.body).map_err(|e| sqlx::Error::Decode(Box::new(e)))?;
        to_see_to.push(JournalListed {
            terminal_id: row.terminal_id,
            terminal: row.terminal,
            seq: row.seq.cast_unsigned(),
            event_id: sale.event_id,
            lease_id: sale.lease_id,
            outcome: outcome(row.order_id, row.refusal.as_deref(), row.needs_person)?,
            seats: sale.seats.iter().map(|s| s.seat_no).collect(),
            currency: sale.currency,
            total_minor: sale.total_minor,
            staff_id: sale.staff_id,
            sold_at: sale.sold_at,
            received_at: row.received_at,
        });
    }
    Ok(Leases { leases, to_see_to, now })
}

/// What became of a journalled sale, from its row.
pub(super) fn outcome(order_id: Option<Uuid>, refusal: Option<&str>, needs_person: bool) -> sqlx::Result<Outcome> {
    match (order_id, refusal.and_then(NotSold::read)) {
        (Some(order_id), None) => Ok(Outcome::Sold { order_id, new_codes: needs_person }),
        (None, Some(reason)) => Ok(Outcome::NotSold { reason }),
        _ => Err(sqlx::Error::Protocol(format!("a journalled sale became {order_id:?} and {refusal:?}"))),
    }
}

#[derive(Debug, thiserror::Error)]
pub enum SeenError {
    #[error("there is no such sale on the list")]
    Unknown,
    #[error(transparent)]
    Database(#[from] sqlx::Error),
}

/// Somebody has seen to a journalled sale: the money went back, the customer has another ticket. Told again, the first
/// word stands.
pub async fn see_to(pool: PgPool, terminal_id: Uuid, seq: u64, note: String, actor: Actor) -> Result<(), SeenError> {
    db::write(async move {
        let known = sqlx::query!(
            "update journal_entry set seen_at = coalesce(seen_at, db_clock()), seen_by = coalesce(seen_by, $3),
                    seen_note = coalesce(seen_note, $4)
             where terminal_id = $1 and seq = $2 and needs_person",
            terminal_id,
            i64::try_from(seq).map_err(|_| SeenError::Unknown)?,
            actor.name(),
            note
        )
        .execute(&pool)
        .await?;
        if known.rows_affected() == 1 { Ok(()) } else { Err(SeenError::Unknown) }
    })
    .await
}
