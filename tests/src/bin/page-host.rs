//! What the desktop's shell is to its window, for pages under test in a browser: the box office's own core, one for each
//! terminal whose token comes. A page's host asks it (`box-office-app/ui/src/host/web.ts`); beside it there is no second
//! way to run a kiosk or to sell without a network.
//!
//! Arguments: `--hub URL --folder F`. Says `listening on http://…`, and ends with its input. `POST /desk/second {ms}` makes
//! a terminal's seconds as long: nobody waits for a minute and a half in a test.

use std::{collections::HashMap, convert::Infallible, path::PathBuf, sync::Arc, time::Duration};

use anyhow::Context;
use axum::{
    Json, Router,
    extract::State,
    http::{HeaderMap, StatusCode, header::AUTHORIZATION},
    response::{IntoResponse, Response, Sse, sse},
    routing::{get, post},
};
use fullhouse_box_office::terminal::{
    Address, Home, Record, Relay, Role, Token,
    offline::{Offline, OfflineError, SaleWish},
    papers::Papers,
    visits::{Touched, Visits},
};
use fullhouse_protocol::{lease::LeaseRequest, terminal::TerminalSelf};
use futures_util::{Stream, stream};
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::sync::{Mutex, watch};
use uuid::Uuid;

#[derive(Clone)]
struct Desks {
    hub: Address,
    folder: PathBuf,
    /// Locked while one is opened: its ledger is one process's, and one desk's.
    known: Arc<Mutex<HashMap<String, Desk>>>,
}

#[derive(Clone)]
enum Desk {
    Counter(Offline, Relay),
    Kiosk(Visits),
}

struct Refused(StatusCode, &'static str);

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        problem(self.0, self.1, self.1)
    }
}

fn problem(status: StatusCode, code: &str, detail: &str) -> Response {
    let body = json!({ "type": "about:blank", "status": status.as_u16(), "code": code, "title": detail });
    (status, Json(body)).into_response()
}

fn main() -> anyhow::Result<()> {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?.block_on(serve())
}

async fn serve() -> anyhow::Result<()> {
    let argument = |name: &str| std::env::args().skip_while(|a| a != name).nth(1).with_context(|| name.to_owned());
    let desks = Desks {
        hub: Address::parse(&argument("--hub")?)?,
        folder: argument("--folder")?.into(),
        known: Arc::default(),
    };
    let routes = Router::new()
        .route("/desk/kiosk", get(shown).post(touched))
        .route("/desk/kiosk/staff", post(staff_came))
        .route("/desk/second", post(second))
        .route("/desk/till", get(standing))
        .route("/desk/till/lease", post(lease))
        .route("/desk/till/sell", post(sell))
        .route("/desk/till/close", post(close))
        .with_state(desks);
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    println!("listening on http://{}", listener.local_addr()?);
    tokio::select! {
        served = axum::serve(listener, routes) => served?,
        _ = tokio::task::spawn_blocking(|| std::io::copy(&mut std::io::stdin(), &mut std::io::sink())) => {}
    }
    Ok(())
}

impl Desks {
    async fn of(&self, headers: &HeaderMap) -> Result<Desk, Refused> {
        let token = token(headers)?;
        let mut known = self.known.lock().await;
        if let Some(desk) = known.get(token) {
            return Ok(desk.clone());
        }
        let desk = self.open(token, Duration::from_secs(1)).await?;
        known.insert(token.to_owned(), desk.clone());
        Ok(desk)
    }

    async fn open(&self, token: &str, second: Duration) -> Result<Desk, Refused> {
        let broken = |_| Refused(StatusCode::BAD_GATEWAY, "broken");
        let own =
            Relay::of_terminal(self.hub.clone(), Role::Kiosk, Token::new(token.to_owned())).map_err(|_| broken(()))?;
        let this: TerminalSelf = own
            .terminal()
            .await
            .ok()
            .and_then(|this| serde_json::from_value(this).ok())
            .ok_or(Refused(StatusCode::BAD_GATEWAY, "no_answer"))?;
        let home = Home::open(&self.folder.join(this.terminal_id.to_string())).map_err(|_| broken(()))?;
        let papers = Papers::open(&home, this.terminal_id).map_err(|_| broken(()))?;
        if this.role == "kiosk" {
            Ok(Desk::Kiosk(Visits::begin(own, papers, home, "page", second).map_err(|_| broken(()))?))
        } else {
            let token = Token::new(token.to_owned());
            let relay = Relay::of_terminal(self.hub.clone(), Role::Counter, token.clone()).map_err(|_| broken(()))?;
            let record = Record {
                hub: self.hub.clone(),
                terminal_id: this.terminal_id,
                name: this.name,
                role: Role::Counter,
                attended: this.attended,
                exit_pin: None,
            };
            Ok(Desk::Counter(Offline::begin(record, relay.clone(), papers, &home, &token), relay))
        }
    }

    async fn kiosk(&self, headers: &HeaderMap) -> Result<Visits, Refused> {
        match self.of(headers).await? {
            Desk::Kiosk(visits) => Ok(visits),
            Desk::Counter(..) => Err(Refused(StatusCode::FORBIDDEN, "not_allowed")),
        }
    }

    async fn counter(&self, headers: &HeaderMap) -> Result<Offline, Refused> {
        match self.of(headers).await? {
            Desk::Counter(offline, relay) => {
                // Without a network it is who it was.
                if let Some(staff) = headers.get("fullhouse-staff").and_then(|value| value.to_str().ok()) {
                    let _ = relay.take_up(Token::new(staff.to_owned())).await;
                }
                Ok(offline)
            }
            Desk::Kiosk(_) => Err(Refused(StatusCode::FORBIDDEN, "not_allowed")),
        }
    }
}

fn token(headers: &HeaderMap) -> Result<&str, Refused> {
    let value = headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok()?.strip_prefix("Bearer "));
    value.ok_or(Refused(StatusCode::UNAUTHORIZED, "not_signed_in"))
}

/// What is shown now, and whenever it changes.
fn follow<T: Serialize + Clone + Send + Sync + 'static>(
    shown: watch::Receiver<T>,
) -> Sse<impl Stream<Item = Result<sse::Event, Infallible>>> {
    Sse::new(stream::unfold((shown, true), |(mut shown, first)| async move {
        if !first && shown.changed().await.is_err() {
            return None;
        }
        let now = shown.borrow_and_update().clone();
        let event = sse::Event::default().json_data(now).expect("what is shown has a JSON form");
        Some((Ok(event), (shown, false)))
    }))
}

async fn shown(State(desks): State<Desks>, headers: HeaderMap) -> Result<impl IntoResponse, Refused> {
    Ok(follow(desks.kiosk(&headers).await?.shown()))
}

async fn touched(
    State(desks): State<Desks>,
    headers: HeaderMap,
    Json(touched): Json<Touched>,
) -> Result<StatusCode, Refused> {
    desks.kiosk(&headers).await?.touched(touched).await;
    Ok(StatusCode::NO_CONTENT)
}

async fn staff_came(State(desks): State<Desks>, headers: HeaderMap) -> Result<StatusCode, Refused> {
    desks.kiosk(&headers).await?.staff_came().await;
    Ok(StatusCode::NO_CONTENT)
}

#[derive(Deserialize)]
struct Second {
    ms: u64,
}

/// The terminal's kiosk begins anew, as after a restart of its machine, with seconds of this length.
async fn second(
    State(desks): State<Desks>,
    headers: HeaderMap,
    Json(Second { ms }): Json<Second>,
) -> Result<StatusCode, Refused> {
    let token = token(&headers)?;
    let mut known = desks.known.lock().await;
    if let Some(Desk::Kiosk(visits)) = known.remove(token) {
        visits.end().await; // its ledger is locked until then
    }
    let desk = desks.open(token, Duration::from_millis(ms)).await?;
    known.insert(token.to_owned(), desk);
    Ok(StatusCode::NO_CONTENT)
}

async fn standing(State(desks): State<Desks>, headers: HeaderMap) -> Result<impl IntoResponse, Refused> {
    Ok(follow(desks.counter(&headers).await?.shown()))
}

fn answer<T: Serialize>(answered: Result<T, OfflineError>) -> Response {
    match answered {
        Ok(answer) => Json(answer).into_response(),
        Err(error) => problem(StatusCode::CONFLICT, error.code(), &error.to_string()),
    }
}

async fn lease(
    State(desks): State<Desks>,
    headers: HeaderMap,
    Json(ask): Json<LeaseRequest>,
) -> Result<Response, Refused> {
    Ok(answer(desks.counter(&headers).await?.lease(ask).await))
}

async fn sell(State(desks): State<Desks>, headers: HeaderMap, Json(wish): Json<SaleWish>) -> Result<Response, Refused> {
    Ok(answer(desks.counter(&headers).await?.sell(wish).await))
}

#[derive(Deserialize)]
struct Close {
    lease_id: Uuid,
}

async fn close(
    State(desks): State<Desks>,
    headers: HeaderMap,
    Json(Close { lease_id }): Json<Close>,
) -> Result<Response, Refused> {
    Ok(answer(desks.counter(&headers).await?.close(lease_id).await))
}
