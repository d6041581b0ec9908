//! Bytes in, dots and answers out: what a thermal printer of Epson's kind makes of its commands.

use fullhouse_paper::raster::Bitmap;
use qrcodegen::{QrCode, QrCodeEcc};

use crate::letters::{HEIGHT, Letters, WIDTH, letter};

/// A line's height unless told otherwise.
const PITCH: usize = 30;
/// Blank paper between print head and cutter, fed before a cut.
const TO_CUTTER: usize = 90;

/// A drawer's plug was given a pulse.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Drawer {
    pub pin: u8,
}

/// A piece of paper.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sheet {
    pub picture: Bitmap,
    /// What was printed as the printer's own letters, a line each: for tests, since nobody reads pictures reliably.
    pub letters: Vec<String>,
    /// Commands that this printer doesn't know.
    pub unknown: Vec<Vec<u8>>,
    /// It was cut; otherwise it is what hangs out of the printer.
    pub cut: bool,
}

/// The part of a printer that works through its buffer.
pub struct Engine {
    dots: usize,
    letters: Letters,
    table: u8,
    bold: bool,
    wide: usize,
    high: usize,
    align: u8,
    line: String,
    sheet: Sheet,
    sheets: Vec<Sheet>,
    drawer: Vec<Drawer>,
    qr_module: usize,
    qr_level: QrCodeEcc,
    qr_text: Vec<u8>,
    /// Rows of paper that are left; `None`: enough.
    rows_left: Option<usize>,
}

fn blank(dots: usize) -> Sheet {
    Sheet { picture: Bitmap::new(dots, 0), letters: Vec::new(), unknown: Vec::new(), cut: false }
}

impl Engine {
    /// With a head of so many dots: 576 or 384.
    pub fn new(dots: usize) -> Self {
        Self {
            dots,
            letters: Letters::default(),
            table: 0,
            bold: false,
            wide: 1,
            high: 1,
            align: 0,
            line: String::new(),
            sheet: blank(dots),
            sheets: Vec::new(),
            drawer: Vec::new(),
            qr_module: 3,
            qr_level: QrCodeEcc::Low,
            qr_text: Vec::new(),
            rows_left: None,
        }
    }

    /// Every piece of paper, the one that hangs out last.
    pub fn sheets(&self) -> Vec<Sheet> {
        let hangs = (self.sheet.picture.height() > 0 || !self.sheet.unknown.is_empty()).then_some(&self.sheet);
        self.sheets.iter().chain(hangs).cloned().collect()
    }

    /// Pulses that drawers were given.
    pub fn drawer(&self) -> &[Drawer] {
        &self.drawer
    }

    pub(crate) fn pulse(&mut self) {
        self.drawer.push(Drawer { pin: 2 });
    }

    /// The paper ends after so many more rows.
    pub fn ends_after(&mut self, rows: usize) {
        self.rows_left = Some(rows);
    }

    /// A new roll; what hangs out is torn off.
    pub fn new_roll(&mut self) {
        self.rows_left = None;
        self.tear();
    }

    pub fn is_out(&self) -> bool {
        self.rows_left == Some(0)
    }

    /// Switched off and on: what was not printed is gone.
    pub fn reset(&mut self) {
        (self.table, self.bold, self.wide, self.high, self.align) = (0, false, 1, 1, 0);
        self.line.clear();
    }

    /// Does the first command of `bytes`. How many bytes it had, and what it answers; `None`: it isn't whole yet.
    pub fn step(&mut self, bytes: &[u8]) -> Option<(usize, Vec<u8>)> {
        let first = *bytes.first()?;
        let silent = |length: usize| Some((length, Vec::new()));
        match first {
            b'\n' => {
                self.print_line();
                silent(1)
            }
            b'\r' | 0 => silent(1),
            0x10 => {
                // In real time it was seen to when it came in; in its turn it does nothing.
                let length = match bytes.get(1)? {
                    0x14 if *bytes.get(2)? == 8 => 10,
                    0x14 => 5,
                    0x04 | 0x05 => 3,
                    _ => 1,
                };
                (bytes.len() >= length).then_some((length, Vec::new()))
            }
            0x1b => self.escape(bytes),
            0x1c => match bytes.get(1)? {
                b'.' | b'&' => silent(2),
                b'C' | b'!' | b'-' => {
                    bytes.get(2)?;
                    silent(3)
                }
                _ => self.unknown(bytes, 2),
            },
            0x1d => self.group(bytes),
            byte if byte < 0x20 || byte == 0x7f => self.unknown(bytes, 1),
            byte => {
                let letter = letter(self.table, byte).unwrap_or('\u{fffd}');
                if (self.line.chars().count() + 1) * WIDTH * self.wide > self.dots {
                    self.print_line();
                }
                self.line.push(letter);
                silent(1)
            }
        }
    }

    fn escape(&mut self, bytes: &[u8]) -> Option<(usize, Vec<u8>)> {
        let command = *bytes.get(1)?;
        let length = match command {
            b'@' | b'2' => 2,
            b't' | b'R' | b'E' | b'G' | b'a' | b'J' | b'd' | b'3' | b'M' | b'-' | b'!' | b'{' | b' ' => 3,
            b'p' => 5,
            _ => return self.unknown(bytes, 2),
        };
        let parameter = bytes.get(..length)?.get(2).copied().unwrap_or_default();
        match command {
            b'@' => self.reset(),
            b't' => self.table = parameter,
            b'E' | b'G' => self.bold = parameter & 1 == 1,
            b'a' => self.align = parameter % 48,
            b'!' => {
                self.bold = parameter & 0x08 != 0;
                (self.wide, self.high) =
                    (if parameter & 0x20 != 0 { 2 } else { 1 }, if parameter & 0x10 != 0 { 2 } else { 1 });
            }
            b'J' => {
                self.flush();
                self.feed(usize::from(parameter));
            }
            b'd' => {
                self.flush();
                self.feed(usize::from(parameter) * PITCH);
            }
            b'p' => self.drawer.push(Drawer { pin: if parameter % 48 == 0 { 2 } else { 5 } }),
            _ => {}
        }
        Some((length, Vec::new()))
    }

    fn group(&mut self, bytes: &[u8]) -> Option<(usize, Vec<u8>)> {
        let silent = |length: usize| Some((length, Vec::new()));
        match *bytes.get(1)? {
            b'!' => {
                let size = *bytes.get(2)?;
                (self.wide, self.high) = (usize::from(size >> 4 & 7) + 1, usize::from(size & 7) + 1);
                silent(3)
            }
            b'B' | b'a' | b'h' | b'w' | b'H' => {
                bytes.get(2)?;
                silent(3)
            }
            b'V' => {
                let feeds = matches!(bytes.get(2)?, 65 | 66);
                let extra = if feeds { TO_CUTTER + usize::from(*bytes.get(3)?) } else { 0 };
                self.flush();
                self.feed(extra);
                if !self.is_out() {
                    self.sheet.cut = true;
                    self.tear();
                }
                silent(if feeds { 4 } else { 3 })
            }
            b'r' => {
                bytes.get(2)?;
                Some((3, vec![if self.is_out() { 0x0f } else { 0x00 }]))
            }
            b'v' => {
                let head = bytes.get(..8)?;
                let (row, rows) = (number(&head[4..6]), number(&head[6..8]));
                let dots = bytes.get(8..8 + row * rows)?;
                self.flush();
                self.raster(row, rows, dots);
                silent(8 + row * rows)
            }
            b'(' => {
                let length = 5 + number(bytes.get(3..5)?);
                let whole = bytes.get(..length)?;
                let answer = match (whole[2], &whole[5..]) {
                    (b'H', [48, 48, id @ ..]) => [&[0x37, 0x22], id, &[0]].concat(),
                    (b'k', [49, function, parameters @ ..]) => {
                        self.qr(*function, parameters);
                        Vec::new()
                    }
                    _ => return self.unknown(bytes, length),
                };
                Some((length, answer))
            }
            _ => self.unknown(bytes, 2),
        }
    }

    fn unknown(&mut self, bytes: &[u8], length: usize) -> Option<(usize, Vec<u8>)> {
        self.sheet.unknown.push(bytes.get(..length)?.to_vec());
        Some((length, Vec::new()))
    }

    fn qr(&mut self, function: u8, parameters: &[u8]) {
        match (function, parameters) {
            (67, [module]) => self.qr_module = usize::from(*module),
            (69, [level]) => {
                let levels = [QrCodeEcc::Low, QrCodeEcc::Medium, QrCodeEcc::Quartile, QrCodeEcc::High];
                self.qr_level = levels[usize::from(level.saturating_sub(48)).min(3)];
            }
            (80, [48, text @ ..]) => self.qr_text = text.to_vec(),
            (81, [48]) => {
                self.flush();
                let text = String::from_utf8_lossy(&self.qr_text).into_owned();
                let Ok(code) = QrCode::encode_text(&text, self.qr_level) else { return };
                let side = code.size() as usize * self.qr_module;
                let room = self.dots.saturating_sub(side);
                let left = [0, room / 2, room][usize::from(self.align).min(2)];
                let mut picture = Bitmap::new(self.dots, side);
                for (x, y) in (0..code.size()).flat_map(|y| (0..code.size()).map(move |x| (x, y))) {
                    if code.get_module(x, y) {
                        let (x, y, module) = (x as usize, y as usize, self.qr_module);
                        picture.fill(left + x * module, y * module, module, module);
                    }
                }
                self.burn(&picture);
            }
            _ => {}
        }
    }

    fn raster(&mut self, row: usize, rows: usize, dots: &[u8]) {
        let mut picture = Bitmap::new(self.dots, rows);
        for y in 0..rows {
            for x in 0..(row * 8).min(self.dots) {
                if dots[y * row + x / 8] & (0x80 >> (x % 8)) != 0 {
                    picture.blacken(x, y);
                }
            }
        }
        self.burn(&picture);
    }

    /// Letters that wait are printed before anything else is.
    fn flush(&mut self) {
        if !self.line.is_empty() {
            self.print_line();
        }
    }

    fn print_line(&mut self) {
        let line = std::mem::take(&mut self.line);
        let width = line.chars().count() * WIDTH * self.wide;
        let room = self.dots.saturating_sub(width);
        let left = [0, room / 2, room][usize::from(self.align).min(2)];
        let mut picture = Bitmap::new(self.dots, PITCH.max(HEIGHT * self.high + PITCH - HEIGHT));
        for (at, letter) in line.chars().enumerate() {
            let cell = self.letters.draw(letter, self.bold);
            for (x, y) in (0..HEIGHT).flat_map(|y| (0..WIDTH).map(move |x| (x, y))) {
                if cell.is_black(x, y) {
                    let (left, wide, high) = (left + at * WIDTH * self.wide, self.wide, self.high);
                    picture.fill(left + x * wide, y * high, wide, high);
                }
            }
        }
        self.sheet.letters.push(line);
        self.burn(&picture);
    }

    fn feed(&mut self, rows: usize) {
        self.burn(&Bitmap::new(self.dots, rows));
    }

    /// As far as the paper goes.
    fn burn(&mut self, picture: &Bitmap) {
        let rows = self.rows_left.map_or(picture.height(), |left| left.min(picture.height()));
        self.rows_left = self.rows_left.map(|left| left - rows);
        let top = self.sheet.picture.height();
        self.sheet.picture.grow(top + rows);
        self.sheet.picture.stamp(picture, 0, top);
    }

    fn tear(&mut self) {
        let sheet = std::mem::replace(&mut self.sheet, blank(self.dots));
        if sheet.picture.height() > 0 || !sheet.unknown.is_empty() {
            self.sheets.push(sheet);
        }
    }
}

fn number(bytes: &[u8]) -> usize {
    usize::from(bytes[0]) | usize::from(bytes[1]) << 8
}
