//! What may stand behind the question mark: what a route's description names, and where it names nothing, nothing.
//! A slip of the pen is told instead of being overlooked.

use std::{collections::HashSet, sync::Arc};

use axum::{
    extract::{MatchedPath, Request, State},
    middleware::Next,
    response::{IntoResponse, Response},
};
use utoipa::openapi::{OpenApi, RefOr, path::ParameterIn};

use super::problem::{Code, Problem};

/// The payment provider calls the address that an operator gave it, with whatever that has.
const FOREIGN: &str = "/api/webhooks/payments";

/// Paths whose query is read, as the description has them.
pub fn routes_with_one(description: &OpenApi) -> HashSet<String> {
    let asked = description.paths.paths.iter().filter(|(path, item)| {
        let operations = [&item.get, &item.post, &item.put, &item.patch, &item.delete];
        let mut parameters = operations.into_iter().flatten().flat_map(|o| &o.parameters).flatten();
        path.as_str() == FOREIGN || parameters.any(|p| matches!(p, RefOr::T(p) if p.parameter_in == ParameterIn::Query))
    });
    asked.map(|(path, _)| path.clone()).collect()
}

/// Refuses a query at a route that reads none.
pub async fn refuse_unasked(
    State(asked): State<Arc<HashSet<String>>>,
    route: MatchedPath,
    request: Request,
    next: Next,
) -> Response {
    match request.uri().query() {
        Some(query) if !query.is_empty() && !asked.contains(route.as_str()) => {
            let name = query.split(['=', '&']).next().unwrap_or_default();
            let name: String = name.chars().take(40).collect();
            Problem::new(Code::BadRequest)
                .detail(format!("unknown field `{name}`: nothing is asked for."))
                .into_response()
        }
        _ => next.run(request).await,
    }
}
