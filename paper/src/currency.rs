//! Currencies of ISO 4217: their codes, how many digits stand behind the point, and amounts as people write them.
//!
//! Money is a whole number of minor units everywhere; what a provider wants instead is the provider's business.

/// Whether somebody can be charged in it: what countries use, without funds, metals and test codes.
pub fn is_known(code: &str) -> bool {
    CODES.binary_search(&code).is_ok()
}

/// Whether it is not certain in which unit the provider of cards counts it: its own pages disagree (UGX), or ISO 4217
/// has fifths and the provider nothing (MGA). A price that is wrong a hundredfold can't be taken back.
pub fn is_unclear(code: &str) -> bool {
    matches!(code, "UGX" | "MGA")
}

/// Digits after the point (JPY none, EUR two, KWD three).
pub fn exponent(code: &str) -> u32 {
    match code {
        "BIF" | "CLP" | "DJF" | "GNF" | "ISK" | "JPY" | "KMF" | "KRW" | "PYG" | "RWF" | "UGX" | "VND" | "VUV"
        | "XAF" | "XOF" | "XPF" => 0,
        "BHD" | "IQD" | "JOD" | "KWD" | "LYD" | "OMR" | "TND" => 3,
        _ => 2,
    }
}

/// The smallest amount that can be charged, in minor units: cards say three digits with a 0 at the end, and
/// there are no coins of a hundredth forint or Taiwan dollar, nor payouts.
pub fn step(code: &str) -> i64 {
    match code {
        "HUF" | "TWD" => 100,
        c if exponent(c) == 3 => 10,
        _ => 1,
    }
}

/// `EUR 1,234.50`, `JPY 10,000`, `KWD 12.345`: the code, not a sign, since a dollar is not always the same.
pub fn amount(currency: &str, minor: i64) -> String {
    let digits = exponent(currency) as usize;
    let scale = 10_u64.pow(digits as u32);
    let (whole, part) = (minor.unsigned_abs() / scale, minor.unsigned_abs() % scale);
    let whole = whole.to_string();
    let mut grouped = String::new();
    for (at, digit) in whole.chars().enumerate() {
        if at > 0 && (whole.len() - at) % 3 == 0 {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    let sign = if minor < 0 { "−" } else { "" };
    let part = if digits == 0 { String::new() } else { format!(".{part:0digits$}") };
    format!("{currency}\u{a0}{sign}{grouped}{part}")
}

/// Reads an amount as people write it, `1234.5` or `1,234.50`, in minor units. `None`: it is none, or has
/// more digits behind the point than the currency.
pub fn minor(currency: &str, text: &str) -> Option<i64> {
    let digits = exponent(currency) as usize;
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    let whole = whole.replace(',', "");
    let numeric = |s: &str| s.bytes().all(|b| b.is_ascii_digit());
    if whole.is_empty() || !numeric(&whole) || !numeric(part) || part.len() > digits || text.ends_with('.') {
        return None;
    }
    format!("{whole}{part:0<digits$}").parse().ok()
}

#[rustfmt::skip]
const CODES: &[&str] = &[
    "AED", "AFN", "ALL", "AMD", "ANG", "AOA", "ARS", "AUD", "AWG", "AZN", "BAM", "BBD", "BDT", "BGN", "BHD", "BIF",
    "BMD", "BND", "BOB", "BRL", "BSD", "BTN", "BWP", "BYN", "BZD", "CAD", "CDF", "CHF", "CLP", "CNY", "COP", "CRC",
    "CUP", "CVE", "CZK", "DJF", "DKK", "DOP", "DZD", "EGP", "ERN", "ETB", "EUR", "FJD", "FKP", "GBP", "GEL", "GHS",
    "GIP", "GMD", "GNF", "GTQ", "GYD", "HKD", "HNL", "HTG", "HUF", "IDR", "ILS", "INR", "IQD", "IRR", "ISK", "JMD",
    "JOD", "JPY", "KES", "KGS", "KHR", "KMF", "KPW", "KRW", "KWD", "KYD", "KZT", "LAK", "LBP", "LKR", "LRD", "LSL",
    "LYD", "MAD", "MDL", "MGA", "MKD", "MMK", "MNT", "MOP", "MRU", "MUR", "MVR", "MWK", "MXN", "MYR", "MZN", "NAD",
    "NGN", "NIO", "NOK", "NPR", "NZD", "OMR", "PAB", "PEN", "PGK", "PHP", "PKR", "PLN", "PYG", "QAR", "RON", "RSD",
    "RUB", "RWF", "SAR", "SBD", "SCR", "SDG", "SEK", "SGD", "SHP", "SLE", "SOS", "SRD", "SSP", "STN", "SVC", "SYP",
    "SZL", "THB", "TJS", "TMT", "TND", "TOP", "TRY", "TTD", "TWD", "TZS", "UAH", "UGX", "USD", "UYU", "UZS", "VED",
    "VES", "VND", "VUV", "WST", "XAF", "XCD", "XOF", "XPF", "YER", "ZAR", "ZMW", "ZWG",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_sorted_and_those_of_no_country_are_not_among_them() {
        assert!(CODES.is_sorted());
        assert!(is_known("EUR") && is_known("JPY") && is_known("ISK"));
        for code in ["XXX", "XAU", "XTS", "eur", "EURO", ""] {
            assert!(!is_known(code), "{code}");
        }
        assert_eq!((exponent("JPY"), exponent("USD"), exponent("KWD")), (0, 2, 3));
        assert_eq!((step("EUR"), step("KWD"), step("TWD")), (1, 10, 100));
    }

    #[test]
    fn amounts_are_read_as_people_write_them() {
        for (currency, text, minor_units) in [
            ("EUR", "33.33", Some(3333)),
            ("EUR", "33", Some(3300)),
            ("EUR", "1,234.5", Some(123_450)),
            ("JPY", "10000", Some(10_000)),
            ("KWD", "0.125", Some(125)),
            ("EUR", "0", Some(0)),
            ("EUR", "33.333", None),
            ("JPY", "1.0", None),
            ("EUR", "-1", None),
            ("EUR", "1e3", None),
            ("EUR", ".5", None),
            ("EUR", "5.", None),
            ("EUR", "", None),
            ("EUR", "99999999999999999999", None),
        ] {
            assert_eq!(minor(currency, text), minor_units, "{text}");
        }
    }

    #[test]
    fn amounts_have_the_digits_of_their_currency() {
        for (currency, minor, written) in [
            ("EUR", 123_450, "EUR 1,234.50"),
            ("EUR", 5, "EUR 0.05"),
            ("EUR", -500, "EUR −5.00"),
            ("JPY", 10_000, "JPY 10,000"),
            ("KRW", 999, "KRW 999"),
            ("KWD", 12_345, "KWD 12.345"),
            ("USD", 99_999_999, "USD 999,999.99"),
        ] {
            assert_eq!(amount(currency, minor).replace('\u{a0}', " "), written);
        }
    }
}
