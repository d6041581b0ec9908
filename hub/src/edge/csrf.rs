//! Unsafe requests of a browser come from our own pages, or are refused.
//!
//! A browser says where a request came from: `Sec-Fetch-Site`, or `Origin` in older ones. A request
//! that says neither and carries the session's cookie is refused; without the cookie it can do
//! nothing that anybody could not do. A terminal's token (`Authorization: Bearer`) is not sent by a
//! browser of its own accord, and the provider's webhooks are signed.

use axum::{
    extract::{Request, State},
    http::{HeaderMap, HeaderName, Method, header},
    middleware::Next,
    response::{IntoResponse, Response},
};

use super::{
    envelope::origin,
    extract::{bearer, session_token},
    problem::{Code, Problem},
};
use crate::serve::Hub;

const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// Refuses an unsafe request that came from elsewhere.
pub async fn same_origin(State(hub): State<Hub>, request: Request, next: Next) -> Response {
    let exempt = matches!(*request.method(), Method::GET | Method::HEAD | Method::OPTIONS)
        || request.uri().path().starts_with("/api/webhooks/")
        || bearer(request.headers()).is_some();
    if exempt || is_ours(request.headers(), &hub.config.http.public_url) {
        return next.run(request).await;
    }
    let detail = if request.headers().contains_key(SEC_FETCH_SITE) || request.headers().contains_key(header::ORIGIN) {
        "This address takes writes from its own pages only."
    } else {
        "A write with the session's cookie has to say where it comes from: send Origin or Sec-Fetch-Site: same-origin."
    };
    Problem::new(Code::Csrf).detail(detail).into_response()
}

fn is_ours(headers: &HeaderMap, public_url: &str) -> bool {
    let text = |name: HeaderName| headers.get(name).map(|v| v.to_str().unwrap_or(""));
    if let Some(site) = text(SEC_FETCH_SITE) {
        return matches!(site, "same-origin" | "none");
    }
    if let Some(from) = text(header::ORIGIN) {
        let host = from.split_once("://").map(|(_, host)| host);
        return (host.is_some() && host == text(header::HOST)) || Some(from) == origin(public_url);
    }
    session_token(headers).is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ours(pairs: &[(&'static str, &'static str)]) -> bool {
        let headers = pairs.iter().map(|(n, v)| (n.parse().unwrap(), v.parse().unwrap())).collect();
        is_ours(&headers, "https://hall.example/")
    }

    #[test]
    fn where_a_request_came_from_decides() {
        let cookie = ("cookie", "fh_session=abc");
        let host = ("host", "127.0.0.1:8080");
        for (came_from, expected) in [
            (("sec-fetch-site", "same-origin"), true),
            (("sec-fetch-site", "none"), true),
            (("sec-fetch-site", "same-site"), false),
            (("sec-fetch-site", "cross-site"), false),
            (("origin", "http://127.0.0.1:8080"), true),
            (("origin", "https://hall.example"), true),
            (("origin", "https://hall.example.evil"), false),
            (("origin", "http://evil.example"), false),
            (("origin", "null"), false),
        ] {
            assert_eq!(ours(&[cookie, host, came_from]), expected, "{came_from:?} with a cookie");
            // Without a cookie as well: nobody signs a victim in to another's account.
            assert_eq!(ours(&[host, came_from]), expected, "{came_from:?} without a cookie");
        }
        assert!(!ours(&[cookie, host]), "a cookie needs an origin");
        assert!(ours(&[host]), "a client that is no browser");
        assert!(!ours(&[host, ("sec-fetch-site", "cross-site"), ("origin", "http://127.0.0.1:8080")]));
    }
}
