//! The PIN that opens a kiosk. It is chosen when the kiosk is enrolled and checked on the machine, so that a kiosk
//! without a network can be left too. Only its hash is kept; wrong tries make the next one wait.

use std::time::Duration;

use argon2::{
    Algorithm, Argon2, Params, PasswordHasher, PasswordVerifier, Version, password_hash::phc::PasswordHash as Phc,
};

use crate::clock::Clock;

/// Digits of a PIN.
pub const DIGITS_MIN: usize = 6;
pub const DIGITS_MAX: usize = 12;
/// Wrong tries in a row before each further one has to wait.
const FREE_TRIES: u32 = 5;
const WAIT_AFTER: Duration = Duration::from_secs(60);

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ExitError {
    #[error("a PIN has 6 to 12 digits")]
    NotAPin,
    #[error("the PIN is wrong")]
    Wrong,
    #[error("too many wrong PINs")]
    Wait { seconds: u64 },
    #[error("no PIN was set when this kiosk was enrolled")]
    None,
    #[error("hashing a PIN failed")]
    Hash,
}

/// The hash to keep of a new PIN.
pub fn hash(pin: &str) -> Result<String, ExitError> {
    if !is_pin(pin) {
        return Err(ExitError::NotAPin);
    }
    let hashed: Phc = argon2().hash_password(pin.as_bytes()).map_err(|_| ExitError::Hash)?;
    Ok(hashed.to_string())
}

/// The door of a kiosk, which counts wrong PINs.
#[derive(Debug, Default)]
pub struct Exit {
    wrong: u32,
    /// No try before this time since boot.
    not_before: Duration,
}

impl Exit {
    /// Whether `pin` opens what `kept` was made of. Takes as long as a hash: off the runtime.
    pub fn open(&mut self, kept: Option<&str>, pin: &str, clock: &dyn Clock) -> Result<(), ExitError> {
        let kept = kept.ok_or(ExitError::None)?;
        let now = clock.now().map_or(Duration::ZERO, |since| since.0);
        if now < self.not_before {
            return Err(ExitError::Wait { seconds: (self.not_before - now).as_secs() + 1 });
        }
        if is_pin(pin) && argon2().verify_password(pin.as_bytes(), kept).is_ok() {
            *self = Self::default();
            return Ok(());
        }
        self.wrong += 1;
        if self.wrong >= FREE_TRIES {
            self.not_before = now + WAIT_AFTER;
        }
        Err(ExitError::Wrong)
    }
}

fn is_pin(pin: &str) -> bool {
    (DIGITS_MIN..=DIGITS_MAX).contains(&pin.len()) && pin.bytes().all(|b| b.is_ascii_digit())
}

/// 19 MiB, two passes, one lane: what OWASP recommends for argon2id.
fn argon2() -> Argon2<'static> {
    let params = Params::new(19_456, 2, 1, None).expect("the constants above are within argon2's bounds");
    Argon2::new(Algorithm::Argon2id, Version::V0x13, params)
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;
    use crate::clock::SinceBoot;

    struct Hand(Mutex<u64>);

    impl Clock for Hand {
        fn now(&self) -> Option<SinceBoot> {
            Some(SinceBoot(Duration::from_secs(*self.0.lock().unwrap())))
        }
    }

    #[test]
    fn the_pin_opens_and_guessing_has_to_wait() {
        let clock = Hand(Mutex::new(1_000));
        let kept = hash("271828").unwrap();
        let mut exit = Exit::default();
        assert_eq!(exit.open(None, "271828", &clock), Err(ExitError::None));
        for _ in 0..FREE_TRIES {
            assert_eq!(exit.open(Some(&kept), "000000", &clock), Err(ExitError::Wrong));
        }
        assert_eq!(
            exit.open(Some(&kept), "271828", &clock),
            Err(ExitError::Wait { seconds: 61 }),
            "even the right one"
        );
        *clock.0.lock().unwrap() += 60;
        assert_eq!(exit.open(Some(&kept), "271829", &clock), Err(ExitError::Wrong));
        assert!(matches!(exit.open(Some(&kept), "271828", &clock), Err(ExitError::Wait { .. })), "one try a minute");
        *clock.0.lock().unwrap() += 60;
        assert_eq!(exit.open(Some(&kept), "271828", &clock), Ok(()));
        assert_eq!(exit.open(Some(&kept), "1", &clock), Err(ExitError::Wrong), "and it counts anew");
    }

    #[test]
    fn a_pin_is_digits() {
        for bad in ["", "12345", "1234567890123", "12345a", "１２３４５６"] {
            assert_eq!(hash(bad), Err(ExitError::NotAPin), "{bad}");
        }
    }
}
