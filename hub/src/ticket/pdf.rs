//! The tickets of an order on paper: one A5 page a ticket, which two of an A4 sheet hold and a phone shows whole.
//!
//! Invariants
//! - What the code says and what is printed come from the same row.
//! - The square is black on white with its quiet zone, whatever else the page looks like.
//! - The same sheet gives the same bytes.

use std::sync::Arc;

use fullhouse_paper::{
    fonts::Fonts,
    text::{self, Color, Line, Style},
};
use krilla::{
    Document,
    geom::{PathBuilder, Rect, Size, Transform},
    image::Image,
    metadata::Metadata,
    num::NormalizedF32,
    page::PageSettings,
    paint::{Fill, Stroke, StrokeDash},
    surface::Surface,
};
use qrcodegen::{QrCode, QrCodeEcc};

use super::sheet::{Sheet, SheetTicket};
use crate::{currency, words::Language};

/// A5, in points.
const WIDTH: f32 = 419.53;
const HEIGHT: f32 = 595.28;
const MARGIN: f32 = 34.0;
const INNER: f32 = WIDTH - 2.0 * MARGIN;
/// The square with its quiet zone: 74 mm.
const SQUARE: f32 = 210.0;
const SQUARE_TOP: f32 = 302.0;
/// The most that a logo takes of the upper corner.
const LOGO_WIDTH: f32 = 110.0;
const LOGO_HEIGHT: f32 = 34.0;
/// Modules that are left white around it.
const QUIET: i32 = 4;

const INK: Color = Color(0x1f, 0x1a, 0x15);
const FAINT: Color = Color(0x65, 0x5b, 0x50);
const BRASS: Color = Color(0x7a, 0x4d, 0x06);
const PERFORATION: Color = Color(0xd9, 0xc9, 0xa8);
const BLACK: Color = Color(0, 0, 0);
const WHITE: Color = Color(255, 255, 255);

/// A document, and what it could not show.
#[derive(Debug)]
pub struct Printed {
    pub pdf: Vec<u8>,
    /// What no font of this machine has, and stands there by its number.
    pub missing: Vec<String>,
}

#[derive(Debug, thiserror::Error)]
pub enum PdfError {
    #[error("there is no valid ticket to print")]
    Nothing,
    #[error("the code does not fit into a square")]
    Code(#[source] qrcodegen::DataTooLong),
    #[error("the document could not be written: {0}")]
    Document(String),
}

/// Draws all tickets of a sheet. Takes some ten milliseconds of a core: call it where that harms nobody.
pub fn print(fonts: &Fonts, sheet: &Sheet) -> Result<Printed, PdfError> {
    if sheet.tickets.is_empty() {
        return Err(PdfError::Nothing);
    }
    let mut document = Document::new();
    let title = format!("{} · {}", sheet.event_name, sheet.order_code);
    document.set_metadata(
        Metadata::new().title(title).language(sheet.language.code().to_owned()).creator("Fullhouse".to_owned()),
    );
    let mut missing = Vec::new();
    for (at, ticket) in sheet.tickets.iter().enumerate() {
        let settings = PageSettings::from_wh(WIDTH, HEIGHT).expect("a page has a size");
        let mut page = document.start_page_with(settings);
        let mut surface = page.surface();
        let mut pen = Pen { fonts, language: sheet.language, surface: &mut surface, missing: &mut missing };
        pen.page(sheet, ticket, at)?;
        surface.finish();
        page.finish();
    }
    missing.sort();
    missing.dedup();
    let pdf = document.finish().map_err(|error| PdfError::Document(format!("{error:?}")))?;
    Ok(Printed { pdf, missing })
}

/// What draws on one page.
struct Pen<'a, 's> {
    fonts: &'a Fonts,
    language: Language,
    surface: &'a mut Surface<'s>,
    missing: &'a mut Vec<String>,
}

impl Pen<'_, '_> {
    fn page(&mut self, sheet: &Sheet, ticket: &SheetTicket, at: usize) -> Result<(), PdfError> {
        let say = |key: &str| self.language.say(key);
        let (title, section, row, seat) =
            (say("ticket.title"), say("ticket.section"), say("ticket.row"), say(ticket.numbered()));
        let (kind, price, holder, order) =
            (say("ticket.type"), say("ticket.price"), say("ticket.holder"), say("ticket.order"));
        let terms = sheet.look.terms(self.language).unwrap_or(say("ticket.terms"));
        let accent = sheet.look.accent().map_or(BRASS, |[red, green, blue]| Color(red, green, blue));
        let numbers = ((at + 1).to_string(), sheet.tickets.len().to_string());
        let count = self.language.fill("ticket.count", &[("n", &numbers.0), ("all", &numbers.1)]);
        let money = if sheet.comp && ticket.amount_minor > 0 {
            self.language.ticket_type("comp")
        } else {
            currency::amount(&sheet.currency, ticket.amount_minor)
        };

        self.bar(accent);
        if let Some(logo) = &sheet.logo {
            self.logo(logo)?;
        }
        let mut y = MARGIN + 14.0;
        self.say_at(&format!("{title}  {count}"), small(accent), MARGIN, y, INNER - LOGO_WIDTH);
        y = self.block(&sheet.event_name, strong(25.0), y + 30.0, 2);
        let place = [sheet.venue.as_str(), sheet.city.as_str()].into_iter().filter(|p| !p.is_empty());
        y = self.block(&place.collect::<Vec<_>>().join(", "), plain(11.5), y + 1.0, 1);
        y = self.block(&self.language.when(sheet.starts), strong(13.0), y + 5.0, 1);
        let doors = sheet
            .doors
            .filter(|_| !sheet.look.hides("doors"))
            .map(|doors| self.language.fill("ticket.doors", &[("time", &doors.format("%H:%M").to_string())]));
        let beside: Vec<String> = doors.into_iter().chain([sheet.zone.clone()]).collect();
        self.block(&beside.join(" · "), Style { color: FAINT, ..plain(9.5) }, y, 1);

        self.tear(188.0);
        let columns =
            [(section, &ticket.section, 0.0, 0.52), (row, &ticket.row, 0.54, 0.2), (seat, &ticket.number, 0.77, 0.23)];
        for (label, value, from, share) in columns {
            if !value.trim().is_empty() {
                // What needs two lines is smaller, so that both end above the details.
                let wide = self.shape(value, strong(21.0)).width > share * INNER;
                let (style, below) = if wide { (strong(15.0), 19.0) } else { (strong(21.0), 23.0) };
                self.labelled(label, value, style, MARGIN + from * INNER, 206.0, share * INNER, below);
            }
        }
        let who = sheet.holder.as_deref().unwrap_or("");
        let details = [
            (holder, who, 0.0, 0.34),
            (kind, &*self.language.ticket_type(&ticket.ticket_type), 0.36, 0.2),
            (price, &*money, 0.57, 0.2),
            (order, &*sheet.order_code, 0.79, 0.21),
        ];
        let hidden = ["holder", "type", "price", ""].map(|line| sheet.look.hides(line));
        for ((label, value, from, share), hidden) in details.into_iter().zip(hidden) {
            if !value.trim().is_empty() && !hidden {
                self.labelled(label, value, plain(10.5), MARGIN + from * INNER, 256.0, share * INNER, 14.0);
            }
        }
        let told = self.language.seat_told(ticket.traits.iter().map(|told| told.code()), ticket.note.as_deref());
        self.block(&told, strong(8.0), 289.0, 2);

        self.square(&ticket.code)?;
        let mut y = SQUARE_TOP + SQUARE + 12.0;
        for part in chunks(&ticket.code, 75) {
            let line = self.shape(part, Style { color: FAINT, ..plain(6.0) });
            line.draw(self.surface, (WIDTH - line.width) / 2.0, y);
            y += 8.0;
        }
        if let Some(note) = sheet.look.note(self.language) {
            y = self.block(note, plain(8.5), y + 6.0, 2) - 6.0;
        }
        self.block(terms, Style { color: FAINT, ..plain(7.2) }, y + 8.0, 3);
        Ok(())
    }

    fn shape(&mut self, text: &str, style: Style) -> Line {
        let line = text::line(self.fonts, self.language, text, style);
        self.missing.extend(line.missing.iter().cloned());
        line
    }

    /// Lines one below the other, the first one's baseline at `y`. Returns where the next text may begin.
    fn block(&mut self, text: &str, style: Style, mut y: f32, lines_max: usize) -> f32 {
        for line in text::fit(self.fonts, self.language, text, style, INNER, lines_max) {
            self.missing.extend(line.missing.iter().cloned());
            let x = if line.rtl { WIDTH - MARGIN - line.width } else { MARGIN };
            line.draw(self.surface, x, y);
            y += line.size() * 1.28;
        }
        y
    }

    fn say_at(&mut self, text: &str, style: Style, x: f32, y: f32, width: f32) {
        for line in text::fit(self.fonts, self.language, text, style, width, 1) {
            self.missing.extend(line.missing.iter().cloned());
            line.draw(self.surface, x, y);
        }
    }

    /// A small label, and what it labels below, in two lines at most.
    #[expect(clippy::too_many_arguments, reason = "a place on paper is four numbers")]
    fn labelled(&mut self, label: &str, value: &str, style: Style, x: f32, y: f32, width: f32, below: f32) {
        self.say_at(label, Style { color: FAINT, ..plain(8.0) }, x, y, width);
        let mut y = y + below;
        for line in text::fit(self.fonts, self.language, value, style, width, 2) {
            self.missing.extend(line.missing.iter().cloned());
            line.draw(self.surface, x, y);
            y += line.size() * 1.1;
        }
    }

    fn bar(&mut self, accent: Color) {
        self.fill(&[(0.0, 0.0, WIDTH, 9.0)], accent);
    }

    /// In the upper corner, as large as it gets there.
    fn logo(&mut self, png: &Arc<Vec<u8>>) -> Result<(), PdfError> {
        let bytes: Arc<dyn AsRef<[u8]> + Send + Sync> = png.clone();
        let image = Image::from_png(bytes.into(), true).map_err(PdfError::Document)?;
        let (width, height) = image.size();
        let scale = (LOGO_WIDTH / width as f32).min(LOGO_HEIGHT / height as f32);
        let Some(size) = Size::from_wh(width as f32 * scale, height as f32 * scale) else { return Ok(()) };
        self.surface.push_transform(&Transform::from_translate(WIDTH - MARGIN - size.width(), 20.0));
        self.surface.draw_image(image, size);
        self.surface.pop();
        Ok(())
    }

    /// A dashed line across the page.
    fn tear(&mut self, y: f32) {
        let mut path = PathBuilder::new();
        path.move_to(MARGIN, y);
        path.line_to(WIDTH - MARGIN, y);
        self.surface.set_fill(None);
        self.surface.set_stroke(Some(Stroke {
            paint: PERFORATION.into(),
            width: 1.2,
            dash: Some(StrokeDash { array: vec![4.0, 3.0], offset: 0.0 }),
            ..Stroke::default()
        }));
        if let Some(path) = path.finish() {
            self.surface.draw_path(&path);
        }
        self.surface.set_stroke(None);
    }

    fn square(&mut self, code: &str) -> Result<(), PdfError> {
        let qr = QrCode::encode_text(code, QrCodeEcc::Medium).map_err(PdfError::Code)?;
        let module = SQUARE / (qr.size() + 2 * QUIET) as f32;
        let left = (WIDTH - SQUARE) / 2.0;
        self.fill(&[(left, SQUARE_TOP, SQUARE, SQUARE)], WHITE);
        let mut dark = Vec::new();
        for y in 0..qr.size() {
            let mut x = 0;
            while x < qr.size() {
                let from = x;
                while x < qr.size() && qr.get_module(x, y) {
                    x += 1;
                }
                if x > from {
                    let (column, row) = ((from + QUIET) as f32, (y + QUIET) as f32);
                    // A hair wider and higher: no reader shows seams between rows.
                    let (width, height) = ((x - from) as f32 * module + 0.05, module + 0.05);
                    dark.push((left + column * module, SQUARE_TOP + row * module, width, height));
                }
                x += 1;
            }
        }
        self.fill(&dark, BLACK);
        Ok(())
    }

    /// Rectangles: left, top, width, height.
    fn fill(&mut self, rectangles: &[(f32, f32, f32, f32)], color: Color) {
        let mut path = PathBuilder::new();
        for (x, y, width, height) in rectangles {
            if let Some(rect) = Rect::from_xywh(*x, *y, *width, *height) {
                path.push_rect(rect);
            }
        }
        self.surface.set_fill(Some(Fill {
            paint: color.into(),
            opacity: NormalizedF32::ONE,
            rule: Default::default(),
        }));
        if let Some(path) = path.finish() {
            self.surface.draw_path(&path);
        }
    }
}

fn plain(size: f32) -> Style {
    Style { size, bold: false, color: INK }
}

fn strong(size: f32) -> Style {
    Style { size, bold: true, color: INK }
}

fn small(color: Color) -> Style {
    Style { size: 9.0, bold: true, color }
}

/// Pieces of a code, which is ASCII.
fn chunks(code: &str, length: usize) -> impl Iterator<Item = &str> {
    (0..code.len()).step_by(length).map(move |at| &code[at..(at + length).min(code.len())])
}
