//! The door: a proof of work before somebody joins, so that a thousand entries cost a thousand times as much.
//!
//! Invariants
//! - A challenge is for one session and one event, ends, and is good for one entry. Nothing is stored of it, and
//!   no database is asked: the session's account is looked up when it joins.
//! - It costs more under load and for whoever asks again and again. Addresses are only a last net: a whole
//!   venue may share one.

use std::{
    collections::BTreeMap,
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, Instant},
};

use altcha::{Challenge, CreateChallengeOptions, Payload, VerifySolutionOptions};
use base64::Engine;
use dashmap::DashMap;
use data_encoding::HEXLOWER;
use rand::Rng;
use serde_json::{Value, json};

use crate::{auth::TokenHash, config};

const ALGORITHM: &str = "PBKDF2/SHA-256";
/// Counters of sessions and addresses that are kept at most; beyond, the oldest are forgotten with all others.
const COUNTERS_MAX: usize = 2_000_000;
/// A solved challenge is some 700 bytes.
const PAYLOAD_BYTES_MAX: usize = 4096;

#[derive(Debug, Clone, Copy, thiserror::Error, PartialEq, Eq)]
pub enum DoorError {
    #[error("the challenge is not solved")]
    Invalid,
    #[error("the challenge is too old")]
    Expired,
    #[error("the challenge was given to somebody else, or for another event")]
    Foreign,
}

#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("too many challenges for this address")]
pub struct TooMany;

/// Who wants to join which line.
#[derive(Debug, Clone, Copy)]
pub struct Bound<'a> {
    pub event_id: i64,
    pub session: &'a TokenHash,
}

/// What of a solved challenge is remembered with the entry.
pub type Nonce = [u8; 16];

pub struct Door {
    settings: config::WaitingRoom,
    sessions: DashMap<[u8; 16], Counter>,
    addresses: DashMap<String, Counter>,
    /// Joins of the second that runs, and of the one before.
    second: AtomicU64,
    joins: AtomicU64,
    joins_before: AtomicU64,
    began: Instant,
}

struct Counter {
    since: Instant,
    asked: u32,
}

impl Door {
    pub fn new(settings: config::WaitingRoom) -> Self {
        Self {
            settings,
            sessions: DashMap::new(),
            addresses: DashMap::new(),
            second: AtomicU64::new(0),
            joins: AtomicU64::new(0),
            joins_before: AtomicU64::new(0),
            began: Instant::now(),
        }
    }

    /// A challenge, and how many tries solve it.
    pub fn challenge(&self, key: &[u8; 32], bound: Bound, address: &str, now_ms: i64) -> Result<Challenge, TooMany> {
        let window = Duration::from_secs(self.settings.address_window_s);
        let from_there = count(&self.addresses, address.to_owned(), window);
        if from_there > self.settings.address_challenges_max {
            return Err(TooMany);
        }
        let asked = count(&self.sessions, short(bound.session), window);
        let tries = tries(&self.settings, asked, self.joins_a_second());
        Ok(made(&self.settings, key, bound, tries, now_ms))
    }

    /// Counts a join, so that the next challenges follow the load.
    pub fn joined(&self) {
        self.turn();
        self.joins.fetch_add(1, Ordering::Relaxed);
    }

    fn joins_a_second(&self) -> u64 {
        self.turn();
        self.joins.load(Ordering::Relaxed).max(self.joins_before.load(Ordering::Relaxed))
    }

    /// Joins that race with the turn of a second count in either.
    fn turn(&self) {
        let now = self.began.elapsed().as_secs();
        let second = self.second.load(Ordering::Relaxed);
        if now != second && self.second.compare_exchange(second, now, Ordering::Relaxed, Ordering::Relaxed).is_ok() {
            let joins = self.joins.swap(0, Ordering::Relaxed);
            self.joins_before.store(if now == second + 1 { joins } else { 0 }, Ordering::Relaxed);
        }
    }
}

/// Twice as many for each challenge beyond the free ones; in proportion to the load beyond what is calm.
fn tries(settings: &config::WaitingRoom, asked: u32, joins_a_second: u64) -> u32 {
    let suspicion = 1u64 << asked.saturating_sub(settings.challenges_free.max(1)).min(16);
    let load = (joins_a_second / u64::from(settings.joins_second_calm)).max(1);
    let tries = u64::from(settings.challenge_tries).saturating_mul(suspicion).saturating_mul(load);
    tries.min(u64::from(settings.challenge_tries_max.max(settings.challenge_tries))) as u32
}

fn made(settings: &config::WaitingRoom, key: &[u8; 32], bound: Bound, tries: u32, now_ms: i64) -> Challenge {
    let data: BTreeMap<String, Value> = BTreeMap::from([
        ("event".to_owned(), json!(bound.event_id)),
        ("tries".to_owned(), json!(tries)), // at most: a page can show how far it is
        ("session".to_owned(), json!(HEXLOWER.encode(&short(bound.session)))),
        ("until".to_owned(), json!(now_ms / 1000 + settings.challenge_age_max_s)),
    ]);
    // The counter that solves it is chosen here, so that the work is known and checking costs two hashes.
    let counter = rand::rng().random_range(tries / 2..=tries);
    altcha::create_challenge(CreateChallengeOptions {
        algorithm: ALGORITHM.to_owned(),
        cost: settings.challenge_cost,
        counter: Some(counter),
        data: Some(data),
        hmac_signature_secret: Some(secret(key, "challenge")),
        hmac_key_signature_secret: Some(secret(key, "solution")),
        ..CreateChallengeOptions::default()
    })
    .expect("these options make a challenge")
}

/// Checks a solved challenge as the widget sends it: base64 of JSON `{challenge, solution}`.
pub fn check(key: &[u8; 32], bound: Bound, payload: &str, now_ms: i64) -> Result<Nonce, DoorError> {
    if payload.len() > PAYLOAD_BYTES_MAX {
        return Err(DoorError::Invalid);
    }
    let json = base64::engine::general_purpose::STANDARD.decode(payload).map_err(|_| DoorError::Invalid)?;
    let Payload { challenge, solution } = serde_json::from_slice(&json).map_err(|_| DoorError::Invalid)?;
    let parameters = &challenge.parameters;
    // Only the way that ours are made: another would have it solved again here, at a cost that the sender chose.
    if parameters.algorithm != ALGORITHM || parameters.key_signature.is_none() {
        return Err(DoorError::Invalid);
    }
    let mut options = VerifySolutionOptions::new(&challenge, &solution, secret(key, "challenge"));
    options.hmac_key_signature_secret = Some(secret(key, "solution"));
    // What another event's key has signed says so itself, if it was not altered; it is refused either way.
    let data = parameters.data.as_ref().ok_or(DoorError::Invalid)?;
    let event = data.get("event").and_then(Value::as_i64).ok_or(DoorError::Invalid)?;
    if event != bound.event_id {
        return Err(DoorError::Foreign);
    }
    let verified = altcha::verify_solution(options).map_err(|_| DoorError::Invalid)?;
    if !verified.verified {
        return Err(DoorError::Invalid);
    }
    if data.get("session").and_then(Value::as_str) != Some(&HEXLOWER.encode(&short(bound.session))) {
        return Err(DoorError::Foreign);
    }
    if data.get("until").and_then(Value::as_i64).is_none_or(|until| now_ms / 1000 > until) {
        return Err(DoorError::Expired);
    }
    let nonce = HEXLOWER.decode(parameters.nonce.as_bytes()).map_err(|_| DoorError::Invalid)?;
    nonce.try_into().map_err(|_| DoorError::Invalid)
}

fn secret(key: &[u8; 32], of: &str) -> String {
    format!("{of} {}", HEXLOWER.encode(key))
}

fn short(session: &TokenHash) -> [u8; 16] {
    let mut short = [0; 16];
    short.copy_from_slice(&session[..16]);
    short
}

fn count<K: std::hash::Hash + Eq>(counters: &DashMap<K, Counter>, of: K, window: Duration) -> u32 {
    if counters.len() >= COUNTERS_MAX {
        counters.clear();
    }
    let mut counter = counters.entry(of).or_insert_with(|| Counter { since: Instant::now(), asked: 0 });
    if counter.since.elapsed() >= window {
        *counter = Counter { since: Instant::now(), asked: 0 };
    }
    counter.asked += 1;
    counter.asked
}

#[cfg(test)]
mod tests {
    use altcha::SolveChallengeOptions;

    use super::*;
    use crate::config::Config;

    const KEY: [u8; 32] = [3; 32];
    const ME: TokenHash = [1; 32];

    fn settings() -> config::WaitingRoom {
        config::WaitingRoom { challenge_cost: 1, challenge_tries: 20, ..Config::defaults().waiting_room }
    }

    fn bound(event_id: i64, session: &TokenHash) -> Bound<'_> {
        Bound { event_id, session }
    }

    fn solved(challenge: Challenge) -> Payload {
        let solution = altcha::solve_challenge(SolveChallengeOptions::new(&challenge)).unwrap().unwrap();
        Payload { challenge, solution }
    }

    fn sent(payload: &Payload) -> String {
        base64::engine::general_purpose::STANDARD.encode(serde_json::to_vec(payload).unwrap())
    }

    #[test]
    fn a_solved_challenge_is_taken_and_every_other_has_its_own_refusal() {
        let payload = solved(made(&settings(), &KEY, bound(7, &ME), 20, 1_000_000));
        let check = |payload: &str, bound: Bound, now_ms| check(&KEY, bound, payload, now_ms);
        assert!(check(&sent(&payload), bound(7, &ME), 1_000_000).is_ok());
        assert_eq!(check(&sent(&payload), bound(8, &ME), 1_000_000), Err(DoorError::Foreign), "another event's");
        assert_eq!(check(&sent(&payload), bound(7, &[2; 32]), 1_000_000), Err(DoorError::Foreign), "another's");
        assert_eq!(check(&sent(&payload), bound(7, &ME), 1_901_000), Err(DoorError::Expired));
        for altered in ["", "AAAA", "{}", &sent(&payload)[..40]] {
            assert_eq!(check(altered, bound(7, &ME), 1_000_000), Err(DoorError::Invalid));
        }
        let mut later = payload.clone();
        later.challenge.parameters.data.as_mut().unwrap().insert("until".into(), json!(9_000_000));
        assert_eq!(check(&sent(&later), bound(7, &ME), 1_901_000), Err(DoorError::Invalid), "its time was altered");
        let mut cheap = payload.clone();
        cheap.challenge.parameters.key_signature = None;
        assert_eq!(check(&sent(&cheap), bound(7, &ME), 1_000_000), Err(DoorError::Invalid));
        let mut unsolved = payload;
        unsolved.solution.derived_key = "00".repeat(32);
        assert_eq!(check(&sent(&unsolved), bound(7, &ME), 1_000_000), Err(DoorError::Invalid));
    }

    #[test]
    fn work_rises_with_load_and_with_suspicion_and_is_bounded() {
        let settings = config::WaitingRoom { challenge_tries: 1000, ..Config::defaults().waiting_room };
        assert_eq!(tries(&settings, 1, 0), 1000);
        assert_eq!(tries(&settings, settings.challenges_free, 0), 1000);
        assert_eq!(tries(&settings, settings.challenges_free + 2, 0), 4000);
        assert_eq!(tries(&settings, 1, 4 * u64::from(settings.joins_second_calm)), 4000);
        assert_eq!(tries(&settings, 100, u64::MAX), settings.challenge_tries_max);
    }

    #[test]
    fn two_hundred_behind_one_address_are_each_asked_the_same() {
        let door = Door::new(settings());
        for number in 0..200u8 {
            let session = [number; 32];
            assert!(door.challenge(&KEY, bound(7, &session), "192.0.2.1", 0).is_ok());
        }
        let last_net = Door::new(config::WaitingRoom { address_challenges_max: 2, ..settings() });
        let ask = |address| last_net.challenge(&KEY, bound(7, &ME), address, 0).map(drop);
        assert_eq!([ask("a"), ask("a"), ask("a"), ask("b")], [Ok(()), Ok(()), Err(TooMany), Ok(())]);
    }
}
