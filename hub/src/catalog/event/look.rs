//! How an event's tickets look: what is written down, and what can be wrong with it. (Drawing is the press's business.)

use std::{collections::BTreeMap, io::Cursor};

use serde::{Deserialize, Serialize};

use crate::words::Language;

/// The largest logo, in bytes and in pixels a side; `event_ticket_logo_bounded` says the first as well.
const LOGO_BYTES_MAX: usize = 262_144;
const LOGO_PIXELS: std::ops::RangeInclusive<u32> = 16..=2_000;
/// What fits where it is printed.
const NOTE_MAX: usize = 160;
const TERMS_MAX: usize = 600;

/// Lines of a ticket that a house may leave out. Event, time, place, seat, order and code stay: a door needs them.
pub const LINES: [&str; 4] = ["doors", "holder", "price", "type"];

/// As it stands in an event's specification.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TicketLook {
    /// `#rrggbb`; the house's, if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accent: Option<String>,
    /// Of [`LINES`], those that are left out.
    #[serde(default)]
    pub hide: Vec<String>,
    /// A sentence below the code, by language; whoever reads another gets the English one.
    #[serde(default)]
    pub note: BTreeMap<String, String>,
    /// In place of the house's terms, likewise.
    #[serde(default)]
    pub terms: BTreeMap<String, String>,
}

impl TicketLook {
    /// From how it is stored. What can't be read looks like the house's.
    pub fn read(stored: Option<serde_json::Value>) -> Self {
        stored.and_then(|value| serde_json::from_value(value).ok()).unwrap_or_default()
    }

    /// Red, green, blue.
    pub fn accent(&self) -> Option<[u8; 3]> {
        let hex = self.accent.as_deref()?.strip_prefix('#')?;
        let bytes = data_encoding::HEXLOWER_PERMISSIVE.decode(hex.as_bytes()).ok()?;
        bytes.try_into().ok()
    }

    pub fn hides(&self, line: &str) -> bool {
        self.hide.iter().any(|hidden| hidden == line)
    }

    pub fn note(&self, language: Language) -> Option<&str> {
        in_words(&self.note, language)
    }

    pub fn terms(&self, language: Language) -> Option<&str> {
        in_words(&self.terms, language)
    }

    /// Every fault, each with its place.
    pub(super) fn faults(&self) -> Vec<String> {
        let mut faults = Vec::new();
        if self.accent.is_some() && self.accent().is_none() {
            faults.push("ticket.accent: #rrggbb is needed".to_owned());
        }
        for (i, line) in self.hide.iter().enumerate() {
            if !LINES.contains(&line.as_str()) {
                faults
                    .push(format!("ticket.hide[{i}]: there is no line {line:?}: {} can be left out", LINES.join(", ")));
            }
        }
        for (name, texts, max) in [("note", &self.note, NOTE_MAX), ("terms", &self.terms, TERMS_MAX)] {
            for (language, text) in texts {
                if !Language::ALL.iter().any(|known| known.code() == language) {
                    faults.push(format!("ticket.{name}.{language}: tickets speak en, ja and ko"));
                }
                if text.trim().is_empty() || text.chars().count() > max {
                    faults.push(format!("ticket.{name}.{language}: 1 to {max} characters fit there"));
                }
            }
            if !texts.is_empty() && !texts.contains_key("en") {
                faults.push(format!("ticket.{name}.en: whoever reads no other language needs the English one"));
            }
        }
        faults
    }
}

fn in_words(texts: &BTreeMap<String, String>, language: Language) -> Option<&str> {
    texts.get(language.code()).or_else(|| texts.get("en")).map(String::as_str)
}

/// What is wrong with a logo; nothing, if it can be drawn: a PNG, whole, of a bounded size.
pub fn logo_fault(bytes: &[u8]) -> Option<String> {
    if bytes.len() > LOGO_BYTES_MAX {
        return Some(format!("ticket_logo: it has {} bytes: at most {LOGO_BYTES_MAX} are taken", bytes.len()));
    }
    let whole = || {
        let mut reader = png::Decoder::new(Cursor::new(bytes)).read_info().ok()?;
        let (width, height) = (reader.info().width, reader.info().height);
        if !LOGO_PIXELS.contains(&width) || !LOGO_PIXELS.contains(&height) {
            return Some(Err((width, height)));
        }
        let mut pixels = vec![0; reader.output_buffer_size()?];
        reader.next_frame(&mut pixels).ok()?;
        Some(Ok(()))
    };
    match whole() {
        Some(Ok(())) => None,
        Some(Err((width, height))) => {
            Some(format!("ticket_logo: it has {width} x {height} pixels: from 16 to 2000 a side are taken"))
        }
        None => Some("ticket_logo: it is not a whole PNG".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_fault_of_a_look_is_told_with_its_place() {
        let words = |pairs: &[(&str, &str)]| pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        let look = TicketLook {
            accent: Some("red".into()),
            hide: vec!["price".into(), "code".into()],
            note: words(&[("de", "Hallo"), ("ja", " ")]),
            terms: words(&[("en", &"x".repeat(601))]),
        };
        let places: Vec<String> = look.faults().iter().map(|f| f.split(':').next().unwrap_or("").to_owned()).collect();
        assert_eq!(
            places,
            [
                "ticket.accent",
                "ticket.hide[1]",
                "ticket.note.de",
                "ticket.note.ja",
                "ticket.note.en",
                "ticket.terms.en"
            ]
        );
        assert_eq!(
            TicketLook { accent: Some("#7A4d06".into()), ..TicketLook::default() }.accent(),
            Some([0x7a, 0x4d, 6])
        );
        assert!(TicketLook::default().faults().is_empty());
    }

    #[test]
    fn a_logo_is_a_whole_png_of_a_bounded_size() {
        assert!(logo_fault(b"<svg/>").is_some_and(|f| f.contains("not a whole PNG")));
        assert!(logo_fault(&vec![0; LOGO_BYTES_MAX + 1]).is_some_and(|f| f.contains("bytes")));
        let png = |side: u32| {
            let mut bytes = Vec::new();
            let mut encoder = png::Encoder::new(&mut bytes, side, side);
            encoder.set_color(png::ColorType::Grayscale);
            let mut writer = encoder.write_header().unwrap();
            writer.write_image_data(&vec![7; (side * side) as usize]).unwrap();
            writer.finish().unwrap();
            bytes
        };
        assert_eq!(logo_fault(&png(64)), None);
        assert!(logo_fault(&png(8)).is_some_and(|f| f.contains("8 x 8")));
        let whole = png(64);
        assert!(logo_fault(&whole[..whole.len() / 2]).is_some(), "half of one");
    }
}
