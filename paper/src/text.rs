//! Text as it is set: directions, fonts for every part, shapes of joined letters.
//!
//! Invariants
//! - Nothing vanishes: what no font has is named in its place by its number, and what does not fit ends in an
//!   ellipsis; what was named is reported.
//! - Glyphs keep the text they stand for, so that a reader's search and copy find it.

use std::ops::Range;

use rustybuzz::{Direction, UnicodeBuffer};
use unicode_bidi::BidiInfo;
use unicode_normalization::UnicodeNormalization;
use unicode_script::{Script, UnicodeScript};
use unicode_segmentation::UnicodeSegmentation;

use crate::{
    fonts::{Face, Fonts, is_unseen},
    words::Language,
};

/// Red, green, blue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Color(pub u8, pub u8, pub u8);

/// How a text looks.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Style {
    /// Points.
    pub size: f32,
    pub bold: bool,
    pub color: Color,
}

/// One line, shaped: runs from left to right.
pub struct Line {
    text: String,
    runs: Vec<Run>,
    style: Style,
    /// Points.
    pub width: f32,
    /// It begins at the right.
    pub rtl: bool,
    /// Clusters that no font has.
    pub missing: Vec<String>,
}

/// Glyphs of one face and one direction, from left to right.
pub(crate) struct Run {
    pub face: Face,
    pub glyphs: Vec<Glyph>,
    /// Of an em.
    pub width: f32,
}

/// A shape and its place. Of an em, all of them.
pub(crate) struct Glyph {
    pub id: u32,
    pub x_advance: f32,
    pub x_offset: f32,
    pub y_offset: f32,
    pub y_advance: f32,
    /// What it stands for.
    #[cfg_attr(not(any(test, feature = "pdf")), expect(dead_code, reason = "only a PDF keeps the text"))]
    pub text: Range<usize>,
}

/// What no line begins with.
const CLOSING: &str = "、。，．,.!?！？:;：；)）]］」』】〉》’”…";

/// Text as it is set: composed letters, no controls, single spaces. A space that doesn't break stays one.
pub fn clean(text: &str) -> String {
    let visible: String = text.nfc().map(|c| if c.is_control() { ' ' } else { c }).collect();
    visible.split([' ', '\u{2028}', '\u{2029}']).filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
}

/// What no font has is written by its number: whoever reads the ticket can tell that something stands there, and which.
/// Returns the text as it can be drawn, and what was replaced.
pub fn named(fonts: &Fonts, language: Language, text: &str, bold: bool) -> (String, Vec<String>) {
    let (mut drawn, mut missing) = (String::with_capacity(text.len()), Vec::new());
    for cluster in text.graphemes(true) {
        let seen = !cluster.chars().all(|c| c == ' ' || c == '\u{a0}' || is_unseen(c));
        if !seen || fonts.of(cluster, bold, language).is_some() {
            drawn.push_str(cluster);
            continue;
        }
        let numbers: Vec<String> = cluster.chars().map(|c| format!("U+{:04X}", c as u32)).collect();
        drawn.push_str(&format!("[{}]", numbers.join(" ")));
        missing.push(cluster.to_owned());
    }
    (drawn, missing)
}

/// Shapes one line, as wide as it gets.
pub fn line(fonts: &Fonts, language: Language, text: &str, style: Style) -> Line {
    let (text, mut missing) = named(fonts, language, &clean(text), style.bold);
    let (mut runs, mut rtl) = (Vec::new(), false);
    let bidi = BidiInfo::new(&text, None);
    if let Some(paragraph) = bidi.paragraphs.first() {
        rtl = paragraph.level.is_rtl();
        let (levels, visual) = bidi.visual_runs(paragraph, paragraph.range.clone());
        for range in visual {
            let right = levels[range.start].is_rtl();
            let mut parts = parts(fonts, language, &text, range, style.bold, &mut missing);
            if right {
                parts.reverse();
            }
            runs.extend(parts.into_iter().map(|(face, range)| shape(face, &text, range, right)));
        }
    }
    let width = runs.iter().map(|run| run.width).sum::<f32>() * style.size;
    Line { text, runs, style, width, rtl, missing }
}

/// A run of one direction, cut where the font changes; in the text's order.
fn parts(
    fonts: &Fonts,
    language: Language,
    text: &str,
    range: Range<usize>,
    bold: bool,
    missing: &mut Vec<String>,
) -> Vec<(Face, Range<usize>)> {
    let mut parts: Vec<(Face, Range<usize>)> = Vec::new();
    for (at, cluster) in text[range.clone()].grapheme_indices(true) {
        let here = range.start + at..range.start + at + cluster.len();
        // Spaces and unseen marks go with whatever stands before them; the spaces of pictures are very wide.
        let space = cluster.chars().all(|c| c == ' ' || c == '\u{a0}');
        let follows = space || cluster.chars().all(is_unseen);
        if let Some((_, last)) = parts.last_mut().filter(|(face, _)| follows && !(space && face.is_colored())) {
            last.end = here.end;
            continue;
        }
        let face = fonts.of(cluster, bold, language).unwrap_or_else(|| {
            missing.push(cluster.to_owned());
            fonts.plain(bold)
        });
        match parts.last_mut() {
            Some((last, so_far)) if last.is(&face) => so_far.end = here.end,
            _ => parts.push((face, here)),
        }
    }
    parts
}

fn shape(face: Face, text: &str, range: Range<usize>, right: bool) -> Run {
    let part = &text[range.clone()];
    let mut buffer = UnicodeBuffer::new();
    buffer.push_str(part);
    buffer.set_direction(if right { Direction::RightToLeft } else { Direction::LeftToRight });
    buffer.guess_segment_properties();
    let (units, shaped) = {
        let shaper = face.shaper();
        (shaper.units_per_em() as f32, rustybuzz::shape(&shaper, &[], buffer))
    };
    // A glyph stands for the text from its cluster to the next one.
    let mut starts: Vec<usize> = shaped.glyph_infos().iter().map(|g| g.cluster as usize).collect();
    starts.sort_unstable();
    starts.dedup();
    let end_of = |start: usize| starts.iter().copied().find(|s| *s > start).unwrap_or(part.len());
    let glyphs: Vec<Glyph> = shaped
        .glyph_infos()
        .iter()
        .zip(shaped.glyph_positions())
        .map(|(glyph, at)| {
            let start = glyph.cluster as usize;
            Glyph {
                id: glyph.glyph_id,
                x_advance: at.x_advance as f32 / units,
                x_offset: at.x_offset as f32 / units,
                y_offset: at.y_offset as f32 / units,
                y_advance: at.y_advance as f32 / units,
                text: range.start + start..range.start + end_of(start),
            }
        })
        .collect();
    let width = glyphs.iter().map(|glyph| glyph.x_advance).sum();
    Run { face, glyphs, width }
}

impl Line {
    /// Points: it may have become smaller, to fit.
    pub fn size(&self) -> f32 {
        self.style.size
    }

    /// As it is set: composed, and with numbers for what no font has.
    pub fn text(&self) -> &str {
        &self.text
    }

    pub(crate) fn runs(&self) -> &[Run] {
        &self.runs
    }

    pub(crate) fn style(&self) -> Style {
        self.style
    }
}

/// As many lines as it takes, up to `lines_max`; smaller, down to six tenths, if it takes more or a word would be torn;
/// cut then.
pub fn fit(fonts: &Fonts, language: Language, text: &str, style: Style, width: f32, lines_max: usize) -> Vec<Line> {
    let text = clean(text);
    let mut scale = 1.0;
    loop {
        let style = Style { size: style.size * scale, ..style };
        let (lines, whole) = wrap(fonts, language, &text, style, width, lines_max);
        if whole || scale <= 0.6 {
            return lines;
        }
        scale -= 0.1;
    }
}

/// Whether words of this character's script stay in one piece.
fn is_of_a_word(c: char) -> bool {
    c.is_alphanumeric() && !matches!(c.script(), Script::Han | Script::Hiragana | Script::Katakana | Script::Thai)
}

/// Breaks at spaces, and within what is longer than a line. False: it had to leave something out, or to tear a word.
fn wrap(
    fonts: &Fonts,
    language: Language,
    text: &str,
    style: Style,
    width: f32,
    lines_max: usize,
) -> (Vec<Line>, bool) {
    let set = |text: &str| line(fonts, language, text, style);
    let (mut lines, mut rest, mut torn) = (Vec::new(), text, false);
    while !rest.is_empty() && lines.len() < lines_max {
        let whole = set(rest);
        if whole.width <= width {
            lines.push(whole);
            return (lines, !torn);
        }
        // The longest beginning that fits: widths grow with the text, near enough to search by halves.
        let ends: Vec<usize> = rest.grapheme_indices(true).map(|(at, cluster)| at + cluster.len()).collect();
        let fitting = ends.partition_point(|end| set(&rest[..*end]).width <= width).max(1);
        let mut fitting = fitting;
        while fitting > 1 && rest[ends[fitting - 1]..].starts_with(|c| CLOSING.contains(c)) {
            fitting -= 1;
        }
        let hard = ends[fitting - 1];
        let last = lines.len() + 1 == lines_max;
        if last {
            let kept = ends[fitting.saturating_sub(2)];
            lines.push(set(&format!("{}…", rest[..kept].trim_end())));
            return (lines, false);
        }
        let soft = rest[..hard].rfind(' ').filter(|at| *at > 0);
        let cut = if rest[hard..].starts_with(' ') { hard } else { soft.unwrap_or(hard) };
        torn |= rest[..cut].ends_with(is_of_a_word) && rest[cut..].starts_with(is_of_a_word);
        lines.push(set(&rest[..cut]));
        rest = rest[cut..].trim_start();
    }
    (lines, !torn)
}

#[cfg(test)]
mod tests {
    use super::*;

    const STYLE: Style = Style { size: 10.0, bold: false, color: Color(0, 0, 0) };

    fn fonts() -> Fonts {
        Fonts::new(&["/usr/share/fonts".to_owned()])
    }

    fn texts(lines: &[Line]) -> Vec<&str> {
        lines.iter().map(|line| line.text.as_str()).collect()
    }

    #[test]
    fn letters_of_any_script_have_a_shape() {
        for text in
            ["Łukasz Žižek", "東京 太郎", "홍길동", "محمد", "דוד", "สมชาย", "अनिता", "Ναυσικά", "Тарас", "♪ 👩‍🚀 🇰🇷 ☎️"]
        {
            let line = line(&fonts(), Language::En, text, STYLE);
            assert!(line.missing.is_empty(), "{text}: {:?}", line.missing);
            let drawn = line.runs.iter().flat_map(|run| &run.glyphs);
            assert!(drawn.into_iter().all(|glyph| glyph.id != 0), "{text} has a box");
        }
    }

    #[test]
    fn arabic_is_joined_and_runs_to_the_left() {
        let joined = line(&fonts(), Language::En, "محمد", STYLE);
        assert!(joined.rtl);
        let ids = |line: &Line| line.runs.iter().flat_map(|r| r.glyphs.iter().map(|g| g.id)).collect::<Vec<_>>();
        let mut apart = Vec::new();
        for letter in "محمد".chars().rev() {
            apart.extend(ids(&line(&fonts(), Language::En, &letter.to_string(), STYLE)));
        }
        assert!(ids(&joined) != apart && ids(&joined).len() == 4, "letters that stand alone have other shapes");
        // The first letter stands last.
        assert_eq!(joined.runs[0].glyphs.last().unwrap().text.start, 0);
    }

    #[test]
    fn what_nobody_has_is_named_in_its_place() {
        let line = line(&Fonts::new(&[]), Language::En, "A東 \u{1f469}\u{200d}\u{1f680}", STYLE);
        assert_eq!(line.missing, ["東", "\u{1f469}\u{200d}\u{1f680}"]);
        assert_eq!(line.text, "A[U+6771] [U+1F469 U+200D U+1F680]");
        let drawn = line.runs.iter().flat_map(|run| &run.glyphs);
        assert!(drawn.into_iter().all(|glyph| glyph.id != 0), "and nothing is a box");
    }

    #[test]
    fn long_text_wraps_then_shrinks_then_says_that_it_goes_on() {
        let set = |text: &str, lines| fit(&fonts(), Language::En, text, STYLE, 60.0, lines);
        assert_eq!(texts(&set("one two three four", 2)), ["one two", "three four"]);
        let long = set(&"東".repeat(40), 2);
        assert!(long.len() == 2 && long[1].text.ends_with('…'), "{:?}", texts(&long));
        assert!(long.iter().all(|line| line.width <= 60.0));
        let word = set("Complimentary x", 2);
        assert_eq!(texts(&word)[0], "Complimentary", "a word is made smaller before it is torn");
        assert_eq!(set("", 2).len(), 0);
        assert_eq!(texts(&set("a\tb\n c", 2)), ["a b c"]);
    }
}
