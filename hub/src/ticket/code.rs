//! The code on a ticket: signed, so that a door can check it without a network.
//!
//! `protocol/TICKET.md` describes the bytes for those who build doors.
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

    /// A case of the golden file: its name, the code, and what a reader says.
    fn goldens() -> Vec<(&'static str, String, Result<Claim, CodeError>)> {
        let sign_with = |seed: u8, claim: &Claim| sign(claim, &SigningKey::from_bytes(&[seed; 32]));
        let chance = Uuid::from_u128(0x0123_4567_89ab_cdef_fedc_ba98_7654_3210);
        let first = Claim { key_id: 1, ticket_id: chance, event_id: 42, seat_no: 61_999 };
        let last = Claim { key_id: u16::MAX, ticket_id: Uuid::max(), event_id: (1 << 48) - 1, seat_no: i32::MAX };
        let good = sign_with(7, &first);
        let spaced = good
            .to_lowercase()
            .as_bytes()
            .chunks(8)
            .map(|c| std::str::from_utf8(c).unwrap().to_owned())
            .collect::<Vec<_>>()
            .join("- ");
        let changed = format!("{}{}{}", &good[..60], if &good[60..61] == "A" { 'B' } else { 'A' }, &good[61..]);
        let mut version = BASE32_NOPAD.decode(good.as_bytes()).unwrap();
        version[0] = 2;
        let letters = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
        let last_letter = letters.iter().position(|l| *l == good.as_bytes()[148]).unwrap();
        let loose = format!("{}{}", &good[..148], char::from(letters[last_letter | 1]));
        vec![
            ("a ticket", good.clone(), Ok(first)),
            ("the largest numbers, another key", sign_with(8, &last), Ok(last)),
            ("typed by hand", spaced, Ok(first)),
            ("letters changed", changed, Err(CodeError::Forged)),
            ("signed with another key than it says", sign_with(8, &first), Err(CodeError::Forged)),
            ("a key that is not in the list", sign_with(9, &Claim { key_id: 3, ..first }), Err(CodeError::KeyUnknown)),
            ("another version", BASE32_NOPAD.encode(&version), Err(CodeError::NotACode)),
            ("cut short", good[..148].to_owned(), Err(CodeError::NotACode)),
            ("loose bits at the end", loose, Err(CodeError::NotACode)),
            ("something else", "HELLO WORLD".to_owned(), Err(CodeError::NotACode)),
            ("nothing", String::new(), Err(CodeError::NotACode)),
        ]
    }

    #[test]
    fn the_golden_codes_say_what_they_said() {
        let keys = [(1u16, SigningKey::from_bytes(&[7; 32])), (u16::MAX, SigningKey::from_bytes(&[8; 32]))];
        let public: Vec<(u16, VerifyingKey)> = keys.iter().map(|(id, key)| (*id, key.verifying_key())).collect();
        let error = |e: CodeError| match e {
            CodeError::NotACode => "not_a_code",
            CodeError::KeyUnknown => "key_unknown",
            CodeError::Forged => "forged",
        };
        let cases: Vec<serde_json::Value> = goldens()
            .into_iter()
            .map(|(name, code, expected)| {
                let read = verify(&code, |id| public.iter().find(|(known, _)| *known == id).map(|(_, key)| key));
                assert_eq!(read, expected, "{name}");
                match read {
                    Ok(c) => {
                        serde_json::json!({ "name": name, "code": code, "key_id": c.key_id, "ticket_id": c.ticket_id,
                                                 "event_id": c.event_id, "seat_no": c.seat_no })
                    }
                    Err(e) => serde_json::json!({ "name": name, "code": code, "error": error(e) }),
                }
            })
            .collect();
        let listed: Vec<serde_json::Value> = public
            .iter()
            .map(|(id, key)| serde_json::json!({ "id": id, "public": data_encoding::HEXLOWER.encode(key.as_bytes()) }))
            .collect();
        let text = format!("{:#}\n", serde_json::json!({ "keys": listed, "codes": cases }));
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../protocol/golden-tickets/codes.json");
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, &text).unwrap();
        }
        assert_eq!(std::fs::read_to_string(path).unwrap(), text, "a change of this file is a change of every ticket");
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
