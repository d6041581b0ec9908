//! Mail to buyers: written down in the transaction of what it tells, decided and sent later by a leased worker.
//!
//! Invariants
//! - One mail an event of an order (`mail_once`), however many ask for it at once.
//! - What it says is decided when it is sent: an order that was refunded meanwhile gets no tickets, one
//!   that was paid meanwhile is not asked to pay.
//! - A mail is queued, sent, dropped (there was nothing to say any more) or dead (a person has to look). It
//!   is sent at least once: a worker that dies between the server's answer and ours leaves a second
//!   one with the same `Message-ID`.
//! - No address is logged. One is kept in the queue only for a customer without an account, and only until their mail is
//!   decided (`mail_address_forgotten`).

mod letter; // what a mail says, and whether it says anything
mod receipt; // what of it is about money
mod post; // how it leaves: SMTP, or a folder
mod worker; // leases, the rate, tries and their end

pub use self::{
    post::{Post, PostError, is_address},
    worker::run,
};

use sqlx::{PgConnection, PgPool};
use uuid::Uuid;

use crate::{clock, words::Language};

/// What happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The money is captured: here are the tickets.
    Tickets,
    /// A ticket has another code now. The occasion is the new ticket.
    Reissued,
    /// Money goes back. The occasion is the refund.
    Refunded,
    /// The money could not be had after all.
    PaymentDue,
    EventCancelled,
    /// It begins, or opens its doors, at another time than was said. A trigger writes it down (`event_tells_that_it_moved`):
    /// whoever changes an event need not think of it.
    EventMoved,
    /// About an account, not an order: does somebody read this?
    CheckAddress,
}

impl Kind {
    pub const ALL: [Kind; 7] = [
        Kind::Tickets,
        Kind::Reissued,
        Kind::Refunded,
        Kind::PaymentDue,
        Kind::EventCancelled,
        Kind::EventMoved,
        Kind::CheckAddress,
    ];

    /// As it is stored.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Tickets => "tickets",
            Kind::Reissued => "reissued",
            Kind::Refunded => "refunded",
            Kind::PaymentDue => "payment_due",
            Kind::EventCancelled => "event_cancelled",
            Kind::EventMoved => "event_moved",
            Kind::CheckAddress => "check_address",
        }
    }

    fn read(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

/// Puts a mail about an order into the queue. `occasion` tells several of a kind apart (a refund's id);
/// empty, there is one for ever. One that was dropped, since there was nothing to say then, gets another
/// chance. Customers without an account have no address, and get none.
pub async fn enqueue(db: &mut PgConnection, kind: Kind, order_id: Uuid, occasion: &str) -> sqlx::Result<()> {
    let now = clock::now(db).await?;
    sqlx::query!(
        r#"insert into mail (order_id, kind, occasion, next_try_at, created_at)
           select o.id, $2, $3, $4, $4 from "order" o join buyer b on b.id = o.buyer_id
           where o.id = $1 and b.account_id is not null
           on conflict on constraint mail_once do update
               set state = 'queued', next_try_at = excluded.next_try_at, created_at = excluded.created_at, tries = 0,
                   decided_at = null
               where mail.state = 'dropped'"#,
        order_id,
        kind.name(),
        occasion,
        now
    )
    .execute(db)
    .await?;
    Ok(())
}

/// Addresses that the tickets of one order are sent to at a customer's word.
const ADDRESSES_MAX: i64 = 3;

/// Puts a mail with the tickets of an order into the queue, to an address that its customer gave. The same occasion is one
/// mail. False: that order's tickets went to enough addresses.
pub async fn enqueue_to(
    db: &mut PgConnection,
    order_id: Uuid,
    address: &str,
    language: Language,
    occasion: &str,
) -> sqlx::Result<bool> {
    let now = clock::now(db).await?;
    let known = sqlx::query_scalar!(
        r#"select count(*) as "count!" from mail where order_id = $1 and kind = $2 and occasion like 'to %' and occasion <> $3"#,
        order_id,
        Kind::Tickets.name(),
        occasion
    )
    .fetch_one(&mut *db)
    .await?;
    if known >= ADDRESSES_MAX {
        return Ok(false);
    }
    sqlx::query!(
        "insert into mail (order_id, kind, occasion, address, language, next_try_at, created_at)
         values ($1, $2, $3, $4, $5, $6, $6) on conflict on constraint mail_once do nothing",
        order_id,
        Kind::Tickets.name(),
        occasion,
        address,
        language.code(),
        now
    )
    .execute(db)
    .await?;
    Ok(true)
}

/// How often the link that checks an address is sent again, at most.
const CHECK_AGAIN_S: i64 = 300;

/// Puts a mail with the link that checks an account's address into the queue: one in five minutes.
pub async fn enqueue_check(db: &mut PgConnection, account_id: Uuid) -> sqlx::Result<()> {
    let now = clock::now(db).await?;
    let occasion = (now.timestamp() / CHECK_AGAIN_S).to_string();
    sqlx::query!(
        "insert into mail (account_id, kind, occasion, next_try_at, created_at) values ($1, $2, $3, $4, $4)
         on conflict (account_id, kind, occasion) where account_id is not null do nothing",
        account_id,
        Kind::CheckAddress.name(),
        occasion,
        now
    )
    .execute(db)
    .await?;
    Ok(())
}

/// A mail as operators see it.
#[derive(Debug)]
pub struct Queued {
    pub id: i64,
    /// Empty: it is about an account.
    pub order_code: String,
    pub kind: String,
    pub state: String,
    pub tries: i32,
    pub last_error: Option<String>,
}

/// Mails in a state, the latest first, a thousand at most.
pub async fn list(pool: &PgPool, state: &str) -> sqlx::Result<Vec<Queued>> {
    sqlx::query_as!(
        Queued,
        r#"select m.id, coalesce(o.code, '') as "order_code!", m.kind, m.state, m.tries, m.last_error
           from mail m left join "order" o on o.id = m.order_id where m.state = $1 order by m.id desc limit 1000"#,
        state
    )
    .fetch_all(pool)
    .await
}

/// Dead mails get another life: one of them, or all. Returns how many.
pub async fn revive(pool: &PgPool, id: Option<i64>) -> sqlx::Result<u64> {
    let done = sqlx::query!(
        "update mail set state = 'queued', tries = 0, created_at = db_clock(), next_try_at = db_clock(), leased_until = null,
                decided_at = null
         where state = 'dead' and ($1::bigint is null or id = $1)",
        id
    )
    .execute(pool)
    .await?;
    Ok(done.rows_affected())
}
