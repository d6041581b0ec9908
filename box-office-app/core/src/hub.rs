//! A hub, as a till asks it. One request a call: whoever calls decides whether to ask again.

use std::time::Duration;

use fullhouse_protocol::lease::{
    CloseRequest, EndedLease, JournalAnswer, JournalRequest, Lease, LeaseRequest, OwnLeases,
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;
use thiserror::Error;
use uuid::Uuid;

use crate::pulse::SILENCE;

/// Longer than any verb of the hub's may take.
const ANSWER_WITHIN: Duration = Duration::from_secs(15);
const CONNECT_WITHIN: Duration = Duration::from_secs(3);

/// Why there is no answer to go on with.
#[derive(Debug, Error)]
pub enum AskError {
    /// Nobody knows whether the hub did it. Asking again under the same key or number is safe.
    #[error("the hub did not answer")]
    Lost(#[source] reqwest::Error),
    /// It is too busy, or something in between is; asking again is what it asks for.
    #[error("the hub can't answer now ({status})")]
    Busy { status: u16 },
    #[error("the hub refused: {code}")]
    Refused { status: u16, code: String, problem: Value },
    /// Not a hub's, or another version's.
    #[error("the hub's answer could not be read")]
    Unreadable(#[source] serde_json::Error),
    #[error("no client could be made")]
    Client(#[source] reqwest::Error),
}

impl AskError {
    /// Whether the same request may be answered otherwise, without anybody doing anything.
    pub fn passes(&self) -> bool {
        matches!(self, Self::Lost(_) | Self::Busy { .. } | Self::Unreadable(_))
    }

    /// The hub's code of a refusal.
    pub fn code(&self) -> Option<&str> {
        match self {
            Self::Refused { code, .. } => Some(code),
            _ => None,
        }
    }
}

/// The way to a hub, with a terminal's token.
#[derive(Debug, Clone)]
pub struct Hub {
    http: reqwest::Client,
    base: String,
    token: String,
}

impl Hub {
    /// `base`: scheme, host and port, without a path.
    ///
    /// # Errors
    /// [`AskError::Client`].
    pub fn new(base: &str, token: &str) -> Result<Self, AskError> {
        let http = reqwest::Client::builder()
            .connect_timeout(CONNECT_WITHIN)
            .timeout(ANSWER_WITHIN)
            .build()
            .map_err(AskError::Client)?;
        Ok(Self { http, base: base.trim_end_matches('/').to_owned(), token: token.to_owned() })
    }

    /// Whether it is there. Needs no database and no token.
    pub async fn is_there(&self) -> bool {
        let asked = self.http.get(format!("{}/healthz", self.base)).timeout(SILENCE).send().await;
        asked.is_ok_and(|answer| answer.status().is_success())
    }

    /// # Errors
    /// [`AskError`].
    pub async fn own_leases(&self) -> Result<OwnLeases, AskError> {
        read(self.http.get(format!("{}/api/box-office/leases", self.base)).bearer_auth(&self.token)).await
    }

    /// `staff`: the token of whoever is signed in, where the terminal is attended.
    ///
    /// # Errors
    /// [`AskError`].
    pub async fn lease(&self, key: Uuid, ask: &LeaseRequest, staff: Option<&str>) -> Result<Lease, AskError> {
        let request = self.post("leases", ask).header("idempotency-key", key.to_string());
        read(match staff {
            Some(token) => request.header("fullhouse-staff", token),
            None => request,
        })
        .await
    }

    /// # Errors
    /// [`AskError`].
    pub async fn settle(&self, journal: &JournalRequest) -> Result<JournalAnswer, AskError> {
        read(self.post("journal", journal)).await
    }

    /// # Errors
    /// [`AskError`].
    pub async fn close(&self, lease_id: Uuid, report: &CloseRequest) -> Result<EndedLease, AskError> {
        read(self.post(&format!("leases/{lease_id}/close"), report)).await
    }

    fn post(&self, path: &str, body: &impl Serialize) -> reqwest::RequestBuilder {
        self.http.post(format!("{}/api/box-office/{path}", self.base)).bearer_auth(&self.token).json(body)
    }
}

async fn read<T: DeserializeOwned>(request: reqwest::RequestBuilder) -> Result<T, AskError> {
    let answer = request.send().await.map_err(AskError::Lost)?;
    let status = answer.status();
    let body = answer.bytes().await.map_err(AskError::Lost)?;
    if status.is_success() {
        return serde_json::from_slice(&body).map_err(AskError::Unreadable);
    }
    if status.is_server_error() || status.as_u16() == 429 {
        return Err(AskError::Busy { status: status.as_u16() });
    }
    let problem: Value = serde_json::from_slice(&body).map_err(AskError::Unreadable)?;
    let code = problem["code"].as_str().unwrap_or_default().to_owned();
    Err(AskError::Refused { status: status.as_u16(), code, problem })
}
