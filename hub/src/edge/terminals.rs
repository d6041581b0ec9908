//! Terminals: how they are, said by themselves and shown to operators, who rename, lock and revoke them.

use axum::{Json, extract::State, http::StatusCode};
use fullhouse_protocol::terminal::{TerminalChange, TerminalHealth, Terminals};
use sqlx::PgPool;
use uuid::Uuid;

use super::{
    extract::{Body, Operator, PathId, Terminal},
    problem::{Code, Problem},
    staff::{operator_name, said},
};
use crate::{
    box_office::terminals::{self, ChangeError},
    clock,
};

const VERSION_MAX: usize = 64;
const DETAIL_MAX: usize = 300;
const NAME_MAX: usize = 60;

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

/// Renames, locks, unlocks or revokes a terminal, at once. Asked again, nothing changes.
#[utoipa::path(post, path = "/api/staff/terminals/{id}", tag = "staff", request_body = TerminalChange,
    params(("id" = Uuid, Path)),
    responses((status = 204), (status = "4XX", description = "`forbidden`, `bad_request`, `name_taken`")))]
pub async fn change_terminal(
    State(pool): State<PgPool>,
    Operator(operator): Operator,
    PathId(terminal_id): PathId<Uuid>,
    Body(body): Body<TerminalChange>,
) -> Result<StatusCode, Problem> {
    let name = body.name.map(|name| name.trim().to_owned());
    if name.as_ref().is_some_and(|name| name.is_empty() || name.chars().count() > NAME_MAX) {
        return Err(Problem::new(Code::BadRequest).detail(format!("A name has 1 to {NAME_MAX} characters.")));
    }
    let change = TerminalChange { name, reason: said(&body.reason)?, ..body };
    terminals::change(pool, terminal_id, change, operator_name(&operator)).await?;
    Ok(StatusCode::NO_CONTENT)
}

impl From<ChangeError> for Problem {
    fn from(error: ChangeError) -> Self {
        match error {
            ChangeError::Unknown => Code::TerminalUnknown.into(),
            ChangeError::NameTaken => Code::NameTaken.into(),
            ChangeError::Database(error) => error.into(),
        }
    }
}
