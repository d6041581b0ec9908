//! A line on a PDF's page.

use krilla::{
    color::rgb,
    geom::Point,
    num::NormalizedF32,
    paint::{Fill, Paint, Stroke},
    surface::Surface,
    text::{GlyphId, KrillaGlyph},
};

use crate::text::{Color, Glyph, Line, Style};

impl From<Color> for Paint {
    fn from(color: Color) -> Self {
        rgb::Color::new(color.0, color.1, color.2).into()
    }
}

impl Line {
    /// Draws it from `x` on, `y` being its baseline.
    pub fn draw(&self, surface: &mut Surface<'_>, mut x: f32, y: f32) {
        let Style { size, bold, color } = self.style();
        surface.set_fill(Some(Fill { paint: color.into(), opacity: NormalizedF32::ONE, rule: Default::default() }));
        for run in self.runs() {
            let heavier = bold && run.face.is_thickened();
            surface.set_stroke(heavier.then(|| Stroke {
                paint: color.into(),
                width: size * 0.03,
                ..Stroke::default()
            }));
            let glyphs: Vec<KrillaGlyph> = run.glyphs.iter().map(embedded).collect();
            surface.draw_glyphs(Point::from_xy(x, y), &glyphs, run.face.font(), self.text(), size, false);
            x += run.width * size;
        }
        surface.set_stroke(None);
    }
}

fn embedded(glyph: &Glyph) -> KrillaGlyph {
    let Glyph { id, x_advance, x_offset, y_offset, y_advance, ref text } = *glyph;
    KrillaGlyph::new(GlyphId::new(id), x_advance, x_offset, y_offset, y_advance, text.clone(), None)
}
