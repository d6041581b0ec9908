//! Minor units, ours and the provider's.
//!
//! Ours are those of ISO 4217 (JPY none, EUR hundredths, KWD thousandths). The provider's are the same
//! but for a few currencies, and a currency about which its own pages disagree is refused until
//! somebody has looked at a real account: a price that is wrong a hundredfold can't be taken back.

pub use crate::currency::exponent;
use crate::currency::{is_known, is_unclear};

#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum MoneyError {
    #[error("{0} is not a currency code")]
    NotACurrency(String),
    #[error("the provider's unit of {0} is not certain; check it on an account before selling in it")]
    UnitUnclear(String),
    #[error("{1} of {0} can't be said in the provider's units")]
    NotRepresentable(String, i64),
    #[error("{0} is not an amount")]
    OutOfRange(i64),
}

/// How many of the provider's units one of our minor units is.
fn scale(currency: &str) -> Result<i64, MoneyError> {
    match currency {
        c if !is_known(c) => Err(MoneyError::NotACurrency(c.to_owned())),
        "ISK" => Ok(100), // sent as if it had hundredths, which must be 00
        c if is_unclear(c) => Err(MoneyError::UnitUnclear(c.to_owned())),
        _ => Ok(1),
    }
}

/// The smallest amount that can be charged or given back. An error: it can't be sold in.
pub fn step(currency: &str) -> Result<i64, MoneyError> {
    scale(currency)?;
    Ok(crate::currency::step(currency))
}

/// Our minor units of `currency` (upper case) as the provider wants them.
pub fn to_provider(currency: &str, minor: i64) -> Result<i64, MoneyError> {
    if minor < 0 {
        return Err(MoneyError::OutOfRange(minor));
    }
    if minor % step(currency)? != 0 {
        return Err(MoneyError::NotRepresentable(currency.to_owned(), minor));
    }
    minor.checked_mul(scale(currency)?).ok_or(MoneyError::OutOfRange(minor))
}

/// What the provider says, in our minor units.
pub fn from_provider(currency: &str, amount: i64) -> Result<i64, MoneyError> {
    let scale = scale(currency)?;
    if amount < 0 {
        return Err(MoneyError::OutOfRange(amount));
    }
    if amount % scale != 0 {
        return Err(MoneyError::NotRepresentable(currency.to_owned(), amount));
    }
    Ok(amount / scale)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn currencies_keep_their_exponent() {
        assert_eq!(to_provider("JPY", 10_000), Ok(10_000));
        assert_eq!(to_provider("EUR", 1_999), Ok(1_999));
        assert_eq!(to_provider("KWD", 12_340), Ok(12_340));
        assert_eq!(to_provider("ISK", 5), Ok(500));
        assert_eq!(from_provider("ISK", 500), Ok(5));
        assert_eq!(to_provider("HUF", 450_000), Ok(450_000));
        assert_eq!((step("EUR"), step("KWD"), step("TWD")), (Ok(1), Ok(10), Ok(100)));
    }

    #[test]
    fn what_cannot_be_said_exactly_is_refused() {
        assert!(matches!(to_provider("KWD", 12_345), Err(MoneyError::NotRepresentable(..))));
        assert!(matches!(to_provider("HUF", 450_050), Err(MoneyError::NotRepresentable(..))));
        assert!(matches!(to_provider("MGA", 500), Err(MoneyError::UnitUnclear(_))));
        assert!(matches!(to_provider("XXX", 500), Err(MoneyError::NotACurrency(_))));
        assert!(matches!(from_provider("ISK", 501), Err(MoneyError::NotRepresentable(..))));
        assert!(matches!(to_provider("UGX", 5), Err(MoneyError::UnitUnclear(_))));
        assert!(matches!(to_provider("eur", 5), Err(MoneyError::NotACurrency(_))));
        assert!(matches!(to_provider("EUR", -1), Err(MoneyError::OutOfRange(-1))));
        assert!(matches!(to_provider("ISK", i64::MAX), Err(MoneyError::OutOfRange(_))));
    }

    proptest::proptest! {
        #[test]
        fn there_and_back_changes_nothing(minor in 0i64..99_999_999, currency in "EUR|JPY|KRW|ISK|GBP|CLP") {
            let there = to_provider(&currency, minor).unwrap();
            assert_eq!(from_provider(&currency, there), Ok(minor));
        }
    }
}
