//! Reading the seating plan JSON of pretix, field by field.

use std::collections::{HashMap, hash_map::Entry};

use super::check::{Fields, Findings, Place, Unknown::Warn, list, object, position, shown, text};
use super::{
    AREAS_MAX, Area, CATEGORIES_MAX, Category, POINTS_MAX, Plan, ROWS_MAX, Row, SEATS_MAX, Seat, Shape, TEXT_CHARS_MAX,
    Text, ZONES_MAX, Zone,
};
use crate::catalog::{
    color,
    json::{Node, Value},
    text::visible,
};

const RADIUS_DEFAULT: f64 = 10.0;
const TEXT_SIZE_DEFAULT: f64 = 16.0;
/// For categories without a colour; told apart by people with any kind of colour vision (Okabe and Ito).
const PALETTE: [&str; 7] = ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#f0e442"];

/// Sums that are bounded over the whole plan, and the guids met so far.
#[derive(Default)]
struct Totals<'n> {
    rows: usize,
    seats: usize,
    areas: usize,
    points: usize,
    /// Each guid, with zone, row, seat and line of where it stands first.
    guids: HashMap<&'n str, (usize, usize, usize, u32)>,
    /// The same for each seat as it is printed: section, row and number.
    printed: HashMap<String, (usize, usize, usize, u32)>,
    /// None if the list can't be read: then no seat's category is called unknown.
    categories: Option<HashMap<&'n str, usize>>,
}

pub(super) fn read(node: &Node<'_>, f: &mut Findings) -> Option<Plan> {
    let root = Place::root();
    let plan = object(f, node, root, "plan", &["name", "zones", "categories", "size"], Warn)?;
    let mut totals = Totals::default();
    let name = plan.required_text(f, "name");
    let categories = plan.required_list(f, "categories").and_then(|items| {
        let place = root.key("categories");
        totals.categories = Some(HashMap::new());
        let read = all(items.iter().enumerate().map(|(i, item)| category(f, item, place.index(i), i, &mut totals)));
        limit(f, place, node.line, items.len(), CATEGORIES_MAX, "categories")?;
        read
    });
    if let Some(size) = plan.required(f, "size") {
        let place = root.key("size");
        if let Some(size) = object(f, size, place, "size", &["width", "height"], Warn) {
            for side in ["width", "height"] {
                let Some(n) = size.required_number(f, side) else { continue };
                if n <= 0.0 {
                    f.fault(place.key(side), size.line, "size_invalid", format!("{n} is no size: it is above 0"));
                } else if n.fract() != 0.0 {
                    let message = format!("{n} is not a whole number, as the format asks for; it is taken");
                    f.warn(&place.key(side).to_string(), size.line, "size_not_whole", "", message);
                }
            }
        }
    }
    let zones = plan.required_list(f, "zones").and_then(|items| {
        let place = root.key("zones");
        let read = all(items.iter().enumerate().map(|(z, item)| zone(f, item, place.index(z), z, &mut totals)));
        limit(f, place, node.line, items.len(), ZONES_MAX, "zones")?;
        limit(f, place, node.line, totals.rows, ROWS_MAX, "rows")?;
        limit(f, place, node.line, totals.seats, SEATS_MAX, "seats")?;
        limit(f, place, node.line, totals.areas, AREAS_MAX, "areas")?;
        limit(f, place, node.line, totals.points, POINTS_MAX, "points of polygons")?;
        read
    });
    Some(Plan { name: name?.to_owned(), categories: categories?, zones: zones? })
}

/// Reads every item before it says that one was wrong, so that no fault hides behind another.
fn all<T>(items: impl Iterator<Item = Option<T>>) -> Option<Vec<T>> {
    let mut sound = true;
    let values: Vec<T> = items
        .filter_map(|item| {
            item.or_else(|| {
                sound = false;
                None
            })
        })
        .collect();
    sound.then_some(values)
}

fn limit(f: &mut Findings, place: Place<'_>, line: u32, count: usize, max: usize, what: &str) -> Option<()> {
    if count > max {
        f.fault(place, line, "too_many", format!("{count} {what}; at most {max} are taken"));
        return None;
    }
    Some(())
}

fn category<'n>(
    f: &mut Findings,
    node: &'n Node<'_>,
    place: Place<'_>,
    index: usize,
    totals: &mut Totals<'n>,
) -> Option<Category> {
    let fields = object(f, node, place, "category", &["name", "color"], Warn)?;
    let color = color(f, &fields, "color");
    let name = fields.required_text(f, "name")?;
    let names = totals.categories.get_or_insert_default();
    if let Some(first) = names.get(name) {
        let message = format!("the category {} stands at categories[{first}] already", shown(name));
        f.fault(place.key("name"), node.line, "category_repeated", message);
        return None;
    }
    names.insert(name, index);
    let given = color.filter(|c| c.starts_with('#')).map(|c| c[..7].to_owned());
    let color = given.unwrap_or_else(|| PALETTE[index % PALETTE.len()].to_owned());
    Some(Category { name: name.to_owned(), color })
}

fn zone<'n>(f: &mut Findings, node: &'n Node<'_>, place: Place<'_>, z: usize, totals: &mut Totals<'n>) -> Option<Zone> {
    let fields = object(f, node, place, "zone", &["name", "zone_id", "uuid", "position", "rows", "areas"], Warn)?;
    let name = fields.optional_text(f, "name");
    let zone_id = fields.optional_text(f, "zone_id");
    fields.optional_text(f, "uuid");
    let at = fields.required_position(f, "position");
    let rows = fields.required_list(f, "rows").and_then(|items| {
        let place = place.key("rows");
        totals.rows += items.len();
        let section = name.or(zone_id).unwrap_or_default();
        all(items.iter().enumerate().map(|(r, item)| row(f, item, place.index(r), (z, r), (section, at), totals)))
    });
    let areas = match fields.get("areas") {
        None => Some(Vec::new()),
        Some(areas) => list(f, areas, place.key("areas")).and_then(|items| {
            let place = place.key("areas");
            totals.areas += items.len();
            let areas = all(items.iter().enumerate().map(|(a, item)| area(f, item, place.index(a), at, totals)));
            areas.map(|areas| areas.into_iter().flatten().collect())
        }),
    };
    at?;
    Some(Zone { name: name.or(zone_id).unwrap_or_default().to_owned(), rows: rows?, areas: areas? })
}

fn row<'n>(
    f: &mut Findings,
    node: &'n Node<'_>,
    place: Place<'_>,
    (z, r): (usize, usize),
    (section, zone_at): (&str, Option<(f64, f64)>),
    totals: &mut Totals<'n>,
) -> Option<Row> {
    let known = ["row_number", "seats", "position", "row_label", "seat_label", "row_number_position", "uuid"];
    let fields = object(f, node, place, "row", &known, Warn)?;
    let row_number = fields.required_text(f, "row_number");
    let row_label = fields.nullable_text(f, "row_label");
    let seat_label = fields.nullable_text(f, "seat_label");
    fields.optional_text(f, "uuid");
    if let Some(side) = fields.nullable_text(f, "row_number_position")
        && !["start", "end", "both"].contains(&side)
    {
        let message = format!("{} is none of start, end, both", shown(side));
        f.fault(place.key("row_number_position"), node.line, "value_unknown", message);
    }
    let at = fields.optional_position(f, "position");
    let base = zone_at.zip(at).map(|((zx, zy), (x, y))| (zx + x, zy + y));
    let label = row_number.and_then(|n| label(f, n, row_label, place.key("row_label"), node.line));
    let printed = label.as_ref().map(|label| format!("{section}\0{label}\0"));
    let seats = fields.required_list(f, "seats").and_then(|items| {
        let place = place.key("seats");
        totals.seats += items.len();
        let read = all(items
            .iter()
            .enumerate()
            .map(|(s, item)| seat(f, item, place.index(s), (z, r, s), base, seat_label, totals)));
        if let Some(printed) = printed {
            for (s, item) in items.iter().enumerate() {
                told_apart(f, item, place.index(s), (z, r, s), (&printed, seat_label), totals);
            }
        }
        read
    });
    base?;
    Some(Row { label: label?, seats: seats? })
}

/// Two seats that are printed alike are a fault: two people would stand before one chair. Places
/// without a number are nobody's in particular.
fn told_apart(
    f: &mut Findings,
    node: &Node<'_>,
    place: Place<'_>,
    (z, r, s): (usize, usize, usize),
    (row, seat_label): (&str, Option<&str>),
    totals: &mut Totals<'_>,
) {
    let Value::Object(members) = &node.value else { return };
    let number = members.iter().find_map(|(key, value)| match &value.value {
        Value::Text(number) if key == "seat_number" => Some(number),
        _ => None,
    });
    let Some(number) = number.filter(|n| !visible(n).is_empty()) else { return };
    let number = seat_label.map_or_else(|| number.to_string(), |label| label.replace("%s", number));
    let (row, number) = (row.split('\0').map(visible).collect::<Vec<_>>().join("\0"), visible(&number));
    match totals.printed.entry(format!("{row}{number}")) {
        Entry::Vacant(free) => drop(free.insert((z, r, s, node.line))),
        Entry::Occupied(first) => {
            let (z, r, s, line) = first.get();
            let mut parts = row.split('\0').map(shown);
            let (section, row) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
            let message = format!(
                "section {section}, row {row}, seat {} is zones[{z}].rows[{r}].seats[{s}], line {line}, already",
                shown(&number)
            );
            f.fault(place.key("seat_number"), node.line, "label_repeated", message);
        }
    }
}

/// A number as it is shown: put where the label says `%s`.
fn label(f: &mut Findings, number: &str, label: Option<&str>, place: Place<'_>, line: u32) -> Option<String> {
    let Some(label) = label else { return Some(number.to_owned()) };
    let shown = label.replace("%s", number);
    if shown.chars().count() > TEXT_CHARS_MAX {
        f.fault(place, line, "text_too_long", format!("with its number it has more than {TEXT_CHARS_MAX} characters"));
        return None;
    }
    Some(shown)
}

fn seat<'n>(
    f: &mut Findings,
    node: &'n Node<'_>,
    place: Place<'_>,
    (z, r, s): (usize, usize, usize),
    base: Option<(f64, f64)>,
    seat_label: Option<&str>,
    totals: &mut Totals<'n>,
) -> Option<Seat> {
    let known = ["seat_guid", "seat_number", "position", "category", "uuid", "radius", "start_direction"];
    let fields = object(f, node, place, "seat", &known, Warn)?;
    let guid = fields.required_text(f, "seat_guid");
    if let Some(guid) = guid {
        // The format's pattern is ^[^ ].*[^ ]$: no space at either end, one line, two characters at least.
        if guid.starts_with(' ') || guid.ends_with(' ') {
            let message = format!("the guid {} begins or ends with a space", shown(guid));
            f.fault(place.key("seat_guid"), node.line, "guid_invalid", message);
        } else if guid.chars().nth(1).is_none() || guid.contains(['\n', '\r', '\u{2028}', '\u{2029}']) {
            let message = format!("the guid {} is not one line of two characters or more", shown(guid));
            f.fault(place.key("seat_guid"), node.line, "guid_invalid", message);
        }
        match totals.guids.get(guid) {
            Some((z, r, s, line)) => {
                let at = format!("zones[{z}].rows[{r}].seats[{s}], line {line}");
                let message = format!("the guid {} is taken by {at}", shown(guid));
                f.fault(place.key("seat_guid"), node.line, "guid_repeated", message);
            }
            None => drop(totals.guids.insert(guid, (z, r, s, node.line))),
        }
    }
    let seat_number = fields.required_text(f, "seat_number");
    if seat_number.is_some_and(|number| visible(number).is_empty()) {
        let message = "the seat has no number: maps and tickets name its row alone";
        f.warn(&place.key("seat_number").to_string(), node.line, "seat_number_empty", "", message);
    }
    let label = seat_number.and_then(|n| label(f, n, seat_label, place.key("seat_number"), node.line));
    let at = fields.required_position(f, "position");
    let category = fields.required_text(f, "category").and_then(|name| {
        let known = totals.categories.as_ref()?.get(name).copied();
        if known.is_none() {
            let message = format!("the plan has no category {}", shown(name));
            f.fault(place.key("category"), node.line, "category_unknown", message);
        }
        known
    });
    fields.optional_text(f, "uuid");
    fields.nullable_text(f, "start_direction");
    let radius = fields.number_or(f, "radius", RADIUS_DEFAULT);
    let ((base_x, base_y), (x, y)) = (base?, at?);
    Some(Seat {
        guid: guid?.to_owned(),
        label: label?,
        category: category?,
        x: base_x + x,
        y: base_y + y,
        radius: radius?,
    })
}

/// None if it is wrong, and Some(None) if there is nothing in it to draw.
fn area(
    f: &mut Findings,
    node: &Node<'_>,
    place: Place<'_>,
    zone_at: Option<(f64, f64)>,
    totals: &mut Totals<'_>,
) -> Option<Option<Area>> {
    let known = [
        "shape",
        "rotation",
        "color",
        "border_color",
        "position",
        "uuid",
        "text",
        "rectangle",
        "circle",
        "ellipse",
        "polygon",
    ];
    let fields = object(f, node, place, "area", &known, Warn)?;
    let name = fields.optional_text(f, "shape");
    let at = fields.optional_position(f, "position");
    let rotation = fields.number_or(f, "rotation", 0.0);
    let uuid = fields.optional_text(f, "uuid");
    let (fill, border) = (color(f, &fields, "color"), color(f, &fields, "border_color"));
    // All of them are read, whichever is drawn: a fault in one that is not used is a fault.
    let polygon = fields.get("polygon").map(|n| polygon(f, n, place.key("polygon"), totals));
    let rectangle = fields.get("rectangle").map(|n| {
        let fields = object(f, n, place.key("rectangle"), "rectangle", &["width", "height"], Warn)?;
        let (w, h) = (fields.number_or(f, "width", 0.0), fields.number_or(f, "height", 0.0));
        Some(Shape::Rectangle(w?, h?))
    });
    let circle = fields.get("circle").map(|n| {
        let fields = object(f, n, place.key("circle"), "circle", &["radius"], Warn)?;
        fields.required_number(f, "radius").map(|r| Shape::Ellipse(r, r))
    });
    let ellipse = fields.get("ellipse").map(|n| {
        let fields = object(f, n, place.key("ellipse"), "ellipse", &["radius"], Warn)?;
        fields.required_position(f, "radius").map(|(x, y)| Shape::Ellipse(x, y))
    });
    let written = fields.get("text").map(|n| area_text(f, n, place.key("text")));
    let sound = [&polygon, &rectangle, &circle, &ellipse].into_iter().flatten().all(Option::is_some);
    let shape = match name {
        Some("polygon") => polygon.flatten(),
        Some("rectangle") => rectangle.flatten(),
        Some("circle") => circle.flatten(),
        Some("ellipse") => ellipse.flatten(),
        Some("text") => written.as_ref().map(|_| Shape::Text),
        Some(other) => {
            let message = format!("{} is none of polygon, rectangle, ellipse, circle, text", shown(other));
            f.fault(place.key("shape"), node.line, "shape_unknown", message);
            return None;
        }
        None if fields.get("shape").is_some() => return None,
        None => None,
    };
    let ((zone_x, zone_y), (x, y), rotation) = (zone_at?, at?, rotation?);
    let text = match written {
        Some(None) => return None,
        Some(Some(text)) => Some(text).filter(|t| !t.text.trim().is_empty()),
        None => None,
    };
    if !sound {
        return None;
    }
    let Some(shape) = shape else {
        let message = "the area has nothing of the shape that it names; it is not drawn";
        f.warn(&place.to_string(), node.line, "area_empty", "", message);
        return Some(None);
    };
    let uuid = uuid.map(str::to_owned);
    Some(Some(Area { uuid, x: zone_x + x, y: zone_y + y, rotation, color: fill, border_color: border, shape, text }))
}

fn polygon(f: &mut Findings, node: &Node<'_>, place: Place<'_>, totals: &mut Totals<'_>) -> Option<Shape> {
    let fields = object(f, node, place, "polygon", &["points"], Warn)?;
    let items = fields.required_list(f, "points")?;
    totals.points += items.len();
    let place = place.key("points");
    all(items.iter().enumerate().map(|(i, p)| position(f, p, place.index(i), Warn))).map(Shape::Polygon)
}

fn area_text(f: &mut Findings, node: &Node<'_>, place: Place<'_>) -> Option<Text> {
    let fields = object(f, node, place, "text", &["text", "color", "size", "position"], Warn)?;
    let text = fields.required_text(f, "text");
    let at = fields.required_position(f, "position");
    let size = fields.number_or(f, "size", TEXT_SIZE_DEFAULT);
    let color = color(f, &fields, "color");
    let (x, y) = at?;
    Some(Text { text: text?.to_owned(), x, y, size: size?, color })
}

/// Nothing is guessed: what is there and is no colour is a fault.
fn color(f: &mut Findings, fields: &Fields<'_, '_, '_>, key: &str) -> Option<String> {
    let node = fields.get(key)?;
    let given = text(f, node, fields.place.key(key))?.trim();
    if given.is_empty() {
        return None;
    }
    let read = color::read(given);
    if read.is_none() {
        let message = format!("{} is not a colour: #rgb, #rrggbb, rgb(…) and the names of CSS are", shown(given));
        f.fault(fields.place.key(key), node.line, "color_unreadable", message);
    }
    read
}
