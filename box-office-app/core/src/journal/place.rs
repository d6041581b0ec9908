//! Where a file lies: on which machine, and since when. A copy has the bytes of a file, and neither of these.

use std::{
    fs::{self, File},
    io,
    time::UNIX_EPOCH,
};

use serde::{Deserialize, Serialize};

/// What the system calls this machine.
const MACHINE: &str = "/etc/machine-id";

/// What is not known (of a system or a disk that does not say) differs from nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Place {
    machine: Option<String>,
    /// When the file was made, in nanoseconds since 1970; writing and renaming leave it.
    made_ns: Option<u64>,
}

impl Place {
    /// # Errors
    /// The file can't be looked at.
    pub fn of(file: &File) -> io::Result<Self> {
        let machine = fs::read_to_string(MACHINE).ok().map(|id| id.trim().to_owned()).filter(|id| !id.is_empty());
        let made = file.metadata()?.created().ok();
        let since_1970 = made.and_then(|made| made.duration_since(UNIX_EPOCH).ok());
        Ok(Self { machine, made_ns: since_1970.and_then(|since| since.as_nanos().try_into().ok()) })
    }

    pub fn differs(&self, other: &Self) -> bool {
        differ(&self.machine, &other.machine) || differ(&self.made_ns, &other.made_ns)
    }

    pub fn to_bytes(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("a name and a number have a JSON form")
    }

    pub fn read(bytes: &[u8]) -> Option<Self> {
        serde_json::from_slice(bytes).ok()
    }
}

fn differ<T: PartialEq>(one: &Option<T>, other: &Option<T>) -> bool {
    matches!((one, other), (Some(one), Some(other)) if one != other)
}
