//! All that a screen can call. Which window may call which stands in `capabilities/`; errors are codes, never sentences.

use std::sync::PoisonError;

use fullhouse_box_office::{
    clock::Boottime,
    print::{Decision, End, order::Paid},
    terminal::{
        Address, Ask, AskError, Reach, Record, Relay, Role, TokenStore,
        exit::{self, ExitError},
        feed::{self, FeedEvent},
        offline::{self, Offline, OfflineError, SaleWish, SoldHere},
        papers::{Doubt, Language, PaperError, Printed},
        visits::{self, Touched, Visits},
    },
};
use fullhouse_protocol::lease::LeaseRequest;
use serde::Serialize;
use serde_json::{Value, json};
use tauri::{
    AppHandle, State,
    ipc::{Channel, InvokeResponseBody, Response},
};
use tokio::sync::watch;
use uuid::Uuid;

use crate::{
    shell::{Shell, Terminal, Work},
    windows,
};

/// What the enrolment screen proposes.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Proposed {
    pub hub: Option<String>,
    pub code: Option<String>,
}

/// A refusal: a code that a screen acts on.
#[derive(Debug, Serialize)]
pub struct Refusal {
    code: String,
    status: u16,
    detail: String,
}

impl Refusal {
    fn new(code: &str, detail: impl std::fmt::Display) -> Self {
        Self { code: code.to_owned(), status: 0, detail: detail.to_string() }
    }
}

impl From<AskError> for Refusal {
    fn from(error: AskError) -> Self {
        let code = match error {
            AskError::NotAllowed => "not_allowed",
            AskError::NoAnswer => "no_answer",
            AskError::TooLarge => "too_large",
            AskError::Refused { status, code, detail } => return Self { code, status, detail },
        };
        Self::new(code, error)
    }
}

impl From<ExitError> for Refusal {
    fn from(error: ExitError) -> Self {
        let code = match error {
            ExitError::NotAPin => "pin_invalid",
            ExitError::Wrong => "pin_wrong",
            ExitError::Wait { .. } => "pin_wait",
            ExitError::None => "pin_none",
            ExitError::Hash => "broken",
        };
        let detail = if let ExitError::Wait { seconds } = error { seconds.to_string() } else { error.to_string() };
        Self::new(code, detail)
    }
}

impl From<PaperError> for Refusal {
    fn from(error: PaperError) -> Self {
        match error {
            PaperError::Hub(error) => error.into(),
            error => Self::new("printer", error),
        }
    }
}

impl From<OfflineError> for Refusal {
    fn from(error: OfflineError) -> Self {
        Self::new(error.code(), &error)
    }
}

impl From<std::io::Error> for Refusal {
    fn from(error: std::io::Error) -> Self {
        Self::new("disk", error)
    }
}

impl From<tauri::Error> for Refusal {
    fn from(error: tauri::Error) -> Self {
        Self::new("broken", error)
    }
}

type Outcome<T> = Result<T, Refusal>;

fn terminal(shell: &Shell) -> Outcome<Terminal> {
    shell.terminal().ok_or_else(|| Refusal::new("not_enrolled", "this machine is no terminal"))
}

/// Who this machine is, without anything secret.
#[derive(Debug, Serialize)]
pub struct About {
    version: &'static str,
    terminal: Option<Shown>,
    proposed: Proposed,
    signed_in: bool,
    /// Tickets come out of a printer; else they are files in the terminal's folder.
    on_paper: bool,
}

#[derive(Debug, Serialize)]
struct Shown {
    terminal_id: Uuid,
    name: String,
    role: Role,
    attended: bool,
    hub: String,
    has_exit_pin: bool,
}

impl From<Record> for Shown {
    fn from(record: Record) -> Self {
        Self {
            terminal_id: record.terminal_id,
            name: record.name,
            role: record.role,
            attended: record.attended,
            hub: record.hub.into(),
            has_exit_pin: record.exit_pin.is_some(),
        }
    }
}

#[tauri::command]
pub fn about(shell: State<'_, Shell>) -> About {
    let terminal = shell.terminal();
    About {
        version: env!("CARGO_PKG_VERSION"),
        signed_in: terminal.as_ref().is_some_and(|terminal| terminal.relay.is_signed_in()),
        on_paper: terminal.as_ref().is_some_and(|terminal| terminal.papers.on_paper()),
        terminal: terminal.map(|terminal| terminal.record.into()),
        proposed: shell.proposed.clone(),
    }
}

/// Makes this machine a terminal of the hub by a code. The window that it then shows is opened by [`begin`].
#[tauri::command]
pub async fn enrol(shell: State<'_, Shell>, hub: String, code: String) -> Outcome<Value> {
    let hub = Address::parse(&hub).map_err(|error| Refusal::new("address_invalid", error))?;
    let code = code.trim().to_uppercase();
    let key = {
        let mut sent = shell.sent.lock().unwrap_or_else(PoisonError::into_inner);
        match &*sent {
            Some((last, key)) if *last == code => *key,
            _ => sent.insert((code.clone(), Uuid::new_v4())).1,
        }
    };
    let stranger = Relay::of_stranger(hub.clone()).map_err(|error| Refusal::new("broken", error))?;
    let enrolled = stranger.enrol(&code, key).await?;
    let record = Record {
        hub: hub.clone(),
        terminal_id: enrolled.terminal_id,
        name: enrolled.name,
        role: enrolled.role,
        attended: enrolled.attended,
        exit_pin: None,
    };
    // The token first: a record without one is a machine that is not enrolled.
    shell.tokens().keep(&enrolled.token)?;
    shell.home.keep(&record)?;
    shell.set(Some(Terminal::begin(&shell.home, record.clone(), enrolled.token)?));
    Ok(json!(Shown::from(record)))
}

/// Opens the terminal's own window. A kiosk takes the PIN by which staff will leave it.
#[tauri::command]
pub async fn begin(app: AppHandle, shell: State<'_, Shell>, exit_pin: Option<String>) -> Outcome<()> {
    let mut terminal = terminal(&shell)?;
    if terminal.record.role == Role::Kiosk && terminal.record.exit_pin.is_none() {
        terminal.record.exit_pin = Some(exit::hash(&exit_pin.unwrap_or_default())?);
        shell.home.keep(&terminal.record)?;
        shell.set(Some(terminal));
    }
    Ok(windows::open(&app)?)
}

/// Forgets an enrolment that the hub refuses, so that the machine can be enrolled anew. One that still works stays.
#[tauri::command]
pub async fn enrol_anew(app: AppHandle, shell: State<'_, Shell>) -> Outcome<()> {
    match terminal(&shell)?.relay.terminal().await {
        Err(AskError::Refused { status: 401, .. }) => {}
        Ok(_) => return Err(Refusal::new("still_enrolled", "the hub knows this terminal")),
        Err(error) => return Err(error.into()),
    }
    shell.home.forget()?;
    shell.tokens().forget()?;
    shell.set(None);
    Ok(windows::open(&app)?)
}

/// Asks the hub, in the name of whoever is signed in, or of whoever approves it. The answer: status and `Retry-After` in seconds, two bytes each (little endian), then the body.
#[tauri::command]
pub async fn ask(shell: State<'_, Shell>, ask: Ask, approved: Option<bool>) -> Outcome<Response> {
    let relay = terminal(&shell)?.relay;
    let answer = if approved == Some(true) { relay.ask_approved(ask).await? } else { relay.ask(ask).await? };
    let mut bytes = Vec::with_capacity(4 + answer.body.len());
    bytes.extend_from_slice(&answer.status.to_le_bytes());
    bytes.extend_from_slice(&answer.retry_after_s.to_le_bytes());
    bytes.extend_from_slice(&answer.body);
    Ok(Response::new(bytes))
}

/// Follows a map: `{"open":true}`, frames as bytes, and at the end `{"close":code,"reason":…}`.
#[tauri::command]
pub fn open_feed(shell: State<'_, Shell>, id: u32, target: String, events: Channel<InvokeResponseBody>) -> Outcome<()> {
    let relay = terminal(&shell)?.relay;
    let tell = move |event| {
        let body = match event {
            FeedEvent::Open => InvokeResponseBody::Json(json!({ "open": true }).to_string()),
            FeedEvent::Frame(bytes) => InvokeResponseBody::Raw(bytes),
            FeedEvent::Closed { code, reason } => {
                InvokeResponseBody::Json(json!({ "close": code, "reason": reason }).to_string())
            }
        };
        events.send(body).is_ok()
    };
    let task = tauri::async_runtime::spawn(async move {
        let mut tell = tell;
        if feed::follow(relay, target, &mut tell).await.is_err() {
            tell(FeedEvent::Closed { code: 4001, reason: String::new() });
        }
    });
    shell.keep_feed(id, task);
    Ok(())
}

#[tauri::command]
pub fn close_feed(shell: State<'_, Shell>, id: u32) {
    shell.close_feed(id);
}

/// Tells whether the hub can be reached, now and whenever that changes.
#[tauri::command]
pub fn follow_reach(shell: State<'_, Shell>, reach: Channel<Option<bool>>) -> Outcome<()> {
    let mut known = terminal(&shell)?.relay.reach();
    tauri::async_runtime::spawn(async move {
        loop {
            let now = match *known.borrow_and_update() {
                Reach::Unknown => None,
                Reach::Up => Some(true),
                Reach::Down => Some(false),
            };
            if reach.send(now).is_err() || known.changed().await.is_err() {
                return;
            }
        }
    });
    Ok(())
}

/// Signs a person in at this terminal: who it is.
#[tauri::command]
pub async fn sign_in(
    shell: State<'_, Shell>,
    name: String,
    password: Option<String>,
    pin: Option<String>,
) -> Outcome<Value> {
    Ok(terminal(&shell)?.relay.sign_in(credentials(&name, password, pin)).await?)
}

fn credentials(name: &str, password: Option<String>, pin: Option<String>) -> Value {
    match (password, pin) {
        (_, Some(pin)) => json!({ "name": name, "pin": pin }),
        (password, None) => json!({ "name": name, "password": password.unwrap_or_default() }),
    }
}

/// Signs in somebody who approves the one request that follows, beside whoever is signed in.
#[tauri::command]
pub async fn approve(
    shell: State<'_, Shell>,
    name: String,
    password: Option<String>,
    pin: Option<String>,
) -> Outcome<Value> {
    Ok(terminal(&shell)?.relay.approve(credentials(&name, password, pin)).await?)
}

#[tauri::command]
pub async fn end_approval(shell: State<'_, Shell>) -> Outcome<()> {
    terminal(&shell)?.relay.end_approval().await;
    Ok(())
}

#[tauri::command]
pub async fn sign_out(shell: State<'_, Shell>) -> Outcome<()> {
    terminal(&shell)?.relay.sign_out().await;
    Ok(())
}

/// Ends the program of a kiosk, for whoever knows its PIN; never in the middle of a payment.
#[tauri::command]
pub async fn leave_kiosk(app: AppHandle, shell: State<'_, Shell>, pin: String) -> Outcome<()> {
    let visits = knows_pin(&shell, &pin)?;
    if visits.is_paying() {
        return Err(Refusal::new("paying", "a payment is under way"));
    }
    shell.leave();
    app.exit(0);
    Ok(())
}

/// Staff have come, and seen to what they were called for: it is in service again.
#[tauri::command]
pub async fn serve_again(shell: State<'_, Shell>, pin: String) -> Outcome<Vec<visits::Call>> {
    Ok(knows_pin(&shell, &pin)?.staff_came().await)
}

fn knows_pin(shell: &Shell, pin: &str) -> Outcome<Visits> {
    let visits = visits(shell)?;
    let kept = terminal(shell)?.record.exit_pin;
    shell.exit.lock().unwrap_or_else(PoisonError::into_inner).open(kept.as_deref(), pin, &Boottime)?;
    Ok(visits)
}

fn visits(shell: &Shell) -> Outcome<Visits> {
    match terminal(shell)?.work {
        Work::Kiosk(visits) => Ok(visits),
        Work::Counter(_) => Err(Refusal::new("not_allowed", "this is no kiosk")),
    }
}

fn offline(shell: &Shell) -> Outcome<Offline> {
    match terminal(shell)?.work {
        Work::Counter(offline) => Ok(offline),
        Work::Kiosk(_) => Err(Refusal::new("not_allowed", "this is no counter")),
    }
}

/// What was touched on a kiosk's glass.
#[tauri::command]
pub async fn touched(shell: State<'_, Shell>, what: Touched) -> Outcome<()> {
    visits(&shell)?.touched(what).await;
    Ok(())
}

/// What a kiosk shows, now and whenever that changes.
#[tauri::command]
pub fn follow_visit(shell: State<'_, Shell>, shown: Channel<visits::Shown>) -> Outcome<()> {
    follow(visits(&shell)?.shown(), shown);
    Ok(())
}

/// How a counter stands that sells without a network: what it has leased, what it owes.
#[tauri::command]
pub fn follow_till(shell: State<'_, Shell>, shown: Channel<offline::Shown>) -> Outcome<()> {
    follow(offline(&shell)?.shown(), shown);
    Ok(())
}

fn follow<T: Clone + Serialize + Send + Sync + 'static>(mut known: watch::Receiver<T>, tell: Channel<T>) {
    tauri::async_runtime::spawn(async move {
        loop {
            let now = known.borrow_and_update().clone();
            if tell.send(now).is_err() || known.changed().await.is_err() {
                return;
            }
        }
    });
}

/// Leases seats to sell without a network.
#[tauri::command]
pub async fn lease(shell: State<'_, Shell>, ask: LeaseRequest) -> Outcome<Uuid> {
    Ok(offline(&shell)?.lease(ask).await?)
}

/// Sells leased seats for cash, and prints them.
#[tauri::command]
pub async fn sell_leased(shell: State<'_, Shell>, wish: SaleWish) -> Outcome<SoldHere> {
    Ok(offline(&shell)?.sell(wish).await?)
}

#[tauri::command]
pub async fn close_lease(shell: State<'_, Shell>, lease_id: Uuid) -> Outcome<()> {
    Ok(offline(&shell)?.close(lease_id).await?)
}

/// Prints the tickets of an order that are not on paper yet: what became of each.
#[tauri::command]
pub async fn print_order(shell: State<'_, Shell>, order: Uuid, language: String) -> Outcome<Vec<Printed>> {
    let Terminal { relay, papers, .. } = terminal(&shell)?;
    let order = relay.order(order).await?;
    Ok(papers.print(&relay, order, Language::read(&language).unwrap_or_default()).await?)
}

/// Prints of which nobody knows whether they are on paper.
#[tauri::command]
pub fn print_doubts(shell: State<'_, Shell>) -> Outcome<Vec<Doubt>> {
    Ok(terminal(&shell)?.papers.doubts())
}

/// What a person found of one; `replaced_by` is the ticket that the hub has put in its place.
#[tauri::command]
pub async fn decide_print(
    shell: State<'_, Shell>,
    job: Uuid,
    came_out: bool,
    replaced_by: Option<Uuid>,
    by: String,
) -> Outcome<()> {
    let Terminal { relay, papers, .. } = terminal(&shell)?;
    let decision = match (came_out, replaced_by) {
        (true, _) => Decision::CameOut,
        (false, Some(by)) => Decision::Replaced { by },
        (false, None) => Decision::NotNeeded,
    };
    papers.decide(job, decision, &by).map_err(PaperError::from)?;
    Ok(papers.report(&relay).await?)
}

/// Opens the drawer for cash; false if it did not.
#[tauri::command]
pub async fn open_drawer(shell: State<'_, Shell>) -> Outcome<bool> {
    Ok(terminal(&shell)?.papers.kick().await?.is_ok())
}

/// A receipt of an order: handed over in cash and handed back, in minor units.
#[tauri::command]
pub async fn print_receipt(
    shell: State<'_, Shell>,
    order: Uuid,
    cash_minor: i64,
    change_minor: i64,
    clerk: Option<String>,
) -> Outcome<End> {
    let Terminal { record, relay, papers, .. } = terminal(&shell)?;
    let order = relay.order(order).await?;
    Ok(papers.receipt(&order, &Paid { cash_minor, change_minor }, &record.name, clerk).await?)
}

/// The report of a shift of this terminal's; none named: X, of the open one.
#[tauri::command]
pub async fn print_report(shell: State<'_, Shell>, shift: Option<Uuid>) -> Outcome<End> {
    let Terminal { relay, papers, .. } = terminal(&shell)?;
    let shift = relay.shift(shift).await?;
    Ok(papers.report_of(&shift).await?)
}

#[tauri::command]
pub async fn print_test_page(shell: State<'_, Shell>) -> Outcome<End> {
    Ok(terminal(&shell)?.papers.test_page().await?)
}

/// Follows what the scanner reads; null: something that can't be read.
#[tauri::command]
pub fn follow_scanner(shell: State<'_, Shell>, scans: Channel<Option<String>>) {
    shell.follow_scanner(scans);
}

/// A customer sees some seats; so much is no sale.
const CUSTOMER_VIEW_MAX: usize = 64 * 1024;

/// Opens the screen that is turned to the customer, or closes it.
#[tauri::command]
pub async fn turn_customer(app: AppHandle, on: bool) -> Outcome<()> {
    Ok(windows::turn_customer(&app, on)?)
}

/// What the customer sees from now on.
#[tauri::command]
pub fn show_customer(shell: State<'_, Shell>, view: Value) -> Outcome<()> {
    if view.to_string().len() > CUSTOMER_VIEW_MAX {
        return Err(Refusal::new("too_large", "so much is no sale"));
    }
    shell.customer.send_replace(view);
    Ok(())
}

/// Tells the customer's screen what to show, from what is shown now on.
#[tauri::command]
pub fn follow_customer(shell: State<'_, Shell>, shown: Channel<Value>) {
    follow(shell.customer.subscribe(), shown);
}
