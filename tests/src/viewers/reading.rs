//! A connection's bytes, counted and checked as they come, without keeping them.
//!
//! Invariant: of a message only its header is looked at; if it comes in two parts, the crowd keeps the first.

use fullhouse_protocol::frames::HEADER_BYTES;

use super::{Speech, tally::Tally};

/// The header, and where a span begins.
const LOOKED_AT: usize = HEADER_BYTES + 8;
const NATS_PING: &[u8] = b"PING\r\n";
const RESYNC: u8 = 2;
const SPAN: u8 = 5;
const LINE: u8 = 6;
const RANGE: u8 = 7;

/// Where a connection stands in what it is sent.
pub(super) struct Reading {
    /// Epoch and frame that it has.
    pub at: (u64, u64),
    /// When the message was made that is coming in.
    made_at: u64,
    /// Bytes of it that are still to come.
    left: u32,
    /// Frames in it, of a server that sends several in one message.
    frames: u32,
}

/// What needs an answer.
pub(super) enum Said {
    Ping,
    NatsPing,
    Close { code: u16, within_ms: Option<u64> },
}

impl Reading {
    pub(super) fn new(at: (u64, u64)) -> Self {
        Self { at, made_at: 0, left: 0, frames: 0 }
    }

    /// Takes what it can: how many bytes, and what was said if that is for the crowd to answer.
    pub(super) fn take(&mut self, bytes: &[u8], speech: Speech, now: u64, tally: &mut Tally) -> (usize, Option<Said>) {
        let mut used = 0;
        loop {
            let rest = &bytes[used..];
            if self.left > 0 {
                let count = rest.len().min(self.left as usize);
                self.left -= count as u32;
                used += count;
                if self.left > 0 {
                    return (used, None);
                }
                tally.received(self.frames, now.saturating_sub(self.made_at));
                continue;
            }
            let Some((kind, header, length)) = message(rest) else { return (used, None) };
            let content = &rest[header..];
            match kind {
                1 | 2 => {
                    let needed = match speech {
                        Speech::WebSocket => LOOKED_AT,
                        Speech::Nats => 24 + NATS_PING.len() + LOOKED_AT,
                    };
                    if content.len() < length.min(needed) {
                        return (used, None);
                    }
                    // A server may put its first ping and a frame into one message.
                    let pings = match speech {
                        Speech::WebSocket => 0,
                        Speech::Nats => content.chunks(NATS_PING.len()).take_while(|line| *line == NATS_PING).count(),
                    };
                    let before = pings * NATS_PING.len();
                    let said = (pings > 0).then_some(Said::NatsPing);
                    let unit = match speech {
                        Speech::WebSocket => Some((0, length)),
                        Speech::Nats => nats_unit(&content[before..]),
                    };
                    let Some((lead, unit)) = unit.filter(|_| before < length) else {
                        return (used + header + length, said);
                    };
                    self.frames = ((length - before) / unit.max(1)).max(1) as u32;
                    self.note(&content[before + lead..], tally);
                    used += header;
                    self.left = length as u32;
                    if said.is_some() {
                        return (used, said);
                    }
                }
                8 | 9 => {
                    if content.len() < length {
                        return (used, None);
                    }
                    let content = &content[..length];
                    let said = match (kind, content) {
                        (8, [high, low, reason @ ..]) => Said::Close {
                            code: u16::from_be_bytes([*high, *low]),
                            within_ms: std::str::from_utf8(reason).ok().and_then(|ms| ms.parse().ok()),
                        },
                        (8, _) => Said::Close { code: 1005, within_ms: None },
                        _ => Said::Ping,
                    };
                    return (used + header + length, Some(said));
                }
                _ => {
                    if content.len() < length {
                        return (used, None);
                    }
                    used += header + length;
                }
            }
        }
    }

    /// Reads a frame's header, and whether it follows on the last one.
    fn note(&mut self, frame: &[u8], tally: &mut Tally) {
        let number = |at: usize| frame.get(at..at + 8).and_then(|b| b.try_into().ok()).map_or(0, u64::from_le_bytes);
        let (kind, at) = (frame.get(1).copied().unwrap_or_default(), (number(16), number(24)));
        self.made_at = number(32);
        if kind == RESYNC {
            tally.resyncs += 1;
        } else if at.0 != self.at.0 {
            tally.wrong += u64::from(self.at.0 != 0);
        } else if kind == LINE {
            tally.wrong += u64::from(at.1 <= self.at.1); // each is the whole of it, and they only rise
        } else {
            let is_span = kind == SPAN || kind == RANGE;
            tally.ranges += u64::from(kind == RANGE);
            let since = if is_span { number(HEADER_BYTES) } else { at.1.saturating_sub(1) };
            tally.spans += u64::from(is_span);
            let follows = if is_span { since <= self.at.1 } else { since == self.at.1 };
            tally.wrong += u64::from(!follows || at.1 <= self.at.1);
        }
        self.at = (at.0, at.1 + u64::from(self.frames) - 1);
    }
}

/// A message's kind, the length of its header and of its content.
fn message(bytes: &[u8]) -> Option<(u8, usize, usize)> {
    let kind = bytes.first()? & 0x0f;
    Some(match *bytes.get(1)? & 0x7f {
        126 => (kind, 4, u16::from_be_bytes(bytes.get(2..4)?.try_into().ok()?).into()),
        127 => (kind, 10, u64::from_be_bytes(bytes.get(2..10)?.try_into().ok()?) as usize),
        short => (kind, 2, short.into()),
    })
}

/// `MSG f 1 400\r\n`, the frame, `\r\n`: where the frame begins, and how long all of it is.
fn nats_unit(content: &[u8]) -> Option<(usize, usize)> {
    let line = content.strip_prefix(b"MSG f 1 ")?;
    let digits = line.iter().position(|byte| *byte == b'\r')?;
    let size: usize = std::str::from_utf8(&line[..digits]).ok()?.parse().ok()?;
    let lead = 8 + digits + 2;
    Some((lead, lead + size + 2))
}

/// A client's message. A mask of zeros is a mask.
pub(super) fn masked(kind: u8, content: &[u8]) -> Vec<u8> {
    [&[0x80 | kind, 0x80 | content.len() as u8, 0, 0, 0, 0], content].concat()
}

#[cfg(test)]
mod tests {
    use fullhouse_protocol::frames::{Head, Position, encode_delta};

    use super::*;

    fn message(content: &[u8]) -> Vec<u8> {
        [&[0x82, 126, (content.len() >> 8) as u8, content.len() as u8][..], content].concat()
    }

    #[test]
    fn a_ping_of_nats_does_not_hide_the_frame_behind_it() {
        let head = Head { event_id: 1, at: Position { epoch: 2, frame: 7 }, seat_count: 1, committed_at_ms: 5 };
        let frame = encode_delta(&head, &[]);
        let told = [format!("MSG f 1 {}\r\n", frame.len()).as_bytes(), &frame, b"\r\n"].concat();
        for (before, times) in [("", 1), ("PING\r\n", 1), ("PING\r\nPING\r\n", 1), ("PING\r\n", 2)] {
            let bytes = message(&[before.as_bytes(), &told.repeat(times)].concat());
            let (mut reading, mut tally, mut begin, mut pinged) = (Reading::new((0, 0)), Tally::default(), 0, false);
            while begin < bytes.len() {
                let (used, said) = reading.take(&bytes[begin..], Speech::Nats, 9, &mut tally);
                (begin, pinged) = (begin + used, pinged || matches!(said, Some(Said::NatsPing)));
            }
            assert_eq!((tally.frames, reading.at.1), (times as u64, 6 + times as u64), "{before:?}");
            assert_eq!(pinged, !before.is_empty());
        }
    }
}
