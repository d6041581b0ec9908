//! The waiting room: what everybody is shown of a line, and what somebody who stands in it asks for.
//!
//! Numbers and places count from 0 here; people read them from 1.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

/// Where a line stands. Of several, the one that matters most to who waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum LineState {
    /// Joining is not possible yet.
    Soon,
    /// Whoever joins now takes part in the draw; when makes no difference.
    Joining,
    /// Who joined is fixed; the draw is to come. Whoever joins now stands behind.
    Closed,
    /// Places are known, and the line is called.
    Open,
    /// Nobody is called, by the operator's word.
    Paused,
    /// Nothing is left at the moment; places are kept.
    SoldOut,
    /// The sale has ended.
    Over,
}

impl LineState {
    /// As it is stored and spoken.
    pub fn name(self) -> &'static str {
        match self {
            LineState::Soon => "soon",
            LineState::Joining => "joining",
            LineState::Closed => "closed",
            LineState::Open => "open",
            LineState::Paused => "paused",
            LineState::SoldOut => "sold_out",
            LineState::Over => "over",
        }
    }
}

/// What everybody who waits is shown: the same for all of them, so it is made once. What concerns one
/// of them alone (their number, their place) they know already.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Line {
    pub event_id: i64,
    /// Rises with every change: the frame's number.
    pub revision: i64,
    pub state: LineState,
    pub joins_at: DateTime<Utc>,
    /// Whoever joined before this is drawn.
    pub closes_at: DateTime<Utc>,
    /// The event's on-sale: from here on the line is called.
    pub opens_at: DateTime<Utc>,
    /// Entries so far: numbers 0 to `joined - 1` were given out.
    pub joined: i64,
    /// Numbers below this are drawn; above, the place is the number. Null until it is fixed.
    #[schema(required)]
    pub drawn_count: Option<i64>,
    /// All places below this may come in. It only rises.
    pub called_through: i64,
    pub called_last_minute: i64,
    pub called_last_5_minutes: i64,
    /// People a minute that are to be called, as it is now.
    pub rate_minute: i32,
    /// Why the rate is what it is, in the controller's words.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub rate_reason: String,
    pub inside: i32,
    pub inside_max: i32,
    /// Seats that nobody has or holds, as they were counted last.
    pub seats_left: i32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sold_out_at: Option<DateTime<Utc>>,
    /// When more seats will come.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_batch_at: Option<DateTime<Utc>>,
    /// What the operator says, by language (`en`, `ja`, `ko`); `default` for the others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<BTreeMap<String, String>>,
    pub draw: DrawFacts,
    /// Called and not come for so long: the next are called.
    pub show_s: i32,
    /// So long after the call the entry is still good.
    pub grace_s: i32,
    /// How long a pass is good, and how long it can be renewed.
    pub pass_s: i32,
    pub pass_max_s: i32,
    /// The hub's clock when this was written.
    pub now: DateTime<Utc>,
    /// The hub does not hear from its database: this is how things stood, and places are kept.
    #[serde(default, skip_serializing_if = "is_false")]
    pub database_late: bool,
}

fn is_false(yes: &bool) -> bool {
    !yes
}

/// Whether anybody but the operator had a say in a draw.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum DrawKind {
    /// With a public value that was not known when the entries were fixed: nobody can have chosen the places.
    Verifiable,
    /// Without one: the operator could have tried entries against the secret.
    Committed,
}

/// What a draw has published so far. Bytes are lower hex.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DrawFacts {
    /// From 1; a draw that was given up and done again has the next number.
    pub no: i32,
    pub kind: DrawKind,
    pub commitment: String,
    /// Where the public value comes from, and which of its values it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub round: Option<String>,
    /// Not before this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value_due_at: Option<DateTime<Utc>>,
    /// When the entries were fixed, how many they are, and the root of the tree over them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub closed_at: Option<DateTime<Utc>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entry_count: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub root: Option<String>,
    /// When the root was published: before the public value was due, or the draw takes none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rooted_at: Option<DateTime<Utc>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub public_value: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drawn_at: Option<DateTime<Utc>>,
    /// Once it is revealed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub abandoned_at: Option<DateTime<Utc>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub abandoned_why: Option<String>,
}

/// `GET /api/events/{id}/queue/draws`: all of them, given up or not, the first first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Draws {
    pub event_id: i64,
    pub draws: Vec<DrawFacts>,
}

/// `GET /api/events/{id}/queue/proof/{number}`: that an entry was among the drawn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct InclusionProof {
    pub event_id: i64,
    pub draw_no: i32,
    pub number: i64,
    /// Lower hex, as all that follows.
    pub leaf: String,
    /// Siblings from the leaf up (RFC 6962, 2.1.1).
    pub path: Vec<String>,
    pub root: String,
    pub count: i64,
}

/// What the buyer would like: it waits for them when they get in.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Preferences {
    /// Seats in all, accessible places and companions included.
    #[serde(default)]
    pub party_size: Option<i16>,
    #[serde(default)]
    pub price_level: Option<i16>,
    /// Places for wheelchairs.
    #[serde(default)]
    pub accessible: i16,
    #[serde(default)]
    pub companions: i16,
}

/// `POST /api/events/{id}/queue/entry`. The same account again gets the entry that it has.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct JoinRequest {
    /// The solved challenge, as the widget gives it (base64 of JSON).
    pub challenge: String,
    #[serde(default)]
    pub party_size: Option<i16>,
    #[serde(default)]
    pub price_level: Option<i16>,
    #[serde(default)]
    pub accessible: i16,
    #[serde(default)]
    pub companions: i16,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum EntryState {
    Waiting,
    /// May come in: `POST …/queue/enter`.
    Called,
    /// Has a pass.
    Inside,
    /// Was called and did not come within the grace, or has been inside. Joining again is a new entry at the end.
    Lapsed,
}

/// One's own stand in a line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Entry {
    pub event_id: i64,
    /// In order of joining, from 0. It never changes.
    pub number: i64,
    /// From 0. Null until the draw.
    #[schema(required)]
    pub place: Option<i64>,
    pub state: EntryState,
    /// The signed receipt of the entry; see PROTOCOL.md.
    pub ticket: String,
    /// What the tree's leaf is made of, lower hex: with it anybody finds this entry among the leaves.
    pub entry_key: String,
    pub joined_at: DateTime<Utc>,
    pub called_through: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub called_at: Option<DateTime<Utc>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grace_until: Option<DateTime<Utc>>,
    /// The pass of this session, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pass: Option<Pass>,
    /// Another session of this account has the pass: entering here takes it over.
    #[serde(default, skip_serializing_if = "is_false")]
    pub inside_elsewhere: bool,
    pub preferences: Preferences,
    /// The hub's clock.
    pub now: DateTime<Utc>,
}

/// The right to take seats, for a while: goes into the header `Fullhouse-Pass` of a hold.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Pass {
    pub id: Uuid,
    pub pass: String,
    pub expires_at: DateTime<Utc>,
    pub renewable_until: DateTime<Utc>,
    pub now: DateTime<Utc>,
}

/// An operator's view of a line: what everybody sees, and what they can turn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct StaffLine {
    pub line: Line,
    pub rate_minute_min: i32,
    pub rate_minute_max: i32,
    /// Instead of the controller's.
    #[schema(required)]
    pub rate_fixed: Option<i32>,
    /// Called lately and not here yet.
    pub expected: i32,
    #[schema(required)]
    pub paused_at: Option<DateTime<Utc>>,
    #[schema(required)]
    pub holds_live_max: Option<i32>,
    #[schema(required)]
    pub checkouts_live_max: Option<i32>,
}

/// `PATCH /api/staff/events/{id}/queue`: what is named is changed, the rest stays. Null takes a value away.
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct LinePatch {
    /// For whoever reads the log: 1 to 500 characters.
    pub reason: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none", with = "named")]
    #[schema(value_type = Option<BTreeMap<String, String>>)]
    pub message: Option<Option<BTreeMap<String, String>>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_minute_min: Option<i32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_minute_max: Option<i32>,
    #[serde(default, skip_serializing_if = "Option::is_none", with = "named")]
    #[schema(value_type = Option<i32>)]
    pub rate_fixed: Option<Option<i32>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inside_max: Option<i32>,
    #[serde(default, skip_serializing_if = "Option::is_none", with = "named")]
    #[schema(value_type = Option<i32>)]
    pub holds_live_max: Option<Option<i32>>,
    #[serde(default, skip_serializing_if = "Option::is_none", with = "named")]
    #[schema(value_type = Option<i32>)]
    pub checkouts_live_max: Option<Option<i32>>,
    #[serde(default, skip_serializing_if = "Option::is_none", with = "named")]
    #[schema(value_type = Option<DateTime<Utc>>)]
    pub next_batch_at: Option<Option<DateTime<Utc>>>,
    /// The public value of the draw, lower hex, once it is out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub public_value: Option<String>,
    /// Publishes the secret.
    #[serde(default, skip_serializing_if = "is_false")]
    pub reveal: bool,
    /// Ends this account's time inside.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revoke: Option<Uuid>,
    /// Gives this draw up and begins another, as long as nobody was called.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub redraw: Option<Redraw>,
}

impl LinePatch {
    /// Whether it names anything about how fast people are called, and how many may be inside, hold and pay.
    pub fn turns_the_pace(&self) -> bool {
        let numbers = [self.rate_minute_min, self.rate_minute_max, self.inside_max];
        let bounds = [self.rate_fixed, self.holds_live_max, self.checkouts_live_max];
        numbers.iter().any(Option::is_some) || bounds.iter().any(Option::is_some)
    }
}

/// `POST /api/staff/events/{id}/queue`: gives an event a waiting room. With a source its draw is verifiable.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct LineOpening {
    pub joins_at: DateTime<Utc>,
    /// Not after the event's on-sale.
    pub closes_at: DateTime<Utc>,
    /// People a minute, at least and at most.
    pub rate_minute_min: i32,
    pub rate_minute_max: i32,
    pub inside_max: i32,
    /// Where the public value comes from, which of its values it is, and when it is out: a minute after
    /// `closes_at` or later.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub round: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value_due_at: Option<DateTime<Utc>>,
}

/// A draw that is done again. With a source it is verifiable.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Redraw {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub round: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value_due_at: Option<DateTime<Utc>>,
}

/// A value that nobody here can choose: where it comes from, which of its values it is, and when it is out. On the wire
/// these are three fields, which are named all or none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublicValue {
    pub source: String,
    pub round: String,
    pub due_at: DateTime<Utc>,
}

/// Some of the three were named, and not all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NamedInPart;

impl PublicValue {
    fn named(
        source: &Option<String>,
        round: &Option<String>,
        due_at: Option<DateTime<Utc>>,
    ) -> Result<Option<Self>, NamedInPart> {
        match (source.clone(), round.clone(), due_at) {
            (None, None, None) => Ok(None),
            (Some(source), Some(round), Some(due_at)) => Ok(Some(Self { source, round, due_at })),
            _ => Err(NamedInPart),
        }
    }
}

impl LineOpening {
    pub fn public(&self) -> Result<Option<PublicValue>, NamedInPart> {
        PublicValue::named(&self.source, &self.round, self.value_due_at)
    }
}

impl Redraw {
    pub fn public(&self) -> Result<Option<PublicValue>, NamedInPart> {
        PublicValue::named(&self.source, &self.round, self.value_due_at)
    }
}

impl From<Option<PublicValue>> for Redraw {
    fn from(public: Option<PublicValue>) -> Self {
        match public {
            None => Self::default(),
            Some(PublicValue { source, round, due_at }) => {
                Self { source: Some(source), round: Some(round), value_due_at: Some(due_at) }
            }
        }
    }
}

/// A field that can be named with null: `Some(None)`.
mod named {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub fn serialize<T: Serialize, S: Serializer>(value: &Option<Option<T>>, to: S) -> Result<S::Ok, S::Error> {
        value.as_ref().and_then(Option::as_ref).serialize(to)
    }

    pub fn deserialize<'de, T: Deserialize<'de>, D: Deserializer<'de>>(from: D) -> Result<Option<Option<T>>, D::Error> {
        Option::<T>::deserialize(from).map(Some)
    }
}

/// One line of the log: who changed what, and why.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct LineChange {
    pub id: i64,
    pub at: DateTime<Utc>,
    pub actor: String,
    pub what: String,
    #[schema(required, value_type = Option<Object>)]
    pub was: Option<serde_json::Value>,
    #[schema(required, value_type = Option<Object>)]
    pub is_now: Option<serde_json::Value>,
    pub reason: String,
}

/// Somebody with a live pass.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct InsidePerson {
    pub account_id: Uuid,
    pub name: String,
    pub email: String,
    pub issued_at: DateTime<Utc>,
    /// Unless they renew it.
    pub expires_at: DateTime<Utc>,
    pub seats_held: i32,
}

/// `GET /api/staff/events/{id}/queue/inside`, by name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct InsideList {
    pub people: Vec<InsidePerson>,
    /// There are others: look for them by name or address.
    pub more: bool,
}

/// `GET /api/staff/events/{id}/queue/changes`, the newest first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct LineChanges {
    pub changes: Vec<LineChange>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn null_takes_away_and_silence_leaves() {
        let patch: LinePatch = serde_json::from_str(r#"{"reason":"r","rate_fixed":null,"inside_max":3}"#).unwrap();
        assert_eq!((patch.rate_fixed, patch.inside_max, patch.holds_live_max), (Some(None), Some(3), None));
        let said = serde_json::to_value(&patch).unwrap();
        assert_eq!(said, serde_json::json!({ "reason": "r", "rate_fixed": null, "inside_max": 3 }));
    }
}
