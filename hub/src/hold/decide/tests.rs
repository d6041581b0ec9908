use std::{
    collections::{BTreeMap, HashMap, HashSet},
    sync::Arc,
};

use proptest::prelude::*;

use super::*;
use crate::{
    admission::pass::{Claim, PassRefusal, PassRow},
    hold::{ByRole, Key, ledger::EventRules},
    seat_map::{Edition, SeatSet, testing::rows},
};

const LIMIT: i32 = 6;

fn at(second: i64) -> DateTime<Utc> {
    DateTime::from_timestamp(1_800_000_000 + second, 0).unwrap()
}

fn ledger(seats: i32) -> Ledger {
    let free = SeatRow { status: Status::Available, version: 1, hold_id: None, held_until: None };
    Ledger {
        now: at(0),
        event: EventRules {
            event_id: 1,
            edition: Edition { plan_revision_id: 1, traits_version: 0 },
            seat_limit: LIMIT,
            hold_ttl_s: 480,
            churn_seats_max: 1000,
            single_seat_rule: false,
            consecutive_rule: false,
            seats_min: 1,
            sale_state: "open".into(),
            on_sale_at: at(-10),
            off_sale_at: at(10_000),
        },
        seats: (0..seats).map(|s| (s, free.clone())).collect::<BTreeMap<_, _>>(),
        holds: HashMap::new(),
        hold_of: HashMap::new(),
        bought: HashMap::new(),
        taken_lately: HashMap::new(),
        answered: HashMap::new(),
        line: None,
        passes: HashMap::new(),
        dirty_seats: HashSet::new(),
        new_holds: HashSet::new(),
        dirty_holds: HashSet::new(),
        new_answers: Vec::new(),
        passed_by_role: Vec::new(),
    }
}

fn board(seats: usize) -> Board {
    Board::new(Arc::new(rows(&[&vec![0; seats]])))
}

fn buyer(n: u128) -> Uuid {
    Uuid::from_u128(n + 1)
}

fn take(who: u128, seats: &[SeatNo], key: &str) -> Take {
    Take {
        buyer_id: buyer(who),
        wish: Wish::Seats(SeatSet::new(seats.to_vec(), 50).unwrap()),
        fewer_ok: false,
        replace: false,
        rules: Rules::Fan,
        way: Way::ByRole(ByRole::default()),
        key: Key { name: key.to_owned(), body_hash: [seats.len() as u8; 32] },
    }
}

fn ask(ledger: &mut Ledger, request: Request) -> Result<Granted, Refusal> {
    let board = board(ledger.seats.len());
    match decide(ledger, &Context { board: &board, pay_margin: TimeDelta::seconds(60) }, &request, &[]) {
        Decision::Done(answer) => answer,
        Decision::Again | Decision::NoneProposed => panic!("no best seats were asked for"),
    }
}

fn held(answer: Result<Granted, Refusal>) -> Vec<SeatNo> {
    answer.unwrap().hold.map(|h| h.seats).unwrap_or_default()
}

#[test]
fn a_line_asks_for_its_pass_and_lets_the_house_by() {
    let (account_id, session) = (Uuid::from_u128(7), [1; 32]);
    let claim = Claim { id: Uuid::from_u128(9), event_id: 1, account_id };
    let with = |claim| Way::WithPass { claim, account_id, session };
    let mut ledger = ledger(10);
    let fan = |seat, key, claim| Request::Take(Take { way: with(claim), ..take(0, &[seat], key) });
    assert_eq!(held(ask(&mut ledger, fan(1, "a", None))), [1], "no line, no pass");
    ledger.line = Some(LineRules { holds_live_max: None, holds_live: 0 });
    assert_eq!(ask(&mut ledger, fan(2, "b", None)), Err(Refusal::Pass(PassRefusal::Missing)));
    assert_eq!(ask(&mut ledger, fan(2, "b", Some(claim))), Err(Refusal::Pass(PassRefusal::Invalid)), "no such row");
    let row = PassRow { account_id, session: session.to_vec(), expires_at: at(1), ended_why: None };
    ledger.passes.insert(claim.id, row.clone());
    assert_eq!(held(ask(&mut ledger, fan(2, "b", Some(claim)))), [1, 2]);
    ledger.passes.insert(claim.id, PassRow { expires_at: at(0), ..row });
    assert_eq!(ask(&mut ledger, fan(3, "c", Some(claim))), Err(Refusal::Pass(PassRefusal::Expired)));
    assert_eq!(held(ask(&mut ledger, Request::Take(take(1, &[5], "a")))), [5], "by role");
}

#[test]
fn no_more_hold_at_once_than_the_event_bears() {
    let session = [1; 32];
    let mut ledger = ledger(10);
    ledger.line = Some(LineRules { holds_live_max: Some(2), holds_live: 1 });
    let fan = |ledger: &mut Ledger, who: u128, seat| {
        let (account_id, id) = (Uuid::from_u128(100 + who), Uuid::from_u128(200 + who));
        let row = PassRow { account_id, session: session.to_vec(), expires_at: at(100), ended_why: None };
        ledger.passes.insert(id, row);
        let claim = Some(Claim { id, event_id: 1, account_id });
        let way = Way::WithPass { claim, account_id, session };
        ask(ledger, Request::Take(Take { way, ..take(who, &[seat], &seat.to_string()) }))
    };
    assert!(fan(&mut ledger, 0, 1).is_ok());
    assert_eq!(fan(&mut ledger, 1, 2), Err(Refusal::EventFullOfHolds));
    assert!(fan(&mut ledger, 0, 3).is_ok(), "who holds already may go on");
    assert!(ask(&mut ledger, Request::Take(take(5, &[7], "a"))).is_ok(), "the house's own");
}

#[test]
fn the_first_gets_the_seats_and_the_second_learns_which_it_lost() {
    let mut ledger = ledger(10);
    assert_eq!(held(ask(&mut ledger, Request::Take(take(0, &[1, 2], "a")))), [1, 2]);
    let second = ask(&mut ledger, Request::Take(take(1, &[2, 3], "a")));
    assert_eq!(second, Err(Refusal::SeatsUnavailable { lost: vec![2] }));
    let fewer = Take { fewer_ok: true, ..take(1, &[2, 3], "b") };
    let granted = ask(&mut ledger, Request::Take(fewer)).unwrap();
    assert_eq!((granted.hold.unwrap().seats, granted.not_held), (vec![3], vec![2]));
}

#[test]
fn an_own_hold_never_blocks_its_owner_and_keeps_its_deadline() {
    let mut ledger = ledger(10);
    let first = ask(&mut ledger, Request::Take(take(0, &[1, 2], "a"))).unwrap().hold.unwrap();
    ledger.now = at(100);
    let second = ask(&mut ledger, Request::Take(take(0, &[2, 3], "b"))).unwrap().hold.unwrap();
    assert_eq!((second.id, second.seats, second.held_until), (first.id, vec![1, 2, 3], first.held_until));
    let replaced = Take { replace: true, ..take(0, &[3, 4], "c") };
    let third = ask(&mut ledger, Request::Take(replaced)).unwrap().hold.unwrap();
    assert_eq!((third.id, third.seats, third.held_until), (first.id, vec![3, 4], first.held_until));
    assert_eq!(ledger.seats[&1].status, Status::Available);
}

#[test]
fn the_limit_counts_what_is_held_and_what_was_bought() {
    let mut ledger = ledger(10);
    ledger.bought.insert(buyer(0), 4);
    let refusal = ask(&mut ledger, Request::Take(take(0, &[1, 2, 3], "a")));
    assert_eq!(refusal, Err(Refusal::LimitReached { limit: 6, held: 0, bought: 4 }));
    assert_eq!(held(ask(&mut ledger, Request::Take(take(0, &[1, 2], "a")))), [1, 2]);
    let staff = Take { rules: Rules::Staff, ..take(0, &[3], "b") };
    assert!(matches!(ask(&mut ledger, Request::Take(staff)), Err(Refusal::LimitReached { held: 2, .. })));
}

#[test]
fn the_same_key_finds_the_first_answer() {
    let mut ledger = ledger(10);
    let first = ask(&mut ledger, Request::Take(take(0, &[1, 2], "a")));
    let release = Release { buyer_id: buyer(0), hold_id: first.clone().unwrap().hold.unwrap().id, seats: None };
    ask(&mut ledger, Request::Release(release)).unwrap();
    assert_eq!(ask(&mut ledger, Request::Take(take(0, &[1, 2], "a"))), first);
    assert_eq!(ask(&mut ledger, Request::Take(take(0, &[1], "a"))), Err(Refusal::IdempotencyMismatch));
    assert_eq!(ledger.seats[&1].status, Status::Available, "an answer that is found again takes nothing");
}

#[test]
fn whoever_takes_over_leaves_the_former_holder_alone_and_the_other_way_round() {
    let mut ledger = ledger(10);
    let a = ask(&mut ledger, Request::Take(take(0, &[1, 2], "a"))).unwrap().hold.unwrap();
    ledger.now = a.held_until;
    let b = ask(&mut ledger, Request::Take(take(1, &[1], "a"))).unwrap().hold.unwrap();
    assert_eq!(ledger.holds[&a.id].state, "live", "B does not write A's rows");
    let release = Release { buyer_id: buyer(0), hold_id: a.id, seats: None };
    assert_eq!(ask(&mut ledger, Request::Release(release)).unwrap().hold, None);
    ask(&mut ledger, Request::Expire(vec![a.id, b.id])).unwrap();
    assert_eq!((ledger.seats[&1].hold_id, ledger.holds[&b.id].state), (Some(b.id), "live"));
    assert_eq!((ledger.seats[&2].status, ledger.holds[&a.id].state), (Status::Available, "expired"));
}

#[test]
fn a_hold_that_is_being_paid_for_does_not_change() {
    let mut ledger = ledger(10);
    let hold = ask(&mut ledger, Request::Take(take(0, &[1, 2], "a"))).unwrap().hold.unwrap();
    ledger.holds.get_mut(&hold.id).unwrap().frozen = true;
    assert_eq!(ask(&mut ledger, Request::Take(take(0, &[3], "b"))), Err(Refusal::HoldFrozen));
    let release = Release { buyer_id: buyer(0), hold_id: hold.id, seats: None };
    assert_eq!(ask(&mut ledger, Request::Release(release)), Err(Refusal::HoldFrozen));
}

#[test]
fn the_sale_has_a_window_a_pause_and_a_budget() {
    let mut ledger = ledger(10);
    ledger.event.churn_seats_max = 3;
    ask(&mut ledger, Request::Take(take(0, &[1, 2], "a"))).unwrap();
    assert_eq!(ask(&mut ledger, Request::Take(take(0, &[3, 4], "b"))), Err(Refusal::ChurnSpent));
    ledger.event.sale_state = "paused".into();
    assert_eq!(ask(&mut ledger, Request::Take(take(1, &[5], "a"))), Err(Refusal::SalePaused));
    ledger.event.sale_state = "open".into();
    ledger.now = ledger.event.off_sale_at;
    assert_eq!(ask(&mut ledger, Request::Take(take(1, &[5], "a"))), Err(Refusal::SaleClosed));
    ledger.now = ledger.event.on_sale_at - TimeDelta::seconds(1);
    assert!(matches!(ask(&mut ledger, Request::Take(take(1, &[5], "a"))), Err(Refusal::SaleNotOpen(_))));
    let staff = Take { rules: Rules::Staff, ..take(1, &[5], "a") };
    assert_eq!(held(ask(&mut ledger, Request::Take(staff))), [5]);
    ledger.event.sale_state = "cancelled".into();
    let staff = Take { rules: Rules::Staff, ..take(2, &[6], "a") };
    assert_eq!(ask(&mut ledger, Request::Take(staff)), Err(Refusal::EventCancelled));
}

#[test]
fn a_house_may_insist_on_a_party_that_sits_together() {
    let mut ledger = ledger(10);
    (ledger.event.consecutive_rule, ledger.event.seats_min) = (true, 2);
    assert_eq!(ask(&mut ledger, Request::Take(take(0, &[1], "a"))), Err(Refusal::SeatsTooFew(2)));
    assert_eq!(ask(&mut ledger, Request::Take(take(0, &[1, 3], "a"))), Err(Refusal::SeatsApart));
    assert_eq!(held(ask(&mut ledger, Request::Take(take(0, &[1, 2], "a")))), [1, 2]);
    assert_eq!(held(ask(&mut ledger, Request::Take(take(0, &[3], "b")))), [1, 2, 3]);
}

#[derive(Debug, Clone)]
enum Step {
    Take { who: u128, seats: Vec<SeatNo>, fewer_ok: bool, replace: bool },
    Release { who: u128, seats: Option<Vec<SeatNo>> },
    Wait(i64),
    Expire(u128),
}

fn step() -> impl Strategy<Value = Step> {
    let seats = || prop::collection::hash_set(0..12, 1..=7).prop_map(|s| s.into_iter().collect::<Vec<SeatNo>>());
    prop_oneof![
        4 => (0..5u128, seats(), any::<bool>(), any::<bool>())
            .prop_map(|(who, seats, fewer_ok, replace)| Step::Take { who, seats, fewer_ok, replace }),
        2 => (0..5u128, prop::option::of(seats())).prop_map(|(who, seats)| Step::Release { who, seats }),
        1 => (1..300i64).prop_map(Step::Wait),
        1 => (0..5u128).prop_map(Step::Expire),
    ]
}

proptest! {
    #[test]
    fn no_seat_has_two_owners_and_nobody_exceeds_the_limit(steps in prop::collection::vec(step(), 1..60)) {
        let mut ledger = ledger(12);
        for (n, step) in steps.into_iter().enumerate() {
            let before = format!("{:?}", (&ledger.seats, &ledger.holds));
            let answer = match step {
                Step::Take { who, seats, fewer_ok, replace } => {
                    let take = Take { fewer_ok, replace, ..take(who, &seats, &n.to_string()) };
                    ask(&mut ledger, Request::Take(take))
                }
                Step::Release { who, seats } => match ledger.hold_of.get(&buyer(who)).copied() {
                    Some(hold_id) => {
                        let seats = seats.map(|s| SeatSet::new(s, 50).unwrap());
                        ask(&mut ledger, Request::Release(Release { buyer_id: buyer(who), hold_id, seats }))
                    }
                    None => continue,
                },
                Step::Wait(s) => {
                    ledger.now += TimeDelta::seconds(s);
                    continue;
                }
                Step::Expire(who) => match ledger.hold_of.get(&buyer(who)).copied() {
                    Some(id) => ask(&mut ledger, Request::Expire(vec![id])),
                    None => continue,
                },
            };
            if answer.is_err() {
                prop_assert_eq!(before, format!("{:?}", (&ledger.seats, &ledger.holds)), "a refusal changes nothing");
            }
            for hold in ledger.holds.values().filter(|h| h.is_live(ledger.now)) {
                prop_assert!(hold.seats.len() as i32 <= LIMIT);
                for seat in &hold.seats {
                    prop_assert_eq!(ledger.seats[seat].hold_id, Some(hold.id), "each seat of a live hold is its own");
                }
                let owned = ledger.seats.values().filter(|s| s.hold_id == Some(hold.id)).count();
                prop_assert_eq!(owned, hold.seats.len());
            }
        }
    }
}
