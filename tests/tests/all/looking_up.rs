//! Looking up an order by whatever somebody at the counter has, in a house that has many.

use fullhouse::checkout::find;
use fullhouse_tests::{
    database::Database,
    rows::{Rows, buyers},
};
use sqlx::{PgPool, postgres::PgPoolOptions};
use uuid::Uuid;

const OTHER_ORDERS: i32 = 5_000;
const SEAT: i32 = 7;

/// One order that was bought by card, with something given back; and many that came to nothing.
const HOUSE: &str = "
    insert into account (id, email, name, password_hash) values (gen_random_uuid(), 'ada@example.org', 'Ada Lovelace', '!');
    insert into buyer (id, account_id) select gen_random_uuid(), id from account;
    insert into hold (id, event_id, buyer_id, seat_nos, state, held_until, seats_taken, created_at, ended_at)
        select gen_random_uuid(), e.id, b.id, '{7}', 'bought', db_clock(), 1, db_clock(), db_clock()
        from event e cross join (select id from buyer limit 1) b;
    insert into \"order\" (id, code, event_id, buyer_id, hold_id, state, currency, total_minor, channel, actor, created_at, confirmed_at)
        select gen_random_uuid(), 'FOUND001', event_id, buyer_id, id, 'confirmed', 'EUR', 4500, 'web', 'buyer', db_clock(), db_clock()
        from hold;
    insert into order_line (order_id, event_id, seat_no, ticket_type, amount_minor, state)
        select id, event_id, 7, 'adult', 4500, 'sold' from \"order\";
    update event_seat s set status = 2, order_id = o.id from \"order\" o where s.event_id = o.event_id and s.seat_no = 7;
    insert into ticket (id, order_id, event_id, seat_no, code, state, created_at)
        select gen_random_uuid(), id, event_id, 7, 'THE-TICKET', 'valid', db_clock() from \"order\";
    insert into tender (id, order_id, kind, amount_minor, created_at) select gen_random_uuid(), id, 'card', 4500, db_clock() from \"order\";
    insert into attempt (id, order_id, tender_id, amount_minor, currency, payment_method, pi_id, state, hold_expires_at,
                         captured_minor, created_at, updated_at, card_last4)
        select gen_random_uuid(), order_id, id, 4500, 'EUR', 'pm', 'pi_1', 'captured', db_clock(), 4500, db_clock(), db_clock(), '4242'
        from tender;
    insert into provider_intent (pi_id, status, amount, amount_received, currency, charge_id, created_at, seen_at)
        values ('pi_1', 'succeeded', 4500, 4500, 'eur', 'ch_1', db_clock(), db_clock());
    insert into refund_request (id, order_id, event_id, key, body_hash, amount_minor, seat_nos, reason, actor, created_at)
        select gen_random_uuid(), id, event_id, 'k', '', 100, '{}', 'cold', 'x', db_clock() from \"order\";
    insert into refund_line (request_id, order_line_id, amount_minor)
        select q.id, l.id, 100 from refund_request q join order_line l on l.order_id = q.order_id;
    insert into refund (id, tender_id, attempt_id, request_id, kind, amount_minor, state, provider_id, reason, created_at)
        select gen_random_uuid(), a.tender_id, a.id, q.id, 'card', 100, 'succeeded', 're_1', 'cold', db_clock()
        from attempt a cross join refund_request q;";

const OTHERS: &str = "
    with holds as (
        insert into hold (id, event_id, buyer_id, seat_nos, state, held_until, seats_taken, created_at, ended_at)
            select gen_random_uuid(), $1, ($2::uuid[])[1 + n % cardinality($2)], array[n % 60], 'expired', db_clock(), 1, db_clock(), db_clock()
            from generate_series(1, $3) n returning id, event_id, buyer_id, seat_nos),
    orders as (
        insert into \"order\" (id, code, event_id, buyer_id, hold_id, state, currency, total_minor, channel, actor, created_at, cancel_reason)
            select gen_random_uuid(), left(replace(id::text, '-', ''), 12), event_id, buyer_id, id, 'cancelled', 'EUR', 4500, 'counter', 'x', db_clock(), 'time_over'
            from holds returning id, hold_id)
    insert into order_line (order_id, event_id, seat_no, ticket_type, amount_minor, state)
        select o.id, h.event_id, h.seat_nos[1], 'adult', 4500, 'void' from orders o join holds h on h.id = o.hold_id";

/// Rows of orders, their seats and tickets that the one connection of the pool has read.
async fn rows_read(pool: &PgPool) -> i64 {
    sqlx::raw_sql("select pg_stat_force_next_flush()").execute(pool).await.expect("the server counts");
    sqlx::query_scalar(
        "select sum(coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0))::bigint from pg_stat_user_tables
         where relname in ('order', 'order_line', 'plan_seat', 'ticket')",
    )
    .fetch_one(pool)
    .await
    .expect("the server counts")
}

#[tokio::test]
async fn an_order_is_found_by_whatever_somebody_has_without_a_look_at_every_other() {
    let database = Database::new().await;
    let pool = PgPoolOptions::new().max_connections(1).connect(&database.url().await).await.expect("a connection");
    let event = Rows::new(3, 20).open(&pool).await;
    sqlx::raw_sql(HOUSE).execute(&pool).await.expect("an order");
    let elsewhere = Rows::new(3, 20).open(&pool).await;
    let others = buyers(&pool, 500).await;
    // A third of them of the same event; and of another, where the seat has the same name.
    for (event, count) in [(event, OTHER_ORDERS / 3), (elsewhere, OTHER_ORDERS - OTHER_ORDERS / 3)] {
        sqlx::query(OTHERS).bind(event).bind(&others).bind(count).execute(&pool).await.expect("many orders");
    }
    sqlx::raw_sql("analyze").execute(&pool).await.expect("the planner knows them");

    // The control: each order is asked whether it is meant.
    let before = rows_read(&pool).await;
    let asked_each = "select o.id from \"order\" o where o.code = $1 or exists (select from order_line l
                      join plan_seat p on p.seat_no = l.seat_no where l.order_id = o.id and p.section = $1)";
    sqlx::query(asked_each).bind("FOUND001").fetch_all(&pool).await.expect("it is found as well");
    assert!(rows_read(&pool).await - before > i64::from(OTHER_ORDERS), "the server counts what is read");

    let order: Uuid =
        sqlx::query_scalar("select id from \"order\" where code = 'FOUND001'").fetch_one(&pool).await.unwrap();
    let ids: Vec<Uuid> =
        sqlx::query_scalar("select id from ticket union all select id from attempt union all select id from refund")
            .fetch_all(&pool)
            .await
            .unwrap();
    let mut said: Vec<String> =
        ["found001", "THE-TICKET", "ADA@example.org", "love ada", "4242", "pi_1", "ch_1", "re_1"]
            .map(String::from)
            .into();
    said.extend([order].iter().chain(&ids).map(|id| id.to_string().to_uppercase()));
    for text in said {
        let before = rows_read(&pool).await;
        let found = find::orders(&pool, &text, None).await.expect("an answer");
        assert_eq!(found.iter().map(|o| o.order_id).collect::<Vec<_>>(), [order], "{text}");
        assert_eq!((&*found[0].code, found[0].seats.as_slice()), ("FOUND001", &[SEAT][..]));
        let read = rows_read(&pool).await - before;
        assert!(read < i64::from(OTHER_ORDERS) / 5, "{read} rows were read to find {text}");
        assert_eq!(
            find::orders(&pool, &text, Some(elsewhere)).await.expect("an answer"),
            [],
            "{text} is of this event"
        );
    }

    // Whoever touches a sold seat is told its order.
    let before = rows_read(&pool).await;
    assert_eq!(find::order(&pool, order).await.expect("an answer").map(|o| o.order_id), Some(order));
    assert!(rows_read(&pool).await - before < 20);

    // A seat is of many orders; the latest come first, and as many as a person reads.
    let name: String = sqlx::query_scalar(
        "select section || ' ' || row_label || ' ' || seat_label from plan_seat where seat_no = $1 limit 1",
    )
    .bind(SEAT)
    .fetch_one(&pool)
    .await
    .unwrap();
    let of_seat = find::orders(&pool, &name, Some(event)).await.expect("an answer");
    assert!(of_seat.iter().any(|o| o.order_id == order) && of_seat.len() > 20, "{name}: {}", of_seat.len());
    assert_eq!(find::orders(&pool, &name, None).await.expect("an answer").len(), 50);
    for nothing in ["", "  ", "nobody", "%", "_", "'"] {
        assert_eq!(find::orders(&pool, nothing, None).await.expect("an answer"), [], "{nothing:?}");
    }
    pool.close().await;
    database.finish().await;
}
