//! What a printer's own letters are: a byte a letter, by the table that it is switched to.

/// A table of letters, as printers of Epson's kind number them (`ESC t`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CodePage {
    /// United States; every printer has it.
    Pc437,
    /// Western Europe.
    Pc850,
    /// Central Europe.
    Pc852,
    /// Western Europe, with the euro.
    Pc858,
    /// Cyrillic.
    Pc866,
    /// Windows' Western Europe.
    Wpc1252,
}

impl CodePage {
    pub const ALL: [CodePage; 6] =
        [CodePage::Pc437, CodePage::Pc850, CodePage::Pc852, CodePage::Pc858, CodePage::Pc866, CodePage::Wpc1252];

    /// The number after `ESC t`.
    pub fn number(self) -> u8 {
        match self {
            CodePage::Pc437 => 0,
            CodePage::Pc850 => 2,
            CodePage::Pc852 => 18,
            CodePage::Pc858 => 19,
            CodePage::Pc866 => 17,
            CodePage::Wpc1252 => 16,
        }
    }

    /// The byte of a letter, never one that could be a command; `None`: the printer doesn't have it.
    pub fn byte(self, letter: char) -> Option<u8> {
        match letter {
            ' '..='~' => Some(letter as u8),
            // It looks the same on paper; no table has it.
            '\u{2212}' => Some(b'-'),
            '\u{a0}' => Some(b' '),
            _ => {
                let at = self.upper().chars().position(|known| known == letter && known != NONE)?;
                Some(0x80 + at as u8)
            }
        }
    }

    /// All bytes of a text; `None` if a letter is missing.
    pub fn bytes(self, text: &str) -> Option<Vec<u8>> {
        text.chars().map(|letter| self.byte(letter)).collect()
    }

    /// Bytes 80 to FF.
    fn upper(self) -> &'static str {
        match self {
            CodePage::Pc437 => PC437,
            CodePage::Pc850 => PC850,
            CodePage::Pc852 => PC852,
            CodePage::Pc858 => PC858,
            CodePage::Pc866 => PC866,
            CodePage::Wpc1252 => WPC1252,
        }
    }
}

/// A byte without a letter.
const NONE: char = '\u{fffd}';

#[rustfmt::skip]
const PC437: &str = "\
    ÇüéâäàåçêëèïîìÄÅÉæÆôöòûùÿÖÜ¢£¥₧ƒáíóúñÑªº¿⌐¬½¼¡«»░▒▓│┤╡╢╖╕╣║╗╝╜╛┐\
    └┴┬├─┼╞╟╚╔╩╦╠═╬╧╨╤╥╙╘╒╓╫╪┘┌█▄▌▐▀αßΓπΣσµτΦΘΩδ∞φε∩≡±≥≤⌠⌡÷≈°∙·√ⁿ²■\u{fffd}";
#[rustfmt::skip]
const PC850: &str = "\
    ÇüéâäàåçêëèïîìÄÅÉæÆôöòûùÿÖÜø£Ø×ƒáíóúñÑªº¿®¬½¼¡«»░▒▓│┤ÁÂÀ©╣║╗╝¢¥┐\
    └┴┬├─┼ãÃ╚╔╩╦╠═╬¤ðÐÊËÈıÍÎÏ┘┌█▄¦Ì▀ÓßÔÒõÕµþÞÚÛÙýÝ¯´\u{fffd}±‗¾¶§÷¸°¨·¹³²■\u{fffd}";
#[rustfmt::skip]
const PC852: &str = "\
    ÇüéâäůćçłëŐőîŹÄĆÉĹĺôöĽľŚśÖÜŤťŁ×čáíóúĄąŽžĘę¬źČş«»░▒▓│┤ÁÂĚŞ╣║╗╝Żż┐\
    └┴┬├─┼Ăă╚╔╩╦╠═╬¤đĐĎËďŇÍÎě┘┌█▄ŢŮ▀ÓßÔŃńňŠšŔÚŕŰýÝţ´\u{fffd}˝˛ˇ˘§÷¸°¨˙űŘř■\u{fffd}";
#[rustfmt::skip]
const PC858: &str = "\
    ÇüéâäàåçêëèïîìÄÅÉæÆôöòûùÿÖÜø£Ø×ƒáíóúñÑªº¿®¬½¼¡«»░▒▓│┤ÁÂÀ©╣║╗╝¢¥┐\
    └┴┬├─┼ãÃ╚╔╩╦╠═╬¤ðÐÊËÈ€ÍÎÏ┘┌█▄¦Ì▀ÓßÔÒõÕµþÞÚÛÙýÝ¯´\u{fffd}±‗¾¶§÷¸°¨·¹³²■\u{fffd}";
#[rustfmt::skip]
const PC866: &str = "\
    АБВГДЕЖЗИЙКЛМНОПРСТУФХЦЧШЩЪЫЬЭЮЯабвгдежзийклмноп░▒▓│┤╡╢╖╕╣║╗╝╜╛┐\
    └┴┬├─┼╞╟╚╔╩╦╠═╬╧╨╤╥╙╘╒╓╫╪┘┌█▄▌▐▀рстуфхцчшщъыьэюяЁёЄєЇїЎў°∙·√№¤■\u{fffd}";
#[rustfmt::skip]
const WPC1252: &str = "\
    €\u{fffd}‚ƒ„…†‡ˆ‰Š‹Œ\u{fffd}Ž\u{fffd}\u{fffd}‘’“”•–—˜™š›œ\u{fffd}žŸ\u{fffd}¡¢£¤¥¦§¨©ª«¬\u{fffd}®¯°±²³´µ¶·¸¹º»¼½¾¿\
    ÀÁÂÃÄÅÆÇÈÉÊËÌÍÎÏÐÑÒÓÔÕÖ×ØÙÚÛÜÝÞßàáâãäåæçèéêëìíîïðñòóôõö÷øùúûüýþÿ";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_whole_and_no_letter_is_a_command() {
        for page in CodePage::ALL {
            assert_eq!(page.upper().chars().count(), 128, "{page:?}");
            for letter in ('\0'..='\u{2fff}').filter(|letter| page.byte(*letter).is_some()) {
                let byte = page.byte(letter).unwrap();
                assert!(byte >= 0x20 && byte != 0x7f, "{page:?}: {letter:?} is {byte:#x}");
                assert!(!letter.is_control());
            }
        }
    }

    #[test]
    fn what_a_table_lacks_is_told() {
        assert_eq!(CodePage::Wpc1252.bytes("Zoë 5 €"), Some(vec![b'Z', b'o', 0xeb, b' ', b'5', b' ', 0x80]));
        assert_eq!(CodePage::Wpc1252.bytes("Łukasz"), None);
        assert_eq!(CodePage::Pc852.bytes("Łukasz").map(|b| b[0]), Some(0x9d));
        for text in ["東京", "홍길동", "محمد", "👩‍🚀", "a\u{1b}@", "\n", "\u{7f}", "\u{9b}", "\u{fffd}"]
        {
            assert!(CodePage::ALL.iter().all(|page| page.bytes(text).is_none()), "{text:?}");
        }
    }
}
