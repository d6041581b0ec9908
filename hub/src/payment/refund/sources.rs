//! Where an order's money is, and how much of it can go back which way.
//!
//! Invariants
//! - Money goes back the way it came, and no further.

use uuid::Uuid;

use crate::{db::Tx, payment::order};

/// Where money of the order is: a card's captured attempt, or a tender in the drawer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    pub tender_id: Uuid,
    pub kind: String,
    pub attempt_id: Option<Uuid>,
    pub left_minor: i64,
}

/// Where the money of an order is: its own, then what came with an exchange, the way it came to the order before
/// (which may have been an exchange's as well).
pub async fn sources(tx: &mut Tx, order_id: Uuid) -> sqlx::Result<Vec<Source>> {
    let mut sources = own_sources(tx, order_id).await?;
    let (mut order, mut left, mut credited_to) = (order_id, i64::MAX, None);
    while let Some(credit) = credit_of(tx, order).await? {
        left = left.min(credit.left_minor);
        let tender_id = *credited_to.get_or_insert(credit.tender_id);
        order::lock(tx, credit.from_order).await?;
        for source in own_sources(tx, credit.from_order).await? {
            let part = source.left_minor.min(left);
            left -= part;
            sources.push(Source { tender_id, left_minor: part, ..source });
        }
        order = credit.from_order;
    }
    Ok(sources)
}

/// What an order was paid with by exchange, as far as it did not go back.
struct Credit {
    tender_id: Uuid,
    from_order: Uuid,
    left_minor: i64,
}

async fn credit_of(tx: &mut Tx, order_id: Uuid) -> sqlx::Result<Option<Credit>> {
    sqlx::query_as!(
        Credit,
        r#"select t.id as tender_id, w.from_order,
                  t.amount_minor - coalesce((select sum(r.amount_minor) from refund r
                      where r.tender_id = t.id and r.state <> 'failed'), 0)::bigint as "left_minor!"
           from tender t join order_swap w on w.to_order = t.order_id
           where t.order_id = $1 and t.kind = 'exchange' and t.amount_minor > 0"#,
        order_id
    )
    .fetch_optional(&mut **tx)
    .await
}

/// Cards first, then cash, then what a partner owes, then what was given away. Their rows are locked: two clicks follow one another.
async fn own_sources(tx: &mut Tx, order_id: Uuid) -> sqlx::Result<Vec<Source>> {
    let mut sources = sqlx::query_as!(
        Source,
        r#"select tender_id, 'card' as "kind!", id as "attempt_id?", captured_minor - refunded_minor as "left_minor!"
           from attempt where order_id = $1 and state = 'captured' and installation = installation_id()
           order by created_at, id for no key update"#,
        order_id
    )
    .fetch_all(&mut **tx)
    .await?;
    let others = sqlx::query_as!(
        Source,
        r#"select id as tender_id, kind as "kind!", null::uuid as "attempt_id?", amount_minor - refunded_minor as "left_minor!"
           from tender where order_id = $1 and kind not in ('card', 'exchange') order by kind, created_at, id for no key update"#,
        order_id
    )
    .fetch_all(&mut **tx)
    .await?;
    // Sold for more than the card was made to give: of the rest there is nothing to hand over but the record.
    let never_taken = sqlx::query_as!(
        Source,
        r#"select a.tender_id, 'comp' as "kind!", null::uuid as "attempt_id?",
                  a.amount_minor - a.captured_minor - coalesce((select sum(r.amount_minor) from refund r
                      where r.tender_id = a.tender_id and r.kind = 'comp' and r.state <> 'failed'), 0)::bigint as "left_minor!"
           from attempt a where a.order_id = $1 and a.state = 'captured' and a.captured_minor < a.amount_minor
             and a.installation = installation_id()"#,
        order_id
    )
    .fetch_all(&mut **tx)
    .await?;
    sources.extend(
        ["cash", "account", "voucher", "comp"].iter().flat_map(|k| others.iter().filter(|s| s.kind == *k).cloned()),
    );
    sources.extend(never_taken);
    Ok(sources)
}

#[derive(Debug, PartialEq, Eq)]
pub struct Flow<'a> {
    pub source: &'a Source,
    pub amount_minor: i64,
}

/// Takes an amount from the sources in turn. The error is what there is.
pub fn divide(sources: &[Source], amount_minor: i64) -> Result<Vec<Flow<'_>>, i64> {
    let mut missing = amount_minor;
    let mut flows = Vec::new();
    for source in sources {
        let part = source.left_minor.min(missing);
        if part > 0 {
            flows.push(Flow { source, amount_minor: part });
            missing -= part;
        }
    }
    if missing > 0 { Err(amount_minor - missing) } else { Ok(flows) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(kind: &str, left_minor: i64) -> Source {
        let attempt_id = (kind == "card").then(Uuid::nil);
        Source { tender_id: Uuid::nil(), kind: kind.into(), attempt_id, left_minor }
    }

    #[test]
    fn money_goes_back_the_way_it_came_and_no_further() {
        let sources = [source("card", 5_000), source("card", 0), source("cash", 2_000)];
        let amounts = |asked| divide(&sources, asked).map(|f| f.iter().map(|f| f.amount_minor).collect::<Vec<_>>());
        assert_eq!(amounts(0), Ok(vec![]));
        assert_eq!(amounts(4_999), Ok(vec![4_999]));
        assert_eq!(amounts(6_000), Ok(vec![5_000, 1_000]));
        assert_eq!(amounts(7_001), Err(7_000));
    }
}
