//! The client's side of PostgreSQL's protocol, as far as it says which statement is run.
//!
//! A message is a type, a length and a body; only what comes before the session (a request for TLS,
//! the start) has no type. A statement is run by Query, which carries it, or by Execute, which names
//! a portal that Bind made of what Parse was given.

use std::collections::HashMap;

/// What comes before the session asks for TLS or GSS and is answered by one byte; another such message follows.
const ASKS_FOR_ENCRYPTION: [u32; 2] = [80_877_103, 80_877_104];

#[derive(Default)]
pub struct Frontend {
    buffered: Vec<u8>,
    in_session: bool,
    /// Texts of prepared statements, by name.
    statements: HashMap<String, String>,
    /// Texts of what portals run, by name.
    portals: HashMap<String, String>,
}

pub struct Message {
    pub bytes: Vec<u8>,
    /// The text of the statement that it runs, if it runs one.
    pub runs: Option<String>,
}

impl Frontend {
    pub fn read(&mut self, bytes: &[u8]) {
        self.buffered.extend_from_slice(bytes);
    }

    /// The next message that has come whole.
    pub fn next_message(&mut self) -> Option<Message> {
        let before = usize::from(self.in_session); // its type
        let length = self.buffered.get(before..before + 4)?;
        let length = before + u32::from_be_bytes(length.try_into().expect("four bytes")) as usize;
        if self.buffered.len() < length {
            return None;
        }
        let bytes: Vec<u8> = self.buffered.drain(..length).collect();
        if !self.in_session {
            let code = u32::from_be_bytes(bytes[4..8].try_into().expect("a code follows the length"));
            self.in_session = !ASKS_FOR_ENCRYPTION.contains(&code);
            return Some(Message { bytes, runs: None });
        }
        let mut texts = bytes[5..].split(|byte| *byte == 0).map(|text| String::from_utf8_lossy(text).into_owned());
        let mut text = || texts.next().unwrap_or_default();
        let runs = match bytes[0] {
            b'Q' => Some(text()),
            b'P' => {
                let name = text();
                self.statements.insert(name, text());
                None
            }
            b'B' => {
                let (portal, statement) = (text(), text());
                self.portals.insert(portal, self.statements.get(&statement).cloned().unwrap_or_default());
                None
            }
            b'E' => self.portals.get(&text()).cloned(),
            _ => None,
        };
        Some(Message { bytes, runs })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(kind: u8, body: &[u8]) -> Vec<u8> {
        [&[kind], &(body.len() as u32 + 4).to_be_bytes()[..], body].concat()
    }

    #[test]
    fn it_knows_what_is_run_whatever_the_pieces() {
        let start = [
            &8u32.to_be_bytes()[..],
            &80_877_103u32.to_be_bytes(),
            &9u32.to_be_bytes(),
            &196_608u32.to_be_bytes(),
            &[0],
        ];
        let mut wire = start.concat();
        wire.extend(message(b'Q', b"BEGIN\0"));
        wire.extend(message(b'P', b"s1\0select $1\0\0\x01\0\0\0\x17"));
        wire.extend(message(b'B', b"p\0s1\0\0\0\0\0\0\0"));
        wire.extend(message(b'E', b"p\0\0\0\0\0"));
        wire.extend(message(b'S', b""));
        wire.extend(message(b'E', b"p\0\0\0\0\0"));
        for size in [1, 3, 7, wire.len()] {
            let (mut frontend, mut messages) = (Frontend::default(), Vec::new());
            for piece in wire.chunks(size) {
                frontend.read(piece);
                while let Some(message) = frontend.next_message() {
                    messages.push(message);
                }
            }
            let runs: Vec<Option<&str>> = messages.iter().map(|m| m.runs.as_deref()).collect();
            let select = Some("select $1");
            assert_eq!(runs, [None, None, Some("BEGIN"), None, None, select, None, select]);
            assert_eq!(messages.into_iter().flat_map(|m| m.bytes).collect::<Vec<u8>>(), wire);
        }
    }
}
