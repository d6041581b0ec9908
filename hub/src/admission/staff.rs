//! What operators turn about a line, and the log of it.

use chrono::{DateTime, Utc};
use data_encoding::HEXLOWER_PERMISSIVE;
use fullhouse_protocol::line::{InsideList, InsidePerson, LineChange, LinePatch, StaffLine};
use serde_json::{Value, json};
use sqlx::{PgConnection, PgPool};

use super::pass;
use crate::{
    clock, db,
    waiting_room::{
        bounds::{self, Faults, Wanted},
        drawing::{self, DrawError},
        line,
    },
};

/// People that one answer lists.
const INSIDE_MAX: usize = 100;
/// Changes that one answer lists.
const CHANGES_MAX: i64 = 500;
const MESSAGE_CHARS_MAX: usize = 500;
const LANGUAGES: [&str; 4] = ["default", "en", "ja", "ko"];

#[derive(Debug, thiserror::Error)]
pub enum ChangeError {
    #[error("the event has no waiting room")]
    LineUnknown,
    #[error(transparent)]
    Invalid(#[from] Faults),
    #[error("a line has {} draws at most", bounds::DRAWS_MAX)]
    DrawsTooMany,
    #[error("this account has no pass there")]
    PassNone,
    #[error(transparent)]
    Database(#[from] sqlx::Error),
}

impl From<DrawError> for ChangeError {
    fn from(error: DrawError) -> Self {
        match error {
            DrawError::LineUnknown => ChangeError::LineUnknown,
            DrawError::Invalid(what) => ChangeError::Invalid(what),
            DrawError::TooMany => ChangeError::DrawsTooMany,
            DrawError::Database(e) => ChangeError::Database(e),
        }
    }
}

/// A line as operators see it.
pub async fn look(db: &mut PgConnection, event_id: i64) -> sqlx::Result<Option<StaffLine>> {
    let Some(seen) = line::look(&mut *db, event_id).await? else { return Ok(None) };
    let row = sqlx::query!(
        "select rate_minute_min, rate_minute_max, rate_fixed, expected, paused_at, holds_live_max, checkouts_live_max
         from line where event_id = $1",
        event_id
    )
    .fetch_one(db)
    .await?;
    Ok(Some(StaffLine {
        line: seen.line,
        rate_minute_min: row.rate_minute_min,
        rate_minute_max: row.rate_minute_max,
        rate_fixed: row.rate_fixed,
        expected: row.expected,
        paused_at: row.paused_at,
        holds_live_max: row.holds_live_max,
        checkouts_live_max: row.checkouts_live_max,
    }))
}

/// Changes what is named, all of it or nothing, each with its row in the log.
pub async fn change(pool: &PgPool, event_id: i64, patch: LinePatch, actor: String) -> Result<StaffLine, ChangeError> {
    let pool = pool.clone();
    db::write(async move {
        let mut tx = pool.begin().await?;
        if !drawing::lock(&mut tx, event_id).await? {
            return Err(ChangeError::LineUnknown);
        }
        let now = clock::now(&mut tx).await?;
        let mut log = Log { event_id, now, actor: &actor, reason: &patch.reason };
        change_row(&mut tx, &mut log, &patch).await?;
        change_draw(&mut tx, &mut log, &patch).await?;
        if let Some(account_id) = patch.revoke {
            if !pass::end(&mut tx, event_id, account_id, "revoked").await? {
                return Err(ChangeError::PassNone);
            }
            log.write(&mut tx, "revoked", json!(account_id), Value::Null).await?;
        }
        drawing::touch(&mut tx, event_id, now).await?;
        let seen = look(&mut tx, event_id).await?.ok_or(ChangeError::LineUnknown)?;
        tx.commit().await?;
        Ok(seen)
    })
    .await
}

struct Log<'a> {
    event_id: i64,
    now: DateTime<Utc>,
    actor: &'a str,
    reason: &'a str,
}

impl Log<'_> {
    async fn write(&self, db: &mut PgConnection, what: &str, was: Value, is_now: Value) -> sqlx::Result<()> {
        write(db, self.event_id, self.now, self.actor, what, was, is_now, self.reason).await
    }
}

/// A row of the log.
#[expect(clippy::too_many_arguments, reason = "it is the row")]
pub async fn write(
    db: &mut PgConnection,
    event_id: i64,
    now: DateTime<Utc>,
    actor: &str,
    what: &str,
    was: Value,
    is_now: Value,
    reason: &str,
) -> sqlx::Result<()> {
    sqlx::query!(
        "insert into line_change (event_id, at, actor, what, was, is_now, reason) values ($1, $2, $3, $4, $5, $6, $7)",
        event_id,
        now,
        actor,
        what,
        was,
        is_now,
        reason
    )
    .execute(db)
    .await?;
    Ok(())
}

async fn change_row(db: &mut PgConnection, log: &mut Log<'_>, patch: &LinePatch) -> Result<(), ChangeError> {
    let was = sqlx::query!(
        "select rate_minute_min, rate_minute_max, rate_fixed, inside_max, holds_live_max, checkouts_live_max, next_batch_at,
                paused_at, grace_s, message
         from line where event_id = $1",
        log.event_id
    )
    .fetch_one(&mut *db)
    .await?;
    if let Some(Some(message)) = &patch.message {
        let known = message.keys().all(|language| LANGUAGES.contains(&language.as_str()));
        let fits = |text: &String| text.chars().count() <= MESSAGE_CHARS_MAX && bounds::is_plain(text);
        if !known || message.is_empty() || !message.values().all(fits) {
            return Err(ChangeError::Invalid(Faults::one(
                "a message has texts of 500 characters at most, without control characters, in en, ja, ko or default",
            )));
        }
    }
    if patch.next_batch_at.flatten().is_some_and(|at| !bounds::is_plausible(at)) {
        return Err(ChangeError::Invalid(Faults::one("more seats come in a year from 2000 to 9999")));
    }
    let message = match &patch.message {
        Some(message) => message.as_ref().map(|texts| json!(texts)),
        None => was.message.clone(),
    };
    let paused_at = match patch.paused {
        Some(true) => Some(was.paused_at.unwrap_or(log.now)),
        Some(false) => None,
        None => was.paused_at,
    };
    if let (Some(began), None) = (was.paused_at, paused_at) {
        // Whose grace ran when it was paused has all of it again, once: a later pause only stops it, or whoever pauses again
        // and again would keep a call alive for ever. Whose was over, has none.
        sqlx::query!(
            "update line_call set grace_from = coalesce(grace_from + ($3 - $2::timestamptz), $3)
             where event_id = $1 and coalesce(grace_from, at) + make_interval(secs => $4) >= $2",
            log.event_id,
            began,
            log.now,
            f64::from(was.grace_s)
        )
        .execute(&mut *db)
        .await?;
    }
    let min = patch.rate_minute_min.unwrap_or(was.rate_minute_min);
    let max = patch.rate_minute_max.unwrap_or(was.rate_minute_max);
    let fixed = patch.rate_fixed.unwrap_or(was.rate_fixed);
    let inside_max = patch.inside_max.unwrap_or(was.inside_max);
    let holds = patch.holds_live_max.unwrap_or(was.holds_live_max);
    let checkouts = patch.checkouts_live_max.unwrap_or(was.checkouts_live_max);
    let next_batch_at = patch.next_batch_at.unwrap_or(was.next_batch_at);
    let wanted = Wanted {
        rate_minute_min: Some(min),
        rate_minute_max: Some(max),
        rate_fixed: fixed,
        // What was set before there were these bounds may stay.
        inside_max: patch.inside_max,
        holds_live_max: patch.holds_live_max.flatten(),
        checkouts_live_max: patch.checkouts_live_max.flatten(),
        ..Wanted::default()
    };
    if patch.turns_the_pace() {
        bounds::faults(&wanted, None).none()?;
    }
    let written = sqlx::query!(
        "update line set rate_minute_min = $2, rate_minute_max = $3, rate_fixed = $4, inside_max = $5, holds_live_max = $6,
                checkouts_live_max = $7, next_batch_at = $8, paused_at = $9, message = $10,
                rate_minute = least(greatest(rate_minute, $2), $3)
         where event_id = $1",
        log.event_id,
        min,
        max,
        fixed,
        inside_max,
        holds,
        checkouts,
        next_batch_at,
        paused_at,
        message
    )
    .execute(&mut *db)
    .await;
    written.map_err(|error| match db::constraint(&error) {
        Some(_) => ChangeError::Invalid(Faults::one("a rate or a number is not within its bounds")),
        None => error.into(),
    })?;
    let changes = [
        ("rate_minute_min", json!(was.rate_minute_min), json!(min)),
        ("rate_minute_max", json!(was.rate_minute_max), json!(max)),
        ("rate_fixed", json!(was.rate_fixed), json!(fixed)),
        ("inside_max", json!(was.inside_max), json!(inside_max)),
        ("holds_live_max", json!(was.holds_live_max), json!(holds)),
        ("checkouts_live_max", json!(was.checkouts_live_max), json!(checkouts)),
        ("next_batch_at", json!(was.next_batch_at), json!(next_batch_at)),
        ("paused", json!(was.paused_at.is_some()), json!(paused_at.is_some())),
        ("message", json!(was.message), json!(message)),
    ];
    for (what, was, is_now) in changes {
        if was != is_now {
            log.write(db, what, was, is_now).await?;
        }
    }
    Ok(())
}

async fn change_draw(db: &mut PgConnection, log: &mut Log<'_>, patch: &LinePatch) -> Result<(), ChangeError> {
    if let Some(redraw) = &patch.redraw {
        let public = redraw
            .public()
            .map_err(|_| ChangeError::Invalid(Faults::one("a public value has a source, a round and a time")))?;
        let no = drawing::redraw(db, log.event_id, public.as_ref(), log.reason, log.now).await?;
        log.write(db, "redraw", json!(no - 1), json!(no)).await?;
    }
    if let Some(value) = &patch.public_value {
        let bytes = HEXLOWER_PERMISSIVE
            .decode(value.as_bytes())
            .map_err(|_| ChangeError::Invalid(Faults::one("a public value is written in hexadecimal")))?;
        if drawing::take_value(db, log.event_id, &bytes, log.now).await? {
            log.write(db, "public_value", Value::Null, json!(value)).await?;
        }
    }
    if patch.reveal {
        if !drawing::reveal_in(db, log.event_id, log.now).await? {
            return Err(ChangeError::Invalid(Faults::one("the draw is not drawn yet, or its secret is out already")));
        }
        log.write(db, "reveal", Value::Null, Value::Null).await?;
    }
    Ok(())
}

/// Tills and kiosks take seats past the line, by their role: that is logged in the transaction that gives them the seats.
pub async fn passed_by_role(
    db: &mut PgConnection,
    event_id: i64,
    terminals: &[(&str, &str)],
    now: DateTime<Utc>,
) -> sqlx::Result<()> {
    let (actors, roles): (Vec<String>, Vec<&str>) =
        terminals.iter().map(|(name, role)| (format!("terminal {name}"), *role)).unzip();
    sqlx::query!(
        "insert into line_change (event_id, at, actor, what, is_now)
         select $1, $2, u.actor, 'passed_by_role', to_jsonb(u.role) from unnest($3::text[], $4::text[]) as u(actor, role)",
        event_id,
        now,
        &actors,
        &roles as &[&str]
    )
    .execute(db)
    .await?;
    Ok(())
}

/// Who is inside: those whose name or address has `find` in it, by name.
pub async fn inside(pool: &PgPool, event_id: i64, find: &str) -> sqlx::Result<InsideList> {
    let mut people = sqlx::query_as!(
        InsidePerson,
        r#"select p.account_id, a.name, a.email, p.issued_at, p.expires_at, coalesce(h.seats, 0) as "seats_held!"
           from (select db_clock() as now) c
           join pass p on p.event_id = $1 and p.ended_at is null and p.expires_at > c.now
           join account a on a.id = p.account_id
           left join lateral (
             select cardinality(h.seat_nos) as seats from buyer b join hold h on h.buyer_id = b.id
             where b.account_id = p.account_id and h.event_id = $1 and h.state = 'live' and h.held_until > c.now
             limit 1) h on true
           where $2 = '' or position(lower($2) in lower(a.name)) > 0 or position(lower($2) in a.email) > 0
           order by a.name, p.account_id limit $3"#,
        event_id,
        find.trim(),
        INSIDE_MAX as i64 + 1
    )
    .fetch_all(pool)
    .await?;
    let more = people.len() > INSIDE_MAX;
    people.truncate(INSIDE_MAX);
    Ok(InsideList { people, more })
}

/// The log, the newest first; before the row `before`, if it is named.
pub async fn changes(pool: &PgPool, event_id: i64, before: Option<i64>) -> sqlx::Result<Vec<LineChange>> {
    sqlx::query_as!(
        LineChange,
        r#"select id, at, actor, what, was as "was: Value", is_now as "is_now: Value", reason from line_change
           where event_id = $1 and ($2::bigint is null or id < $2) order by id desc limit $3"#,
        event_id,
        before,
        CHANGES_MAX
    )
    .fetch_all(pool)
    .await
}
