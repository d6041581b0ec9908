//! What comes out of a printer, on a printer without paper.

use std::{fs, path::PathBuf, process::Command, time::Duration};

use chrono::NaiveDate;
use fullhouse_paper::{fonts::Fonts, raster::Bitmap, words::Language};
use fullhouse_test_printer::{Behaviour, Engine, Sheet, TestPrinter};
use uuid::Uuid;

use super::*;
use crate::scan::TEST_CODE;

mod certainty; // which tickets are out
mod looks; // what they look like
mod orders; // what is printed of an order
mod safe; // text is text

/// As a hub signs them: 149 letters.
fn code(n: u8) -> String {
    let letters = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
    (0..149_usize).map(|at| char::from(letters[(at * 7 + at / 5 + usize::from(n)) % 32])).collect()
}

fn ticket(holder: &str) -> Ticket {
    Ticket {
        language: Language::En,
        event: "The Magic Flute".to_owned(),
        venue: "Stadthalle".to_owned(),
        city: "Zürich".to_owned(),
        starts: NaiveDate::from_ymd_opt(2026, 12, 5).unwrap().and_hms_opt(19, 30, 0).unwrap(),
        doors: NaiveDate::from_ymd_opt(2026, 12, 5).unwrap().and_hms_opt(18, 45, 0),
        section: "Main floor".to_owned(),
        row: "12".to_owned(),
        number: "6B".to_owned(),
        standing: false,
        ticket_type: "adult".to_owned(),
        price: Some(("EUR".to_owned(), 4_550)),
        holder: Some(holder.to_owned()),
        order: "K7Q2M".to_owned(),
        count: (1, 2),
        code: code(0),
        told: String::new(),
    }
}

/// With every font of this machine.
fn all_fonts() -> Fonts {
    Fonts::new(&["/usr/share/fonts".to_owned()])
}

fn on_58(mut profile: Profile) -> Profile {
    profile.paper = Paper::Mm58;
    profile
}

/// What bytes make of paper.
fn sheets(bytes: &[u8], dots: usize) -> (Vec<Sheet>, Engine) {
    let mut engine = Engine::new(dots);
    let mut at = 0;
    while at < bytes.len() {
        let (length, _) = engine.step(&bytes[at..]).expect("no command is cut");
        at += length;
    }
    (engine.sheets(), engine)
}

fn printed(page: &Page, fonts: &Fonts, profile: &Profile) -> Sheet {
    let (mut sheets, engine) = sheets(page.commands(fonts, profile).bytes(), profile.paper.dots());
    assert_eq!((sheets.len(), engine.drawer()), (1, &[][..]), "one piece of paper, and the drawer is shut");
    let sheet = sheets.remove(0);
    assert!(sheet.unknown.is_empty(), "{:?}", sheet.unknown);
    sheet
}

/// A folder of this test's own, gone at its end.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        let path = std::env::temp_dir().join(format!("fullhouse-print-{}", Uuid::now_v7()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// What a reader of QR codes makes of a picture.
fn scanned(png: &[u8]) -> Vec<String> {
    let folder = Folder::new();
    let file = folder.0.join("picture.png");
    fs::write(&file, png).unwrap();
    let read = Command::new("zbarimg").args(["--quiet", "--raw", "-Sdisable", "-Sqrcode.enable"]).arg(&file).output();
    let read = read.expect("zbarimg is there (Debian: zbar-tools)");
    String::from_utf8(read.stdout).unwrap().lines().map(str::to_owned).collect()
}

/// Pictures go where somebody can look at them, if they ask for it.
fn show(name: &str, picture: &Bitmap) {
    if let Some(folder) = std::env::var_os("SHOW_PAPER") {
        fs::create_dir_all(&folder).unwrap();
        fs::write(PathBuf::from(folder).join(format!("{name}.png")), picture.png()).unwrap();
    }
}
