//! The waiting room: `/api/events/{id}/queue/…`. What is the same for everybody may be kept by caches.

use std::sync::Arc;

use axum::{
    Json,
    extract::{FromRef, FromRequestParts, Path, Query, State, rejection::QueryRejection},
    http::{HeaderValue, StatusCode, header, request::Parts},
    response::{IntoResponse, Response},
};
use bytes::Bytes;
use chrono::{DateTime, Utc};
use data_encoding::HEXLOWER;
use fullhouse_protocol::line::{DrawFacts, Draws, Entry, InclusionProof, JoinRequest, Line, Pass, Preferences};
use futures_util::FutureExt;
use serde::{Deserialize, de::DeserializeOwned};

use super::{
    extract::{Address, Body, PathEvent, SignedIn, query_invalid, session_token},
    problem::{Code, Problem},
};
use crate::{
    admission::pass::{self, Bearer, Claim, EnterError, PassRefusal},
    auth::{Token, TokenHash},
    catalog::cache::EventCache,
    db,
    keys::OpenError,
    push::Rooms,
    serve::Hub,
    waiting_room::{
        door::{self, Bound, DoorError},
        draw::Tree,
        entry::{self, LivePass, Standing},
        joins::{Join, JoinRefusal},
        line,
        places::TreeError,
        receipt::Receipt,
    },
};

const A_SECOND: HeaderValue = HeaderValue::from_static("public, max-age=1");
const FOR_EVER: HeaderValue = HeaderValue::from_static("public, max-age=31536000, immutable");
/// The header that carries a pass.
const PASS_HEADER: &str = "fullhouse-pass";

/// The browser's session, without looking up whose it is.
#[derive(Debug, Clone, Copy)]
pub struct SessionHash(pub TokenHash);

impl<S: Sync> FromRequestParts<S> for SessionHash {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let token = session_token(&parts.headers).ok_or(Code::NotSignedIn)?;
        Ok(Self(Token::hash(token)))
    }
}

/// An event, and a number behind it in the path.
#[derive(Debug, Clone, Copy)]
pub struct EventAnd<T>(pub i64, pub T);

impl<T: DeserializeOwned + Send> FromRequestParts<Hub> for EventAnd<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, hub: &Hub) -> Result<Self, Problem> {
        let Path((name, rest)) =
            Path::<(String, T)>::from_request_parts(parts, hub).await.map_err(|_| Code::NotFound)?;
        if name.contains('\0') {
            return Err(Code::EventUnknown.into());
        }
        let found = EventCache::find(&hub.events, &hub.pool, &name).await?.ok_or(Code::EventUnknown)?;
        Ok(Self(found, rest))
    }
}

/// The pass that a request shows: what its token claims, if we have signed it.
#[derive(Debug, Clone, Copy)]
pub struct ShownPass(pub Option<Claim>);

impl FromRequestParts<Hub> for ShownPass {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, hub: &Hub) -> Result<Self, Problem> {
        let Some(value) = parts.headers.get(PASS_HEADER) else { return Ok(Self(None)) };
        let token = value.to_str().map_err(|_| Code::PassInvalid)?;
        match Claim::read(&hub.keys, token).await {
            Ok(claim) => Ok(Self(Some(claim))),
            Err(OpenError::NotOne | OpenError::Forged) => Err(Code::PassInvalid.into()),
            Err(OpenError::Database(e)) => Err(e.into()),
        }
    }
}

/// The line as everybody sees it. When the database does not answer, how things stood, with `database_late`.
#[utoipa::path(get, path = "/api/events/{id}/queue", tag = "queue", params(("id" = String, Path, description = "Number or slug")),
    responses((status = 200, body = Line), (status = "4XX", description = "`line_unknown`")))]
pub async fn line(State(hub): State<Hub>, PathEvent(event_id): PathEvent) -> Result<Response, Problem> {
    let line = match hub.room.shown(event_id).await {
        Ok(None) => return Err(Code::LineUnknown.into()),
        Ok(Some(seen)) if seen.line.database_late => newest(&hub, event_id, Some(seen.line)),
        Ok(Some(seen)) => Some(seen.line),
        Err(error) => match newest(&hub, event_id, None).filter(|_| db::is_transient(&error)) {
            Some(line) => Some(line),
            None => return Err(error.into()),
        },
    };
    Ok(([(header::CACHE_CONTROL, A_SECOND)], Json(line.ok_or(Code::LineUnknown)?)).into_response())
}

/// While the database does not answer: how things stood when it was looked at last or, if that is newer, as the last
/// frame tells it. Looking is seldom; frames come all the time, as long as somebody waits here.
fn newest(hub: &Hub, event_id: i64, looked: Option<Line>) -> Option<Line> {
    // A room that is not open would have to be read from the database.
    let room = Rooms::from_ref(hub).line(event_id).now_or_never().and_then(Result::ok).flatten();
    let framed = room.and_then(|room| serde_json::from_str::<Line>(&room.newest()?).ok());
    let framed = framed.filter(|line| looked.as_ref().is_none_or(|looked| looked.revision < line.revision));
    framed.map(|line| Line { database_late: true, ..line }).or(looked)
}

/// A proof of work for this session and event. It costs more under load, and for whoever asks again and again.
#[utoipa::path(get, path = "/api/events/{id}/queue/challenge", tag = "queue",
    params(("id" = String, Path, description = "Number or slug")),
    responses((status = 200, description = "A challenge of ALTCHA's second version, with its signature", content_type = "application/json"),
        (status = "4XX", description = "`line_unknown`, `too_many_requests`")))]
pub async fn challenge(
    State(hub): State<Hub>,
    SessionHash(session): SessionHash,
    PathEvent(event_id): PathEvent,
    Address(address): Address,
) -> Result<Response, Problem> {
    let facts = hub.room.facts(event_id).await?.ok_or(Code::LineUnknown)?;
    let bound = Bound { event_id, session: &session };
    let challenge = hub
        .room
        .door()
        .challenge(&facts.challenge_key, bound, &address, Utc::now().timestamp_millis())
        .map_err(|_| Problem::new(Code::TooManyRequests).retry_after_s(60))?;
    Ok(Json(challenge).into_response())
}

/// Takes a stand in the line. The same account again, by any device, gets the one that it has; who left before they
/// were called gets the one that they left.
#[utoipa::path(post, path = "/api/events/{id}/queue/entry", tag = "queue", request_body = JoinRequest,
    params(("id" = String, Path, description = "Number or slug")),
    responses((status = 200, body = Entry, description = "It was there already"), (status = 201, body = Entry),
        (status = "4XX", description = "`line_unknown`, `address_unchecked`, `line_not_joining`, `line_over`, `challenge_invalid`, `challenge_expired`, `challenge_foreign`, `challenge_used`, `joins_too_many`, `preferences_invalid`, `entry_none` (another device has left it at this moment)")))]
pub async fn join(
    State(hub): State<Hub>,
    SessionHash(session): SessionHash,
    PathEvent(event_id): PathEvent,
    Body(body): Body<JoinRequest>,
) -> Result<Response, Problem> {
    let facts = hub.room.facts(event_id).await?.ok_or(Code::LineUnknown)?;
    let JoinRequest { challenge, party_size, price_level, accessible, companions } = body;
    let preferences = Preferences { party_size, price_level, accessible, companions };
    entry::check(&preferences).map_err(|wrong| Problem::new(Code::PreferencesInvalid).detail(sentence(wrong)))?;
    let bound = Bound { event_id, session: &session };
    let nonce = door::check(&facts.challenge_key, bound, &challenge, Utc::now().timestamp_millis())?;
    hub.room.door().joined();
    let joined = hub.room.joins().ask(event_id, Join { session, nonce, preferences: preferences.clone() }).await?;
    if let Some(committed) = joined.new {
        // Nothing but what was just written is to be told, so nothing is read again.
        let receipt = Receipt::new(event_id, joined.number, joined.entry_key, joined.joined_at, committed);
        let entry = Entry {
            event_id,
            number: joined.number,
            place: None,
            state: fullhouse_protocol::line::EntryState::Waiting,
            ticket: receipt.ticket(&hub.keys).await?,
            entry_key: HEXLOWER.encode(&joined.entry_key),
            joined_at: joined.joined_at,
            called_through: 0,
            called_at: None,
            grace_until: None,
            pass: None,
            inside_elsewhere: false,
            preferences,
            now: joined.joined_at,
        };
        return Ok((StatusCode::CREATED, Json(entry)).into_response());
    }
    let mut connection = hub.pool.acquire().await?;
    let standing = entry::mine(&mut connection, hub.room.places(), event_id, joined.account_id).await?;
    drop(connection);
    let standing = standing.ok_or(Code::EntryNone)?;
    Ok(Json(shown(&hub, &standing, &session).await?).into_response())
}

#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct EntryQuery {
    /// `true`: having none is an answer (204) and no refusal, for pages that ask just in case
    #[serde(default)]
    or_none: bool,
}

/// My stand in the line: any tab, any device.
#[utoipa::path(get, path = "/api/events/{id}/queue/entry", tag = "queue",
    params(("id" = String, Path, description = "Number or slug"), EntryQuery),
    responses((status = 200, body = Entry), (status = NO_CONTENT, description = "There is none, and `or_none` was asked"),
        (status = "4XX", description = "`entry_none`, `bad_request`")))]
pub async fn mine(
    State(hub): State<Hub>,
    somebody: SignedIn,
    PathEvent(event_id): PathEvent,
    query: Result<Query<EntryQuery>, QueryRejection>,
) -> Result<Response, Problem> {
    let Query(EntryQuery { or_none }) = query.map_err(|e| query_invalid(&e))?;
    match own(&hub, &somebody, event_id).await {
        Err(problem) if or_none && problem.code() == Code::EntryNone => Ok(StatusCode::NO_CONTENT.into_response()),
        other => Ok(Json(other?).into_response()),
    }
}

/// Says what I would like. It waits for me when I get in.
#[utoipa::path(patch, path = "/api/events/{id}/queue/entry", tag = "queue", request_body = Preferences,
    params(("id" = String, Path, description = "Number or slug")),
    responses((status = 200, body = Entry), (status = "4XX", description = "`entry_none`, `preferences_invalid`")))]
pub async fn prefer(
    State(hub): State<Hub>,
    somebody: SignedIn,
    PathEvent(event_id): PathEvent,
    Body(wish): Body<Preferences>,
) -> Result<Json<Entry>, Problem> {
    entry::check(&wish).map_err(|wrong| Problem::new(Code::PreferencesInvalid).detail(sentence(wrong)))?;
    let (pool, account_id) = (hub.pool.clone(), somebody.account_id);
    if !db::write(async move { entry::prefer(&pool, event_id, account_id, &wish).await }).await? {
        return Err(Code::EntryNone.into());
    }
    own(&hub, &somebody, event_id).await.map(Json)
}

/// Leaves the line, and what is inside. Who joins again before their place is called stands where they stood; after
/// that it is a new entry, at the end.
#[utoipa::path(delete, path = "/api/events/{id}/queue/entry", tag = "queue", params(("id" = String, Path, description = "Number or slug")),
    responses((status = NO_CONTENT), (status = "4XX", description = "`entry_none`")))]
pub async fn leave(
    State(hub): State<Hub>,
    somebody: SignedIn,
    PathEvent(event_id): PathEvent,
) -> Result<StatusCode, Problem> {
    let pool = hub.pool.clone();
    if !db::write(async move { entry::leave(&pool, event_id, somebody.account_id).await }).await? {
        return Err(Code::EntryNone.into());
    }
    Ok(StatusCode::NO_CONTENT)
}

/// Comes in when called: a pass for this session. Again it is the same pass; from another device it moves there.
#[utoipa::path(post, path = "/api/events/{id}/queue/enter", tag = "queue", params(("id" = String, Path, description = "Number or slug")),
    responses((status = 200, body = Pass), (status = "4XX", description = "`entry_none`, `line_not_called`, `entry_lapsed`, `line_paused`")))]
pub async fn enter(
    State(hub): State<Hub>,
    somebody: SignedIn,
    PathEvent(event_id): PathEvent,
) -> Result<Json<Pass>, Problem> {
    let (pool, places) = (hub.pool.clone(), hub.room.places().clone());
    let (account_id, session) = (somebody.account_id, somebody.session);
    let (claim, live, now) =
        db::write(async move { pass::enter(&pool, &places, event_id, account_id, session).await }).await?;
    Ok(Json(passed(&hub, claim, &live, now).await?))
}

/// Stays inside for longer, within the stated most.
#[utoipa::path(post, path = "/api/events/{id}/queue/pass/renew", tag = "queue",
    params(("id" = String, Path, description = "Number or slug"), ("Fullhouse-Pass" = String, Header)),
    responses((status = 200, body = Pass), (status = "4XX", description = "`pass_missing`, `pass_invalid`, `pass_expired`, `pass_over`, `pass_moved`, `pass_foreign`")))]
pub async fn renew(
    State(hub): State<Hub>,
    somebody: SignedIn,
    PathEvent(event_id): PathEvent,
    ShownPass(claim): ShownPass,
) -> Result<Json<Pass>, Problem> {
    let claim = claim.ok_or(Code::PassMissing)?;
    let pool = hub.pool.clone();
    let (account_id, session) = (somebody.account_id, somebody.session);
    let (live, now) =
        db::write(async move { pass::renew(&pool, claim, event_id, Bearer { account_id, session: &session }).await })
            .await??;
    Ok(Json(passed(&hub, claim, &live, now).await?))
}

/// Goes out. The place inside is the next one's.
#[utoipa::path(delete, path = "/api/events/{id}/queue/pass", tag = "queue", params(("id" = String, Path, description = "Number or slug")),
    responses((status = NO_CONTENT), (status = "4XX", description = "`pass_over`")))]
pub async fn go(
    State(hub): State<Hub>,
    somebody: SignedIn,
    PathEvent(event_id): PathEvent,
) -> Result<StatusCode, Problem> {
    let pool = hub.pool.clone();
    let ended = db::write(async move {
        let mut tx = pool.begin().await?;
        let ended = pass::end(&mut tx, event_id, somebody.account_id, "left").await?;
        tx.commit().await?;
        Ok::<bool, sqlx::Error>(ended)
    })
    .await?;
    if ended { Ok(StatusCode::NO_CONTENT) } else { Err(Code::PassOver.into()) }
}

/// Every draw of the line, those that were given up too, with what each has published.
#[utoipa::path(get, path = "/api/events/{id}/queue/draws", tag = "queue", params(("id" = String, Path, description = "Number or slug")),
    responses((status = 200, body = Draws), (status = "4XX", description = "`line_unknown`")))]
pub async fn draws(State(hub): State<Hub>, PathEvent(event_id): PathEvent) -> Result<Response, Problem> {
    let draws = line::draws(&hub.pool, event_id).await?;
    if draws.is_empty() {
        return Err(Code::LineUnknown.into());
    }
    Ok(([(header::CACHE_CONTROL, A_SECOND)], Json(Draws { event_id, draws })).into_response())
}

/// One draw.
#[utoipa::path(get, path = "/api/events/{id}/queue/draws/{no}", tag = "queue",
    params(("id" = String, Path, description = "Number or slug"), ("no" = i32, Path)),
    responses((status = 200, body = DrawFacts), (status = "4XX", description = "`not_found`")))]
pub async fn one_draw(State(hub): State<Hub>, EventAnd(event_id, no): EventAnd<i32>) -> Result<Response, Problem> {
    let facts = line::draws(&hub.pool, event_id).await?.into_iter().find(|d| d.no == no).ok_or(Code::NotFound)?;
    Ok(([(header::CACHE_CONTROL, A_SECOND)], Json(facts)).into_response())
}

/// The leaves of a draw's tree, 32 bytes each, number 0 first.
#[utoipa::path(get, path = "/api/events/{id}/queue/draws/{no}/leaves", tag = "queue",
    params(("id" = String, Path, description = "Number or slug"), ("no" = i32, Path)),
    responses((status = 200, content_type = "application/octet-stream", description = "32 bytes an entry"), (status = "4XX", description = "`proof_none`, `draw_incomplete`, `not_found`")))]
pub async fn leaves(State(hub): State<Hub>, EventAnd(event_id, no): EventAnd<i32>) -> Result<Response, Problem> {
    let tree = hub.room.places().tree(event_id, no).await?.ok_or(Code::ProofNone)?;
    // As they are in memory: half a million are 16 MB, and a slow reader is to cost none of its own.
    let bytes = Bytes::from_owner(Leaves(tree));
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static("application/octet-stream")),
        (header::CACHE_CONTROL, FOR_EVER),
    ];
    Ok((headers, bytes).into_response())
}

struct Leaves(Arc<Tree>);

impl AsRef<[u8]> for Leaves {
    fn as_ref(&self) -> &[u8] {
        self.0.leaves().as_flattened()
    }
}

/// That an entry is among those that were drawn: its leaf, and the path from there to the root.
#[utoipa::path(get, path = "/api/events/{id}/queue/proof/{number}", tag = "queue",
    params(("id" = String, Path, description = "Number or slug"), ("number" = i64, Path)),
    responses((status = 200, body = InclusionProof), (status = "4XX", description = "`line_unknown`, `proof_none`, `draw_incomplete`, `not_found`")))]
pub async fn proof(State(hub): State<Hub>, EventAnd(event_id, number): EventAnd<i64>) -> Result<Response, Problem> {
    let seen = hub.room.shown(event_id).await?.ok_or(Code::LineUnknown)?;
    let draw_no = seen.line.draw.no;
    let tree = hub.room.places().tree(event_id, draw_no).await?.ok_or(Code::ProofNone)?;
    let at = u32::try_from(number).map_err(|_| Code::ProofNone)?;
    let path = tree.path(at).ok_or(Code::ProofNone)?;
    let hex = |hash: &[u8; 32]| HEXLOWER.encode(hash);
    let proof = InclusionProof {
        event_id,
        draw_no,
        number,
        leaf: hex(&tree.leaves()[at as usize]),
        path: path.iter().map(hex).collect(),
        root: hex(&tree.root()),
        count: tree.leaves().len() as i64,
    };
    Ok(([(header::CACHE_CONTROL, A_SECOND)], Json(proof)).into_response())
}

async fn own(hub: &Hub, somebody: &SignedIn, event_id: i64) -> Result<Entry, Problem> {
    let mut connection = hub.pool.acquire().await?;
    let standing = entry::mine(&mut connection, hub.room.places(), event_id, somebody.account_id).await?;
    drop(connection);
    shown(hub, &standing.ok_or(Code::EntryNone)?, &somebody.session).await
}

async fn shown(hub: &Hub, standing: &Standing, session: &TokenHash) -> Result<Entry, Problem> {
    let Standing { event_id, number, entry_key, joined_at, committed, .. } = *standing;
    let receipt = Receipt::new(event_id, number, entry_key, joined_at, committed);
    let (here, elsewhere) = match &standing.pass {
        Some(pass) if pass.session == *session => (Some(pass), false),
        other => (None, other.is_some()),
    };
    let pass = match here {
        Some(pass) => {
            let claim = Claim { id: pass.id, event_id: standing.event_id, account_id: standing.account_id };
            Some(passed(hub, claim, pass, standing.now).await?)
        }
        None => None,
    };
    Ok(Entry {
        event_id: standing.event_id,
        number: standing.number,
        place: standing.place,
        state: standing.state(),
        ticket: receipt.ticket(&hub.keys).await?,
        entry_key: HEXLOWER.encode(&standing.entry_key),
        joined_at: standing.joined_at,
        called_through: standing.called_through,
        called_at: standing.called_at,
        grace_until: standing.grace_until,
        pass,
        inside_elsewhere: elsewhere,
        preferences: standing.preferences.clone(),
        now: standing.now,
    })
}

async fn passed(hub: &Hub, claim: Claim, live: &LivePass, now: DateTime<Utc>) -> Result<Pass, Problem> {
    Ok(Pass {
        id: live.id,
        pass: claim.token(&hub.keys).await?,
        expires_at: live.expires_at,
        renewable_until: live.renewable_until,
        now,
    })
}

fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(|c| c.to_uppercase().to_string()).unwrap_or_default();
    format!("{first}{}.", letters.as_str())
}

impl From<TreeError> for Problem {
    fn from(error: TreeError) -> Self {
        match error {
            TreeError::Incomplete { count, found, .. } => {
                tracing::error!(%error, "a draw can't be proved");
                Problem::new(Code::DrawIncomplete).with("entries", count).with("found", found)
            }
            TreeError::Database(e) => e.into(),
        }
    }
}

impl From<DoorError> for Problem {
    fn from(error: DoorError) -> Self {
        match error {
            DoorError::Invalid => Code::ChallengeInvalid.into(),
            DoorError::Expired => Code::ChallengeExpired.into(),
            DoorError::Foreign => Code::ChallengeForeign.into(),
        }
    }
}

impl From<JoinRefusal> for Problem {
    fn from(refusal: JoinRefusal) -> Self {
        match refusal {
            JoinRefusal::NotSignedIn => Code::NotSignedIn.into(),
            JoinRefusal::AddressUnchecked => Code::AddressUnchecked.into(),
            JoinRefusal::LineUnknown => Code::LineUnknown.into(),
            JoinRefusal::NotJoining(at) => Problem::new(Code::LineNotJoining)
                .with("joins_at", at.to_rfc3339_opts(chrono::SecondsFormat::AutoSi, true)),
            JoinRefusal::Over => Code::LineOver.into(),
            JoinRefusal::ChallengeUsed => Code::ChallengeUsed.into(),
            JoinRefusal::TooOften => Code::JoinsTooMany.into(),
            JoinRefusal::Busy => Code::Busy.into(),
            JoinRefusal::Failed => Code::Internal.into(),
        }
    }
}

impl From<EnterError> for Problem {
    fn from(error: EnterError) -> Self {
        match error {
            EnterError::EntryNone => Code::EntryNone.into(),
            EnterError::NotCalled { place, called_through } => {
                Problem::new(Code::LineNotCalled).with("place", place).with("called_through", called_through)
            }
            EnterError::Lapsed => Code::EntryLapsed.into(),
            EnterError::Paused => Code::LinePaused.into(),
            EnterError::Again => Code::Busy.into(),
            EnterError::Database(e) => e.into(),
        }
    }
}

impl From<PassRefusal> for Problem {
    fn from(refusal: PassRefusal) -> Self {
        match refusal {
            PassRefusal::Missing => Code::PassMissing.into(),
            PassRefusal::Invalid => Code::PassInvalid.into(),
            PassRefusal::Expired => Code::PassExpired.into(),
            PassRefusal::Over => Code::PassOver.into(),
            PassRefusal::Moved => Code::PassMoved.into(),
            PassRefusal::Foreign => Code::PassForeign.into(),
        }
    }
}
