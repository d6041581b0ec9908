//! The draw: who stands where in a line, so that anybody can check it. Pure; `protocol/DRAW.md` has the bytes.
//!
//! Invariants
//! - A place is a function of the secret, the entries, the public value and the number: a draw that is run twice,
//!   after a crash, or by another hub gives the same places.
//! - What decides is fixed before it can be known: the secret by the commitment before the first entry, the entries
//!   by the root before the public value exists. Who keeps the secret can therefore choose nothing.
//! - Every entry has the same chance of every place. When it was made counts for nothing.

use aes::Aes256;
use ctr::{
    Ctr128BE,
    cipher::{KeyIvInit, StreamCipher},
};
use sha2::{Digest, Sha256};

pub type Hash = [u8; 32];

const COMMITMENT: &[u8] = b"fullhouse draw commitment v1\n";
const SEED: &[u8] = b"fullhouse draw seed v1\n";
/// RFC 6962: what is hashed at the bottom and what above it begin differently, so that neither passes for the other.
const LEAF: u8 = 0;
const NODE: u8 = 1;

/// What a draw is bound to before anybody joins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Terms<'a> {
    pub event_id: i64,
    /// From 1: a draw that is made anew has a commitment of its own.
    pub draw_no: u32,
    /// Where the public value will come from, if there is one: such a draw is *verifiable*, any other *committed*.
    pub public: Option<Public<'a>>,
}

/// A value that nobody can know when the entries are fixed: of a beacon, a lottery, a market.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Public<'a> {
    pub source: &'a str,
    pub round: &'a str,
}

impl Terms<'_> {
    /// What is published before the first entry. Without a public value its source and round are empty.
    pub fn commitment(&self, secret: &Hash) -> Hash {
        let public = self.public.unwrap_or(Public { source: "", round: "" });
        let mut hasher = Sha256::new_with_prefix(COMMITMENT);
        hasher.update(self.event_id.to_be_bytes());
        hasher.update(self.draw_no.to_be_bytes());
        hasher.update(secret);
        for text in [public.source, public.round] {
            update_counted(&mut hasher, text.as_bytes());
        }
        hasher.finalize().into()
    }
}

fn update_counted(hasher: &mut Sha256, bytes: &[u8]) {
    let length = u32::try_from(bytes.len()).expect("texts and values of a draw are short");
    hasher.update(length.to_be_bytes());
    hasher.update(bytes);
}

/// What stands for an entry among the leaves. The key is chance and known to its owner: leaves name nobody.
pub fn leaf(event_id: i64, number: u64, entry_key: &[u8; 16]) -> Hash {
    let mut hasher = Sha256::new_with_prefix([LEAF]);
    hasher.update(event_id.to_be_bytes());
    hasher.update(number.to_be_bytes());
    hasher.update(entry_key);
    hasher.finalize().into()
}

fn node(left: &Hash, right: &Hash) -> Hash {
    let mut bytes = [NODE; 65];
    bytes[1..33].copy_from_slice(left);
    bytes[33..].copy_from_slice(right);
    Sha256::digest(bytes).into()
}

/// All entries of a draw under one hash, as RFC 6962 builds it: a leaf without a partner goes up unchanged.
///
/// Keeps every level, 64 bytes an entry, so that a path is read and not computed.
#[derive(Debug, Clone)]
pub struct Tree {
    /// The leaves first; the last level has one hash, or none if nobody entered.
    levels: Vec<Vec<Hash>>,
}

impl Tree {
    /// Of the leaves of numbers 0, 1, 2…
    pub fn new(leaves: Vec<Hash>) -> Self {
        let mut levels = vec![leaves];
        while let Some(below) = levels.last().filter(|level| level.len() > 1) {
            let above = below.chunks(2).map(|pair| match pair {
                [left, right] => node(left, right),
                alone => alone[0],
            });
            levels.push(above.collect());
        }
        Self { levels }
    }

    pub fn leaves(&self) -> &[Hash] {
        &self.levels[0]
    }

    /// Of no leaves: the hash of nothing.
    pub fn root(&self) -> Hash {
        let top = self.levels.last().expect("there is a level, if an empty one");
        top.first().copied().unwrap_or_else(|| Sha256::digest([]).into())
    }

    /// What proves, with its leaf, that a number is under the root; `None` beyond the last number.
    pub fn path(&self, number: u32) -> Option<Vec<Hash>> {
        let mut at = number as usize;
        self.leaves().get(at)?;
        let mut path = Vec::with_capacity(self.levels.len());
        for level in &self.levels {
            path.extend(level.get(at ^ 1));
            at /= 2;
        }
        Some(path)
    }
}

/// Whether a path leads from a leaf, as the entry of `number` among `count`, to the root.
pub fn proves(root: &Hash, count: u32, number: u32, leaf: &Hash, path: &[Hash]) -> bool {
    if number >= count {
        return false;
    }
    let mut path = path.iter();
    let (mut at, mut last) = (number, count - 1);
    let mut hash = *leaf;
    while last > 0 {
        if at % 2 == 1 || at < last {
            let Some(beside) = path.next() else { return false };
            hash = if at % 2 == 1 { node(beside, &hash) } else { node(&hash, beside) };
        }
        (at, last) = (at / 2, last / 2);
    }
    path.next().is_none() && hash == *root
}

/// What the places follow from. A committed draw has no public value.
pub fn seed(secret: &Hash, root: &Hash, public_value: Option<&[u8]>) -> Hash {
    let mut hasher = Sha256::new_with_prefix(SEED);
    hasher.update(secret);
    hasher.update(root);
    update_counted(&mut hasher, public_value.unwrap_or_default());
    hasher.finalize().into()
}

/// The place of each number, from 0: a shuffle from the top (Fisher and Yates) whose chance is AES in counter mode.
/// 4 bytes an entry.
pub fn places(seed: &Hash, count: u32) -> Vec<u32> {
    let mut places: Vec<u32> = (0..count).collect();
    let mut chance = Chance::new(seed);
    for last in (1..count).rev() {
        places.swap(last as usize, chance.up_to(last) as usize);
    }
    places
}

/// Numbers from the key stream of AES-256-CTR, 32 bits at a time, little-endian.
struct Chance {
    cipher: Ctr128BE<Aes256>,
    stream: [u8; 512],
    used: usize,
}

impl Chance {
    fn new(seed: &Hash) -> Self {
        let cipher = Ctr128BE::new(seed.into(), &[0; 16].into());
        Self { cipher, stream: [0; 512], used: 512 }
    }

    fn next(&mut self) -> u32 {
        if self.used == self.stream.len() {
            self.stream.fill(0);
            self.cipher.apply_keystream(&mut self.stream);
            self.used = 0;
        }
        let bytes = self.stream[self.used..].first_chunk().expect("the stream is a whole number of words");
        self.used += 4;
        u32::from_le_bytes(*bytes)
    }

    /// From 0 to `last`, each equally likely: words above the largest multiple of `last + 1` are passed over.
    fn up_to(&mut self, last: u32) -> u32 {
        let bound = u64::from(last) + 1;
        let fair = (1 << 32) / bound * bound;
        loop {
            let word = u64::from(self.next());
            if word < fair {
                return (word % bound) as u32;
            }
        }
    }
}

/// What a hub publishes of a draw that is over. Its leaves come beside it.
#[derive(Debug, Clone, Copy)]
pub struct Published<'a> {
    pub terms: Terms<'a>,
    pub commitment: Hash,
    pub count: u32,
    pub root: Hash,
    pub public_value: Option<&'a [u8]>,
    pub secret: Hash,
}

/// Why a draw is not what its hub says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    #[error("the commitment is not that of this secret, event, draw and public source")]
    Commitment,
    #[error("there are not as many leaves as the draw counts entries")]
    Count,
    #[error("the leaves do not have this root")]
    Root,
    #[error("a public value was announced, and the draw has none")]
    ValueMissing,
    #[error("the draw has a public value that was not announced")]
    ValueNotAnnounced,
}

/// Recomputes a draw from what is published: the place of every number, or what is wrong. Whether the public value is
/// what its source gave is for whoever checks to compare.
pub fn check(draw: &Published, leaves: Vec<Hash>) -> Result<Vec<u32>, Fault> {
    if draw.terms.commitment(&draw.secret) != draw.commitment {
        return Err(Fault::Commitment);
    }
    match (draw.terms.public, draw.public_value) {
        (Some(_), None) => return Err(Fault::ValueMissing),
        (None, Some(_)) => return Err(Fault::ValueNotAnnounced),
        (Some(_), Some(_)) | (None, None) => {}
    }
    if leaves.len() != draw.count as usize {
        return Err(Fault::Count);
    }
    if Tree::new(leaves).root() != draw.root {
        return Err(Fault::Root);
    }
    Ok(places(&seed(&draw.secret, &draw.root, draw.public_value), draw.count))
}

#[cfg(test)]
mod golden;
#[cfg(test)]
mod tests;
