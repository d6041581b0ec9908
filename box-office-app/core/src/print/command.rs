//! The bytes that go to a printer: the few commands of ESC/POS that everybody's printers know.
//!
//! Invariants
//! - What a text says is never a command: only letters of the code page get in, and a picture holds none of the
//!   sequences (`DLE EOT`, `DLE ENQ`, `DLE DC4`) that printers obey wherever they stand, even within a picture.
//! - A job begins by setting whatever an earlier one may have left.

use fullhouse_paper::raster::Bitmap;

use super::{code_page::CodePage, profile::DrawerPin};

const ESC: u8 = 0x1b;
const GS: u8 = 0x1d;
const FS: u8 = 0x1c;
const DLE: u8 = 0x10;
/// What makes of a `DLE` a command in real time: EOT, ENQ, DC4.
pub(super) const REAL_TIME: [u8; 3] = [0x04, 0x05, 0x14];
/// Rows of a picture that go at once: printers with little memory take them.
const BAND_ROWS: usize = 24;

/// Asks for the state `n` (1 to 4) of a printer; answered at once, whatever it is busy with.
pub fn ask_status(n: u8) -> [u8; 3] {
    [DLE, 0x04, n]
}

/// Throws away what lies in a printer's buffer, so that nothing of it comes out later. Not every printer knows it.
pub const CLEAR: [u8; 10] = [DLE, 0x14, 0x08, 0x01, 0x03, 0x14, 0x01, 0x06, 0x02, 0x08];

/// Asks for the paper's state, in its turn: the answer means that everything before was read.
pub const ASK_PAPER: [u8; 3] = [GS, b'r', 1];

/// Asks for an answer once everything before is on paper: the four letters come back.
pub fn ask_done(id: [u8; 4]) -> [u8; 11] {
    let [a, b, c, d] = id.map(|byte| byte.clamp(b'!', b'~'));
    [GS, b'(', b'H', 6, 0, 48, 48, a, b, c, d]
}

/// Opens a drawer: 100 ms on its pin.
pub fn kick(pin: DrawerPin) -> [u8; 5] {
    [ESC, b'p', if pin == DrawerPin::Two { 0 } else { 1 }, 50, 250]
}

/// Bytes of one job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Commands {
    bytes: Vec<u8>,
    /// Where a command ends and another may stand before the next.
    ends: Vec<usize>,
    page: CodePage,
}

impl Commands {
    /// A printer as it is switched on, with the letters of `page`, one byte each.
    pub fn new(page: CodePage) -> Self {
        Self {
            bytes: vec![ESC, b'@', FS, b'.', ESC, b'R', 0, ESC, b't', page.number(), ESC, b'2'],
            ends: Vec::new(),
            page,
        }
    }

    /// A line of the printer's own letters; `false`, and nothing is added: it lacks one.
    #[must_use]
    pub fn line(&mut self, text: &str, bold: bool, double: bool) -> bool {
        let Some(letters) = self.page.bytes(text) else { return false };
        self.bytes.extend([ESC, b'E', u8::from(bold), GS, b'!', if double { 0x11 } else { 0 }]);
        self.bytes.extend(letters);
        self.bytes.push(b'\n');
        self.ends.push(self.bytes.len());
        true
    }

    /// Dots.
    pub fn picture(&mut self, picture: &Bitmap) {
        let row = picture.bytes_a_row();
        for band in picture.rows().chunks(row * BAND_ROWS) {
            let rows = band.len() / row;
            self.bytes.extend([GS, b'v', b'0', 0, row as u8, (row >> 8) as u8, rows as u8, 0]);
            let from = self.bytes.len();
            self.bytes.extend(band);
            defuse(&mut self.bytes[from..]);
            self.ends.push(self.bytes.len());
        }
    }

    /// A QR code that the printer draws itself, in modules of `module` dots; `text` is ASCII that can be seen.
    pub fn qr(&mut self, text: &str, module: u8) {
        let symbol = |bytes: &mut Vec<u8>, function: u8, parameters: &[u8]| {
            let length = (parameters.len() + 2) as u16;
            bytes.extend([GS, b'(', b'k', length as u8, (length >> 8) as u8, 49, function]);
            bytes.extend(parameters);
        };
        let visible: Vec<u8> = text.bytes().filter(|byte| (b' '..=b'~').contains(byte)).collect();
        self.bytes.extend([ESC, b'a', 1]);
        symbol(&mut self.bytes, 65, &[50, 0]);
        symbol(&mut self.bytes, 67, &[module]);
        symbol(&mut self.bytes, 69, &[49]);
        symbol(&mut self.bytes, 80, &[&[48][..], &visible].concat());
        symbol(&mut self.bytes, 81, &[48]);
        self.bytes.extend([ESC, b'a', 0]);
    }

    /// Feeds paper, in dots.
    pub fn feed(&mut self, dots: u8) {
        self.bytes.extend([ESC, b'J', dots]);
    }

    /// Past the cutter or the edge to tear at, and cut if there is a cutter.
    pub fn end(&mut self, cuts: bool) {
        if cuts {
            self.bytes.extend([GS, b'V', 66, 0]);
        } else {
            self.bytes.extend([ESC, b'd', 6]);
        }
    }

    /// Whole commands, in parts of about so many bytes.
    pub(super) fn parts(&self, about: usize) -> Vec<&[u8]> {
        let (mut parts, mut from) = (Vec::new(), 0);
        for end in self.ends.iter().copied().chain([self.bytes.len()]) {
            if end - from >= about || end == self.bytes.len() {
                parts.push(&self.bytes[from..end]);
                from = end;
            }
        }
        parts.retain(|part| !part.is_empty());
        parts
    }

    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

/// Adds a dot wherever dots would be a command. Nobody sees it.
fn defuse(dots: &mut [u8]) {
    for at in 1..dots.len() {
        if dots[at - 1] == DLE && REAL_TIME.contains(&dots[at]) {
            dots[at - 1] |= 0x08;
        }
    }
}
