//! Text as people compare it: sorted naturally, searched without accents, and told from look-alikes.

use std::{cmp::Ordering, iter::Peekable, str::Chars};

use unicode_normalization::UnicodeNormalization;

/// Natural order: `2` before `10`, whatever the letters around. Labels that count the same (`A1`,
/// `A01`) are told apart by their length and then their letters, so that the order is total.
pub fn natural(a: &str, b: &str) -> Ordering {
    let (mut left, mut right) = (a.chars().peekable(), b.chars().peekable());
    loop {
        let order = match (left.peek().copied(), right.peek().copied()) {
            (None, None) => return a.chars().count().cmp(&b.chars().count()).then_with(|| a.cmp(b)),
            (None, _) => Ordering::Less,
            (_, None) => Ordering::Greater,
            (Some(l), Some(r)) if l.is_ascii_digit() && r.is_ascii_digit() => {
                let (l, r) = (digits(&mut left), digits(&mut right));
                l.len().cmp(&r.len()).then_with(|| l.cmp(&r))
            }
            (Some(l), Some(r)) => {
                left.next();
                right.next();
                l.to_lowercase().cmp(r.to_lowercase())
            }
        };
        if order != Ordering::Equal {
            return order;
        }
    }
}

/// A number of any length, without the zeros in front.
fn digits(chars: &mut Peekable<Chars<'_>>) -> String {
    let mut digits = String::new();
    while let Some(d) = chars.next_if(char::is_ascii_digit) {
        if d != '0' || !digits.is_empty() {
            digits.push(d);
        }
    }
    digits
}

/// Text as it is searched: without case, accents and vowel points, in one width, katakana as
/// hiragana. Marks that make another letter (が, й, ง่) stay.
pub fn folded(text: &str) -> String {
    if text.is_ascii() {
        return text.to_ascii_lowercase();
    }
    let mut folded = String::with_capacity(text.len());
    let mut base = ' ';
    for c in text.nfkd() {
        match c {
            '\u{300}'..='\u{36f}' if !matches!(base, '\u{400}'..='\u{4ff}') => continue, // accents, but not those of й and ї
            '\u{591}'..='\u{5bd}' | '\u{5bf}'..='\u{5c7}' | '\u{64b}'..='\u{65f}' | '\u{670}' => continue,
            _ => base = c,
        }
        match c {
            'ß' | 'ẞ' => folded.push_str("ss"),
            'æ' | 'Æ' => folded.push_str("ae"),
            'œ' | 'Œ' => folded.push_str("oe"),
            'þ' | 'Þ' => folded.push_str("th"),
            'ø' | 'Ø' => folded.push('o'),
            'ł' | 'Ł' => folded.push('l'),
            'đ' | 'Đ' | 'ð' | 'Ð' => folded.push('d'),
            'ı' => folded.push('i'),
            'ς' => folded.push('σ'),
            '\u{30a1}'..='\u{30f6}' => folded.extend(char::from_u32(c as u32 - 0x60)),
            _ => folded.extend(c.to_lowercase()),
        }
    }
    folded.nfc().collect()
}

/// A text without what nobody sees: marks and spaces of no width are left out, any other space is one.
pub fn visible(text: &str) -> String {
    let seen: String = text.chars().filter(|c| !is_unseen(*c)).collect();
    seen.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn is_unseen(c: char) -> bool {
    matches!(c, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
}

/// Two texts with the same skeleton look alike in print: compatibility forms, letters of Cyrillic and
/// Greek that are drawn like Latin ones, case, and spaces that nobody sees.
pub fn skeleton(text: &str) -> String {
    if text.is_ascii() {
        return text.trim().to_ascii_lowercase();
    }
    let flat: String = text
        .nfkc()
        .filter(|c| !is_unseen(*c))
        .map(|c| latin(if c.is_whitespace() { ' ' } else { c }))
        .flat_map(char::to_lowercase)
        .collect();
    flat.trim().to_owned()
}

/// The Latin letter that a Cyrillic or Greek one is drawn like.
fn latin(c: char) -> char {
    const FROM: &str = "АВЕЅІЈКМНОРСТУХавеѕіјкмнорстухΑΒΕΖΗΙΚΜΝΟΡΤΥΧανορυχ‐‑‒–—−";
    const TO: &str = "ABESIJKMHOPCTYXabesijkmhopctyxABEZHIKMNOPTYXavopux------";
    FROM.chars().zip(TO.chars()).find(|(from, _)| *from == c).map_or(c, |(_, to)| to)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn two_comes_before_ten() {
        let mut labels = ["10", "A01", "2", "AA", "A10", "1½", "A1", "1", "a2", "座12", "座2", "É-7", "Z", ""];
        labels.sort_by(|a, b| natural(a, b));
        assert_eq!(labels, ["", "1", "1½", "2", "10", "A1", "A01", "a2", "A10", "AA", "Z", "É-7", "座2", "座12"]);
        assert_eq!(natural("99999999999999999999999", "100000000000000000000000"), Ordering::Less);
    }

    #[test]
    fn a_search_finds_what_people_type() {
        for (typed, written) in [
            ("zurich", "Zürich"),
            ("STRASSE", "Straße"),
            ("lodz", "Łódź"),
            ("みく", "ミク"),
            ("tokyo", "Ｔōkyō"),
            ("ΟΔΟΣ", "οδός"),
            ("서울", "서울 콘서트"),
            ("istanbul", "İstanbul"),
        ] {
            assert!(folded(written).contains(&folded(typed)), "{typed} in {written}: {}", folded(written));
        }
        assert_ne!(folded("が"), folded("か"));
        assert_ne!(folded("й"), folded("и"));
    }

    #[test]
    fn look_alikes_have_one_skeleton() {
        assert_eq!(skeleton("A1"), skeleton("А1")); // the second is Cyrillic
        assert_eq!(skeleton("A-1"), skeleton("a–1\u{a0}"));
        assert_eq!(skeleton("Ａ１"), skeleton("A1"));
        assert_ne!(skeleton("A1"), skeleton("A01"));
        assert_ne!(skeleton("É"), skeleton("E"));
        assert_eq!(skeleton("א\u{200f}1"), skeleton("א1"));
    }

    proptest! {
        #[test]
        fn the_order_is_total(mut labels in proptest::collection::vec("[aA01Б½座]{0,5}", 3..8)) {
            labels.sort_by(|a, b| natural(a, b)); // a sort panics if an order contradicts itself
            for pair in labels.windows(2) {
                prop_assert_eq!(natural(&pair[0], &pair[1]) == Ordering::Equal, pair[0] == pair[1]);
                prop_assert_eq!(natural(&pair[0], &pair[1]), natural(&pair[1], &pair[0]).reverse());
            }
        }

        #[test]
        fn folding_twice_changes_nothing(text in any::<String>()) {
            let once = folded(&text);
            prop_assert_eq!(&folded(&once), &once);
        }
    }
}
