//! Staff sign in at a terminal, and out again.

use axum::{
    Json,
    extract::State,
    http::{HeaderMap, StatusCode},
};
use fullhouse_protocol::clerk::{StaffAtTerminal, StaffSignIn, StaffSignedIn};

use super::{
    extract::{Body, SignedInHere, Terminal, Till, staff_token},
    problem::{Code, Problem},
};
use crate::auth::{Auth, SignInError};

/// Signs somebody of the staff in, by password or, at an attended terminal, by PIN. Whoever is signed in here stays so:
/// a supervisor who helps ends nobody's session. Five wrong tries in a row lock the name for 15 minutes.
#[utoipa::path(post, path = "/api/box-office/sign-in", tag = "box office", request_body = StaffSignIn,
    responses((status = 200, body = StaffSignedIn), (status = "4XX", description = "`bad_request`, `credentials_wrong`, `staff_locked`")))]
pub async fn sign_in(
    State(auth): State<Auth>,
    till: Till,
    Body(given): Body<StaffSignIn>,
) -> Result<Json<StaffSignedIn>, Problem> {
    Ok(Json(auth.sign_in_at(&till, given).await?))
}

/// Ends the session of `Fullhouse-Staff`. One that has ended is no error; also of a terminal that is locked.
#[utoipa::path(post, path = "/api/box-office/sign-out", tag = "box office", responses((status = 204)))]
pub async fn sign_out(
    State(auth): State<Auth>,
    Terminal(till): Terminal,
    headers: HeaderMap,
) -> Result<StatusCode, Problem> {
    if let Some(token) = staff_token(&headers) {
        auth.sign_out_at(&till, token).await?;
    }
    Ok(StatusCode::NO_CONTENT)
}

/// Who is signed in with this `Fullhouse-Staff`.
#[utoipa::path(get, path = "/api/box-office/staff", tag = "box office",
    responses((status = 200, body = StaffAtTerminal), (status = "4XX", description = "`staff_required`")))]
pub async fn on_duty(here: SignedInHere) -> Json<StaffAtTerminal> {
    let staff = here.staff;
    Json(StaffAtTerminal { staff_id: staff.staff_id, name: staff.name, role: staff.role, expires_at: staff.expires_at })
}

impl From<SignInError> for Problem {
    fn from(error: SignInError) -> Self {
        match error {
            SignInError::Invalid(what) => Problem::new(Code::BadRequest).detail(what),
            SignInError::CredentialsWrong => Code::CredentialsWrong.into(),
            SignInError::Locked { retry_after_s } => {
                Problem::new(Code::StaffLocked).with("retry_after_s", retry_after_s).retry_after_s(retry_after_s)
            }
            SignInError::Busy => Code::Busy.into(),
            SignInError::Hash(error) => Problem::internal(error),
            SignInError::Database(error) => error.into(),
        }
    }
}
