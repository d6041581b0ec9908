//! The provider's operations, as pure steps over the world: parameters in, status and body out.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{
    cards::{self, Behaviour},
    params::Params,
    rules::{Effect, How, Outcome},
    world::{AUTHORISATION_MS, Intent, Method, Refund, World},
};

pub struct Reply {
    pub status: u16,
    pub body: Value,
    /// Validation failed before the work began: such an answer is not kept under an idempotency key.
    pub began: bool,
}

impl Reply {
    pub fn ok(body: Value) -> Self {
        Self { status: 200, body, began: true }
    }

    /// The request itself is wrong.
    pub fn invalid(status: u16, code: &str, param: Option<&str>, message: &str) -> Self {
        let error = json!({"type": "invalid_request_error", "code": code, "param": param, "message": message});
        Self { status, body: json!({"error": error}), began: false }
    }

    /// The object is not in a state for this.
    pub fn unexpected(intent: &Intent, verb: &str) -> Self {
        let error = json!({
            "type": "invalid_request_error", "code": "payment_intent_unexpected_state",
            "message": format!("You cannot {verb} this PaymentIntent because it has a status of {}.", intent.status),
            "payment_intent": intent.render(),
        });
        Self { status: 400, body: json!({"error": error}), began: true }
    }

    pub fn missing(what: &str, id: &str) -> Self {
        let status = if what == "payment_method" { 400 } else { 404 };
        Self::invalid(status, "resource_missing", Some(what), &format!("No such {what}: '{id}'"))
    }
}

pub fn create(world: &mut World, params: &Params, effect: &Effect, public_url: &str) -> Reply {
    let amount = match params.integer("amount") {
        Ok(Some(amount)) if (1..=99_999_999).contains(&amount) => amount,
        Ok(None) => {
            return Reply::invalid(400, "parameter_missing", Some("amount"), "Missing required param: amount.");
        }
        Ok(Some(amount)) if amount > 99_999_999 => {
            return Reply::invalid(400, "amount_too_large", Some("amount"), "Amount must be no more than 99999999.");
        }
        _ => return Reply::invalid(400, "parameter_invalid_integer", Some("amount"), "Invalid positive integer"),
    };
    let currency = match params.get("currency") {
        None => return Reply::invalid(400, "parameter_missing", Some("currency"), "Missing required param: currency."),
        Some(c) if c.len() == 3 && c.bytes().all(|b| b.is_ascii_alphabetic()) => c.to_ascii_lowercase(),
        Some(c) => return Reply::invalid(400, "invalid_currency", Some("currency"), &format!("Invalid currency: {c}")),
    };
    let payment_method = match params.get("payment_method").map(|m| (m, method(world, m))) {
        None => None,
        Some((_, Some(m))) => Some(m),
        Some((id, None)) => return Reply::missing("payment_method", id),
    };
    let types: Vec<String> = params.all("payment_method_types").map(str::to_owned).collect();
    let types = if types.is_empty() { vec!["card".into()] } else { types };
    if let Some(unknown) = types.iter().find(|t| !matches!(&***t, "card" | "card_present" | "interac_present")) {
        let message = format!("The payment method type {unknown} is invalid.");
        return Reply::invalid(400, "parameter_invalid", Some("payment_method_types"), &message);
    }
    let id = world.id("pi");
    let secret = world.id(&format!("{id}_secret"));
    let manual = |name| params.get(name) == Some("manual");
    world.intents.push(Intent {
        id,
        secret,
        created: world.now(),
        amount,
        currency,
        status: if payment_method.is_some() { "requires_confirmation" } else { "requires_payment_method" }.into(),
        manual_capture: manual("capture_method"),
        manual_confirmation: manual("confirmation_method"),
        types,
        payment_method,
        metadata: metadata(params),
        amount_capturable: 0,
        amount_received: 0,
        refunded: 0,
        last_error: None,
        return_url: None,
        authenticated: false,
        challenge: None,
        challenge_due: None,
        charge: None,
        expires_at: None,
        processing_until: None,
        cancellation_reason: None,
        confirms: 0,
        captures: 0,
    });
    let at = world.intents.len() - 1;
    world.intent_event(at, "created", &effect.how());
    if params.get("confirm") == Some("true") {
        return confirm_at(world, at, params, effect, public_url);
    }
    Reply::ok(world.intents[at].render())
}

/// A token of a test card becomes a method of its own at first use.
fn method(world: &mut World, id: &str) -> Option<String> {
    if !world.methods.contains_key(id) {
        let card = cards::by_token(id)?;
        let last4 = card.number[card.number.len() - 4..].to_owned();
        world.methods.insert(id.into(), Method { last4, token: id.into() });
    }
    Some(id.to_owned())
}

/// From the card form. Only test cards are taken: a real number has no business here.
pub fn payment_method(world: &mut World, params: &Params) -> Reply {
    let number: String = params.get("card[number]").unwrap_or_default().chars().filter(|c| *c != ' ').collect();
    let Some(card) = cards::by_number(&number) else {
        let code = if cards::luhn(&number) { "live_mode_test_card" } else { "incorrect_number" };
        let error = json!({"type": "card_error", "code": code, "param": "number",
            "message": "Your card number is not that of a test card."});
        return Reply { status: 402, body: json!({"error": error}), began: true };
    };
    let id = world.id("pm");
    let last4 = number[number.len() - 4..].to_owned();
    let token = card.token.to_owned();
    world.methods.insert(id.clone(), Method { last4: last4.clone(), token });
    Reply::ok(json!({"id": id, "object": "payment_method", "type": "card", "livemode": false,
        "card": {"brand": "visa", "last4": last4}}))
}

pub fn confirm(world: &mut World, id: &str, params: &Params, effect: &Effect, public_url: &str) -> Reply {
    let Some(at) = world.intent(id) else { return Reply::missing("payment_intent", id) };
    if let Some(given) = params.get("payment_method") {
        match method(world, given) {
            Some(m) => world.intents[at].payment_method = Some(m),
            None => return Reply::missing("payment_method", given),
        }
    }
    confirm_at(world, at, params, effect, public_url)
}

fn confirm_at(world: &mut World, at: usize, params: &Params, effect: &Effect, public_url: &str) -> Reply {
    let (how, now) = (effect.how(), world.now());
    let intent = &mut world.intents[at];
    if !matches!(&*intent.status, "requires_confirmation" | "requires_payment_method") {
        return Reply::unexpected(intent, "confirm");
    }
    if intent.is_at_reader() {
        return Reply::unexpected(intent, "confirm without a reader");
    }
    let Some(method) = intent.payment_method.as_ref().and_then(|m| world.methods.get(m)).cloned() else {
        return Reply::unexpected(intent, "confirm without a payment method");
    };
    intent.confirms += 1;
    if let Some(url) = params.get("return_url") {
        intent.return_url = Some(url.to_owned());
    }
    let behaviour = match &effect.outcome {
        Some(Outcome::Approve) => Behaviour::Approve,
        Some(Outcome::Challenge { .. }) => Behaviour::Challenge,
        _ => method.behaviour(),
    };
    if let Some(Outcome::Decline { code }) = &effect.outcome {
        return declined(world, at, "card_declined", Some(code), &how);
    }
    match behaviour {
        Behaviour::Decline(code) => return declined(world, at, "card_declined", Some(code), &how),
        Behaviour::Challenge if !intent.authenticated => {
            intent.status = "requires_action".into();
            intent.challenge = Some(intent.challenge_url(public_url));
            intent.challenge_due = match effect.outcome {
                Some(Outcome::Challenge { delay_ms: Some(ms), fails }) => Some((now + ms, fails)),
                _ => None,
            };
            world.intent_event(at, "requires_action", &how);
            return Reply::ok(world.intents[at].render());
        }
        _ => {}
    }
    let amount = intent.amount;
    match effect.outcome {
        Some(Outcome::Processing { ms }) => {
            let until = world.now() + ms;
            world.intents[at].status = "processing".into();
            world.intents[at].processing_until = Some(until);
            world.intent_event(at, "processing", &how);
        }
        Some(Outcome::WrongAmount { delta }) => world.authorise(at, amount + delta, AUTHORISATION_MS, &how),
        Some(Outcome::AuthExpires { ms }) => world.authorise(at, amount, ms, &how),
        Some(Outcome::TakenIn { ref currency }) => {
            world.intents[at].currency.clone_from(currency);
            world.authorise(at, amount, AUTHORISATION_MS, &how);
            world.capture(at, amount, &how);
        }
        _ => world.authorise(at, amount, AUTHORISATION_MS, &how),
    }
    Reply::ok(world.intents[at].render())
}

fn declined(world: &mut World, at: usize, code: &str, decline_code: Option<&str>, how: &How) -> Reply {
    world.decline(at, code, decline_code, how);
    let intent = &world.intents[at];
    let mut error = intent.last_error.clone().unwrap_or_default();
    error["charge"] = json!(intent.charge);
    error["payment_intent"] = intent.render();
    Reply { status: 402, body: json!({"error": error}), began: true }
}

/// The buyer answers the challenge. With manual confirmation nothing is authorised by that alone.
pub fn answer_challenge(world: &mut World, at: usize, approve: bool, how: &How) {
    let intent = &mut world.intents[at];
    if intent.status != "requires_action" {
        return;
    }
    intent.challenge = None;
    intent.challenge_due = None;
    if !approve {
        world.decline(at, "payment_intent_authentication_failure", None, how);
        return;
    }
    intent.authenticated = true;
    if intent.manual_confirmation {
        intent.status = "requires_confirmation".into();
    } else {
        let amount = intent.amount;
        world.authorise(at, amount, AUTHORISATION_MS, how);
    }
}

pub fn capture(world: &mut World, id: &str, params: &Params, effect: &Effect) -> Reply {
    let Some(at) = world.intent(id) else { return Reply::missing("payment_intent", id) };
    let how = effect.how();
    let intent = &world.intents[at];
    if intent.status != "requires_capture" {
        return Reply::unexpected(intent, "capture");
    }
    if matches!(effect.outcome, Some(Outcome::CaptureFails | Outcome::SaidGone)) {
        if effect.outcome == Some(Outcome::CaptureFails) {
            world.cancel(at, Some("automatic"), &how);
        }
        let error = json!({"type": "invalid_request_error", "code": "charge_expired_for_capture",
            "message": "The authorisation has expired.", "payment_intent": world.intents[at].render()});
        return Reply { status: 400, body: json!({"error": error}), began: true };
    }
    if let Some(Outcome::TakenIn { currency }) = &effect.outcome {
        world.intents[at].currency.clone_from(currency);
    }
    let intent = &world.intents[at];
    let amount = match params.integer("amount_to_capture") {
        Ok(None) => intent.amount_capturable,
        Ok(Some(amount)) if (1..=intent.amount_capturable).contains(&amount) => amount,
        Ok(Some(amount)) if amount > 0 => {
            return Reply::invalid(400, "amount_too_large", Some("amount_to_capture"), "More than is capturable.");
        }
        _ => {
            let message = "Invalid positive integer";
            return Reply::invalid(400, "parameter_invalid_integer", Some("amount_to_capture"), message);
        }
    };
    world.capture(at, amount, &how);
    Reply::ok(world.intents[at].render())
}

pub fn cancel(world: &mut World, id: &str, effect: &Effect) -> Reply {
    let Some(at) = world.intent(id) else { return Reply::missing("payment_intent", id) };
    let how = effect.how();
    if let Some(Outcome::TakenIn { currency }) = &effect.outcome {
        world.intents[at].currency.clone_from(currency);
    }
    let taken = matches!(effect.outcome, Some(Outcome::CapturedMeanwhile | Outcome::TakenIn { .. }));
    if taken && world.intents[at].status == "requires_capture" {
        let amount = world.intents[at].amount_capturable;
        world.capture(at, amount, &how);
    }
    let intent = &world.intents[at];
    if effect.outcome == Some(Outcome::CancelFails)
        || matches!(&*intent.status, "succeeded" | "canceled" | "processing")
    {
        return Reply::unexpected(intent, "cancel");
    }
    world.cancel(at, None, &how);
    Reply::ok(world.intents[at].render())
}

pub fn get(world: &World, id: &str) -> Reply {
    match world.intent(id) {
        Some(at) => Reply::ok(world.intents[at].render()),
        None => Reply::missing("payment_intent", id),
    }
}

/// An intent that is answered with shows its charge in full, instead of naming it.
pub fn show_charge(world: &World, body: &mut Value) {
    let at = body["id"].as_str().filter(|_| body["object"] == "payment_intent").and_then(|id| world.intent(id));
    if let Some(charge) = at.and_then(|at| world.charge(at)) {
        body["latest_charge"] = charge;
    }
}

pub fn refund(world: &mut World, params: &Params, effect: &Effect) -> Reply {
    let found = match (params.get("payment_intent"), params.get("charge")) {
        (Some(id), _) => world.intent(id).ok_or_else(|| Reply::missing("payment_intent", id)),
        (None, Some(ch)) => {
            let at = world.intents.iter().position(|i| i.charge.as_deref() == Some(ch));
            at.ok_or_else(|| Reply::missing("charge", ch))
        }
        _ => Err(Reply::invalid(400, "parameter_missing", Some("payment_intent"), "Name a payment.")),
    };
    let at = match found {
        Ok(at) => at,
        Err(reply) => return reply,
    };
    let intent = &world.intents[at];
    let left = intent.amount_received - intent.refunded;
    if intent.status != "succeeded" || left == 0 {
        return Reply::invalid(400, "charge_already_refunded", None, "There is nothing left to refund.");
    }
    let amount = match params.integer("amount") {
        Ok(None) => left,
        Ok(Some(amount)) if amount > left => {
            return Reply::invalid(400, "amount_too_large", Some("amount"), "More than is left of the payment.");
        }
        Ok(Some(amount)) if amount >= 1 => amount,
        _ => return Reply::invalid(400, "parameter_invalid_integer", Some("amount"), "Invalid positive integer"),
    };
    let now = world.now();
    let (status, then) = match effect.outcome {
        Some(Outcome::RefundPending { ms }) => ("pending", Some((now + ms, "succeeded".into()))),
        Some(Outcome::RefundFailsLater { ms }) => ("succeeded", Some((now + ms, "failed".into()))),
        Some(Outcome::RefundFails) => ("failed", None),
        _ => ("succeeded", None),
    };
    let (id, txn, how) = (world.id("re"), world.id("txn"), effect.how());
    let intent = &mut world.intents[at];
    let refund = Refund {
        id: id.clone(),
        created: now,
        intent: intent.id.clone(),
        charge: intent.charge.clone(),
        amount,
        currency: intent.currency.clone(),
        status: status.into(),
        metadata: metadata(params),
        then,
        unlisted: how.settlement.missing_refund,
    };
    if status != "failed" {
        intent.refunded += amount;
        let row = json!({
            "id": txn, "object": "balance_transaction", "type": "refund", "amount": -amount, "fee": 0, "net": -amount,
            "currency": refund.currency, "source": id, "created": now / 1000, "available_on": now / 1000,
            "status": "available", "reporting_category": "refund",
        });
        world.book(row, &how.settlement);
    }
    let body = refund.render();
    world.refunds.push(refund);
    world.event("refund.created", body.clone(), &how.webhook);
    Reply::ok(body)
}

pub fn get_refund(world: &World, id: &str) -> Reply {
    match world.refunds.iter().find(|r| r.id == id) {
        Some(refund) if !refund.unlisted => Reply::ok(refund.render()),
        _ => Reply::missing("refund", id),
    }
}

pub fn list_intents(world: &World, params: &Params) -> Reply {
    page(world.intents.iter().map(|i| (i.created / 1000, i.render())), params, "/v1/payment_intents", 0)
}

pub fn get_charge(world: &World, id: &str) -> Reply {
    let found = world.intents.iter().position(|i| i.charge.as_deref() == Some(id));
    found.and_then(|at| world.charge(at)).map_or_else(|| Reply::missing("charge", id), Reply::ok)
}

pub fn list_refunds(world: &World, params: &Params) -> Reply {
    let wanted = params.get("payment_intent");
    let charge = params.get("charge");
    let rows = world.refunds.iter().filter(|r| !r.unlisted && wanted.is_none_or(|w| w == r.intent));
    let rows = rows.filter(|r| charge.is_none_or(|c| r.charge.as_deref() == Some(c)));
    page(rows.map(|r| (r.created / 1000, r.render())), params, "/v1/refunds", 0)
}

pub fn list_events(world: &World, params: &Params) -> Reply {
    let kind = params.get("type");
    let rows = world.events.iter().filter(|r| kind.is_none_or(|k| r["type"] == k));
    page(rows.map(|r| (r["created"].as_i64().unwrap_or(0), r.clone())), params, "/v1/events", 0)
}

pub fn get_event(world: &World, id: &str) -> Reply {
    let found = world.events.iter().find(|event| event["id"] == id).cloned();
    found.map_or_else(|| Reply::missing("event", id), Reply::ok)
}

/// `metadata['name']:'value'`, with as many `AND` as one likes. What is younger than `lag_ms` is not found yet.
pub fn search(world: &World, params: &Params, lag_ms: i64) -> Reply {
    let query = params.get("query").unwrap_or_default();
    let mut wanted = Vec::new();
    for clause in query.split(" AND ") {
        let parsed = clause.trim().strip_prefix("metadata[").and_then(|c| c.split_once("]:"));
        let Some((name, value)) = parsed else {
            return Reply::invalid(400, "search_query_invalid", Some("query"), "Only metadata can be searched here.");
        };
        wanted.push((name.trim_matches(['\'', '"']), value.trim_matches(['\'', '"'])));
    }
    let indexed = world.now() - lag_ms;
    let rows = world
        .intents
        .iter()
        .filter(|i| i.created <= indexed)
        .filter(|i| wanted.iter().all(|(n, v)| i.metadata.get(*n).map(String::as_str) == Some(v)));
    // The page after this one is named by a token, which here is how many rows it leaves out.
    let from = params.integer("page").ok().flatten().and_then(|n| usize::try_from(n).ok()).unwrap_or(0);
    let limit = match limit(params) {
        Ok(limit) => limit,
        Err(reply) => return reply,
    };
    let mut rows = rows.rev().skip(from).map(Intent::render).peekable();
    let data: Vec<Value> = rows.by_ref().take(limit).collect();
    let next = rows.peek().map(|_| (from + limit).to_string());
    Reply::ok(json!({"object": "search_result", "url": "/v1/payment_intents/search", "has_more": next.is_some(),
        "next_page": next, "data": data}))
}

fn limit(params: &Params) -> Result<usize, Reply> {
    match params.integer("limit") {
        Ok(None) => Ok(10),
        Ok(Some(limit)) if (1..=100).contains(&limit) => Ok(limit as usize),
        _ => Err(Reply::invalid(400, "parameter_invalid_integer", Some("limit"), "A limit is from 1 to 100.")),
    }
}

/// Newest first, after `starting_after` or before `ending_before`, within `created[…]`. A page may begin
/// with `overlap` rows of the one before it.
pub fn page(rows: impl DoubleEndedIterator<Item = (i64, Value)>, params: &Params, url: &str, overlap: usize) -> Reply {
    let limit = match limit(params) {
        Ok(limit) => limit,
        Err(reply) => return reply,
    };
    let bound = |name: &str| params.integer(&format!("created[{name}]")).ok().flatten();
    let from = bound("gte").or(bound("gt").map(|t| t.saturating_add(1))).unwrap_or(i64::MIN);
    let to = bound("lte").or(bound("lt").map(|t| t.saturating_sub(1))).unwrap_or(i64::MAX);
    let rows: Vec<Value> = rows.rev().filter(|(at, _)| (from..=to).contains(at)).map(|(_, row)| row).collect();
    let place = |name: &str| params.get(name).and_then(|id| rows.iter().position(|row| row["id"] == id));
    let (begin, end) = match (place("starting_after"), place("ending_before")) {
        (Some(after), _) => ((after + 1).saturating_sub(overlap), rows.len()),
        (None, Some(before)) => (before.saturating_sub(limit), before),
        (None, None) if params.get("starting_after").is_some() => (rows.len(), rows.len()),
        (None, None) => (0, rows.len()),
    };
    let last = end.min(begin.saturating_add(limit));
    let has_more = if params.get("ending_before").is_some() { begin > 0 } else { last < end };
    Reply::ok(json!({"object": "list", "url": url, "has_more": has_more, "data": rows[begin..last]}))
}

fn metadata(params: &Params) -> BTreeMap<String, String> {
    params.map("metadata").map(|(k, v)| (k.to_owned(), v.to_owned())).collect()
}
