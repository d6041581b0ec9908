//! The bytes of a journal: a head, then frames, each sealed by a checksum that goes on from the frame before.
//!
//! Invariants:
//! - A frame is valid only behind the frame it was written behind: one taken out, put in or moved is found.
//! - A crash leaves a beginning of the last frame, or zeros for what was never written. Only that is a torn tail;
//!   whatever else doesn't add up is damage, wherever it is.
//!
//! Head (36 bytes): `FHJRNL1\n`, terminal (16), first number u64, CRC-32. Frame: `FHJ1`, kind u8, three zeros,
//! number u64, length u32, CRC-32 (of the seal before and these 20 bytes), body, CRC-32 (of that and the body): the
//! frame's seal. Integers are little-endian.

use uuid::Uuid;

pub(crate) const HEAD_BYTES: usize = 36;
pub(crate) const FRAME_HEAD_BYTES: usize = 24;
pub(crate) const BODY_BYTES_MAX: usize = 64 * 1024;
const HEAD_MAGIC: [u8; 8] = *b"FHJRNL1\n";
const FRAME_MAGIC: [u8; 4] = *b"FHJ1";

/// A frame, and the seal that the next one goes on from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Frame {
    pub kind: u8,
    pub number: u64,
    pub body: Vec<u8>,
}

/// What stands at a place of the file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Found {
    Whole {
        frame: Frame,
        seal: u32,
        bytes: usize,
    },
    End,
    /// A write that a crash cut: whoever asked for it was never told that it was kept.
    Torn,
    Damaged,
}

pub(crate) fn head(terminal: Uuid, first: u64) -> ([u8; HEAD_BYTES], u32) {
    let mut bytes = [0; HEAD_BYTES];
    bytes[..8].copy_from_slice(&HEAD_MAGIC);
    bytes[8..24].copy_from_slice(terminal.as_bytes());
    bytes[24..32].copy_from_slice(&first.to_le_bytes());
    let seal = crc32fast::hash(&bytes[..32]);
    bytes[32..].copy_from_slice(&seal.to_le_bytes());
    (bytes, seal)
}

/// Terminal, first number and seal of a head; `None` if it is not one.
pub(crate) fn read_head(bytes: &[u8]) -> Option<(Uuid, u64, u32)> {
    let bytes = bytes.get(..HEAD_BYTES)?;
    let terminal = Uuid::from_slice(&bytes[8..24]).ok()?;
    let first = u64::from_le_bytes(bytes[24..32].try_into().ok()?);
    let (right, seal) = head(terminal, first);
    (bytes == right).then_some((terminal, first, seal))
}

pub(crate) fn write(before: u32, frame: &Frame) -> (Vec<u8>, u32) {
    let length = u32::try_from(frame.body.len()).expect("bodies are bounded by BODY_BYTES_MAX");
    let mut bytes = Vec::with_capacity(FRAME_HEAD_BYTES + frame.body.len() + 4);
    bytes.extend_from_slice(&FRAME_MAGIC);
    bytes.extend_from_slice(&[frame.kind, 0, 0, 0]);
    bytes.extend_from_slice(&frame.number.to_le_bytes());
    bytes.extend_from_slice(&length.to_le_bytes());
    let head = crc(&before.to_le_bytes(), &bytes);
    bytes.extend_from_slice(&head.to_le_bytes());
    bytes.extend_from_slice(&frame.body);
    let seal = crc(&head.to_le_bytes(), &frame.body);
    bytes.extend_from_slice(&seal.to_le_bytes());
    (bytes, seal)
}

pub(crate) fn read(before: u32, rest: &[u8]) -> Found {
    if rest.is_empty() {
        return Found::End;
    }
    if rest.iter().all(|b| *b == 0) {
        return Found::Torn;
    }
    let Some((head, after)) = rest.split_at_checked(FRAME_HEAD_BYTES) else {
        // Too short for a head. What is there must be how one begins.
        let known = rest.len().min(FRAME_MAGIC.len());
        return if unwritten_after(rest, &FRAME_MAGIC[..known]) { Found::Torn } else { Found::Damaged };
    };
    let head_crc = crc(&before.to_le_bytes(), &head[..20]);
    if head[20..] != head_crc.to_le_bytes() {
        // A crash may have kept the head's beginning and nothing behind it; its checksum comes last.
        let nothing_behind = after.iter().chain(&head[20..]).all(|b| *b == 0);
        let begins = unwritten_after(head, &FRAME_MAGIC);
        return if nothing_behind && begins { Found::Torn } else { Found::Damaged };
    }
    let length = u32_at(head, 16) as usize;
    if head[..4] != FRAME_MAGIC || length > BODY_BYTES_MAX {
        return Found::Damaged;
    }
    let Some((body, seal)) = after.get(..length + 4).map(|b| b.split_at(length)) else {
        return Found::Torn;
    };
    let right = crc(&head_crc.to_le_bytes(), body);
    if seal != right.to_le_bytes() {
        let last = after.len() == length + 4;
        return if last && seal == [0; 4] { Found::Torn } else { Found::Damaged };
    }
    let number = u64::from_le_bytes(head[8..16].try_into().expect("eight bytes"));
    let frame = Frame { kind: head[4], number, body: body.to_vec() };
    Found::Whole { frame, seal: right, bytes: FRAME_HEAD_BYTES + length + 4 }
}

/// `bytes` begin as `begin` does, up to a place behind which nothing was written.
fn unwritten_after(bytes: &[u8], begin: &[u8]) -> bool {
    let written = bytes.iter().rposition(|b| *b != 0).map_or(0, |at| at + 1).min(begin.len());
    bytes[..written] == begin[..written]
}

fn crc(before: &[u8], bytes: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(before);
    hasher.update(bytes);
    hasher.finalize()
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}
