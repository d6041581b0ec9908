//! The code on a ticket: signed, so that a door can check it without a network.
//!
//! Layout before encoding, 93 bytes: version 1, key id u16, ticket id 16 bytes (all of them chance),
//! event u64 (its low 6 bytes), seat u32 — then Ed25519 over all of it. Encoded in base32 without
//! padding: upper-case letters and 2 to 7, which is QR's dense alphabet and survives a scanner that
//! is set to another keyboard better than anything with case or punctuation.

use data_encoding::BASE32_NOPAD;
use ed25519_dalek::{SIGNATURE_LENGTH, Signature, Signer, SigningKey, VerifyingKey};
use uuid::Uuid;

const VERSION: u8 = 1;
const CLAIM_BYTES: usize = 1 + 2 + 16 + 6 + 4;
const CODE_BYTES: usize = CLAIM_BYTES + SIGNATURE_LENGTH;

/// What a code says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Claim {
    pub key_id: u16,
    pub ticket_id: Uuid,
    /// Below 2^48.
    pub event_id: i64,
    pub seat_no: i32,
}

#[derive(Debug, Clone, Copy, thiserror::Error, PartialEq, Eq)]
pub enum CodeError {
    #[error("this is not a ticket's code")]
    NotACode,
    #[error("the code was signed with a key that is not known here")]
    KeyUnknown,
    #[error("the signature does not match")]
    Forged,
}

/// Signs a claim. The same claim and key give the same code.
pub fn sign(claim: &Claim, key: &SigningKey) -> String {
    let mut bytes = Vec::with_capacity(CODE_BYTES);
    bytes.push(VERSION);
    bytes.extend_from_slice(&claim.key_id.to_be_bytes());
    bytes.extend_from_slice(claim.ticket_id.as_bytes());
    bytes.extend_from_slice(&claim.event_id.to_be_bytes()[2..]);
    bytes.extend_from_slice(&claim.seat_no.to_be_bytes());
    let signature = key.sign(&bytes);
    bytes.extend_from_slice(&signature.to_bytes());
    BASE32_NOPAD.encode(&bytes)
}

/// Checks a code against the public halves that a door knows. CapsLock and stray spaces do no harm.
/// Says only that the code is genuine: whether the ticket is still valid is another question.
pub fn verify<'k>(code: &str, key: impl FnOnce(u16) -> Option<&'k VerifyingKey>) -> Result<Claim, CodeError> {
    if code.len() > 2 * CODE_BYTES {
        return Err(CodeError::NotACode);
    }
    let clean: String =
        code.chars().filter(|c| !c.is_whitespace() && *c != '-').map(|c| c.to_ascii_uppercase()).collect();
    let bytes = BASE32_NOPAD.decode(clean.as_bytes()).map_err(|_| CodeError::NotACode)?;
    let bytes: [u8; CODE_BYTES] = bytes.try_into().map_err(|_| CodeError::NotACode)?;
    let (claimed, signature) = bytes.split_at(CLAIM_BYTES);
    if claimed[0] != VERSION {
        return Err(CodeError::NotACode);
    }
    let claim = read(claimed);
    let key = key(claim.key_id).ok_or(CodeError::KeyUnknown)?;
    let signature = Signature::from_slice(signature).map_err(|_| CodeError::NotACode)?;
    key.verify_strict(claimed, &signature).map_err(|_| CodeError::Forged)?;
    Ok(claim)
}

fn read(bytes: &[u8]) -> Claim {
    let number = |from: usize, to: usize| bytes[from..to].iter().fold(0u64, |n, b| n << 8 | u64::from(*b));
    let mut ticket = [0; 16];
    ticket.copy_from_slice(&bytes[3..19]);
    Claim {
        key_id: number(1, 3) as u16,
        ticket_id: Uuid::from_bytes(ticket),
        event_id: number(19, 25) as i64,
        seat_no: number(25, 29) as i32,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn key() -> SigningKey {
        SigningKey::from_bytes(&[7; 32])
    }

    #[test]
    fn a_code_is_short_enough_for_a_small_square_and_has_a_safe_alphabet() {
        let claim = Claim { key_id: 1, ticket_id: Uuid::from_u128(9), event_id: 42, seat_no: 61_999 };
        let code = sign(&claim, &key());
        assert_eq!(code.len(), 149);
        assert!(code.bytes().all(|b| b.is_ascii_uppercase() || (b'2'..=b'7').contains(&b)));
        let public = key().verifying_key();
        assert_eq!(verify(&code.to_lowercase(), |_| Some(&public)), Ok(claim));
        assert_eq!(verify(&code, |_| None), Err(CodeError::KeyUnknown));
        assert_eq!(verify("HELLO", |_| Some(&public)), Err(CodeError::NotACode));
        assert_eq!(verify(&"A".repeat(10_000), |_| Some(&public)), Err(CodeError::NotACode));
        let other = SigningKey::from_bytes(&[8; 32]).verifying_key();
        assert_eq!(verify(&code, |_| Some(&other)), Err(CodeError::Forged));
    }

    proptest! {
        #[test]
        fn what_was_signed_is_read_back(key_id: u16, id: u128, event_id in 1i64..(1 << 48), seat_no in 0i32..200_000) {
            let claim = Claim { key_id, ticket_id: Uuid::from_u128(id), event_id, seat_no };
            let public = key().verifying_key();
            prop_assert_eq!(verify(&sign(&claim, &key()), |_| Some(&public)), Ok(claim));
        }

        #[test]
        fn a_single_changed_letter_is_noticed(at in 0usize..149, letter in 0usize..32) {
            let claim = Claim { key_id: 1, ticket_id: Uuid::from_u128(3), event_id: 42, seat_no: 5 };
            let code = sign(&claim, &key());
            let mut changed = code.clone().into_bytes();
            changed[at] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"[letter];
            let changed = String::from_utf8(changed).unwrap();
            prop_assume!(changed != code);
            let public = key().verifying_key();
            prop_assert!(verify(&changed, |id| (id == 1).then_some(&public)).is_err());
        }
    }
}
