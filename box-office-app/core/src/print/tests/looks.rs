use chrono::{DateTime, FixedOffset};
use fullhouse_protocol::shift::{
    Denomination, ShiftCheck, ShiftCheckWhat, ShiftClosed, ShiftMove, ShiftMoveKind, ShiftReport, ShiftSum, TenderSum,
};

use super::*;

fn receipt() -> Receipt {
    Receipt {
        language: Language::En,
        house: vec!["Stadthalle".to_owned(), "Bahnhofstrasse 1, Zürich".to_owned(), "CHE-123.456.789".to_owned()],
        order: "K7Q2M".to_owned(),
        event: "The Magic Flute".to_owned(),
        sold: NaiveDate::from_ymd_opt(2026, 12, 1).unwrap().and_hms_opt(14, 5, 0).unwrap(),
        till: "Foyer 2".to_owned(),
        clerk: Some("Anna".to_owned()),
        currency: "EUR".to_owned(),
        lines: vec![
            ("Main floor, row 12, seat 6B, Adult".to_owned(), 4_550),
            ("Main floor, row 12, seat 7B, Concession for pupils and students with a card".to_owned(), 2_000),
            ("Booking fee".to_owned(), 150),
        ],
        total_minor: 6_700,
        tax: Some(("VAT".to_owned(), "8.1".to_owned(), 502)),
        tenders: vec![("Cash".to_owned(), 5_000), ("VISA •••• 4242".to_owned(), 2_000)],
        change_minor: 300,
    }
}

fn z() -> ShiftReport {
    let at = |time: &str| time.parse::<DateTime<chrono::Utc>>().unwrap();
    let sum = |count, amount_minor| ShiftSum { count, amount_minor };
    ShiftReport {
        shift_id: Uuid::from_u128(1),
        terminal_id: Uuid::from_u128(2),
        terminal_name: "Foyer 2".to_owned(),
        business_day: NaiveDate::from_ymd_opt(2026, 12, 1).unwrap(),
        currency: "EUR".to_owned(),
        opened_at: at("2026-12-01T08:00:00Z"),
        opened_by: "Anna".to_owned(),
        float_minor: 10_000,
        cash_sales: sum(3, 7_000),
        cash_back: sum(1, 2_000),
        pay_ins: sum(0, 0),
        pay_outs: sum(0, 0),
        drops: sum(1, 5_000),
        expected_minor: 10_000,
        tenders: vec![
            TenderSum { kind: "cash".to_owned(), count: 3, amount_minor: 7_000 },
            TenderSum { kind: "card".to_owned(), count: 12, amount_minor: 123_450 },
        ],
        moves: vec![ShiftMove {
            kind: ShiftMoveKind::Drop,
            amount_minor: 5_000,
            reason: "to the safe".to_owned(),
            by: "Anna".to_owned(),
            at: at("2026-12-01T12:00:00Z"),
        }],
        checks: vec![
            ShiftCheck {
                what: ShiftCheckWhat::Printer,
                skipped: None,
                by: "Anna".to_owned(),
                at: at("2026-12-01T08:02:00Z"),
            },
            ShiftCheck {
                what: ShiftCheckWhat::Scanner,
                skipped: Some("its cable is broken".to_owned()),
                by: "Anna".to_owned(),
                at: at("2026-12-01T08:04:00Z"),
            },
        ],
        closed: Some(ShiftClosed {
            z_number: 41,
            closed_at: at("2026-12-01T17:00:00Z"),
            closed_by: "Berta".to_owned(),
            counted: vec![
                Denomination { value_minor: 5_000, count: 1 },
                Denomination { value_minor: 2_000, count: 2 },
                Denomination { value_minor: 50, count: 19 },
            ],
            counted_minor: 9_950,
            variance_minor: -50,
            explanation: Some("a coin fell behind the counter".to_owned()),
        }),
        now: at("2026-12-01T17:00:00Z"),
    }
}

fn pages(profile: &Profile) -> Vec<(&'static str, Page)> {
    let zone = FixedOffset::east_opt(3600).unwrap();
    vec![
        ("ticket", ticket("Łukasz Müller").page()),
        ("receipt", receipt().page()),
        ("z", report(&z(), Language::En, &zone)),
        ("x", report(&ShiftReport { closed: None, ..z() }, Language::En, &zone)),
        ("test", test_page(profile, Language::En)),
    ]
}

/// With the letters that are shipped, so that every machine's bytes are the same.
#[test]
fn the_golden_bytes_are_what_they_were() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("golden-paper");
    let fonts = Fonts::new(&[]);
    for (width, profile) in [("80", Profile::network("printer:9100")), ("58", on_58(Profile::network("printer:9100")))]
    {
        for (name, page) in pages(&profile) {
            let bytes = page.commands(&fonts, &profile).bytes().to_vec();
            let file = folder.join(format!("{name}-{width}.bin"));
            if std::env::var_os("UPDATE_GOLDEN").is_some() {
                fs::create_dir_all(&folder).unwrap();
                fs::write(&file, &bytes).unwrap();
            }
            assert!(
                fs::read(&file).unwrap() == bytes,
                "{name} on {width} mm: UPDATE_GOLDEN=1, and look at the picture"
            );
            show(&format!("golden-{name}-{width}"), &printed(&page, &fonts, &profile).picture);
        }
    }
}

#[test]
fn a_ticket_says_what_it_has_to_in_the_printers_own_letters() {
    let sheet = printed(&ticket("Zoë").page(), &Fonts::new(&[]), &Profile::network("printer:9100"));
    let text = sheet.letters.join("\n");
    for part in
        ["The Magic Flute", "Stadthalle, Zürich", "Sat, 5 December 2026, 19:30", "Main floor", "6B", "K7Q2M", "Zoë"]
    {
        assert!(text.contains(part), "{part} in {text}");
    }
    assert!(text.contains("EUR 45.50") && sheet.cut);
    assert_eq!(scanned(&sheet.picture.png()), [code(0)]);
}

#[test]
fn every_script_is_on_paper_of_both_widths_and_the_code_can_be_read() {
    let fonts = all_fonts();
    for (width, profile) in [("80", Profile::network("printer:9100")), ("58", on_58(Profile::network("printer:9100")))]
    {
        for (name, holder) in [
            ("ja", "東京 太郎"),
            ("ko", "홍길동"),
            ("ar", "محمد بن سلمان"),
            ("pl", "Łukasz Žižek"),
            ("emoji", "Anna 👩‍🚀🎭"),
            ("img", "<img src=x onerror=alert(1)>"),
        ] {
            let language = match name {
                "ja" => Language::Ja,
                "ko" => Language::Ko,
                _ => Language::En,
            };
            let sheet = printed(&Ticket { language, ..ticket(holder) }.page(), &fonts, &profile);
            show(&format!("ticket-{name}-{width}"), &sheet.picture);
            assert_eq!(scanned(&sheet.picture.png()), [code(0)], "{name} on {width} mm");
            let own = sheet.letters.iter().any(|line| line.contains(holder));
            assert_eq!(own, name == "img", "{name}: letters where the printer has them, dots where it hasn't");
            let blank = printed(&Ticket { holder: None, language, ..ticket("") }.page(), &fonts, &profile);
            assert!(sheet.picture.height() > blank.picture.height(), "{name} takes room");
        }
        show(&format!("test-{width}"), &printed(&test_page(&profile, Language::Ja), &fonts, &profile).picture);
    }
}

#[test]
fn a_printer_that_draws_squares_itself_draws_the_same() {
    let profile = Profile { own_qr: true, ..Profile::network("printer:9100") };
    let sheet = printed(&ticket("Zoë").page(), &Fonts::new(&[]), &profile);
    assert_eq!(scanned(&sheet.picture.png()), [code(0)]);
    let dots = ticket("Zoë").page().commands(&Fonts::new(&[]), &Profile::network("printer:9100")).bytes().len();
    assert!(ticket("Zoë").page().commands(&Fonts::new(&[]), &profile).bytes().len() < dots / 10);
}

#[test]
fn the_test_page_is_what_the_scanner_learns_from() {
    let profile = Profile::network("printer:9100");
    let sheet = printed(&test_page(&profile, Language::En), &all_fonts(), &profile);
    assert_eq!(scanned(&sheet.picture.png()), [TEST_CODE]);
}

#[test]
fn without_a_printer_there_is_a_pdf_whose_code_can_be_read() {
    let folder = Folder::new();
    let profile = Profile { place: Place::Folder { path: folder.0.clone() }, ..Profile::network("") };
    let printer = Printer::new(profile, all_fonts());
    assert_eq!(printer.print(&ticket("東京 太郎").page()), End::Printed);
    let files: Vec<PathBuf> = fs::read_dir(&folder.0).unwrap().map(|file| file.unwrap().path()).collect();
    assert_eq!(files.len(), 1, "{files:?}");
    let drawn = folder.0.join("drawn");
    let ran = Command::new("pdftoppm").args(["-png", "-r", "203", "-singlefile"]).arg(&files[0]).arg(&drawn).status();
    assert!(ran.expect("pdftoppm is there (Debian: poppler-utils)").success());
    assert_eq!(scanned(&fs::read(drawn.with_extension("png")).unwrap()), [code(0)]);
}

#[test]
fn a_folder_that_is_none_prints_nothing_for_certain_or_is_doubtful() {
    let profile = Profile { place: Place::Folder { path: "/proc/none".into() }, ..Profile::network("") };
    assert_eq!(Printer::new(profile, Fonts::new(&[])).print(&ticket("Zoë").page()), End::Doubtful(Trouble::Disk));
}

/// The printer without paper reads what others write too.
#[test]
fn the_emulator_reads_what_another_writer_writes() {
    use escpos::{driver::FileDriver, printer::Printer as Other, utils::*};
    let folder = Folder::new();
    let file = folder.0.join("bytes");
    fs::write(&file, []).unwrap();
    let driver = FileDriver::open(&file).unwrap();
    let mut options = escpos::printer_options::PrinterOptions::default();
    options.page_code(Some(PageCode::PC858));
    let mut other = Other::new(driver, Protocol::default(), Some(options));
    other.init().unwrap().page_code(PageCode::PC858).unwrap();
    other.bold(true).unwrap().writeln("Zürich").unwrap();
    other.qrcode_option("HELLO WORLD 42", QRCodeOption::new(QRCodeModel::Model2, 6, QRCodeCorrectionLevel::M)).unwrap();
    other.print_cut().unwrap();
    let (sheets, _) = sheets(&fs::read(&file).unwrap(), 576);
    assert_eq!(sheets[0].unknown, [] as [Vec<u8>; 0]);
    assert!(sheets[0].letters.contains(&"Zürich".to_owned()), "{:?}", sheets[0].letters);
    assert_eq!(scanned(&sheets[0].picture.png()), ["HELLO WORLD 42"]);
}
