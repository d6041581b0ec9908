use std::collections::{HashMap, VecDeque};

use super::*;

const HOLD: Uuid = Uuid::from_u128(1);
const OTHERS_HOLD: Uuid = Uuid::from_u128(2);
const ORDER: Uuid = Uuid::from_u128(3);
const OTHERS_ORDER: Uuid = Uuid::from_u128(4);

/// What is true outside, as far as the kiosk was told or can't know.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
struct World {
    charge: Charge,
    /// The hub holds seats for this visit.
    held: bool,
    /// The money of this visit's last payment is tickets, or the staff's.
    settled: bool,
    /// Staff know of the seats.
    staffs: bool,
    /// They were called in an earlier visit, and have not come.
    awaited: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
enum Charge {
    #[default]
    None,
    /// The reader was started, and nobody said how it ended: money may have been taken.
    Open,
    /// Money was taken, and nobody has anything for it.
    Owed,
}

/// What an event and its effects do to the world; a broken promise is an error.
fn live(world: &mut World, event: &Event, now: Option<Ref>, effects: &[Effect]) -> Result<(), String> {
    let calls = effects.iter().any(|effect| matches!(effect, Effect::CallStaff { .. }));
    let gives_back = |hold: Uuid| effects.contains(&Effect::ReleaseHold(hold));
    match event {
        Event::Held { at, hold } if Some(*at) == now => world.held |= *hold == HOLD,
        Event::Held { at, hold } if now.map(|n| n.visit) != Some(at.visit) && !gives_back(*hold) => {
            return Err("a hold of somebody who is gone was kept".to_owned());
        }
        Event::HoldOver { at } if Some(*at) == now => world.held = false,
        Event::NotPaid { at, .. } if Some(*at) == now && world.charge == Charge::Open => world.charge = Charge::None,
        Event::Paid { at, .. } if Some(*at) == now => {
            world.held = false;
            if !world.settled {
                world.charge = Charge::Owed;
            }
        }
        Event::Paid { at, .. } if now.map(|n| n.visit) != Some(at.visit) && !calls => {
            return Err("money of somebody who is gone, and nobody was told".to_owned());
        }
        Event::Printed { at } if Some(*at) == now && world.charge == Charge::Owed => {
            (world.charge, world.settled) = (Charge::None, true);
        }
        Event::StaffPin => world.awaited = false,
        _ => {}
    }
    for effect in effects {
        match effect {
            Effect::StartReader { .. } if world.awaited => return Err("the next one pays before staff came".to_owned()),
            Effect::StartReader { .. } if world.charge != Charge::None => {
                return Err(format!("a second payment, the first is {:?}", world.charge));
            }
            Effect::StartReader { .. } if !world.held => return Err("paying for seats that nobody holds".to_owned()),
            Effect::StartReader { .. } => (world.charge, world.settled, world.staffs) = (Charge::Open, false, false),
            Effect::ReleaseHold(HOLD) if world.charge == Charge::Open => {
                return Err("seats given back while a card may pay for them".to_owned());
            }
            Effect::ReleaseHold(HOLD) => world.held = false,
            Effect::CallStaff { case, .. } if *case != Case::PaidUnattended => {
                (world.charge, world.staffs, world.settled) = (Charge::None, true, true);
            }
            Effect::Wipe if world.charge != Charge::None => {
                return Err(format!("the visit ended, the payment is {:?}", world.charge));
            }
            Effect::Wipe if world.held && !world.staffs => return Err("the visit ended, its seats are held".to_owned()),
            Effect::Wipe => {
                let awaited = (world.awaited || world.staffs) && *event != Event::StaffPin;
                *world = World { awaited, ..World::default() };
            }
            _ => {}
        }
    }
    Ok(())
}

/// Everything that can happen, at any time, in any order, twice or never; also what belongs to the last customer, or to
/// a question of this one that was asked again since.
fn events(kiosk: &Kiosk) -> Vec<Event> {
    let turn = kiosk.visit.as_ref().map_or(0, |visit| visit.turn);
    let now = Ref { visit: kiosk.number, turn };
    let mail = || Mail("anna@example.org".to_owned());
    let mut all = vec![
        Event::Touch,
        Event::Begin,
        Event::Speak(1),
        Event::Choose(Way::Map),
        Event::Take,
        Event::MailGiven(mail()),
        Event::Pay,
        Event::Cancel,
        Event::TimeUp { timer: kiosk.timer },
        Event::TimeUp { timer: kiosk.timer.wrapping_sub(1) },
        Event::Hub(true),
        Event::Hub(false),
        Event::Printer(true),
        Event::Printer(false),
        Event::StaffPin,
    ];
    let asked_before = Ref { turn: turn.wrapping_sub(1), ..now };
    let gone = Ref { visit: now.visit - 1, turn: 1 };
    for (at, hold, order) in [(now, HOLD, ORDER), (asked_before, OTHERS_HOLD, ORDER), (gone, OTHERS_HOLD, OTHERS_ORDER)]
    {
        all.extend([
            Event::Held { at, hold },
            Event::NotHeld { at },
            Event::HoldOver { at },
            Event::ReaderReady { at, order },
            Event::CardSeen { at },
            Event::Paid { at, order },
            Event::NotPaid { at, why: Unpaid::Declined },
            Event::PrintBegan { at },
            Event::Printed { at },
            Event::NotPrinted { at },
            Event::Mailed { at },
        ]);
    }
    all
}

/// Numbers only tell old from new: with the same ones, states that behave alike are one.
fn renumbered(mut kiosk: Kiosk) -> Kiosk {
    (kiosk.number, kiosk.timer) = (2, 1);
    if let Some(visit) = &mut kiosk.visit {
        visit.turn = visit.turn.min(2);
    }
    kiosk
}

fn settings() -> Settings {
    Settings { asks_max: 2, ..Settings::default() }
}

/// A change of the machine, to see that the search finds what it breaks.
type Fault = fn(&mut Kiosk, &Event, &mut Vec<Effect>);

/// Goes through every order of events, until nothing new comes. States and depth, or what was broken and how.
fn search(fault: Fault) -> Result<(usize, usize), String> {
    let start = (renumbered(Kiosk::new(settings())), World::default());
    let mut seen = HashMap::from([(start.clone(), 0_usize)]);
    let mut next = VecDeque::from([start]);
    let mut deepest = 0;
    while let Some((kiosk, world)) = next.pop_front() {
        let depth = seen[&(kiosk.clone(), world)];
        deepest = deepest.max(depth);
        ends_by_time(&kiosk, fault)?;
        for event in events(&kiosk) {
            let (mut after, mut then) = (kiosk.clone(), world);
            let now = kiosk.visit.as_ref().map(|visit| Ref { visit: kiosk.number, turn: visit.turn });
            let mut effects = after.step(event.clone());
            fault(&mut after, &event, &mut effects);
            live(&mut then, &event, now, &effects)
                .map_err(|broken| format!("{broken}: {:?}, {event:?} -> {effects:?}", kiosk.screen()))?;
            leaves_nothing(&after, &effects)?;
            let state = (renumbered(after), then);
            if !seen.contains_key(&state) {
                seen.insert(state.clone(), depth + 1);
                next.push_back(state);
            }
        }
    }
    Ok((seen.len(), deepest))
}

/// Everybody and everything falls silent: the visit ends all the same.
fn ends_by_time(kiosk: &Kiosk, fault: Fault) -> Result<(), String> {
    let mut kiosk = kiosk.clone();
    for _ in 0..12 {
        let Some(timer) = kiosk.timer() else { return Ok(()) };
        let event = Event::TimeUp { timer: timer.number };
        let mut effects = kiosk.step(event.clone());
        fault(&mut kiosk, &event, &mut effects);
    }
    Err(format!("{:?} has no end", kiosk.screen()))
}

/// After the end it is a kiosk that nobody has touched.
fn leaves_nothing(kiosk: &Kiosk, effects: &[Effect]) -> Result<(), String> {
    let fresh = Kiosk::new(kiosk.settings);
    let flags = Kiosk { number: kiosk.number, timer: kiosk.timer, case: kiosk.case, online: kiosk.online, ..fresh };
    let untouched = Kiosk { prints: kiosk.prints, ..flags };
    match (effects.contains(&Effect::Wipe), *kiosk == untouched) {
        (true, false) => Err("something of the customer is left".to_owned()),
        _ if effects.iter().filter(|effect| **effect == Effect::Wipe).count() > 1 => Err("wiped twice".to_owned()),
        _ => Ok(()),
    }
}

#[test]
fn no_order_of_events_breaks_a_promise() {
    let (states, depth) = search(|_, _, _| {}).unwrap();
    println!("{states} states, the farthest {depth} events away; every event in each");
    assert!(states > 300 && depth >= 10, "{states} states, {depth} deep: the search ended early");
}

#[test]
fn the_search_finds_what_is_broken() {
    let faults: [(&str, Fault); 6] = [
        ("a reader that is not waited for", |kiosk, event, effects| {
            let stops = effects.iter().any(|effect| matches!(effect, Effect::StopReader { .. }));
            if matches!(event, Event::TimeUp { .. }) && stops {
                kiosk.leave(effects);
            }
        }),
        ("an answer of the last customer is taken for this one's", |kiosk, event, effects| {
            if let (Event::Held { hold: OTHERS_HOLD, .. }, Some(visit)) = (event, &mut kiosk.visit) {
                visit.hold = Some(OTHERS_HOLD);
                effects.clear();
            }
        }),
        ("nobody is called when nothing was printed", |_, _, effects| {
            effects.retain(|effect| !matches!(effect, Effect::CallStaff { case: Case::Unprinted, .. }));
        }),
        ("the next one pays at a printer that lost tickets", |kiosk, _, _| kiosk.case = false),
        ("seats are not given back", |_, _, effects| {
            effects.retain(|effect| !matches!(effect, Effect::ReleaseHold(HOLD)));
        }),
        ("it waits for an answer for ever", |kiosk, _, _| {
            if let Some(visit) = &mut kiosk.visit {
                visit.asked = 0;
            }
        }),
    ];
    for (name, fault) in faults {
        assert!(search(fault).is_err(), "{name}");
    }
}

/// A kiosk in service, and a customer up to `Pay`.
fn paying() -> (Kiosk, Ref) {
    let mut kiosk = Kiosk::new(Settings::default());
    assert_eq!(kiosk.screen(), Screen::OutOfService(super::Fault::NoHub));
    for event in [Event::Hub(true), Event::Printer(true), Event::Begin, Event::Speak(2), Event::Choose(Way::Map)] {
        assert!(kiosk.step(event).is_empty());
    }
    let asked = kiosk.step(Event::Take);
    let [Effect::AskHold(at)] = asked[..] else { panic!("{asked:?}") };
    assert!(kiosk.step(Event::Held { at, hold: HOLD }).is_empty());
    assert_eq!((kiosk.screen(), kiosk.language()), (Screen::Held, Some(2)));
    let started = kiosk.step(Event::Pay);
    let [Effect::StartReader { at, hold: HOLD }] = started[..] else { panic!("{started:?}") };
    (kiosk, at)
}

fn silence(kiosk: &mut Kiosk) -> Vec<Effect> {
    let number = kiosk.timer().unwrap().number;
    kiosk.step(Event::TimeUp { timer: number })
}

#[test]
fn whoever_walks_away_while_choosing_leaves_nothing() {
    let (mut kiosk, at) = paying();
    kiosk.step(Event::NotPaid { at, why: Unpaid::Declined });
    assert_eq!(silence(&mut kiosk), [Effect::ReleaseHold(HOLD), Effect::Wipe]);
    assert_eq!((kiosk.screen(), kiosk.language(), kiosk.order()), (Screen::Attract, None, None));
}

#[test]
fn whoever_walks_away_from_the_reader_leaves_it_stopped() {
    let (mut kiosk, at) = paying();
    kiosk.step(Event::ReaderReady { at, order: ORDER });
    assert_eq!(silence(&mut kiosk), [Effect::StopReader { at, keep_if_paid: true }]);
    assert_eq!(kiosk.screen(), Screen::Stopping, "and not at its beginning: the reader has not answered");
    assert!(kiosk.step(Event::Begin).is_empty());
    assert_eq!(kiosk.step(Event::NotPaid { at, why: Unpaid::Stopped }), [Effect::ReleaseHold(HOLD), Effect::Wipe]);
    assert_eq!(kiosk.screen(), Screen::Attract);
}

#[test]
fn a_card_that_was_faster_than_the_stop_is_tickets() {
    let (mut kiosk, at) = paying();
    silence(&mut kiosk);
    kiosk.step(Event::CardSeen { at });
    assert_eq!(kiosk.screen(), Screen::Authorising);
    assert_eq!(kiosk.step(Event::Paid { at, order: ORDER }), [Effect::Print { at, order: ORDER }]);
    kiosk.step(Event::PrintBegan { at });
    kiosk.step(Event::Printed { at });
    assert_eq!(kiosk.screen(), Screen::Done);
    assert_eq!(silence(&mut kiosk), [Effect::Wipe]);
}

#[test]
fn whoever_walks_away_while_authorising_is_waited_for_and_then_the_staffs() {
    let (mut kiosk, at) = paying();
    kiosk.step(Event::ReaderReady { at, order: ORDER });
    kiosk.step(Event::CardSeen { at });
    for _ in 0..Settings::default().asks_max {
        assert_eq!(kiosk.timer().unwrap().warns_s, None, "no countdown: there is nothing that they could do");
        assert_eq!(silence(&mut kiosk), [Effect::AskPayment(at)]);
    }
    let called = Effect::CallStaff { case: Case::PaymentInDoubt, order: Some(ORDER), hold: Some(HOLD) };
    assert_eq!(silence(&mut kiosk), [called]);
    assert_eq!(silence(&mut kiosk), [Effect::Wipe], "the seats are not given back: they may be paid for");
    assert_eq!(kiosk.screen(), Screen::OutOfService(super::Fault::Case));
    let late = kiosk.step(Event::Paid { at, order: ORDER });
    assert_eq!(late, [Effect::CallStaff { case: Case::PaidUnattended, order: Some(ORDER), hold: None }]);
    kiosk.step(Event::StaffPin);
    assert_eq!(kiosk.screen(), Screen::Attract);
}

#[test]
fn whoever_walks_away_after_paying_finds_staff_who_know() {
    let (mut kiosk, at) = paying();
    kiosk.step(Event::Paid { at, order: ORDER });
    assert_eq!(kiosk.screen(), Screen::Approved);
    kiosk.step(Event::PrintBegan { at });
    let called = Effect::CallStaff { case: Case::Unprinted, order: Some(ORDER), hold: None };
    assert_eq!(kiosk.step(Event::NotPrinted { at }), [called]);
    let to = Mail("anna@example.org".to_owned());
    assert_eq!(kiosk.step(Event::MailGiven(to.clone())), [Effect::Mail { at, order: ORDER, to }]);
    kiosk.step(Event::Mailed { at });
    assert_eq!(kiosk.screen(), Screen::Unprinted { mailed: true });
    assert_eq!(silence(&mut kiosk), [Effect::Wipe]);
    kiosk.step(Event::Printer(true));
    assert_eq!(kiosk.screen(), Screen::OutOfService(super::Fault::Case), "the printer said so before as well");
    kiosk.step(Event::StaffPin);
    assert_eq!(kiosk.screen(), Screen::Attract);
}

#[test]
fn an_address_that_was_given_before_gets_what_was_not_printed() {
    let (mut kiosk, at) = paying();
    kiosk.step(Event::NotPaid { at, why: Unpaid::Declined });
    let to = Mail("anna@example.org".to_owned());
    kiosk.step(Event::MailGiven(to.clone()));
    kiosk.step(Event::Printer(false));
    let [Effect::StartReader { at, .. }] = kiosk.step(Event::Pay)[..] else { panic!("a mail is enough") };
    kiosk.step(Event::Paid { at, order: ORDER });
    let told = silence(&mut kiosk);
    assert_eq!(told[1], Effect::Mail { at, order: ORDER, to });
}

#[test]
fn without_paper_and_address_nobody_pays() {
    let (mut kiosk, at) = paying();
    kiosk.step(Event::NotPaid { at, why: Unpaid::Declined });
    kiosk.step(Event::Printer(false));
    assert!(kiosk.needs_mail());
    assert!(kiosk.step(Event::Pay).is_empty());
}

#[test]
fn staff_do_not_end_a_payment_that_lives() {
    let (mut kiosk, at) = paying();
    assert!(kiosk.step(Event::StaffPin).is_empty());
    kiosk.step(Event::CardSeen { at });
    assert!(kiosk.step(Event::StaffPin).is_empty());
    assert_eq!(kiosk.screen(), Screen::Authorising);
}

#[test]
fn a_touch_begins_the_countdown_anew_and_an_old_one_ends_nothing() {
    let (mut kiosk, _) = paying();
    let before = kiosk.timer().unwrap();
    kiosk.step(Event::Touch);
    let after = kiosk.timer().unwrap();
    assert!(after.number != before.number && after.s == before.s);
    assert!(kiosk.step(Event::TimeUp { timer: before.number }).is_empty());
}

#[test]
fn an_address_is_in_no_log() {
    let (mut kiosk, at) = paying();
    kiosk.step(Event::NotPaid { at, why: Unpaid::Declined });
    kiosk.step(Event::MailGiven(Mail("anna@example.org".to_owned())));
    assert!(!format!("{kiosk:?}").contains("anna"));
}
