//! A printer's own letters: 12 by 24 dots, drawn from Noto Sans since no printer's font is ours to ship.

use std::collections::HashMap;

use fullhouse_paper::{
    fonts::Fonts,
    raster::Bitmap,
    text::{self, Color, Style},
    words::Language,
};

pub const WIDTH: usize = 12;
pub const HEIGHT: usize = 24;

/// Letters that were drawn before.
pub struct Letters {
    fonts: Fonts,
    drawn: HashMap<(char, bool), Bitmap>,
}

impl Default for Letters {
    fn default() -> Self {
        Self { fonts: Fonts::new(&[]), drawn: HashMap::new() }
    }
}

impl Letters {
    /// A letter in its cell.
    pub fn draw(&mut self, letter: char, bold: bool) -> &Bitmap {
        let fonts = &self.fonts;
        self.drawn.entry((letter, bold)).or_insert_with(|| {
            let style = Style { size: 19.0, bold, color: Color(0, 0, 0) };
            let line = text::line(fonts, Language::En, &letter.to_string(), style);
            // A letter that is too wide is squeezed, as fonts of one width do.
            let drawn = (line.width.ceil() as usize).max(WIDTH);
            let mut wide = Bitmap::new(drawn, HEIGHT);
            line.blacken(&mut wide, (drawn as f32 - line.width) / 2.0, 19.0);
            let mut cell = Bitmap::new(WIDTH, HEIGHT);
            for (x, y) in (0..HEIGHT).flat_map(|y| (0..drawn).map(move |x| (x, y))) {
                if wide.is_black(x, y) {
                    cell.blacken(x * WIDTH / drawn, y);
                }
            }
            cell
        })
    }
}

/// The letter of a byte under the table that `ESC t` chose; `None`: this printer has no such table.
pub fn letter(table: u8, byte: u8) -> Option<char> {
    use oem_cp::code_table::{
        DECODING_TABLE_CP437, DECODING_TABLE_CP850, DECODING_TABLE_CP852, DECODING_TABLE_CP858, DECODING_TABLE_CP866,
    };
    if byte < 0x80 {
        return Some(byte as char);
    }
    let at = usize::from(byte - 0x80);
    match table {
        0 => Some(DECODING_TABLE_CP437[at]),
        2 => Some(DECODING_TABLE_CP850[at]),
        16 => Some(windows_1252(byte)),
        17 => Some(DECODING_TABLE_CP866[at]),
        18 => Some(DECODING_TABLE_CP852[at]),
        19 => Some(DECODING_TABLE_CP858[at]),
        _ => None,
    }
}

/// As Latin 1, but for its second row of controls.
fn windows_1252(byte: u8) -> char {
    match byte {
        0x80 => '€',
        0x82..=0x8c => ['‚', 'ƒ', '„', '…', '†', '‡', 'ˆ', '‰', 'Š', '‹', 'Œ'][usize::from(byte - 0x82)],
        0x8e => 'Ž',
        0x91..=0x9c => ['‘', '’', '“', '”', '•', '–', '—', '˜', '™', 'š', '›', 'œ'][usize::from(byte - 0x91)],
        0x9e => 'ž',
        0x9f => 'Ÿ',
        0x81 | 0x8d | 0x8f | 0x90 | 0x9d => '\u{fffd}',
        _ => char::from(byte),
    }
}
