//! A strip of paper: blocks one below the other, as a printer's own letters where it has them all, else as dots.
//!
//! Invariants
//! - Nothing vanishes: a line is wrapped, made smaller or ends in an ellipsis; a letter that no font has stands there by
//!   its number.
//! - A QR code has its white edge, and modules of whole dots.

use fullhouse_paper::{
    fonts::Fonts,
    raster::Bitmap,
    text::{self, Color, Line, Style},
    words::Language,
};
use qrcodegen::{QrCode, QrCodeEcc};

use super::{command::Commands, profile::Profile};

/// Where a line stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Align {
    Left,
    Middle,
}

/// Something that takes the width of the paper.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Block {
    Text {
        text: String,
        bold: bool,
        /// Twice as high and wide.
        double: bool,
        align: Align,
        lines_max: usize,
    },
    /// A name and what belongs to it, at the two edges.
    Pair {
        left: String,
        right: String,
        bold: bool,
    },
    Rule,
    /// Dots of white.
    Gap(u8),
    Qr(String),
}

/// What is printed in one job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    pub language: Language,
    pub blocks: Vec<Block>,
}

/// White modules around a QR code.
const QUIET: usize = 4;
/// More dots a module make no reader happier.
const MODULE_MAX: usize = 8;
/// The height of a line, and of its letters, in dots; double: twice that.
const PITCH: usize = 30;
const SIZE: f32 = 23.0;
const BASELINE: f32 = 23.0;

impl Page {
    pub fn new(language: Language) -> Self {
        Self { language, blocks: Vec::new() }
    }

    /// A line, or up to four, at the left.
    pub fn text(&mut self, text: impl Into<String>) {
        self.line(text, false, false, Align::Left, 4);
    }

    /// Twice as large and bold, two lines at most.
    pub fn headline(&mut self, text: impl Into<String>) {
        self.line(text, true, true, Align::Left, 3);
    }

    pub fn middle(&mut self, text: impl Into<String>) {
        self.line(text, false, false, Align::Middle, 4);
    }

    fn line(&mut self, text: impl Into<String>, bold: bool, double: bool, align: Align, lines_max: usize) {
        let text = text::clean(&text.into());
        if !text.is_empty() {
            self.blocks.push(Block::Text { text, bold, double, align, lines_max });
        }
    }

    pub fn pair(&mut self, left: impl Into<String>, right: impl Into<String>) {
        self.both(left, right, false);
    }

    pub fn sum(&mut self, left: impl Into<String>, right: impl Into<String>) {
        self.both(left, right, true);
    }

    fn both(&mut self, left: impl Into<String>, right: impl Into<String>, bold: bool) {
        let (left, right) = (text::clean(&left.into()), text::clean(&right.into()));
        self.blocks.push(Block::Pair { left, right, bold });
    }

    pub fn rule(&mut self) {
        self.blocks.push(Block::Rule);
    }

    pub fn gap(&mut self, dots: u8) {
        self.blocks.push(Block::Gap(dots));
    }

    /// `code` is ASCII; what doesn't fit into a square is left to the text beside it.
    pub fn qr(&mut self, code: &str) {
        self.blocks.push(Block::Qr(code.to_owned()));
    }

    /// The job's bytes, all but the question whether it is on paper.
    pub fn commands(&self, fonts: &Fonts, profile: &Profile) -> Commands {
        let mut commands = Commands::new(profile.code_page);
        for block in &self.blocks {
            let own = match block {
                Block::Gap(dots) => {
                    commands.feed(*dots);
                    true
                }
                Block::Qr(code) if profile.own_qr => {
                    let square = QrCode::encode_text(code, QrCodeEcc::Medium).ok();
                    let module = square.map(|square| module(&square, profile.paper.dots()));
                    commands.qr(code, module.unwrap_or(3) as u8);
                    true
                }
                _ => letters(block, profile.paper.letters(), &mut commands),
            };
            if !own {
                commands.picture(&self.dots(block, fonts, profile.paper.dots()));
            }
        }
        commands.end(profile.cuts);
        commands
    }

    /// All of it in dots, as wide as the paper.
    pub fn picture(&self, fonts: &Fonts, dots: usize) -> Bitmap {
        let mut picture = Bitmap::new(dots, 0);
        for block in &self.blocks {
            let part = self.dots(block, fonts, dots);
            let top = picture.height();
            picture.grow(top + part.height());
            picture.stamp(&part, 0, top);
        }
        picture
    }

    fn dots(&self, block: &Block, fonts: &Fonts, width: usize) -> Bitmap {
        match block {
            Block::Gap(dots) => Bitmap::new(width, usize::from(*dots)),
            Block::Rule => {
                let mut picture = Bitmap::new(width, PITCH);
                picture.fill(0, PITCH / 2, width, 2);
                picture
            }
            Block::Qr(code) => square(code, width),
            Block::Text { text, bold, double, align, lines_max } => {
                let scale = if *double { 2 } else { 1 };
                let lines = self.fit(fonts, text, *bold, scale, width, *lines_max);
                let mut picture = Bitmap::new(width, lines.len() * PITCH * scale);
                for (at, line) in lines.iter().enumerate() {
                    let room = (width as f32 - line.width).max(0.0);
                    let left = match align {
                        Align::Middle => room / 2.0,
                        Align::Left if line.rtl => room,
                        Align::Left => 0.0,
                    };
                    line.blacken(&mut picture, left, (at * PITCH) as f32 * scale as f32 + BASELINE * scale as f32);
                }
                picture
            }
            Block::Pair { left, right, bold } => {
                let right = self.fit(fonts, right, *bold, 1, width / 2, 1);
                let taken = right.first().map_or(0.0, |line| line.width) as usize + PITCH / 2;
                let left = self.fit(fonts, left, *bold, 1, width - taken.min(width / 2 + PITCH), 3);
                let mut picture = Bitmap::new(width, left.len().max(1) * PITCH);
                for (at, line) in left.iter().enumerate() {
                    line.blacken(&mut picture, 0.0, (at * PITCH) as f32 + BASELINE);
                }
                let last = (left.len().max(1) - 1) * PITCH;
                for line in &right {
                    line.blacken(&mut picture, width as f32 - line.width, last as f32 + BASELINE);
                }
                picture
            }
        }
    }

    fn fit(&self, fonts: &Fonts, text: &str, bold: bool, scale: usize, width: usize, lines_max: usize) -> Vec<Line> {
        let style = Style { size: SIZE * scale as f32, bold, color: Color(0, 0, 0) };
        text::fit(fonts, self.language, text, style, width as f32, lines_max)
    }
}

/// A block as the printer's own letters; `false`, and nothing is added: it lacks one, or a block isn't text.
fn letters(block: &Block, width: usize, commands: &mut Commands) -> bool {
    let mut tried = commands.clone();
    let whole = match block {
        Block::Text { text, bold, double, align, lines_max } => {
            let width = if *double { width / 2 } else { width };
            let Some(lines) = wrap(text, width, *lines_max) else { return false };
            lines.iter().all(|line| {
                let room = width - line.chars().count();
                let indent = if *align == Align::Middle { room / 2 } else { 0 };
                tried.line(&format!("{}{line}", " ".repeat(indent)), *bold, *double)
            })
        }
        Block::Pair { left, right, bold } => {
            let taken = right.chars().count();
            let room = width.saturating_sub(taken + 1);
            if room < width / 3 {
                return false;
            }
            let Some(lines) = wrap(left, room, 3) else { return false };
            let last = lines.len().max(1) - 1;
            let mut lines = lines.iter().map(String::as_str).chain(lines.is_empty().then_some("")).enumerate();
            lines.all(|(at, line)| {
                let gap = " ".repeat(width - taken - line.chars().count());
                let line = if at == last { format!("{line}{gap}{right}") } else { line.to_owned() };
                tried.line(&line, *bold, false)
            })
        }
        Block::Rule => tried.line(&"-".repeat(width), false, false),
        Block::Gap(_) | Block::Qr(_) => false,
    };
    if whole {
        *commands = tried;
    }
    whole
}

/// Breaks at spaces, and within words that are longer than a line; `None`: more lines than there may be.
fn wrap(text: &str, width: usize, lines_max: usize) -> Option<Vec<String>> {
    let mut lines: Vec<String> = Vec::new();
    let mut line = String::new();
    for word in text.split(' ').filter(|word| !word.is_empty()) {
        let mut word: Vec<char> = word.chars().collect();
        let taken = line.chars().count();
        if taken > 0 && taken + 1 + word.len() <= width {
            line.push(' ');
        } else if taken > 0 {
            lines.push(std::mem::take(&mut line));
        }
        while word.len() > width {
            lines.push(word.drain(..width).collect());
        }
        line.extend(word);
    }
    if !line.is_empty() {
        lines.push(line);
    }
    (lines.len() <= lines_max).then_some(lines)
}

/// Dots of a module.
fn module(square: &QrCode, width: usize) -> usize {
    (width / (square.size() as usize + 2 * QUIET)).clamp(1, MODULE_MAX)
}

fn square(code: &str, width: usize) -> Bitmap {
    let Ok(square) = QrCode::encode_text(code, QrCodeEcc::Medium) else { return Bitmap::new(width, 0) };
    let (module, modules) = (module(&square, width), square.size() as usize);
    let side = (modules + 2 * QUIET) * module;
    let left = (width.saturating_sub(side)) / 2 + QUIET * module;
    let mut picture = Bitmap::new(width, side);
    for y in 0..modules {
        for x in 0..modules {
            if square.get_module(x as i32, y as i32) {
                picture.fill(left + x * module, (y + QUIET) * module, module, module);
            }
        }
    }
    picture
}
