//! The description of the addresses at `/api/openapi.json`: generated from the handlers, so that it
//! can't say anything else than what they do. `assets/openapi.json` is a copy to read and to build clients from.

use std::collections::{BTreeMap, BTreeSet};

use axum::http::StatusCode;
use utoipa::{
    OpenApi, ToSchema,
    openapi::{
        ContentBuilder, Ref, RefOr, Response, ResponseBuilder, Schema,
        path::Operation,
        schema::{AllOfBuilder, ObjectBuilder, Type},
        security::{ApiKey, ApiKeyValue, HttpAuthScheme, HttpBuilder, SecurityRequirement, SecurityScheme},
    },
};

use super::{extract::STAFF_HEADER, problem::Code};

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
            At an attended terminal somebody of the staff signs in (`POST /api/box-office/sign-in`), and their token goes \
            into the header `Fullhouse-Staff`, beside the terminal's own.\n\n\
            An unsafe request with a cookie has to come from the same origin (`Sec-Fetch-Site` or `Origin`)."
    ),
    tags(
        (name = "accounts", description = "Signing up, in and out"),
        (name = "events", description = "What is on, its plan, and its live map"),
        (name = "queue", description = "Waiting rooms: standing in line, the draw, and coming in"),
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
    // Beside an attended terminal's own token.
    components.add_security_scheme("staff", SecurityScheme::ApiKey(ApiKey::Header(ApiKeyValue::new(STAFF_HEADER))));
    frame
}

/// The whole description, as it is served.
pub fn document() -> String {
    let mut document = super::routes().to_openapi();
    for (path, item) in &mut document.paths.paths {
        let operations: [(bool, &mut Option<Operation>); 5] = [
            (false, &mut item.get),
            (true, &mut item.post),
            (true, &mut item.put),
            (true, &mut item.patch),
            (true, &mut item.delete),
        ];
        for (writes, operation) in operations {
            if let Some(operation) = operation {
                complete(path, writes, operation);
            }
        }
    }
    let mut text = document.to_pretty_json().expect("the description is plain data");
    text.push('\n');
    text
}

/// How those who may call an address show who they are, one way or another; nothing: anybody may. A test
/// calls every address without anything, and sees whether this is so.
fn credentials(path: &str) -> &'static [&'static str] {
    let below = |folder: &str| path.strip_prefix(folder).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    if path == "/api/box-office/enrol" {
        return &[]; // whoever has a code becomes a terminal
    }
    if below("/api/box-office") {
        return &["terminal"];
    }
    if below("/api/staff") {
        return &["session", "terminal"]; // an operator's, a counter's
    }
    if path == "/api/account/address-check/confirm" {
        return &[]; // the mail is opened on any device
    }
    let own = ["/hold", "/queue/challenge", "/queue/entry", "/queue/enter", "/queue/pass", "/queue/pass/renew"];
    let is_somebodys = ["/api/account", "/api/holds", "/api/orders"].into_iter().any(below)
        || own.into_iter().any(|end| path.ends_with(end));
    if is_somebodys { &["session"] } else { &[] }
}

/// What a locked terminal may do: say how it is, and learn why it is locked.
const EVEN_IF_LOCKED: [&str; 2] = ["/api/box-office/health", "/api/box-office/terminal"];

/// Adds what every address has in common, so that a handler names only the codes of its own: in
/// backticks, in the description of its `4XX`.
fn complete(path: &str, writes: bool, operation: &mut Operation) {
    let tag = operation.tags.iter().flatten().next().cloned().unwrap_or_default();
    // Handlers of two modules may have the same name, operations may not.
    operation.operation_id = operation.operation_id.take().map(|name| format!("{}_{name}", tag.replace(' ', "_")));
    if operation.security.is_none() {
        let requirement = |scheme: &&'static str| SecurityRequirement::new::<_, [&str; 0], &str>(*scheme, []);
        operation.security = Some(credentials(path).iter().map(requirement).collect());
    }
    let own = operation.responses.responses.remove("4XX");
    for (status, response) in &mut operation.responses.responses {
        if let RefOr::T(response) = response
            && response.description.is_empty()
        {
            let status = status.parse().ok().and_then(|status| StatusCode::from_u16(status).ok());
            response.description = status.and_then(|s| s.canonical_reason()).unwrap_or("The answer").to_owned();
        }
    }
    let mut codes = common(path, writes, operation);
    if let Some(RefOr::T(own)) = own {
        codes.extend(named(&own.description));
    }
    let mut by_status: BTreeMap<u16, BTreeSet<&'static str>> = BTreeMap::new();
    for code in codes {
        by_status.entry(code.status().as_u16()).or_default().insert(code.name());
    }
    let responses = &mut operation.responses.responses;
    for (status, codes) in by_status {
        responses.insert(status.to_string(), RefOr::T(refusal(Some(codes))));
    }
    responses.entry("default".to_owned()).or_insert_with(|| RefOr::T(refusal(None)));
}

/// The codes that follow from what an address takes.
fn common(path: &str, writes: bool, operation: &Operation) -> Vec<Code> {
    let mut codes = vec![Code::Busy, Code::Internal];
    let has_security = operation.security.iter().flatten().next().is_some();
    if has_security {
        codes.push(Code::NotSignedIn);
    }
    if credentials(path).contains(&"terminal") && !EVEN_IF_LOCKED.contains(&path) {
        codes.push(Code::TerminalLocked);
        codes.push(Code::StaffRequired); // of an attended terminal
    }
    if operation.request_body.is_some() && !path.starts_with("/api/webhooks/") {
        codes.extend([Code::JsonInvalid, Code::BodyTooLarge]);
    }
    if writes && !path.starts_with("/api/webhooks/") {
        codes.push(Code::Csrf); // of whoever brings no terminal's token
    }
    if operation.parameters.iter().flatten().any(|p| matches!(p, RefOr::T(p) if p.name == "Idempotency-Key")) {
        codes.push(Code::IdempotencyKeyMissing);
    }
    if path.contains('{') {
        codes.push(super::extract::unknown_at(path));
    }
    codes
}

/// The codes that a description names in backticks.
fn named(description: &str) -> impl Iterator<Item = Code> {
    description.split('`').skip(1).step_by(2).filter_map(|name| Code::ALL.iter().copied().find(|c| c.name() == name))
}

fn refusal(codes: Option<BTreeSet<&'static str>>) -> Response {
    let problem = Ref::from_schema_name("Problem");
    let (description, schema) = match codes {
        None => ("Any other refusal".to_owned(), RefOr::Ref(problem)),
        Some(codes) => {
            let description = codes.iter().map(|code| format!("`{code}`")).collect::<Vec<_>>().join(", ");
            let code = ObjectBuilder::new().schema_type(Type::String).enum_values(Some(codes));
            let schema = AllOfBuilder::new().item(problem).item(ObjectBuilder::new().property("code", code));
            (description, RefOr::T(Schema::AllOf(schema.build())))
        }
    };
    let content = ContentBuilder::new().schema(Some(schema)).build();
    ResponseBuilder::new().description(description).content("application/problem+json", content).build()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::Value;

    use super::Code;

    fn operations() -> Vec<(String, Value)> {
        let document: Value = serde_json::from_str(&super::document()).unwrap();
        let mut operations = Vec::new();
        for (path, item) in document["paths"].as_object().unwrap() {
            for (method, operation) in item.as_object().unwrap() {
                operations.push((format!("{method} {path}"), operation.clone()));
            }
        }
        operations
    }

    #[test]
    fn the_committed_description_is_the_generated_one() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../assets/openapi.json");
        let committed = std::fs::read_to_string(path).unwrap_or_default();
        assert!(
            committed == super::document(),
            "assets/openapi.json is not what the code says: run `cargo run -p fullhouse -- openapi > assets/openapi.json`"
        );
    }

    #[test]
    fn every_operation_has_a_name_of_its_own_and_says_who_may_call_it_and_what_it_answers() {
        let mut names = BTreeSet::new();
        for (operation, described) in operations() {
            assert!(names.insert(described["operationId"].as_str().unwrap().to_owned()), "{operation}");
            assert!(described["security"].is_array(), "{operation}");
            for (status, response) in described["responses"].as_object().unwrap() {
                assert!(!response["description"].as_str().unwrap().is_empty(), "{operation} {status}");
                assert!(!status.ends_with("XX"), "{operation}: its codes tell the status");
            }
        }
    }

    #[test]
    fn every_code_is_told_where_it_can_be_met() {
        let told: BTreeSet<String> = operations()
            .iter()
            .flat_map(|(_, described)| described["responses"].as_object().unwrap().values().cloned())
            .flat_map(|response| super::named(response["description"].as_str().unwrap()).collect::<Vec<_>>())
            .map(|code| code.name().to_owned())
            .collect();
        let missing: Vec<&str> = Code::ALL
            .iter()
            .filter(|code| **code != Code::MethodNotAllowed) // of no operation
            .map(|code| code.name())
            .filter(|name| !told.contains(*name))
            .collect();
        assert!(missing.is_empty(), "name {missing:?} in the description of the 4XX of a handler that answers it");
    }
}
