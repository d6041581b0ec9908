//! The pace of a line: what the controller makes of what was measured, written down with its reason.

use chrono::{DateTime, Utc};
use serde_json::json;
use sqlx::PgConnection;

use super::{
    controller::{self, Bounds, Ceilings, Mode, State},
    load, staff,
};

/// What the operator allows and what was counted, at this look.
#[derive(Debug, Clone, Copy)]
pub struct Situation {
    pub paused: bool,
    pub rate_fixed: Option<i32>,
    pub rate_minute_min: i32,
    pub rate_minute_max: i32,
    pub inside_max: i32,
    pub inside: i32,
}

/// What people are called by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pace {
    pub rate_minute: i32,
    pub inside_max: i32,
}

/// One step of the controller, under the line's lock. What it remembers is in the line's row, so that any hub goes on
/// where another ended; what it changes is in the log.
pub async fn step(
    db: &mut PgConnection,
    ceilings: Ceilings,
    event_id: i64,
    situation: Situation,
    now: DateTime<Utc>,
) -> sqlx::Result<Pace> {
    let row = sqlx::query!(
        r#"select controller, rate_minute,
                  (select coalesce(sum(through_place - from_place), 0)::bigint from line_call
                   where event_id = $1 and at > $2::timestamptz - interval '1 minute') as "called!"
           from line where event_id = $1"#,
        event_id,
        now
    )
    .fetch_one(&mut *db)
    .await?;
    let at_least_0 = |n: i64| u32::try_from(n.max(0)).unwrap_or(u32::MAX);
    let mut measured = load::measured(&mut *db, now).await?;
    measured.inside = at_least_0(situation.inside.into());
    measured.let_in_minute = at_least_0(row.called);
    let inside_max = at_least_0(situation.inside_max.into());
    let bounds = Bounds {
        rate_min: at_least_0(situation.rate_minute_min.into()),
        rate_max: at_least_0(situation.rate_minute_max.into()),
        inside_min: inside_max / 10,
        inside_max,
        mode: match situation.rate_fixed {
            _ if situation.paused => Mode::Paused,
            Some(rate) => Mode::Fixed(at_least_0(rate.into())),
            None => Mode::Measured,
        },
        ceilings,
    };
    // One that this binary can't read begins anew, at the least.
    let state = row.controller.and_then(|state| serde_json::from_value::<State>(state).ok());
    let state = state.unwrap_or_else(|| State::new(&bounds));
    let decision = controller::step(&measured, &state, &bounds);
    let pace = Pace {
        rate_minute: i32::try_from(decision.state.rate_minute).unwrap_or(i32::MAX),
        inside_max: i32::try_from(decision.state.inside_max).unwrap_or(i32::MAX).min(situation.inside_max),
    };
    let reason = decision.reason.to_string();
    let remembered = serde_json::to_value(&decision.state).map_err(|e| sqlx::Error::Encode(Box::new(e)))?;
    sqlx::query!(
        "update line set controller = $2, rate_minute = least($3, rate_minute_max), rate_reason = $4 where event_id = $1",
        event_id,
        remembered,
        pace.rate_minute,
        reason
    )
    .execute(&mut *db)
    .await?;
    if decision.changed {
        let was = json!({ "rate_minute": state.rate_minute, "inside_max": state.inside_max });
        let is_now = json!({ "rate_minute": pace.rate_minute, "inside_max": pace.inside_max, "why": decision.reason });
        let said: String = reason.chars().take(500).collect();
        staff::write(db, event_id, now, "controller", decision.reason.code(), was, is_now, &said).await?;
    }
    Ok(pace)
}
