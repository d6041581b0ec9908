use proptest::prelude::*;

use super::{
    command::{REAL_TIME, kick},
    *,
};

/// Texts as somebody would send them who wants something of a printer: commands, halves of them, marks of direction.
fn hostile() -> impl Strategy<Value = String> {
    let commands = proptest::sample::select(vec![
        "\u{1b}@",
        "\u{1b}p\0\u{32}\u{fa}",
        "\u{10}\u{14}\u{1}\0\u{1}",
        "\u{1d}V\0",
        "\u{1d}(k\u{3}\0",
        "\u{10}\u{4}\u{1}",
        "\r\n",
        "\u{7f}\u{9b}",
        "\u{202e}",
        "<img src=x onerror=…>",
        "{name}",
        "%s%n",
        "\0",
        "東京\u{1b}@",
        "ﷺ",
    ]);
    let any = proptest::collection::vec(any::<char>(), 0..20).prop_map(|c| c.into_iter().collect::<String>());
    proptest::collection::vec(prop_oneof![commands.prop_map(str::to_owned), any], 0..6).prop_map(|parts| parts.concat())
}

fn has_real_time_commands(bytes: &[u8]) -> bool {
    bytes.windows(2).any(|pair| pair[0] == 0x10 && REAL_TIME.contains(&pair[1]))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    #[test]
    fn what_a_field_says_is_never_a_command(texts in proptest::collection::vec(hostile(), 8), wide: bool) {
        let hostile = Ticket {
            event: texts[0].clone(),
            venue: texts[1].clone(),
            section: texts[2].clone(),
            row: texts[3].clone(),
            ticket_type: texts[4].clone(),
            holder: Some(texts[5].clone()),
            order: texts[6].clone(),
            told: texts[7].clone(),
            ..ticket("")
        };
        let profile = Profile::network("printer:9100");
        let profile = if wide { profile } else { on_58(profile) };
        let fonts = Fonts::new(&[]);
        let bytes = hostile.page().commands(&fonts, &profile).bytes().to_vec();
        prop_assert!(!has_real_time_commands(&bytes));
        // `printed`: one sheet, no drawer, no command that isn't ours.
        let sheet = printed(&hostile.page(), &fonts, &profile);
        prop_assert!(sheet.cut);
        prop_assert!(sheet.letters.iter().flat_map(|line| line.chars()).all(|letter| !letter.is_control()));
    }

    #[test]
    fn dots_are_no_commands_either(rows in proptest::collection::vec(proptest::sample::select(vec![0x10_u8, 0x04, 0x05, 0x14, 0x01, 0xff]), 72)) {
        let mut picture = Bitmap::new(576, 1);
        for (at, byte) in rows.iter().enumerate() {
            for bit in (0..8).filter(|bit| byte & (0x80 >> bit) != 0) {
                picture.blacken(at * 8 + bit, 0);
            }
        }
        let mut commands = Commands::new(CodePage::Pc437);
        commands.picture(&picture);
        prop_assert!(!has_real_time_commands(commands.bytes()));
        let (sheets, _) = sheets(commands.bytes(), 576);
        let added = (0..576).filter(|x| sheets[0].picture.is_black(*x, 0) && !picture.is_black(*x, 0)).count();
        let lost = (0..576).filter(|x| !sheets[0].picture.is_black(*x, 0) && picture.is_black(*x, 0)).count();
        prop_assert!(lost == 0 && added <= 36, "a dot more here and there: {} lost, {} added", lost, added);
    }
}

/// The control: through the most used writer of such bytes, a name opens the drawer.
#[test]
fn a_name_that_goes_out_as_it_is_opens_a_drawer() {
    use escpos::{driver::FileDriver, printer::Printer as Other, utils::Protocol};
    let folder = Folder::new();
    let file = folder.0.join("bytes");
    fs::write(&file, []).unwrap();
    let mut other = Other::new(FileDriver::open(&file).unwrap(), Protocol::default(), None);
    other.init().unwrap().writeln("Anna\u{1b}p\0\u{32}\u{7a}").unwrap().print().unwrap();
    let (_, engine) = sheets(&fs::read(&file).unwrap(), 576);
    assert_eq!(engine.drawer().len(), 1);
    let (_, engine) = sheets(
        ticket("Anna\u{1b}p\0\u{32}\u{7a}").page().commands(&Fonts::new(&[]), &Profile::network("")).bytes(),
        576,
    );
    assert_eq!(engine.drawer().len(), 0);
}

/// The control: such dots open the drawer of a printer that is sent them as they are.
#[test]
fn dots_that_are_not_made_harmless_open_a_drawer() {
    let printer = TestPrinter::start(576);
    let picture = [&[0x1d, b'v', b'0', 0, 5, 0, 1, 0][..], &[0x10, 0x14, 1, 0, 1]].concat();
    let mut link = link::network(&printer.address().to_string(), Duration::from_secs(2)).unwrap();
    link.send(&picture, Duration::from_secs(2)).unwrap();
    printer.settle();
    assert_eq!(printer.drawer().len(), 1);
}

#[test]
fn a_drawer_opens_when_it_is_told_to() {
    for (pin, number) in [(DrawerPin::Two, 2), (DrawerPin::Five, 5)] {
        let printer = TestPrinter::start(576);
        let profile = Profile { drawer: pin, ..Profile::network(&printer.address().to_string()) };
        Printer::new(profile, Fonts::new(&[])).kick().unwrap();
        printer.settle();
        assert_eq!(printer.drawer().iter().map(|drawer| drawer.pin).collect::<Vec<_>>(), [number]);
        assert_eq!(kick(pin).len(), 5);
    }
}
