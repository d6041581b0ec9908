//! Is it alive, may it get requests, and what do the numbers say. Not for the public: a proxy in
//! front passes on `/api` and the pages only.

use std::time::Duration;

use axum::{
    extract::State,
    http::{StatusCode, header},
    response::{IntoResponse, Response},
};

use crate::serve::Hub;

/// Longer than a database that works needs, shorter than what a balancer waits.
const DATABASE_TIMEOUT: Duration = Duration::from_secs(2);

/// The process answers.
pub async fn alive() -> &'static str {
    "ok\n"
}

/// This node may get requests: it is not about to stop, and what it stands on is there.
pub async fn ready(State(hub): State<Hub>) -> Response {
    let mut lacking = Vec::new();
    if hub.stop.is_cancelled() {
        lacking.push("stopping");
    }
    let database = tokio::time::timeout(DATABASE_TIMEOUT, sqlx::query("select 1").execute(&hub.pool));
    if !matches!(database.await, Ok(Ok(_))) {
        lacking.push("database");
    }
    if !hub.claimed.holds() {
        lacking.push("the claim on the database");
    }
    let (status, text) = if lacking.is_empty() {
        (StatusCode::OK, "ready\n".to_owned())
    } else {
        (StatusCode::SERVICE_UNAVAILABLE, format!("not ready: {}\n", lacking.join(", ")))
    };
    (status, [(header::CACHE_CONTROL, "no-store")], text).into_response()
}

/// Prometheus' text.
pub async fn metrics(State(hub): State<Hub>) -> Response {
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    ([(header::CONTENT_TYPE, kind), (header::CACHE_CONTROL, "no-store")], hub.metrics.text()).into_response()
}
