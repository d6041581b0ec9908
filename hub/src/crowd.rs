//! Synthetic fans: company for whoever looks at a demo. They know nothing but the public API.
//!
//! Invariants
//! - Bounded: so many fans, one request at a time each, a pause after each of them.
//! - What they do follows from the seed; when, from how fast the hub answers.
//! - Most of what they take they give back, so that the hall stays alive instead of selling out.

use std::time::Duration;

use altcha::{Challenge, Payload, SolveChallengeOptions};
use anyhow::{Context, bail};
use data_encoding::BASE64;
use futures_util::StreamExt;
use http::{Method, StatusCode, header};
use rand::{Rng, SeedableRng, rngs::StdRng, seq::IndexedRandom};
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// Who comes, and where to.
#[derive(Debug, Clone)]
pub struct Options {
    pub hub_url: String,
    /// The provider's address, where a card becomes a token.
    pub provider_url: String,
    pub publishable_key: String,
    pub fans: u32,
    pub seed: u64,
}

const PASSWORD: &str = "one of the crowd";
/// Fans arrive one after another: signing up costs a password hash each.
const ARRIVAL: Duration = Duration::from_millis(40);
const REQUEST_TIMEOUT: Duration = Duration::from_secs(20);

/// Sends the crowd in, and returns once `stop` was called and everybody has left.
pub async fn run(options: Options, stop: CancellationToken) {
    let mut crowd = JoinSet::new();
    for number in 0..options.fans {
        if stop.run_until_cancelled(tokio::time::sleep(ARRIVAL)).await.is_none() {
            break;
        }
        let (options, stop) = (options.clone(), stop.clone());
        crowd.spawn(async move {
            stop.run_until_cancelled(live(&options, number)).await;
        });
    }
    while crowd.join_next().await.is_some() {}
}

/// One fan, for as long as the demo lasts. Whatever goes wrong, they shrug and come again later.
async fn live(options: &Options, number: u32) {
    let mut whims = StdRng::seed_from_u64(options.seed.wrapping_add(number.into()));
    loop {
        if let Err(error) = visit(options, number, &mut whims).await {
            tracing::debug!(crowd.fan = number, error = format!("{error:#}"), "a synthetic fan gave up for now");
        }
        pause(&mut whims, 5.0..30.0).await;
    }
}

async fn pause(whims: &mut StdRng, seconds: std::ops::Range<f64>) {
    tokio::time::sleep(Duration::from_secs_f64(whims.random_range(seconds))).await;
}

/// Signs in, then goes from event to event until something fails.
async fn visit(options: &Options, number: u32, whims: &mut StdRng) -> anyhow::Result<()> {
    let mut browser = Browser::new(options)?;
    browser.enter(number).await?;
    loop {
        let events = browser.get("/api/events").await?;
        let on_sale: Vec<&Value> = events["events"]
            .as_array()
            .context("a list of events")?
            .iter()
            .filter(|event| event["sale"] == "on_sale" || (event["has_line"] == true && event["sale"] == "upcoming"))
            .collect();
        let Some((event, id)) = on_sale.choose(whims).and_then(|event| Some((event, event["id"].as_i64()?))) else {
            pause(whims, 10.0..30.0).await;
            continue;
        };
        if event["has_line"] == true {
            if stand_in_line(&mut browser, id, whims).await? {
                look_and_take(&mut browser, id, whims).await?;
                browser.delete(&format!("/api/events/{id}/queue/pass")).await?;
                browser.pass = None;
            }
        } else {
            look_and_take(&mut browser, id, whims).await?;
        }
        pause(whims, 3.0..20.0).await;
    }
}

/// How often somebody looks whether they are called before they give up for now; their place stays.
const LOOKS_MAX: u32 = 60;

/// Joins the line of an event and waits, as anybody would. `true`: called, and let in.
async fn stand_in_line(browser: &mut Browser, event: i64, whims: &mut StdRng) -> anyhow::Result<bool> {
    let queue = format!("/api/events/{event}/queue");
    if browser.get_if(&format!("{queue}/entry")).await?.is_none() && !join(browser, &queue, whims).await? {
        return Ok(false);
    }
    for _ in 0..LOOKS_MAX {
        let Some(entry) = browser.get_if(&format!("{queue}/entry")).await? else { return Ok(false) };
        if matches!(entry["state"].as_str(), Some("called" | "inside"))
            && let Some(pass) = browser.post(&format!("{queue}/enter"), json!({})).await?
        {
            browser.pass = pass["pass"].as_str().map(str::to_owned);
            return Ok(browser.pass.is_some());
        }
        pause(whims, 4.0..12.0).await;
    }
    Ok(false)
}

async fn join(browser: &mut Browser, queue: &str, whims: &mut StdRng) -> anyhow::Result<bool> {
    let session = browser.get("/api/session").await?;
    if session["account"]["email_checked"] == false {
        let Some(asked) = browser.post("/api/account/address-check", json!({})).await? else { return Ok(false) };
        // Where the link is only mailed, a synthetic fan can't follow it.
        let Some(code) = asked["link"].as_str().and_then(|link| link.split_once("code=")) else { return Ok(false) };
        browser.post("/api/account/address-check/confirm", json!({ "code": code.1 })).await?;
    }
    let Some(challenge) = browser.get_if(&format!("{queue}/challenge")).await? else { return Ok(false) };
    let solved = tokio::task::spawn_blocking(move || solved(challenge)).await??;
    let wish = json!({ "challenge": solved, "party_size": whims.random_range(1..=4) });
    Ok(browser.post(&format!("{queue}/entry"), wish).await?.is_some())
}

/// What a browser's widget does.
fn solved(challenge: Value) -> anyhow::Result<String> {
    let challenge: Challenge = serde_json::from_value(challenge)?;
    let solution = altcha::solve_challenge(SolveChallengeOptions::new(&challenge))?.context("it took too long")?;
    Ok(BASE64.encode(&serde_json::to_vec(&Payload { challenge, solution })?))
}

/// Opens the map of an event and, most times, takes seats while watching it.
async fn look_and_take(browser: &mut Browser, event: i64, whims: &mut StdRng) -> anyhow::Result<()> {
    let detail = browser.get(&format!("/api/events/{event}?seats=none")).await?;
    let seat_count = detail["plan"]["seat_count"].as_i64().context("a plan")?;
    let map = browser.watch(event).await?;
    // The map is read for as long as the visit lasts, as a page would.
    let watching = tokio::spawn(map.for_each(|_| async {}));
    let taken = take(browser, event, seat_count, whims).await;
    watching.abort();
    taken
}

async fn take(browser: &mut Browser, event: i64, seat_count: i64, whims: &mut StdRng) -> anyhow::Result<()> {
    pause(whims, 1.0..15.0).await;
    let wish = if whims.random_bool(0.7) {
        json!({ "best": { "count": whims.random_range(1..=4) } })
    } else {
        // A hand on the map: one to three seats whose numbers follow each other, somewhere.
        let first = whims.random_range(0..seat_count.max(3) - 2);
        json!({ "seats": (first..first + whims.random_range(1..=3)).collect::<Vec<_>>(), "fewer_ok": true })
    };
    let Some(hold) = browser.post(&format!("/api/events/{event}/hold"), wish).await? else {
        return Ok(()); // somebody was faster, or the limit is reached: look again later
    };
    let hold = hold["hold"]["id"].as_str().context("a hold")?.to_owned();
    pause(whims, 4.0..40.0).await;
    match whims.random_range(0..100) {
        0..55 => browser.delete(&format!("/api/holds/{hold}")).await?,
        55..75 => {} // forgotten: the seats come back when the time is up
        _ => pay(browser, &hold, whims).await?,
    }
    Ok(())
}

/// Test cards by their numbers, as the provider documents them.
const GOOD_CARD: &str = "4242424242424242";
const DECLINED_CARD: &str = "4000000000000002";

async fn pay(browser: &mut Browser, hold: &str, whims: &mut StdRng) -> anyhow::Result<()> {
    let Some(answer) = browser.post(&format!("/api/holds/{hold}/checkout"), json!({ "tickets": [] })).await? else {
        return Ok(());
    };
    let order = &answer["order"];
    let id = order["id"].as_str().context("an order")?.to_owned();
    pause(whims, 2.0..15.0).await;
    let card = if whims.random_bool(0.85) { GOOD_CARD } else { DECLINED_CARD };
    let wish = json!({
        "payment_method": browser.card(card).await?,
        "amount_minor": order["total_minor"],
        "currency": order["currency"],
    });
    browser.post(&format!("/api/orders/{id}/pay"), wish).await?;
    pause(whims, 3.0..8.0).await;
    let order = browser.get(&format!("/api/orders/{id}")).await?;
    if order["order"]["state"] == "open" {
        // Declined, or taking too long for this fan, who gives the seats back if they may.
        browser.delete(&format!("/api/holds/{hold}")).await?;
    }
    Ok(())
}

/// What a browser is, as far as the hub can tell.
struct Browser {
    http: reqwest::Client,
    options: Options,
    cookie: Option<String>,
    /// Of the waiting room that it came through.
    pass: Option<String>,
}

type Socket = tokio_tungstenite::WebSocketStream<tokio_tungstenite::MaybeTlsStream<tokio::net::TcpStream>>;

impl Browser {
    fn new(options: &Options) -> anyhow::Result<Self> {
        let http = reqwest::Client::builder().timeout(REQUEST_TIMEOUT).pool_max_idle_per_host(1).build()?;
        Ok(Self { http, options: options.clone(), cookie: None, pass: None })
    }

    /// Signs up; on a later day of the same demo, signs in.
    async fn enter(&mut self, number: u32) -> anyhow::Result<()> {
        let email = format!("crowd{number}@example.com");
        let account = json!({ "email": email, "name": format!("Fan {number}"), "password": PASSWORD });
        let mut response = self.send(Method::POST, "/api/accounts", Some(account)).await?;
        if response.status() == StatusCode::CONFLICT {
            let account = json!({ "email": email, "password": PASSWORD });
            response = self.send(Method::POST, "/api/session", Some(account)).await?;
        }
        let response = response.error_for_status()?;
        let cookie = response.headers().get(header::SET_COOKIE).context("a session's cookie")?.to_str()?;
        self.cookie = cookie.split(';').next().map(str::to_owned);
        Ok(())
    }

    async fn send(&self, method: Method, path: &str, body: Option<Value>) -> reqwest::Result<reqwest::Response> {
        let mut request = self
            .http
            .request(method, format!("{}{path}", self.options.hub_url))
            .header("sec-fetch-site", "same-origin")
            .header("idempotency-key", uuid::Uuid::new_v4().to_string());
        if let Some(cookie) = &self.cookie {
            request = request.header(header::COOKIE, cookie);
        }
        if let Some(pass) = &self.pass {
            request = request.header("fullhouse-pass", pass);
        }
        if let Some(body) = body {
            request = request.json(&body);
        }
        request.send().await
    }

    async fn get(&self, path: &str) -> anyhow::Result<Value> {
        Ok(self.send(Method::GET, path, None).await?.error_for_status()?.json().await?)
    }

    /// `None` if there is nothing, or not for them.
    async fn get_if(&self, path: &str) -> anyhow::Result<Option<Value>> {
        let response = self.send(Method::GET, path, None).await?;
        match response.status() {
            StatusCode::UNAUTHORIZED => bail!("the session has ended"),
            status if status.is_client_error() => Ok(None),
            _ => Ok(Some(response.error_for_status()?.json().await?)),
        }
    }

    /// The answer, or `None` if the hub had a reason to refuse that a fan can live with.
    async fn post(&self, path: &str, body: Value) -> anyhow::Result<Option<Value>> {
        let response = self.send(Method::POST, path, Some(body)).await?;
        match response.status() {
            status if status.is_success() => Ok(Some(response.json().await?)),
            StatusCode::UNAUTHORIZED => bail!("the session has ended"),
            status if status.is_client_error() => Ok(None),
            status => bail!("{path} answered {status}"),
        }
    }

    async fn delete(&self, path: &str) -> anyhow::Result<()> {
        self.send(Method::DELETE, path, None).await?; // a hold that has ended already is fine, too
        Ok(())
    }

    /// The socket of an event's map, from its head on.
    async fn watch(&self, event: i64) -> anyhow::Result<Socket> {
        let host = self.options.hub_url.strip_prefix("http://").context("a demo's hub speaks http")?;
        let url = format!("ws://{host}/api/events/{event}/live");
        Ok(tokio_tungstenite::connect_async(url).await?.0)
    }

    /// Makes a token of a card at the provider: its number never reaches the hub.
    async fn card(&self, number: &str) -> anyhow::Result<String> {
        let card = [
            ("type", "card"),
            ("card[number]", number),
            ("card[exp_month]", "12"),
            ("card[exp_year]", "2040"),
            ("card[cvc]", "123"),
        ];
        let answer: Value = self
            .http
            .post(format!("{}/v1/payment_methods", self.options.provider_url))
            .bearer_auth(&self.options.publishable_key)
            .form(&card)
            .send()
            .await?
            .error_for_status()?
            .json()
            .await?;
        Ok(answer["id"].as_str().context("a payment method")?.to_owned())
    }
}
