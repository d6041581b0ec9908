//! What follows on a cursor, looked up once a step: nearly all viewers of a room stand at the same one.

use fullhouse_protocol::frames::Position;

use crate::push::room::{Next, Room};

/// Cursors that are remembered; those who lag differ, and there are few of them.
const KNOWN_MAX: usize = 4;

/// Of one room, and of one moment.
#[derive(Default)]
pub(super) struct Memo {
    room: Option<u32>,
    known: Vec<(Option<Position>, Next)>,
}

impl Memo {
    pub(super) fn next(&mut self, number: u32, room: &Room, cursor: Option<Position>) -> &Next {
        if self.room != Some(number) {
            self.room = Some(number);
            self.known.clear();
        }
        let index = match self.known.iter().position(|(at, _)| *at == cursor) {
            Some(index) => index,
            None => {
                if self.known.len() == KNOWN_MAX {
                    self.known.pop();
                }
                self.known.push((cursor, room.next(cursor)));
                self.known.len() - 1
            }
        };
        &self.known[index].1
    }
}
