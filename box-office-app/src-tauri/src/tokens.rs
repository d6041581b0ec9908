//! Where the terminal's token is kept: the system's keyring where there is one, else a file that only this user reads.

use std::{io, sync::mpsc, thread, time::Duration};

use fullhouse_box_office::terminal::{Home, Token, TokenFile, TokenStore};
use keyring::Entry;

const SERVICE: &str = "fullhouse-box-office";
/// A keyring that asks a person for its password has them at the screen; one that never answers is none.
const KEYRING_WITHIN: Duration = Duration::from_secs(5);

/// The keyring first, the file where that fails.
pub struct Tokens {
    /// Terminals of one user that live in different folders don't share an entry.
    account: String,
    file: TokenFile,
}

impl Tokens {
    pub fn of(home: &Home) -> Self {
        Self { account: home.folder().to_string_lossy().into_owned(), file: home.token_file() }
    }

    /// Asks the keyring on a thread of its own: its bus may never answer.
    fn keyring<T: Send + 'static>(
        &self,
        ask: impl FnOnce(Entry) -> keyring::Result<T> + Send + 'static,
    ) -> Option<keyring::Result<T>> {
        let (tell, answer) = mpsc::channel();
        let account = self.account.clone();
        thread::spawn(move || {
            let _ = tell.send(Entry::new(SERVICE, &account).and_then(ask));
        });
        answer.recv_timeout(KEYRING_WITHIN).ok()
    }
}

impl TokenStore for Tokens {
    fn keep(&self, token: &Token) -> io::Result<()> {
        let secret = token.to_store().to_owned();
        match self.keyring(move |entry| entry.set_password(&secret)) {
            Some(Ok(())) => self.file.forget(),
            _ => self.file.keep(token),
        }
    }

    fn read(&self) -> io::Result<Option<Token>> {
        if let Some(token) = self.file.read()? {
            return Ok(Some(token));
        }
        match self.keyring(|entry| entry.get_password()) {
            Some(Ok(token)) => Ok(Some(Token::new(token))),
            _ => Ok(None),
        }
    }

    fn forget(&self) -> io::Result<()> {
        let _ = self.keyring(|entry| entry.delete_credential());
        self.file.forget()
    }
}
