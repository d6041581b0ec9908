//! Paying: begin, come back from the bank, give up; and what the provider tells.

use std::{collections::HashMap, sync::Arc};

use axum::{
    Json,
    extract::{Request, State},
    http::StatusCode,
};
use chrono::Utc;
use fullhouse_protocol::orders::{Attempt, AttemptAnswer, OrderAnswer, Pay, PaymentConfig};
use sqlx::PgPool;
use uuid::Uuid;

use super::{
    extract::{Body, Buyer, IdempotencyKey, PathId, read_bounded},
    orders,
    problem::{Code, Problem},
};
use crate::{
    checkout::view::Whose,
    config::Config,
    payment::{
        Payments,
        attempt::{self, CancelError, OpenError},
        gate,
        webhook::{self, WebhookError},
    },
};

/// The provider's tokens are short.
const PAYMENT_METHOD_MAX: usize = 255;

/// Without a payment provider no card pays.
pub(super) fn needs_provider(payments: &Payments) -> Result<(), Problem> {
    if payments.takes_cards() {
        return Ok(());
    }
    Err(Problem::new(Code::PaymentGateClosed).detail("No payment provider is set up here."))
}

/// Begins to pay an order, or finds what the same key began. Follow it at `/api/orders/{id}`.
#[utoipa::path(post, path = "/api/orders/{id}/pay", tag = "orders", request_body = Pay,
    params(("id" = Uuid, Path), ("Idempotency-Key" = String, Header)),
    responses((status = 202, body = AttemptAnswer), (status = "4XX", description = "`bad_request`, `order_not_open`, `attempt_live`, `amount_mismatch`, `tender_invalid`, `hold_ended`, `too_late_to_pay`, `payment_gate_closed`, `idempotency_mismatch`")))]
pub async fn pay(
    State(pool): State<PgPool>,
    State(payments): State<Payments>,
    buyer: Buyer,
    PathId(order_id): PathId<Uuid>,
    IdempotencyKey(key): IdempotencyKey,
    Body(body): Body<Pay>,
) -> Result<(StatusCode, Json<AttemptAnswer>), Problem> {
    needs_provider(&payments)?;
    if body.payment_method.is_empty() || body.payment_method.len() > PAYMENT_METHOD_MAX {
        return Err(Problem::new(Code::BadRequest).detail("payment_method is the provider's token for a card."));
    }
    let pay = attempt::Pay {
        order_id,
        buyer_id: buyer.buyer_id,
        key,
        payment_method: body.payment_method,
        reader_id: None,
        amount_minor: body.amount_minor,
        cash_minor: 0,
        currency: body.currency,
        actor: "buyer".into(),
    };
    attempt::open(&pool, pay, payments.margin()).await?;
    payments.wake();
    attempt_answer(&pool, order_id).await
}

/// The buyer is back from the bank's challenge: ask what came of it.
#[utoipa::path(post, path = "/api/orders/{id}/resume", tag = "orders", params(("id" = Uuid, Path)),
    responses((status = 202, body = AttemptAnswer), (status = "4XX", description = "`order_not_open`")))]
pub async fn resume(
    State(pool): State<PgPool>,
    State(config): State<Arc<Config>>,
    State(payments): State<Payments>,
    buyer: Buyer,
    PathId(order_id): PathId<Uuid>,
) -> Result<(StatusCode, Json<AttemptAnswer>), Problem> {
    orders::answer(&pool, &config, Whose::BuyersOne { buyer_id: buyer.buyer_id, order_id }).await?;
    if attempt::poke(&pool, order_id).await? {
        payments.wake();
    }
    attempt_answer(&pool, order_id).await
}

/// Gives an order up. A payment that is under way is resolved first, and then let go; the seats stay
/// held until the hold is released or ends.
#[utoipa::path(post, path = "/api/orders/{id}/cancel", tag = "orders", params(("id" = Uuid, Path)),
    responses((status = 200, body = OrderAnswer), (status = "4XX", description = "`order_not_open`")))]
pub async fn cancel(
    State(pool): State<PgPool>,
    State(config): State<Arc<Config>>,
    State(payments): State<Payments>,
    buyer: Buyer,
    PathId(order_id): PathId<Uuid>,
) -> Result<Json<OrderAnswer>, Problem> {
    attempt::cancel(&pool, order_id, buyer.buyer_id).await?;
    payments.wake();
    orders::answer(&pool, &config, Whose::BuyersOne { buyer_id: buyer.buyer_id, order_id }).await.map(Json)
}

/// What a page needs to show the provider's card form.
#[utoipa::path(get, path = "/api/payment/config", tag = "orders", responses((status = 200, body = PaymentConfig)))]
pub async fn config(
    State(pool): State<PgPool>,
    State(payments): State<Payments>,
) -> Result<Json<PaymentConfig>, Problem> {
    let settings = payments.settings();
    Ok(Json(PaymentConfig {
        cards: payments.takes_cards(),
        paused: gate::closed(&mut *pool.acquire().await?).await?.is_some(),
        publishable_key: settings.publishable_key.clone(),
        form_url: payments.form_url(),
    }))
}

/// A hint from the provider. Stored before it is answered; what can't be stored is not answered with 200.
#[utoipa::path(post, path = "/api/webhooks/payments", tag = "orders", request_body(content = String, content_type = "application/json"),
    params(("Stripe-Signature" = String, Header)),
    responses((status = 200, description = "stored"), (status = "4XX", description = "`not_found`, `bad_request`, `body_too_large`, `signature_invalid`")))]
pub async fn webhook(
    State(pool): State<PgPool>,
    State(payments): State<Payments>,
    request: Request,
) -> Result<StatusCode, Problem> {
    let header = request.headers().get("stripe-signature").and_then(|v| v.to_str().ok()).unwrap_or_default().to_owned();
    let settings = payments.settings();
    let Some(client) = payments.client() else { return Err(Code::NotFound.into()) };
    let body = read_bounded(request, settings.webhook_body_max_bytes).await?;
    webhook::accept(&pool, &settings.webhook_secrets, client.mode().is_live(), &header, body.to_vec()).await?;
    payments.wake();
    Ok(StatusCode::OK)
}

async fn attempt_answer(pool: &PgPool, order_id: Uuid) -> Result<(StatusCode, Json<AttemptAnswer>), Problem> {
    let found = attempt::latest(pool, order_id).await?;
    let attempt = found.ok_or_else(|| Problem::new(Code::OrderNotOpen).detail("Nothing was paid yet."))?;
    let now = sqlx::query_scalar!(r#"select db_clock() as "now!""#).fetch_one(pool).await?;
    Ok((StatusCode::ACCEPTED, Json(AttemptAnswer { attempt, now })))
}

/// The latest attempts of these orders. To be read before the orders themselves.
pub(super) async fn attempts(pool: &PgPool, whose: Whose) -> sqlx::Result<HashMap<Uuid, Attempt>> {
    match whose {
        Whose::Buyers(buyer_id) => attempt::latest_of(pool, buyer_id).await,
        Whose::BuyersOne { order_id, .. } | Whose::One(order_id) => {
            Ok(attempt::latest(pool, order_id).await?.map(|attempt| (order_id, attempt)).into_iter().collect())
        }
    }
}

impl From<OpenError> for Problem {
    fn from(error: OpenError) -> Self {
        match error {
            OpenError::OrderUnknown => Code::OrderUnknown.into(),
            OpenError::KeyReused => Code::IdempotencyMismatch.into(),
            OpenError::OrderNotOpen(state) => Problem::new(Code::OrderNotOpen).with("state", state),
            OpenError::AttemptLive(id) => Problem::new(Code::AttemptLive).with("attempt_id", id.to_string()),
            OpenError::AmountMismatch { total_minor, currency } => {
                Problem::new(Code::AmountMismatch).with("total_minor", total_minor).with("currency", currency)
            }
            OpenError::NothingToPay => Problem::new(Code::TenderInvalid).detail("The order costs nothing: claim it."),
            OpenError::CashPaysAll { due_minor, currency } => Problem::new(Code::TenderInvalid)
                .detail("The cash leaves nothing for the card.")
                .with("total_minor", due_minor)
                .with("currency", currency),
            OpenError::Money(error) => {
                tracing::error!(%error, "an order can't be paid at this provider");
                Problem::new(Code::TenderInvalid).detail("This amount can't be paid by card.")
            }
            OpenError::HoldEnded => Code::HoldEnded.into(),
            OpenError::TooLate => Code::TooLateToPay.into(),
            OpenError::GateClosed(_) => Code::PaymentGateClosed.into(),
            // Two keys at once, past the check: the index decides.
            OpenError::Database(error) if crate::db::constraint(&error) == Some("attempt_one_live") => {
                Code::AttemptLive.into()
            }
            OpenError::Database(error) => error.into(),
        }
    }
}

impl From<CancelError> for Problem {
    fn from(error: CancelError) -> Self {
        match error {
            CancelError::OrderUnknown => Code::OrderUnknown.into(),
            CancelError::OrderNotOpen(state) => Problem::new(Code::OrderNotOpen).with("state", state),
            CancelError::Database(error) => error.into(),
        }
    }
}

impl From<WebhookError> for Problem {
    fn from(error: WebhookError) -> Self {
        match error {
            WebhookError::Signature(error) => {
                tracing::warn!(%error, at = %Utc::now(), "a webhook was refused");
                Problem::new(Code::SignatureInvalid).detail(error.to_string())
            }
            WebhookError::NotAnEvent => Problem::new(Code::BadRequest).detail("The body is not an event."),
            WebhookError::Database(error) => error.into(),
        }
    }
}
