//! Terminals: enrolled with a code; how they are, said by themselves and shown to operators, who rename, lock and
//! revoke them and say what they are for.

use std::ops::RangeInclusive;

use axum::{Json, extract::State, http::StatusCode};
use fullhouse_protocol::terminal::{
    EnrolRequest, Enrolled, EnrolmentAnswer, EnrolmentRequest, TerminalChange, TerminalHealth, TerminalProfile,
    TerminalSelf, Terminals,
};
use sqlx::PgPool;
use uuid::Uuid;

use super::{
    extract::{Address, Body, Operator, PathId, Terminal},
    problem::{Code, Problem},
    staff::{operator_name, said},
};
use crate::{
    auth::{self, Auth, CodeError, EnrolRefusal, is_readable},
    box_office::terminals::{self, ChangeError},
    clock,
    words::Language,
};

const VERSION_MAX: usize = 64;
const DETAIL_MAX: usize = 300;
const NAME_MAX: usize = 60;
const EVENTS_MAX: usize = 100;
const KEY_LENGTHS: RangeInclusive<usize> = 16..=255;
const IDLE_S: RangeInclusive<u32> = 20..=600;
const LOCK_AFTER_S: RangeInclusive<u32> = 30..=3600;

/// Makes a code that enrols one terminal, for somebody to type at it within 15 minutes. Another one for the same name
/// takes its place.
#[utoipa::path(post, path = "/api/staff/enrolments", tag = "staff", request_body = EnrolmentRequest,
    responses((status = 200, body = EnrolmentAnswer), (status = "4XX", description = "`forbidden`, `bad_request`, `name_taken`")))]
pub async fn make_code(
    State(pool): State<PgPool>,
    Operator(operator): Operator,
    Body(body): Body<EnrolmentRequest>,
) -> Result<Json<EnrolmentAnswer>, Problem> {
    let new = EnrolmentRequest { name: checked_name(&body.name)?, reason: said(&body.reason)?, role: body.role };
    let made = auth::make_code(pool, new, operator_name(&operator)).await.map_err(|error| match error {
        CodeError::NameTaken(_) => Code::NameTaken.into(),
        CodeError::Database(error) => Problem::from(error),
    })?;
    Ok(Json(made))
}

/// A machine becomes the terminal of a code, and is told its token, this once. A wrong code, one that is too old and
/// one that was used are refused alike.
#[utoipa::path(post, path = "/api/box-office/enrol", tag = "box office", request_body = EnrolRequest,
    responses((status = 200, body = Enrolled), (status = "4XX", description = "`enrolment_refused`, `bad_request`, `name_taken`, `too_many_requests`")))]
pub async fn enrol(
    State(auth): State<Auth>,
    Address(address): Address,
    Body(body): Body<EnrolRequest>,
) -> Result<Json<Enrolled>, Problem> {
    if body.key.as_ref().is_some_and(|k| !KEY_LENGTHS.contains(&k.len()) || !k.bytes().all(|b| b.is_ascii_graphic())) {
        return Err(Problem::new(Code::BadRequest).detail("A key has 16 to 255 visible ASCII characters."));
    }
    let enrolled = auth.enrol(body, &address).await.map_err(|error| match error {
        EnrolRefusal::Refused => Code::EnrolmentRefused.into(),
        EnrolRefusal::TooManyTries => {
            Problem::new(Code::TooManyRequests).detail("Too many wrong codes. Wait a few minutes.").retry_after_s(60)
        }
        EnrolRefusal::NameTaken(_) => Code::NameTaken.into(),
        EnrolRefusal::Database(error) => Problem::from(error),
    })?;
    Ok(Json(enrolled))
}

/// Who this terminal is, what it is for, and where its journal goes on. Also told to one that is locked.
#[utoipa::path(get, path = "/api/box-office/terminal", tag = "box office", responses((status = 200, body = TerminalSelf)))]
pub async fn who_am_i(State(pool): State<PgPool>, Terminal(till): Terminal) -> Result<Json<TerminalSelf>, Problem> {
    Ok(Json(terminals::who_am_i(&pool, till.terminal_id).await?))
}

/// How this terminal is: paper, card reader, version. Also of one that is locked. The last word counts.
#[utoipa::path(post, path = "/api/box-office/health", tag = "box office", request_body = TerminalHealth,
    responses((status = 204), (status = "4XX", description = "`bad_request`")))]
pub async fn report(
    State(pool): State<PgPool>,
    Terminal(till): Terminal,
    Body(health): Body<TerminalHealth>,
) -> Result<StatusCode, Problem> {
    let version = health.version.chars().count();
    if version == 0 || version > VERSION_MAX || health.detail.chars().count() > DETAIL_MAX {
        return Err(Problem::new(Code::BadRequest)
            .detail(format!("A version has 1 to {VERSION_MAX} characters, a detail {DETAIL_MAX} at most.")));
    }
    terminals::report(pool, till.terminal_id, health).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// All terminals, with what they said of themselves last: whoever has not said anything for minutes is off, or cut off.
#[utoipa::path(get, path = "/api/staff/terminals", tag = "staff",
    responses((status = 200, body = Terminals), (status = "4XX", description = "`forbidden`")))]
pub async fn list(State(pool): State<PgPool>, _: Operator) -> Result<Json<Terminals>, Problem> {
    let now = clock::now(&mut *pool.acquire().await?).await?;
    Ok(Json(Terminals { terminals: terminals::list(&pool).await?, now }))
}

/// Renames, locks, unlocks or revokes a terminal, or says what it is for, at once. Asked again, nothing changes.
#[utoipa::path(post, path = "/api/staff/terminals/{id}", tag = "staff", request_body = TerminalChange,
    params(("id" = Uuid, Path)),
    responses((status = 204), (status = "4XX", description = "`forbidden`, `bad_request`, `name_taken`, `event_unknown`: its profile names it")))]
pub async fn change_terminal(
    State(pool): State<PgPool>,
    Operator(operator): Operator,
    PathId(terminal_id): PathId<Uuid>,
    Body(body): Body<TerminalChange>,
) -> Result<StatusCode, Problem> {
    let name = body.name.as_deref().map(checked_name).transpose()?;
    if let Some(profile) = &body.profile {
        check_profile(profile)?;
    }
    let change = TerminalChange { name, reason: said(&body.reason)?, ..body };
    terminals::change(pool, terminal_id, change, operator_name(&operator)).await?;
    Ok(StatusCode::NO_CONTENT)
}

pub(super) fn checked_name(name: &str) -> Result<String, Problem> {
    let name = name.trim();
    if !is_readable(name) || name.chars().count() > NAME_MAX || name.chars().any(char::is_control) {
        return Err(Problem::new(Code::BadRequest)
            .detail(format!("A name has 1 to {NAME_MAX} characters, and one of them can be seen.")));
    }
    Ok(name.to_owned())
}

fn check_profile(profile: &TerminalProfile) -> Result<(), Problem> {
    let wrong = |what: String| Err(Problem::new(Code::BadRequest).detail(what));
    let repeats = |n: usize, distinct: usize| n != distinct;
    let events: std::collections::BTreeSet<_> = profile.events.iter().collect();
    if profile.events.len() > EVENTS_MAX || repeats(profile.events.len(), events.len()) {
        return wrong(format!("events: {EVENTS_MAX} at most, each once."));
    }
    let languages: std::collections::BTreeSet<_> = profile.languages.iter().collect();
    if profile.languages.iter().any(|code| Language::read(code).is_none())
        || repeats(profile.languages.len(), languages.len())
    {
        return wrong("languages: en, ja, ko, each once.".to_owned());
    }
    for (field, value, range) in
        [("idle_s", profile.idle_s, IDLE_S), ("lock_after_s", profile.lock_after_s, LOCK_AFTER_S)]
    {
        if value.is_some_and(|s| !range.contains(&s)) {
            return wrong(format!("{field}: from {} to {}.", range.start(), range.end()));
        }
    }
    Ok(())
}

impl From<ChangeError> for Problem {
    fn from(error: ChangeError) -> Self {
        match error {
            ChangeError::Unknown => Code::TerminalUnknown.into(),
            ChangeError::NameTaken => Code::NameTaken.into(),
            ChangeError::EventUnknown(id) => Problem::new(Code::EventUnknown).with("event_id", id),
            ChangeError::Database(error) => error.into(),
        }
    }
}
