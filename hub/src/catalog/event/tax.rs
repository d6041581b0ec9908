//! The tax that an event's prices and fees contain. Prices are gross, as buyers see them; an event that says
//! nothing of tax has pages, orders and mails that say nothing of it either.

use fullhouse_protocol::events::Tax;
use serde::{Deserialize, Serialize};
use sqlx::PgConnection;

/// The rate in thousandths of a percent: 19000 is 19 %.
const MILLI_PERCENT_MAX: f64 = 100_000.0;
const NAME_CHARS_MAX: usize = 40;

/// `tax = { name = "VAT", percent = 19 }`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TaxSpec {
    /// As it is called where it is raised.
    pub name: String,
    /// Of the net price; up to three decimals.
    pub percent: f64,
}

impl TaxSpec {
    pub(super) fn faults(&self) -> Vec<String> {
        let mut faults = Vec::new();
        if self.name.trim().is_empty() || self.name.chars().count() > NAME_CHARS_MAX {
            faults.push(format!("tax.name: 1 to {NAME_CHARS_MAX} characters are needed"));
        }
        let milli = self.percent * 1000.0;
        if !(0.0..=MILLI_PERCENT_MAX).contains(&milli) || (milli - milli.round()).abs() > 1e-6 {
            faults.push("tax.percent: from 0 to 100, with three decimals at most".to_owned());
        }
        faults
    }

    fn milli_percent(&self) -> i32 {
        (self.percent * 1000.0).round() as i32 // within 0 to 100000, see `faults`
    }
}

pub(super) async fn write(tx: &mut PgConnection, event_id: i64, tax: Option<&TaxSpec>) -> sqlx::Result<()> {
    sqlx::query!(
        "update event set tax_name = $2, tax_milli_percent = $3 where id = $1",
        event_id,
        tax.map(|t| t.name.trim()),
        tax.map(TaxSpec::milli_percent)
    )
    .execute(tx)
    .await?;
    Ok(())
}

pub(super) fn spec(name: Option<String>, milli_percent: Option<i32>) -> Option<TaxSpec> {
    Some(TaxSpec { name: name?, percent: f64::from(milli_percent?) / 1000.0 })
}

/// As pages show it.
pub fn shown(name: Option<String>, milli_percent: Option<i32>) -> Option<Tax> {
    let milli_percent = milli_percent?;
    let percent = format!("{}.{:03}", milli_percent / 1000, milli_percent % 1000);
    Some(Tax { name: name?, percent: percent.trim_end_matches('0').trim_end_matches('.').to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_shown_as_people_write_it() {
        for (milli, written) in [(19_000, "19"), (8_875, "8.875"), (7_700, "7.7"), (500, "0.5"), (0, "0")] {
            assert_eq!(shown(Some("VAT".into()), Some(milli)).unwrap().percent, written);
        }
        assert_eq!((shown(None, None), spec(None, None)), (None, None));
    }

    #[test]
    fn a_rate_has_three_decimals_at_most() {
        let faults = |percent| TaxSpec { name: "VAT".into(), percent }.faults().len();
        assert_eq!((faults(8.875), faults(0.0), faults(100.0)), (0, 0, 0));
        assert_eq!((faults(8.8755), faults(-1.0), faults(100.5), faults(f64::NAN)), (1, 1, 1, 1));
        assert_eq!(TaxSpec { name: " ".into(), percent: 19.0 }.faults().len(), 1);
    }
}
