//! What the provider's objects look like to us. Lenient: unknown fields are ignored, missing ones have
//! defaults, a status that we have never heard of is kept as `Other` and treated as "not known yet".

use std::collections::BTreeMap;

use fullhouse_protocol::terminal::ReaderIs;
use serde::Deserialize;
use serde_json::Value;

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum IntentStatus {
    RequiresPaymentMethod,
    RequiresConfirmation,
    RequiresAction,
    Processing,
    /// Authorised.
    RequiresCapture,
    /// Captured.
    Succeeded,
    Canceled,
    #[serde(untagged)]
    Other(String),
}

#[derive(Debug, Clone, Deserialize)]
pub struct PaymentIntent {
    pub id: String,
    pub status: IntentStatus,
    pub amount: i64,
    #[serde(default)]
    pub amount_capturable: i64,
    #[serde(default)]
    pub amount_received: i64,
    /// Lower case, as the provider writes it.
    pub currency: String,
    #[serde(default)]
    pub livemode: bool,
    #[serde(default, deserialize_with = "null_as_default")]
    pub metadata: BTreeMap<String, String>,
    #[serde(default)]
    pub last_payment_error: Option<Refusal>,
    #[serde(default)]
    next_action: Option<Value>,
    #[serde(default, deserialize_with = "charge")]
    pub latest_charge: Option<Charge>,
    /// Unix seconds.
    #[serde(default)]
    pub created: i64,
}

/// What an intent's money came by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Charge {
    pub id: String,
    /// If the charge is shown in full, and a card paid.
    pub card: Option<Card>,
}

/// All that is ever kept of a card.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Card {
    pub brand: String,
    pub last4: String,
}

impl PaymentIntent {
    /// The challenge that the buyer must meet, if it is one of the kind that a browser can be sent to.
    pub fn action_url(&self) -> Option<&str> {
        self.next_action.as_ref()?.pointer("/redirect_to_url/url")?.as_str()
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RefundStatus {
    Pending,
    RequiresAction,
    Succeeded,
    Failed,
    Canceled,
    #[serde(untagged)]
    Other(String),
}

#[derive(Debug, Clone, Deserialize)]
pub struct Refund {
    pub id: String,
    pub status: RefundStatus,
    pub amount: i64,
    pub currency: String,
    #[serde(default, deserialize_with = "id_or_object")]
    pub payment_intent: Option<String>,
    #[serde(default)]
    pub failure_reason: Option<String>,
    #[serde(default, deserialize_with = "null_as_default")]
    pub metadata: BTreeMap<String, String>,
    /// Unix seconds.
    #[serde(default)]
    pub created: i64,
}

/// Money that moved, in the currency of settlement.
#[derive(Debug, Clone, Deserialize)]
pub struct BalanceTransaction {
    pub id: String,
    #[serde(default, rename = "type", deserialize_with = "null_as_default")]
    pub kind: String,
    pub amount: i64,
    #[serde(default)]
    pub fee: i64,
    #[serde(default)]
    pub net: i64,
    pub currency: String,
    /// What moved it: a charge, a refund, ...
    #[serde(default, deserialize_with = "id_or_object")]
    pub source: Option<String>,
    /// Unix seconds.
    #[serde(default)]
    pub created: i64,
}

/// A card reader. What its action says is a hint; the intent is the truth.
#[derive(Debug, Clone, Deserialize)]
pub struct Reader {
    pub id: String,
    /// `online`, `offline`, or nothing.
    #[serde(default, deserialize_with = "null_as_default")]
    pub status: String,
    #[serde(default)]
    pub action: Option<ReaderAction>,
}

impl Reader {
    /// As people are told. A word that we have never heard of is not known.
    pub fn state(&self) -> ReaderIs {
        let collects = self.action.as_ref().is_some_and(|action| action.status == "in_progress");
        match ReaderIs::read(&self.status) {
            ReaderIs::Online if collects => ReaderIs::Busy,
            is => is,
        }
    }
}

#[derive(Debug, Clone, Deserialize)]
pub struct ReaderAction {
    #[serde(default, deserialize_with = "null_as_default")]
    pub status: String,
    #[serde(default, deserialize_with = "null_as_default")]
    pub failure_code: String,
}

/// A page of a list. A row that can't be read does not hide the others.
#[derive(Debug, Clone, Deserialize)]
pub struct Page {
    pub data: Vec<Value>,
    #[serde(default)]
    pub has_more: bool,
}

/// Why the provider said no. `type`, `code` and `decline_code` are its own words.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub struct Refusal {
    #[serde(default, rename = "type", deserialize_with = "null_as_default")]
    pub kind: String,
    #[serde(default, deserialize_with = "null_as_default")]
    pub code: String,
    #[serde(default, deserialize_with = "null_as_default")]
    pub decline_code: String,
    #[serde(default, deserialize_with = "null_as_default")]
    pub message: String,
}

impl Refusal {
    /// The most telling of its words, for the buyer's page to look up.
    pub fn reason(&self) -> &str {
        [&self.decline_code, &self.code, &self.kind].into_iter().find(|s| !s.is_empty()).map_or("unknown", |s| s)
    }
}

impl Refusal {
    /// Our key is the trouble, whatever the status says.
    pub fn is_about_our_key(&self) -> bool {
        let codes = ["api_key_expired", "platform_api_key_expired", "secret_key_required"];
        codes.contains(&self.code.as_str()) || self.kind == "authentication_error"
    }
}

#[derive(Deserialize)]
pub(super) struct ErrorBody {
    #[serde(default)]
    pub error: Refusal,
}

/// The id of another object, which some show in full: then the id in it.
fn id_or_object<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    Ok(match Option::<Value>::deserialize(deserializer)? {
        Some(Value::String(id)) => Some(id),
        Some(object) => object.get("id").and_then(Value::as_str).map(str::to_owned),
        None => None,
    })
}

/// A charge's id, or all of it. What is not a brand and four digits is not kept.
fn charge<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Charge>, D::Error> {
    let value = Option::<Value>::deserialize(deserializer)?.unwrap_or_default();
    let Some(id) = value.as_str().or_else(|| value.get("id")?.as_str()) else { return Ok(None) };
    let card = || {
        let details = value.get("payment_method_details")?;
        let card = details.get(details.get("type")?.as_str()?)?;
        let (brand, last4) = (card.get("brand")?.as_str()?, card.get("last4")?.as_str()?);
        let sound = (1..=32).contains(&brand.len()) && last4.len() == 4 && last4.bytes().all(|b| b.is_ascii_digit());
        sound.then(|| Card { brand: brand.to_owned(), last4: last4.to_owned() })
    };
    Ok(Some(Charge { id: id.to_owned(), card: card() }))
}

fn null_as_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: serde::Deserializer<'de>,
    T: Default + Deserialize<'de>,
{
    Ok(Option::<T>::deserialize(deserializer)?.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reader_is_what_its_provider_says_in_words_that_we_know() {
        let state = |reader: Value| serde_json::from_value::<Reader>(reader).unwrap().state();
        let collects = |status: &str| serde_json::json!({"type": "process_payment_intent", "status": status});
        for (reader, is) in [
            (serde_json::json!({"id": "tmr_1", "status": "online", "action": null}), ReaderIs::Online),
            (serde_json::json!({"id": "tmr_1", "status": "online", "action": collects("in_progress")}), ReaderIs::Busy),
            (serde_json::json!({"id": "tmr_1", "status": "online", "action": collects("failed")}), ReaderIs::Online),
            (
                serde_json::json!({"id": "tmr_1", "status": "offline", "action": collects("in_progress")}),
                ReaderIs::Offline,
            ),
            (serde_json::json!({"id": "tmr_1", "status": "updating", "battery": 3}), ReaderIs::Unknown),
            (serde_json::json!({"id": "tmr_1", "status": null}), ReaderIs::Unknown),
            (serde_json::json!({"id": "tmr_1"}), ReaderIs::Unknown),
        ] {
            assert_eq!(state(reader.clone()), is, "{reader}");
        }
    }

    #[test]
    fn what_we_do_not_know_does_not_break_what_we_do() {
        let intent: PaymentIntent = serde_json::from_value(serde_json::json!({
            "id": "pi_1", "object": "payment_intent", "status": "requires_moonlight", "amount": 5, "currency": "eur",
            "metadata": null, "last_payment_error": {"code": "card_declined", "decline_code": null, "doc_url": "x"},
            "next_action": {"type": "redirect_to_url", "redirect_to_url": {"url": "https://x/3ds", "return_url": null}},
        }))
        .unwrap();
        assert_eq!(intent.status, IntentStatus::Other("requires_moonlight".into()));
        assert_eq!(intent.last_payment_error.as_ref().unwrap().reason(), "card_declined");
        assert_eq!(intent.action_url(), Some("https://x/3ds"));
    }

    #[test]
    fn of_a_card_its_brand_and_four_digits_are_read_and_nothing_else() {
        let card = |charge: Value| {
            let intent = serde_json::json!({"id": "pi_1", "status": "succeeded", "amount": 5, "currency": "eur", "latest_charge": charge});
            serde_json::from_value::<PaymentIntent>(intent).unwrap().latest_charge
        };
        let shown = |kind: &str, last4: &str| {
            card(
                serde_json::json!({"id": "ch_1", "payment_method_details": {"type": kind, kind: {"brand": "visa", "last4": last4, "exp_year": 2030}}}),
            )
        };
        let visa = Some(Card { brand: "visa".into(), last4: "4242".into() });
        assert_eq!(shown("card", "4242").unwrap().card, visa);
        assert_eq!(shown("card_present", "4242").unwrap().card, visa);
        assert_eq!(shown("card", "4242424242424242").unwrap().card, None, "never a whole number");
        assert_eq!(card(serde_json::json!("ch_1")), Some(Charge { id: "ch_1".into(), card: None }));
        assert_eq!(card(Value::Null), None);
    }

    #[test]
    fn another_object_is_named_or_shown() {
        let refund = |intent: Value| {
            let refund = serde_json::json!({"id": "re_1", "status": "pending", "amount": 5, "currency": "eur", "payment_intent": intent});
            serde_json::from_value::<Refund>(refund).unwrap().payment_intent
        };
        for intent in [serde_json::json!("pi_1"), serde_json::json!({"id": "pi_1", "object": "payment_intent"})] {
            assert_eq!(refund(intent).as_deref(), Some("pi_1"));
        }
        assert_eq!((refund(Value::Null), refund(serde_json::json!(7))), (None, None));
    }
}
