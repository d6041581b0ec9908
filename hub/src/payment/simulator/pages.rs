//! The two pages that a provider shows: the form that takes the card (so that its data never reach the
//! hub) and the bank's challenge. Both live in a frame of the fan's page and speak to it by messages.

use std::collections::HashMap;

use axum::{
    body::Bytes,
    extract::{Path, Query, State},
    http::{HeaderMap, StatusCode, header},
    response::{Html, IntoResponse, Response},
};
use serde::Deserialize;
use serde_json::{Value, json};
use subtle::ConstantTimeEq;

use super::{Simulator, api, cards::CARDS, params::Params};
use crate::payment::provider::money;

const TEXTS: &str = include_str!("pages/texts.json");
const STYLE: &str = include_str!("pages/style.css");
/// The form shows so many of the cards; the others are for tests.
const CARDS_SHOWN: usize = 6;

#[derive(Deserialize)]
pub struct FormQuery {
    #[serde(default)]
    pk: String,
    /// Who may read what the page says.
    #[serde(default)]
    origin: String,
    lang: Option<String>,
    theme: Option<String>,
}

pub async fn form(State(sim): State<Simulator>, headers: HeaderMap, Query(query): Query<FormQuery>) -> Response {
    if query.pk != sim.config().publishable_key {
        return (StatusCode::FORBIDDEN, "This publishable key is not known here.").into_response();
    }
    let Some(origin) = origin_of(&query.origin) else {
        return (StatusCode::BAD_REQUEST, "origin: the address of the page that shows this form.").into_response();
    };
    let cards: Vec<Value> =
        CARDS.iter().take(CARDS_SHOWN).map(|c| json!({"number": c.number, "label": c.label})).collect();
    let page = json!({"key": query.pk, "origin": origin, "cards": cards});
    render(&sim, include_str!("pages/form.html"), lang(query.lang.as_deref(), &headers), query.theme.as_deref(), page)
}

#[derive(Deserialize)]
pub struct ChallengeQuery {
    #[serde(default)]
    secret: String,
    origin: Option<String>,
    lang: Option<String>,
    theme: Option<String>,
}

pub async fn challenge(
    State(sim): State<Simulator>,
    headers: HeaderMap,
    Path(id): Path<String>,
    Query(query): Query<ChallengeQuery>,
) -> Response {
    let intent = {
        let world = sim.world();
        let intent = world.intent(&id).map(|at| world.intents[at].clone());
        intent.map(|i| {
            let last4 = i.payment_method.as_ref().and_then(|m| world.methods.get(m)).map(|m| m.last4.clone());
            (i, last4.unwrap_or_default())
        })
    };
    let Some((intent, last4)) = intent.filter(|(i, _)| same(&i.secret, &query.secret)) else {
        return StatusCode::NOT_FOUND.into_response();
    };
    let back = intent.return_url.unwrap_or_default();
    let Some(origin) = query.origin.as_deref().and_then(origin_of).or_else(|| origin_of(&back)) else {
        return (StatusCode::BAD_REQUEST, "origin: the address of the page that shows this.").into_response();
    };
    let currency = intent.currency.to_ascii_uppercase();
    let amount = money::from_provider(&currency, intent.amount).unwrap_or(intent.amount);
    let page = json!({
        "origin": origin, "secret": query.secret, "back": back, "open": intent.status == "requires_action",
        "amount": amount, "exponent": money::exponent(&currency), "currency": currency, "last4": last4,
    });
    let lang = lang(query.lang.as_deref(), &headers);
    render(&sim, include_str!("pages/challenge.html"), lang, query.theme.as_deref(), page)
}

pub async fn answer(State(sim): State<Simulator>, Path(id): Path<String>, body: Bytes) -> StatusCode {
    let params = Params::parse(&body);
    let secret = params.get("secret").unwrap_or_default();
    {
        let mut world = sim.world();
        let Some(at) = world.intent(&id).filter(|at| same(&world.intents[*at].secret, secret)) else {
            return StatusCode::NOT_FOUND;
        };
        let how = world.hook("challenge", at);
        world.changed = true;
        api::answer_challenge(&mut world, at, params.get("answer") == Some("approve"), &how);
    }
    sim.deliver_outgoing().await;
    StatusCode::NO_CONTENT
}

fn same(a: &str, b: &str) -> bool {
    a.as_bytes().ct_eq(b.as_bytes()).into()
}

/// The origin of an http(s) address, as `postMessage` wants it.
fn origin_of(address: &str) -> Option<String> {
    let url: reqwest::Url = address.parse().ok()?;
    matches!(url.scheme(), "http" | "https").then(|| url.origin().ascii_serialization())
}

/// The asked-for language, or the first of the browser's that we have.
fn lang(asked: Option<&str>, headers: &HeaderMap) -> &'static str {
    let accepted = headers.get(header::ACCEPT_LANGUAGE).and_then(|v| v.to_str().ok()).unwrap_or_default();
    let wanted = asked.into_iter().chain(accepted.split(','));
    let known = wanted.filter_map(|w| ["en", "ja", "ko"].into_iter().find(|l| w.trim().starts_with(l)));
    known.into_iter().next().unwrap_or("en")
}

fn render(sim: &Simulator, template: &str, lang: &str, theme: Option<&str>, mut page: Value) -> Response {
    let mut texts: HashMap<String, Value> = serde_json::from_str(TEXTS).expect("texts.json is checked by a test");
    page["texts"] = texts.remove(lang).unwrap_or_default();
    let nonce = sim.world().id("n");
    let theme = theme.filter(|t| matches!(*t, "dark" | "light")).unwrap_or("auto");
    // In a script element only `<` could end what it is in.
    let page = page.to_string().replace('<', "\\u003c");
    let html = template
        .replace("{{lang}}", lang)
        .replace("{{theme}}", theme)
        .replace("{{nonce}}", &nonce)
        .replace("{{style}}", STYLE)
        .replace("{{page}}", &page);
    let policy = format!(
        "default-src 'none'; style-src 'nonce-{nonce}'; script-src 'nonce-{nonce}'; connect-src 'self'; base-uri 'none'"
    );
    ([(header::CONTENT_SECURITY_POLICY, policy), (header::CACHE_CONTROL, "no-store".to_owned())], Html(html))
        .into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_language_has_every_text() {
        let texts: HashMap<String, HashMap<String, String>> = serde_json::from_str(TEXTS).unwrap();
        let keys = |lang: &str| {
            let mut keys: Vec<_> = texts[lang].keys().cloned().collect();
            keys.sort();
            keys
        };
        assert_eq!(keys("en"), keys("ja"));
        assert_eq!(keys("en"), keys("ko"));
        for card in CARDS.iter().take(CARDS_SHOWN) {
            assert!(texts["en"].contains_key(card.label), "{}", card.label);
            assert!(texts["en"].contains_key(&format!("{}_hint", card.label)), "{}", card.label);
        }
    }

    #[test]
    fn only_an_origin_is_spoken_to() {
        assert_eq!(origin_of("http://127.0.0.1:8080/orders/1?x").as_deref(), Some("http://127.0.0.1:8080"));
        assert_eq!(origin_of("*"), None);
        assert_eq!(origin_of("javascript:alert(1)"), None);
    }
}
