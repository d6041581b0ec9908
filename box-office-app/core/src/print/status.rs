//! What a printer answers.

use fullhouse_protocol::terminal::PaperState;

/// How a printer is, as it says.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Status {
    pub offline: bool,
    pub cover_open: bool,
    pub paper_out: bool,
    /// Near its end: time to fetch a roll.
    pub paper_low: bool,
    /// The cutter is stuck, the head too hot, or worse.
    pub error: bool,
}

/// Why a printer prints nothing, or stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Trouble {
    /// Nobody answers there.
    Unreachable,
    CoverOpen,
    PaperOut,
    /// The cutter, the head, or it is switched offline.
    Error,
    /// It took no more bytes, for too long.
    Stalled,
    /// The connection broke.
    Cut,
    /// It never said that it was done.
    NoAnswer,
    /// The till stopped in the middle.
    TillStopped,
    /// Of this machine: a file could not be written.
    Disk,
}

impl Status {
    /// What keeps it from printing.
    pub fn trouble(self) -> Option<Trouble> {
        if self.paper_out {
            Some(Trouble::PaperOut)
        } else if self.cover_open {
            Some(Trouble::CoverOpen)
        } else {
            (self.error || self.offline).then_some(Trouble::Error)
        }
    }

    /// Takes the answer to `DLE EOT n` in.
    pub(super) fn learn(&mut self, n: u8, byte: u8) {
        let has = |bits: u8| byte & bits != 0;
        match n {
            1 => self.offline = has(0x08),
            2 => {
                self.cover_open = has(0x04);
                self.paper_out |= has(0x20);
                self.error |= has(0x40);
            }
            3 => self.error |= has(0x08 | 0x20 | 0x40),
            _ => {
                self.paper_low = has(0x0c);
                self.paper_out |= has(0x60);
            }
        }
    }
}

/// What a terminal reports of its paper, of what [`super::Printer::status`] answered.
pub fn paper_state(seen: Result<Status, Trouble>) -> PaperState {
    match seen {
        Ok(status) if status.paper_out => PaperState::Out,
        Ok(status) if status.trouble().is_some() => PaperState::Offline,
        Ok(status) if status.paper_low => PaperState::Low,
        Ok(_) => PaperState::Ok,
        Err(_) => PaperState::Offline,
    }
}

/// One answer out of the bytes that came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// To `DLE EOT`; they come in the order in which they were asked for.
    Status(u8),
    /// To `GS ( H`: everything before it is on paper.
    Done([u8; 4]),
    /// To `GS r`: it has read that far.
    Paper(u8),
}

/// Takes answers out of what comes. What is none of them (flow control, a status that nobody asked for) is left out.
#[derive(Debug, Default)]
pub struct Answers(Vec<u8>);

impl Answers {
    pub fn push(&mut self, bytes: &[u8]) {
        self.0.extend(bytes);
    }

    /// The next whole one.
    pub fn take(&mut self) -> Option<Answer> {
        loop {
            let first = *self.0.first()?;
            let (length, answer) = match first {
                0x37 if self.0.len() < 7 => return None,
                0x37 => (7, self.0[2..6].try_into().ok().map(Answer::Done)),
                byte if byte & 0x93 == 0x12 => (1, Some(Answer::Status(byte))),
                // Told by itself when something changed: four bytes.
                byte if byte & 0x93 == 0x10 && self.0.len() < 4 => return None,
                byte if byte & 0x93 == 0x10 => (4, None),
                byte if byte & 0x90 == 0 => (1, Some(Answer::Paper(byte))),
                _ => (1, None),
            };
            self.0.drain(..length);
            if answer.is_some() {
                return answer;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_found_among_each_other_however_they_are_cut() {
        let bytes = [0x12, 0x37, 0x22, b'A', b'B', b'C', b'D', 0, 0x13, 0x1e, 0x10, 0x00, 0x0f, 0x00, 0x72, 0x0f];
        let expected = [
            Answer::Status(0x12),
            Answer::Done(*b"ABCD"),
            Answer::Status(0x1e),
            Answer::Status(0x72),
            Answer::Paper(0x0f),
        ];
        for cut in 0..bytes.len() {
            let mut answers = Answers::default();
            let mut found = Vec::new();
            for part in [&bytes[..cut], &bytes[cut..]] {
                answers.push(part);
                found.extend(std::iter::from_fn(|| answers.take()));
            }
            assert_eq!(found, expected, "cut at {cut}");
        }
    }

    #[test]
    fn a_printer_says_what_is_wrong() {
        let mut status = Status::default();
        for (n, byte) in [(1, 0x1a), (2, 0x36), (3, 0x12), (4, 0x7e)] {
            status.learn(n, byte);
        }
        assert!(status.offline && status.cover_open && status.paper_out && status.paper_low && !status.error);
        assert_eq!(status.trouble(), Some(Trouble::PaperOut));
        assert_eq!(paper_state(Ok(status)), PaperState::Out);
        let low = Status { paper_low: true, ..Status::default() };
        assert_eq!((low.trouble(), paper_state(Ok(low))), (None, PaperState::Low));
        assert_eq!(paper_state(Err(Trouble::Unreachable)), PaperState::Offline);
    }
}
