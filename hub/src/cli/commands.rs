//! Commands about tickets, vouchers and mail.

use std::{fmt::Write, path::Path};

use anyhow::Context;
use ed25519_dalek::VerifyingKey;
use fullhouse_paper::{fonts::Fonts, text};
use fullhouse_protocol::{
    events::EventPage,
    tickets::{DeadTickets, TicketKeys},
};
use sqlx::PgPool;

use super::audit::plain;
use crate::{
    box_office::voucher,
    catalog::{commands::Report, event::EventSpec},
    clock, config, mail,
    ticket::{code, key, pdf, sheet},
    words::Language,
};

/// Neither good nor bad: somebody has to look elsewhere first. Ends with exit code 3.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Undecided(pub(super) String);

/// What a code claims, by files alone: a door in a cellar has no network.
pub fn verify(text: &str, keys: &Path, dead: Option<&Path>, event: Option<&Path>) -> anyhow::Result<Report> {
    let keys: TicketKeys = read(keys)?;
    let mut public = Vec::new();
    for key in keys.keys {
        let bytes = data_encoding::HEXLOWER_PERMISSIVE.decode(key.public.as_bytes()).ok();
        let point = bytes.and_then(|b| VerifyingKey::from_bytes(&b.try_into().ok()?).ok());
        public.push((key.id, point.ok_or_else(|| Undecided(format!("NOT DECIDED: key {} is no key", key.id)))?));
    }
    let claim = match code::verify(text, |id| public.iter().find(|(known, _)| *known == id).map(|(_, key)| key)) {
        Ok(claim) => claim,
        Err(error @ code::CodeError::KeyUnknown) => {
            let text = format!("NOT DECIDED: {error}; fetch the list of keys anew (GET /api/ticket-keys)");
            return Err(Undecided(text).into());
        }
        Err(error) => return Ok(Report { text: format!("NOT GENUINE: {error}"), failed: true }),
    };
    let (ticket, key) = (claim.ticket_id, claim.key_id);
    let mut what = format!("event {} seat number {} ticket {ticket} key {key}", claim.event_id, claim.seat_no);
    if let Some(event) = event {
        let page: EventPage = read(event)?;
        let name = &page.event.summary.name;
        if page.event.summary.id != claim.event_id {
            let text = format!("OTHER EVENT: {what}; this is {name:?}, event {}", page.event.summary.id);
            return Ok(Report { text, failed: true });
        }
        if let Some(seat) = page.seats.iter().flatten().find(|seat| seat.seat_no == claim.seat_no) {
            what = format!("{name:?}, {}, row {}, seat {}: {what}", seat.section, seat.row, seat.number);
        }
    }
    if let Some(dead) = dead {
        let list: DeadTickets = read(dead)?;
        if list.event_id != claim.event_id {
            let text = format!("NOT DECIDED: these are the dead of event {}, and not of {what}", list.event_id);
            return Err(Undecided(text).into());
        }
        if list.dead.contains(&claim.ticket_id) {
            return Ok(Report { text: format!("DEAD (refunded, exchanged or reissued): {what}"), failed: true });
        }
        if list.pending.contains(&claim.ticket_id) {
            return Ok(Report { text: format!("NOT PAID YET: {what}"), failed: true });
        }
    }
    Ok(Report { text: format!("GENUINE: {what}"), failed: false })
}

/// A file of the hub's. Without it nothing is known of a ticket, and nobody is to be turned away for that.
fn read<T: serde::de::DeserializeOwned>(path: &Path) -> Result<T, Undecided> {
    let undecided = |why: String| Undecided(format!("NOT DECIDED: {}: {why}", path.display()));
    let text = std::fs::read_to_string(path).map_err(|e| undecided(e.to_string()))?;
    serde_json::from_str(&text).map_err(|e| undecided(format!("it is not what the hub answers: {e}")))
}

/// The public halves, as JSON.
pub async fn keys(pool: &PgPool) -> anyhow::Result<Report> {
    let keys = key::public_keys(&mut *pool.acquire().await?).await?;
    Ok(Report { text: serde_json::to_string_pretty(&keys)?, failed: false })
}

/// A new key; the ones before stay known.
pub async fn rotate_key(pool: &PgPool) -> anyhow::Result<Report> {
    let mut tx = pool.begin().await?;
    let now = clock::now(&mut tx).await?;
    let id = key::rotate(&mut tx, now).await?;
    tx.commit().await?;
    let text = format!(
        "key {id} signs new tickets from now on; give every door the new list of keys (`fullhouse ticket keys`)"
    );
    Ok(Report { text, failed: false })
}

/// Mails in a state, one a line. No address: an order's code leads to its owner.
pub async fn mails(pool: &PgPool, state: &str) -> anyhow::Result<Report> {
    anyhow::ensure!(["queued", "sent", "dropped", "dead"].contains(&state), "a mail is queued, sent, dropped or dead");
    let mails = mail::list(pool, state).await?;
    let mut text = format!("{} mails are {state}\n", mails.len());
    for m in mails {
        let why = m.last_error.unwrap_or_default();
        let about = if m.order_code.is_empty() { "an account".to_owned() } else { format!("order {}", m.order_code) };
        let _ = writeln!(text, "{}\t{about}\t{}\t{} tries\t{why}", m.id, m.kind, m.tries);
    }
    Ok(Report { text, failed: false })
}

/// The vouchers of an event, one a line. No code: only its hash is kept.
pub async fn vouchers(pool: &PgPool, event: &str) -> anyhow::Result<Report> {
    let id = event_id(pool, event).await?;
    let mut text = String::new();
    for v in voucher::list(pool, id).await? {
        let until = v.valid_until.format("%Y-%m-%dT%H:%M:%SZ");
        let state = v.state;
        let [recipient, by, reason] = [&v.recipient, &v.made_by, &v.reason].map(|part| plain(part));
        let order = v.order_code.map_or_else(String::new, |code| format!(" for order {code}"));
        let seats = v.seats_max;
        let _ = writeln!(
            text,
            "{}\t{state}{order}\t{seats} seats\tuntil {until}\t{recipient}\tby {by}: {reason}",
            v.voucher_id
        );
    }
    Ok(Report { text, failed: false })
}

async fn event_id(pool: &PgPool, slug: &str) -> anyhow::Result<i64> {
    sqlx::query_scalar!("select id from event where slug = $1", slug)
        .fetch_optional(pool)
        .await?
        .with_context(|| format!("there is no event {slug:?}"))
}

/// What the tickets of an event could not show with the fonts of this machine, said before one is sold: a line each,
/// with what stands there instead.
pub async fn undrawable(pool: &PgPool, settings: &config::Ticket, spec: &Path) -> anyhow::Result<String> {
    let Ok(spec) = EventSpec::read(&std::fs::read_to_string(spec)?) else { return Ok(String::new()) };
    let places = sqlx::query_scalar!(
        r#"select distinct t as "text!" from event e join plan_revision r on r.id = e.plan_revision_id
           join plan p on p.id = r.plan_id join venue v on v.id = p.venue_id
           join plan_seat s on s.plan_revision_id = r.id
           cross join lateral unnest(array[v.name, v.city, s.section, s.row_label, s.seat_label]) as t
           where e.slug = $1"#,
        spec.slug
    )
    .fetch_all(pool)
    .await?;
    let fonts = Fonts::new(&settings.font_dirs);
    let mut said = String::new();
    let tax = spec.tax.map(|tax| tax.name);
    for name in [spec.name].into_iter().chain(tax).chain(places) {
        let (drawn, missing) = text::named(&fonts, Language::En, &text::clean(&name), false);
        if !missing.is_empty() {
            let _ = writeln!(said, "warning: no font here has all of {name:?}: tickets will read {drawn}");
        }
    }
    Ok(said)
}

/// What a ticket of the event looks like.
pub async fn preview(pool: &PgPool, settings: &config::Ticket, event: &str, language: &str) -> anyhow::Result<Vec<u8>> {
    let language = Language::read(language).with_context(|| format!("{language} is not en, ja or ko"))?;
    let id = event_id(pool, event).await?;
    let sheet = sheet::sample(&mut *pool.acquire().await?, id, language).await?.context("the event has no seat")?;
    Ok(pdf::print(&Fonts::new(&settings.font_dirs), &sheet)?.pdf)
}
