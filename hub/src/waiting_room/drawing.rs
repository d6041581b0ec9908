//! A draw goes on: the entries are fixed, their root is published, the public value is taken, the secret told.
//!
//! Invariants
//! - Each step is one small transaction under the line's row lock, and does nothing if it was done: two hubs,
//!   or one that comes back, change nothing (`draw_is_final` says so too).
//! - The root is written before a public value is taken: who could try entries knows no value, and who
//!   knows the value can't change the entries. A root that came too late for its value takes none (`draw_root_before_value`).

use chrono::{DateTime, Utc};
use sqlx::{PgConnection, PgPool};

use super::{
    bounds::{self, DRAWS_MAX, Faults, Wanted},
    open::{self, PublicValue},
    places::Places,
};
use crate::clock;

/// Fixes the entries. To be called under the line's lock, by whoever is first to see that it is time:
/// also by the joiner who comes too late to be among them.
pub async fn close(db: &mut PgConnection, event_id: i64, now: DateTime<Utc>) -> sqlx::Result<bool> {
    let closed = sqlx::query!(
        "update draw d set closed_at = $2, entry_count = l.next_number
         from line l
         where l.event_id = $1 and d.event_id = l.event_id and d.draw_no = l.draw_no and d.closed_at is null
           and l.closes_at <= $2",
        event_id,
        now
    )
    .execute(&mut *db)
    .await?
    .rows_affected()
        == 1;
    if closed {
        touch(db, event_id, now).await?;
    }
    Ok(closed)
}

/// Everybody is to see the line anew.
pub async fn touch(db: &mut PgConnection, event_id: i64, now: DateTime<Utc>) -> sqlx::Result<()> {
    sqlx::query!("update line set revision = revision + 1, changed_at = $2 where event_id = $1", event_id, now)
        .execute(db)
        .await?;
    Ok(())
}

/// Takes the line's lock; the clock is to be asked after it.
pub async fn lock(db: &mut PgConnection, event_id: i64) -> sqlx::Result<bool> {
    let found = sqlx::query_scalar!("select event_id from line where event_id = $1 for update", event_id)
        .fetch_optional(db)
        .await?;
    Ok(found.is_some())
}

/// Whatever of the draw is due: closing, the root, the shuffle, the reveal.
pub async fn advance(pool: &PgPool, places: &Places, event_id: i64) -> sqlx::Result<()> {
    let Some(row) = sqlx::query!(
        r#"select d.draw_no, d.closed_at, d.root is not null as "rooted!", d.drawn_at, d.revealed_at, d.public_source,
                  d.public_value, l.closes_at, e.on_sale_at, db_clock() as "now!"
           from line l join draw d on d.event_id = l.event_id and d.draw_no = l.draw_no join event e on e.id = l.event_id
           where l.event_id = $1"#,
        event_id
    )
    .fetch_optional(pool)
    .await?
    else {
        return Ok(());
    };
    if row.now < row.closes_at && row.closed_at.is_none() {
        return Ok(());
    }
    if row.closed_at.is_none() {
        let mut tx = pool.begin().await?;
        lock(&mut tx, event_id).await?;
        let now = clock::now(&mut tx).await?;
        close(&mut tx, event_id, now).await?;
        tx.commit().await?;
    }
    if !row.rooted {
        let Some(tree) = places.tree(event_id, row.draw_no).await? else { return Ok(()) };
        let mut tx = pool.begin().await?;
        lock(&mut tx, event_id).await?;
        let now = clock::now(&mut tx).await?;
        let rooted = sqlx::query!(
            "update draw set root = $3 where event_id = $1 and draw_no = $2 and root is null and abandoned_at is null",
            event_id,
            row.draw_no,
            &tree.root()[..]
        )
        .execute(&mut *tx)
        .await?;
        if rooted.rows_affected() == 1 {
            touch(&mut tx, event_id, now).await?;
        }
        tx.commit().await?;
    }
    let has_value = row.public_source.is_none() || row.public_value.is_some();
    if row.drawn_at.is_none() && has_value {
        draw(pool, event_id, row.draw_no).await?;
    }
    if row.revealed_at.is_none() && row.now >= row.on_sale_at {
        reveal(pool, event_id).await?;
    }
    Ok(())
}

/// From here on there are places. Nothing is computed: they follow from what is there.
async fn draw(pool: &PgPool, event_id: i64, draw_no: i32) -> sqlx::Result<()> {
    let mut tx = pool.begin().await?;
    lock(&mut tx, event_id).await?;
    let now = clock::now(&mut tx).await?;
    let drawn = sqlx::query!(
        "update draw set drawn_at = $3
         where event_id = $1 and draw_no = $2 and drawn_at is null and root is not null and abandoned_at is null
           and (public_source is null or public_value is not null)",
        event_id,
        draw_no,
        now
    )
    .execute(&mut *tx)
    .await?;
    if drawn.rows_affected() == 1 {
        touch(&mut tx, event_id, now).await?;
    }
    tx.commit().await
}

#[derive(Debug, thiserror::Error)]
pub enum DrawError {
    #[error("the event has no waiting room")]
    LineUnknown,
    #[error(transparent)]
    Invalid(#[from] Faults),
    #[error("a line has {DRAWS_MAX} draws at most")]
    TooMany,
    #[error(transparent)]
    Database(#[from] sqlx::Error),
}

/// Takes the public value, once: not before the root is out and the value is due. `false`: it was there already.
pub async fn take_value(
    db: &mut PgConnection,
    event_id: i64,
    value: &[u8],
    now: DateTime<Utc>,
) -> Result<bool, DrawError> {
    if value.is_empty() || value.len() > 1024 {
        return Err(DrawError::Invalid(Faults::one("a public value has 1 to 1024 bytes")));
    }
    let row = sqlx::query!(
        r#"select d.draw_no, d.public_source, d.public_value, d.value_due_at, d.rooted_at
           from line l join draw d on d.event_id = l.event_id and d.draw_no = l.draw_no where l.event_id = $1"#,
        event_id
    )
    .fetch_optional(&mut *db)
    .await?
    .ok_or(DrawError::LineUnknown)?;
    if row.public_source.is_none() {
        return Err(DrawError::Invalid(Faults::one("this draw has announced no public value")));
    }
    match row.public_value {
        Some(known) if known == value => return Ok(false),
        Some(_) => return Err(DrawError::Invalid(Faults::one("this draw has another public value already"))),
        None => {}
    }
    let Some(rooted_at) = row.rooted_at else {
        return Err(DrawError::Invalid(Faults::one("the entries are not fixed yet")));
    };
    if row.value_due_at.is_some_and(|due| rooted_at >= due) {
        return Err(DrawError::Invalid(Faults::one(
            "the entries were fixed when the value was out already: a redraw takes a later one",
        )));
    }
    if row.value_due_at.is_some_and(|due| now < due) {
        return Err(DrawError::Invalid(Faults::one("the public value is not due yet")));
    }
    sqlx::query!(
        "update draw set public_value = $3, drawn_at = $4 where event_id = $1 and draw_no = $2",
        event_id,
        row.draw_no,
        value,
        now
    )
    .execute(&mut *db)
    .await?;
    touch(db, event_id, now).await?;
    Ok(true)
}

/// Publishes the secret of a draw that is drawn: from now on anybody can compute every place.
pub async fn reveal(pool: &PgPool, event_id: i64) -> sqlx::Result<bool> {
    let mut tx = pool.begin().await?;
    lock(&mut tx, event_id).await?;
    let now = clock::now(&mut tx).await?;
    let revealed = reveal_in(&mut tx, event_id, now).await?;
    tx.commit().await?;
    Ok(revealed)
}

/// [`reveal`], under the line's lock.
pub async fn reveal_in(db: &mut PgConnection, event_id: i64, now: DateTime<Utc>) -> sqlx::Result<bool> {
    let revealed = sqlx::query!(
        "update draw d set revealed_at = $2 from line l
         where l.event_id = $1 and d.event_id = l.event_id and d.draw_no = l.draw_no
           and d.drawn_at is not null and d.revealed_at is null",
        event_id,
        now
    )
    .execute(&mut *db)
    .await?
    .rows_affected()
        == 1;
    if revealed {
        touch(db, event_id, now).await?;
    }
    Ok(revealed)
}

/// Gives the draw up, with its reason and its secret for all to see, and begins another with a commitment of
/// its own. Entries that were fixed stay fixed. Not once anybody was called, nor more often than [`DRAWS_MAX`] allows:
/// whoever may draw for ever can wait for places that please them.
pub async fn redraw(
    db: &mut PgConnection,
    event_id: i64,
    public: Option<&PublicValue>,
    why: &str,
    now: DateTime<Utc>,
) -> Result<i32, DrawError> {
    let row = sqlx::query!(
        "select l.draw_no, l.called_through, l.closes_at, d.closed_at, d.entry_count, e.on_sale_at
         from line l join draw d on d.event_id = l.event_id and d.draw_no = l.draw_no join event e on e.id = l.event_id
         where l.event_id = $1",
        event_id
    )
    .fetch_optional(&mut *db)
    .await?
    .ok_or(DrawError::LineUnknown)?;
    if row.draw_no >= DRAWS_MAX {
        return Err(DrawError::TooMany);
    }
    if row.called_through > 0 {
        return Err(DrawError::Invalid(Faults::one("people were called already: their places stand")));
    }
    // Of entries that are fixed, the root is out at once: the value has to come later than that.
    let fixed_at = row.closed_at.map_or(row.closes_at, |_| now);
    let wanted = Wanted { closes_at: Some(fixed_at), public, ..Wanted::default() };
    bounds::faults(&wanted, Some(row.on_sale_at.max(fixed_at + chrono::TimeDelta::days(1)))).none()?;
    sqlx::query!(
        "update draw set abandoned_at = $3, abandoned_why = $4, revealed_at = coalesce(revealed_at, $3)
         where event_id = $1 and draw_no = $2",
        event_id,
        row.draw_no,
        now,
        why
    )
    .execute(&mut *db)
    .await?;
    let next = row.draw_no + 1;
    open::commit_to(db, event_id, next, public, now).await?;
    if row.closed_at.is_some() {
        sqlx::query!(
            "update draw set closed_at = $3, entry_count = $4 where event_id = $1 and draw_no = $2",
            event_id,
            next,
            now,
            row.entry_count
        )
        .execute(&mut *db)
        .await?;
    }
    sqlx::query!("update line set draw_no = $2 where event_id = $1", event_id, next).execute(&mut *db).await?;
    touch(db, event_id, now).await?;
    Ok(next)
}
