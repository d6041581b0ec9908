//! A line in dots: black or not, as a thermal printer burns them.
//!
//! Invariants
//! - Nothing is drawn outside of a bitmap, and nothing fails: what lies outside is cut.
//! - Black is black: outlines are cut at half coverage; only pictures (emoji) are dithered.

use std::io::Cursor;

use rustybuzz::ttf_parser::{self, GlyphId, OutlineBuilder, RasterImageFormat};
use tiny_skia::{FillRule, Mask, Path, PathBuilder, Stroke, Transform};

use crate::text::{Glyph, Line};

/// Dots, a bit each, rows padded to whole bytes, the first dot highest: as `GS v 0` and PDF images take them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bitmap {
    width: usize,
    height: usize,
    rows: Vec<u8>,
}

impl Bitmap {
    /// All white.
    pub fn new(width: usize, height: usize) -> Self {
        Self { width, height, rows: vec![0; width.div_ceil(8) * height] }
    }

    pub fn width(&self) -> usize {
        self.width
    }

    pub fn height(&self) -> usize {
        self.height
    }

    pub fn bytes_a_row(&self) -> usize {
        self.width.div_ceil(8)
    }

    /// All rows, one after the other; a set bit is black.
    pub fn rows(&self) -> &[u8] {
        &self.rows
    }

    pub fn is_black(&self, x: usize, y: usize) -> bool {
        x < self.width && y < self.height && self.rows[y * self.bytes_a_row() + x / 8] & (0x80 >> (x % 8)) != 0
    }

    /// Outside of it nothing happens.
    pub fn blacken(&mut self, x: usize, y: usize) {
        if x < self.width && y < self.height {
            let at = y * self.bytes_a_row() + x / 8;
            self.rows[at] |= 0x80 >> (x % 8);
        }
    }

    /// Blackens a rectangle.
    pub fn fill(&mut self, left: usize, top: usize, width: usize, height: usize) {
        for y in top..top.saturating_add(height).min(self.height) {
            for x in left..left.saturating_add(width).min(self.width) {
                self.blacken(x, y);
            }
        }
    }

    /// Blackens what is black in `other`, whose corner lies at `left`, `top`.
    pub fn stamp(&mut self, other: &Bitmap, left: usize, top: usize) {
        for y in 0..other.height {
            for x in 0..other.width {
                if other.is_black(x, y) {
                    self.blacken(left + x, top + y);
                }
            }
        }
    }

    /// Makes it longer, white below.
    pub fn grow(&mut self, height: usize) {
        self.height = self.height.max(height);
        self.rows.resize(self.bytes_a_row() * self.height, 0);
    }

    /// A PNG in two colours.
    ///
    /// # Panics
    /// Without any dot there is no picture.
    pub fn png(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut encoder = png::Encoder::new(&mut bytes, self.width as u32, self.height as u32);
        encoder.set_color(png::ColorType::Grayscale);
        encoder.set_depth(png::BitDepth::One);
        let white: Vec<u8> = self.rows.iter().map(|byte| !byte).collect();
        let written = encoder.write_header().and_then(|mut writer| writer.write_image_data(&white));
        written.expect("a bitmap has dots, and memory takes them");
        bytes
    }
}

impl Line {
    /// Draws it in dots from `x` on, `y` being its baseline; its size is in dots.
    pub fn blacken(&self, onto: &mut Bitmap, mut x: f32, y: f32) {
        let Some(mut mask) = Mask::new(onto.width as u32, onto.height as u32) else { return };
        let style = self.style();
        for run in self.runs() {
            let shaper = run.face.shaper();
            let units = f32::from(shaper.units_per_em() as i16);
            let heavier = style.bold && run.face.is_thickened();
            let (mut pen, mut rise) = (x, 0.0);
            for glyph in &run.glyphs {
                let (left, base) = (pen + glyph.x_offset * style.size, y - rise - glyph.y_offset * style.size);
                if !picture(onto, &shaper, glyph, left, base, style.size) {
                    outline(&mut mask, &shaper, glyph, (left, base), style.size / units, heavier);
                }
                pen += glyph.x_advance * style.size;
                rise += glyph.y_advance * style.size;
            }
            x += run.width * style.size;
        }
        for (at, coverage) in mask.data().iter().enumerate() {
            if *coverage >= 128 {
                onto.blacken(at % onto.width, at / onto.width);
            }
        }
    }
}

fn outline(mask: &mut Mask, face: &ttf_parser::Face<'_>, glyph: &Glyph, at: (f32, f32), scale: f32, heavier: bool) {
    let mut outline = Outline(PathBuilder::new());
    if face.outline_glyph(GlyphId(glyph.id as u16), &mut outline).is_none() {
        return;
    }
    let Some(path) = outline.0.finish() else { return };
    let place = Transform::from_row(scale, 0.0, 0.0, -scale, at.0, at.1);
    mask_path(mask, &path, place);
    if heavier {
        let stroke = Stroke { width: 0.05 * f32::from(face.units_per_em()), ..Stroke::default() };
        if let Some(edge) = path.stroke(&stroke, scale) {
            mask_path(mask, &edge, place);
        }
    }
}

fn mask_path(mask: &mut Mask, path: &Path, place: Transform) {
    mask.fill_path(path, FillRule::Winding, true, place);
}

/// A glyph that is a picture; `false` if it isn't.
fn picture(onto: &mut Bitmap, face: &ttf_parser::Face<'_>, glyph: &Glyph, left: f32, base: f32, size: f32) -> bool {
    let Some(image) = face.glyph_raster_image(GlyphId(glyph.id as u16), u16::MAX) else { return false };
    let Some(gray) = (image.format == RasterImageFormat::PNG).then(|| gray(image.data)).flatten() else {
        return false;
    };
    let scale = size / f32::from(image.pixels_per_em);
    let (width, height) = ((gray.width as f32 * scale) as usize, (gray.height as f32 * scale) as usize);
    let left = (left + f32::from(image.x) * scale).max(0.0) as usize;
    let top = (base - (f32::from(image.y) + gray.height as f32) * scale).max(0.0) as usize;
    // Ordered dithering: the same picture is the same dots, wherever it stands.
    const STEPS: [[u32; 4]; 4] = [[0, 8, 2, 10], [12, 4, 14, 6], [3, 11, 1, 9], [15, 7, 13, 5]];
    for y in 0..height {
        for x in 0..width {
            let darkness = 255 - gray.mean(x as f32 / scale, y as f32 / scale, 1.0 / scale);
            if darkness > STEPS[y % 4][x % 4] * 16 + 8 {
                onto.blacken(left + x, top + y);
            }
        }
    }
    true
}

/// A picture on white paper.
struct Gray {
    width: usize,
    height: usize,
    dots: Vec<u8>,
}

impl Gray {
    /// The mean of a square.
    fn mean(&self, left: f32, top: f32, side: f32) -> u32 {
        let across = left as usize..((left + side) as usize).max(left as usize + 1).min(self.width);
        let down = top as usize..((top + side) as usize).max(top as usize + 1).min(self.height);
        let (mut sum, mut count) = (0_u32, 0_u32);
        for y in down {
            for x in across.clone() {
                sum += u32::from(self.dots[y * self.width + x]);
                count += 1;
            }
        }
        sum.checked_div(count).unwrap_or(255)
    }
}

fn gray(png: &[u8]) -> Option<Gray> {
    let mut decoder = png::Decoder::new(Cursor::new(png));
    decoder.set_transformations(png::Transformations::EXPAND | png::Transformations::STRIP_16);
    let mut reader = decoder.read_info().ok()?;
    let mut bytes = vec![0; reader.output_buffer_size()?];
    let info = reader.next_frame(&mut bytes).ok()?;
    let (width, height) = (info.width as usize, info.height as usize);
    let channels = info.color_type.samples();
    let dots = bytes.chunks_exact(channels).take(width * height).map(|dot| {
        let alpha = if channels == 2 || channels == 4 { u32::from(dot[channels - 1]) } else { 255 };
        let (r, g, b) = if channels >= 3 { (dot[0], dot[1], dot[2]) } else { (dot[0], dot[0], dot[0]) };
        let light = (u32::from(r) * 299 + u32::from(g) * 587 + u32::from(b) * 114) / 1000;
        ((light * alpha + 255 * (255 - alpha)) / 255) as u8
    });
    let dots: Vec<u8> = dots.collect();
    (dots.len() == width * height).then_some(Gray { width, height, dots })
}

/// Outlines as they come from a font, into a path.
struct Outline(PathBuilder);

impl OutlineBuilder for Outline {
    fn move_to(&mut self, x: f32, y: f32) {
        self.0.move_to(x, y);
    }
    fn line_to(&mut self, x: f32, y: f32) {
        self.0.line_to(x, y);
    }
    fn quad_to(&mut self, x1: f32, y1: f32, x: f32, y: f32) {
        self.0.quad_to(x1, y1, x, y);
    }
    fn curve_to(&mut self, x1: f32, y1: f32, x2: f32, y2: f32, x: f32, y: f32) {
        self.0.cubic_to(x1, y1, x2, y2, x, y);
    }
    fn close(&mut self) {
        self.0.close();
    }
}
