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
    // A ticket that died before deaths had a time is always told.
    let dead = sqlx::query_scalar!(
        "select id from ticket where event_id = $1 and state = 'void'
           and ($2::timestamptz is null or voided_at is null or voided_at >= $2) order by voided_at, id",
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
