//! Which key stands for which letter, under the layouts that scanners can be set to.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::KeyEvent;

/// A key by its place on the keyboard, whatever is printed on it: as Linux numbers them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Code(pub u16);

impl Code {
    pub const ENTER: Code = Code(28);
    pub const TAB: Code = Code(15);
    pub const SPACE: Code = Code(57);
    pub const SHIFT: Code = Code(42);
    pub const ALT: Code = Code(56);
    pub const F13: Code = Code(183);
    const SHIFT_RIGHT: Code = Code(54);
    const ALT_GR: Code = Code(100);
    /// Ctrl and Super, left and right.
    const COMMANDS: [Code; 4] = [Code(29), Code(97), Code(125), Code(126)];
    /// 0 to 9.
    const NUMPAD: [Code; 10] =
        [Code(82), Code(79), Code(80), Code(81), Code(75), Code(76), Code(77), Code(71), Code(72), Code(73)];
    /// − + . * /
    const NUMPAD_SIGNS: [(Code, char); 5] =
        [(Code(74), '-'), (Code(78), '+'), (Code(83), '.'), (Code(55), '*'), (Code(98), '/')];

    /// Of the number that X and GTK know a key by (`hardware_keycode`).
    pub fn of_xkb(keycode: u16) -> Code {
        Code(keycode.saturating_sub(8))
    }

    pub fn is_shift(self) -> bool {
        self == Self::SHIFT || self == Self::SHIFT_RIGHT
    }

    pub(super) fn is_command(self) -> bool {
        Self::COMMANDS.contains(&self)
    }

    fn numpad_digit(self) -> Option<u32> {
        Self::NUMPAD.iter().position(|code| *code == self).map(|digit| digit as u32)
    }

    /// A letter, a digit or a sign under some layout.
    pub fn is_printable(self) -> bool {
        place(self).is_some() || self == Self::SPACE || self.on_numpad().is_some()
    }

    fn on_numpad(self) -> Option<char> {
        let sign = Self::NUMPAD_SIGNS.iter().find(|(code, _)| *code == self).map(|(_, sign)| *sign);
        self.numpad_digit().and_then(|digit| char::from_digit(digit, 10)).or(sign)
    }
}

/// What a scanner believes the system's keyboard to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Layout {
    Us,
    De,
    Fr,
    It,
    Ja,
}

/// Places of the keys in the rows below: the row of digits, Q, A, Z, and the two that only Japanese keyboards have.
const PLACES: [u16; 50] = [
    41, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, // ` 1 … 0 - =
    16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 43, // Q … P [ ] \
    30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40, // A … L ; '
    86, 44, 45, 46, 47, 48, 49, 50, 51, 52, 53, // < Z … M , . /
    89, 124, // ろ ¥
];

fn place(code: Code) -> Option<usize> {
    PLACES.iter().position(|place| *place == code.0)
}

/// A key that has no letter there is a `\0`.
type Rows = [&'static str; 5];

#[rustfmt::skip]
const US: [Rows; 2] = [
    ["`1234567890-=", "qwertyuiop[]\\", "asdfghjkl;'", "\0zxcvbnm,./", "\0\0"],
    ["~!@#$%^&*()_+", "QWERTYUIOP{}|", "ASDFGHJKL:\"", "\0ZXCVBNM<>?", "\0\0"],
];
#[rustfmt::skip]
const DE: [Rows; 2] = [
    ["^1234567890ß´", "qwertzuiopü+#", "asdfghjklöä", "<yxcvbnm,.-", "\0\0"],
    ["°!\"§$%&/()=?`", "QWERTZUIOPÜ*'", "ASDFGHJKLÖÄ", ">YXCVBNM;:_", "\0\0"],
];
#[rustfmt::skip]
const FR: [Rows; 2] = [
    ["²&é\"'(-è_çà)=", "azertyuiop^$*", "qsdfghjklmù", "<wxcvbn,;:!", "\0\0"],
    ["\x001234567890°+", "AZERTYUIOP¨£µ", "QSDFGHJKLM%", ">WXCVBN?./§", "\0\0"],
];
#[rustfmt::skip]
const IT: [Rows; 2] = [
    ["\\1234567890'ì", "qwertyuiopè+ù", "asdfghjklòà", "<zxcvbnm,.-", "\0\0"],
    ["|!\"£$%&/()=?^", "QWERTYUIOPé*§", "ASDFGHJKLç°", ">ZXCVBNM;:_", "\0\0"],
];
#[rustfmt::skip]
const JA: [Rows; 2] = [
    ["\x001234567890-^", "qwertyuiop@[]", "asdfghjkl;:", "\0zxcvbnm,./", "\\¥"],
    ["\0!\"#$%&'()\0=~", "QWERTYUIOP`{}", "ASDFGHJKL+*", "\0ZXCVBNM<>?", "_|"],
];

impl Layout {
    pub const ALL: [Layout; 5] = [Layout::Us, Layout::De, Layout::Fr, Layout::It, Layout::Ja];

    fn rows(self) -> &'static [Rows; 2] {
        match self {
            Layout::Us => &US,
            Layout::De => &DE,
            Layout::Fr => &FR,
            Layout::It => &IT,
            Layout::Ja => &JA,
        }
    }

    /// What a key writes.
    pub fn letter(self, code: Code, shifted: bool) -> Option<char> {
        if code == Code::SPACE {
            return Some(' ');
        }
        let rows = &self.rows()[usize::from(shifted)];
        let letter = place(code).and_then(|at| rows.iter().flat_map(|row| row.chars()).nth(at));
        letter.filter(|letter| *letter != '\0').or_else(|| code.on_numpad())
    }

    /// The key that writes a letter, and whether it is shifted.
    pub fn key_of(self, letter: char) -> Option<(Code, bool)> {
        if letter == ' ' {
            return Some((Code::SPACE, false));
        }
        [false, true].into_iter().find_map(|shifted| {
            let at = self.rows()[usize::from(shifted)].iter().flat_map(|row| row.chars()).position(|l| l == letter)?;
            Some((Code(PLACES[at]), shifted))
        })
    }

    /// What was typed, in upper case; `None` if a key has no letter here. Alt with digits of the number pad, by which
    /// scanners get by without a layout, is the letter of that number.
    pub(super) fn read(self, keys: &[KeyEvent]) -> Option<String> {
        let (mut text, mut shifts, mut by_number) = (String::new(), BTreeSet::new(), None);
        for KeyEvent { code, down, .. } in keys.iter().copied() {
            match (code, down) {
                (code, true) if code.is_shift() => drop(shifts.insert(code)),
                (code, false) if code.is_shift() => drop(shifts.remove(&code)),
                (Code::ALT, true) => by_number = Some(0),
                (Code::ALT, false) => {
                    let letter = by_number.take().and_then(char::from_u32);
                    text.push(letter.filter(|letter| letter.is_ascii() && !letter.is_control())?);
                }
                (Code::ALT_GR, _) => return None,
                (code, true) => match (&mut by_number, code.numpad_digit()) {
                    (Some(number), Some(digit)) => *number = (*number * 10 + digit).min(100_000),
                    (Some(_), None) => return None,
                    (None, _) => text.push(self.letter(code, !shifts.is_empty())?),
                },
                (_, false) => {}
            }
        }
        Some(text.to_uppercase())
    }
}

/// How many letters these keys may stand for.
pub(super) fn letters(keys: &[KeyEvent]) -> usize {
    let written = |event: &&KeyEvent| event.down && event.code.is_printable();
    keys.iter().filter(written).count()
}
