//! The signature on a webhook: `t=<unix seconds>,v1=<hex>[,v1=<hex>…]` over `t "." body` (HMAC-SHA256).
//!
//! Invariants
//! - Computed over the bytes that arrived, compared in constant time.
//! - Any v1 under any of our secrets will do (two are valid while one is rotated); v0 counts for nothing.
//! - Too old and too far ahead are both refused: a clock may be wrong in either direction.

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use subtle::{Choice, ConstantTimeEq};

use crate::config::Secret;

/// How far the signature's time may be from ours, either way.
pub const TOLERANCE_S: i64 = 300;
/// A header with more than this in it is not the provider's.
const PARTS_MAX: usize = 32;

#[derive(Debug, Clone, Copy, thiserror::Error, PartialEq, Eq)]
pub enum SignatureError {
    #[error("there is no signature of the kind that we know")]
    Malformed,
    #[error("the signature is from another time")]
    Stale,
    #[error("the signature does not match")]
    Mismatch,
}

/// The header for `body`, signed with each of `secrets` at `t` (unix seconds).
pub fn sign(secrets: &[Secret], t: i64, body: &[u8]) -> String {
    let t = t.to_string();
    let mut header = format!("t={t}");
    for secret in secrets {
        header.push_str(",v1=");
        header.push_str(&data_encoding::HEXLOWER.encode(&mac(secret, t.as_bytes(), body)));
    }
    header
}

/// Checks `header` against the raw body. `now` is in unix seconds.
pub fn verify(header: &str, body: &[u8], secrets: &[Secret], now: i64) -> Result<(), SignatureError> {
    let (mut t, mut given) = (None, Vec::new());
    for part in header.split(',').take(PARTS_MAX) {
        match part.trim().split_once('=') {
            Some(("t", value)) => t = Some(value),
            Some(("v1", value)) => given.push(value),
            _ => {}
        }
    }
    let t = t.ok_or(SignatureError::Malformed)?;
    let seconds: i64 = t.parse().map_err(|_| SignatureError::Malformed)?;
    if given.is_empty() {
        return Err(SignatureError::Malformed);
    }
    let mut found = Choice::from(0);
    for secret in secrets.iter().filter(|s| !s.is_empty()) {
        let expected = data_encoding::HEXLOWER.encode(&mac(secret, t.as_bytes(), body));
        for signature in &given {
            found |= expected.as_bytes().ct_eq(signature.as_bytes());
        }
    }
    if !bool::from(found) {
        return Err(SignatureError::Mismatch);
    }
    if now.checked_sub(seconds).is_none_or(|age| age.unsigned_abs() > TOLERANCE_S as u64) {
        return Err(SignatureError::Stale);
    }
    Ok(())
}

fn mac(secret: &Secret, t: &[u8], body: &[u8]) -> [u8; 32] {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret.reveal().as_bytes()).expect("HMAC takes a key of any length");
    mac.update(t);
    mac.update(b".");
    mac.update(body);
    mac.finalize().into_bytes().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    const BODY: &[u8] = br#"{"id":"evt_1"}"#;

    fn secrets(names: &[&str]) -> Vec<Secret> {
        names.iter().map(|n| Secret::new(*n)).collect()
    }

    #[test]
    fn the_value_is_the_one_that_everybody_computes() {
        // printf '1700000000.{"id":"evt_1"}' | openssl dgst -sha256 -hmac whsec_test
        assert_eq!(
            sign(&secrets(&["whsec_test"]), 1_700_000_000, BODY),
            "t=1700000000,v1=c89214b5b5da833daed6f0b8c5bb6bd58cea9022bd80ccc78230f3942d632925"
        );
    }

    #[test]
    fn any_v1_under_any_secret_will_do_while_one_is_rotated() {
        let header = sign(&secrets(&["old", "new"]), 1000, BODY);
        for ours in [&["new"][..], &["old"], &["other", "old"]] {
            assert_eq!(verify(&header, BODY, &secrets(ours), 1000), Ok(()));
        }
        assert_eq!(verify(&header, BODY, &secrets(&["other"]), 1000), Err(SignatureError::Mismatch));
        assert_eq!(verify(&header, BODY, &secrets(&[""]), 1000), Err(SignatureError::Mismatch));
        assert_eq!(verify(&header, b"{}", &secrets(&["new"]), 1000), Err(SignatureError::Mismatch));
    }

    #[test]
    fn another_time_is_refused_in_both_directions() {
        let ours = secrets(&["s"]);
        let header = sign(&ours, 10_000, BODY);
        for (now, expected) in [
            (10_000 + TOLERANCE_S, Ok(())),
            (10_000 - TOLERANCE_S, Ok(())),
            (10_001 + TOLERANCE_S, Err(SignatureError::Stale)),
            (9_999 - TOLERANCE_S, Err(SignatureError::Stale)),
            (i64::MIN, Err(SignatureError::Stale)),
        ] {
            assert_eq!(verify(&header, BODY, &ours, now), expected, "{now}");
        }
    }

    #[test]
    fn what_is_not_a_signature_is_not_one() {
        let ours = secrets(&["s"]);
        for header in ["", "t=1", "v1=ab", "t=x,v1=ab", "t=1,v0=ab", &"t=1,".repeat(10_000)] {
            assert_eq!(verify(header, BODY, &ours, 1), Err(SignatureError::Malformed), "{header:.20}");
        }
        let v0 = sign(&ours, 1, BODY).replace("v1=", "v0=");
        assert_eq!(verify(&format!("{v0},v1=00"), BODY, &ours, 1), Err(SignatureError::Mismatch));
    }
}
