//! How consignments stand. What is out when the cut-off has come has returned: the clock says so, and no row.

use fullhouse_protocol::consign::{Consignment, SeatConsigned};
use sqlx::{PgConnection, PgPool};
use uuid::Uuid;

/// The latest are listed.
const LISTED_MAX: i64 = 500;

/// Those of an event, the latest first.
pub async fn list(pool: &PgPool, event_id: i64) -> sqlx::Result<Vec<Consignment>> {
    read(&mut *pool.acquire().await?, None, Some(event_id)).await
}

pub(super) async fn one(db: &mut PgConnection, id: Uuid) -> sqlx::Result<Option<Consignment>> {
    Ok(read(db, Some(id), None).await?.pop())
}

async fn read(db: &mut PgConnection, id: Option<Uuid>, event_id: Option<i64>) -> sqlx::Result<Vec<Consignment>> {
    sqlx::query_as!(
        Consignment,
        r#"select c.id as consignment_id, c.event_id, c.partner_id, p.code as partner_code, p.name as partner_name, c.until,
                  c.note, c.made_by, c.made_at, s.open as "open!", s.sold as "sold!", s.returned as "returned!"
           from consignment c join partner p on p.id = c.partner_id cross join (select db_clock() as now) k
           cross join lateral (
               select coalesce(array_agg(seat_no order by seat_no) filter (where state = 'out' and c.until > k.now), '{}') as open,
                      coalesce(array_agg(seat_no order by seat_no) filter (where state = 'sold'), '{}') as sold,
                      coalesce(array_agg(seat_no order by seat_no)
                               filter (where state = 'returned' or (state = 'out' and c.until <= k.now)), '{}') as returned
               from consignment_seat where consignment_id = c.id) s
           where ($1::uuid is null or c.id = $1) and ($2::bigint is null or c.event_id = $2)
           order by c.made_at desc, c.id limit $3"#,
        id,
        event_id,
        LISTED_MAX
    )
    .fetch_all(db)
    .await
}

/// Whose the seats of a hold are, if a partner has them to sell.
pub async fn of_hold(pool: &PgPool, hold_id: Uuid) -> sqlx::Result<Option<SeatConsigned>> {
    sqlx::query_as!(
        SeatConsigned,
        "select c.id as consignment_id, p.name as partner_name, c.until, c.note
         from consignment c join partner p on p.id = c.partner_id where c.hold_id = $1",
        hold_id
    )
    .fetch_optional(pool)
    .await
}
