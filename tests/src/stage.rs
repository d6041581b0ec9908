//! An event on sale, made by the functions that the command line uses.

use chrono::{Days, Utc};
use fullhouse::catalog::{
    commands::read_plan,
    event::{self, EventSpec},
    import::{self, VenueSpec},
};
use serde_json::{Value, json};

use crate::{database::Database, hall::Hall};

/// What an event of a test is like. The defaults are the product's, except that single seats may be left.
#[derive(Debug, Clone)]
pub struct Stage {
    pub slug: &'static str,
    pub hall: Hall,
    /// The file beside the plan, as JSON: accessible places, house seats.
    pub beside: Option<Value>,
    pub seat_limit: i32,
    pub hold_ttl_s: i32,
    /// Off, so that a test may name any seats; a test of the rule turns it on.
    pub single_seat_rule: bool,
}

impl Default for Stage {
    fn default() -> Self {
        Self {
            slug: "an-evening",
            hall: Hall { rows: 10, seats_a_row: 20 },
            beside: None,
            seat_limit: 6,
            hold_ttl_s: 480,
            single_seat_rule: false,
        }
    }
}

impl Stage {
    /// Imports the hall and puts the event on sale; it was opened yesterday and takes place in a month.
    /// Front seats cost 50.00 EUR (concession 40.00), the others 30.00. Returns the event's number.
    pub async fn open(&self, database: &Database) -> i64 {
        let plan = self.hall.plan(self.slug).to_string();
        let beside = self.beside.as_ref().map(Value::to_string);
        let (layout, _) = read_plan(plan.as_bytes(), beside.as_ref().map(String::as_bytes)).expect("a sound plan");
        let venue = VenueSpec {
            slug: "the-hall".to_owned(),
            name: Some("The Hall".to_owned()),
            city: Some("Berlin".to_owned()),
            country: Some("DE".to_owned()),
            time_zone: Some("Europe/Berlin".to_owned()),
            may_change_zone: false,
        };
        let today = Utc::now().date_naive();
        let spec = json!({
            "slug": self.slug,
            "name": "An Evening",
            "venue": venue.slug,
            "plan": self.slug,
            "starts": format!("{}T20:00", today + Days::new(30)),
            "on_sale": format!("{}T10:00", today - Days::new(2)),
            "currency": "EUR",
            "seat_limit": self.seat_limit,
            "hold_ttl_s": self.hold_ttl_s,
            "single_seat_rule": self.single_seat_rule,
            "levels": [
                { "category": "Front", "prices": [
                    { "ticket_type": "adult", "amount_minor": 5000 },
                    { "ticket_type": "concession", "amount_minor": 4000 },
                ] },
                { "category": "Back", "prices": [{ "ticket_type": "adult", "amount_minor": 3000 }] },
            ],
        });
        let spec = EventSpec::read(&spec.to_string()).expect("a sound specification");
        let mut tx = database.pool().begin().await.expect("a transaction");
        import::import(&mut tx, &venue, self.slug, &layout).await.expect("the plan is imported");
        let created = event::create(&mut tx, &spec).await.expect("the event is made");
        tx.commit().await.expect("the event is on sale");
        created.id
    }
}
