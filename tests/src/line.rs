//! A line in front of a sale: opened by the function that operators use, joined over the wire.

use altcha::{Challenge, Payload, SolveChallengeOptions};
use chrono::TimeDelta;
use data_encoding::BASE64;
use fullhouse::{
    admission::calling,
    config::Config,
    serve::Roles,
    waiting_room::open::{self, NewLine, PublicValue},
};
use reqwest::Method;
use serde_json::{Value, json};

use crate::{
    clock::Clock,
    database::Database,
    fan::{self, Answer, Fan},
    hub::Hub,
    rows::Rows,
};

/// An event that opens in an hour, whose line can be joined now and is drawn ten minutes before.
pub struct Line {
    pub database: Database,
    pub clock: Clock,
    pub hub: Hub,
    pub event: i64,
}

/// Time moves by hand here, so nobody may take it for a skew; challenges cost next to nothing.
pub fn quick(config: &mut Config) {
    config.gate.clock_skew_max_s = 1_000_000;
    config.waiting_room.challenge_cost = 1;
    config.waiting_room.challenge_tries = 2;
    config.waiting_room.challenges_free = 1000;
    config.admission.tick_ms = 50;
    config.admission.count_seats_s = 0;
}

/// Everything but the tasks that tick by themselves: a test looks at the line when it wants to.
pub const BY_HAND: Roles = Roles { workers: false, ..Roles::ALL };

impl Line {
    pub async fn open() -> Self {
        Self::open_with(Rows::new(4, 25), None, |_| {}).await
    }

    pub async fn open_with(rows: Rows, public: Option<PublicValue>, more: impl FnOnce(&mut Config)) -> Self {
        let (database, clock) = Database::with_clock().await;
        let event = Rows { on_sale_in: TimeDelta::hours(1), ..rows }.open(database.pool()).await;
        put_up(&database, &clock, event, public).await;
        let mut config = database.config().await;
        quick(&mut config);
        more(&mut config);
        let hub = Hub::start_as(config, BY_HAND).await;
        Self { database, clock, hub, event }
    }

    /// People who may join: with accounts, and addresses that were checked.
    pub async fn people(&self, count: usize) -> Vec<Fan> {
        people(&self.database, &self.hub.url(), count).await
    }

    /// People who have joined, in this order.
    pub async fn joined(&self, count: usize) -> Vec<Fan> {
        let people = self.people(count).await;
        for fan in &people {
            join(fan, self.event).await.ok();
        }
        people
    }

    /// Looks at the line once, at this hub. Returns how many were called.
    pub async fn look(&self) -> i64 {
        look(&self.hub, self.event).await
    }

    /// The sale opens: entries fixed, drawn, and the first called. Returns how many.
    pub async fn opens(&self) -> i64 {
        self.clock.advance(TimeDelta::hours(1)).await;
        self.look().await
    }

    pub async fn run(&self, sql: &str) {
        sqlx::query(sql).execute(self.database.pool()).await.expect("the test's database answers");
    }

    pub async fn count(&self, sql: &str) -> i64 {
        sqlx::query_scalar(sql).fetch_one(self.database.pool()).await.expect("the test's database answers")
    }

    /// What everybody is shown, read anew.
    pub async fn shown(&self) -> Value {
        let mut db = self.database.pool().acquire().await.expect("a connection");
        let seen = fullhouse::waiting_room::line::look(&mut db, self.event).await.expect("the line is read");
        serde_json::to_value(seen.expect("the event has a line").line).expect("a line is plain data")
    }

    /// Whose turn it is, and their places.
    pub async fn places(&self, people: &[Fan]) -> Vec<i64> {
        let mut places = Vec::new();
        for fan in people {
            places.push(mine(fan, self.event).await.ok()["place"].as_i64().expect("a place"));
        }
        places
    }

    /// In the order of their places.
    pub async fn in_order(&self, people: &[Fan]) -> Vec<Fan> {
        let mut placed: Vec<(i64, Fan)> = self.places(people).await.into_iter().zip(people.to_vec()).collect();
        placed.sort_by_key(|(place, _)| *place);
        placed.into_iter().map(|(_, fan)| fan).collect()
    }

    pub async fn close(self) {
        self.hub.stop().await;
        self.database.finish().await;
    }
}

/// Gives an event its line, from now until ten minutes before its sale.
pub async fn put_up(database: &Database, clock: &Clock, event: i64, public: Option<PublicValue>) {
    let now = clock.now().await;
    let on_sale: chrono::DateTime<chrono::Utc> = sqlx::query_scalar("select on_sale_at from event where id = $1")
        .bind(event)
        .fetch_one(database.pool())
        .await
        .expect("an event");
    let new = NewLine {
        joins_at: now - TimeDelta::minutes(1),
        closes_at: on_sale - TimeDelta::minutes(10),
        public,
        rate_minute_min: 60,
        rate_minute_max: 60_000,
        inside_max: 10,
    };
    let mut tx = database.pool().begin().await.expect("a transaction");
    open::open(&mut tx, event, &new, "a test").await.expect("the line opens");
    tx.commit().await.expect("the line opens");
    sqlx::query("update line set rate_fixed = 60000 where event_id = $1")
        .bind(event)
        .execute(database.pool())
        .await
        .expect("the rate is set");
}

pub async fn people(database: &Database, hub_url: &str, count: usize) -> Vec<Fan> {
    let people = fan::many(database, hub_url, count).await;
    let emails: Vec<&str> = people.iter().map(|fan| fan.email.as_str()).collect();
    sqlx::query("update account set email_checked_at = clock_timestamp() where email = any($1)")
        .bind(&emails)
        .execute(database.pool())
        .await
        .expect("addresses are checked");
    people
}

pub async fn look(hub: &Hub, event: i64) -> i64 {
    let parts = hub.parts();
    calling::look(&parts.config.admission, &parts.pool, &parts.room, event).await.expect("the line is looked at")
}

/// Asks for a challenge.
pub async fn challenge(fan: &Fan, event: i64) -> Challenge {
    let answer = fan.get(&format!("/api/events/{event}/queue/challenge")).await.ok();
    serde_json::from_value(answer).expect("a challenge")
}

/// Solves it, as a browser's widget sends it.
pub fn solved(challenge: Challenge) -> String {
    let solution = altcha::solve_challenge(SolveChallengeOptions::new(&challenge)).expect("a sound challenge");
    let solution = solution.expect("a challenge of a test is quick");
    BASE64.encode(&serde_json::to_vec(&Payload { challenge, solution }).expect("plain data"))
}

pub async fn join_with(fan: &Fan, event: i64, challenge: &str) -> Answer {
    fan.post(&format!("/api/events/{event}/queue/entry"), json!({ "challenge": challenge })).await
}

pub async fn join(fan: &Fan, event: i64) -> Answer {
    let solution = solved(challenge(fan, event).await);
    join_with(fan, event, &solution).await
}

pub async fn mine(fan: &Fan, event: i64) -> Answer {
    fan.get(&format!("/api/events/{event}/queue/entry")).await
}

pub async fn leave(fan: &Fan, event: i64) -> Answer {
    fan.send(fan.request(Method::DELETE, &format!("/api/events/{event}/queue/entry"))).await
}

pub async fn enter(fan: &Fan, event: i64) -> Answer {
    fan.post(&format!("/api/events/{event}/queue/enter"), json!({})).await
}

/// Goes in; the pass.
pub async fn inside(fan: &Fan, event: i64) -> String {
    enter(fan, event).await.ok()["pass"].as_str().expect("a pass").to_owned()
}

/// Holds with a pass, or without.
pub async fn hold(fan: &Fan, event: i64, seats: &[i32], pass: Option<&str>) -> Answer {
    let mut request = fan
        .request(Method::POST, &format!("/api/events/{event}/hold"))
        .header("idempotency-key", uuid::Uuid::new_v4().to_string())
        .json(&json!({ "seats": seats }));
    if let Some(pass) = pass {
        request = request.header("fullhouse-pass", pass);
    }
    fan.send(request).await
}

pub async fn renew(fan: &Fan, event: i64, pass: &str) -> Answer {
    let path = format!("/api/events/{event}/queue/pass/renew");
    fan.send(fan.request(Method::POST, &path).header("fullhouse-pass", pass).json(&json!({}))).await
}

/// The same account, signed in once more.
pub async fn second_device(line: &Line, fan: &Fan) -> Fan {
    let token = uuid::Uuid::new_v4().simple().to_string();
    sqlx::query(
        "insert into session (token_hash, account_id, expires_at)
         select sha256($1::bytea), id, db_clock() + interval '1 day' from account where email = $2",
    )
    .bind(token.as_bytes())
    .bind(&fan.email)
    .execute(line.database.pool())
    .await
    .unwrap();
    Fan::with_session(&line.hub.url(), &token)
}
