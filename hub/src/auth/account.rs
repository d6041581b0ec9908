//! Accounts: signing up, signing in, and the first operator.

use sqlx::PgPool;
use uuid::Uuid;

use super::{Account, Auth, Role, password::PasswordError, password::Passwords};
use crate::{db, words::Language};

/// Longer passwords are refused: hashing them would be work that anybody can ask for.
const PASSWORD_LENGTH_MAX: usize = 512;
const NAME_LENGTH_MAX: usize = 200;
const EMAIL_LENGTH_MAX: usize = 254;

/// What somebody gives to get an account, as it came in.
#[derive(Clone)]
pub struct NewAccount {
    pub email: String,
    pub name: String,
    pub password: String,
}

#[derive(Debug, thiserror::Error)]
pub enum AccountError {
    /// Everything that is wrong: the field (`email`, `name` or `password`) and what is wrong with it.
    #[error("{}", .0.iter().map(|(field, sentence)| format!("{field}: {sentence}")).collect::<Vec<_>>().join("; "))]
    Invalid(Vec<(&'static str, String)>),
    #[error("there is an account with this address")]
    EmailTaken,
    #[error("the address and the password do not match")]
    CredentialsWrong,
    #[error("too many tries")]
    TooManyTries,
    #[error("too many passwords are waiting to be hashed")]
    Busy,
    #[error("hashing a password")]
    Hash(#[source] argon2::password_hash::Error),
    #[error("reading or writing the account")]
    Database(#[source] sqlx::Error),
}

impl From<PasswordError> for AccountError {
    fn from(error: PasswordError) -> Self {
        match error {
            PasswordError::Busy => AccountError::Busy,
            PasswordError::Hash(e) => AccountError::Hash(e),
        }
    }
}

impl Auth {
    /// Makes a fan's account. `address` is where the request came from: the last net against floods.
    pub async fn sign_up(&self, new: NewAccount, address: &str) -> Result<Account, AccountError> {
        let new = checked(new, self.settings.password_length_min)?;
        if !self.attempts.take(&format!("address {address}"), self.settings.address_tries_max) {
            return Err(AccountError::TooManyTries);
        }
        insert(&self.pool, &self.passwords, new, Role::Fan).await
    }

    /// All that is wrong with the details of a new account.
    pub fn wrong(&self, new: &NewAccount) -> Vec<(&'static str, String)> {
        match checked(new.clone(), self.settings.password_length_min) {
            Err(AccountError::Invalid(wrong)) => wrong,
            _ => Vec::new(),
        }
    }

    /// Finds the account of an address and password.
    ///
    /// An unknown address is verified against the hash of a password that nobody has, so that the
    /// answer takes as long. Wrong tries are counted an address of mail, known or not: at the limit
    /// even the right password is refused until the window is over; open sessions are untouched.
    pub async fn sign_in(&self, email: &str, password: String, address: &str) -> Result<Account, AccountError> {
        let email = normal(email);
        // Tells nothing about the address: the limits are public. It costs no hash, so it is not counted either.
        if password.len() > PASSWORD_LENGTH_MAX || email.len() > EMAIL_LENGTH_MAX {
            return Err(AccountError::CredentialsWrong);
        }
        let (account_tries, address_tries) = (format!("account {email}"), format!("address {address}"));
        if !self.attempts.take(&account_tries, self.settings.sign_in_failures_max) {
            return Err(AccountError::TooManyTries);
        }
        if !self.attempts.take(&address_tries, self.settings.address_tries_max) {
            self.attempts.give_back(&account_tries);
            return Err(AccountError::TooManyTries);
        }
        let answer = self.match_password(&email, password).await;
        // Only a wrong password counts: being busy must lock nobody out.
        if !matches!(answer, Err(AccountError::CredentialsWrong)) {
            self.attempts.give_back(&account_tries);
        }
        answer
    }

    /// Which language an account's tickets and mail have from now on.
    pub async fn set_language(&self, account_id: Uuid, language: Language) -> Result<(), AccountError> {
        let pool = self.pool.clone();
        db::write(async move {
            sqlx::query!("update account set language = $2 where id = $1", account_id, language.code())
                .execute(&pool)
                .await
        })
        .await
        .map_err(AccountError::Database)?;
        Ok(())
    }

    async fn match_password(&self, email: &str, password: String) -> Result<Account, AccountError> {
        let found = sqlx::query!(
            r#"select id, email, name, role, password_hash, email_checked_at is not null as "email_checked!" from account where email = $1"#,
            email
        )
            .fetch_optional(&self.pool)
            .await
            .map_err(AccountError::Database)?;
        let stored = found.as_ref().map(|a| a.password_hash.clone());
        let matches = self.passwords.verify(password, stored).await?;
        match found {
            Some(a) if matches => Ok(Account {
                id: a.id,
                email: a.email,
                name: a.name,
                role: Role::read(&a.role),
                email_checked: a.email_checked,
            }),
            _ => Err(AccountError::CredentialsWrong),
        }
    }
}

/// Makes an operator, or makes an existing account one and gives it this password. Says whether the account was there.
pub async fn add_operator(
    pool: &PgPool,
    new: NewAccount,
    password_length_min: usize,
) -> Result<(Account, bool), AccountError> {
    let new = checked(new, password_length_min)?;
    let hash = Passwords::new(1, 1).hash(new.password).await?;
    let row = sqlx::query!(
        r#"insert into account (id, email, name, password_hash, role) values ($1, $2, $3, $4, 'operator')
         on conflict (email) do update set role = 'operator', password_hash = excluded.password_hash
         returning id, email, name, (xmax <> 0) as "was_there!", email_checked_at is not null as "email_checked!""#,
        Uuid::now_v7(),
        new.email,
        new.name,
        hash
    )
    .fetch_one(pool)
    .await
    .map_err(AccountError::Database)?;
    let account = Account {
        id: row.id,
        email: row.email,
        name: row.name,
        role: Role::Operator,
        email_checked: row.email_checked,
    };
    Ok((account, row.was_there))
}

async fn insert(pool: &PgPool, passwords: &Passwords, new: NewAccount, role: Role) -> Result<Account, AccountError> {
    let NewAccount { email, name, password } = new;
    let hash = passwords.hash(password).await?;
    let account = Account { id: Uuid::now_v7(), email, name, role, email_checked: false };
    let (pool, row) = (pool.clone(), account.clone());
    let written = db::write(async move {
        sqlx::query!(
            "insert into account (id, email, name, password_hash, role) values ($1, $2, $3, $4, $5)",
            row.id,
            row.email,
            row.name,
            hash,
            row.role.name()
        )
        .execute(&pool)
        .await
    })
    .await;
    match written {
        Ok(_) => Ok(account),
        Err(e) if db::constraint(&e) == Some("account_email_once") => Err(AccountError::EmailTaken),
        Err(e) => Err(AccountError::Database(e)),
    }
}

fn normal(email: &str) -> String {
    email.trim().to_lowercase()
}

/// A name without what would disturb the text around it: control characters, and marks that turn
/// the direction of writing. What joins letters (emoji, Persian, Indic scripts) stays.
fn readable(name: &str) -> String {
    let disturbs = |c: char| {
        c.is_control()
            || matches!(c, '\u{200e}' | '\u{200f}' | '\u{061c}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    name.chars().filter(|c| !disturbs(*c)).collect::<String>().trim().to_owned()
}

/// Something of it can be seen: a name, or a reason, that is only blanks names nobody.
pub fn is_readable(text: &str) -> bool {
    text.chars().any(is_visible)
}

fn is_visible(c: char) -> bool {
    !c.is_whitespace() && !c.is_control() && !is_invisible(c)
}

/// Characters that take no room, or only room: Unicode's default-ignorable ones, and the blanks
/// that are letters or symbols by their category.
fn is_invisible(c: char) -> bool {
    matches!(c,
        '\u{00ad}' | '\u{034f}' | '\u{061c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
        | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{2800}' | '\u{3164}'
        | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fff8}' | '\u{1bca0}'..='\u{1bca3}'
        | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

/// The details as they are stored, or all that is wrong with them.
fn checked(new: NewAccount, password_length_min: usize) -> Result<NewAccount, AccountError> {
    let mut wrong = Vec::new();
    let email = normal(&new.email);
    let shaped = email.split_once('@').is_some_and(|(local, host)| {
        !local.is_empty() && !host.is_empty() && !host.contains('@') && !host.starts_with('.') && !host.ends_with('.')
    });
    // Nor what the mail can't be sent to: by the letter's own rules.
    if !shaped
        || email.parse::<lettre::Address>().is_err()
        || email.len() > EMAIL_LENGTH_MAX
        || email.chars().any(|c| c.is_whitespace() || c.is_control() || is_invisible(c))
    {
        wrong.push(("email", "this is not an address of mail".to_owned()));
    }
    let name = readable(&new.name);
    if !is_readable(&name) || name.chars().count() > NAME_LENGTH_MAX {
        wrong.push(("name", format!("a name has 1 to {NAME_LENGTH_MAX} characters, and one of them can be seen")));
    }
    if new.password.chars().count() < password_length_min || new.password.len() > PASSWORD_LENGTH_MAX {
        wrong.push((
            "password",
            format!("a password has {password_length_min} characters or more, and {PASSWORD_LENGTH_MAX} bytes at most"),
        ));
    }
    if wrong.is_empty() {
        Ok(NewAccount { email, name, password: new.password })
    } else {
        Err(AccountError::Invalid(wrong))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field_refused(email: &str, name: &str, password: &str) -> Option<&'static str> {
        let new = NewAccount { email: email.into(), name: name.into(), password: password.into() };
        match checked(new, 10) {
            Ok(_) => None,
            Err(AccountError::Invalid(wrong)) => Some(wrong[0].0),
            Err(other) => panic!("{other}"),
        }
    }

    #[test]
    fn details_are_checked_one_by_one() {
        assert_eq!(field_refused("a@b.example", "A", "long enough"), None);
        for email in [
            "",
            "a",
            "@b",
            "a@",
            "a@b@c",
            "a b@c",
            "a@.c",
            "a@c.",
            "a\n@c",
            "<a@x.org>",
            "a..b@x.org",
            &format!("{}@c", "a".repeat(260)),
        ] {
            assert_eq!(field_refused(email, "A", "long enough"), Some("email"), "{email:?}");
        }
        for name in ["", "  ", "\u{0}", "\u{200b}\u{3164}", "\u{2800}\u{202e}", "\u{feff} \u{ad}", &"n".repeat(201)] {
            assert_eq!(field_refused("a@b", name, "long enough"), Some("name"), "{name:?}");
        }
        for password in ["", "too short", &"p".repeat(513)] {
            assert_eq!(field_refused("a@b", "A", password), Some("password"));
        }
    }

    #[test]
    fn a_name_keeps_its_letters_and_loses_what_disturbs_others() {
        for (given, stored) in [
            ("Ana\u{202e}anA", "AnaanA"),
            ("\u{2067}Ana\u{2069}", "Ana"),
            ("A\u{7}na\n", "Ana"),
            ("\u{200f}\u{5e2}\u{5e0}\u{5ea}", "\u{5e2}\u{5e0}\u{5ea}"),
            ("\u{0646}\u{0627}\u{0645}\u{200c}\u{0647}\u{0627}", "\u{0646}\u{0627}\u{0645}\u{200c}\u{0647}\u{0627}"),
            ("\u{1f469}\u{200d}\u{1f3a4}", "\u{1f469}\u{200d}\u{1f3a4}"),
            ("김\u{1160}", "김\u{1160}"),
        ] {
            let new = NewAccount { email: "a@b".into(), name: given.into(), password: "long enough".into() };
            assert_eq!(checked(new, 10).unwrap().name, stored, "{given:?}");
        }
        assert_eq!(
            field_refused("a\u{200b}na@b", "A", "long enough"),
            Some("email"),
            "two addresses that look the same"
        );
    }

    #[test]
    fn an_address_is_trimmed_and_lowercased() {
        let new =
            NewAccount { email: " Ana@Example.ORG ".into(), name: " Ana ".into(), password: "long enough".into() };
        let new = checked(new, 10).unwrap();
        assert_eq!((new.email.as_str(), new.name.as_str()), ("ana@example.org", "Ana"));
    }
}
