use std::sync::Arc;

use fullhouse_protocol::seat::Status;

use super::*;
use crate::seat_map::{STANDING, testing::rows};

fn board(hall: Hall) -> Board {
    Board::new(Arc::new(hall))
}

fn wish(count: u32) -> BestRequest {
    BestRequest { count, level: None, section: None, accessible: 0 }
}

fn first(board: &Board, wish: &BestRequest) -> Option<Vec<SeatNo>> {
    propose(board, wish, false, &HashSet::new()).into_iter().next()
}

fn singles(hall: &Hall, result: &[SeatNo], taken: &[SeatNo]) -> Vec<SeatNo> {
    singles_left(hall, result, &result.iter().copied().collect(), |s| !taken.contains(&s))
}

#[test]
fn the_best_are_neighbours_near_the_stage() {
    let board = board(rows(&[&[0; 8], &[0; 8]]));
    assert_eq!(first(&board, &wish(4)), Some(vec![2, 3, 4, 5]));
    for seat in [2, 3, 4, 5] {
        board.set(seat, Status::Held);
    }
    assert_eq!(first(&board, &wish(4)), Some(vec![10, 11, 12, 13]));
    assert_eq!(first(&board, &wish(9)), None);
}

#[test]
fn a_single_seat_is_left_only_if_that_cant_be_avoided() {
    // Seven in a row, three wanted: the middle would be nearest and leaves no single, 1 + 3 would.
    let hall = board(rows(&[&[0; 5]]));
    assert_eq!(first(&hall, &wish(3)), Some(vec![0, 1, 2]), "1 + 1 left over would be two singles");
    let three = board(rows(&[&[0; 3]]));
    assert_eq!(first(&three, &wish(2)).map(|s| s.len()), Some(2), "one is left over whatever is chosen");
}

#[test]
fn accessible_places_only_if_asked_for_and_with_their_companions() {
    let mut hall = rows(&[&[ACCESSIBLE, COMPANION, 0, 0, 0, 0]]);
    hall.seats[1].companion_of = Some(0);
    let board = board(hall);
    assert!(propose(&board, &wish(4), false, &HashSet::new()).iter().flatten().all(|s| *s > 1));
    assert_eq!(first(&board, &wish(5)), None);
    let party = BestRequest { accessible: 1, ..wish(4) };
    assert_eq!(first(&board, &party), Some(vec![0, 1, 2, 3]));
    assert_eq!(first(&board, &BestRequest { accessible: 2, ..wish(4) }), None);
}

#[test]
fn level_section_and_what_is_spoken_for() {
    let mut hall = rows(&[&[0; 4], &[0; 4]]);
    for seat in 4..8 {
        hall.seats[seat].level = 1;
    }
    let board = board(hall);
    assert_eq!(first(&board, &BestRequest { level: Some(1), ..wish(4) }), Some(vec![4, 5, 6, 7]));
    assert_eq!(first(&board, &BestRequest { section: Some("Balcony".into()), ..wish(1) }), None);
    let spoken_for = HashSet::from([0, 1]);
    let groups = propose(&board, &BestRequest { level: Some(0), ..wish(2) }, false, &spoken_for);
    assert_eq!(groups, [[2, 3]]);
    assert_eq!(propose(&board, &BestRequest { level: Some(0), ..wish(4) }, true, &spoken_for), [[2, 3]]);
}

#[test]
fn a_lost_seat_has_neighbours_like_it() {
    let board = board(rows(&[&[0; 6], &[0; 6], &[0; 6]]));
    for seat in 6..12 {
        board.set(seat, Status::Sold);
    }
    let offers = nearby(&board, &[8, 9], 2);
    assert_eq!(offers.len(), 2, "one a row, none in the row that is gone: {offers:?}");
    assert!(offers.iter().all(|o| o.len() == 2 && o.iter().all(|s| board.is_available(*s))));
    assert!(nearby(&board, &[999], 2).is_empty());
}

#[test]
fn the_single_seat_rule() {
    let five = rows(&[&[0; 5]]);
    assert_eq!(singles(&five, &[1, 3], &[]), [0, 2, 4]);
    assert_eq!(singles(&five, &[0, 1], &[]), Vec::<SeatNo>::new());
    assert_eq!(
        singles(&five, &[1, 2, 3, 4], &[]),
        Vec::<SeatNo>::new(),
        "four of five leave one: there is no other way"
    );
    assert_eq!(singles(&five, &[1], &[]), [0]);
    assert_eq!(singles(&five, &[0], &[2, 3, 4]), Vec::<SeatNo>::new(), "one of two leaves one");
    let three = rows(&[&[0; 3]]);
    assert_eq!(singles(&three, &[0, 1], &[]), Vec::<SeatNo>::new());
    assert_eq!(singles(&three, &[1], &[]), [0, 2]);
    let beside_a_wheelchair = rows(&[&[0, 0, ACCESSIBLE, 0]]);
    assert_eq!(
        singles(&beside_a_wheelchair, &[0, 1], &[]),
        Vec::<SeatNo>::new(),
        "an accessible place is nobody's single seat"
    );
}

#[test]
fn a_companion_goes_with_its_place() {
    let mut hall = rows(&[&[ACCESSIBLE, COMPANION, 0]]);
    hall.seats[1].companion_of = Some(0);
    assert_eq!(companions_alone(&hall, &[1, 2], &[1, 2].into()), [1]);
    assert_eq!(companions_alone(&hall, &[0, 1], &[0, 1].into()), Vec::<SeatNo>::new());
}

#[test]
fn nobody_is_left_single_where_people_stand() {
    let hall = rows(&[&[STANDING; 6]]);
    assert!(singles(&hall, &[1], &[]).is_empty());
    assert!(side_by_side(&hall, &[0, 4].into()));
    assert_eq!(singles(&rows(&[&[0; 6]]), &[1], &[]), [0]);
}
