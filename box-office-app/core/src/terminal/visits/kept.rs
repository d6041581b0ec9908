//! What a kiosk that starts again must know: a payment that was under way, and what staff were called for.

use std::{fs, io};

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::{kiosk::Case, terminal::Home};

const FILE: &str = "visits.json";
/// Staff who never come are called for so much; what comes then is in the log.
const CALLS_MAX: usize = 20;

/// What staff were called for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Call {
    pub case: Case,
    pub order: Option<Uuid>,
    /// What people say at a counter.
    pub code: Option<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Written {
    /// A reader was started, and its customer's visit has not ended.
    #[serde(default)]
    payment: Option<Paying>,
    #[serde(default)]
    calls: Vec<Call>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Paying {
    order: Option<Uuid>,
    code: Option<String>,
}

pub struct Kept {
    home: Home,
    now: Written,
}

impl Kept {
    /// A payment that was under way is one that staff are called for.
    pub fn read(home: Home) -> io::Result<Self> {
        let now = match fs::read(home.folder().join(FILE)) {
            Ok(bytes) => serde_json::from_slice(&bytes).map_err(io::Error::other)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => Written::default(),
            Err(error) => return Err(error),
        };
        let mut kept = Self { home, now };
        if let Some(Paying { order, code }) = kept.now.payment.take() {
            kept.call(Call { case: Case::PaymentInDoubt, order, code });
        }
        Ok(kept)
    }

    pub fn calls(&self) -> &[Call] {
        &self.now.calls
    }

    /// Before the hub is asked for it.
    ///
    /// # Errors
    /// It is not on the disk: nothing may be paid.
    pub fn payment(&mut self, order: Option<Uuid>, code: Option<String>) -> io::Result<()> {
        self.now.payment = Some(Paying { order, code });
        self.write()
    }

    pub fn no_payment(&mut self) {
        if self.now.payment.take().is_some() {
            self.try_write();
        }
    }

    /// An order that they were called for before is called by its code again: its customer is gone, and nothing else
    /// knows it.
    pub fn call(&mut self, call: Call) {
        let known =
            self.now.calls.iter().filter(|before| before.order == call.order).find_map(|before| before.code.clone());
        let call = Call { code: call.code.clone().or(known), ..call };
        if self.now.calls.len() < CALLS_MAX && !self.now.calls.contains(&call) {
            self.now.calls.push(call);
        }
        self.try_write();
    }

    pub fn clear_calls(&mut self) {
        self.now.calls.clear();
        self.try_write();
    }

    fn try_write(&self) {
        if let Err(error) = self.write() {
            tracing::error!(%error, "what staff are called for can't be written down");
        }
    }

    fn write(&self) -> io::Result<()> {
        self.home.replace(FILE, &serde_json::to_vec_pretty(&self.now)?)
    }
}
