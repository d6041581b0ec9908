//! Once a second a line is looked at, by whichever hub comes first: draws go on, passes that ran out are ended,
//! people are counted, and the next are called.
//!
//! Invariants
//! - One hub at a time looks at a line (an advisory lock of the transaction): dying in the middle changes nothing,
//!   and the next tick, here or there, goes on from the rows.
//! - No more are called than the rate allows, nor than there is room inside for, with those counted as inside
//!   who were called within `show_s` and are not here yet. Who does not come is not counted longer than that.
//! - Nobody is called while the line is paused, its draw not done, its seats gone, or payments stopped.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use fullhouse_protocol::line::LineState;
use sqlx::{PgConnection, PgPool};
use tokio_util::sync::CancellationToken;

use super::{
    controller::Ceilings,
    pace::{self, Pace, Situation},
};
use crate::{
    clock, config,
    waiting_room::{
        WaitingRoom, drawing,
        line::{Times, state},
    },
};

/// The advisory lock's first key; the second is the event. (Two numbers: never an event's own lock.)
const LOCK: i32 = 0x6c69_6e65;
/// After a long silence nobody is called for all of it at once.
const BUDGET_S_MAX: f64 = 5.0;

/// Looks at every line until `stop`.
pub async fn run(config: config::Admission, pool: PgPool, room: WaitingRoom, stop: CancellationToken) {
    let mut tick = tokio::time::interval(Duration::from_millis(config.tick_ms));
    tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    while stop.run_until_cancelled(tick.tick()).await.is_some() {
        let lines = match lines(&pool).await {
            Ok(lines) => lines,
            Err(error) => {
                tracing::warn!(%error, "lines could not be looked at; the next round will");
                continue;
            }
        };
        for event_id in lines {
            if let Err(error) = look(&config, &pool, &room, event_id).await {
                tracing::warn!(event.id = event_id, %error, "a line could not be looked at; the next round will");
            }
        }
    }
}

/// Lines that are not over, or were not shown as such yet. One that was over is not any more if its sale is to end
/// later, or if a clock that was ahead is set back.
async fn lines(pool: &PgPool) -> sqlx::Result<Vec<i64>> {
    sqlx::query_scalar!(
        "select l.event_id from line l join event e on e.id = l.event_id
         where l.shown_state <> 'over' or (e.off_sale_at > db_clock() and e.sale_state <> 'cancelled')
         order by l.event_id"
    )
    .fetch_all(pool)
    .await
}

/// One look at one line. Returns how many were called.
pub async fn look(config: &config::Admission, pool: &PgPool, room: &WaitingRoom, event_id: i64) -> sqlx::Result<i64> {
    drawing::advance(pool, room.places(), event_id).await?;
    let mut tx = pool.begin().await?;
    let mine = sqlx::query_scalar!(r#"select pg_try_advisory_xact_lock($1, $2) as "mine!""#, LOCK, event_id as i32)
        .fetch_one(&mut *tx)
        .await?;
    if !mine || !drawing::lock(&mut tx, event_id).await? {
        return Ok(0);
    }
    let now = clock::now(&mut tx).await?;
    let called = step(config, &mut tx, event_id, now).await?;
    tx.commit().await?;
    Ok(called)
}

/// What is known of a line when it is looked at.
struct Row {
    times: Times,
    joined: i64,
    called_through: i64,
    rate_fixed: Option<i32>,
    rate_minute_min: i32,
    rate_minute_max: i32,
    inside_max: i32,
    show_s: i32,
    budget: f64,
    budget_at: Option<DateTime<Utc>>,
    counted_at: Option<DateTime<Utc>>,
    changed_at: DateTime<Utc>,
    gate_closed: bool,
    /// As they were shown last.
    inside: i32,
    expected: i32,
    seats_left: i32,
    sold_out_at: Option<DateTime<Utc>>,
    shown_state: String,
}

async fn read(db: &mut PgConnection, event_id: i64) -> sqlx::Result<Row> {
    let row = sqlx::query!(
        r#"select l.joins_at, l.closes_at, e.on_sale_at, e.off_sale_at, e.sale_state, l.paused_at, l.next_number,
                  l.called_through, l.rate_fixed, l.rate_minute_min, l.rate_minute_max, l.inside_max, l.show_s, l.budget,
                  l.budget_at, l.counted_at, l.changed_at, l.inside, l.expected, l.seats_left, l.sold_out_at, l.shown_state,
                  d.drawn_at,
                  exists (select from checkout_gate where reopened_at is null) as "gate_closed!"
           from line l join event e on e.id = l.event_id join draw d on d.event_id = l.event_id and d.draw_no = l.draw_no
           where l.event_id = $1"#,
        event_id
    )
    .fetch_one(db)
    .await?;
    Ok(Row {
        times: Times {
            joins_at: row.joins_at,
            closes_at: row.closes_at,
            opens_at: row.on_sale_at,
            off_sale_at: row.off_sale_at,
            called_off: row.sale_state == "cancelled",
            paused: row.paused_at.is_some() || row.sale_state == "paused",
            sold_out: row.sold_out_at.is_some(),
            drawn: row.drawn_at.is_some(),
        },
        joined: row.next_number,
        called_through: row.called_through,
        rate_fixed: row.rate_fixed,
        rate_minute_min: row.rate_minute_min,
        rate_minute_max: row.rate_minute_max,
        inside_max: row.inside_max,
        show_s: row.show_s,
        budget: row.budget,
        budget_at: row.budget_at,
        counted_at: row.counted_at,
        changed_at: row.changed_at,
        gate_closed: row.gate_closed,
        inside: row.inside,
        expected: row.expected,
        seats_left: row.seats_left,
        sold_out_at: row.sold_out_at,
        shown_state: row.shown_state,
    })
}

async fn step(
    config: &config::Admission,
    db: &mut PgConnection,
    event_id: i64,
    now: DateTime<Utc>,
) -> sqlx::Result<i64> {
    let mut row = read(db, event_id).await?;
    end_passes(db, event_id, now).await?;
    let (inside, expected) = here(db, event_id, row.show_s, now).await?;
    let due = row.counted_at.is_none_or(|at| now - at >= TimeDelta::seconds(config.count_seats_s) || at > now);
    let mut seats_left = row.seats_left;
    let mut counted_at = row.counted_at;
    let opened = now >= row.times.opens_at;
    if due && (opened || row.counted_at.is_none()) {
        let (left, held) = count_seats(db, event_id, now).await?;
        (seats_left, counted_at) = (left, Some(now));
        row.times.sold_out = left == 0 && held == 0;
    }
    let sold_out_at = row.times.sold_out.then(|| row.sold_out_at.unwrap_or(now));
    let state = state(&row.times, now);
    // A line that nobody is called from yet has no pace: it begins at the least when it opens.
    let pace = if opened && row.times.drawn && state != LineState::Over {
        let situation = Situation {
            paused: row.times.paused,
            rate_fixed: row.rate_fixed,
            rate_minute_min: row.rate_minute_min,
            rate_minute_max: row.rate_minute_max,
            inside_max: row.inside_max,
            inside,
        };
        pace::step(db, Ceilings::from(config), event_id, situation, now).await?
    } else {
        Pace { rate_minute: 0, inside_max: row.inside_max }
    };
    let open = state == LineState::Open && !row.gate_closed && seats_left > 0;
    let (budget, called) = if open {
        let budget = budget(row.budget, row.budget_at, pace.rate_minute, now);
        let room = i64::from(pace.inside_max - inside - expected).max(0);
        let called = (budget as i64).min(room).min(row.joined - row.called_through).max(0);
        (budget - called as f64, called)
    } else {
        (0.0, 0)
    };
    if called > 0 {
        sqlx::query!(
            "insert into line_call (event_id, from_place, through_place, at) values ($1, $2, $3, $4)",
            event_id,
            row.called_through,
            row.called_through + called,
            now
        )
        .execute(&mut *db)
        .await?;
    }
    let expected = expected + called as i32;
    let moved = called > 0
        || (inside, expected, seats_left) != (row.inside, row.expected, row.seats_left)
        || state.name() != row.shown_state
        || sold_out_at != row.sold_out_at;
    let silent = now - row.changed_at >= TimeDelta::seconds(config.heartbeat_s) || row.changed_at > now;
    let shown = i64::from(moved || silent);
    sqlx::query!(
        "update line set called_through = called_through + $2, called_at = case when $2 > 0 then $3 else called_at end,
                budget = $4, budget_at = $3, inside = $5, expected = $6, seats_left = $7, counted_at = $8, sold_out_at = $9,
                shown_state = $10, revision = revision + $11, changed_at = case when $11 > 0 then $3 else changed_at end
         where event_id = $1",
        event_id,
        called,
        now,
        budget,
        inside,
        expected,
        seats_left,
        counted_at,
        sold_out_at,
        state.name(),
        shown
    )
    .execute(db)
    .await?;
    Ok(called)
}

/// People that the rate allows by now: a fraction is kept for the next look, a long silence is not made up for.
fn budget(kept: f64, at: Option<DateTime<Utc>>, rate_minute: i32, now: DateTime<Utc>) -> f64 {
    let a_second = f64::from(rate_minute) / 60.0;
    let seconds = at.map_or(1.0, |at| (now - at).num_milliseconds() as f64 / 1000.0).clamp(0.0, BUDGET_S_MAX);
    // What could not be used (the inside was full) is not saved up either, but for one person at a slow rate.
    (kept + a_second * seconds).min((a_second * BUDGET_S_MAX).max(1.0))
}

/// Ends passes that ran out, and the entries of those whose grace is over too: they have been inside.
async fn end_passes(db: &mut PgConnection, event_id: i64, now: DateTime<Utc>) -> sqlx::Result<()> {
    sqlx::query!(
        "update pass set ended_at = $2, ended_why = 'expired' where event_id = $1 and ended_at is null and expires_at <= $2",
        event_id,
        now
    )
    .execute(db)
    .await?;
    Ok(())
}

/// Who is inside: live passes, and live holds whose pass is over (whoever holds may pay). And who is expected: called
/// within `show_s`, and without a pass so far. Both in one statement: whoever comes in between two would be in neither
/// of them, and one too many would be called.
async fn here(db: &mut PgConnection, event_id: i64, show_s: i32, now: DateTime<Utc>) -> sqlx::Result<(i32, i32)> {
    let show = TimeDelta::seconds(show_s.into());
    let row = sqlx::query!(
        r#"select (select count(*) from pass where event_id = $1 and ended_at is null and expires_at > $2)
                + (select count(*) from hold h join buyer b on b.id = h.buyer_id
                   where h.event_id = $1 and h.state = 'live' and h.held_until > $2 and b.account_id is not null
                     and not exists (select from pass p where p.event_id = h.event_id and p.account_id = b.account_id
                                     and p.ended_at is null and p.expires_at > $2)) as "inside!",
                  (select coalesce(sum(k.through_place - k.from_place
                                       - (select count(distinct p.place) from pass p
                                          where p.event_id = $1 and p.place >= k.from_place and p.place < k.through_place)), 0)
                   from line_call k where k.event_id = $1 and k.at > $3 and k.at < $4)::bigint as "expected!""#,
        event_id,
        now,
        now - show,
        now + show // later ones were called before a clock was set back: they are not waited for until it has caught up
    )
    .fetch_one(db)
    .await?;
    let number = |n: i64| i32::try_from(n.max(0)).unwrap_or(i32::MAX);
    Ok((number(row.inside), number(row.expected)))
}

/// Seats that anybody could take, and seats that are held.
async fn count_seats(db: &mut PgConnection, event_id: i64, now: DateTime<Utc>) -> sqlx::Result<(i32, i32)> {
    let row = sqlx::query!(
        r#"select count(*) filter (where status = 0 or held_until <= $2)::int as "left!",
                  count(*) filter (where status = 1 and held_until > $2)::int as "held!"
           from event_seat where event_id = $1 and status in (0, 1)"#,
        event_id,
        now
    )
    .fetch_one(db)
    .await?;
    Ok((row.left, row.held))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_is_kept_to_whatever_the_interval_and_a_silence_is_not_made_up_for() {
        let at = |ms| DateTime::UNIX_EPOCH + TimeDelta::milliseconds(ms);
        let (mut kept, mut called) = (0.0, 0);
        for tick in 1..=300 {
            kept = budget(kept, Some(at((tick - 1) * 400)), 90, at(tick * 400));
            called += kept as i64;
            kept -= (kept as i64) as f64;
        }
        assert_eq!(called, 180, "two minutes at 90");
        assert!(budget(0.0, Some(at(0)), 600, at(3_600_000)) <= 50.0);
        assert!(budget(0.0, Some(at(5_000)), 600, at(0)) < 1e-9, "a clock that was set back calls nobody");
        let slow = budget(0.9, Some(at(0)), 1, at(6_000));
        assert!((0.98..1.0).contains(&slow) || slow <= 1.0, "{slow}");
    }
}
