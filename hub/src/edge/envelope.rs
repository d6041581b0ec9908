//! What every answer gets, whoever gives it: an id, a bound on its time, an end to panics, headers that
//! keep browsers careful, and a place in the metrics.

use std::{panic::AssertUnwindSafe, time::Instant};

use axum::{
    extract::{MatchedPath, Request, State},
    http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header},
    middleware::Next,
    response::{IntoResponse, Response},
};
use futures_util::FutureExt;
use tracing::Instrument;
use uuid::Uuid;

use super::problem::{Code, Problem};
use crate::{
    config::{self, Config},
    serve::Hub,
};

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Wraps every address of the hub.
pub async fn envelope(State(hub): State<Hub>, request: Request, next: Next) -> Response {
    let began = Instant::now();
    let id = Uuid::now_v7();
    let method = method_name(request.method());
    let route = request.extensions().get::<MatchedPath>().map_or_else(|| "other".to_owned(), |m| m.as_str().to_owned());
    let is_api = request.uri().path().starts_with("/api");
    let span = tracing::info_span!("request", request.id = %id, http.method = method, http.route = route);

    let bounded = tokio::time::timeout(hub.request_timeout(), next.run(request));
    let mut response = match AssertUnwindSafe(bounded).catch_unwind().instrument(span.clone()).await {
        Ok(Ok(response)) => response,
        Ok(Err(_)) => {
            span.in_scope(|| tracing::warn!("a request was not answered in time"));
            // What it was writing is still written; its idempotency key finds the answer.
            Problem::new(Code::Busy).detail("No answer in time. The request may have been carried out.").into_response()
        }
        Err(panic) => span.in_scope(|| Problem::internal(panic_text(&*panic))).into_response(),
    };

    // A browser looks for none of them in the answer that becomes a socket, of which there may be thousands a second.
    let is_shown = response.status() != StatusCode::SWITCHING_PROTOCOLS;
    let headers = response.headers_mut();
    if is_api && is_shown && !headers.contains_key(header::CACHE_CONTROL) {
        // What is not declared to be anybody's is somebody's own.
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    }
    if is_shown {
        for (name, value) in hub.careful_headers.iter() {
            headers.insert(name, value.clone());
        }
    }
    if let Ok(id) = HeaderValue::from_str(&id.to_string()) {
        headers.insert(REQUEST_ID, id);
    }
    hub.metrics.answered(method, &route, response.status().as_u16(), began.elapsed());
    response
}

/// The methods that a client may make up are one series.
fn method_name(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::HEAD => "HEAD",
        Method::POST => "POST",
        Method::PUT => "PUT",
        Method::PATCH => "PATCH",
        Method::DELETE => "DELETE",
        Method::OPTIONS => "OPTIONS",
        _ => "other",
    }
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied().or(panic.downcast_ref::<String>().map(String::as_str));
    format!("a panic: {}", text.unwrap_or("without a text"))
}

/// What a browser is told to be careful about. Built once: it depends only on the settings.
pub fn careful_headers(config: &Config) -> anyhow::Result<HeaderMap> {
    let mut headers = HeaderMap::new();
    let mut set = |name: HeaderName, value: &str| -> anyhow::Result<()> {
        headers.insert(name, HeaderValue::from_str(value)?);
        Ok(())
    };
    set(header::CONTENT_SECURITY_POLICY, &content_security_policy(&config.http, &config.payment))?;
    set(header::X_CONTENT_TYPE_OPTIONS, "nosniff")?;
    set(header::REFERRER_POLICY, "same-origin")?;
    set(header::X_FRAME_OPTIONS, "DENY")?;
    set(HeaderName::from_static("cross-origin-opener-policy"), "same-origin")?;
    set(HeaderName::from_static("permissions-policy"), "camera=(), geolocation=(), microphone=()")?;
    if config.http.public_url.starts_with("https://") {
        set(header::STRICT_TRANSPORT_SECURITY, "max-age=31536000")?;
    }
    Ok(headers)
}

/// The page runs its own script and style only, talks to its own hub only, and frames only the provider's card form.
fn content_security_policy(http: &config::Http, payment: &config::Payment) -> String {
    let socket = match origin(&http.public_url) {
        // Older Safaris do not count a socket to the same host as 'self'.
        Some(origin) => format!(" {}", origin.replacen("http", "ws", 1)),
        None => String::new(),
    };
    let frame = origin(&payment.form_url).unwrap_or("'none'");
    format!(
        "default-src 'self'; script-src 'self'; style-src 'self'; \
         img-src 'self' data:; connect-src 'self'{socket}; frame-src {frame}; object-src 'none'; \
         base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
    )
}

/// Scheme, host and port of an address.
pub fn origin(url: &str) -> Option<&str> {
    let (scheme, rest) = url.split_once("://")?;
    let host = rest.split(['/', '?', '#']).next().filter(|host| !host.is_empty())?;
    Some(&url[..scheme.len() + 3 + host.len()])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_origin_has_no_path() {
        assert_eq!(origin("https://pay.example:8443/form?x=1"), Some("https://pay.example:8443"));
        assert_eq!(origin("http://h"), Some("http://h"));
        assert_eq!(origin(""), None);
        assert_eq!(origin("http:///x"), None);
    }

    #[test]
    fn only_the_card_form_is_framed() {
        let mut config = Config::defaults();
        assert!(content_security_policy(&config.http, &config.payment).contains("frame-src 'none';"));
        config.http.public_url = "https://hall.example".into();
        config.payment.form_url = "https://pay.example/form".into();
        let policy = content_security_policy(&config.http, &config.payment);
        assert!(policy.contains("frame-src https://pay.example;"), "{policy}");
        assert!(policy.contains("connect-src 'self' wss://hall.example;"), "{policy}");
    }
}
