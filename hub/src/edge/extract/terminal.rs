//! Who acts at a terminal: which one it is, and at an attended one who stands behind it.

use axum::{
    extract::{FromRef, FromRequestParts},
    http::{HeaderMap, header, request::Parts},
};
use fullhouse_protocol::clerk::StaffRole;

use crate::{
    auth::{Actor, Auth, OnDuty, Till},
    edge::problem::{Code, Problem},
    serve::Hub,
};

/// A till or kiosk, by `Authorization: Bearer`, unless it is locked.
impl FromRequestParts<Hub> for Till {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, hub: &Hub) -> Result<Self, Problem> {
        let Terminal(till) = Terminal::from_request_parts(parts, hub).await?;
        match till.locked_reason {
            None => Ok(till),
            Some(reason) => Err(Problem::new(Code::TerminalLocked).with("reason", reason)),
        }
    }
}

/// A till or kiosk, locked or not: for what even a locked one may say.
#[derive(Debug, Clone)]
pub struct Terminal(pub Till);

impl FromRequestParts<Hub> for Terminal {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, hub: &Hub) -> Result<Self, Problem> {
        let needed = |what| Problem::new(Code::NotSignedIn).detail(what);
        let token = bearer(&parts.headers).ok_or_else(|| {
            needed("This needs a terminal's token (`Authorization: Bearer`), also of somebody who has signed in.")
        })?;
        let till = Auth::from_ref(hub).till(token).await?;
        till.map(Self).ok_or_else(|| needed("This terminal's token is unknown, or was revoked."))
    }
}

/// Who acts at a terminal: at an attended one somebody of the staff, who has signed in there (`Fullhouse-Staff`).
#[derive(Debug, Clone)]
pub struct Acting {
    pub till: Till,
    /// None: a kiosk's customer, or a counter at which nobody signs in.
    pub staff: Option<OnDuty>,
}

impl FromRequestParts<Hub> for Acting {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, hub: &Hub) -> Result<Self, Problem> {
        let till = <Till as FromRequestParts<Hub>>::from_request_parts(parts, hub).await?;
        let staff = if till.attended { Some(on_duty(parts, hub, &till).await?) } else { None };
        Ok(Self { till, staff })
    }
}

impl Acting {
    /// As the books and the log name them.
    pub fn actor(&self) -> Actor {
        let name = match &self.staff {
            Some(staff) => format!("{} at {}", staff.name, self.till.name),
            None => format!("terminal {}", self.till.name),
        };
        Actor::at_terminal(name, self.till.terminal_id, self.staff.as_ref().map(|staff| staff.staff_id))
    }

    /// Refuses whoever has a lesser role. Where nobody signs in, whoever has the terminal's token may.
    pub fn needs(&self, role: StaffRole) -> Result<(), Problem> {
        match &self.staff {
            Some(staff) if staff.role < role => {
                Err(Problem::new(Code::RoleTooLow).detail(format!("This is a {}'s to do.", role.name())))
            }
            _ => Ok(()),
        }
    }
}

/// A till with somebody of the house behind it, of whatever role. A kiosk stands among the public: it holds and gives
/// back like a fan, but takes no cash, gives nothing away and blocks nothing.
#[derive(Debug, Clone)]
pub struct Clerk(pub Acting);

impl FromRequestParts<Hub> for Clerk {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, hub: &Hub) -> Result<Self, Problem> {
        at_counter(parts, hub, StaffRole::Clerk).await.map(Self)
    }
}

/// The same, of a supervisor or a manager.
#[derive(Debug, Clone)]
pub struct Supervisor(pub Acting);

impl FromRequestParts<Hub> for Supervisor {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, hub: &Hub) -> Result<Self, Problem> {
        at_counter(parts, hub, StaffRole::Supervisor).await.map(Self)
    }
}

/// The same, of a manager.
#[derive(Debug, Clone)]
pub struct Manager(pub Acting);

impl FromRequestParts<Hub> for Manager {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, hub: &Hub) -> Result<Self, Problem> {
        at_counter(parts, hub, StaffRole::Manager).await.map(Self)
    }
}

async fn at_counter(parts: &mut Parts, hub: &Hub, role: StaffRole) -> Result<Acting, Problem> {
    let acting = Acting::from_request_parts(parts, hub).await?;
    if !acting.till.is_counter() {
        return Err(Problem::new(Code::Forbidden).detail("This is for the counter's tills."));
    }
    acting.needs(role)?;
    Ok(acting)
}

/// The header that carries a staff session's token, beside the terminal's own.
pub const STAFF_HEADER: &str = "fullhouse-staff";

async fn on_duty(parts: &Parts, hub: &Hub, till: &Till) -> Result<OnDuty, Problem> {
    let token = staff_token(&parts.headers).ok_or(Code::StaffRequired)?;
    let found = Auth::from_ref(hub).on_duty(till.terminal_id, token).await?;
    found.ok_or_else(|| Problem::new(Code::StaffRequired).detail("This session has ended, or is another terminal's."))
}

/// Somebody of the staff who has signed in at this terminal, attended or not.
#[derive(Debug, Clone)]
pub struct SignedInHere {
    pub till: Till,
    pub staff: OnDuty,
}

impl FromRequestParts<Hub> for SignedInHere {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, hub: &Hub) -> Result<Self, Problem> {
        let till = <Till as FromRequestParts<Hub>>::from_request_parts(parts, hub).await?;
        let staff = on_duty(parts, hub, &till).await?;
        Ok(Self { till, staff })
    }
}

/// The token of `Fullhouse-Staff`.
pub fn staff_token(headers: &HeaderMap) -> Option<&str> {
    headers.get(STAFF_HEADER)?.to_str().ok().map(str::trim).filter(|token| !token.is_empty())
}

/// The token of `Authorization: Bearer`.
pub fn bearer(headers: &HeaderMap) -> Option<&str> {
    let (scheme, token) = headers.get(header::AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then_some(token.trim()).filter(|token| !token.is_empty())
}
