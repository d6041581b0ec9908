//! The only code that knows HTTP. Every address of the hub stands on this page.
//!
//! Handlers take just the parts of the hub that they use (`State<PgPool>`, `State<Rooms>`, …), and
//! who may call them is in the extractors that they take.

pub mod problem; // one table of errors
mod query; // what may stand behind the question mark
pub mod extract; // who is asking, and for what
pub mod accounts; // signing up, in and out
pub mod events; // what is on
pub mod queue; // the waiting room: standing in line, coming in
pub mod holds; // holding seats
pub mod orders; // a hold becomes an order
pub mod payments; // an order is paid
pub mod tickets; // on paper, at the door, printed again
pub mod box_office; // what terminals do
pub mod terminals; // how terminals are; renamed, locked, revoked
pub mod leases; // selling without a network
pub mod duty; // staff sign in at a terminal
pub mod desk; // seats put aside, a seat's story, will-call
pub mod vouchers; // seats for nothing, for whoever brings a code
pub mod consign; // seats that a partner sells elsewhere
pub mod until_sold; // seats that wait until the others are sold
pub mod shifts; // the drawer of a terminal, and the day's lock
pub mod members; // who is of the staff
pub mod staff; // refunds, the gate, what is not settled
pub mod staff_queue; // pace, pause and draw of a waiting room
pub mod audit; // what people did
pub mod staff_orders; // orders looked up, exchanged, noted
pub mod assets; // the fan's page
pub mod health; // alive, ready, numbers
pub mod live; // the live map: snapshot, frames, socket
pub mod openapi; // the description, generated from what stands here
pub mod csrf; // unsafe requests come from our own pages
pub mod envelope; // what every answer gets
mod connections; // how many an address has
pub mod server; // connections

use std::sync::Arc;

use axum::{Router, extract::Request, http::header, middleware, response::IntoResponse, routing::get};
use bytes::Bytes;
use tower_http::compression::{
    CompressionLayer, CompressionLevel,
    predicate::{NotForContentType, Predicate, SizeAbove},
};
use utoipa_axum::{router::OpenApiRouter, routes};

use self::{
    assets::Assets,
    problem::{Code, Problem},
};
use crate::serve::{Hub, Roles};

/// The API: what a fan, a till and an operator can ask for.
fn api() -> OpenApiRouter<Hub> {
    OpenApiRouter::new()
        .routes(routes!(accounts::sign_up))
        .routes(routes!(accounts::set_language))
        .routes(routes!(accounts::check_address))
        .routes(routes!(accounts::confirm_address))
        .routes(routes!(accounts::current, accounts::sign_in, accounts::sign_out))
        .routes(routes!(events::list))
        .routes(routes!(events::one))
        .routes(routes!(events::geometry))
        .routes(routes!(queue::line))
        .routes(routes!(queue::challenge))
        .routes(routes!(queue::mine, queue::join, queue::prefer, queue::leave))
        .routes(routes!(queue::enter))
        .routes(routes!(queue::renew))
        .routes(routes!(queue::go))
        .routes(routes!(queue::draws))
        .routes(routes!(queue::one_draw))
        .routes(routes!(queue::leaves))
        .routes(routes!(queue::proof))
        .routes(routes!(holds::mine, holds::place))
        .routes(routes!(holds::release_all))
        .routes(routes!(holds::release_some))
        .routes(routes!(orders::check_out))
        .routes(routes!(orders::list))
        .routes(routes!(orders::one))
        .routes(routes!(orders::claim))
        .routes(routes!(orders::cancellation, orders::cancel_seats))
        .routes(routes!(tickets::mine))
        .routes(routes!(tickets::keys))
        .routes(routes!(payments::pay))
        .routes(routes!(payments::resume))
        .routes(routes!(payments::cancel))
        .routes(routes!(payments::config))
        .routes(routes!(payments::webhook))
        .routes(routes!(box_office::place))
        .routes(routes!(box_office::release))
        .routes(routes!(box_office::quote))
        .routes(routes!(box_office::sell))
        .routes(routes!(box_office::sell_by_card))
        .routes(routes!(box_office::card_sale))
        .routes(routes!(box_office::stop_card))
        .routes(routes!(box_office::block))
        .routes(routes!(box_office::unblock))
        .routes(routes!(box_office::revive))
        .routes(routes!(box_office::kill))
        .routes(routes!(box_office::set_traits))
        .routes(routes!(until_sold::until_sold, until_sold::wait_until_sold))
        .routes(routes!(until_sold::open_until_sold))
        .routes(routes!(until_sold::drop_until_sold))
        .routes(routes!(desk::customer_holds, desk::put_aside))
        .routes(routes!(desk::release_customer_hold))
        .routes(routes!(desk::seat_story))
        .routes(routes!(vouchers::make_voucher))
        .routes(routes!(vouchers::vouchers))
        .routes(routes!(vouchers::look_at_voucher))
        .routes(routes!(vouchers::withdraw_voucher))
        .routes(routes!(consign::partners, consign::add_partner))
        .routes(routes!(consign::consign))
        .routes(routes!(consign::consignments))
        .routes(routes!(consign::sell_consigned))
        .routes(routes!(consign::return_consigned))
        .routes(routes!(consign::move_cut_off))
        .routes(routes!(consign::statement))
        .routes(routes!(consign::pay_account))
        .routes(routes!(consign::pay_back))
        .routes(routes!(desk::will_call))
        .routes(routes!(desk::print_will_call))
        .routes(routes!(tickets::for_staff))
        .routes(routes!(tickets::dead))
        .routes(routes!(tickets::reissue))
        .routes(routes!(tickets::begin_prints, tickets::prints))
        .routes(routes!(tickets::report_print))
        .routes(routes!(tickets::mail_again))
        .routes(routes!(tickets::mail_to))
        .routes(routes!(leases::grant_lease, leases::own_leases))
        .routes(routes!(leases::settle_journal))
        .routes(routes!(leases::close_lease))
        .routes(routes!(leases::list_leases))
        .routes(routes!(leases::write_off_lease))
        .routes(routes!(leases::see_to_journal))
        .routes(routes!(terminals::report))
        .routes(routes!(terminals::enrol))
        .routes(routes!(terminals::who_am_i))
        .routes(routes!(terminals::make_code))
        .routes(routes!(duty::sign_in))
        .routes(routes!(duty::sign_out))
        .routes(routes!(duty::on_duty))
        .routes(routes!(shifts::shifts, shifts::open_shift))
        .routes(routes!(shifts::shifts_of_stopped))
        .routes(routes!(shifts::current_shift))
        .routes(routes!(shifts::move_cash))
        .routes(routes!(shifts::check_shift))
        .routes(routes!(shifts::close_shift))
        .routes(routes!(shifts::one_shift))
        .routes(routes!(shifts::lock_day))
        .routes(routes!(members::members, members::add_member))
        .routes(routes!(members::change_member))
        .routes(routes!(terminals::list))
        .routes(routes!(terminals::change_terminal))
        .routes(routes!(staff::refund))
        .routes(routes!(staff::retry))
        .routes(routes!(staff::money))
        .routes(routes!(staff::open_gate))
        .routes(routes!(staff::pause_gate))
        .routes(routes!(staff::acknowledge))
        .routes(routes!(staff::called_off, staff::call_off))
        .routes(routes!(staff_queue::look, staff_queue::open, staff_queue::change))
        .routes(routes!(staff_queue::changes))
        .routes(routes!(staff_queue::inside))
        .routes(routes!(staff_orders::search))
        .routes(routes!(audit::audit))
        .routes(routes!(staff_orders::one))
        .routes(routes!(staff_orders::note))
        .routes(routes!(staff_orders::exchange))
        .routes(routes!(staff_orders::exchange_offer))
        .routes(routes!(staff_orders::leave_exchange))
        .routes(routes!(staff_orders::stop_reader))
        .routes(routes!(staff_orders::ticket_preview))
        .routes(routes!(staff_orders::pay_due))
        .routes(routes!(staff_orders::give_up_due))
}

/// The live map, which a node may carry without the rest.
fn push() -> OpenApiRouter<Hub> {
    OpenApiRouter::new()
        .routes(routes!(live::snapshot))
        .routes(routes!(live::frames))
        .routes(routes!(live::live))
        .routes(routes!(live::queue_frames))
        .routes(routes!(live::queue_live))
}

/// All of it, with its description.
fn routes() -> OpenApiRouter<Hub> {
    OpenApiRouter::with_openapi(openapi::frame()).merge(api()).merge(push())
}

fn metrics() -> Router<Hub> {
    Router::new().route("/metrics", get(health::metrics))
}

/// What is served at `http.metrics_listen`.
pub fn metrics_router(hub: &Hub) -> Router {
    metrics().with_state(hub.clone())
}

/// The hub's service for the roles that it plays.
pub fn router(hub: &Hub, roles: Roles, assets: Assets) -> Router {
    let mut open: OpenApiRouter<Hub> = OpenApiRouter::new();
    if roles.api {
        open = open.merge(api());
    }
    if roles.push {
        open = open.merge(push());
    }
    let asked = Arc::new(query::routes_with_one(open.get_openapi()));
    let mut open = Router::from(open);
    if roles.api || roles.push {
        open = open.route_layer(middleware::from_fn_with_state(asked, query::refuse_unasked));
    }
    if hub.config.http.metrics_listen.is_empty() {
        open = open.merge(metrics());
    }
    let description = Bytes::from(openapi::document());
    let assets = Arc::new(if roles.api { assets } else { Assets::default() });
    let compression = CompressionLayer::new()
        .quality(CompressionLevel::Fastest) // what is asked for often is compressed once by whoever serves it
        .compress_when(SizeAbove::new(1024).and(NotForContentType::IMAGES));
    open.route(
        "/api/openapi.json",
        get(move || async move {
            ([(header::CONTENT_TYPE, "application/json"), (header::CACHE_CONTROL, "max-age=60")], description)
        }),
    )
    .route("/healthz", get(health::alive))
    .route("/readyz", get(health::ready))
    .fallback(move |request: Request| async move {
        if request.uri().path().starts_with("/api") {
            return Problem::new(Code::NotFound).into_response();
        }
        assets.answer(request.method(), request.uri().path(), request.headers())
    })
    .method_not_allowed_fallback(|| async { Problem::new(Code::MethodNotAllowed) })
    .layer(middleware::from_fn_with_state(hub.clone(), csrf::same_origin))
    .layer(compression)
    .layer(middleware::from_fn_with_state(hub.clone(), envelope::envelope))
    .with_state(hub.clone())
}
