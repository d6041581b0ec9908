//! Currencies: how many digits their smallest unit has, and amounts as people write them.

/// Digits after the point, by ISO 4217.
pub fn exponent(currency: &str) -> u32 {
    match currency {
        "BIF" | "CLP" | "DJF" | "GNF" | "ISK" | "JPY" | "KMF" | "KRW" | "PYG" | "RWF" | "UGX" | "VND" | "VUV"
        | "XAF" | "XOF" | "XPF" => 0,
        "BHD" | "IQD" | "JOD" | "KWD" | "LYD" | "OMR" | "TND" => 3,
        _ => 2,
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

#[cfg(test)]
mod tests {
    use super::*;

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
