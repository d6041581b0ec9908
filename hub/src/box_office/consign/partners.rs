//! Who is given seats to sell.

use fullhouse_protocol::consign::{Partner, PartnerRequest};
use sqlx::{PgConnection, PgPool};
use uuid::Uuid;

use super::{By, ConsignError};
use crate::{
    auth::Deed,
    box_office::id_of,
    clock,
    db::{self, Tx},
};

/// Adds a partner. The same key again finds it.
pub async fn add(pool: PgPool, by: By, asked: PartnerRequest) -> Result<Partner, ConsignError> {
    let id = id_of("partner", by.terminal_id, &by.key);
    db::write(async move {
        let mut tx = pool.begin().await?;
        by.actor.acts(&mut tx).await?;
        if add_in(&mut tx, id, &by, &asked).await? {
            let now = clock::now(&mut tx).await?;
            let detail = format!("{} {}", asked.code, asked.name);
            let deed =
                Deed { verb: "partner_add", event_id: None, detail: &detail, reason: "may be given seats to sell" };
            by.actor.writes(&mut tx, deed, now).await?;
        }
        let partner = one(&mut tx, id).await?.ok_or(ConsignError::PartnerUnknown)?;
        if (&partner.code, &partner.name, &partner.contact) != (&asked.code, &asked.name, &asked.contact) {
            return Err(ConsignError::KeyReused);
        }
        tx.commit().await?;
        Ok(partner)
    })
    .await
}

/// Whether it is new.
async fn add_in(tx: &mut Tx, id: Uuid, by: &By, asked: &PartnerRequest) -> Result<bool, ConsignError> {
    let added = sqlx::query!(
        "insert into partner (id, code, name, contact, made_by, terminal_id, made_at)
         values ($1, $2, $3, $4, $5, $6, db_clock()) on conflict (id) do nothing",
        id,
        asked.code,
        asked.name,
        asked.contact,
        by.actor.name(),
        by.terminal_id
    )
    .execute(&mut **tx)
    .await;
    match added {
        Ok(done) => Ok(done.rows_affected() == 1),
        Err(error) if db::constraint(&error) == Some("partner_code_once") => Err(ConsignError::CodeTaken),
        Err(error) => Err(error.into()),
    }
}

/// All of them, by name.
pub async fn list(pool: &PgPool) -> sqlx::Result<Vec<Partner>> {
    sqlx::query_as!(
        Partner,
        "select id as partner_id, code, name, contact from partner order by lower(name), code limit 1000"
    )
    .fetch_all(pool)
    .await
}

pub(super) async fn one(db: &mut PgConnection, id: Uuid) -> sqlx::Result<Option<Partner>> {
    sqlx::query_as!(Partner, "select id as partner_id, code, name, contact from partner where id = $1", id)
        .fetch_optional(db)
        .await
}
