//! How this terminal is, told to the hub for whoever looks after it: once a minute, and when its paper changes.

use std::time::Duration;

use fullhouse_protocol::terminal::{PaperState, ReaderState, TerminalHealth};
use serde_json::json;
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

/// Whether one stands here. How it is, its provider knows.
async fn reader(relay: &Relay) -> ReaderState {
    let known = relay.terminal().await.ok();
    match known.and_then(|terminal| Some(terminal["readers"].as_array()?.is_empty())) {
        Some(true) => ReaderState::None,
        Some(false) | None => ReaderState::Unknown,
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
