//! What must never be true, looked for all the time.
//!
//! The constraints of the schema say most of this already; here it is said again in other words, over
//! several tables, so that a mistake in one place is found by the other. A violation is never
//! repaired by itself: an engineer reads the runbook.
//!
//! `fullhouse check` looks at everything. The round of each minute looks at a slice: some of the events
//! whose sale is on (or was yesterday), and one of the others, in turn; so its cost does not grow with
//! the catalogue and with years of sales.
//!
//! Deliberately absent: whether every change had its outbox row. A row is gone once it is published;
//! the relay compares what it published with the database instead.

use std::{collections::BTreeMap, time::Duration};

use chrono::Utc;
use sqlx::{PgConnection, PgPool};
use tokio_util::sync::CancellationToken;

use crate::metrics::Metrics;

const INTERVAL: Duration = Duration::from_secs(60);
/// Enough to see what is wrong; the count stops here too.
const EXAMPLES_MAX: i64 = 100;
/// Events of a round whose sale is on. With 62,000 seats each they take a second or two.
const ON_SALE_A_ROUND: i64 = 10;
/// Events of a round whose sale is not on.
const OTHERS_A_ROUND: i64 = 1;

/// Something that is true and must not be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// The name of the invariant: stable, it labels the metric and heads the runbook.
    pub invariant: &'static str,
    pub event_id: Option<i64>,
    /// Which seat, order or hold, and what it says.
    pub what: String,
}

struct Found {
    event_id: Option<i64>,
    what: String,
}

/// Each invariant is one statement, which finds what breaks it. `$1` bounds what it returns, `$2`
/// names the events; null means everything, what belongs to no event included.
macro_rules! invariants {
    ($($(#[doc = $doc:literal])* $name:ident: $sql:literal;)*) => {
        /// The names of all invariants.
        pub const INVARIANTS: &[&str] = &[$(stringify!($name)),*];

        async fn look(db: &mut PgConnection, events: Option<&[i64]>) -> sqlx::Result<Vec<Violation>> {
            let mut violations = Vec::new();
            $(
                let found = sqlx::query_as!(Found, $sql, EXAMPLES_MAX, events as Option<&[i64]>).fetch_all(&mut *db).await?;
                violations.extend(found.into_iter().map(|f| Violation {
                    invariant: stringify!($name),
                    event_id: f.event_id,
                    what: f.what,
                }));
            )*
            Ok(violations)
        }
    };
}

invariants! {
    /// A held seat is named by the live hold that it names, until the same time.
    seat_without_hold: r#"
        select s.event_id as "event_id?", format('seat %s is held by %s', s.seat_no, s.hold_id) as "what!"
        from event_seat s left join hold h on h.id = s.hold_id
        where ($2::bigint[] is null or s.event_id = any ($2))
          and s.status = 1
          and (h.id is null or h.state <> 'live' or h.event_id <> s.event_id or h.held_until <> s.held_until
               or not s.seat_no = any (h.seat_nos))
        limit $1"#;

    /// The seats of a hold that has not run out all carry it. (One that ran out may have lost some.)
    hold_without_seat: r#"
        select h.event_id as "event_id?", format('hold %s does not have seat %s', h.id, n) as "what!"
        from hold h cross join unnest(h.seat_nos) n
             left join event_seat s on s.event_id = h.event_id and s.seat_no = n
        where ($2::bigint[] is null or h.event_id = any ($2))
          and h.state = 'live' and h.held_until > db_clock() and s.hold_id is distinct from h.id
        limit $1"#;

    /// A seat is in one hold that has not run out, at most.
    seat_in_two_holds: r#"
        select h.event_id as "event_id?", format('seat %s is in %s holds', n, count(*)) as "what!"
        from hold h cross join unnest(h.seat_nos) n
        where ($2::bigint[] is null or h.event_id = any ($2))
          and h.state = 'live' and h.held_until > db_clock()
        group by h.event_id, n having count(*) > 1
        limit $1"#;

    /// A sold seat is on a sold line of the order that it names, and that order is confirmed.
    seat_without_sale: r#"
        select s.event_id as "event_id?", format('seat %s is sold to order %s', s.seat_no, s.order_id) as "what!"
        from event_seat s
        where ($2::bigint[] is null or s.event_id = any ($2))
          and s.status = 2
          and not exists (
              select from order_line l join "order" o on o.id = l.order_id
              where l.order_id = s.order_id and l.event_id = s.event_id and l.seat_no = s.seat_no
                and l.state = 'sold' and o.state in ('confirmed', 'payment_due'))
        limit $1"#;

    /// A sold line has its seat.
    sale_without_seat: r#"
        select l.event_id as "event_id?", format('order %s does not have seat %s', l.order_id, l.seat_no) as "what!"
        from order_line l left join event_seat s on s.event_id = l.event_id and s.seat_no = l.seat_no
        where ($2::bigint[] is null or l.event_id = any ($2))
          and l.state = 'sold' and l.seat_no is not null
          and (s.status is distinct from 2 or s.order_id is distinct from l.order_id)
        limit $1"#;

    /// No buyer has more than the event's limit, held and bought. A walk-in customer is a buyer too; a partner who sells
    /// on is none, nor is somebody for whom seats were put aside (a group: the verb asks who may). Seats that others of the
    /// same event wait to take the place of count once.
    limit_exceeded: r#"
        select e.id as "event_id?", format('buyer %s has %s seats of %s', t.buyer_id, sum(t.seats), e.seat_limit) as "what!"
        from (
            select event_id, buyer_id, cardinality(seat_nos) as seats
            from hold
            where ($2::bigint[] is null or event_id = any ($2)) and state = 'live' and held_until > db_clock()
            union all
            select o.event_id, o.buyer_id, 1
            from order_line l join "order" o on o.id = l.order_id
            where ($2::bigint[] is null or o.event_id = any ($2)) and l.state = 'sold' and l.seat_no is not null
            union all
            select o.event_id, o.buyer_id, -1
            from order_swap w join "order" o on o.id = w.from_order
            join "order" n on n.id = w.to_order and n.event_id = o.event_id join hold h on h.id = n.hold_id
            join order_line l on l.order_id = o.id and l.state = 'sold' and l.seat_no = any (w.from_seats)
            where ($2::bigint[] is null or o.event_id = any ($2)) and w.done_at is null and w.dropped_at is null
              and (n.state in ('confirmed', 'payment_due') or (h.state = 'live' and h.held_until > db_clock()))
        ) t join event e on e.id = t.event_id join buyer b on b.id = t.buyer_id
        where b.partner_id is null and not exists (select from customer_hold c where c.buyer_id = b.id)
        group by e.id, t.buyer_id, e.seat_limit having sum(t.seats) > e.seat_limit
        limit $1"#;

    /// The numbers of a line are dense: the next is one above the last that was given.
    line_number_missing: r#"
        select l.event_id as "event_id?", format('the next number is %s, the last %s', l.next_number, n.last) as "what!"
        from line l cross join lateral (select max(number) as last from line_entry where event_id = l.event_id) n
        where ($2::bigint[] is null or l.event_id = any ($2))
          and l.next_number <> coalesce(n.last + 1, 0)
        limit $1"#;

    /// Whoever is inside was called.
    pass_without_call: r#"
        select p.event_id as "event_id?", format('pass %s is of place %s', p.id, p.place) as "what!"
        from pass p join line l on l.event_id = p.event_id
        where ($2::bigint[] is null or p.event_id = any ($2))
          and p.ended_at is null and p.place >= l.called_through
        limit $1"#;

    /// An order's total is the sum of its lines, those that were given back included.
    total_mismatch: r#"
        select o.event_id as "event_id?", format('order %s says %s, its lines %s', o.id, o.total_minor, sum(l.amount_minor)) as "what!"
        from "order" o join order_line l on l.order_id = o.id
             and (l.state in ('open', 'sold') or (l.state = 'void' and l.refunded_minor > 0))
        where ($2::bigint[] is null or o.event_id = any ($2))
          and o.state in ('open', 'confirmed', 'payment_due')
        group by o.id having sum(l.amount_minor) <> o.total_minor
        limit $1"#;

    /// What pays for a confirmed order is its total: cash and comps as they stand, cards once they are
    /// authorised. What was given back is missing on both sides. (A refund that failed counts: it is owed.)
    confirmed_without_money: r#"
        select event_id as "event_id?", format('order %s of %s is paid with %s', id, due, paid) as "what!"
        from (
            select o.event_id, o.id,
                   o.total_minor - coalesce((select sum(l.refunded_minor) from order_line l where l.order_id = o.id), 0) as due,
                   coalesce((select sum(t.amount_minor) from tender t
                       where t.order_id = o.id
                         and (t.kind <> 'card' or exists (
                             select from attempt a where a.tender_id = t.id
                               and a.state in ('authorised', 'capture_pending', 'capture_unknown', 'captured')))), 0)
                   - coalesce((select sum(r.amount_minor) from refund r join tender t on t.id = r.tender_id
                       where t.order_id = o.id and r.replaced_by is null
                         and (r.attempt_id is null or exists (
                             select from attempt a where a.id = r.attempt_id and a.state = 'captured'))), 0) as paid
            from "order" o where ($2::bigint[] is null or o.event_id = any ($2)) and o.state = 'confirmed'
        ) as o where due <> paid
        limit $1"#;

    /// What the rows of refunds say is what was counted of them, where the caps are.
    refund_count_mismatch: r#"
        select event_id as "event_id?", format('%s has %s given back, its refunds say %s', what, counted, summed) as "what!"
        from (
            select o.event_id, 'attempt ' || a.id as what, a.refunded_minor as counted,
                   coalesce((select sum(amount_minor) from refund r where r.attempt_id = a.id and r.state <> 'failed'), 0) as summed
            from attempt a join "order" o on o.id = a.order_id where a.captured_minor > 0
            union all
            select o.event_id, 'tender ' || t.id, t.refunded_minor,
                   coalesce((select sum(amount_minor) from refund r where r.tender_id = t.id and r.attempt_id is null and r.state <> 'failed'), 0)
            from tender t join "order" o on o.id = t.order_id
            union all
            select l.event_id, 'line ' || l.id, l.refunded_minor,
                   coalesce((select sum(amount_minor) from refund_line f where f.order_line_id = l.id), 0)
            from order_line l where l.state in ('sold', 'void')
        ) as c where ($2::bigint[] is null or event_id = any ($2)) and counted <> summed
        limit $1"#;

    /// What was decided to go back is on its way, has arrived, or is owed: to the last unit.
    refund_request_without_money: r#"
        select q.event_id as "event_id?", format('%s of order %s were to go back', q.amount_minor, q.order_id) as "what!"
        from refund_request q
        where ($2::bigint[] is null or q.event_id = any ($2))
          and (q.amount_minor <> coalesce((select sum(r.amount_minor) from refund r where r.request_id = q.id and r.replaced_by is null), 0)
               or q.amount_minor <> coalesce((select sum(f.amount_minor) from refund_line f where f.request_id = q.id), 0))
        limit $1"#;

    /// Money that is being taken is a sale's; taken money is a confirmed order's, or has its refund (one
    /// that failed is on the list of staff). Of money that was taken in another currency a finding speaks; of an order
    /// that was exchanged for another it is the other's, which has its own sum.
    money_without_order: r#"
        select o.event_id as "event_id?", format('attempt %s is %s for order %s, which is %s', a.id, a.state, o.id, o.state) as "what!"
        from attempt a join "order" o on o.id = a.order_id
        where ($2::bigint[] is null or o.event_id = any ($2))
          and ((a.state in ('capture_pending', 'capture_unknown') and o.state not in ('confirmed', 'payment_due'))
           or (a.state = 'captured' and a.captured_minor > 0 and o.state <> 'confirmed'
               and not exists (select from refund r where r.attempt_id = a.id)
               and not exists (select from order_swap w where w.from_order = o.id and w.done_at is not null)))
        limit $1"#;

    /// Nothing has paid for an order while a payment by card was under way: that one would take the money as well.
    sold_beside_a_payment: r#"
        select o.event_id as "event_id?", format('order %s is confirmed, its attempt %s is %s', o.id, a.id, a.state) as "what!"
        from attempt a join "order" o on o.id = a.order_id
        where ($2::bigint[] is null or o.event_id = any ($2))
          and o.state = 'confirmed'
          and a.state in ('new', 'ready', 'confirming', 'action_required', 'auth_unknown', 'authorised')
        limit $1"#;

    /// What was captured is what was asked for, or it is on the list that it is not.
    captured_another_amount: r#"
        select o.event_id as "event_id?", format('attempt %s has captured %s of %s', a.id, a.captured_minor, a.amount_minor) as "what!"
        from attempt a join "order" o on o.id = a.order_id
        where ($2::bigint[] is null or o.event_id = any ($2))
          and a.state = 'captured' and a.captured_minor <> a.amount_minor
          and not exists (select from money_finding f where f.attempt_id = a.id and f.class = 'M3' and f.cleared_at is null)
        limit $1"#;

    /// A hold is frozen only by an attempt that lives.
    frozen_without_attempt: r#"
        select h.event_id as "event_id?", format('hold %s is frozen by attempt %s', h.id, h.attempt_id) as "what!"
        from hold h left join attempt a on a.id = h.attempt_id
        where ($2::bigint[] is null or h.event_id = any ($2))
          and h.state = 'live' and h.attempt_id is not null
          and (a.id is null or a.state in ('declined', 'voided', 'captured', 'capture_failed', 'refunded'))
        limit $1"#;

    /// A hold that was bought has its order.
    bought_without_order: r#"
        select h.event_id as "event_id?", format('hold %s was bought by nobody', h.id) as "what!"
        from hold h
        where ($2::bigint[] is null or h.event_id = any ($2))
          and h.state = 'bought'
          and not exists (select from "order" o where o.hold_id = h.id and o.confirmed_at is not null)
        limit $1"#;

    /// A seat that is leased is so on both sides: its row names the open lease that has it.
    leased_seat_mismatch: r#"
        select event_id as "event_id?", format('seat %s: its row names lease %s, lease %s has it', seat_no, row_says, lease_says) as "what!"
        from (
            select s.event_id, s.seat_no, s.lease_id as row_says, l.lease_id as lease_says
            from event_seat s
                 left join lease_seat l on l.event_id = s.event_id and l.seat_no = s.seat_no and l.state = 'leased'
            where ($2::bigint[] is null or s.event_id = any ($2)) and s.lease_id is distinct from l.lease_id
            union all
            select l.event_id, l.seat_no, l.lease_id, null
            from lease_seat l join lease e on e.id = l.lease_id
            where ($2::bigint[] is null or l.event_id = any ($2))
              and (l.event_id <> e.event_id or (l.state = 'leased' and e.state <> 'open'))
        ) as m
        limit $1"#;

    /// A seat that was sold of a lease was sold to that order, and its printed code is its ticket's.
    leased_sale_mismatch: r#"
        select l.event_id as "event_id?", format('seat %s of lease %s is %s to order %s', l.seat_no, l.lease_id, l.state, l.order_id) as "what!"
        from lease_seat l
        where ($2::bigint[] is null or l.event_id = any ($2))
          and ((l.order_id is not null
                and not exists (select from order_line o where o.order_id = l.order_id and o.seat_no = l.seat_no and o.state <> 'open'))
            or (l.state = 'sold'
                and not exists (select from ticket t where t.id = l.ticket_id and t.code = l.code and t.order_id = l.order_id))
            or (l.state <> 'sold' and exists (select from ticket t where t.id = l.ticket_id)))
        limit $1"#;

    /// A terminal's journal is settled without a gap.
    journal_gap: r#"
        select null::bigint as "event_id?", format('the journal of terminal %s is at %s and has %s sales up to %s', terminal_id, next_seq, sales, last) as "what!"
        from (
            select j.terminal_id, j.next_seq, count(e.seq) as sales, coalesce(max(e.seq), 0) as last
            from journal j left join journal_entry e on e.terminal_id = j.terminal_id
            group by j.terminal_id
        ) as j
        where $2::bigint[] is null and (sales <> next_seq - 1 or last <> next_seq - 1)
        limit $1"#;

    /// What a terminal sold without a network was settled at what lies in its drawer, or is on the list of staff.
    journal_without_money: r#"
        select e.event_id as "event_id?", format('sale %s of terminal %s over %s became order %s', e.seq, e.terminal_id, e.total_minor, e.order_id) as "what!"
        from journal_entry e left join "order" o on o.id = e.order_id
        where ($2::bigint[] is null or e.event_id = any ($2))
          and e.refusal is null
          and (o.id is null or o.currency <> e.currency or o.confirmed_at is null
               or not exists (select from tender t where t.order_id = o.id and t.kind = 'cash' and t.amount_minor = e.total_minor))
        limit $1"#;

    /// A shift's Z report says what its rows come to, and a terminal's reports are numbered without a gap.
    shift_mismatch: r#"
        select null::bigint as "event_id?", format('Z %s of terminal %s says %s, its rows %s', h.z_number, h.terminal_id, h.expected_minor, r.minor) as "what!"
        from shift h cross join lateral (
            select h.float_minor
                   + coalesce((select sum(amount_minor) from tender where shift_id = h.id and kind = 'cash'), 0)
                   - coalesce((select sum(amount_minor) from refund where shift_id = h.id and kind = 'cash' and state <> 'failed'), 0)
                   + coalesce((select sum(case kind when 'pay_in' then amount_minor else -amount_minor end)
                               from shift_move where shift_id = h.id), 0) as minor) as r
        where $2::bigint[] is null
          and h.closed_at is not null
          and (h.expected_minor <> r.minor
               or (h.report ->> 'expected_minor')::bigint is distinct from h.expected_minor
               or h.z_number > (select count(*) from shift z where z.terminal_id = h.terminal_id and z.closed_at is not null))
        limit $1"#;

    /// A voucher paid for seats of its event, and for no more than it promises.
    voucher_overdrawn: r#"
        select o.event_id as "event_id?", format('voucher %s for %s seats of event %s paid for %s seats of order %s', v.id, v.seats_max, v.event_id, l.seats, o.id) as "what!"
        from voucher v join tender t on t.voucher_id = v.id join "order" o on o.id = t.order_id
        cross join lateral (select count(*) as seats from order_line where order_id = o.id and seat_no is not null) as l
        where ($2::bigint[] is null or o.event_id = any ($2))
          and (v.event_id <> o.event_id or l.seats > v.seats_max)
        limit $1"#;

    /// The hold of a consignment lasts until its cut-off, and has the seats that are out until then; what was sold of it
    /// was sold by a sale of its own.
    consigned_seat_mismatch: r#"
        select event_id as "event_id?", what as "what!"
        from (
            select c.event_id, format('consignment %s until %s has seats %s out, its hold until %s is %s and has %s',
                                      c.id, c.until, o.seats, h.held_until, h.state, h.seat_nos) as what
            from consignment c join hold h on h.id = c.hold_id
            cross join lateral (
                select array(select seat_no from consignment_seat where consignment_id = c.id and state = 'out' order by 1) as seats) o
            where ($2::bigint[] is null or c.event_id = any ($2))
              and (h.event_id <> c.event_id or h.held_until <> c.until
                   or (c.until > db_clock() and o.seats <> case when h.state = 'live' then h.seat_nos else '{}' end))
            union all
            select c.event_id, format('seat %s of consignment %s was sold to order %s', s.seat_no, c.id, s.order_id)
            from consignment c join consignment_seat s on s.consignment_id = c.id
            where ($2::bigint[] is null or c.event_id = any ($2))
              and s.state = 'sold'
              and not exists (
                  select from consignment_sale x join order_line l on l.order_id = x.order_id
                  where x.order_id = s.order_id and x.consignment_id = c.id and l.seat_no = s.seat_no and l.state <> 'open')
        ) as m
        limit $1"#;

    /// A seat that waits until the others are sold is blocked, by the last thing that anybody did to it, and its rule goes on.
    waiting_seat_mismatch: r#"
        select s.event_id as "event_id?", format('seat %s waits by rule %s', s.seat_no, s.until_sold_id) as "what!"
        from event_seat s left join until_sold u on u.id = s.until_sold_id and u.event_id = s.event_id and u.ended_at is null
        where ($2::bigint[] is null or s.event_id = any ($2))
          and s.until_sold_id is not null
          and (u.id is null or s.status <> 3
               or 'wait' is distinct from (select n.verb from seat_note n where n.event_id = s.event_id and n.seat_no = s.seat_no
                                           order by n.id desc limit 1))
        limit $1"#;

    /// What is on an account is on that of the partner whose consignment it was sold from; cash that a partner paid lies in
    /// a drawer, and what it was paid back came out of one.
    account_mismatch: r#"
        select event_id as "event_id?", what as "what!"
        from (
            select o.event_id, format('order %s has %s on an account that is nobody''s', o.id, t.amount_minor) as what
            from tender t join "order" o on o.id = t.order_id join buyer b on b.id = o.buyer_id
            where ($2::bigint[] is null or o.event_id = any ($2))
              and t.kind = 'account'
              and not exists (
                  select from consignment_sale s join consignment c on c.id = s.consignment_id
                  where s.order_id = o.id and c.event_id = o.event_id and c.partner_id = b.partner_id)
            union all
            select p.event_id, format('payment %s of %s %s is %s in the drawer', p.id, p.amount_minor, p.currency, m.amount_minor)
            from partner_payment p join event e on e.id = p.event_id
            left join shift_move m on m.id = p.shift_move_id left join shift h on h.id = m.shift_id
            where ($2::bigint[] is null or p.event_id = any ($2))
              and (p.currency <> e.currency
                   or (p.way = 'cash' and (m.kind <> case when p.amount_minor > 0 then 'pay_in' else 'pay_out' end
                                          or m.amount_minor <> abs(p.amount_minor) or h.currency <> p.currency)))
        ) as m
        limit $1"#;

    /// A ticket that is not void is for a seat that was sold.
    ticket_without_sale: r#"
        select t.event_id as "event_id?", format('ticket %s for seat %s of order %s', t.id, t.seat_no, t.order_id) as "what!"
        from ticket t
        where ($2::bigint[] is null or t.event_id = any ($2))
          and t.state <> 'void'
          and not exists (
              select from order_line l
              where l.order_id = t.order_id and l.event_id = t.event_id and l.seat_no = t.seat_no and l.state = 'sold')
        limit $1"#;

    /// Every seat of a confirmed order has its ticket.
    sale_without_ticket: r#"
        select l.event_id as "event_id?", format('seat %s of order %s has no ticket', l.seat_no, l.order_id) as "what!"
        from order_line l join "order" o on o.id = l.order_id
        where ($2::bigint[] is null or l.event_id = any ($2))
          and l.state = 'sold' and l.seat_no is not null and o.state = 'confirmed'
          and not exists (
              select from ticket t
              where t.order_id = l.order_id and t.seat_no = l.seat_no and t.state <> 'void')
        limit $1"#;
}

/// Looks for everything that must never be true, in one snapshot of the database.
pub async fn check(pool: &PgPool) -> sqlx::Result<Vec<Violation>> {
    check_events(pool, None).await
}

async fn check_events(pool: &PgPool, events: Option<&[i64]>) -> sqlx::Result<Vec<Violation>> {
    let mut tx = pool.begin().await?;
    // One snapshot: otherwise a sale between two statements would look like half of one.
    sqlx::query!("set transaction isolation level repeatable read, read only").execute(&mut *tx).await?;
    // A plan that is good for any events would read them all.
    sqlx::query!("set local plan_cache_mode = force_custom_plan").execute(&mut *tx).await?;
    let violations = look(&mut tx, events).await?;
    tx.rollback().await?;
    Ok(violations)
}

/// Checks a slice once a minute, until `stop`. Every node may do this: it reads only.
pub async fn run(pool: PgPool, metrics: Metrics, stop: CancellationToken) {
    let mut rounds = Rounds::default();
    let mut tick = tokio::time::interval(INTERVAL);
    while stop.run_until_cancelled(tick.tick()).await.is_some() {
        match rounds.check(&pool).await {
            Ok(found) => report(&found, &rounds, &metrics),
            Err(error) => tracing::warn!(%error, "the invariants could not be checked"),
        }
    }
}

/// Where the rounds have come to, and what is known to be broken from them.
#[derive(Debug, Default)]
pub struct Rounds {
    /// The last event of a round, of those whose sale is on and of the others.
    last: [i64; 2],
    broken: BTreeMap<i64, Vec<Violation>>,
}

impl Rounds {
    /// Checks the events whose turn it is. Returns what was found broken in them.
    pub async fn check(&mut self, pool: &PgPool) -> sqlx::Result<Vec<Violation>> {
        let mut slice = self.turn(pool, true, ON_SALE_A_ROUND).await?;
        slice.extend(self.turn(pool, false, OTHERS_A_ROUND).await?);
        let violations = check_events(pool, Some(&slice)).await?;
        for event_id in slice {
            self.broken.remove(&event_id);
        }
        for violation in &violations {
            self.broken.entry(violation.event_id.unwrap_or(0)).or_default().push(violation.clone());
        }
        Ok(violations)
    }

    /// How many violations of an invariant are known, from the last look at each event.
    pub fn known(&self, invariant: &str) -> usize {
        self.broken.values().flatten().filter(|v| v.invariant == invariant).count()
    }

    /// The next events after the last of that kind; from the first again once none is left.
    async fn turn(&mut self, pool: &PgPool, on_sale: bool, events_max: i64) -> sqlx::Result<Vec<i64>> {
        let last = &mut self.last[usize::from(on_sale)];
        let next = sqlx::query_scalar!(
            "select id from event, (select db_clock() as now) c
             where id > $1 and (on_sale_at <= c.now and c.now < off_sale_at + interval '1 day') = $2
             order by id limit $3",
            *last,
            on_sale,
            events_max
        )
        .fetch_all(pool)
        .await?;
        *last = if (next.len() as i64) < events_max { 0 } else { next.last().copied().unwrap_or(0) };
        Ok(next)
    }
}

fn report(found: &[Violation], rounds: &Rounds, metrics: &Metrics) {
    for name in INVARIANTS {
        metrics.set_violations(name, rounds.known(name));
    }
    metrics.checked_at.set(Utc::now().timestamp());
    for v in found {
        tracing::error!(invariant = v.invariant, event.id = v.event_id, what = v.what, "an invariant is broken");
    }
}
