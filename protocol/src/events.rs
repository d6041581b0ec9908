//! What is on: events, their prices and seats, in JSON.
//!
//! Instants are RFC 3339 in UTC. Local times ("2027-03-01T19:00") are in the event's `time_zone`; they
//! are what people plan by. Amounts are minor units of the event's currency, tax included.

use std::borrow::Cow;

use chrono::{DateTime, NaiveDateTime, Utc};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{orders::RefundTerms, seat::Status};

/// `GET /api/events`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct EventList {
    /// The next one first.
    pub events: Vec<EventSummary>,
}

/// Whether seats can be bought. At the window's edges and near the end it may be a second late.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Sale {
    /// It opens at `on_sale_at`.
    Upcoming,
    OnSale,
    /// The house has stopped it for a while.
    Paused,
    /// It ended at `off_sale_at`.
    Closed,
    /// Every seat is sold or blocked; none is merely held.
    SoldOut,
    Cancelled,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct VenueSummary {
    pub id: i64,
    pub slug: String,
    pub name: String,
    pub city: String,
    pub country: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Performer {
    pub id: i64,
    pub slug: String,
    pub name: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct EventSummary {
    pub id: i64,
    pub slug: String,
    pub name: String,
    pub tags: Vec<String>,
    pub venue: VenueSummary,
    /// In the order of the billing.
    pub performers: Vec<Performer>,
    /// IANA name.
    pub time_zone: String,
    pub starts_at: DateTime<Utc>,
    #[serde(with = "local")]
    #[schema(value_type = String, example = "2027-03-01T19:00")]
    pub starts_local: NaiveDateTime,
    #[serde(with = "local_or_null")]
    #[schema(value_type = Option<String>)]
    pub doors_local: Option<NaiveDateTime>,
    pub on_sale_at: DateTime<Utc>,
    #[serde(with = "local")]
    #[schema(value_type = String)]
    pub on_sale_local: NaiveDateTime,
    pub off_sale_at: DateTime<Utc>,
    pub sale: Sale,
    /// ISO 4217
    pub currency: String,
    /// The cheapest price level's first ticket type.
    pub from_minor: Option<i64>,
    /// The fees that an order of one such ticket pays on top: those of a seat and those of an order.
    #[serde(default)]
    pub from_fees_minor: i64,
    /// Seats of the plan, the blocked ones included.
    pub seats_total: i64,
    /// Counted at most a second or so ago; no promise.
    pub seats_available: i64,
    /// Whoever buys comes through a waiting room (`/api/events/{id}/queue`).
    #[serde(default)]
    pub has_line: bool,
    /// The hub's clock, for countdowns.
    pub now: DateTime<Utc>,
}

/// `GET /api/events/{id}`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct EventPage<'a> {
    pub event: EventDetail,
    pub venue: Venue,
    pub performers: Vec<Performer>,
    pub price_levels: Vec<PriceLevel>,
    pub fees: Vec<Fee>,
    pub plan: PlanInfo,
    /// Seats that are for this performance something else than the drawing says, by number. What is here counts.
    #[serde(default)]
    pub seat_traits: Vec<SeatTraits>,
    /// By number, without the retired ones. Left out with `?seats=none`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seats: Option<Vec<SeatInfo<'a>>>,
}

/// What a seat is for one performance.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SeatTraits {
    pub seat_no: i32,
    pub accessible: bool,
    pub companion: bool,
    pub restricted_view: bool,
    /// For whoever buys it: what stands in the way, what is different today.
    pub note: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct EventDetail {
    #[serde(flatten)]
    pub summary: EventSummary,
    pub description: String,
    /// Why it does not take place, if it was called off and somebody has said so for everybody.
    #[serde(default)]
    pub called_off_reason: Option<String>,
    pub doors_at: Option<DateTime<Utc>>,
    /// None: the event says nothing of tax.
    #[serde(default)]
    pub tax: Option<Tax>,
    /// What its buyers may give back by themselves; an order keeps what was said when it was bought. None: nothing.
    #[serde(default)]
    pub refund_terms: Option<RefundTerms>,
    /// Seats a buyer may have, held and bought.
    pub seat_limit: i32,
    pub hold_ttl_s: i32,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Venue {
    #[serde(flatten)]
    pub summary: VenueSummary,
    pub time_zone: String,
}

/// A category of the plan as the event sells it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PriceLevel {
    pub level: i16,
    pub name: String,
    /// What seats in the geometry refer to.
    pub category: String,
    /// `#rrggbb`
    pub color: String,
    /// In the order in which they are offered.
    pub prices: Vec<Price>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Price {
    pub ticket_type: String,
    pub amount_minor: i64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Fee {
    pub code: String,
    /// `seat` or `order`
    pub basis: String,
    pub amount_minor: i64,
}

/// What prices and fees contain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Tax {
    pub name: String,
    /// Of the net price, as it is written: `19`, `8.875`.
    pub percent: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PlanInfo {
    pub hash: String,
    pub revision: i32,
    /// Numbers in use, the retired ones included: what snapshots and frames count by.
    pub seat_count: i32,
    /// Where the drawing is: immutable, so a browser keeps it.
    pub geometry: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SeatInfo<'a> {
    pub seat_no: i32,
    pub guid: Cow<'a, str>,
    pub section: Cow<'a, str>,
    pub row: Cow<'a, str>,
    pub number: Cow<'a, str>,
    pub level: i16,
    pub accessible: bool,
    pub companion: bool,
    pub restricted_view: bool,
    pub standing: bool,
    pub status: Status,
}

/// Minutes are all that people plan by.
const LOCAL: &str = "%Y-%m-%dT%H:%M";

pub(crate) mod local {
    use super::{Deserialize, LOCAL, NaiveDateTime};

    pub fn serialize<S: serde::Serializer>(at: &NaiveDateTime, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&at.format(LOCAL))
    }

    pub fn deserialize<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<NaiveDateTime, D::Error> {
        let text = String::deserialize(deserializer)?;
        NaiveDateTime::parse_from_str(&text, LOCAL).map_err(serde::de::Error::custom)
    }
}

mod local_or_null {
    use super::{Deserialize, LOCAL, NaiveDateTime};

    pub fn serialize<S: serde::Serializer>(at: &Option<NaiveDateTime>, serializer: S) -> Result<S::Ok, S::Error> {
        match at {
            Some(at) => super::local::serialize(at, serializer),
            None => serializer.serialize_none(),
        }
    }

    pub fn deserialize<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<NaiveDateTime>, D::Error> {
        let text = Option::<String>::deserialize(deserializer)?;
        text.map(|text| NaiveDateTime::parse_from_str(&text, LOCAL)).transpose().map_err(serde::de::Error::custom)
    }
}
