//! The venue that a plan belongs to: what is said of it, what is wrong with that, and its row.

use sqlx::PgConnection;

use super::expect_rows;
use crate::clock;

/// What is given replaces what is known of the venue.
#[derive(Debug, Clone, Default)]
pub struct VenueSpec {
    pub slug: String,
    pub name: Option<String>,
    pub city: Option<String>,
    pub country: Option<String>,
    /// Needed for a venue that is new.
    pub time_zone: Option<String>,
    /// Whether a venue that has events may get another time zone.
    pub may_change_zone: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum VenueFault {
    #[error("the slug {0:?} is not made of small letters, digits and single hyphens")]
    SlugInvalid(String),
    #[error("the venue {0:?} is new: its time zone is needed")]
    ZoneMissing(String),
    #[error(transparent)]
    Zone(clock::LocalTimeError),
    #[error("a country is two capital letters of ISO 3166, such as DE; {0:?} is none")]
    CountryInvalid(String),
    /// A venue whose name or city is not known says nothing of it.
    #[error("the {0} is blank: leave it out to keep what is known")]
    Blank(&'static str),
    #[error(
        "the venue {slug:?} has events ({events}) and is in {from}: --change-time-zone makes it {to}, for events \
         made from then on"
    )]
    ZoneInUse { slug: String, events: i64, from: String, to: String },
}

/// A venue that was looked at.
#[derive(Debug)]
pub struct Checked {
    pub faults: Vec<VenueFault>,
    /// What can be made of it without its faults, so that a plan is looked at all the same; none if nothing can.
    pub sound: Option<VenueSpec>,
}

/// Small letters, digits and single hyphens between them, 80 at most: what an address is made of.
pub fn is_slug(text: &str) -> bool {
    text.len() <= 80
        && text.split('-').all(|p| !p.is_empty() && p.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit()))
}

/// Of ISO 3166-1, two letters each.
#[rustfmt::skip]
const COUNTRIES: &str = "\
    AD AE AF AG AI AL AM AO AQ AR AS AT AU AW AX AZ BA BB BD BE BF BG BH BI BJ BL BM BN BO BQ BR BS BT BV BW BY BZ CA CC \
    CD CF CG CH CI CK CL CM CN CO CR CU CV CW CX CY CZ DE DJ DK DM DO DZ EC EE EG EH ER ES ET FI FJ FK FM FO FR GA GB GD \
    GE GF GG GH GI GL GM GN GP GQ GR GS GT GU GW GY HK HM HN HR HT HU ID IE IL IM IN IO IQ IR IS IT JE JM JO JP KE KG KH \
    KI KM KN KP KR KW KY KZ LA LB LC LI LK LR LS LT LU LV LY MA MC MD ME MF MG MH MK ML MM MN MO MP MQ MR MS MT MU MV MW \
    MX MY MZ NA NC NE NF NG NI NL NO NP NR NU NZ OM PA PE PF PG PH PK PL PM PN PR PS PT PW PY QA RE RO RS RU RW SA SB SC \
    SD SE SG SH SI SJ SK SL SM SN SO SR SS ST SV SX SY SZ TC TD TF TG TH TJ TK TL TM TN TO TR TT TV TW TZ UA UG UM US UY \
    UZ VA VC VE VG VI VN VU WF WS YE YT ZA ZM ZW";

fn is_country(code: &str) -> bool {
    COUNTRIES.split_ascii_whitespace().any(|known| known == code)
}

/// Says all that is wrong with what is said of a venue. Changes nothing, and keeps its row from being changed.
pub async fn check(tx: &mut PgConnection, venue: &VenueSpec) -> sqlx::Result<Checked> {
    let mut faults = Vec::new();
    let mut sound = venue.clone();
    if let Some(country) = sound.country.take_if(|c| !is_country(c)) {
        faults.push(VenueFault::CountryInvalid(country));
    }
    for (field, text) in [("name", &mut sound.name), ("city", &mut sound.city)] {
        if text.take_if(|text| text.trim().is_empty()).is_some() {
            faults.push(VenueFault::Blank(field));
        }
    }
    if let Some(zone) = &venue.time_zone
        && let Err(e) = clock::zone(zone)
    {
        sound.time_zone = None;
        faults.push(VenueFault::Zone(e));
    }
    if !is_slug(&venue.slug) {
        faults.push(VenueFault::SlugInvalid(venue.slug.clone()));
        return Ok(Checked { faults, sound: None });
    }
    let known = sqlx::query!("select id, time_zone from venue where slug = $1 for update", venue.slug)
        .fetch_optional(&mut *tx)
        .await?;
    let Some(known) = known else {
        if venue.time_zone.is_none() {
            faults.push(VenueFault::ZoneMissing(venue.slug.clone()));
        }
        let sound = Some(sound).filter(|sound| sound.time_zone.is_some());
        return Ok(Checked { faults, sound });
    };
    if let Some(to) = sound.time_zone.take_if(|zone| *zone != known.time_zone) {
        let events = if venue.may_change_zone { 0 } else { events_at(tx, known.id).await? };
        if events > 0 {
            faults.push(VenueFault::ZoneInUse { slug: venue.slug.clone(), events, from: known.time_zone, to });
        } else {
            sound.time_zone = Some(to);
        }
    }
    Ok(Checked { faults, sound: Some(sound) })
}

async fn events_at(tx: &mut PgConnection, venue_id: i64) -> sqlx::Result<i64> {
    sqlx::query_scalar!(
        r#"select count(*) as "events!" from event e
             join plan_revision r on r.id = e.plan_revision_id join plan p on p.id = r.plan_id
            where p.venue_id = $1"#,
        venue_id
    )
    .fetch_one(tx)
    .await
}

/// Makes a venue that was found sound, or changes what is given; says what became of it.
pub(super) async fn upsert(tx: &mut PgConnection, venue: &VenueSpec) -> sqlx::Result<(i64, Vec<String>)> {
    let known =
        sqlx::query!("select id, name, city, country, time_zone from venue where slug = $1 for update", venue.slug)
            .fetch_optional(&mut *tx)
            .await?;
    let Some(known) = known else { return insert(tx, venue).await };
    let fields = [
        ("name", &venue.name, &known.name),
        ("city", &venue.city, &known.city),
        ("country", &venue.country, &known.country),
        ("time zone", &venue.time_zone, &known.time_zone),
    ];
    let changes: Vec<String> = fields
        .into_iter()
        .filter_map(|(field, given, old)| given.as_ref().filter(|given| *given != old).map(|given| (field, old, given)))
        .map(|(field, old, given)| format!("venue {}: {field} {old:?} becomes {given:?}", venue.slug))
        .collect();
    if changes.is_empty() {
        return Ok((known.id, changes));
    }
    let done = sqlx::query!(
        "update venue set name = coalesce($2, name), city = coalesce($3, city), country = coalesce($4, country),
                time_zone = coalesce($5, time_zone)
          where id = $1",
        known.id,
        venue.name,
        venue.city,
        venue.country,
        venue.time_zone,
    )
    .execute(tx)
    .await?;
    expect_rows(done.rows_affected(), 1)?;
    Ok((known.id, changes))
}

async fn insert(tx: &mut PgConnection, venue: &VenueSpec) -> sqlx::Result<(i64, Vec<String>)> {
    let Some(zone) = &venue.time_zone else {
        return Err(sqlx::Error::Protocol("a new venue without a time zone was called sound".into()));
    };
    // Two imports may make one venue at once: the second waits here, and then finds it.
    let id = sqlx::query_scalar!(
        "insert into venue (slug, name, city, country, time_zone)
         values ($1, coalesce($2, $1), coalesce($3, ''), coalesce($4, ''), $5)
         on conflict on constraint venue_slug_once do update set slug = excluded.slug
         returning id",
        venue.slug,
        venue.name,
        venue.city,
        venue.country,
        zone,
    )
    .fetch_one(tx)
    .await?;
    Ok((id, vec![format!("venue {}: new, in {zone}", venue.slug)]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_country_is_one_that_there_is() {
        assert_eq!(COUNTRIES.split_ascii_whitespace().count(), 249);
        assert!(["DE", "JP", "KR", "ZW", "AD"].into_iter().all(is_country));
        assert!(!["ZZ", "de", "D", "", "DE ", "UK"].into_iter().any(is_country));
    }
}
