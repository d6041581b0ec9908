//! Signing up, in and out.

use axum::{
    Json,
    extract::State,
    http::{HeaderMap, HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use fullhouse_protocol::{
    account::{self as wire, AddressCheck, AddressCode, CurrentSession, Session, SignIn, SignUp},
    tickets::LanguageChoice,
};

use super::{
    extract::{Address, Body, SESSION_COOKIE, SignedIn, session_token},
    problem::{Code, Problem},
};
use crate::{
    auth::{
        Account, AccountError, Auth, NewAccount, Token,
        address::{self, CheckError},
    },
    clock, db, mail,
    serve::Hub,
    words::Language,
};

/// Makes an account and signs it in.
#[utoipa::path(
    post, path = "/api/accounts", tag = "accounts", request_body = SignUp,
    responses((status = CREATED, body = Session, headers(("Set-Cookie" = String, description = "`fh_session`"))),
        (status = "4XX", description = "`account_invalid`, `email_taken`, `too_many_requests`"))
)]
pub async fn sign_up(
    State(hub): State<Hub>,
    Address(address): Address,
    headers: HeaderMap,
    Body(new): Body<SignUp>,
) -> Result<Response, Problem> {
    let body_language = new.language.as_deref().map(spoken).transpose();
    let new = NewAccount { email: new.email, name: new.name, password: new.password };
    let body_language = body_language.map_err(|wrong| {
        let mut all = hub.auth.wrong(&new);
        all.push(wrong);
        AccountError::Invalid(all)
    })?;
    let account = hub.auth.sign_up(new, &address).await?;
    let wish = headers.get(header::ACCEPT_LANGUAGE).and_then(|v| v.to_str().ok()).and_then(Language::accepted);
    if let Some(language) = body_language.or(wish) {
        hub.auth.set_language(account.id, language).await?;
    }
    welcome(&hub, &headers, StatusCode::CREATED, account).await
}

/// Signs in. The answer to an unknown address and to a wrong password is the same, and takes as long.
#[utoipa::path(
    post, path = "/api/session", tag = "accounts", request_body = SignIn,
    responses((status = OK, body = Session, headers(("Set-Cookie" = String, description = "`fh_session`"))),
        (status = "4XX", description = "`credentials_wrong`, `too_many_requests`"))
)]
pub async fn sign_in(
    State(hub): State<Hub>,
    Address(address): Address,
    headers: HeaderMap,
    Body(given): Body<SignIn>,
) -> Result<Response, Problem> {
    let account = hub.auth.sign_in(&given.email, given.password, &address).await?;
    welcome(&hub, &headers, StatusCode::OK, account).await
}

/// Signs out. The session is refused here at once, and within `auth.session_cache_s` by every other node.
#[utoipa::path(delete, path = "/api/session", tag = "accounts", responses((status = NO_CONTENT)))]
pub async fn sign_out(State(hub): State<Hub>, headers: HeaderMap) -> Result<Response, Problem> {
    if let Some(token) = session_token(&headers) {
        hub.auth.end_session(token).await?;
    }
    Ok((StatusCode::NO_CONTENT, [(header::SET_COOKIE, cookie(&hub, "", 0)?)]).into_response())
}

/// Chooses the language of my tickets and mail.
#[utoipa::path(put, path = "/api/account/language", tag = "accounts", request_body = LanguageChoice,
    responses((status = NO_CONTENT), (status = "4XX", description = "problem+json; `account_invalid`")))]
pub async fn set_language(
    State(hub): State<Hub>,
    somebody: SignedIn,
    Body(choice): Body<LanguageChoice>,
) -> Result<StatusCode, Problem> {
    let language = spoken(&choice.language).map_err(|wrong| AccountError::Invalid(vec![wrong]))?;
    hub.auth.set_language(somebody.account_id, language).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// The language of a code, or what is wrong with which field.
fn spoken(code: &str) -> Result<Language, (&'static str, String)> {
    let found = Language::ALL.into_iter().find(|language| language.code() == code);
    found.ok_or_else(|| ("language", "a language is en, ja or ko".to_owned()))
}

/// Who is signed in, if anybody.
#[utoipa::path(get, path = "/api/session", tag = "accounts", responses((status = OK, body = CurrentSession)))]
pub async fn current(somebody: Option<SignedIn>) -> Json<CurrentSession> {
    let account = somebody.map(|s| wire::Account {
        id: s.account_id,
        email: s.email,
        name: s.name,
        role: s.role.name().to_owned(),
        email_checked: s.email_checked,
    });
    Json(CurrentSession { account })
}

/// Opens a session. One that this browser still had ends: whoever sat there before is signed out.
async fn welcome(hub: &Hub, headers: &HeaderMap, status: StatusCode, account: Account) -> Result<Response, Problem> {
    // The new one first: whoever is refused one, or hangs up before, is left with the one they had.
    let token: Token = Auth::open_session(&hub.auth, &account).await?;
    if let Some(former) = session_token(headers) {
        hub.auth.end_session(former).await?;
    }
    let cookie = cookie(hub, token.reveal(), hub.config.auth.session_ttl_s)?;
    let account = shown(account);
    Ok((status, [(header::SET_COOKIE, cookie)], Json(Session { account })).into_response())
}

fn shown(account: Account) -> wire::Account {
    let role = account.role.name().to_owned();
    let Account { id, email, name, email_checked, .. } = account;
    wire::Account { id, email, name, role, email_checked }
}

/// Asks for a mail with the link that checks my address: one in five minutes. Waiting rooms ask for a checked address.
#[utoipa::path(post, path = "/api/account/address-check", tag = "accounts",
    responses((status = ACCEPTED, body = AddressCheck), (status = "4XX", description = "Refused")))]
pub async fn check_address(State(hub): State<Hub>, somebody: SignedIn) -> Result<Response, Problem> {
    let (pool, account_id) = (hub.pool.clone(), somebody.account_id);
    db::write(async move { mail::enqueue_check(&mut *pool.acquire().await?, account_id).await }).await?;
    let link = if hub.config.waiting_room.address_link_shown {
        let now = clock::now(&mut *hub.pool.acquire().await?).await?;
        let code = address::code(&hub.keys, account_id, &somebody.email, now).await?;
        Some(address::link(&hub.config.http.public_url, &code))
    } else {
        None
    };
    Ok((StatusCode::ACCEPTED, Json(AddressCheck { sent_to: somebody.email, link })).into_response())
}

/// What the link in the mail brings back: somebody reads this address. Nobody has to be signed in; again is no error.
#[utoipa::path(post, path = "/api/account/address-check/confirm", tag = "accounts", request_body = AddressCode,
    responses((status = OK, body = Session), (status = "4XX", description = "`address_code_invalid`, `address_code_expired`")))]
pub async fn confirm_address(State(hub): State<Hub>, Body(body): Body<AddressCode>) -> Result<Json<Session>, Problem> {
    let account = hub.auth.confirm_address(&hub.keys, &body.code).await.map_err(|error| match error {
        CheckError::Invalid => Problem::new(Code::AddressCodeInvalid),
        CheckError::Expired => Problem::new(Code::AddressCodeExpired),
        CheckError::Database(e) => e.into(),
    })?;
    Ok(Json(Session { account: shown(account) }))
}

fn cookie(hub: &Hub, token: &str, age_s: i64) -> Result<HeaderValue, Problem> {
    let secure = if hub.config.http.public_url.starts_with("https://") { "; Secure" } else { "" };
    let cookie = format!("{SESSION_COOKIE}={token}; HttpOnly; SameSite=Lax; Path=/; Max-Age={age_s}{secure}");
    HeaderValue::from_str(&cookie).map_err(Problem::internal)
}

impl From<AccountError> for Problem {
    fn from(error: AccountError) -> Self {
        match error {
            AccountError::Invalid(wrong) => {
                let fields: Vec<&str> = wrong.iter().map(|(field, _)| *field).collect();
                let sentences: Vec<&str> = wrong.iter().map(|(_, sentence)| sentence.as_str()).collect();
                let problem = Problem::new(Code::AccountInvalid).detail(sentences.join("; "));
                problem.with("field", fields[0]).with("fields", fields)
            }
            AccountError::EmailTaken => Code::EmailTaken.into(),
            AccountError::CredentialsWrong => Code::CredentialsWrong.into(),
            AccountError::TooManyTries => Problem::new(Code::TooManyRequests)
                .detail("Too many tries to sign in. Wait a few minutes.")
                .retry_after_s(60),
            AccountError::Busy => Code::Busy.into(),
            AccountError::Hash(e) => Problem::internal(e),
            AccountError::Database(e) => e.into(),
        }
    }
}
