//! The rows that a batch is about, and the clock, in one statement.

use std::collections::{BTreeMap, HashMap, HashSet};

use chrono::{DateTime, Utc};
use fullhouse_protocol::seat::Status;
use sqlx::PgConnection;
use uuid::Uuid;

use super::{Answered, EventRules, HoldRow, Ledger, LineRules, SeatRow};
use crate::{
    admission::pass::PassRow,
    seat_map::{Edition, SeatNo},
};

/// What to read.
#[derive(Debug, Default)]
pub struct Wanted {
    pub buyers: Vec<Uuid>,
    pub hold_ids: Vec<Uuid>,
    pub seats: Vec<SeatNo>,
    pub keys: Vec<(Uuid, String)>,
    pub passes: Vec<Uuid>,
}

/// Reads the event, the live holds of `wanted`, their seats and the seats of `wanted`, what its
/// buyers have bought and taken, the answers to its keys, and the passes that were shown. `None` where there is no such event.
///
/// Each kind of row comes as columns, not rows: a batch may be about a thousand seats.
pub async fn read(db: &mut PgConnection, event_id: i64, wanted: &Wanted) -> sqlx::Result<Option<Ledger>> {
    let (key_buyers, keys): (Vec<Uuid>, Vec<String>) = wanted.keys.iter().cloned().unzip();
    // Look-ups go one by one (`lateral … limit 1`, `= any(array)`): joined freely, the planner may
    // choose to read a whole table, which grows. What a buyer has bought and how much they have
    // taken is summed from the rows; there is no counter that could fall out of step.
    let Some(row) = sqlx::query!(
        r#"with clock as materialized (select db_clock() as now),
             mine as materialized (
               select h.* from unnest($2::uuid[]) as b(buyer_id)
               cross join lateral (select * from hold h where h.event_id = $1 and h.buyer_id = b.buyer_id and h.state = 'live' limit 1) as h
               union all
               select h.* from unnest($3::uuid[]) as i(id)
               cross join lateral (select * from hold h where h.id = i.id and h.event_id = $1 and h.state = 'live' limit 1) as h),
             sums as (
               select b.buyer_id,
                      (select count(*) from "order" o join order_line l on l.order_id = o.id
                       where o.event_id = $1 and o.buyer_id = b.buyer_id and l.state = 'sold' and l.seat_no is not null)::int as bought,
                      (select coalesce(sum(h.seats_taken), 0) from hold h
                       where h.event_id = $1 and h.buyer_id = b.buyer_id
                         and (h.created_at > clock.now - interval '1 hour' or h.state = 'live'))::int as taken
               from clock cross join unnest($2::uuid[]) as b(buyer_id)),
             answered as (
               select r.* from unnest($5::uuid[], $6::text[]) as w(buyer_id, key)
               cross join lateral (select * from hold_request r where r.buyer_id = w.buyer_id and r.key = w.key limit 1) as r)
           select clock.now as "now!", e.plan_revision_id, e.traits_version, e.seat_limit, e.hold_ttl_s, e.churn_seats_max,
                  e.single_seat_rule, e.consecutive_rule, e.seats_min, e.sale_state, e.on_sale_at, e.off_sale_at,
                  h.ids as "hold_ids?", h.buyer_ids as "hold_buyers?", h.held_until as "hold_until?",
                  h.frozen as "hold_frozen?", h.versions as "hold_versions?", h.taken as "hold_taken?",
                  n.hold_ids as "place_holds?", n.seat_nos as "place_seats?",
                  s.seat_nos as "seat_nos?", s.statuses as "statuses?", s.versions as "versions?",
                  s.hold_ids as "seat_holds?: Vec<Option<Uuid>>", s.held_until as "seat_until?: Vec<Option<DateTime<Utc>>>",
                  u.buyer_ids as "sum_buyers?", u.bought as "bought?", u.taken as "taken?",
                  r.buyer_ids as "answer_buyers?", r.keys as "answer_keys?", r.hashes as "answer_hashes?",
                  r.hold_ids as "answer_holds?", r.answers as "answers?",
                  l.event_id is not null as "has_line!", l.holds_live_max as "holds_live_max?",
                  case when l.holds_live_max is null then 0
                       else (select count(*) from hold where event_id = $1 and state = 'live' and held_until > clock.now)::int
                  end as "holds_live!",
                  p.ids as "pass_ids?", p.accounts as "pass_accounts?", p.sessions as "pass_sessions?",
                  p.expires as "pass_expires?", p.ended as "pass_ended?: Vec<Option<String>>"
           from clock
           cross join event e
           cross join (select array_agg(id) as ids, array_agg(buyer_id) as buyer_ids, array_agg(held_until) as held_until,
                              array_agg(attempt_id is not null) as frozen, array_agg(version) as versions,
                              array_agg(seats_taken) as taken from mine) as h
           cross join (select array_agg(id) as hold_ids, array_agg(seat_no) as seat_nos
                       from mine cross join unnest(seat_nos) as seat_no) as n
           cross join (select array_agg(seat_no) as seat_nos, array_agg(status) as statuses, array_agg(version) as versions,
                              array_agg(hold_id) as hold_ids, array_agg(held_until) as held_until
                       from event_seat
                       where event_id = $1
                         and seat_no = any (array(select unnest($4::int[]) union all select unnest(seat_nos) from mine))) as s
           cross join (select array_agg(buyer_id) as buyer_ids, array_agg(bought) as bought, array_agg(taken) as taken from sums) as u
           cross join (select array_agg(buyer_id) as buyer_ids, array_agg(key) as keys, array_agg(body_hash) as hashes,
                              array_agg(hold_id) as hold_ids, array_agg(answer::text) as answers from answered) as r
           cross join (select array_agg(id) as ids, array_agg(account_id) as accounts, array_agg(session_hash) as sessions,
                              array_agg(expires_at) as expires, array_agg(ended_why) as ended
                       from unnest($7::uuid[]) as i(shown)
                       cross join lateral (select * from pass p where p.id = i.shown limit 1) as p) as p
           left join line l on l.event_id = e.id
           where e.id = $1"#,
        event_id,
        &wanted.buyers,
        &wanted.hold_ids,
        &wanted.seats,
        &key_buyers,
        &keys,
        &wanted.passes
    )
    .fetch_optional(db)
    .await?
    else {
        return Ok(None);
    };
    let mut ledger = Ledger {
        now: row.now,
        event: EventRules {
            event_id,
            edition: Edition { plan_revision_id: row.plan_revision_id, traits_version: row.traits_version },
            seat_limit: row.seat_limit,
            hold_ttl_s: row.hold_ttl_s,
            churn_seats_max: row.churn_seats_max,
            single_seat_rule: row.single_seat_rule,
            consecutive_rule: row.consecutive_rule,
            seats_min: row.seats_min,
            sale_state: row.sale_state,
            on_sale_at: row.on_sale_at,
            off_sale_at: row.off_sale_at,
        },
        seats: BTreeMap::new(),
        holds: HashMap::new(),
        hold_of: HashMap::new(),
        bought: HashMap::new(),
        taken_lately: HashMap::new(),
        answered: HashMap::new(),
        line: row.has_line.then_some(LineRules { holds_live_max: row.holds_live_max, holds_live: row.holds_live }),
        passes: HashMap::new(),
        dirty_seats: HashSet::new(),
        new_holds: HashSet::new(),
        dirty_holds: HashSet::new(),
        new_answers: Vec::new(),
        passed_by_role: Vec::new(),
    };
    // A hold that is asked for by its number and by its buyer comes twice, and is the same.
    let holds = columns(row.hold_ids).zip(columns(row.hold_buyers)).zip(columns(row.hold_until));
    let rest = columns(row.hold_frozen).zip(columns(row.hold_versions)).zip(columns(row.hold_taken));
    for (((id, buyer_id), held_until), ((frozen, version), seats_taken)) in holds.zip(rest) {
        ledger.hold_of.insert(buyer_id, id);
        let seats = Vec::new();
        ledger
            .holds
            .insert(id, HoldRow { id, buyer_id, seats, held_until, frozen, version, seats_taken, state: "live" });
    }
    for (id, seat_no) in columns(row.place_holds).zip(columns(row.place_seats)) {
        if let Some(hold) = ledger.holds.get_mut(&id) {
            hold.seats.push(seat_no);
        }
    }
    for hold in ledger.holds.values_mut() {
        hold.seats.sort_unstable();
        hold.seats.dedup();
    }
    let seats = columns(row.seat_nos).zip(columns(row.statuses)).zip(columns(row.versions));
    for (((seat_no, status), version), (hold_id, held_until)) in
        seats.zip(columns(row.seat_holds).zip(columns(row.seat_until)))
    {
        let status = Status::from_bits(status as u8);
        ledger.seats.insert(seat_no, SeatRow { status, version, hold_id, held_until });
    }
    for ((buyer_id, bought), taken) in columns(row.sum_buyers).zip(columns(row.bought)).zip(columns(row.taken)) {
        ledger.bought.insert(buyer_id, bought);
        ledger.taken_lately.insert(buyer_id, taken);
    }
    let answers = columns(row.answer_buyers).zip(columns(row.answer_keys));
    let rest = columns(row.answer_hashes).zip(columns(row.answer_holds)).zip(columns(row.answers));
    for ((buyer_id, key), ((body_hash, hold_id), answer)) in answers.zip(rest) {
        ledger.answered.insert((buyer_id, key), Answered { hold_id, body_hash, answer });
    }
    let passes = columns(row.pass_ids).zip(columns(row.pass_accounts)).zip(columns(row.pass_sessions));
    for (((id, account_id), session), (expires_at, ended_why)) in
        passes.zip(columns(row.pass_expires).zip(columns(row.pass_ended)))
    {
        ledger.passes.insert(id, PassRow { account_id, session, expires_at, ended_why });
    }
    Ok(Some(ledger))
}

/// An aggregate over no row is null.
fn columns<T>(column: Option<Vec<T>>) -> impl Iterator<Item = T> {
    column.into_iter().flatten()
}
