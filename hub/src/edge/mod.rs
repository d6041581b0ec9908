//! The only code that knows HTTP.
//!
//! Handlers take just the parts of the hub that they use (`State<PgPool>`, `State<Rooms>`, …), and
//! who may call them is in the extractors that they take.

pub mod problem; // one table of errors
pub mod extract; // who is asking, and for what
pub mod holds; // holding seats
pub mod orders; // a hold becomes an order
pub mod box_office; // what terminals do
pub mod server; // connections

use axum::Router;

use crate::serve::{Hub, Roles};

/// Every address of the hub.
pub fn router(hub: &Hub, _roles: Roles) -> Router {
    Router::new().with_state(hub.clone())
}
