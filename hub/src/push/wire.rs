//! The server's side of a WebSocket (RFC 6455), as far as an open map needs it.
//!
//! Invariants
//! - What we send is whole and unmasked, so the same bytes serve everybody.
//! - What a client may send is small: it has nothing to say. Anything else is an error, told from its
//!   first bytes.

use bytes::{BufMut, Bytes, BytesMut};

/// The largest text that a client may send; it is ignored, so that a later version may say something.
pub const TEXT_BYTES_MAX: usize = 1024;
/// Of pings, pongs and closes, says the RFC.
const CONTROL_BYTES_MAX: usize = 125;
/// More than an allowed message has: two bytes, two of length, four of mask.
pub const INPUT_BYTES_MAX: usize = 8 + TEXT_BYTES_MAX;

const FINAL: u8 = 0x80;
const RESERVED: u8 = 0x70;
const MASKED: u8 = 0x80;
const TEXT: u8 = 1;
const BINARY: u8 = 2;
const CLOSE: u8 = 8;
const PING: u8 = 9;
const PONG: u8 = 10;

/// A ping without content.
pub const PING_MESSAGE: Bytes = Bytes::from_static(&[FINAL | PING, 0]);

/// A binary message as it travels.
pub fn binary(content: &[u8]) -> Bytes {
    message(BINARY, content)
}

/// The content of what [`binary`] made.
pub fn content(message: &Bytes) -> &[u8] {
    let header = match message[1] {
        126 => 4,
        127 => 10,
        _ => 2,
    };
    &message[header..]
}

pub fn pong(content: &[u8]) -> Bytes {
    message(PONG, content)
}

/// Without a code it says nothing, which is allowed. A reason is cut at what a close may carry.
pub fn close(code: Option<u16>, reason: &str) -> Bytes {
    let mut content = BytesMut::new();
    if let Some(code) = code {
        content.put_u16(code);
        let end = reason.floor_char_boundary(CONTROL_BYTES_MAX - 2);
        content.put_slice(&reason.as_bytes()[..end]);
    }
    message(CLOSE, &content)
}

fn message(kind: u8, content: &[u8]) -> Bytes {
    let mut out = BytesMut::with_capacity(10 + content.len());
    out.put_u8(FINAL | kind);
    match content.len() {
        short @ ..126 => out.put_u8(short as u8),
        medium @ ..=0xffff => {
            out.put_u8(126);
            out.put_u16(medium as u16);
        }
        long => {
            out.put_u8(127);
            out.put_u64(long as u64);
        }
    }
    out.put_slice(content);
    out.freeze()
}

/// What a client said.
#[derive(Debug, PartialEq, Eq)]
pub enum Input<'a> {
    Ping(&'a [u8]),
    Pong,
    /// Nothing that this version understands.
    Text,
    Close(Option<u16>),
}

/// It said what it may not: too much, in pieces, unmasked, binary, or gibberish.
#[derive(Debug, PartialEq, Eq)]
pub struct Refused;

/// Reads one message at the start of `bytes`, unmasking it in place: what it is, and how many bytes it
/// took. `None`: more has to come.
pub fn read(bytes: &mut [u8]) -> Result<Option<(Input<'_>, usize)>, Refused> {
    let [first, second, ..] = *bytes else { return Ok(None) };
    let kind = first & 0x0f;
    if first & FINAL == 0 || first & RESERVED != 0 || second & MASKED == 0 {
        return Err(Refused);
    }
    let length_max = match kind {
        TEXT => TEXT_BYTES_MAX,
        CLOSE | PING | PONG => CONTROL_BYTES_MAX,
        _ => return Err(Refused),
    };
    let (header, length) = match second & !MASKED {
        126 if kind == TEXT => match *bytes {
            [_, _, high, low, ..] => (8, usize::from(u16::from_be_bytes([high, low]))),
            _ => return Ok(None),
        },
        126 | 127 => return Err(Refused),
        short => (6, usize::from(short)),
    };
    if length > length_max {
        return Err(Refused);
    }
    let Some(message) = bytes.get_mut(..header + length) else { return Ok(None) };
    let (head, content) = message.split_at_mut(header);
    let mask = &head[header - 4..];
    for (byte, mask) in content.iter_mut().zip(mask.iter().cycle()) {
        *byte ^= mask;
    }
    let input = match kind {
        PING => Input::Ping(content),
        PONG => Input::Pong,
        TEXT if std::str::from_utf8(content).is_ok() => Input::Text,
        CLOSE => match *content {
            [] => Input::Close(None),
            [high, low, ref reason @ ..] if std::str::from_utf8(reason).is_ok() => {
                Input::Close(Some(u16::from_be_bytes([high, low])))
            }
            _ => return Err(Refused),
        },
        _ => return Err(Refused),
    };
    Ok(Some((input, header + length)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use tokio_tungstenite::tungstenite::protocol::frame::{
        FrameHeader,
        coding::{CloseCode, Control, Data, OpCode},
    };

    use super::*;

    /// A client's message, as another implementation writes it.
    fn client(opcode: OpCode, content: &[u8], mask: u32) -> Vec<u8> {
        let mask = mask.to_be_bytes();
        let mut out = Vec::new();
        let header = FrameHeader { mask: Some(mask), opcode, ..FrameHeader::default() };
        header.format(content.len() as u64, &mut out).unwrap();
        out.extend(content.iter().zip(mask.iter().cycle()).map(|(byte, mask)| byte ^ mask));
        out
    }

    proptest! {
        #[test]
        fn a_clients_message_is_read_whole_and_not_before(
            content in prop::collection::vec(any::<u8>(), 0..=125), mask in any::<u32>(), rest in prop::collection::vec(any::<u8>(), 0..9)
        ) {
            let message = client(OpCode::Control(Control::Ping), &content, mask);
            for cut in 0..message.len() {
                let mut cut = message[..cut].to_vec();
                prop_assert_eq!(read(&mut cut), Ok(None));
            }
            let mut more = [&message[..], &rest].concat();
            prop_assert_eq!(read(&mut more), Ok(Some((Input::Ping(&content), message.len()))));
        }

        #[test]
        fn whatever_comes_is_read_or_refused(mut bytes in prop::collection::vec(any::<u8>(), 0..2000)) {
            let length = bytes.len();
            match read(&mut bytes) {
                Ok(Some((_, used))) => prop_assert!(used <= length),
                Ok(None) => prop_assert!(length < INPUT_BYTES_MAX, "nothing that is allowed is longer"),
                Err(Refused) => {}
            }
        }

        #[test]
        fn our_messages_are_what_others_read(length in 0..70_000_usize) {
            let content_is = vec![7_u8; length];
            let message = binary(&content_is);
            prop_assert_eq!(content(&message), &content_is[..]);
            let mut cursor = std::io::Cursor::new(&message[..]);
            let (header, announced) = FrameHeader::parse(&mut cursor).unwrap().unwrap();
            prop_assert_eq!((header.opcode, header.is_final, header.mask), (OpCode::Data(Data::Binary), true, None));
            prop_assert_eq!((announced, cursor.position() as usize + length), (length as u64, message.len()));
        }
    }

    #[test]
    fn what_may_not_be_said_is_refused_from_its_first_bytes() {
        for first_bytes in [
            &[0x82, 0x81][..],               // binary
            &[0x01, 0x81],                   // the first of several pieces
            &[0x80, 0x81],                   // a further piece
            &[0x89, 0x01],                   // not masked
            &[0xc9, 0x81],                   // reserved bits
            &[0x89, 0xfe],                   // a ping that is larger than pings may be
            &[0x81, 0xff],                   // a text of more than 64 KiB
            &[0x81, 0xfe, 0x04, 0x01],       // and one of 1025 bytes
            &[0x88, 0x81, 0, 0, 0, 0, 3],    // half a close code
            &[0x81, 0x81, 0, 0, 0, 0, 0xff], // text that is none
        ] {
            assert_eq!(read(&mut first_bytes.to_vec()), Err(Refused), "{first_bytes:x?}");
        }
        let mut text = client(OpCode::Data(Data::Text), &[b'x'; TEXT_BYTES_MAX], 0x0102_0304);
        assert_eq!(text.len(), INPUT_BYTES_MAX);
        assert_eq!(read(&mut text), Ok(Some((Input::Text, INPUT_BYTES_MAX))));
    }

    #[test]
    fn a_close_carries_its_code_and_as_much_of_the_reason_as_fits() {
        assert_eq!(close(None, "said to nobody")[..], [0x88, 0]);
        assert_eq!(close(Some(4000), "")[..], [0x88, 2, 0x0f, 0xa0]);
        let long = close(Some(1012), &"é".repeat(100));
        assert_eq!((long.len(), std::str::from_utf8(&long[4..]).unwrap().len()), (2 + 124, 122));
        let mut reply = client(OpCode::Control(Control::Close), &u16::from(CloseCode::Restart).to_be_bytes(), 9);
        assert_eq!(read(&mut reply), Ok(Some((Input::Close(Some(1012)), 8))));
        assert_eq!(read(&mut client(OpCode::Control(Control::Close), &[], 9)), Ok(Some((Input::Close(None), 6))));
    }
}
