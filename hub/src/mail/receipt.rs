//! What was paid, for what beside the seats, and what went back: the lines of a mail that are about money.

use sqlx::PgConnection;
use uuid::Uuid;

use crate::{catalog::event::tax, currency, words::Language};

/// Fees, the total with the tax in it, and the card: a line each, as they stand under the seats. None of them
/// if nothing was to be paid.
pub(super) async fn receipt(
    db: &mut PgConnection,
    language: Language,
    currency: &str,
    order_id: Uuid,
) -> sqlx::Result<Vec<String>> {
    let order = sqlx::query!(r#"select total_minor, tax_name from "order" where id = $1"#, order_id)
        .fetch_one(&mut *db)
        .await?;
    if order.total_minor == 0 {
        return Ok(Vec::new());
    }
    let lines = sqlx::query!(
        r#"select amount_minor, tax_minor, tax_milli_percent, fee_code is not null as "fee!" from order_line
           where order_id = $1 and state in ('sold', 'void') order by id"#,
        order_id
    )
    .fetch_all(&mut *db)
    .await?;
    let mut said = Vec::new();
    let fees: i64 = lines.iter().filter(|l| l.fee).map(|l| l.amount_minor).sum();
    if fees > 0 {
        said.push(format!("{}: {}", language.say("mail.fees"), currency::amount(currency, fees)));
    }
    let mut total = format!("{}: {}", language.say("mail.total"), currency::amount(currency, order.total_minor));
    if let Some(tax) = lines.first().and_then(|l| tax::shown(order.tax_name, l.tax_milli_percent)) {
        let amount = currency::amount(currency, lines.iter().filter_map(|l| l.tax_minor).sum());
        let blanks = [("amount", amount.as_str()), ("name", tax.name.as_str()), ("percent", tax.percent.as_str())];
        total.push_str(&language.fill("mail.tax_included", &blanks));
    }
    said.push(total);
    let cards = sqlx::query!(
        r#"select amount_minor, card_brand as "brand!", card_last4 as "last4!" from attempt
           where order_id = $1 and state = 'captured' and card_brand is not null and card_last4 is not null"#,
        order_id
    )
    .fetch_all(db)
    .await?;
    for card in cards {
        let amount = currency::amount(currency, card.amount_minor);
        let blanks = [("amount", amount.as_str()), ("brand", &brand_name(&card.brand)), ("last4", &card.last4)];
        said.push(language.fill("mail.paid_by_card", &blanks));
    }
    Ok(said)
}

/// As people write it: `visa` is Visa.
fn brand_name(brand: &str) -> String {
    match brand {
        "amex" => "American Express".to_owned(),
        "jcb" => "JCB".to_owned(),
        "unionpay" => "UnionPay".to_owned(),
        other => {
            let mut letters = other.chars();
            letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
        }
    }
}

/// What is said of the money of an event that is called off, and how much of it goes back.
pub(super) enum CalledOff {
    /// Nobody had paid yet, or payment was let go.
    NeverPaid,
    /// Tickets that cost nothing, or were a gift.
    Free,
    GoesBack(i64),
    /// It does not go back by itself: staff see to it.
    SeenTo,
}

impl CalledOff {
    pub(super) async fn of(db: &mut PgConnection, order_id: Uuid) -> sqlx::Result<Self> {
        let back = sqlx::query!(
            r#"select o.confirmed_at is not null as "sold!",
                      exists (select from tender t where t.order_id = o.id and t.kind not in ('comp', 'voucher') and t.amount_minor > 0) as "paid!",
                      coalesce(sum(r.amount_minor) filter (where r.state <> 'failed' and r.kind not in ('comp', 'voucher')), 0)::bigint as "amount!",
                      coalesce(bool_or(r.state = 'failed' and r.replaced_by is null), false) as "failed!"
               from "order" o left join event_cancellation_order c on c.order_id = o.id
               left join refund r on r.request_id = c.request_id
               where o.id = $1 group by o.id"#,
            order_id
        )
        .fetch_one(db)
        .await?;
        Ok(match back {
            b if b.failed => Self::SeenTo,
            b if b.amount > 0 => Self::GoesBack(b.amount),
            b if !b.sold => Self::NeverPaid,
            b if !b.paid => Self::Free,
            _ => Self::SeenTo, // paid, and given back before, or not yet
        })
    }

    /// The text that says so.
    pub(super) fn text(&self) -> &'static str {
        match self {
            Self::NeverPaid => "mail.event_cancelled_unpaid.text",
            Self::Free => "mail.event_cancelled_free.text",
            Self::GoesBack(_) => "mail.event_cancelled.text",
            Self::SeenTo => "mail.event_cancelled_seen_to.text",
        }
    }
}
