//! What everybody who waits is shown of a line: one JSON a change, the same for all.
//!
//! Invariants
//! - Whoever changes a line raises its revision in the same transaction, so that a revision is one text.
//! - Counts over time (called in the last minute) are as of the moment of reading; the tick raises the
//!   revision while they move.

use std::collections::{BTreeMap, HashMap};

use bytes::Bytes;
use chrono::{DateTime, SubsecRound, Utc};
use data_encoding::HEXLOWER;
use fullhouse_protocol::line::{DrawFacts, DrawKind, Line, LineState};
use sqlx::{PgConnection, PgPool};

/// A line as it is to be published.
#[derive(Debug, Clone)]
pub struct Changed {
    pub event_id: i64,
    /// The frame's number.
    pub revision: i64,
    pub changed_at: DateTime<Utc>,
    /// JSON of [`Line`].
    pub json: Bytes,
}

/// The lines that have changed since the revisions that are known, by event.
pub async fn changed(db: &mut PgConnection, known: &HashMap<i64, i64>) -> sqlx::Result<Vec<Changed>> {
    let (events, revisions): (Vec<i64>, Vec<i64>) = known.iter().map(|(event, revision)| (*event, *revision)).unzip();
    let due = sqlx::query_scalar!(
        "select l.event_id from line l left join unnest($1::bigint[], $2::bigint[]) as k(event_id, revision) using (event_id)
         where k.revision is null or l.revision > k.revision",
        &events,
        &revisions
    )
    .fetch_all(&mut *db)
    .await?;
    let mut changed = Vec::with_capacity(due.len());
    for event_id in due {
        if let Some(seen) = look(db, event_id).await? {
            let json = serde_json::to_vec(&seen.line).map_err(|e| sqlx::Error::Encode(Box::new(e)))?;
            changed.push(Changed { event_id, revision: seen.revision, changed_at: seen.changed_at, json: json.into() });
        }
    }
    Ok(changed)
}

/// A line and the revision that it is.
#[derive(Debug, Clone)]
pub struct Seen {
    pub line: Line,
    pub revision: i64,
    pub changed_at: DateTime<Utc>,
}

/// The line of an event; `None` where there is none.
pub async fn look(db: &mut PgConnection, event_id: i64) -> sqlx::Result<Option<Seen>> {
    let Some(row) = sqlx::query!(
        r#"select l.revision, l.changed_at, l.joins_at, l.closes_at, e.on_sale_at, e.off_sale_at, e.sale_state, l.next_number,
                  l.called_through, l.rate_minute, l.rate_fixed, l.rate_reason, l.inside, l.inside_max, l.seats_left, l.counted_at,
                  l.sold_out_at, l.next_batch_at, l.paused_at, l.message, l.show_s, l.grace_s, l.pass_s, l.pass_max_s,
                  c.now as "now!",
                  coalesce(m.one, 0) as "last_minute!", coalesce(m.five, 0) as "last_5_minutes!",
                  d.draw_no, d.commitment, d.public_source, d.public_round, d.value_due_at, d.closed_at, d.entry_count, d.root,
                  d.rooted_at,                  d.public_value, d.drawn_at, d.revealed_at, d.secret, d.abandoned_at, d.abandoned_why
           from line l join event e on e.id = l.event_id join draw d on d.event_id = l.event_id and d.draw_no = l.draw_no
           cross join (select db_clock() as now) c
           left join lateral (
             select sum(through_place - from_place) filter (where at > c.now - interval '1 minute')::bigint as one,
                    sum(through_place - from_place)::bigint as five
             from line_call where event_id = l.event_id and at > c.now - interval '5 minutes') m on true
           where l.event_id = $1"#,
        event_id
    )
    .fetch_optional(db)
    .await?
    else {
        return Ok(None);
    };
    let times = Times {
        joins_at: row.joins_at,
        closes_at: row.closes_at,
        opens_at: row.on_sale_at,
        off_sale_at: row.off_sale_at,
        called_off: row.sale_state == "cancelled",
        paused: row.paused_at.is_some() || row.sale_state == "paused",
        sold_out: row.sold_out_at.is_some(),
        drawn: row.drawn_at.is_some(),
    };
    let draw = facts(DrawRow {
        draw_no: row.draw_no,
        commitment: row.commitment,
        secret: row.secret,
        public_source: row.public_source,
        public_round: row.public_round,
        value_due_at: row.value_due_at,
        public_value: row.public_value,
        closed_at: row.closed_at,
        entry_count: row.entry_count,
        root: row.root,
        rooted_at: row.rooted_at,
        drawn_at: row.drawn_at,
        revealed_at: row.revealed_at,
        abandoned_at: row.abandoned_at,
        abandoned_why: row.abandoned_why,
    });
    let message = row.message.and_then(|m| serde_json::from_value::<BTreeMap<String, String>>(m).ok());
    let line = Line {
        event_id,
        revision: row.revision,
        state: state(&times, row.now),
        joins_at: row.joins_at,
        closes_at: row.closes_at,
        opens_at: row.on_sale_at,
        joined: row.next_number,
        drawn_count: row.entry_count,
        called_through: row.called_through,
        called_last_minute: row.last_minute,
        called_last_5_minutes: row.last_5_minutes,
        rate_minute: row.rate_fixed.unwrap_or(row.rate_minute),
        rate_reason: row.rate_reason,
        inside: row.inside,
        inside_max: row.inside_max,
        seats_left: row.seats_left,
        sold_out_at: row.sold_out_at,
        next_batch_at: row.next_batch_at,
        message,
        draw,
        show_s: row.show_s,
        grace_s: row.grace_s,
        pass_s: row.pass_s,
        pass_max_s: row.pass_max_s,
        now: row.now.trunc_subsecs(3),
        database_late: false,
    };
    Ok(Some(Seen { line, revision: row.revision, changed_at: row.changed_at }))
}

/// What a line's state follows from.
#[derive(Debug, Clone, Copy)]
pub struct Times {
    pub joins_at: DateTime<Utc>,
    pub closes_at: DateTime<Utc>,
    pub opens_at: DateTime<Utc>,
    pub off_sale_at: DateTime<Utc>,
    pub called_off: bool,
    pub paused: bool,
    pub sold_out: bool,
    pub drawn: bool,
}

/// A line whose draw waits for its public value stays closed, whatever the clock says.
pub fn state(times: &Times, now: DateTime<Utc>) -> LineState {
    if times.called_off || now >= times.off_sale_at {
        LineState::Over
    } else if now < times.joins_at {
        LineState::Soon
    } else if now < times.closes_at {
        LineState::Joining
    } else if !times.drawn || now < times.opens_at {
        LineState::Closed
    } else if times.paused {
        LineState::Paused
    } else if times.sold_out {
        LineState::SoldOut
    } else {
        LineState::Open
    }
}

/// A row of `draw`, the secret included.
pub struct DrawRow {
    pub draw_no: i32,
    pub commitment: Vec<u8>,
    pub secret: Vec<u8>,
    pub public_source: Option<String>,
    pub public_round: Option<String>,
    pub value_due_at: Option<DateTime<Utc>>,
    pub public_value: Option<Vec<u8>>,
    pub closed_at: Option<DateTime<Utc>>,
    pub entry_count: Option<i64>,
    pub root: Option<Vec<u8>>,
    pub rooted_at: Option<DateTime<Utc>>,
    pub drawn_at: Option<DateTime<Utc>>,
    pub revealed_at: Option<DateTime<Utc>>,
    pub abandoned_at: Option<DateTime<Utc>>,
    pub abandoned_why: Option<String>,
}

/// What may be told of a draw: of its secret nothing until it is revealed.
pub fn facts(row: DrawRow) -> DrawFacts {
    DrawFacts {
        no: row.draw_no,
        kind: if row.public_source.is_some() { DrawKind::Verifiable } else { DrawKind::Committed },
        commitment: HEXLOWER.encode(&row.commitment),
        source: row.public_source,
        round: row.public_round,
        value_due_at: row.value_due_at,
        closed_at: row.closed_at,
        entry_count: row.entry_count,
        root: row.root.map(|r| HEXLOWER.encode(&r)),
        rooted_at: row.rooted_at,
        public_value: row.public_value.map(|v| HEXLOWER.encode(&v)),
        drawn_at: row.drawn_at,
        secret: row.revealed_at.map(|_| HEXLOWER.encode(&row.secret)),
        abandoned_at: row.abandoned_at,
        abandoned_why: row.abandoned_why,
    }
}

/// Every draw of a line, the first first.
pub async fn draws(pool: &PgPool, event_id: i64) -> sqlx::Result<Vec<DrawFacts>> {
    let rows = sqlx::query_as!(
        DrawRow,
        "select draw_no, commitment, secret, public_source, public_round, value_due_at, public_value, closed_at, entry_count,
                root, rooted_at, drawn_at, revealed_at, abandoned_at, abandoned_why
         from draw where event_id = $1 order by draw_no",
        event_id
    )
    .fetch_all(pool)
    .await?;
    Ok(rows.into_iter().map(facts).collect())
}

#[cfg(test)]
mod tests {
    use chrono::TimeDelta;

    use super::*;

    fn at(minute: i64) -> DateTime<Utc> {
        DateTime::UNIX_EPOCH + TimeDelta::minutes(minute)
    }

    #[test]
    fn a_line_that_is_not_drawn_is_not_called() {
        let mut times = Times {
            joins_at: at(10),
            closes_at: at(20),
            opens_at: at(30),
            off_sale_at: at(90),
            called_off: false,
            paused: false,
            sold_out: false,
            drawn: false,
        };
        assert_eq!(state(&times, at(0)), LineState::Soon);
        assert_eq!(state(&times, at(10)), LineState::Joining);
        assert_eq!(state(&times, at(20)), LineState::Closed);
        assert_eq!(state(&times, at(30)), LineState::Closed);
        times.drawn = true;
        assert_eq!(state(&times, at(29)), LineState::Closed);
        assert_eq!(state(&times, at(30)), LineState::Open);
        times.sold_out = true;
        assert_eq!(state(&times, at(30)), LineState::SoldOut);
        times.paused = true;
        assert_eq!(state(&times, at(30)), LineState::Paused);
        times.called_off = true;
        assert_eq!(state(&times, at(0)), LineState::Over);
    }

    #[test]
    fn a_secret_is_told_once_it_is_revealed() {
        let row = |revealed_at| DrawRow {
            draw_no: 1,
            commitment: vec![1; 32],
            secret: vec![2; 32],
            public_source: None,
            public_round: None,
            value_due_at: None,
            public_value: None,
            closed_at: None,
            entry_count: None,
            root: None,
            rooted_at: None,
            drawn_at: None,
            revealed_at,
            abandoned_at: None,
            abandoned_why: None,
        };
        assert_eq!(facts(row(None)).secret, None);
        assert!(!serde_json::to_string(&facts(row(None))).unwrap().contains("0202"));
        assert_eq!(facts(row(Some(at(0)))).secret, Some("02".repeat(32)));
    }
}
