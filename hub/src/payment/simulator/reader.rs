//! Card readers, driven by the server: told to collect a payment, told to stop, and a card that comes or does not.
//!
//! Invariants
//! - Telling a reader to collect moves nothing: its intent stays as it is until a card was presented.
//! - What a reader's action says is a hint; the intent is the truth.
//! - A reader collects one payment at a time.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{
    api::Reply,
    cards::{self, Behaviour},
    params::Params,
    rules::{Effect, How, ReaderEffect},
    world::{AUTHORISATION_PRESENT_MS, Method, Millis, World},
};

/// A reader that an id of this kind names is there as soon as it is named.
const PREFIX: &str = "tmr_";

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Reader {
    pub id: String,
    pub action: Option<Action>,
    /// It can't be reached, until somebody switches it on.
    #[serde(default)]
    pub offline: bool,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Action {
    pub intent: String,
    /// in_progress, succeeded, failed
    pub status: String,
    pub failure_code: Option<String>,
    /// When a card is presented by itself.
    pub tap_at: Option<Millis>,
    pub decline: Option<String>,
    pub captures_at_once: bool,
}

impl Reader {
    fn is_busy(&self) -> bool {
        self.action.as_ref().is_some_and(|action| action.status == "in_progress")
    }

    pub fn render(&self) -> Value {
        let action = self.action.as_ref().map(|action| {
            json!({
                "type": "process_payment_intent", "status": action.status, "failure_code": action.failure_code,
                "failure_message": action.failure_code.as_ref().map(|_| "The card was not accepted."),
                "process_payment_intent": {"payment_intent": action.intent},
            })
        });
        json!({
            "id": self.id, "object": "terminal.reader", "action": action, "device_type": "simulated_wisepos_e",
            "label": self.id, "livemode": false,
            "status": if self.offline { "offline" } else { "online" }, "metadata": {},
        })
    }
}

fn refused(code: &str, message: &str) -> Reply {
    let mut reply = Reply::invalid(400, code, None, message);
    reply.began = true;
    reply
}

fn unreachable(world: &World, id: &str, effect: &Effect) -> Option<Reply> {
    let offline = effect.reader.as_ref().is_some_and(|reader| reader.offline)
        || world.readers.get(id).is_some_and(|reader| reader.offline);
    offline.then(|| refused("terminal_reader_offline", "The reader can't be reached."))
}

fn reader<'w>(world: &'w mut World, id: &str) -> Result<&'w mut Reader, Reply> {
    if !id.starts_with(PREFIX) {
        return Err(Reply::missing("reader", id));
    }
    Ok(world.readers.entry(id.to_owned()).or_insert_with(|| Reader { id: id.to_owned(), ..Reader::default() }))
}

pub fn list(world: &World) -> Reply {
    let data: Vec<Value> = world.readers.values().map(Reader::render).collect();
    Reply::ok(json!({"object": "list", "url": "/v1/terminal/readers", "has_more": false, "data": data}))
}

pub fn get(world: &mut World, id: &str) -> Reply {
    match reader(world, id) {
        Ok(reader) => Reply::ok(reader.render()),
        Err(reply) => reply,
    }
}

/// Somebody switches the reader off, or on.
pub fn switch(world: &mut World, id: &str, offline: bool) -> bool {
    let Ok(reader) = reader(world, id) else { return false };
    reader.offline = offline;
    true
}

/// Tells the reader to collect a payment. Answers at once: nothing is authorised by that.
pub fn process(world: &mut World, id: &str, params: &Params, effect: &Effect) -> Reply {
    if let Err(reply) = reader(world, id) {
        return reply;
    }
    if let Some(reply) = unreachable(world, id, effect) {
        return reply;
    }
    let intent = params.get("payment_intent").unwrap_or_default();
    let Some(at) = world.intent(intent) else { return Reply::missing("payment_intent", intent) };
    let intent = &world.intents[at];
    if !intent.is_at_reader() || !matches!(&*intent.status, "requires_payment_method" | "requires_confirmation") {
        return Reply::unexpected(intent, "collect at a reader");
    }
    let ReaderEffect { tap_after_ms, decline, captures_at_once, .. } = effect.reader.clone().unwrap_or_default();
    let action = Action {
        intent: intent.id.clone(),
        status: "in_progress".into(),
        failure_code: None,
        tap_at: tap_after_ms.map(|ms| world.now() + ms),
        decline,
        captures_at_once,
    };
    match reader(world, id) {
        Ok(reader) if reader.is_busy() => refused("terminal_reader_busy", "The reader is collecting another payment."),
        Ok(reader) => {
            reader.action = Some(action);
            Reply::ok(reader.render())
        }
        Err(reply) => reply,
    }
}

/// Tells the reader to stop. A card that was presented already has won: only the intent says so.
pub fn cancel_action(world: &mut World, id: &str, effect: &Effect) -> Reply {
    if let Err(reply) = reader(world, id) {
        return reply;
    }
    if let Some(reply) = unreachable(world, id, effect) {
        return reply;
    }
    if effect.reader.as_ref().is_some_and(|reader| reader.cancel_race) {
        present_card(world, id, None, &effect.how());
    }
    match reader(world, id) {
        Ok(reader) => {
            reader.action = None;
            Reply::ok(reader.render())
        }
        Err(reply) => reply,
    }
}

/// A card is held to the reader: the provider's own helper for tests.
pub fn present(world: &mut World, id: &str, params: &Params, effect: &Effect) -> Reply {
    match reader(world, id) {
        Err(reply) => return reply,
        Ok(reader) if !reader.is_busy() => return refused("terminal_reader_not_in_use", "Nothing is to be collected."),
        Ok(_) => {}
    }
    let number = params.get("card_present[number]").or_else(|| params.get("interac_present[number]"));
    let decline = match number.map(cards::by_number) {
        Some(None) => return refused("incorrect_number", "That is not the number of a test card."),
        Some(Some(card)) => match card.behaviour {
            Behaviour::Decline(code) => Some(code),
            _ => None,
        },
        None => None,
    };
    present_card(world, id, decline, &effect.how());
    get(world, id)
}

/// The card decides: what is collected is authorised, or declined. Without anything to collect nothing happens.
fn present_card(world: &mut World, id: &str, decline: Option<&str>, how: &How) {
    let Some(action) = world.readers.get(id).filter(|r| r.is_busy()).and_then(|r| r.action.clone()) else { return };
    let Some(at) = world.intent(&action.intent) else { return };
    let decline = decline.map(str::to_owned).or(action.decline);
    // An intent that was cancelled meanwhile takes no card.
    let takes = matches!(&*world.intents[at].status, "requires_payment_method" | "requires_confirmation");
    let failure = match decline {
        _ if !takes => Some("payment_intent_unexpected_state".to_owned()),
        Some(code) => {
            world.decline(at, "card_declined", Some(&code), how);
            Some("card_declined".to_owned())
        }
        None => {
            let method = world.id("pm");
            world.methods.insert(method.clone(), Method { last4: "4242".into(), token: "card_present".into() });
            let intent = &mut world.intents[at];
            intent.payment_method = Some(method);
            intent.confirms += 1;
            let amount = intent.amount;
            world.authorise(at, amount, AUTHORISATION_PRESENT_MS, how);
            if action.captures_at_once && world.intents[at].status == "requires_capture" {
                world.capture(at, amount, how);
            }
            None
        }
    };
    let status = if failure.is_some() { "failed" } else { "succeeded" };
    if let Some(reader) = world.readers.get_mut(id) {
        if let Some(action) = &mut reader.action {
            action.status = status.into();
            action.failure_code = failure;
        }
        let object = reader.render();
        world.event(&format!("terminal.reader.action_{status}"), object, &how.webhook);
    }
}

impl World {
    /// Cards that were to be presented by now.
    pub fn settle_readers(&mut self, now: Millis) {
        let due = |reader: &&Reader| {
            reader.is_busy() && reader.action.as_ref().and_then(|a| a.tap_at).is_some_and(|at| at <= now)
        };
        let due: Vec<(String, String)> = self
            .readers
            .values()
            .filter(due)
            .map(|r| (r.id.clone(), r.action.as_ref().map_or(String::new(), |a| a.intent.clone())))
            .collect();
        for (id, intent) in due {
            let how = self.intent(&intent).map(|at| self.hook("present", at)).unwrap_or_default();
            present_card(self, &id, None, &how);
        }
    }
}
