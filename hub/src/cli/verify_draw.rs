//! Whether a draw is what it says, from what is published alone: no database, and no belief in whoever runs the hub.
//!
//! Three ends, for scripts: right (0), false (1), and not decided (3), where something is missing to say so.

use std::{
    fmt::{Display, Write},
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::Context;
use bytes::Bytes;
use clap::Args;
use data_encoding::{HEXLOWER, HEXLOWER_PERMISSIVE};
use fullhouse_protocol::line::{DrawFacts, Draws};
use serde::{Deserialize, Serialize};

use super::commands::Undecided;
use crate::{
    catalog::commands::Report,
    waiting_room::{
        draw::{self, Fault, Public, Published, Terms, Tree},
        receipt::Receipt,
    },
};

/// The leaves of half a million entries are 16 MB.
const FETCH_MAX: Duration = Duration::from_secs(120);

#[derive(Args)]
pub struct VerifyArgs {
    /// Slug or number
    event: String,
    /// Where the hub is that published it
    #[arg(long, default_value = "http://127.0.0.1:8080", conflicts_with = "file")]
    hub: String,
    /// What `--save` wrote, instead of a hub
    #[arg(long)]
    file: Option<PathBuf>,
    /// Keep what was published in a file
    #[arg(long)]
    save: Option<PathBuf>,
    /// Another draw than the current one
    #[arg(long)]
    draw: Option<i32>,
    /// The place-ticket, as the page shows it: say the place of its entry, and that the draw is the one that it names
    #[arg(long, conflicts_with_all = ["number", "key"])]
    ticket: Option<String>,
    /// Say the place of this number: from 0, so one less than the page's place-ticket says
    #[arg(long)]
    number: Option<u32>,
    /// And that it is the entry with this key (`entry_key`, hexadecimal)
    #[arg(long, requires = "number")]
    key: Option<String>,
    /// The commitment that you kept from before you joined: whoever has the database could have put another in its place,
    /// with a secret that suits it (hexadecimal)
    #[arg(long)]
    commitment: Option<String>,
    /// And the root from before the public value was out
    #[arg(long)]
    root: Option<String>,
}

/// Everything that a check needs.
#[derive(Serialize, Deserialize)]
struct Kept {
    event_id: i64,
    /// As it was asked for: its slug, mostly.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    asked: Option<String>,
    draw: DrawFacts,
    /// Lower hex, one after the other.
    leaves: String,
}

/// Recomputes a draw from published data alone. What is false is a refusal, what is missing is not decided.
pub async fn verify(args: VerifyArgs) -> anyhow::Result<Report> {
    let kept = match &args.file {
        Some(file) => kept_in(file, &args.event)?,
        None => fetch(&args).await?,
    };
    if let Some(file) = &args.save {
        std::fs::write(file, serde_json::to_vec(&kept)?).with_context(|| file.display().to_string())?;
    }
    let facts = &kept.draw;
    let ticket = args.ticket.as_deref().map(|text| ticket(text, kept.event_id)).transpose()?;
    if let Some(other) = is_another(&args, facts)?.or_else(|| is_anothers(ticket.as_ref(), facts)) {
        return Ok(wrong(&other));
    }
    let (Some(secret), Some(root)) = (&facts.secret, &facts.root) else { return Err(undecided(missing(facts))) };
    let value = facts.public_value.as_ref().map(|v| HEXLOWER_PERMISSIVE.decode(v.as_bytes())).transpose()?;
    let public = match (&facts.source, &facts.round) {
        (Some(source), Some(round)) => Some(Public { source, round }),
        _ => None,
    };
    let terms = Terms { event_id: kept.event_id, draw_no: u32::try_from(facts.no)?, public };
    let leaves = leaves(&kept.leaves)?;
    let published = Published {
        terms,
        commitment: hash(&facts.commitment)?,
        count: u32::try_from(facts.entry_count.unwrap_or(0))?,
        root: hash(root)?,
        public_value: value.as_deref(),
        secret: hash(secret)?,
    };
    let places = match draw::check(&published, leaves.clone()) {
        Ok(places) => places,
        Err(fault) => return Ok(wrong(&differs(&published, leaves, fault))),
    };
    if let Some(late) = fixed_late(facts) {
        return Ok(wrong(&late));
    }
    // By what was committed to, whatever else is said of it.
    let kind = match terms.public {
        Some(_) => "verifiable: compare the public value with its source",
        None => "committed: nobody but the operator had a say in it",
    };
    let mut text = format!(
        "draw {} of event {}: commitment, root and places of {} entries are as published ({kind})\n",
        facts.no,
        kept.event_id,
        places.len()
    );
    if let (Some(source), Some(round), Some(value)) = (&facts.source, &facts.round, &facts.public_value) {
        let _ = writeln!(text, "{source}, {round}: {value}");
    }
    if let Some(why) = &facts.abandoned_why {
        let _ = writeln!(text, "it was given up: {why}");
    }
    let (number, key) = match &ticket {
        Some(ticket) => (u32::try_from(ticket.number).ok(), Some(ticket.entry_key)),
        None => (args.number, args.key.as_deref().map(entry_key).transpose()?),
    };
    if let Some(number) = number {
        let shown = number + 1;
        if let Some(key) = key {
            let leaf = leaves.get(number as usize);
            let leaf =
                leaf.ok_or_else(|| undecided(format!("number {number} was not drawn: {} were", leaves.len())))?;
            if draw::leaf(kept.event_id, number.into(), &key) != *leaf {
                return Ok(wrong(&format!("number {number} is not the entry with this key")));
            }
        }
        match places.get(number as usize) {
            Some(place) => {
                writeln!(
                    text,
                    "number {number} has place {place}: {place} people before it (pages say: number {shown}, place {})",
                    place + 1
                )?;
            }
            None => writeln!(
                text,
                "number {number} was not drawn: if there is one, it came after the closing, and its place is its number"
            )?,
        }
    }
    if let Some(committed) = ticket.and_then(|ticket| ticket.committed) {
        match committed.draw_no == facts.no {
            true => writeln!(text, "its commitment is the one that was signed when this place-ticket was given")?,
            false => writeln!(
                text,
                "this place-ticket was given under draw {0}: check that as well (--draw {0})",
                committed.draw_no
            )?,
        }
    }
    Ok(Report { text, failed: false })
}

/// What a place-ticket of this event says.
fn ticket(text: &str, event_id: i64) -> anyhow::Result<Receipt> {
    let ticket = Receipt::claimed(text.trim()).ok_or_else(|| undecided("this is no place-ticket"))?;
    if ticket.event_id != event_id {
        return Err(undecided(format!("this place-ticket is of event {}", ticket.event_id)));
    }
    Ok(ticket)
}

fn entry_key(text: &str) -> anyhow::Result<[u8; 16]> {
    let key = HEXLOWER_PERMISSIVE.decode(text.as_bytes()).ok().and_then(|key| <[u8; 16]>::try_from(key).ok());
    key.ok_or_else(|| undecided("an entry's key has 32 hexadecimal digits"))
}

/// Whether a place-ticket was signed when the draw had another commitment.
fn is_anothers(ticket: Option<&Receipt>, facts: &DrawFacts) -> Option<String> {
    let signed = ticket?.committed.filter(|signed| signed.draw_no == facts.no)?;
    let signed = HEXLOWER.encode(&signed.commitment);
    (signed != facts.commitment.to_ascii_lowercase()).then(|| {
        format!(
            "the commitment of draw {} is not the one that was signed when the place-ticket was given\npublished: {}\nsigned:    {signed}",
            facts.no, facts.commitment
        )
    })
}

/// Whether commitment or root are others than somebody has kept.
fn is_another(args: &VerifyArgs, facts: &DrawFacts) -> anyhow::Result<Option<String>> {
    let published =
        [("commitment", &args.commitment, Some(&facts.commitment)), ("root", &args.root, facts.root.as_ref())];
    for (what, kept, published) in published {
        let (Some(kept), Some(published)) = (kept, published) else { continue };
        if hash(kept)? != hash(published)? {
            let no = facts.no;
            return Ok(Some(format!(
                "the {what} of draw {no} is not the one that you kept (of another draw? `--draw` says which)\nkept:      {kept}\npublished: {published}"
            )));
        }
    }
    Ok(None)
}

fn undecided(why: impl Display) -> anyhow::Error {
    Undecided(format!("NOT DECIDED: {why}")).into()
}

fn wrong(what: &str) -> Report {
    Report { text: format!("FALSE: {what}"), failed: true }
}

/// What a draw has not published yet.
fn missing(facts: &DrawFacts) -> String {
    let no = facts.no;
    if let (Some(why), None) = (&facts.abandoned_why, &facts.root) {
        return format!("draw {no} was given up before its entries were fixed: {why}");
    }
    if facts.root.is_none() {
        return format!("nothing is drawn yet: the entries of draw {no} are not fixed");
    }
    if facts.drawn_at.is_some() {
        return format!("draw {no} is drawn, and its secret is not out yet: it is published as the sale opens");
    }
    match (&facts.source, &facts.round, &facts.public_value) {
        (Some(source), Some(round), None) => {
            format!("nothing is drawn yet: draw {no} waits for its public value ({source}, {round})")
        }
        _ => format!("nothing is drawn yet: draw {no} is about to be drawn"),
    }
}

/// What is wrong, with what was published beside what follows from the rest.
fn differs(published: &Published, leaves: Vec<[u8; 32]>, fault: Fault) -> String {
    let hex = |hash: &[u8; 32]| HEXLOWER.encode(hash);
    let (said, found) = match fault {
        Fault::Commitment => (hex(&published.commitment), hex(&published.terms.commitment(&published.secret))),
        Fault::Count => (published.count.to_string(), leaves.len().to_string()),
        Fault::Root => (hex(&published.root), hex(&Tree::new(leaves).root())),
        Fault::ValueMissing | Fault::ValueNotAnnounced => return fault.to_string(),
    };
    format!("{fault}\npublished: {said}\ncomputed:  {found}")
}

/// Who knows secret and public value before the entries are fixed can try entries until the places please them.
fn fixed_late(facts: &DrawFacts) -> Option<String> {
    let (due, fixed) = (facts.value_due_at?, facts.rooted_at.or(facts.closed_at)?);
    (fixed >= due).then(|| {
        format!("the entries were fixed at {fixed}, when the public value was out already (due at {due}): whoever fixed them could choose")
    })
}

/// Whether what was kept is of the event that is asked about, by slug or number.
fn is_of(event: &str, event_id: i64, asked: Option<&str>) -> bool {
    match (event.parse::<i64>(), asked) {
        (Ok(id), _) => id == event_id,
        (Err(_), Some(asked)) if asked.parse::<i64>().is_err() => asked == event,
        // Kept by its number: whether that is this slug's, the file does not say.
        _ => false,
    }
}

/// What `--save` has kept.
fn kept_in(file: &Path, event: &str) -> anyhow::Result<Kept> {
    let name = file.display();
    let bytes = std::fs::read(file).map_err(|e| undecided(format!("{name}: {e}")))?;
    let kept: Kept = serde_json::from_slice(&bytes)
        .map_err(|e| undecided(format!("{name} is not what `verify-draw --save` writes: {e}")))?;
    if !is_of(event, kept.event_id, kept.asked.as_deref()) {
        let asked = kept.asked.as_ref().map_or_else(String::new, |asked| format!(" ({asked})"));
        return Err(undecided(format!("{name} is of event {}{asked}, not of {event}", kept.event_id)));
    }
    Ok(kept)
}

/// The leaves of a draw that can't be checked yet are not asked for: there may be none.
async fn fetch(args: &VerifyArgs) -> anyhow::Result<Kept> {
    let base = format!("{}/api/events/{}/queue/draws", args.hub.trim_end_matches('/'), args.event);
    let http = reqwest::Client::new();
    let draws: Draws = get(&http, &base).await?.json().await.map_err(|e| undecided(format!("{base}: {e}")))?;
    let wanted = |d: &&DrawFacts| args.draw.map_or(d.abandoned_at.is_none(), |no| d.no == no);
    let no_such = || undecided(format!("{} has no such draw; it has {}", args.event, draws.draws.len()));
    let draw = draws.draws.iter().find(wanted).ok_or_else(no_such)?.clone();
    let leaves = if draw.secret.is_some() && draw.root.is_some() {
        let address = format!("{base}/{}/leaves", draw.no);
        get(&http, &address).await?.bytes().await.map_err(|e| undecided(format!("{address}: {e}")))?
    } else {
        Bytes::new()
    };
    Ok(Kept { event_id: draws.event_id, asked: Some(args.event.clone()), draw, leaves: HEXLOWER.encode(&leaves) })
}

/// An answer of the hub's, or what it says instead.
async fn get(http: &reqwest::Client, address: &str) -> anyhow::Result<reqwest::Response> {
    let answer = http.get(address).timeout(FETCH_MAX).send().await;
    let answer = answer.map_err(|e| undecided(format!("{address} does not answer: {:#}", anyhow::Error::from(e))))?;
    if answer.status().is_success() {
        return Ok(answer);
    }
    let status = answer.status();
    // Not every 404 is a hub's.
    let code = answer.json::<serde_json::Value>().await.ok().and_then(|body| body["code"].as_str().map(str::to_owned));
    Err(undecided(match code.as_deref() {
        Some("event_unknown" | "not_found") => format!("{address}: there is no such event"),
        Some("line_unknown") => format!("{address}: the event has no waiting room"),
        Some(code) => format!("{address}: the hub answers {status} ({code})"),
        None => format!("{address}: whoever answers there ({status}) is no hub"),
    }))
}

fn hash(hex: &str) -> anyhow::Result<[u8; 32]> {
    let bytes = HEXLOWER_PERMISSIVE.decode(hex.as_bytes()).ok().and_then(|bytes| bytes.try_into().ok());
    bytes.ok_or_else(|| undecided(format!("{hex:?} is no hash: a hash has 64 hexadecimal digits")))
}

fn leaves(hex: &str) -> anyhow::Result<Vec<[u8; 32]>> {
    let bytes = HEXLOWER_PERMISSIVE.decode(hex.as_bytes()).ok().filter(|bytes| bytes.len() % 32 == 0);
    let bytes = bytes.ok_or_else(|| undecided("the leaves are not hexadecimal, 64 digits each"))?;
    Ok(bytes.chunks_exact(32).map(|leaf| leaf.try_into().expect("chunks are 32 bytes")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_kept_of_one_event_says_nothing_about_another() {
        assert!(is_of("7", 7, None) && is_of("a-night", 7, Some("a-night")));
        assert!(!is_of("8", 7, None) && !is_of("a-night", 7, Some("another")));
        assert!(!is_of("a-night", 7, None) && !is_of("a-night", 7, Some("7")), "the file does not say");
    }
}
