//! Who this machine is: told once by a code, kept until it is enrolled anew.

use std::{
    fs, io,
    io::Write,
    net::IpAddr,
    os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt},
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::Token;
use crate::scan::Layout;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Staff stand behind it.
    Counter,
    /// It stands among the public.
    Kiosk,
}

/// Where a hub is: `https://…`, or `http://` on this very machine. Without a slash at its end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Address(String);

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AddressError {
    #[error("this is not an address such as https://tickets.example.org")]
    NotAnAddress,
    #[error("a terminal's token travels by https only; http is for a hub on this machine")]
    NotPrivate,
}

impl Address {
    pub fn parse(text: &str) -> Result<Self, AddressError> {
        let text = text.trim();
        let url = reqwest::Url::parse(text).map_err(|_| AddressError::NotAnAddress)?;
        let host = url.host_str().ok_or(AddressError::NotAnAddress)?;
        let bare = url.path() == "/" && url.query().is_none() && url.fragment().is_none() && url.username().is_empty();
        if !bare || url.password().is_some() {
            return Err(AddressError::NotAnAddress);
        }
        let here = host == "localhost"
            || host.trim_matches(['[', ']']).parse::<IpAddr>().is_ok_and(|address| address.is_loopback());
        match url.scheme() {
            "https" => {}
            "http" if here => {}
            "http" => return Err(AddressError::NotPrivate),
            _ => return Err(AddressError::NotAnAddress),
        }
        Ok(Self(url.as_str().trim_end_matches('/').to_owned()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for Address {
    type Error = AddressError;

    fn try_from(text: String) -> Result<Self, AddressError> {
        Self::parse(&text)
    }
}

impl From<Address> for String {
    fn from(address: Address) -> Self {
        address.0
    }
}

/// What is kept of an enrolment, but for the token.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    pub hub: Address,
    pub terminal_id: Uuid,
    pub name: String,
    pub role: Role,
    /// Staff sign in at it.
    pub attended: bool,
    /// Hash of the PIN that opens a kiosk ([`super::exit`]).
    #[serde(default)]
    pub exit_pin: Option<String>,
}

/// Where the token is kept: the system's keyring, or a file.
pub trait TokenStore: Send + Sync {
    fn keep(&self, token: &Token) -> io::Result<()>;
    /// `None` if there is none.
    fn read(&self) -> io::Result<Option<Token>>;
    fn forget(&self) -> io::Result<()>;
}

/// The terminal's folder, which nobody else on the machine can read.
#[derive(Debug, Clone)]
pub struct Home(PathBuf);

const RECORD: &str = "terminal.json";
const TOKEN: &str = "token";
const SCANNER: &str = "scanner.json";

impl Home {
    pub fn open(folder: &Path) -> io::Result<Self> {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        fs::set_permissions(folder, fs::Permissions::from_mode(0o700))?;
        Ok(Self(folder.to_owned()))
    }

    pub fn folder(&self) -> &Path {
        &self.0
    }

    /// `None` if the machine is not enrolled. A record that can't be read is an error, not "none": whoever enrols it
    /// anew should know.
    pub fn record(&self) -> io::Result<Option<Record>> {
        match fs::read(self.0.join(RECORD)) {
            Ok(bytes) => serde_json::from_slice(&bytes).map(Some).map_err(io::Error::other),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    pub fn keep(&self, record: &Record) -> io::Result<()> {
        self.replace(RECORD, &serde_json::to_vec_pretty(record)?)
    }

    pub fn forget(&self) -> io::Result<()> {
        remove(&self.0.join(RECORD))
    }

    /// What this terminal's scanner is set to, as it was learnt; what can't be read is learnt anew.
    pub fn scanner_layout(&self) -> Layout {
        let kept = fs::read(self.0.join(SCANNER)).ok();
        kept.and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or(Layout::Us)
    }

    pub fn keep_scanner_layout(&self, layout: Layout) -> io::Result<()> {
        self.replace(SCANNER, &serde_json::to_vec(&layout)?)
    }

    /// Where the token is kept if the system has no keyring.
    pub fn token_file(&self) -> TokenFile {
        TokenFile(self.clone())
    }

    /// All of the new content or all of the old, whenever the power goes.
    pub(super) fn replace(&self, name: &str, content: &[u8]) -> io::Result<()> {
        let fresh = self.0.join(format!("{name}.new"));
        remove(&fresh)?; // left by a power cut, perhaps with other permissions
        let mut file = fs::OpenOptions::new().create_new(true).write(true).mode(0o600).open(&fresh)?;
        file.write_all(content)?;
        file.sync_all()?;
        fs::rename(&fresh, self.0.join(name))?;
        fs::File::open(&self.0)?.sync_all()
    }
}

fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// The token in a file that only this user can read.
#[derive(Debug, Clone)]
pub struct TokenFile(Home);

impl TokenStore for TokenFile {
    fn keep(&self, token: &Token) -> io::Result<()> {
        self.0.replace(TOKEN, token.to_store().as_bytes())
    }

    fn read(&self) -> io::Result<Option<Token>> {
        match fs::read_to_string(self.0.0.join(TOKEN)) {
            Ok(text) => Ok(Some(Token::new(text))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn forget(&self) -> io::Result<()> {
        remove(&self.0.0.join(TOKEN))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("fullhouse-record-{name}-{}", Uuid::new_v4()));
        fs::create_dir(&folder).unwrap();
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o755)).unwrap();
        folder
    }

    #[test]
    fn a_record_is_found_again_and_nobody_else_can_read_it() {
        let folder = folder("kept");
        let home = Home::open(&folder).unwrap();
        assert_eq!(home.record().unwrap(), None);
        let record = Record {
            hub: Address::parse("https://hall.example/").unwrap(),
            terminal_id: Uuid::new_v4(),
            name: "Counter 1".into(),
            role: Role::Counter,
            attended: true,
            exit_pin: None,
        };
        home.keep(&record).unwrap();
        home.token_file().keep(&Token::new("secret".into())).unwrap();
        assert_eq!(home.record().unwrap(), Some(record));
        assert_eq!(home.token_file().read().unwrap(), Some(Token::new("secret".into())));
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&folder), 0o700);
        assert_eq!(mode(&folder.join(TOKEN)), 0o600);
        assert_eq!(mode(&folder.join(RECORD)), 0o600);
        assert!(!fs::read_to_string(folder.join(RECORD)).unwrap().contains("secret"));
        home.token_file().forget().unwrap();
        home.forget().unwrap();
        home.forget().unwrap();
        assert_eq!(home.token_file().read().unwrap(), None);
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_scanners_layout_is_kept_and_learnt_anew_if_it_is_lost() {
        let folder = folder("scanner");
        let home = Home::open(&folder).unwrap();
        assert_eq!(home.scanner_layout(), Layout::Us);
        home.keep_scanner_layout(Layout::Fr).unwrap();
        assert_eq!(home.scanner_layout(), Layout::Fr);
        fs::write(folder.join(SCANNER), "\"klingon\"").unwrap();
        assert_eq!(home.scanner_layout(), Layout::Us);
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_damaged_record_is_not_taken_for_none() {
        let folder = folder("damaged");
        let home = Home::open(&folder).unwrap();
        fs::write(folder.join(RECORD), "{\"hub\":").unwrap();
        assert!(home.record().is_err());
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_token_travels_by_https_or_not_at_all() {
        for (text, read) in [
            ("https://hall.example", Ok("https://hall.example")),
            (" https://hall.example:8443/ ", Ok("https://hall.example:8443")),
            ("http://127.0.0.1:8080", Ok("http://127.0.0.1:8080")),
            ("http://[::1]:8080/", Ok("http://[::1]:8080")),
            ("http://localhost:8080", Ok("http://localhost:8080")),
            ("http://hall.example", Err(AddressError::NotPrivate)),
            ("http://10.0.0.5:8080", Err(AddressError::NotPrivate)),
            ("https://hall.example/path", Err(AddressError::NotAnAddress)),
            ("https://user:word@hall.example", Err(AddressError::NotAnAddress)),
            ("ftp://hall.example", Err(AddressError::NotAnAddress)),
            ("hall.example", Err(AddressError::NotAnAddress)),
            ("", Err(AddressError::NotAnAddress)),
        ] {
            assert_eq!(Address::parse(text).map(|address| address.0), read.map(str::to_owned), "{text}");
        }
    }
}
