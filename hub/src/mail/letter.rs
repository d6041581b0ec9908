//! What a mail says, decided when it is sent.

mod check; // does somebody read this address

use chrono::{DateTime, Utc};
use sqlx::PgPool;
use uuid::Uuid;

use super::{
    Kind,
    receipt::{CalledOff, receipt},
};
use crate::{
    clock, currency,
    keys::Keys,
    ticket::{
        pdf::PdfError,
        press::{Press, PressError},
        sheet::{self, Sheet},
    },
    words::Language,
};

/// A mail, ready to go.
#[derive(Debug, Clone)]
pub struct Letter {
    /// The same for every try: who gets it twice can tell.
    pub id: String,
    pub address: String,
    pub name: String,
    pub language: Language,
    pub subject: String,
    pub text: String,
    pub html: String,
    /// Its name and its bytes.
    pub pdf: Option<(String, Vec<u8>)>,
}

/// What becomes of a mail whose turn it is.
#[derive(Debug)]
pub enum Decision {
    Send(Box<Letter>),
    /// There is nothing to say any more; why, for whoever looks.
    Drop(&'static str),
}

#[derive(Debug, thiserror::Error)]
pub enum LetterError {
    #[error("reading what the mail is about")]
    Database(#[from] sqlx::Error),
    #[error("drawing the tickets")]
    Press(#[source] PressError),
}

/// A mail of the queue.
#[derive(Debug, Clone)]
pub struct Errand {
    pub id: i64,
    /// What it is about: an order, or an account.
    pub order_id: Option<Uuid>,
    pub account_id: Option<Uuid>,
    pub kind: String,
    pub occasion: String,
    /// Of a customer without an account, who said where to send it.
    pub address: Option<String>,
    pub language: Option<String>,
    pub tries: i32,
    pub created_at: DateTime<Utc>,
}

/// Decides what an errand says now.
pub async fn decide(
    pool: &PgPool,
    press: &Press,
    keys: &Keys,
    public_url: &str,
    errand: &Errand,
) -> Result<Decision, LetterError> {
    let Some(kind) = Kind::read(&errand.kind) else { return Ok(Decision::Drop("a kind that nobody knows")) };
    if let Some(account_id) = errand.account_id {
        return Ok(check::letter(pool, keys, public_url, errand.id, account_id).await?);
    }
    let Some(order_id) = errand.order_id else { return Ok(Decision::Drop("about nothing")) };
    let mut db = pool.acquire().await?;
    let about = sqlx::query!(
        r#"select o.code, o.state, o.currency, o.payment_due_until, e.name as event_name, e.sale_state, e.time_zone,
                  e.starts_at, e.doors_at, (select c.public_reason from event_cancellation c where c.event_id = e.id) as called_off_reason,
                  a.email as "email?", a.name as "name?", a.language as "language?"
           from "order" o join event e on e.id = o.event_id
           join buyer b on b.id = o.buyer_id left join account a on a.id = b.account_id where o.id = $1"#,
        order_id
    )
    .fetch_optional(&mut *db)
    .await?;
    let Some(about) = about else { return Ok(Decision::Drop("nobody to write to")) };
    let Some(address) = errand.address.clone().or(about.email) else {
        return Ok(Decision::Drop("nobody to write to"));
    };
    let has_account = about.name.is_some();
    let name = about.name.unwrap_or_default();
    let language = errand.language.as_deref().or(about.language.as_deref());
    let language = language.and_then(Language::read).unwrap_or_default();
    let Some(sheet) = sheet::sheet(&mut db, order_id).await? else {
        return Ok(Decision::Drop("there is no such order"));
    };
    let mut blanks: Vec<(&str, String)> = vec![("event", about.event_name.clone())];
    let mut text = format!("mail.{}.text", kind.name());
    let mut reason = None;
    match kind {
        Kind::Tickets | Kind::Reissued => {
            if about.state != "confirmed" || sheet.tickets.is_empty() {
                return Ok(Decision::Drop("the order has no valid tickets"));
            }
            if about.sale_state == "cancelled" {
                return Ok(Decision::Drop("the event is cancelled"));
            }
        }
        Kind::Refunded => {
            let Ok(refund_id) = errand.occasion.parse::<Uuid>() else {
                return Ok(Decision::Drop("no refund is named"));
            };
            let refund = sqlx::query!(
                r#"select r.amount_minor, r.state, coalesce(cardinality(q.seat_nos) > 0, false) as "seats!"
                   from refund r left join refund_request q on q.id = r.request_id where r.id = $1"#,
                refund_id
            )
            .fetch_optional(&mut *db)
            .await?;
            match refund {
                Some(refund) if refund.state != "failed" => {
                    blanks.push(("amount", currency::amount(&about.currency, refund.amount_minor)));
                    if !refund.seats {
                        "mail.refunded_amount.text".clone_into(&mut text);
                    }
                }
                _ => return Ok(Decision::Drop("nothing was given back")),
            }
        }
        Kind::PaymentDue => {
            let due = about.payment_due_until.filter(|_| about.state == "payment_due");
            let Some(until) = due else { return Ok(Decision::Drop("nothing is due any more")) };
            if until <= clock::now(&mut db).await? {
                return Ok(Decision::Drop("it is too late to pay"));
            }
            let local = clock::zone(&about.time_zone).map(|zone| until.with_timezone(&zone).naive_local());
            let local = local.unwrap_or_else(|_| until.naive_utc());
            blanks.push(("until", format!("{} ({})", language.when(local), about.time_zone)));
        }
        Kind::EventCancelled => {
            if about.sale_state != "cancelled" {
                return Ok(Decision::Drop("the event is not cancelled"));
            }
            let money = CalledOff::of(&mut db, order_id).await?;
            if let CalledOff::GoesBack(amount) = money {
                blanks.push(("amount", currency::amount(&about.currency, amount)));
            }
            money.text().clone_into(&mut text);
            reason.clone_from(&about.called_off_reason);
        }
        Kind::EventMoved => {
            if sheet.tickets.is_empty() {
                return Ok(Decision::Drop("the order has no valid tickets"));
            }
            if about.sale_state == "cancelled" {
                return Ok(Decision::Drop("the event is cancelled"));
            }
            if about.starts_at <= clock::now(&mut db).await? {
                return Ok(Decision::Drop("the event has begun"));
            }
            let told = Told::read(&errand.occasion);
            if told
                == Some(Told { starts: about.starts_at.timestamp(), doors: about.doors_at.map(|at| at.timestamp()) })
            {
                return Ok(Decision::Drop("it takes place as was said"));
            }
        }
        Kind::CheckAddress => return Ok(Decision::Drop("it is about an account, and names an order")),
    }
    let receipt = match kind {
        Kind::Tickets => receipt(&mut db, language, &about.currency, order_id).await?,
        _ => Vec::new(),
    };
    drop(db); // drawing takes a while
    let pdf = match kind {
        Kind::Tickets | Kind::Reissued | Kind::EventMoved => match press.print(sheet.clone()).await {
            Ok(printed) => Some((format!("tickets-{}.pdf", about.code), printed.pdf)),
            Err(PressError::Pdf(PdfError::Nothing)) => return Ok(Decision::Drop("the order has no valid tickets")),
            Err(error) => return Err(LetterError::Press(error)),
        },
        _ => None,
    };
    let blanks: Vec<(&str, &str)> = blanks.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let reason = reason.map(|reason| language.fill("mail.event_cancelled.reason", &[("reason", &reason)]));
    let words = Words {
        language,
        subject: language.fill(&format!("mail.{}.subject", kind.name()), &blanks),
        hello: if has_account { language.fill("mail.hello", &[("name", &name)]) } else { String::new() },
        text: language.fill(&text, &blanks),
        reason,
        order: language.fill("mail.order", &[("code", &about.code)]),
        receipt,
        link: has_account.then(|| format!("{public_url}/orders/{order_id}")),
    };
    let shows_seats = pdf.is_some();
    Ok(Decision::Send(Box::new(Letter {
        id: format!("fullhouse-{}-{}", errand.id, order_id.simple()),
        address,
        name,
        language,
        text: words.plain(&sheet, shows_seats),
        html: words.html(&sheet, shows_seats),
        subject: words.subject,
        pdf,
    })))
}

/// When an event was to begin and to open its doors, as its tickets' buyer was told last: Unix seconds.
#[derive(Debug, PartialEq, Eq)]
struct Told {
    starts: i64,
    doors: Option<i64>,
}

impl Told {
    /// From the occasion of a mail, as `event_tells_that_it_moved` writes it.
    fn read(occasion: &str) -> Option<Self> {
        let mut parts = occasion.split(' ');
        let starts = parts.next()?.parse().ok()?;
        let doors = match parts.next()? {
            "-" => None,
            doors => Some(doors.parse().ok()?),
        };
        Some(Self { starts, doors })
    }
}

/// The parts that both versions of a mail have.
struct Words {
    language: Language,
    subject: String,
    hello: String,
    text: String,
    /// Why an event is called off, as the house tells everybody.
    reason: Option<String>,
    order: String,
    /// What was paid, and with which card: a line each.
    receipt: Vec<String>,
    /// Of whoever has an account to look at it with.
    link: Option<String>,
}

impl Words {
    fn head(&self, sheet: &Sheet) -> [String; 3] {
        let place = [sheet.venue.as_str(), sheet.city.as_str()].into_iter().filter(|p| !p.is_empty());
        let place = place.collect::<Vec<_>>().join(", ");
        [sheet.event_name.clone(), place, format!("{} ({})", self.language.when(sheet.starts), sheet.zone)]
    }

    fn seats(&self, sheet: &Sheet) -> Vec<[String; 2]> {
        let say = |key| self.language.say(key);
        let seat = |t: &sheet::SheetTicket| {
            let row =
                if t.row.trim().is_empty() { String::new() } else { format!(" · {} {}", say("ticket.row"), t.row) };
            let place = format!("{}{row} · {} {}", t.section, say(t.numbered()), t.number);
            let price = if sheet.comp && t.amount_minor > 0 {
                self.language.ticket_type("comp")
            } else {
                currency::amount(&sheet.currency, t.amount_minor)
            };
            [place, format!("{} · {price}", self.language.ticket_type(&t.ticket_type))]
        };
        sheet.tickets.iter().map(seat).collect()
    }

    fn plain(&self, sheet: &Sheet, shows_seats: bool) -> String {
        let hello = if self.hello.is_empty() { String::new() } else { format!("{}\n\n", self.hello) };
        let mut text = format!("{hello}{}\n\n", self.text);
        if let Some(reason) = &self.reason {
            text.push_str(&format!("{reason}\n\n"));
        }
        for line in self.head(sheet) {
            text.push_str(&line);
            text.push('\n');
        }
        text.push_str(&format!("{}\n", self.order));
        for [place, price] in self.seats(sheet).iter().filter(|_| shows_seats) {
            text.push_str(&format!("- {place}, {price}\n"));
        }
        for receipt in &self.receipt {
            text.push_str(&format!("{receipt}\n"));
        }
        if let Some(link) = &self.link {
            text.push_str(&format!("\n{}: {link}\n", self.language.say("mail.see_order")));
        }
        text.push_str(&format!("\n-- \n{}\n", self.language.say("mail.footer")));
        text
    }

    fn html(&self, sheet: &Sheet, shows_seats: bool) -> String {
        let [event, place, when] = self.head(sheet).map(|text| escaped(&text));
        let rows: String = self
            .seats(sheet)
            .iter()
            .filter(|_| shows_seats)
            .map(|[place, price]| {
                format!(
                    "<tr><td style=\"padding:8px 16px 8px 0;border-top:1px solid #ddd3c3\">{}</td>\
                     <td style=\"padding:8px 0;border-top:1px solid #ddd3c3;text-align:right\">{}</td></tr>",
                    escaped(place),
                    escaped(price)
                )
            })
            .collect();
        let reason = self.reason.as_ref().map_or_else(String::new, |reason| {
            format!("<p dir=\"auto\" style=\"white-space:pre-line\">{}</p>", escaped(reason))
        });
        let receipt = self.receipt.iter().map(|line| format!("<p style=\"color:#655b50\">{}</p>", escaped(line)));
        let receipt: String = receipt.collect();
        let link = self.link.as_ref().map_or_else(String::new, |link| {
            format!(
                "<p style=\"margin:24px 0 0\"><a href=\"{}\" style=\"display:inline-block;background:#7a4d06;color:#fffaf0;\
                 padding:12px 20px;border-radius:8px;text-decoration:none\">{}</a></p>",
                escaped(link),
                escaped(self.language.say("mail.see_order"))
            )
        });
        format!(
            "<!doctype html><html lang=\"{lang}\"><head><meta charset=\"utf-8\">\
             <meta name=\"viewport\" content=\"width=device-width\"><title>{subject}</title></head>\
             <body style=\"margin:0;background:#f4efe6;color:#1f1a15;font:16px/1.5 sans-serif\">\
             <div style=\"max-width:560px;margin:0 auto;padding:24px 16px\">\
             <div style=\"background:#fffdf9;border-top:8px solid #7a4d06;border-radius:8px;padding:24px\">\
             <p dir=\"auto\">{hello}</p><p>{text}</p>{reason}\
             <h1 dir=\"auto\" style=\"font-size:24px;line-height:1.2;margin:24px 0 4px\">{event}</h1>\
             <p style=\"margin:0\">{place}<br><strong>{when}</strong></p>\
             <p style=\"color:#655b50\">{order}</p>\
             <table style=\"width:100%;border-collapse:collapse;font-size:15px\">{rows}</table>{receipt}{link}</div>\
             <p style=\"color:#655b50;font-size:13px\">{footer}</p></div></body></html>",
            lang = self.language.code(),
            subject = escaped(&self.subject),
            hello = escaped(&self.hello),
            text = escaped(&self.text),
            order = escaped(&self.order),
            footer = escaped(self.language.say("mail.footer")),
        )
    }
}

/// Text within HTML, attributes included.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}
