//! The shape of a written event: every missing, unknown or mistyped field at once, before it is read.
//! (The reader itself stops at the first.)

use serde_json::Value;

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

/// What is wrong with the shape of a specification, each with its place.
pub(super) fn faults(event: &Value) -> Vec<String> {
    let mut faults = Vec::new();
    check_object(event, EVENT, "", &mut faults);
    faults
}

/// The names of all fields.
#[cfg(test)]
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    [EVENT, PERFORMER, LEVEL, PRICE, FEE, TAX, REFUND, TICKET].into_iter().flatten().map(|field| field.name)
}

fn check_object(value: &Value, fields: &[Field], place: &str, faults: &mut Vec<String>) {
    let at = |name: &str| if place.is_empty() { name.to_owned() } else { format!("{place}.{name}") };
    let Some(object) = value.as_object() else {
        faults.push(format!("{}: a table of fields is needed", if place.is_empty() { "the event" } else { place }));
        return;
    };
    for field in fields {
        match object.get(field.name) {
            Some(Value::Null) | None if !field.needed => {}
            Some(Value::Null) | None => faults.push(format!("{}: this field is needed", at(field.name))),
            Some(value) => check(value, &field.kind, &at(field.name), faults),
        }
    }
    for key in object.keys().filter(|key| !fields.iter().any(|field| field.name == *key)) {
        faults.push(format!("{}: there is no such field", at(key)));
    }
}

fn check(value: &Value, kind: &Kind, place: &str, faults: &mut Vec<String>) {
    let (sound, wanted) = match kind {
        Kind::Text => (value.is_string(), "text"),
        Kind::Whole => (value.is_i64(), "a whole number"),
        Kind::Flag => (value.is_boolean(), "true or false"),
        Kind::Number => (value.is_number(), "a number"),
        Kind::Table(fields) => return check_object(value, fields, place, faults),
        Kind::Texts => (value.as_array().is_some_and(|list| list.iter().all(Value::is_string)), "a list of texts"),
        Kind::Words => {
            (value.as_object().is_some_and(|texts| texts.values().all(Value::is_string)), "a text a language")
        }
        Kind::List(fields) => {
            for (i, item) in value.as_array().into_iter().flatten().enumerate() {
                check_object(item, fields, &format!("{place}[{i}]"), faults);
            }
            (value.is_array(), "a list")
        }
    };
    if !sound {
        faults.push(format!("{place}: {wanted} is needed"));
    }
}
