//! How mail leaves: by SMTP, or into a folder where people can look at it.

use std::{path::PathBuf, time::Duration};

use anyhow::Context;
use lettre::{
    Address, AsyncFileTransport, AsyncSmtpTransport, AsyncTransport, Message, Tokio1Executor,
    message::{
        Attachment, Mailbox, MultiPart, SinglePart,
        header::{ContentType, HeaderName, HeaderValue},
    },
    transport::smtp,
};

use super::letter::Letter;
use crate::config;

/// Answers that are about us and our settings, not about this mail: try again when somebody has seen to them.
const OURS: [u16; 5] = [421, 530, 534, 535, 538];
/// Of what a server said, so much is kept.
const REASON_CHARS_MAX: usize = 300;

/// Cheap to clone.
#[derive(Clone)]
pub struct Post {
    from: Mailbox,
    way: Way,
}

#[derive(Clone)]
enum Way {
    Smtp(AsyncSmtpTransport<Tokio1Executor>),
    Folder(AsyncFileTransport<Tokio1Executor>),
}

#[derive(Debug, thiserror::Error)]
pub enum PostError {
    /// It may work later.
    #[error("{0}")]
    Later(String),
    /// It never will.
    #[error("{0}")]
    Never(String),
}

impl std::fmt::Debug for Post {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self.way {
            Way::Smtp(_) => "Post(smtp)",
            Way::Folder(_) => "Post(folder)",
        })
    }
}

/// Whether mail goes there, as far as its spelling tells.
pub fn is_address(text: &str) -> bool {
    text.len() <= 254 && text.parse::<Address>().is_ok()
}

impl Post {
    /// None: neither a server nor a folder is set, and mail waits in the queue.
    pub fn open(settings: &config::Mail) -> anyhow::Result<Option<Self>> {
        let way = match (settings.smtp_url.reveal(), settings.folder.as_str()) {
            ("", "") => return Ok(None),
            ("", folder) => {
                let folder = PathBuf::from(folder);
                std::fs::create_dir_all(&folder).with_context(|| format!("mail.folder {}", folder.display()))?;
                Way::Folder(AsyncFileTransport::new(folder))
            }
            (url, _) => {
                // The error would show the password.
                let smtp = AsyncSmtpTransport::<Tokio1Executor>::from_url(url)
                    .ok()
                    .context("mail.smtp_url is no address of a mail server")?;
                Way::Smtp(smtp.timeout(Some(Duration::from_secs(settings.timeout_s))).build())
            }
        };
        let from = settings.from.parse().with_context(|| format!("mail.from {:?}", settings.from))?;
        Ok(Some(Self { from, way }))
    }

    /// Hands a letter over. Once it has answered, the server has it.
    pub async fn send(&self, letter: &Letter) -> Result<(), PostError> {
        let message = self.message(letter)?;
        match &self.way {
            Way::Smtp(smtp) => smtp.send(message).await.map(drop).map_err(judge),
            Way::Folder(folder) => folder.send(message).await.map(drop).map_err(|e| PostError::Later(e.to_string())),
        }
    }

    /// Names and subjects become encoded words, so that nothing in them can end a header.
    fn message(&self, letter: &Letter) -> Result<Message, PostError> {
        let never = |what: &str| PostError::Never(what.to_owned());
        let address: Address = letter.address.parse().map_err(|_| never("the account's address is none for mail"))?;
        let texts = MultiPart::alternative()
            .singlepart(SinglePart::plain(letter.text.clone()))
            .singlepart(SinglePart::html(letter.html.clone()));
        let pdf = ContentType::parse("application/pdf").map_err(|_| never("no type for a PDF"))?;
        let body = match &letter.pdf {
            Some((name, bytes)) => {
                MultiPart::mixed().multipart(texts).singlepart(Attachment::new(name.clone()).body(bytes.clone(), pdf))
            }
            None => texts,
        };
        let mut message = Message::builder()
            .from(self.from.clone())
            .to(Mailbox::new(Some(one_line(&letter.name)).filter(|name| !name.is_empty()), address))
            .subject(one_line(&letter.subject))
            .message_id(Some(format!("<{}@{}>", letter.id, self.from.email.domain())))
            .multipart(body)
            .map_err(|e| PostError::Never(e.to_string()))?;
        let headers = message.headers_mut();
        // No out-of-office answers, please.
        for (name, value) in [("Auto-Submitted", "auto-generated"), ("Content-Language", letter.language.code())] {
            headers.insert_raw(HeaderValue::new(HeaderName::new_from_ascii_str(name), value.to_owned()));
        }
        Ok(message)
    }
}

/// Without controls of any kind: what is a line stays one.
fn one_line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() || matches!(c, '\u{2028}' | '\u{2029}') { ' ' } else { c }).collect()
}

fn judge(error: smtp::Error) -> PostError {
    let status = error.status().map(u16::from);
    let mut reason = error.to_string();
    if let Some(source) = std::error::Error::source(&error) {
        reason = format!("{reason}: {source}");
    }
    let reason: String = reason.chars().take(REASON_CHARS_MAX).collect();
    match status {
        Some(code) if OURS.contains(&code) => PostError::Later(reason),
        _ if error.is_permanent() => PostError::Never(reason),
        _ => PostError::Later(reason),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{config::Config, words::Language};

    fn letter(name: &str, subject: &str) -> Letter {
        Letter {
            id: "mail-7".into(),
            address: "fan@example.com".into(),
            name: name.into(),
            language: Language::Ja,
            subject: subject.into(),
            text: "text".into(),
            html: "<p>text</p>".into(),
            pdf: Some(("tickets.pdf".into(), b"%PDF-".to_vec())),
        }
    }

    fn post() -> Post {
        let folder = std::env::temp_dir().join(format!("fullhouse-post-{}", std::process::id()));
        let settings = config::Mail { folder: folder.display().to_string(), ..Config::defaults().mail };
        let post = Post::open(&settings).unwrap().unwrap();
        std::fs::remove_dir_all(folder).unwrap();
        post
    }

    #[test]
    fn nothing_in_a_name_or_a_title_ends_a_header() {
        for evil in [
            "A\r\nBcc: all@example.com",
            "A\nX: y",
            "\"A\" <b@example.com>, c",
            "=?utf-8?q?=0D=0ABcc:?=",
            "東京 太郎",
            "a\u{2028}b",
        ] {
            let text = String::from_utf8(post().message(&letter(evil, evil)).unwrap().formatted()).unwrap();
            let (head, _) = text.split_once("\r\n\r\n").unwrap();
            let unfolded = head.replace("\r\n ", " ");
            let names: Vec<&str> = unfolded.split("\r\n").map(|line| line.split(':').next().unwrap()).collect();
            for name in &names {
                let known = [
                    "From",
                    "To",
                    "Subject",
                    "Message-ID",
                    "MIME-Version",
                    "Date",
                    "Content-Type",
                    "Auto-Submitted",
                    "Content-Language",
                ];
                assert!(known.contains(name), "{evil:?} made a header: {unfolded}");
            }
            assert_eq!(names.iter().filter(|name| **name == "To").count(), 1);
            let to = unfolded.split("\r\n").find(|line| line.starts_with("To:")).unwrap();
            assert!(to.ends_with("<fan@example.com>") && to.matches('@').count() <= 2, "{to}");
        }
    }

    #[test]
    fn an_address_that_no_server_takes_is_given_up() {
        let letter = Letter { address: "no address".into(), ..letter("A", "S") };
        assert!(matches!(post().message(&letter), Err(PostError::Never(_))));
    }
}
