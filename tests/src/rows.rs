//! Halls in front of a stage for tests of races: rows written straight into the database, with every knob.

use chrono::TimeDelta;
use sqlx::PgPool;

/// Straight rows and their event. Seat numbers run along the rows: row `r`, place `p` is `r * per_row + p`.
#[derive(Debug, Clone)]
pub struct Rows {
    pub rows: i32,
    pub per_row: i32,
    pub seat_limit: i32,
    pub hold_ttl_s: i32,
    pub churn_seats_max: i32,
    pub single_seat_rule: bool,
    /// Against the database's clock.
    pub on_sale_in: TimeDelta,
    pub off_sale_in: TimeDelta,
    pub currency: &'static str,
    pub price_minor: i64,
    /// Of each order; 0 for none.
    pub fee_minor: i64,
    /// Seat number and flags (1 accessible, 2 companion, 4 restricted view).
    pub flags: Vec<(i32, i16)>,
    /// Companion seat and its accessible place.
    pub companions: Vec<(i32, i32)>,
}

impl Rows {
    /// Rules of good order off, so that a test of races can draw any seats.
    pub fn new(rows: i32, per_row: i32) -> Self {
        Self {
            rows,
            per_row,
            seat_limit: 6,
            hold_ttl_s: 480,
            churn_seats_max: 1_000_000,
            single_seat_rule: false,
            on_sale_in: TimeDelta::hours(-1),
            off_sale_in: TimeDelta::days(30),
            currency: "EUR",
            price_minor: 4500,
            fee_minor: 0,
            flags: Vec::new(),
            companions: Vec::new(),
        }
    }

    pub fn seats(&self) -> i32 {
        self.rows * self.per_row
    }

    /// Writes venue, plan, event, prices and seats; returns the event's id.
    pub async fn open(&self, pool: &PgPool) -> i64 {
        let mut tx = pool.begin().await.expect("the test's database answers");
        let name = uuid::Uuid::new_v4().simple().to_string();
        let venue: i64 = sqlx::query_scalar(
            "insert into venue (slug, name, city, country, time_zone) values ($1, 'Test Hall', 'Berlin', 'DE', 'Europe/Berlin') returning id",
        )
        .bind(&name)
        .fetch_one(&mut *tx)
        .await
        .expect("a venue");
        let plan: i64 = sqlx::query_scalar("insert into plan (venue_id, name) values ($1, 'Rows') returning id")
            .bind(venue)
            .fetch_one(&mut *tx)
            .await
            .expect("a plan");
        let revision: i64 = sqlx::query_scalar(
            "insert into plan_revision (plan_id, revision, hash, seat_count, focus_x, focus_y, geometry)
             values ($1, 1, $2, $3, $4, 0, ''::bytea) returning id",
        )
        .bind(plan)
        .bind(&name)
        .bind(self.seats())
        .bind(f64::from(self.per_row) * 5.0)
        .fetch_one(&mut *tx)
        .await
        .expect("a revision");
        sqlx::query(
            "insert into plan_seat (plan_revision_id, seat_no, guid, section, row_label, seat_label, category, run, run_pos, x, y)
             select $1, r * $3 + p, 'r' || r || 'p' || p, 'Stalls', (r + 1)::text, (p + 1)::text, 'Seats', r, p, p * 10.0 + 5, 20 + r * 10.0
             from generate_series(0, $2 - 1) as r, generate_series(0, $3 - 1) as p",
        )
        .bind(revision)
        .bind(self.rows)
        .bind(self.per_row)
        .execute(&mut *tx)
        .await
        .expect("seats of the plan");
        for (seat, flags) in &self.flags {
            sqlx::query("update plan_seat set flags = $3 where plan_revision_id = $1 and seat_no = $2")
                .bind(revision)
                .bind(seat)
                .bind(flags)
                .execute(&mut *tx)
                .await
                .expect("flags of a seat");
        }
        for (companion, place) in &self.companions {
            sqlx::query("update plan_seat set companion_of = $3 where plan_revision_id = $1 and seat_no = $2")
                .bind(revision)
                .bind(companion)
                .bind(place)
                .execute(&mut *tx)
                .await
                .expect("a companion seat");
        }
        let event: i64 = sqlx::query_scalar(
            "insert into event (slug, name, plan_revision_id, time_zone, starts_local, starts_at, on_sale_local, on_sale_at,
                                off_sale_local, off_sale_at, currency, seat_limit, hold_ttl_s, churn_seats_max, single_seat_rule)
             select $1, 'A Concert', $2, 'Europe/Berlin',
                    (c.now + interval '40 days') at time zone 'Europe/Berlin', c.now + interval '40 days',
                    (c.now + $3) at time zone 'Europe/Berlin', c.now + $3,
                    (c.now + $4) at time zone 'Europe/Berlin', c.now + $4, $5, $6, $7, $8, $9
             from (select db_clock() as now) as c returning id",
        )
        .bind(&name)
        .bind(revision)
        .bind(self.on_sale_in)
        .bind(self.off_sale_in)
        .bind(self.currency)
        .bind(self.seat_limit)
        .bind(self.hold_ttl_s)
        .bind(self.churn_seats_max)
        .bind(self.single_seat_rule)
        .fetch_one(&mut *tx)
        .await
        .expect("an event");
        for statement in [
            "insert into price_level (event_id, level, name, category, color) values ($1, 0, 'Seats', 'Seats', '#4176a5')",
            "insert into price (event_id, level, ticket_type, amount_minor) values ($1, 0, 'adult', $2)",
            "insert into event_seat (event_id, seat_no, level)
             select $1, seat_no, 0 from plan_seat where plan_revision_id = $2 order by seat_no",
            "insert into fee (event_id, code, basis, amount_minor) select $1, 'booking', 'order', $2::bigint where $2::bigint > 0",
        ] {
            let query = sqlx::query(statement).bind(event);
            let query = match statement {
                s if s.contains("into price ") => query.bind(self.price_minor),
                s if s.contains("event_seat") => query.bind(revision),
                s if s.contains("into fee") => query.bind(self.fee_minor),
                _ => query,
            };
            query.execute(&mut *tx).await.expect("prices and seats of the event");
        }
        tx.commit().await.expect("the hall opens");
        event
    }
}

/// Buyers with accounts, written straight into the database; for tests that need many at once.
pub async fn buyers(pool: &PgPool, count: i32) -> Vec<uuid::Uuid> {
    sqlx::query_scalar(
        "with accounts as (
            insert into account (id, email, name, password_hash)
            select gen_random_uuid(), gen_random_uuid() || '@example.com', 'A Buyer', '!' from generate_series(1, $1) returning id)
         insert into buyer (id, account_id) select gen_random_uuid(), id from accounts returning id",
    )
    .bind(count)
    .fetch_all(pool)
    .await
    .expect("buyers")
}
