//! A call, as it is written down before it is made: the address, the key, and the body byte for byte.

use chrono::{DateTime, Utc};
use uuid::Uuid;

use super::money::{self, MoneyError};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Op {
    Create,
    Confirm,
    Get,
    Capture,
    Cancel,
    Refund,
    ListRefunds,
    StopReader,
    /// A page of the provider's books.
    Books,
    /// How a card reader is.
    Reader,
}

impl Op {
    pub fn name(self) -> &'static str {
        match self {
            Op::Create => "create",
            Op::Confirm => "confirm",
            Op::Get => "get",
            Op::Capture => "capture",
            Op::Cancel => "cancel",
            Op::Refund => "refund",
            Op::ListRefunds => "list_refunds",
            Op::StopReader => "stop_reader",
            Op::Books => "books",
            Op::Reader => "reader",
        }
    }

    /// Reads need no key, may be repeated freely, and have a shorter time.
    pub fn is_read(self) -> bool {
        matches!(self, Op::Get | Op::ListRefunds | Op::Books | Op::Reader)
    }
}

/// One of the provider's lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Book {
    Intents,
    Refunds,
    Transactions,
}

impl Book {
    fn name(self) -> &'static str {
        match self {
            Book::Intents => "payment_intents",
            Book::Refunds => "refunds",
            Book::Transactions => "balance_transactions",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    pub op: Op,
    /// Path and query below the provider's address.
    pub path: String,
    /// Belongs to this one call of an attempt, never to an order. None for reads.
    pub idem_key: Option<String>,
    /// Form-encoded; empty for reads.
    pub body: Vec<u8>,
}

/// In place of a payment method's token: a card that will be held to a reader.
pub const CARD_PRESENT: &str = "card_present";

/// The charge is shown in full: whose card paid, in its last four digits.
const SHOW_CHARGE: (&str, &str) = ("expand[]", "latest_charge");

/// What a PaymentIntent is created from.
#[derive(Debug, Clone, Copy)]
pub struct NewIntent<'a> {
    /// Whose it is: several houses may share an account.
    pub installation: Uuid,
    pub attempt_id: Uuid,
    pub order_id: Uuid,
    pub amount_minor: i64,
    /// Upper case.
    pub currency: &'a str,
    /// The provider's token, or [`CARD_PRESENT`].
    pub payment_method: &'a str,
}

/// What is to go back.
#[derive(Debug, Clone, Copy)]
pub struct Back<'a> {
    pub installation: Uuid,
    pub attempt_id: Uuid,
    pub refund_id: Uuid,
    pub pi_id: &'a str,
    /// Its currency and minor units. None: all that is left, in whatever currency it was taken.
    pub amount: Option<(&'a str, i64)>,
}

impl Call {
    /// Creates an intent that is not confirmed: no money moves. `n` counts keys whose stored answer was useless.
    pub fn create(new: NewIntent<'_>, n: i32) -> Result<Self, MoneyError> {
        let NewIntent { installation, attempt_id, order_id, amount_minor, currency, payment_method } = new;
        let amount = money::to_provider(currency, amount_minor)?.to_string();
        let (attempt, order, house) = (attempt_id.to_string(), order_id.to_string(), installation.to_string());
        let currency = currency.to_ascii_lowercase();
        let mut pairs = vec![("amount", amount.as_str()), ("currency", &currency), ("capture_method", "manual")];
        if payment_method == CARD_PRESENT {
            pairs.push(("payment_method_types[0]", CARD_PRESENT)); // the reader confirms, nobody else
        } else {
            pairs.push(("payment_method", payment_method));
            pairs.push(("payment_method_types[0]", "card"));
            // A challenge that is finished after the hold ended can't authorise by itself.
            pairs.push(("confirmation_method", "manual"));
        }
        let named =
            [("metadata[attempt]", attempt.as_str()), ("metadata[order]", &order), ("metadata[installation]", &house)];
        pairs.extend(named);
        let body = form(&pairs);
        Ok(Self::write(Op::Create, "/v1/payment_intents".into(), numbered(attempt_id, "create", n), body))
    }

    /// `n` starts at 1 and counts the confirmations of an attempt.
    pub fn confirm(attempt_id: Uuid, pi_id: &str, n: i32, return_url: &str) -> Self {
        let body = form(&[("return_url", return_url)]);
        let path = format!("/v1/payment_intents/{}/confirm", segment(pi_id));
        Self::write(Op::Confirm, path, format!("{attempt_id}:confirm:{n}"), body)
    }

    /// Has the intent collected at a reader: what a confirmation is where a card is present. Nothing is
    /// authorised by the answer, only by the card.
    pub fn process(attempt_id: Uuid, reader_id: &str, pi_id: &str, n: i32) -> Self {
        let path = format!("/v1/terminal/readers/{}/process_payment_intent", segment(reader_id));
        Self::write(Op::Confirm, path, format!("{attempt_id}:confirm:{n}"), form(&[("payment_intent", pi_id)]))
    }

    /// Tells the reader to collect no more. The card may have won: only the intent says so.
    pub fn stop_reader(attempt_id: Uuid, reader_id: &str, n: i32) -> Self {
        let path = format!("/v1/terminal/readers/{}/cancel_action", segment(reader_id));
        Self::write(Op::StopReader, path, numbered(attempt_id, "stop_reader", n), Vec::new())
    }

    /// How a reader is.
    pub fn reader(reader_id: &str) -> Self {
        let path = format!("/v1/terminal/readers/{}", segment(reader_id));
        Self { op: Op::Reader, path, idem_key: None, body: Vec::new() }
    }

    pub fn capture(attempt_id: Uuid, pi_id: &str, n: i32) -> Self {
        let path = format!("/v1/payment_intents/{}/capture", segment(pi_id));
        Self::write(Op::Capture, path, numbered(attempt_id, "capture", n), form(&[SHOW_CHARGE]))
    }

    pub fn cancel(attempt_id: Uuid, pi_id: &str, n: i32) -> Self {
        let path = format!("/v1/payment_intents/{}/cancel", segment(pi_id));
        Self::write(Op::Cancel, path, numbered(attempt_id, "cancel", n), Vec::new())
    }

    /// Gives back of what was captured. The refund's id is in its key and its metadata; `n` counts keys that a failure
    /// is stored under.
    pub fn refund(back: Back<'_>, n: i32) -> Result<Self, MoneyError> {
        let Back { installation, attempt_id, refund_id, pi_id, amount } = back;
        let amount = match amount {
            Some((currency, minor)) => Some(money::to_provider(currency, minor)?.to_string()),
            None => None,
        };
        let (refund, attempt, house) = (refund_id.to_string(), attempt_id.to_string(), installation.to_string());
        let mut pairs = vec![("payment_intent", pi_id)];
        pairs.extend(amount.as_deref().map(|amount| ("amount", amount)));
        pairs.extend([
            ("metadata[refund]", refund.as_str()),
            ("metadata[attempt]", &attempt),
            ("metadata[installation]", &house),
        ]);
        let key = numbered(attempt_id, &format!("refund:{refund_id}"), n);
        Ok(Self::write(Op::Refund, "/v1/refunds".into(), key, form(&pairs)))
    }

    pub fn get(pi_id: &str) -> Self {
        let query = form(&[SHOW_CHARGE]);
        let path = format!("/v1/payment_intents/{}?{}", segment(pi_id), String::from_utf8_lossy(&query));
        Self { op: Op::Get, path, idem_key: None, body: Vec::new() }
    }

    pub fn list_refunds(pi_id: &str) -> Self {
        let query = form(&[("payment_intent", pi_id), ("limit", "100")]);
        let path = format!("/v1/refunds?{}", String::from_utf8_lossy(&query));
        Self { op: Op::ListRefunds, path, idem_key: None, body: Vec::new() }
    }

    /// A page of what the provider has written down since then, newest first, after the one of this id.
    pub fn books(book: Book, since: DateTime<Utc>, after: Option<&str>, rows: i64) -> Self {
        let (since, rows) = (since.timestamp().to_string(), rows.to_string());
        let mut query = vec![("created[gte]", since.as_str()), ("limit", rows.as_str())];
        query.extend(after.map(|id| ("starting_after", id)));
        let path = format!("/v1/{}?{}", book.name(), String::from_utf8_lossy(&form(&query)));
        Self { op: Op::Books, path, idem_key: None, body: Vec::new() }
    }

    /// Lets an intent go that no attempt of ours explains. `n` counts how often that was tried.
    pub fn cancel_orphan(pi_id: &str, n: i32) -> Self {
        let path = format!("/v1/payment_intents/{}/cancel", segment(pi_id));
        Self::write(Op::Cancel, path, format!("orphan:{pi_id}:cancel:{n}"), Vec::new())
    }

    /// Gives back all that is left of it. A key that was forgotten does no harm: then nothing is left.
    pub fn refund_orphan(pi_id: &str, n: i32) -> Self {
        let body = form(&[("payment_intent", pi_id), ("metadata[orphan]", pi_id)]);
        Self::write(Op::Refund, "/v1/refunds".into(), format!("orphan:{pi_id}:refund:{n}"), body)
    }

    /// Takes what we believed to have taken already. `n` counts how often that was tried.
    pub fn capture_again(attempt_id: Uuid, pi_id: &str, n: i32) -> Self {
        let path = format!("/v1/payment_intents/{}/capture", segment(pi_id));
        Self::write(Op::Capture, path, format!("{attempt_id}:capture:again:{n}"), form(&[SHOW_CHARGE]))
    }

    fn write(op: Op, path: String, idem_key: String, body: Vec<u8>) -> Self {
        Self { op, path, idem_key: Some(idem_key), body }
    }
}

/// The first key has no number, as the specification writes it; later ones exist only after a stored failure.
fn numbered(attempt_id: Uuid, op: &str, n: i32) -> String {
    if n == 0 { format!("{attempt_id}:{op}") } else { format!("{attempt_id}:{op}:{n}") }
}

fn form(pairs: &[(&str, &str)]) -> Vec<u8> {
    form_urlencoded::Serializer::new(String::new()).extend_pairs(pairs).finish().into_bytes()
}

/// An id of the provider's is letters, digits and underscores; anything else must not change the path.
fn segment(id: &str) -> String {
    form_urlencoded::byte_serialize(id.as_bytes()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_the_same_bytes_each_time() {
        let new = NewIntent {
            installation: Uuid::from_u128(9),
            attempt_id: Uuid::from_u128(1),
            order_id: Uuid::from_u128(2),
            amount_minor: 12_50,
            currency: "EUR",
            payment_method: "pm_card_visa",
        };
        let call = Call::create(new, 0).unwrap();
        assert_eq!(call, Call::create(new, 0).unwrap());
        assert_eq!(call.idem_key.as_deref(), Some("00000000-0000-0000-0000-000000000001:create"));
        let body = String::from_utf8(call.body).unwrap();
        assert!(body.contains("amount=1250&currency=eur&capture_method=manual"), "{body}");
        assert!(body.contains("payment_method=pm_card_visa") && body.contains("confirmation_method=manual"), "{body}");
        assert_ne!(Call::create(new, 1).unwrap().idem_key, call.idem_key);
    }

    #[test]
    fn an_id_cannot_leave_its_place_in_the_path() {
        let path = Call::get("pi_1/../../x?y").path;
        assert_eq!(path, "/v1/payment_intents/pi_1%2F..%2F..%2Fx%3Fy?expand%5B%5D=latest_charge");
    }
}
