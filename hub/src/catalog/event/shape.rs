//! The shape of a written event: every missing, unknown or mistyped field at once, before it is read.
//! (The reader itself stops at the first.) What has the wrong shape gets a blank one, so that the values
//! of the rest can be looked at.

use serde_json::{Map, Value};

enum Kind {
    Text,
    Whole,
    Flag,
    Texts,
    Number,
    /// An object with these fields.
    Table(&'static [Field]),
    /// A list of objects with these fields.
    List(&'static [Field]),
    /// Texts by the code of their language.
    Words,
}

impl Kind {
    fn blank(&self) -> Value {
        match self {
            Self::Text => Value::String(String::new()),
            Self::Whole | Self::Number => 0.into(),
            Self::Flag => false.into(),
            Self::Texts | Self::List(_) => Value::Array(Vec::new()),
            Self::Table(_) | Self::Words => Value::Object(Map::new()),
        }
    }
}

struct Field {
    name: &'static str,
    needed: bool,
    kind: Kind,
}

const fn needed(name: &'static str, kind: Kind) -> Field {
    Field { name, needed: true, kind }
}

const fn optional(name: &'static str, kind: Kind) -> Field {
    Field { name, needed: false, kind }
}

const PERFORMER: &[Field] = &[needed("slug", Kind::Text), needed("name", Kind::Text)];
const PRICE: &[Field] = &[needed("ticket_type", Kind::Text), needed("amount_minor", Kind::Whole)];
const FEE: &[Field] = &[needed("code", Kind::Text), needed("basis", Kind::Text), needed("amount_minor", Kind::Whole)];
const TAX: &[Field] = &[needed("name", Kind::Text), needed("percent", Kind::Number)];
const LEVEL: &[Field] = &[
    needed("category", Kind::Text),
    optional("name", Kind::Text),
    optional("color", Kind::Text),
    needed("prices", Kind::List(PRICE)),
];
const REFUND: &[Field] = &[
    needed("until_hours", Kind::Whole),
    optional("keep_percent", Kind::Whole),
    optional("keep_minor", Kind::Whole),
    optional("keep_fees", Kind::Flag),
];
const TICKET: &[Field] = &[
    optional("accent", Kind::Text),
    optional("hide", Kind::Texts),
    optional("note", Kind::Words),
    optional("terms", Kind::Words),
];
const EVENT: &[Field] = &[
    needed("slug", Kind::Text),
    needed("name", Kind::Text),
    optional("description", Kind::Text),
    optional("tags", Kind::Texts),
    needed("venue", Kind::Text),
    needed("plan", Kind::Text),
    optional("time_zone", Kind::Text),
    optional("doors", Kind::Text),
    needed("starts", Kind::Text),
    needed("on_sale", Kind::Text),
    optional("off_sale", Kind::Text),
    needed("currency", Kind::Text),
    optional("seat_limit", Kind::Whole),
    optional("hold_ttl_s", Kind::Whole),
    optional("single_seat_rule", Kind::Flag),
    optional("consecutive_rule", Kind::Flag),
    optional("seats_min", Kind::Whole),
    optional("refund", Kind::Table(REFUND)),
    optional("ticket", Kind::Table(TICKET)),
    optional("ticket_logo", Kind::Text),
    optional("performers", Kind::List(PERFORMER)),
    needed("levels", Kind::List(LEVEL)),
    optional("fees", Kind::List(FEE)),
    optional("tax", Kind::Table(TAX)),
];

/// What is wrong with the shape of a specification, each with its place. Then it has the right shape: unknown
/// fields are gone, and what is needed is blank where it was missing or mistyped.
pub(super) fn mend(event: &mut Value) -> Vec<String> {
    let mut faults = Vec::new();
    mend_object(event, EVENT, "", &mut faults);
    faults
}

/// The names of all fields.
#[cfg(test)]
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    [EVENT, PERFORMER, LEVEL, PRICE, FEE, TAX, REFUND, TICKET].into_iter().flatten().map(|field| field.name)
}

fn mend_object(value: &mut Value, fields: &[Field], place: &str, faults: &mut Vec<String>) {
    let at = |name: &str| if place.is_empty() { name.to_owned() } else { format!("{place}.{name}") };
    if !value.is_object() {
        faults.push(format!("{}: a table of fields is needed", if place.is_empty() { "the event" } else { place }));
        *value = Value::Object(Map::new());
        return mend_object(value, fields, place, &mut Vec::new());
    }
    let Some(object) = value.as_object_mut() else { return };
    for field in fields {
        let sound = match object.get_mut(field.name) {
            Some(Value::Null) | None if !field.needed => false,
            Some(Value::Null) | None => {
                faults.push(format!("{}: this field is needed", at(field.name)));
                false
            }
            Some(value) => mend_value(value, &field.kind, &at(field.name), faults),
        };
        if !sound {
            object.remove(field.name);
            if field.needed {
                object.insert(field.name.to_owned(), field.kind.blank());
            }
        }
    }
    object.retain(|key, _| {
        let known = fields.iter().any(|field| field.name == key);
        if !known {
            faults.push(format!("{}: there is no such field", at(key)));
        }
        known
    });
}

/// Whether it is of its kind; what stands in it is mended.
fn mend_value(value: &mut Value, kind: &Kind, place: &str, faults: &mut Vec<String>) -> bool {
    let (sound, wanted) = match kind {
        Kind::Text => (value.is_string(), "text"),
        Kind::Whole => (value.is_i64(), "a whole number"),
        Kind::Flag => (value.is_boolean(), "true or false"),
        Kind::Number => (value.is_number(), "a number"),
        Kind::Table(fields) => {
            mend_object(value, fields, place, faults);
            return true;
        }
        Kind::Texts => (value.as_array().is_some_and(|list| list.iter().all(Value::is_string)), "a list of texts"),
        Kind::Words => {
            (value.as_object().is_some_and(|texts| texts.values().all(Value::is_string)), "a text a language")
        }
        Kind::List(fields) => {
            for (i, item) in value.as_array_mut().into_iter().flatten().enumerate() {
                mend_object(item, fields, &format!("{place}[{i}]"), faults);
            }
            (value.is_array(), "a list")
        }
    };
    if !sound {
        faults.push(format!("{place}: {wanted} is needed"));
    }
    sound
}
