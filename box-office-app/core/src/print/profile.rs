//! What a printer is, as its house set it up.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::code_page::CodePage;

/// Rolls, by the width of the paper.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Paper {
    /// 576 dots, 48 letters.
    Mm80,
    /// 384 dots, 32 letters.
    Mm58,
}

impl Paper {
    /// That can be printed, at 203 a inch.
    pub fn dots(self) -> usize {
        match self {
            Paper::Mm80 => 576,
            Paper::Mm58 => 384,
        }
    }

    /// Letters of a line.
    pub fn letters(self) -> usize {
        self.dots() / LETTER_DOTS
    }
}

/// A printer's own letter is that wide.
const LETTER_DOTS: usize = 12;

/// How a printer says that a job is on paper.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Confirms {
    /// Answers `GS ( H` when everything before it is printed (Epson's TM series and those that follow it).
    Jobs,
    /// Answers `GS r` in its turn: when it has read that far. The most that older printers say.
    Paper,
    /// Never answers (a one-way cable): every ticket is a person's to confirm.
    Nothing,
}

/// The pin of the plug that a drawer hangs on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DrawerPin {
    Two,
    Five,
}

/// Where it is.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Place {
    /// `host:port`, the port mostly 9100.
    Network { address: String },
    /// Such as `/dev/usb/lp0`.
    Device { path: PathBuf },
    /// There is none: a PDF a job goes into this folder, for another printer or a person.
    Folder { path: PathBuf },
}

/// A printer.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    pub place: Place,
    pub paper: Paper,
    pub code_page: CodePage,
    pub confirms: Confirms,
    /// It has a cutter.
    pub cuts: bool,
    /// It draws QR codes itself. Dots are slower by a moment, and the same everywhere.
    pub own_qr: bool,
    pub drawer: DrawerPin,
}

impl Profile {
    /// What most printers of a network are.
    pub fn network(address: &str) -> Self {
        Self {
            place: Place::Network { address: address.to_owned() },
            paper: Paper::Mm80,
            code_page: CodePage::Pc858,
            confirms: Confirms::Jobs,
            cuts: true,
            own_qr: false,
            drawer: DrawerPin::Two,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_readme_shows_what_most_printers_of_a_network_are() {
        let readme = include_str!("../../../../README.md");
        let (_, shown) = readme.split_once("`printer.json`").unwrap();
        let (_, shown) = shown.split_once("```json\n").unwrap();
        let (shown, _) = shown.split_once("```").unwrap();
        let shown: Profile = serde_json::from_str(shown).unwrap();
        assert_eq!(shown, Profile::network("192.168.1.50:9100"));
    }
}
