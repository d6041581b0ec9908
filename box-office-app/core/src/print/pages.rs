//! What is printed at a till: tickets, receipts, the drawer's reports, a test page.

use chrono::{DateTime, NaiveDateTime, TimeZone, Utc};
use fullhouse_paper::{currency::amount, words::Language};
use fullhouse_protocol::shift::{ShiftCheck, ShiftCheckWhat, ShiftMoveKind, ShiftReport};

use super::{page::Page, profile::Profile};
use crate::scan::TEST_CODE;

/// One ticket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ticket {
    pub language: Language,
    pub event: String,
    pub venue: String,
    pub city: String,
    /// On the venue's clock, as are the doors.
    pub starts: NaiveDateTime,
    pub doors: Option<NaiveDateTime>,
    pub section: String,
    /// Empty where people stand.
    pub row: String,
    pub number: String,
    /// A place to stand, and no seat.
    pub standing: bool,
    /// A code such as `adult`, or a name of the house.
    pub ticket_type: String,
    /// Currency and minor units; `None`: nothing was paid for it, or the house prints no prices.
    pub price: Option<(String, i64)>,
    pub holder: Option<String>,
    pub order: String,
    /// Which of how many.
    pub count: (usize, usize),
    /// What the door reads.
    pub code: String,
    /// What is told of the seat; mostly nothing.
    pub told: String,
}

/// What the number of a place is called.
pub fn numbered(standing: bool) -> &'static str {
    if standing { "ticket.place" } else { "ticket.seat" }
}

impl Ticket {
    pub fn page(&self) -> Page {
        let language = self.language;
        let mut page = Page::new(language);
        let (n, all) = (self.count.0.to_string(), self.count.1.to_string());
        page.pair(language.say("ticket.title"), language.fill("ticket.count", &[("n", &n), ("all", &all)]));
        page.headline(&self.event);
        let place = [&*self.venue, &*self.city].into_iter().filter(|part| !part.trim().is_empty());
        page.text(place.collect::<Vec<_>>().join(", "));
        page.text(language.when(self.starts));
        if let Some(doors) = self.doors {
            page.text(language.fill("ticket.doors", &[("time", &doors.format("%H:%M").to_string())]));
        }
        page.rule();
        if !self.section.trim().is_empty() {
            page.sum(language.say("ticket.section"), &self.section);
        }
        let place = [("ticket.row", &self.row), (numbered(self.standing), &self.number)];
        let place = place.into_iter().filter(|(_, value)| !value.trim().is_empty());
        page.headline(
            place.map(|(name, value)| format!("{} {value}", language.say(name))).collect::<Vec<_>>().join("  "),
        );
        page.text(&self.told);
        let kind = language.ticket_type(&self.ticket_type);
        match &self.price {
            Some((currency, minor)) => page.pair(kind, amount(currency, *minor)),
            None => page.text(kind),
        }
        if let Some(holder) = &self.holder {
            page.text(holder);
        }
        page.pair(language.say("ticket.order"), &self.order);
        page.gap(12);
        page.qr(&self.code);
        page.gap(12);
        page.text(language.say("receipt.keep"));
        page
    }
}

/// What was paid, and how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Receipt {
    pub language: Language,
    /// Who sells: name, address, tax number, a line each.
    pub house: Vec<String>,
    pub order: String,
    pub event: String,
    pub sold: NaiveDateTime,
    pub till: String,
    pub clerk: Option<String>,
    pub currency: String,
    /// What was bought.
    pub lines: Vec<(String, i64)>,
    pub total_minor: i64,
    /// Name, percent as it is written, and how much of the total.
    pub tax: Option<(String, String, i64)>,
    /// As it was paid: a name (`Cash`, `VISA •••• 4242`) and an amount.
    pub tenders: Vec<(String, i64)>,
    pub change_minor: i64,
}

impl Receipt {
    pub fn page(&self) -> Page {
        let language = self.language;
        let mut page = Page::new(language);
        let write = |minor| amount(&self.currency, minor);
        for (at, line) in self.house.iter().enumerate() {
            if at == 0 {
                page.headline(line);
            } else {
                page.text(line);
            }
        }
        page.rule();
        page.text(&self.event);
        page.pair(language.say("ticket.order"), &self.order);
        for (what, minor) in &self.lines {
            page.pair(what, write(*minor));
        }
        page.rule();
        page.sum(language.say("mail.total"), write(self.total_minor));
        if let Some((name, percent, minor)) = &self.tax {
            let written = write(*minor);
            let blanks = [("name", name.as_str()), ("percent", percent.as_str()), ("amount", written.as_str())];
            page.text(language.fill("receipt.tax", &blanks));
        }
        for (name, minor) in &self.tenders {
            page.pair(name, write(*minor));
        }
        if self.change_minor != 0 {
            page.pair(language.say("receipt.change"), write(self.change_minor));
        }
        page.rule();
        page.text(language.when(self.sold));
        page.pair(&self.till, self.clerk.clone().unwrap_or_default());
        page
    }
}

/// A drawer's report: X while its shift is open, Z once it is closed. `zone` is the till's.
pub fn report<Z: TimeZone>(report: &ShiftReport, language: Language, zone: &Z) -> Page {
    let mut page = Page::new(language);
    let say = |key: &str| language.say(key);
    let write = |minor| amount(&report.currency, minor);
    let when = |at: DateTime<Utc>| language.when(at.with_timezone(zone).naive_local());
    match &report.closed {
        Some(closed) => page.headline(format!("Z {}", closed.z_number)),
        None => page.headline("X"),
    }
    page.text(&report.terminal_name);
    page.pair(say("report.day"), report.business_day.to_string());
    page.text(format!("{} {}, {}", say("report.opened"), when(report.opened_at), report.opened_by));
    match &report.closed {
        Some(closed) => page.text(format!("{} {}, {}", say("report.closed"), when(closed.closed_at), closed.closed_by)),
        None => page.text(format!("{} {}", say("report.read"), when(report.now))),
    }
    for what in [ShiftCheckWhat::Printer, ShiftCheckWhat::Scanner] {
        let said = report.checks.iter().find(|check| check.what == what);
        let key = match (what, said.map(|check| &check.skipped)) {
            (ShiftCheckWhat::Printer, Some(None)) => "report.page_printed",
            (ShiftCheckWhat::Printer, _) => "report.page_not_printed",
            (ShiftCheckWhat::Scanner, Some(None)) => "report.page_scanned",
            (ShiftCheckWhat::Scanner, _) => "report.page_not_scanned",
        };
        page.text(match said {
            None => say(key).to_owned(),
            Some(ShiftCheck { skipped: Some(why), by, .. }) => format!("{}: {why}, {by}", say(key)),
            Some(ShiftCheck { at, by, .. }) => {
                format!("{} {}, {by}", say(key), at.with_timezone(zone).naive_local().format("%H:%M"))
            }
        });
    }
    page.rule();
    for tender in &report.tenders {
        page.pair(format!("{} × {}", tender.count, language.tender(&tender.kind)), write(tender.amount_minor));
    }
    page.rule();
    page.pair(say("report.float"), write(report.float_minor));
    for (name, sum, minus) in [
        ("report.sales", report.cash_sales, false),
        ("report.back", report.cash_back, true),
        ("report.pay_in", report.pay_ins, false),
        ("report.pay_out", report.pay_outs, true),
        ("report.drop", report.drops, true),
    ] {
        let minor = if minus { -sum.amount_minor } else { sum.amount_minor };
        page.pair(format!("{} × {}", sum.count, say(name)), write(minor));
    }
    page.sum(say("report.expected"), write(report.expected_minor));
    if let Some(closed) = &report.closed {
        page.rule();
        for piece in &closed.counted {
            let worth = piece.value_minor.saturating_mul(i64::from(piece.count));
            page.pair(format!("{} × {}", piece.count, write(piece.value_minor)), write(worth));
        }
        page.sum(say("report.counted"), write(closed.counted_minor));
        page.sum(say("report.variance"), write(closed.variance_minor));
        page.text(closed.explanation.clone().unwrap_or_default());
    }
    for one in &report.moves {
        let (name, minus) = match one.kind {
            ShiftMoveKind::Drop => ("report.drop", true),
            ShiftMoveKind::PayIn => ("report.pay_in", false),
            ShiftMoveKind::PayOut => ("report.pay_out", true),
        };
        page.pair(say(name), write(if minus { -one.amount_minor } else { one.amount_minor }));
        page.text(format!("{}, {}", one.by, one.reason));
    }
    page
}

/// Shows whether letters, dots, edges and the cutter are right, and teaches the scanner: its code is
/// [`TEST_CODE`], which [`crate::scan::learn`] knows again.
pub fn test_page(profile: &Profile, language: Language) -> Page {
    let mut page = Page::new(language);
    page.headline(language.say("test.title"));
    page.rule();
    page.text("ABCDEFGHIJKLMNOPQRSTUVWXYZ 0123456789");
    page.text("Zoë Müller, Çelik, Ñuñez: é à ö ß € £");
    for any in ["Łukasz Žižek", "東京 太郎", "홍길동", "محمد دوד", "Тарас Ναυσικά", "♪ 👩‍🚀 🎭"]
    {
        page.text(any);
    }
    page.pair("|", "|");
    page.rule();
    page.text(language.say("test.scan"));
    page.qr(TEST_CODE);
    page.middle(TEST_CODE);
    page.text(format!("{:?}, {:?}", profile.paper, profile.code_page));
    page
}
