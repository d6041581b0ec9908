//! Drawers that add up, in currencies with no, two and three digits.

use proptest::prelude::*;

use super::*;

fn euro() -> Currency {
    let all = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 20_000];
    Currency::new("EUR", 2, &all).unwrap()
}

fn pieces(pairs: &[(i64, u32)]) -> Pieces {
    Pieces::new(pairs).unwrap()
}

fn drawer(float: &[(i64, u32)]) -> Drawer {
    Drawer::open(euro(), &pieces(float)).unwrap()
}

#[test]
fn the_evening_of_the_case_ends_fifty_cents_short() {
    // Float 100, sale 70, refund 20, drop 50, count 99.50.
    let mut drawer = drawer(&[(2000, 3), (1000, 3), (500, 1), (100, 4), (50, 2)]);
    assert_eq!(drawer.expected_minor(), 10_000);
    let change = drawer.sell(7000, &pieces(&[(5000, 2)])).unwrap();
    assert_eq!(change, pieces(&[(2000, 1), (1000, 1)]));
    assert_eq!(drawer.refund(2000).unwrap(), pieces(&[(2000, 1)]));
    drawer.drop_to_safe(&pieces(&[(5000, 1)])).unwrap();
    let count = drawer.count(&pieces(&[(5000, 1), (2000, 1), (1000, 2), (500, 1), (100, 4), (50, 1)])).unwrap();
    assert_eq!((count.counted_minor, count.expected_minor, count.variance_minor), (9950, 10_000, -50));
    assert_eq!(euro().write(count.variance_minor), "-0.50");
    assert_eq!(drawer.count(drawer.pieces()).unwrap().variance_minor, 0);
    assert_eq!(drawer.entries().iter().map(Entry::moves_minor).sum::<i64>(), 10_000);
}

#[test]
fn change_is_found_where_greed_alone_finds_none() {
    // 60 of 50, 20, 20, 20: who takes the 50 first has no 10.
    let drawer = drawer(&[(5000, 1), (2000, 3)]);
    assert_eq!(drawer.change(4000, &pieces(&[(10_000, 1)])).unwrap(), pieces(&[(2000, 3)]));
    // What is given counts: 20 back of three twenties.
    assert_eq!(drawer.change(4000, &pieces(&[(2000, 3)])).unwrap(), pieces(&[(2000, 1)]));
}

#[test]
fn what_cannot_be_given_is_refused_and_nothing_moves() {
    let mut drawer = drawer(&[(2000, 1), (200, 1)]);
    let before = drawer.clone();
    let note = pieces(&[(5000, 1)]);
    assert_eq!(drawer.sell(4500, &note), Err(CashError::NoChange { change_minor: 500 }));
    assert_eq!(drawer.sell(5001, &note), Err(CashError::TooLittle { missing_minor: 1 }));
    assert_eq!(drawer.sell(-1, &note), Err(CashError::Amount));
    assert_eq!(drawer.sell(100, &pieces(&[(300, 1)])), Err(CashError::NoSuchPiece(300)));
    assert_eq!(drawer.refund(2300), Err(CashError::NoChange { change_minor: 2300 }));
    assert_eq!(drawer.refund(-1), Err(CashError::Amount));
    assert_eq!(drawer.drop_to_safe(&pieces(&[(2000, 2)])), Err(CashError::NotInDrawer(2000)));
    assert_eq!(drawer.drop_to_safe(&note), Err(CashError::NotInDrawer(5000)));
    assert_eq!(drawer.pay_in(&note, "  "), Err(CashError::NoReason));
    assert_eq!(drawer.pay_out(&pieces(&[(200, 1)]), ""), Err(CashError::NoReason));
    assert_eq!(drawer, before);
    drawer.pay_out(&pieces(&[(200, 1)]), " window cleaner ").unwrap();
    assert_eq!(drawer.entries()[1], Entry::PayOut { amount_minor: 200, reason: "window cleaner".to_owned() });
}

#[test]
fn more_than_can_be_counted_is_refused() {
    let huge = Currency::new("XTS", 0, &[i64::MAX, 1]).unwrap();
    let one = pieces(&[(i64::MAX, 1)]);
    let mut drawer = Drawer::open(huge, &one).unwrap();
    assert_eq!(drawer.pay_in(&pieces(&[(1, 1)]), "more"), Err(CashError::Amount));
    assert_eq!(drawer.count(&pieces(&[(i64::MAX, 2)])), Err(CashError::Amount));
    assert_eq!(Pieces::new(&[(1, u32::MAX), (1, 1)]), Err(CashError::Amount));
    assert_eq!(drawer.expected_minor(), i64::MAX);
}

#[test]
fn amounts_are_written_and_read_with_the_currency_s_digits() {
    let (yen, dinar) = (Currency::new("JPY", 0, &[1]).unwrap(), Currency::new("KWD", 3, &[5]).unwrap());
    let written = [yen.write(1234), euro().write(1234), dinar.write(1234), dinar.write(-5), euro().write(i64::MIN)];
    assert_eq!(written, ["1234", "12.34", "1.234", "-0.005", "-92233720368547758.08"]);
    assert_eq!((euro().read("12,5"), euro().read(" 12.50 "), euro().read("12")), (Some(1250), Some(1250), Some(1200)));
    assert_eq!((yen.read("12"), yen.read("12.0"), dinar.read("1.234")), (Some(12), None, Some(1234)));
    for typed in ["", ".", "5.", ".5", "-1", "+1", "1.234", "1,000.00", "1e3", "٣", "99999999999999999999"] {
        assert_eq!(euro().read(typed), None, "{typed}");
    }
    assert!(Currency::new("XTS", 1, &[1]).is_err() && Currency::new("XTS", 2, &[0]).is_err());
}

/// Every sum that some of these pieces make: the slow and plain way.
fn sums(pieces: &Pieces) -> BTreeSet<i64> {
    pieces.iter().fold(BTreeSet::from([0]), |sums, (worth, count)| {
        sums.iter().flat_map(|sum| (0..=i64::from(count)).map(move |n| sum + worth * n)).collect()
    })
}

fn some(counts: u32) -> impl Strategy<Value = Pieces> {
    let worths = prop::sample::select(vec![1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000]);
    prop::collection::vec((worths, 0..=counts), 0..5).prop_map(|pairs| Pieces::new(&pairs).unwrap())
}

#[derive(Debug, Clone)]
enum Act {
    Sell(i64, Pieces),
    Refund(i64),
    Drop(Pieces),
    In(Pieces),
    Out(Pieces),
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        (0..6000_i64, some(3)).prop_map(|(due, given)| Act::Sell(due, given)),
        (-5..6000_i64).prop_map(Act::Refund),
        some(2).prop_map(Act::Drop),
        some(3).prop_map(Act::In),
        some(2).prop_map(Act::Out),
    ]
}

proptest! {
    #[test]
    fn change_is_made_exactly_when_some_pieces_make_it(have in some(4), amount in 0..9000_i64) {
        let made = make(&have, amount);
        prop_assert_eq!(made.is_some(), sums(&have).contains(&amount));
        if let Some(made) = made {
            prop_assert_eq!(made.worth(), Ok(amount));
            prop_assert!(have.without(&made).is_ok());
        }
    }

    #[test]
    fn a_drawer_adds_up_whatever_is_done(float in some(10), acts in prop::collection::vec(act(), 0..20)) {
        let mut drawer = Drawer::open(euro(), &float).unwrap();
        let (mut into, mut out) = (float.worth().unwrap(), 0);
        for act in acts {
            let before = drawer.clone();
            let done = match act {
                Act::Sell(due, given) => drawer.sell(due, &given).map(|change| {
                    into += given.worth().unwrap();
                    out += change.worth().unwrap();
                    assert_eq!(given.worth().unwrap() - change.worth().unwrap(), due);
                }),
                Act::Refund(amount) => drawer.refund(amount).map(|given| {
                    out += given.worth().unwrap();
                    assert_eq!(given.worth(), Ok(amount));
                }),
                Act::Drop(pieces) => drawer.drop_to_safe(&pieces).map(|()| out += pieces.worth().unwrap()),
                Act::In(pieces) => drawer.pay_in(&pieces, "in").map(|()| into += pieces.worth().unwrap()),
                Act::Out(pieces) => drawer.pay_out(&pieces, "out").map(|()| out += pieces.worth().unwrap()),
            };
            if done.is_err() {
                prop_assert_eq!(&drawer, &before);
            }
            prop_assert_eq!(drawer.expected_minor(), into - out);
            prop_assert_eq!(drawer.pieces().worth(), Ok(into - out));
            prop_assert_eq!(drawer.entries().iter().map(Entry::moves_minor).sum::<i64>(), into - out);
        }
    }

    #[test]
    fn what_is_written_is_read(amount in 0..i64::MAX, exponent in prop::sample::select(vec![0, 2, 3])) {
        let currency = Currency::new("XTS", exponent, &[1]).unwrap();
        prop_assert_eq!(currency.read(&currency.write(amount)), Some(amount));
    }
}
