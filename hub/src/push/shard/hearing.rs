//! What clients say, which is hardly anything: pongs, pings, closes.
//!
//! Invariant: of what a client sends, nothing is kept but the beginning of a message that is allowed,
//! and only until the rest has come.

use std::{
    io::{ErrorKind, Read},
    time::Instant,
};

use fullhouse_protocol::close;

use super::{INPUT_MESSAGES_MAX, Shard, Waiting, sending::send};
use crate::push::wire::{self, Input};

impl Shard {
    /// A client has said something, or has gone.
    pub(super) fn hear(&mut self, slot: u32, now: Instant) {
        let mut bytes = [0; wire::INPUT_BYTES_MAX];
        let Some(viewer) = self.viewers[slot as usize].as_ref() else { return };
        match (&viewer.stream).read(&mut bytes) {
            Ok(0) => self.remove(slot),
            Ok(count) => self.hear_bytes(slot, &bytes[..count], now),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
            Err(_) => self.remove(slot),
        }
    }

    pub(super) fn hear_bytes(&mut self, slot: u32, new: &[u8], now: Instant) {
        let mut bytes = self.heard_partly.remove(&slot).unwrap_or_default();
        bytes.extend_from_slice(new);
        let mut begin = 0;
        loop {
            let Some(viewer) = self.viewers[slot as usize].as_mut() else { return };
            let parts = matches!(self.waiting.get(&slot), Some(Waiting::Parts { .. }));
            match wire::read(&mut bytes[begin..]) {
                Ok(Some((input, used))) => {
                    begin += used;
                    (viewer.unanswered, viewer.heard) = (0, viewer.heard.saturating_add(1));
                    match input {
                        Input::Close(_) if parts => return self.remove(slot),
                        Input::Close(code) => return self.reply_to_close(slot, code),
                        _ if parts => {}
                        _ if viewer.heard > INPUT_MESSAGES_MAX => return self.part(slot, close::BAD_REQUEST, now),
                        Input::Ping(content) => {
                            let pong = wire::pong(content);
                            self.send_aside(slot, pong, now);
                        }
                        Input::Pong | Input::Text => {}
                    }
                }
                Ok(None) => break,
                Err(wire::Refused) if parts => return, // it is going anyway
                Err(wire::Refused) => return self.part(slot, close::BAD_REQUEST, now),
            }
        }
        if begin < bytes.len() {
            bytes.drain(..begin);
            self.heard_partly.insert(slot, bytes);
        }
    }

    pub(super) fn reply_to_close(&mut self, slot: u32, code: Option<u16>) {
        let Some(viewer) = self.viewers[slot as usize].as_ref() else { return };
        let half_out = matches!(self.waiting.get(&slot), Some(Waiting::Lags { rest, .. }) if !rest.is_empty());
        if !half_out {
            let _ = send(&viewer.stream, &wire::close(code, "")); // it is going, whether it hears this or not
        }
        self.remove(slot);
    }
}
