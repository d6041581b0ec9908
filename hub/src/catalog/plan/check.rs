//! Findings, their places, and reading one field of an object.

use std::{collections::HashMap, fmt};

use super::{COORDINATE_MAX, Read, TEXT_CHARS_MAX};
use crate::catalog::json::{Node, Value};

/// Far more than anybody reads; a file can be wrong in a million places.
const FAULTS_MAX: usize = 100_000;

/// Which of the two files a finding is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum File {
    Plan,
    Beside,
}

/// What is wrong, and where: the plan is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    pub file: File,
    /// Such as `zones[3].rows[2].seats[7].seat_guid`; empty for the file as a whole.
    pub place: String,
    /// Of the object that it stands in; 0 if the finding is about more than one place.
    pub line: u32,
    pub code: &'static str,
    pub message: String,
}

/// What is odd, and where first: the plan is taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Warning {
    pub file: File,
    pub place: String,
    pub line: u32,
    pub code: &'static str,
    pub message: String,
    /// How often the same was found; the place is that of the first.
    pub count: usize,
}

fn write_place(f: &mut fmt::Formatter<'_>, file: File, line: u32, place: &str) -> fmt::Result {
    let name = if file == File::Plan { "plan" } else { "beside" };
    f.write_str(name)?;
    if line > 0 {
        write!(f, ", line {line}")?;
    }
    if !place.is_empty() {
        write!(f, ", {place}")?;
    }
    Ok(())
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_place(f, self.file, self.line, &self.place)?;
        write!(f, ": {} [{}]", self.message, self.code)
    }
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_place(f, self.file, self.line, &self.place)?;
        write!(f, ": {} [{}]", self.message, self.code)?;
        if self.count > 1 {
            write!(f, " (and {} more like it)", self.count - 1)?;
        }
        Ok(())
    }
}

/// Where the reader is, written out only if there is something to say.
#[derive(Clone, Copy)]
pub(super) struct Place<'p> {
    parent: Option<&'p Place<'p>>,
    step: Step<'p>,
}

#[derive(Clone, Copy)]
enum Step<'p> {
    Root,
    Key(&'p str),
    Index(usize),
}

impl<'p> Place<'p> {
    pub fn root() -> Self {
        Self { parent: None, step: Step::Root }
    }

    pub fn key(&'p self, key: &'p str) -> Self {
        Self { parent: Some(self), step: Step::Key(key) }
    }

    pub fn index(&'p self, index: usize) -> Self {
        Self { parent: Some(self), step: Step::Index(index) }
    }
}

impl fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(parent) = self.parent else { return Ok(()) };
        write!(f, "{parent}")?;
        match self.step {
            Step::Root => Ok(()),
            Step::Index(i) => write!(f, "[{i}]"),
            Step::Key(key) => {
                let dot = if matches!(parent.step, Step::Root) { "" } else { "." };
                // A key is the file's text: as long as it likes, with whatever in it.
                let plain = key.len() <= 40 && key.chars().all(|c| c.is_alphanumeric() || c == '_' || c == '-');
                if plain { write!(f, "{dot}{key}") } else { write!(f, "[{}]", shown(key)) }
            }
        }
    }
}

/// The file's own text inside a message: quoted, control characters escaped, not too long.
pub(super) fn shown(text: &str) -> String {
    match text.char_indices().nth(60) {
        Some((cut, _)) => format!("{:?}…", &text[..cut]),
        None => format!("{text:?}"),
    }
}

pub(super) struct Findings {
    file: File,
    faults: Vec<Fault>,
    warnings: Vec<Warning>,
    /// Where a warning of this code and subject stands already.
    known: HashMap<(&'static str, String), usize>,
}

impl Findings {
    pub fn new(file: File) -> Self {
        Self { file, faults: Vec::new(), warnings: Vec::new(), known: HashMap::new() }
    }

    pub fn fault(&mut self, place: Place<'_>, line: u32, code: &'static str, message: impl Into<String>) {
        let file = self.file;
        match self.faults.len() {
            n if n < FAULTS_MAX => {
                self.faults.push(Fault { file, place: place.to_string(), line, code, message: message.into() });
            }
            FAULTS_MAX => {
                let message = format!("more than {FAULTS_MAX} faults: the rest is not listed");
                self.faults.push(Fault { file, place: String::new(), line, code: "too_many_faults", message });
            }
            _ => {}
        }
    }

    /// Warnings of one code about one subject are counted, and told once.
    pub fn warn(&mut self, place: &str, line: u32, code: &'static str, subject: &str, message: impl Into<String>) {
        let next = self.warnings.len();
        let at = *self.known.entry((code, subject.to_owned())).or_insert(next);
        if at < next {
            self.warnings[at].count += 1;
        } else {
            let (file, place) = (self.file, place.to_owned());
            self.warnings.push(Warning { file, place, line, code, message: message.into(), count: 1 });
        }
    }

    /// Adds them to what is said of the files.
    pub fn tell(self, read: &mut Read) {
        read.faults.extend(self.faults);
        read.warnings.extend(self.warnings);
    }
}

/// What becomes of a key that the format does not have.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Unknown {
    /// Kept out, with a warning: the plan's format belongs to others, and grows.
    Warn,
    /// Refused: in a format of our own it is a slip of the pen.
    Refuse,
}

/// An object whose keys were checked.
pub(super) struct Fields<'n, 'a, 'p> {
    members: &'n [(std::borrow::Cow<'a, str>, Node<'a>)],
    pub place: Place<'p>,
    pub line: u32,
}

pub(super) fn wrong(f: &mut Findings, node: &Node<'_>, place: Place<'_>, wanted: &str) {
    f.fault(place, node.line, "wrong_type", format!("this is {}, {wanted} is needed", node.value.kind()));
}

/// `what` is the object's name in a warning, `known` are the keys that it may have.
pub(super) fn object<'n, 'a, 'p>(
    f: &mut Findings,
    node: &'n Node<'a>,
    place: Place<'p>,
    what: &str,
    known: &[&str],
    unknown: Unknown,
) -> Option<Fields<'n, 'a, 'p>> {
    let Value::Object(members) = &node.value else {
        wrong(f, node, place, "an object");
        return None;
    };
    let mut seen = 0u64;
    for (key, value) in members {
        match known.iter().position(|k| k == key) {
            Some(i) if seen & (1 << i) != 0 => {
                f.fault(place.key(key), value.line, "key_repeated", "the same key stands in this object twice");
            }
            Some(i) => seen |= 1 << i,
            None if unknown == Unknown::Refuse => {
                f.fault(place.key(key), value.line, "key_unknown", format!("a {what} has no such key"));
            }
            None => {
                let message = format!("a {what} has no key {}; it is kept out", shown(key));
                f.warn(&place.key(key).to_string(), value.line, "key_unknown", &format!("{what} {key}"), message);
            }
        }
    }
    Some(Fields { members, place, line: node.line })
}

pub(super) fn list<'n, 'a>(f: &mut Findings, node: &'n Node<'a>, place: Place<'_>) -> Option<&'n [Node<'a>]> {
    if let Value::List(items) = &node.value {
        return Some(items);
    }
    wrong(f, node, place, "a list");
    None
}

pub(super) fn text<'n>(f: &mut Findings, node: &'n Node<'_>, place: Place<'_>) -> Option<&'n str> {
    let Value::Text(text) = &node.value else {
        wrong(f, node, place, "text");
        return None;
    };
    if text.contains('\0') {
        f.fault(place, node.line, "text_has_nul", "the character U+0000 can't be stored");
        return None;
    }
    if text.len() > TEXT_CHARS_MAX && text.chars().count() > TEXT_CHARS_MAX {
        let message = format!("{} characters; at most {TEXT_CHARS_MAX} are taken", text.chars().count());
        f.fault(place, node.line, "text_too_long", message);
        return None;
    }
    Some(text)
}

pub(super) fn number(f: &mut Findings, node: &Node<'_>, place: Place<'_>) -> Option<f64> {
    let Value::Number(number) = node.value else {
        wrong(f, node, place, "a number");
        return None;
    };
    if !number.is_finite() || number.abs() > COORDINATE_MAX {
        f.fault(
            place,
            node.line,
            "number_out_of_range",
            format!("numbers go from -{COORDINATE_MAX:e} to {COORDINATE_MAX:e}"),
        );
        return None;
    }
    Some(number)
}

impl<'n, 'a> Fields<'n, 'a, '_> {
    pub fn get(&self, key: &str) -> Option<&'n Node<'a>> {
        self.members.iter().find(|(k, _)| k == key).map(|(_, v)| v)
    }

    pub fn required(&self, f: &mut Findings, key: &str) -> Option<&'n Node<'a>> {
        let node = self.get(key);
        if node.is_none() {
            f.fault(self.place.key(key), self.line, "field_missing", "this field is needed");
        }
        node
    }

    pub fn required_text(&self, f: &mut Findings, key: &str) -> Option<&'n str> {
        self.required(f, key).and_then(|n| text(f, n, self.place.key(key)))
    }

    pub fn required_list(&self, f: &mut Findings, key: &str) -> Option<&'n [Node<'a>]> {
        self.required(f, key).and_then(|n| list(f, n, self.place.key(key)))
    }

    pub fn optional_text(&self, f: &mut Findings, key: &str) -> Option<&'n str> {
        self.get(key).and_then(|n| text(f, n, self.place.key(key)))
    }

    /// Text, or null, or left out.
    pub fn nullable_text(&self, f: &mut Findings, key: &str) -> Option<&'n str> {
        self.get(key).filter(|n| n.value != Value::Null).and_then(|n| text(f, n, self.place.key(key)))
    }

    pub fn optional_number(&self, f: &mut Findings, key: &str) -> Option<f64> {
        self.get(key).and_then(|n| number(f, n, self.place.key(key)))
    }

    /// `default` if the number is left out; none if it is there and wrong.
    pub fn number_or(&self, f: &mut Findings, key: &str, default: f64) -> Option<f64> {
        match self.get(key) {
            None => Some(default),
            Some(n) => number(f, n, self.place.key(key)),
        }
    }

    pub fn required_number(&self, f: &mut Findings, key: &str) -> Option<f64> {
        self.required(f, key).and_then(|n| number(f, n, self.place.key(key)))
    }

    pub fn required_position(&self, f: &mut Findings, key: &str) -> Option<(f64, f64)> {
        self.required(f, key).and_then(|n| position(f, n, self.place.key(key), Unknown::Warn))
    }

    /// 0,0 if it is left out; none if it is there and wrong.
    pub fn optional_position(&self, f: &mut Findings, key: &str) -> Option<(f64, f64)> {
        match self.get(key) {
            None => Some((0.0, 0.0)),
            Some(n) => position(f, n, self.place.key(key), Unknown::Warn),
        }
    }
}

pub(super) fn position(f: &mut Findings, node: &Node<'_>, place: Place<'_>, unknown: Unknown) -> Option<(f64, f64)> {
    let fields = object(f, node, place, "position", &["x", "y"], unknown)?;
    let (x, y) = (fields.required_number(f, "x"), fields.required_number(f, "y"));
    Some((x?, y?))
}
