//! The checker finds what it says it looks for. Each invariant is broken by hand and mended again.

use fullhouse::watch::{INVARIANTS, Rounds, check};
use fullhouse_tests::database::Database;
use sqlx::PgPool;

/// A house in which all is well: a hold of seats 0 and 1, seat 2 sold for cash from a lease, seat 3 by card.
const HOUSE: &str = "
    insert into venue (slug, name, time_zone) values ('hall', 'Hall', 'UTC');
    insert into plan (venue_id, name) values (1, 'Plan');
    insert into plan_revision (plan_id, revision, hash, seat_count, focus_x, focus_y, geometry)
        values (1, 1, 'h', 5, 0, 0, '');
    insert into event (slug, name, plan_revision_id, time_zone, starts_local, starts_at, on_sale_local, on_sale_at,
                       off_sale_local, off_sale_at, currency, seat_limit)
        values ('e', 'E', 1, 'UTC', '2030-01-01', '2030-01-01Z', '2020-01-01', '2020-01-01Z', '2030-01-01', '2030-01-01Z', 'EUR', 4);
    insert into account (id, email, name, password_hash)
        select id(n), format('a%s@example.org', n), 'A', '' from generate_series(1, 2) n;
    insert into buyer (id, account_id) select id(n), id(n) from generate_series(1, 2) n;
    insert into draw (event_id, draw_no, commitment, secret, created_at) values (1, 1, sha256('c'), sha256('s'), now());
    insert into line (event_id, changed_at, joins_at, closes_at, draw_no, challenge_key, next_number, called_through, rate_minute,
                      rate_minute_min, rate_minute_max, inside_max)
        values (1, now(), '2019-01-01Z', '2020-01-01Z', 1, sha256('k'), 1, 1, 10, 1, 10, 10);
    insert into line_entry (event_id, number, account_id, entry_key, joined_at)
        values (1, 0, id(1), decode(repeat('00', 16), 'hex'), now());
    insert into hold (id, event_id, buyer_id, seat_nos, state, held_until, seats_taken, created_at, ended_at) values
        (id(1), 1, id(1), '{0,1}', 'live', '2030-01-01Z', 2, now(), null),
        (id(2), 1, id(1), '{2}', 'bought', '2030-01-01Z', 1, now(), now()),
        (id(3), 1, id(2), '{3}', 'bought', '2030-01-01Z', 1, now(), now()),
        (id(4), 1, id(2), '{1}', 'live', '2021-01-01Z', 1, now(), null);
    insert into \"order\" (id, code, event_id, buyer_id, hold_id, state, currency, total_minor, channel, actor, created_at, confirmed_at) values
        (id(2), 'A', 1, id(1), id(2), 'confirmed', 'EUR', 1100, 'counter', 'terminal', now(), now()),
        (id(3), 'B', 1, id(2), id(3), 'confirmed', 'EUR', 1000, 'web', 'buyer', now(), now());
    insert into order_line (order_id, event_id, seat_no, ticket_type, fee_code, amount_minor, state) values
        (id(2), 1, 2, 'adult', null, 1000, 'sold'), (id(2), 1, null, null, 'service', 100, 'sold'),
        (id(3), 1, 3, 'adult', null, 1000, 'sold');
    insert into tender (id, order_id, kind, amount_minor, received_minor, created_at) values
        (id(2), id(2), 'cash', 1100, 2000, now()), (id(3), id(3), 'card', 1000, null, now()),
        (id(4), id(3), 'card', 1000, null, now());
    insert into attempt (id, order_id, tender_id, amount_minor, currency, payment_method, state, captured_minor, hold_expires_at, created_at, updated_at) values
        (id(3), id(3), id(3), 1000, 'EUR', 'pm', 'captured', 1000, '2030-01-01Z', now(), now()),
        (id(4), id(3), id(4), 1000, 'EUR', 'pm', 'declined', 0, '2030-01-01Z', now(), now());
    insert into ticket (id, order_id, event_id, seat_no, code, state, created_at) values
        (id(2), id(2), 1, 2, 'c2', 'valid', now()), (id(3), id(3), 1, 3, 'c3', 'valid', now());
    insert into event_seat (event_id, seat_no, status, level, hold_id, held_until, order_id) values
        (1, 0, 1, 0, id(1), '2030-01-01Z', null), (1, 1, 1, 0, id(1), '2030-01-01Z', null),
        (1, 2, 2, 0, null, null, id(2)), (1, 3, 2, 0, null, null, id(3)), (1, 4, 0, 0, null, null, null);
    insert into terminal (id, name, role, token_hash) values (id(1), 'T', 'counter', sha256('t'));
    insert into lease (id, terminal_id, event_id, key, body_hash, currency, seats_max, sells_for_s, next_seq, state, granted_by,
                       granted_at, ended_at, ended_by)
        values (id(1), id(1), 1, 'k', '', 'EUR', 4, 60, 1, 'closed', 'terminal', now(), now(), 'terminal');
    insert into lease_seat (lease_id, event_id, seat_no, ticket_id, code, prices, state, order_id)
        values (id(1), 1, 2, id(2), 'c2', '{}', 'sold', id(2));
    insert into journal (terminal_id, next_seq) values (id(1), 2);
    insert into journal_entry (terminal_id, seq, body, body_hash, lease_id, event_id, currency, total_minor, order_id, needs_person, received_at)
        values (id(1), 1, '', '', id(1), 1, 'EUR', 1100, id(2), false, now());
    insert into voucher (id, event_id, code_hash, seats_max, recipient, reason, valid_until, made_by, terminal_id, made_at)
        values (id(1), 1, sha256('v'), 1, 'R', 'r', '2030-01-01Z', 'S', id(1), now());
    insert into tender (id, order_id, kind, amount_minor, voucher_id, created_at) values (id(5), id(2), 'voucher', 0, id(1), now());
    insert into partner (id, code, name, made_by, terminal_id, made_at) values (id(1), 'P', 'P', 'S', id(1), now());
    insert into buyer (id, partner_id) values (id(5), id(1));
    insert into hold (id, event_id, buyer_id, seat_nos, state, held_until, seats_taken, created_at, ended_at)
        values (id(5), 1, id(5), '{4}', 'expired', '2021-01-01Z', 1, now(), now());
    insert into consignment (id, hold_id, partner_id, event_id, until, note, body_hash, made_by, terminal_id, made_at)
        values (id(1), id(5), id(1), 1, '2021-01-01Z', 'n', '', 'S', id(1), now());
    insert into consignment_seat (consignment_id, seat_no) values (id(1), 4);
    insert into staff (id, name, role, password_hash, created_at) values (id(1), 'S', 'clerk', '', now());
    insert into shift (id, terminal_id, business_day, currency, float_minor, opened_by, opened_at)
        values (id(1), id(1), '2026-01-01', 'EUR', 500, id(1), now());
    update tender set terminal_id = id(1), shift_id = id(1) where id = id(2);
    update shift set closed_by = id(1), closed_at = now(), z_number = 1, expected_minor = 1600, counted_minor = 1600,
                     report = '{\"expected_minor\": 1600}'";

/// What breaks an invariant, and what mends it.
const BROKEN: &[(&str, &str, &str)] = &[
    (
        "seat_without_hold",
        "update event_seat set status = 1, hold_id = id(9), held_until = '2030-01-01Z' where seat_no = 4",
        "update event_seat set status = 0, hold_id = null, held_until = null where seat_no = 4",
    ),
    (
        "seat_without_hold",
        "update event_seat set held_until = held_until + interval '1 s' where seat_no = 0",
        "update event_seat set held_until = held_until - interval '1 s' where seat_no = 0",
    ),
    (
        "hold_without_seat",
        "update event_seat set status = 0, hold_id = null, held_until = null where seat_no = 0",
        "update event_seat set status = 1, hold_id = id(1), held_until = '2030-01-01Z' where seat_no = 0",
    ),
    (
        "seat_in_two_holds",
        "update hold set held_until = '2030-01-01Z' where id = id(4)",
        "update hold set held_until = '2021-01-01Z' where id = id(4)",
    ),
    (
        "seat_without_sale",
        "update order_line set state = 'void' where seat_no = 2",
        "update order_line set state = 'sold' where seat_no = 2",
    ),
    (
        "seat_without_sale",
        "update \"order\" set state = 'cancelled' where id = id(3)",
        "update \"order\" set state = 'confirmed' where id = id(3)",
    ),
    (
        "sale_without_seat",
        "update event_seat set order_id = id(3) where seat_no = 2",
        "update event_seat set order_id = id(2) where seat_no = 2",
    ),
    ("limit_exceeded", "update event set seat_limit = 2", "update event set seat_limit = 4"),
    (
        "line_number_missing",
        "insert into line_entry (event_id, number, account_id, entry_key, joined_at)
         values (1, 2, id(2), decode(repeat('00', 16), 'hex'), now())",
        "alter table line_entry disable trigger user; delete from line_entry where number = 2;
         alter table line_entry enable trigger user",
    ),
    (
        "pass_without_call",
        "insert into pass (id, event_id, account_id, number, place, session_hash, issued_at, expires_at, renewable_until)
         values (id(9), 1, id(1), 0, 7, sha256(''), now(), now(), now())",
        "delete from pass",
    ),
    (
        "total_mismatch",
        "update order_line set amount_minor = 99 where fee_code = 'service'",
        "update order_line set amount_minor = 100 where fee_code = 'service'",
    ),
    (
        "confirmed_without_money",
        "update attempt set state = 'auth_unknown' where id = id(3)",
        "update attempt set state = 'captured' where id = id(3)",
    ),
    (
        "confirmed_without_money",
        "update tender set amount_minor = 1 where id = id(2)",
        "update tender set amount_minor = 1100 where id = id(2)",
    ),
    (
        "refund_count_mismatch",
        "update tender set refunded_minor = 1 where id = id(2)",
        "update tender set refunded_minor = 0 where id = id(2)",
    ),
    (
        "refund_request_without_money",
        "insert into refund_request (id, order_id, event_id, key, body_hash, amount_minor, seat_nos, reason, actor, created_at)
         values (id(9), id(2), 1, 'k', '', 5, '{}', 'r', 'a', now())",
        "delete from refund_request",
    ),
    (
        "money_without_order",
        "update \"order\" set state = 'cancelled' where id = id(3)",
        "update \"order\" set state = 'confirmed' where id = id(3)",
    ),
    (
        "sold_beside_a_payment",
        "update attempt set state = 'action_required' where id = id(4)",
        "update attempt set state = 'declined' where id = id(4)",
    ),
    (
        "captured_another_amount",
        "update attempt set captured_minor = 999 where id = id(3)",
        "update attempt set captured_minor = 1000 where id = id(3)",
    ),
    (
        "frozen_without_attempt",
        "update hold set attempt_id = id(4) where id = id(1)",
        "update hold set attempt_id = null where id = id(1)",
    ),
    (
        "bought_without_order",
        "update \"order\" set hold_id = id(3) where id = id(2)",
        "update \"order\" set hold_id = id(2) where id = id(2)",
    ),
    (
        "ticket_without_sale",
        "update ticket set seat_no = 4 where id = id(2)",
        "update ticket set seat_no = 2 where id = id(2)",
    ),
    (
        "sale_without_ticket",
        "update ticket set state = 'void' where id = id(3)",
        "update ticket set state = 'valid' where id = id(3)",
    ),
    (
        "leased_seat_mismatch",
        "insert into lease_seat (lease_id, event_id, seat_no, ticket_id, code, prices) values (id(1), 1, 4, id(9), 'c9', '{}')",
        "delete from lease_seat where seat_no = 4",
    ),
    (
        "leased_sale_mismatch",
        "update lease_seat set order_id = id(3) where seat_no = 2",
        "update lease_seat set order_id = id(2) where seat_no = 2",
    ),
    ("journal_gap", "update journal set next_seq = 3", "update journal set next_seq = 2"),
    (
        "journal_without_money",
        "update journal_entry set total_minor = 1",
        "update journal_entry set total_minor = 1100",
    ),
    ("voucher_overdrawn", "insert into order_line (order_id, event_id, seat_no, ticket_type, amount_minor, state) values (id(2), 1, 4, 'adult', 0, 'void')", "delete from order_line where seat_no = 4"),
    (
        "consigned_seat_mismatch",
        "update consignment set until = '2021-01-02Z'",
        "update consignment set until = '2021-01-01Z'",
    ),
    (
        "consigned_seat_mismatch",
        "update consignment set until = '2031-01-01Z'; update hold set held_until = '2031-01-01Z' where id = id(5)",
        "update consignment set until = '2021-01-01Z'; update hold set held_until = '2021-01-01Z' where id = id(5)",
    ),
    (
        "consigned_seat_mismatch",
        "insert into consignment_seat (consignment_id, seat_no, state, order_id, changed_at) values (id(1), 2, 'sold', id(2), now())",
        "delete from consignment_seat where seat_no = 2",
    ),
    (
        "waiting_seat_mismatch", // of a rule that there is not
        "alter table event_seat disable trigger user;
         insert into seat_note (event_id, seat_no, verb, reason, actor, created_at) values (1, 4, 'wait', 'r', 'S', now());
         update event_seat set status = 3, until_sold_id = id(1) where seat_no = 4;
         alter table event_seat enable trigger user",
        "update event_seat set status = 0, until_sold_id = null where seat_no = 4",
    ),
    (
        "waiting_seat_mismatch", // of a seat that was given up since
        "insert into until_sold (id, event_id, body_hash, reason, made_by, terminal_id, made_at)
             values (id(1), 1, '', 'r', 'S', id(1), now());
         insert into seat_note (event_id, seat_no, verb, reason, actor, created_at) values (1, 4, 'kill', 'r', 'S', now());
         update event_seat set status = 3, until_sold_id = id(1) where seat_no = 4",
        "update event_seat set status = 0, until_sold_id = null where seat_no = 4",
    ),
    (
        "account_mismatch",
        "alter table tender disable trigger user;
         insert into tender (id, order_id, kind, amount_minor, created_at) values (id(9), id(2), 'account', 0, now());
         alter table tender enable trigger user",
        "delete from tender where id = id(9)",
    ),
    (
        "account_mismatch",
        "insert into partner_payment (id, partner_id, event_id, amount_minor, currency, way, reference, made_by, terminal_id, made_at)
         values (id(1), id(1), 1, 5, 'USD', 'transfer', 'r', 'S', id(1), now())",
        "delete from partner_payment",
    ),
    (
        "account_mismatch", // paid back, and nothing came out of a drawer
        "insert into shift_move (shift_id, key, kind, amount_minor, reason, staff_id, made_at)
             values (id(1), 'k', 'pay_in', 5, 'r', id(1), now());
         insert into partner_payment (id, partner_id, event_id, amount_minor, currency, way, reference, shift_move_id, made_by, terminal_id, made_at)
             select id(1), id(1), 1, -5, 'EUR', 'cash', 'r', id, 'S', id(1), now() from shift_move where key = 'k'",
        "delete from partner_payment; delete from shift_move",
    ),
    (
        "shift_mismatch",
        "insert into shift_move (shift_id, key, kind, amount_minor, reason, staff_id, made_at)
         values (id(1), 'k', 'drop', 1, 'r', id(1), now())",
        "delete from shift_move",
    ),
    (
        "shift_mismatch",
        "alter table shift disable trigger user; update shift set report = '{\"expected_minor\": 1601}'",
        "update shift set report = '{\"expected_minor\": 1600}'; alter table shift enable trigger user",
    ),
    (
        "shift_mismatch",
        "alter table shift disable trigger user; update shift set z_number = 2",
        "update shift set z_number = 1; alter table shift enable trigger user",
    ),
];

async fn run(pool: &PgPool, sql: &str) {
    sqlx::raw_sql(sql).execute(pool).await.unwrap_or_else(|e| panic!("{e}: {sql}"));
}

const ID: &str =
    "create function id(n bigint) returns uuid language sql immutable as 'select lpad(n::text, 32, ''0'')::uuid'";

#[tokio::test]
async fn every_invariant_is_found_broken_and_found_mended() {
    let database = Database::new().await;
    let pool = database.pool();
    run(pool, ID).await;
    run(pool, HOUSE).await;
    assert_eq!(check(pool).await.unwrap(), [], "all is well");
    for (invariant, sql, mend) in BROKEN {
        run(pool, sql).await;
        let found = check(pool).await.unwrap();
        // A journal and a drawer are their terminal's, whatever the events of its sales.
        let event = (!["journal_gap", "shift_mismatch"].contains(invariant)).then_some(1);
        assert!(
            found.iter().any(|v| v.invariant == *invariant && v.event_id == event),
            "{invariant}: {sql}: {found:?}"
        );
        run(pool, mend).await;
        assert_eq!(check(pool).await.unwrap(), [], "{invariant} is mended");
    }
    for name in INVARIANTS {
        assert!(BROKEN.iter().any(|(invariant, ..)| invariant == name), "{name} is never broken here");
    }
    database.finish().await;
}

/// A round looks at a slice, so that its cost does not grow with the catalogue; in turn it sees them all.
#[tokio::test]
async fn rounds_come_by_every_event() {
    let database = Database::new().await;
    let pool = database.pool();
    run(pool, ID).await;
    run(pool, HOUSE).await;
    // Events 2 to 25 are on sale as well, 26 to 28 were so long ago.
    for (count, off_sale) in [(24, "2030-01-01"), (3, "2021-01-01")] {
        let copies = format!(
            "insert into event (slug, name, plan_revision_id, time_zone, starts_local, starts_at, on_sale_local, on_sale_at,
                                off_sale_local, off_sale_at, currency)
             select gen_random_uuid(), 'E', 1, 'UTC', starts_local, starts_at, on_sale_local, on_sale_at,
                    '{off_sale}', '{off_sale}Z', 'EUR' from event, generate_series(1, {count}) where id = 1"
        );
        run(pool, &copies).await;
    }
    let break_it = |event: i64| {
        format!("insert into event_seat (event_id, seat_no, status, level, order_id) values ({event}, 0, 2, 0, id(9))")
    };
    let mut rounds = Rounds::default();
    run(pool, &break_it(25)).await;
    run(pool, &break_it(27)).await;
    let mut known = Vec::new();
    for _ in 0..4 {
        rounds.check(pool).await.unwrap();
        known.push(rounds.known("seat_without_sale"));
    }
    assert_eq!(known, [0, 1, 2, 2], "one of the others a round, ten of those on sale, and what was found stays known");
    run(pool, "delete from event_seat where order_id = id(9)").await;
    for _ in 0..4 {
        rounds.check(pool).await.unwrap();
    }
    assert_eq!(rounds.known("seat_without_sale"), 0);
    database.finish().await;
}
