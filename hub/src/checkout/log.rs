//! An order's log: what people did to it, and what they wrote beside it. Written in the transaction of what was done.

use chrono::{DateTime, Utc};
use fullhouse_protocol::staff::OrderNote;
use sqlx::{PgConnection, PgPool};
use uuid::Uuid;

use crate::{
    auth::Actor,
    db::{self, Tx},
};

const TEXT_MAX: usize = 2_000;
/// Seats that a note names, so that what follows them is not cut.
const NAMED_MAX: i32 = 8;
/// The latest are shown.
const NOTES_MAX: i64 = 500;

/// Writes into the log; a longer text is cut. `verb`: see `order_note_verb_known`.
pub async fn note(
    db: &mut PgConnection,
    order_id: Uuid,
    verb: &str,
    text: &str,
    actor: &str,
    now: DateTime<Utc>,
) -> sqlx::Result<()> {
    let text: String = text.chars().take(TEXT_MAX).collect();
    sqlx::query!(
        "insert into order_note (order_id, verb, text, actor, created_at) values ($1, $2, $3, $4, $5)",
        order_id,
        verb,
        text,
        actor,
        now
    )
    .execute(db)
    .await?;
    Ok(())
}

/// Seats as people call them, with commas between; of many the first ones, and how many more there are.
pub async fn named(db: &mut PgConnection, event_id: i64, seat_nos: &[i32]) -> sqlx::Result<String> {
    sqlx::query_scalar!(r#"select coalesce(seat_names($1, $2, $3), '') as "names!""#, event_id, seat_nos, NAMED_MAX)
        .fetch_one(db)
        .await
}

/// A person writes beside an order. False: there is no such order.
pub async fn write(pool: PgPool, order_id: Uuid, text: String, actor: Actor) -> sqlx::Result<bool> {
    db::write(async move {
        let mut tx = pool.begin().await?;
        actor.acts(&mut tx).await?;
        let known = write_in(&mut tx, order_id, &text, actor.name()).await?;
        tx.commit().await?;
        Ok(known)
    })
    .await
}

async fn write_in(tx: &mut Tx, order_id: Uuid, text: &str, actor: &str) -> sqlx::Result<bool> {
    let text: String = text.chars().take(TEXT_MAX).collect();
    let written = sqlx::query!(
        r#"insert into order_note (order_id, verb, text, actor, created_at)
           select id, 'note', $2, $3, db_clock() from "order" where id = $1"#,
        order_id,
        text,
        actor
    )
    .execute(&mut **tx)
    .await?;
    Ok(written.rows_affected() == 1)
}

/// The log, the oldest first.
pub async fn read(pool: &PgPool, order_id: Uuid) -> sqlx::Result<Vec<OrderNote>> {
    let mut notes = sqlx::query_as!(
        OrderNote,
        "select verb, text, actor, created_at from order_note where order_id = $1 order by id desc limit $2",
        order_id,
        NOTES_MAX
    )
    .fetch_all(pool)
    .await?;
    notes.reverse();
    Ok(notes)
}
