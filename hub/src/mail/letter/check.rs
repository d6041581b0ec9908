//! The mail that checks an address: a link, and how long it is good.

use sqlx::PgPool;
use uuid::Uuid;

use super::{Decision, Letter, escaped};
use crate::{auth::address, clock, keys::Keys, words::Language};

/// The link is signed when the mail is sent, so that its time begins then.
pub async fn letter(
    pool: &PgPool,
    keys: &Keys,
    public_url: &str,
    mail_id: i64,
    account_id: Uuid,
) -> sqlx::Result<Decision> {
    let about = sqlx::query!("select email, name, language, email_checked_at from account where id = $1", account_id)
        .fetch_optional(pool)
        .await?;
    let Some(about) = about else { return Ok(Decision::Drop("nobody to write to")) };
    if about.email_checked_at.is_some() {
        return Ok(Decision::Drop("the address is checked already"));
    }
    let language = Language::read(&about.language).unwrap_or_default();
    let now = clock::now(&mut *pool.acquire().await?).await?;
    let link = address::link(public_url, &address::code(keys, account_id, &about.email, now).await?);
    let hello = language.fill("mail.hello", &[("name", &about.name)]);
    let (subject, text) = (language.say("mail.check_address.subject"), language.say("mail.check_address.text"));
    let (button, footer) = (language.say("mail.check_address.link"), language.say("mail.check_address.footer"));
    Ok(Decision::Send(Box::new(Letter {
        id: format!("fullhouse-{mail_id}-{}", account_id.simple()),
        text: format!("{hello}\n\n{text}\n\n{button}: {link}\n\n-- \n{footer}\n"),
        html: format!(
            "<!doctype html><html lang=\"{lang}\"><head><meta charset=\"utf-8\">\
             <meta name=\"viewport\" content=\"width=device-width\"><title>{subject}</title></head>\
             <body style=\"margin:0;background:#f4efe6;color:#1f1a15;font:16px/1.5 sans-serif\">\
             <div style=\"max-width:560px;margin:0 auto;padding:24px 16px\">\
             <div style=\"background:#fffdf9;border-top:8px solid #7a4d06;border-radius:8px;padding:24px\">\
             <p dir=\"auto\">{hello}</p><p>{text}</p>\
             <p style=\"margin:24px 0 0\"><a href=\"{link}\" style=\"display:inline-block;background:#7a4d06;color:#fffaf0;\
             padding:12px 20px;border-radius:8px;text-decoration:none\">{button}</a></p></div>\
             <p style=\"color:#655b50;font-size:13px\">{footer}</p></div></body></html>",
            lang = language.code(),
            subject = escaped(subject),
            hello = escaped(&hello),
            text = escaped(text),
            link = escaped(&link),
            button = escaped(button),
            footer = escaped(footer),
        ),
        address: about.email,
        name: about.name,
        language,
        subject: subject.to_owned(),
        pdf: None,
    })))
}
