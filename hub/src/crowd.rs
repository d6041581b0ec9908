//! Synthetic fans: company for whoever looks at a demo. They know nothing but the public API.
//!
//! Invariants
//! - Bounded: so many fans, one request at a time each, a pause after each of them.
//! - What they do follows from the seed; when, from how fast the hub answers.
//! - Most of what they take they give back, so that the hall stays alive instead of selling out.

use std::time::Duration;

use anyhow::{Context, bail};
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
            .filter(|event| event["sale"] == "on_sale")
            .collect();
        let Some(event) = on_sale.choose(whims).and_then(|event| event["id"].as_i64()) else {
            pause(whims, 10.0..30.0).await;
            continue;
        };
        look_and_take(&mut browser, event, whims).await?;
        pause(whims, 3.0..20.0).await;
    }
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
}

type Socket = tokio_tungstenite::WebSocketStream<tokio_tungstenite::MaybeTlsStream<tokio::net::TcpStream>>;

impl Browser {
    fn new(options: &Options) -> anyhow::Result<Self> {
        let http = reqwest::Client::builder().timeout(REQUEST_TIMEOUT).pool_max_idle_per_host(1).build()?;
        Ok(Self { http, options: options.clone(), cookie: None })
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
        if let Some(body) = body {
            request = request.json(&body);
        }
        request.send().await
    }

    async fn get(&self, path: &str) -> anyhow::Result<Value> {
        Ok(self.send(Method::GET, path, None).await?.error_for_status()?.json().await?)
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
