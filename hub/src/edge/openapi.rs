//! The description of the addresses at `/api/openapi.json`: generated from the handlers, so that it
//! can't say anything else than what they do. `assets/openapi.json` is a copy to read and to build clients from.

use utoipa::{
    OpenApi, ToSchema,
    openapi::{
        ContentBuilder, Ref, RefOr, ResponseBuilder,
        path::Operation,
        security::{ApiKey, ApiKeyValue, HttpAuthScheme, HttpBuilder, SecurityScheme},
    },
};

/// A refusal. Clients act on `code`; further members depend on it (`protocol/PROTOCOL.md`).
#[derive(ToSchema)]
#[expect(dead_code, reason = "only described: problem.rs writes it, with members that depend on the code")]
pub struct Problem {
    /// `urn:fullhouse:problem:` and the code.
    r#type: String,
    #[schema(example = "seats_unavailable")]
    code: String,
    title: String,
    status: u16,
    /// A sentence for people, in English.
    detail: Option<String>,
}

#[derive(OpenApi)]
#[openapi(
    info(
        title = "Fullhouse",
        description = "Sells a concert hall in minutes and never sells a seat twice.\n\n\
            Times are RFC 3339 in UTC, local times name no zone and stand beside `time_zone`. Money is a whole \
            number of minor units of a currency. A refusal is `application/problem+json` with a stable `code`.\n\n\
            An unsafe request with a cookie has to come from the same origin (`Sec-Fetch-Site` or `Origin`)."
    ),
    tags(
        (name = "accounts", description = "Signing up, in and out"),
        (name = "events", description = "What is on, its plan, and its live map"),
        (name = "holds", description = "Taking seats for some minutes, and giving them back"),
        (name = "orders", description = "Checkout, payment, tickets"),
        (name = "staff", description = "Refunds, the gate, and what about money is not settled: an operator's session or a counter's token"),
        (name = "box office", description = "The same path for tills and kiosks, by a terminal's token"),
    ),
    components(schemas(Problem))
)]
struct Frame;

/// What stands around the addresses.
pub fn frame() -> utoipa::openapi::OpenApi {
    let mut frame = Frame::openapi();
    let components = frame.components.get_or_insert_default();
    components.add_security_scheme(
        "session",
        SecurityScheme::ApiKey(ApiKey::Cookie(ApiKeyValue::new(super::extract::SESSION_COOKIE))),
    );
    components.add_security_scheme(
        "terminal",
        SecurityScheme::Http(HttpBuilder::new().scheme(HttpAuthScheme::Bearer).build()),
    );
    frame
}

/// The whole description, as it is served.
pub fn document() -> String {
    let mut document = super::routes().to_openapi();
    for item in document.paths.paths.values_mut() {
        let operations: [&mut Option<Operation>; 5] =
            [&mut item.get, &mut item.post, &mut item.put, &mut item.patch, &mut item.delete];
        for operation in operations.into_iter().flatten() {
            add_refusal(operation);
        }
    }
    let mut text = document.to_pretty_json().expect("the description is plain data");
    text.push('\n');
    text
}

/// Any address may refuse; the codes are one table for all.
fn add_refusal(operation: &mut Operation) {
    let refusal = ResponseBuilder::new()
        .description("A refusal")
        .content(
            "application/problem+json",
            ContentBuilder::new().schema(Some(Ref::from_schema_name("Problem"))).build(),
        )
        .build();
    operation.responses.responses.entry("default".to_owned()).or_insert(RefOr::T(refusal));
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_committed_description_is_the_generated_one() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../assets/openapi.json");
        let committed = std::fs::read_to_string(path).unwrap_or_default();
        assert!(
            committed == super::document(),
            "assets/openapi.json is not what the code says: run `cargo run -p fullhouse -- openapi > assets/openapi.json`"
        );
    }
}
