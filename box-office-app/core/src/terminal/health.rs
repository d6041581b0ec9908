//! How this terminal is, told to the hub for whoever looks after it: once a minute, and when its paper changes.

use std::time::Duration;

use fullhouse_protocol::terminal::{PaperState, ReaderIs, ReaderState, TerminalHealth};
use serde_json::{Value, json};
use tokio::time::{self, Instant};

use super::{Ask, Relay, papers::Papers};

const TELL_EVERY: Duration = Duration::from_secs(60);
/// Paper that runs out is known so soon.
const LOOK_EVERY: Duration = Duration::from_secs(10);

/// Tells it until this is dropped; what can't be told now is told the next time.
pub async fn tell(relay: Relay, papers: Papers, version: &str) {
    let mut told: Option<(TerminalHealth, Instant)> = None;
    let mut looks = time::interval(LOOK_EVERY);
    looks.set_missed_tick_behavior(time::MissedTickBehavior::Delay);
    loop {
        looks.tick().await;
        let Some(paper) = papers.state().await else { continue }; // it prints
        let last = told.as_ref().map(|(health, at)| (health.paper, at.elapsed()));
        if !is_due(last, paper) {
            continue;
        }
        let health =
            TerminalHealth { version: version.to_owned(), paper, reader: reader(&relay).await, detail: String::new() };
        if send(&relay, &health).await {
            told = Some((health, Instant::now()));
        }
    }
}

/// `last`: what was told of the paper, and how long ago.
fn is_due(last: Option<(PaperState, Duration)>, paper: PaperState) -> bool {
    last.is_none_or(|(told, ago)| told != paper || ago >= TELL_EVERY)
}

/// How the readers here are, as their provider told the hub.
async fn reader(relay: &Relay) -> ReaderState {
    relay.terminal().await.map_or(ReaderState::Unknown, |terminal| worst(&terminal))
}

/// One that can't be reached is what somebody has to see to. A hub that says nothing of them knows nothing.
fn worst(terminal: &Value) -> ReaderState {
    let readers = terminal["readers"].as_array().map_or(0, Vec::len);
    let said: Vec<ReaderIs> = terminal["reader_states"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|reader| ReaderIs::read(reader["state"].as_str().unwrap_or_default()))
        .collect();
    if readers == 0 && said.is_empty() {
        ReaderState::None
    } else if said.contains(&ReaderIs::Offline) {
        ReaderState::Offline
    } else if said.is_empty() || said.contains(&ReaderIs::Unknown) {
        ReaderState::Unknown
    } else {
        ReaderState::Ok
    }
}

async fn send(relay: &Relay, health: &TerminalHealth) -> bool {
    let target = "/api/box-office/health".to_owned();
    let ask = Ask { method: "POST".into(), target, body: Some(json!(health)), key: None };
    relay.send(&ask).await.is_ok_and(|answer| answer.status < 300)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reader_is_as_its_provider_said_and_unknown_to_a_hub_that_does_not_say() {
        let at = |states: &[&str]| {
            let said: Vec<Value> = states.iter().map(|state| json!({ "id": "tmr_1", "state": state })).collect();
            worst(&json!({ "readers": states, "reader_states": said }))
        };
        assert_eq!(at(&[]), ReaderState::None);
        assert_eq!(at(&["online"]), ReaderState::Ok);
        assert_eq!(at(&["busy"]), ReaderState::Ok);
        assert_eq!(at(&["online", "offline"]), ReaderState::Offline);
        assert_eq!(at(&["updating"]), ReaderState::Unknown, "a word of a later hub's");
        assert_eq!(worst(&json!({ "readers": ["tmr_1"] })), ReaderState::Unknown, "an older hub");
        assert_eq!(worst(&json!({ "readers": [] })), ReaderState::None);
        assert_eq!(worst(&json!({})), ReaderState::None);
    }

    #[test]
    fn what_changes_is_told_at_once_and_what_stays_once_a_minute() {
        let s = Duration::from_secs;
        for (last, paper, due) in [
            (None, PaperState::Unknown, true),
            (Some((PaperState::Ok, s(10))), PaperState::Ok, false),
            (Some((PaperState::Ok, s(10))), PaperState::Out, true),
            (Some((PaperState::Out, s(10))), PaperState::Ok, true),
            (Some((PaperState::Ok, s(60))), PaperState::Ok, true),
        ] {
            assert_eq!(is_due(last, paper), due, "{last:?} {paper:?}");
        }
    }
}
