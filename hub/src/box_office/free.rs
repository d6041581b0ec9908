//! Seats that are free, for whoever gives many away at once: to a terminal's lease, to a customer, to a partner.
//!
//! Invariants
//! - The caller has the event's lock, and asked for the time after it: what is free here stays so until it commits.

use chrono::{DateTime, Utc};

use crate::{
    db::Tx,
    seat_map::{SeatNo, SeatSet},
};

#[derive(Debug, thiserror::Error)]
pub enum NotFree {
    #[error("the event has no seats {0:?}")]
    SeatUnknown(Vec<SeatNo>),
    #[error("the event has no section {0:?}")]
    SectionUnknown(String),
    /// Held, sold, blocked, retired, or leased.
    #[error("seats {0:?} are not free")]
    Taken(Vec<SeatNo>),
    #[error("{free} seats are free")]
    TooFew { free: usize },
    #[error(transparent)]
    Database(#[from] sqlx::Error),
}

/// The seats that are named, each of them free.
pub async fn named(tx: &mut Tx, event_id: i64, seats: &SeatSet, now: DateTime<Utc>) -> Result<Vec<SeatNo>, NotFree> {
    let rows = sqlx::query!(
        r#"select s.seat_no,
                  (not p.retired and (s.status = 0 or (s.status = 1 and s.held_until <= $3))) as "free!"
           from event_seat s join event e on e.id = s.event_id
           join plan_seat p on p.plan_revision_id = e.plan_revision_id and p.seat_no = s.seat_no
           where s.event_id = $1 and s.seat_no = any($2)"#,
        event_id,
        seats.as_slice(),
        now
    )
    .fetch_all(&mut **tx)
    .await?;
    let unknown: Vec<SeatNo> =
        seats.as_slice().iter().copied().filter(|s| !rows.iter().any(|r| r.seat_no == *s)).collect();
    if !unknown.is_empty() {
        return Err(NotFree::SeatUnknown(unknown));
    }
    let mut lost: Vec<SeatNo> = rows.iter().filter(|r| !r.free).map(|r| r.seat_no).collect();
    lost.sort_unstable();
    if lost.is_empty() { Ok(seats.as_slice().to_vec()) } else { Err(NotFree::Taken(lost)) }
}

/// As many as are free, `count` at most, of a section if one is named: the lowest numbers first. Wheelchair places and the
/// seats beside them (flags 1 and 2) are left to those who need them.
pub async fn up_to(
    tx: &mut Tx,
    event_id: i64,
    count: usize,
    section: Option<&str>,
    now: DateTime<Utc>,
) -> Result<Vec<SeatNo>, NotFree> {
    if let Some(section) = section {
        let known = sqlx::query_scalar!(
            r#"select exists(select from plan_seat p join event e on e.plan_revision_id = p.plan_revision_id
                             where e.id = $1 and p.section = $2 and not p.retired) as "known!""#,
            event_id,
            section
        )
        .fetch_one(&mut **tx)
        .await?;
        if !known {
            return Err(NotFree::SectionUnknown(section.to_owned()));
        }
    }
    let found = sqlx::query_scalar!(
        "select s.seat_no from event_seat s join event e on e.id = s.event_id
         join plan_seat p on p.plan_revision_id = e.plan_revision_id and p.seat_no = s.seat_no
         left join seat_trait t on t.event_id = s.event_id and t.seat_no = s.seat_no
         where s.event_id = $1 and ($2::text is null or p.section = $2) and not p.retired
           and seat_flags(p.flags, t.flags) & 3 = 0
           and (s.status = 0 or (s.status = 1 and s.held_until <= $3))
         order by s.seat_no limit $4",
        event_id,
        section,
        now,
        count as i64
    )
    .fetch_all(&mut **tx)
    .await?;
    Ok(found)
}

/// Exactly so many.
pub async fn so_many(
    tx: &mut Tx,
    event_id: i64,
    count: usize,
    section: Option<&str>,
    now: DateTime<Utc>,
) -> Result<Vec<SeatNo>, NotFree> {
    let found = up_to(tx, event_id, count, section, now).await?;
    if found.len() < count { Err(NotFree::TooFew { free: found.len() }) } else { Ok(found) }
}
