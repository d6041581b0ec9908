//! Which house this database is to the payment provider. Several may sell through one account.
//!
//! Invariants
//! - The id is in the metadata of all that we ask the provider for; what bears another house's is never touched.
//! - An attempt keeps the id that it began under: in a copy that got another, it is the first house's to drive.

use sqlx::PgPool;
use uuid::Uuid;

pub async fn id(pool: &PgPool) -> sqlx::Result<Uuid> {
    sqlx::query_scalar!("select id from installation").fetch_one(pool).await
}

/// This database is another house from now on.
pub async fn renew(pool: &PgPool) -> sqlx::Result<Uuid> {
    let id = sqlx::query_scalar!("update installation set id = gen_random_uuid(), made_at = db_clock() returning id")
        .fetch_one(pool)
        .await?;
    tracing::warn!(installation.id = %id, "payments of before belong to another house");
    Ok(id)
}
