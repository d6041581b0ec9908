//! What a door has to know beside the keys: codes that are genuine and must not be let in.

use chrono::{DateTime, TimeDelta, Utc};
use fullhouse_protocol::tickets::DeadTickets;
use sqlx::PgConnection;

use crate::clock;

/// A ticket's death is stamped before its transaction commits. None of ours lives longer than the
/// statement and idle timeouts together, so whoever asks again from this far back misses nothing.
const OVERLAP: TimeDelta = TimeDelta::minutes(2);

/// The dead of an event since a time, and those not paid yet. None: there is no such event.
pub async fn dead(
    db: &mut PgConnection,
    event_id: i64,
    since: Option<DateTime<Utc>>,
) -> sqlx::Result<Option<DeadTickets>> {
    let now = clock::now(db).await?;
    let known = sqlx::query_scalar!(r#"select exists(select from event where id = $1) as "known!""#, event_id)
        .fetch_one(&mut *db)
        .await?;
    if !known {
        return Ok(None);
    }
    // A ticket that died before deaths had a time is always told. What was leased to a terminal is on paper there, or
    // may be, without being a ticket of ours.
    let dead = sqlx::query_scalar!(
        r#"select d.id as "id!" from (
             select id, voided_at as died_at from ticket where event_id = $1 and state = 'void'
             union all
             select ticket_id, dead_at from lease_seat where event_id = $1 and dead_at is not null) as d
           where $2::timestamptz is null or d.died_at is null or d.died_at >= $2 order by d.died_at, d.id"#,
        event_id,
        since
    )
    .fetch_all(&mut *db)
    .await?;
    let pending =
        sqlx::query_scalar!("select id from ticket where event_id = $1 and state = 'pending' order by id", event_id)
            .fetch_all(db)
            .await?;
    Ok(Some(DeadTickets { event_id, dead, pending, since: now - OVERLAP }))
}
