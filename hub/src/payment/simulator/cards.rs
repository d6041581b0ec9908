//! The test cards, by number and by the token that stands for them.

/// What the bank behind a card does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Behaviour {
    Approve,
    Decline(&'static str),
    /// The buyer must meet a challenge; without one, nothing is authorised.
    Challenge,
    /// Approved, after this many milliseconds.
    Slow(u64),
    /// Approved, but the answer never arrives.
    LostAnswer,
}

pub struct Card {
    pub number: &'static str,
    /// A token that tests may use without the form.
    pub token: &'static str,
    /// The key of its label on the card form.
    pub label: &'static str,
    pub behaviour: Behaviour,
}

/// The first is what the form fills in by itself. Numbers that the provider documents mean what they mean there.
pub const CARDS: &[Card] = &[
    Card { number: "4242424242424242", token: "pm_card_visa", label: "success", behaviour: Behaviour::Approve },
    Card {
        number: "4000000000000002",
        token: "pm_card_chargeDeclined",
        label: "decline",
        behaviour: Behaviour::Decline("generic_decline"),
    },
    Card {
        number: "4000000000009995",
        token: "pm_card_chargeDeclinedInsufficientFunds",
        label: "funds",
        behaviour: Behaviour::Decline("insufficient_funds"),
    },
    Card {
        number: "4000000000003220",
        token: "pm_card_threeDSecure2Required",
        label: "challenge",
        behaviour: Behaviour::Challenge,
    },
    Card { number: "4000002760003184", token: "pm_sim_slow", label: "slow", behaviour: Behaviour::Slow(6_000) },
    Card { number: "4000002500001001", token: "pm_sim_lostAnswer", label: "lost", behaviour: Behaviour::LostAnswer },
    Card {
        number: "4000002500003155",
        token: "pm_card_authenticationRequired",
        label: "challenge_setup",
        behaviour: Behaviour::Challenge,
    },
    Card {
        number: "4000000000000069",
        token: "pm_card_chargeDeclinedExpiredCard",
        label: "expired",
        behaviour: Behaviour::Decline("expired_card"),
    },
];

pub fn by_number(number: &str) -> Option<&'static Card> {
    CARDS.iter().find(|c| c.number == number)
}

pub fn by_token(token: &str) -> Option<&'static Card> {
    CARDS.iter().find(|c| c.token == token)
}

/// Any number that adds up is a card that is approved.
pub fn luhn(number: &str) -> bool {
    let digits: Option<Vec<u32>> = number.chars().map(|c| c.to_digit(10)).collect();
    let Some(digits) = digits.filter(|d| (12..=19).contains(&d.len())) else { return false };
    let sum: u32 =
        digits.iter().rev().enumerate().map(|(i, d)| if i % 2 == 0 { *d } else { d * 2 / 10 + d * 2 % 10 }).sum();
    sum.is_multiple_of(10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_card_adds_up() {
        for card in CARDS {
            assert!(luhn(card.number), "{}", card.number);
            assert_eq!(by_number(card.number).unwrap().token, card.token);
        }
        assert!(!luhn("4242424242424241") && !luhn("") && !luhn("42"));
    }
}
