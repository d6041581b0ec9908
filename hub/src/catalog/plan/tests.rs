//! Every rule of the format, a case each.

mod odd; // no file, however odd, brings the reader down

use serde_json::{Value, json};

use super::*;
use crate::catalog::commands::read_plan;

/// Its number is what follows the last hyphen of its guid.
pub(crate) fn seat(guid: &str, x: f64) -> Value {
    let number = guid.rsplit('-').next();
    json!({"seat_guid": guid, "seat_number": number, "position": {"x": x, "y": 0}, "category": "c"})
}

pub(crate) fn row(number: &str, seats: Vec<Value>) -> Value {
    json!({"row_number": number, "position": {"x": 0, "y": 0}, "seats": seats})
}

/// A plan of one zone.
pub(crate) fn plan(rows: Vec<Value>, areas: Vec<Value>) -> Value {
    json!({
        "name": "Hall",
        "size": {"width": 600, "height": 500},
        "categories": [{"name": "c", "color": "#33ffff"}, {"name": "d"}],
        "zones": [{"name": "Main", "position": {"x": 0, "y": 0}, "rows": rows, "areas": areas}],
    })
}

fn small() -> Value {
    plan(vec![row("A", vec![seat("A-1", 0.0), seat("A-2", 20.0)])], vec![])
}

#[derive(Debug)]
pub(crate) struct Reading {
    pub value: Plan,
    pub warnings: Vec<Warning>,
}

/// A plan without a file beside it.
pub(crate) fn read_alone(bytes: &[u8]) -> Result<Reading, Vec<Fault>> {
    let Read { plan, faults, warnings, .. } = super::read(bytes, None);
    plan.map(|value| Reading { value, warnings }).ok_or(faults)
}

fn faults(plan: &Value) -> Vec<Fault> {
    read_alone(serde_json::to_string_pretty(plan).unwrap().as_bytes()).err().unwrap_or_default()
}

/// Code and place of each fault.
fn codes(plan: &Value) -> Vec<(&'static str, String)> {
    faults(plan).into_iter().map(|f| (f.code, f.place)).collect()
}

fn read(value: &Value) -> Reading {
    read_alone(value.to_string().as_bytes()).unwrap_or_else(|f| panic!("{f:#?}"))
}

fn warnings(plan: &Value) -> Vec<&'static str> {
    read(plan).warnings.iter().map(|w| w.code).collect()
}

/// The small plan with the value at a JSON pointer replaced, or taken away.
fn with(pointer: &str, value: Option<Value>) -> Value {
    let mut plan = small();
    let (parent, key) = pointer.rsplit_once('/').unwrap();
    let parent = plan.pointer_mut(parent).unwrap().as_object_mut().unwrap();
    match value {
        Some(value) => drop(parent.insert(key.to_owned(), value)),
        None => drop(parent.shift_remove(key)),
    }
    plan
}

const ROW: &str = "/zones/0/rows/0";
const SEAT: &str = "/zones/0/rows/0/seats/1";

#[test]
fn colours_that_look_alike_are_told_with_both_names_and_how_far_apart_they_are() {
    let told = |colors: [&str; 3]| {
        let names = ["Stalls", "Circle", "Gallery"];
        let categories: Vec<Value> =
            names.iter().zip(colors).map(|(name, color)| json!({"name": name, "color": color})).collect();
        let mut plan = small();
        plan["categories"] = categories.into();
        plan["zones"][0]["rows"][0]["seats"]
            .as_array_mut()
            .unwrap()
            .iter_mut()
            .for_each(|s| s["category"] = names[0].into());
        read(&plan).warnings
    };
    let alike = told(["#cc3333", "#cc3344", "#1c7ed6"]);
    assert_eq!(alike.len(), 1);
    assert_eq!((alike[0].code, alike[0].place.as_str()), ("color_looks_alike", "categories[1].color"));
    for part in ["\"Stalls\" (#cc3333)", "\"Circle\" (#cc3344)", "0.019 apart", "below 0.08"] {
        assert!(alike[0].message.contains(part), "{}", alike[0].message);
    }
    assert_eq!(told(["#cc3333", "#cc3333", "#cc3333"]).len(), 3, "each pair");
    assert_eq!(told(["#c2255c", "#e8590c", "#1c7ed6"]), []);
}

#[test]
fn equal_guids_are_each_named_with_the_place_of_the_first() {
    let mut plan =
        plan(vec![row("A", vec![seat("A-1", 0.0), seat("A-1", 20.0)]), row("B", vec![seat("A-1", 0.0)])], vec![]);
    plan["zones"][0]["rows"][0]["seats"][1]["seat_number"] = "2".into();
    let faults = faults(&plan);
    assert_eq!(
        codes(&plan),
        [
            ("guid_repeated", "zones[0].rows[0].seats[1].seat_guid".to_owned()),
            ("guid_repeated", "zones[0].rows[1].seats[0].seat_guid".to_owned()),
        ]
    );
    assert!(faults[1].message.contains("zones[0].rows[0].seats[0], line "), "{}", faults[1]);
    let text = serde_json::to_string_pretty(&plan).unwrap();
    let line = text.lines().nth(faults[1].line as usize - 1).unwrap();
    assert_eq!(line.trim(), "{", "the line is that on which the seat begins");
}

#[test]
fn every_fault_is_found_in_one_reading() {
    let mut plan = with(&format!("{SEAT}/category"), Some("nowhere".into()));
    plan["zones"][0]["rows"][0]["seats"][0] = json!({"seat_guid": " A-1", "position": "here", "radius": null});
    plan["zones"].as_array_mut().unwrap().push(json!({"name": 7}));
    plan.as_object_mut().unwrap().shift_remove("size");
    let codes: Vec<String> = codes(&plan).into_iter().map(|(code, place)| format!("{code} {place}")).collect();
    assert_eq!(
        codes,
        [
            "field_missing size",
            "guid_invalid zones[0].rows[0].seats[0].seat_guid",
            "field_missing zones[0].rows[0].seats[0].seat_number",
            "wrong_type zones[0].rows[0].seats[0].position",
            "field_missing zones[0].rows[0].seats[0].category",
            "wrong_type zones[0].rows[0].seats[0].radius",
            "category_unknown zones[0].rows[0].seats[1].category",
            "wrong_type zones[1].name",
            "field_missing zones[1].position",
            "field_missing zones[1].rows",
        ]
    );
}

#[test]
fn every_needed_field_is_needed() {
    for field in [
        "/name",
        "/zones",
        "/categories",
        "/size",
        "/size/width",
        "/zones/0/position",
        "/zones/0/rows",
        "/zones/0/rows/0/row_number",
        "/zones/0/rows/0/seats",
        "/zones/0/rows/0/seats/1/seat_guid",
        "/zones/0/rows/0/seats/1/seat_number",
        "/zones/0/rows/0/seats/1/position",
        "/zones/0/rows/0/seats/1/category",
        "/zones/0/rows/0/seats/1/position/x",
    ] {
        let faults = codes(&with(field, None));
        assert!(faults.iter().any(|(code, _)| *code == "field_missing"), "{field}: {faults:?}");
    }
    for field in ["/zones/0/name", "/zones/0/areas", "/zones/0/rows/0/position"] {
        assert_eq!(codes(&with(field, None)), [], "{field} may be left out");
    }
}

#[test]
fn a_wrong_type_is_a_fault_wherever_it_stands() {
    for (field, value) in [
        ("/name", json!(7)),
        ("/zones", json!({})),
        ("/categories", json!("c")),
        ("/size", json!([1, 2])),
        ("/size/width", json!("600")),
        ("/zones/0/position", json!("0,0")),
        ("/zones/0/rows", json!(null)),
        ("/zones/0/zone_id", json!(1)),
        ("/zones/0/uuid", json!(1)),
        ("/zones/0/areas", json!({})),
        ("/zones/0/rows/0/row_number", json!(1)),
        ("/zones/0/rows/0/row_label", json!(1)),
        ("/zones/0/rows/0/position", json!([0, 0])),
        ("/zones/0/rows/0/position", json!(null)),
        ("/zones/0/rows/0/row_number_position", json!("left")),
        ("/zones/0/rows/0/seats", json!("none")),
        ("/zones/0/rows/0/seats/1/seat_guid", json!(1)),
        ("/zones/0/rows/0/seats/1/seat_number", json!(1)),
        ("/zones/0/rows/0/seats/1/position", json!("20,0")),
        ("/zones/0/rows/0/seats/1/position/x", json!("20")),
        ("/zones/0/rows/0/seats/1/radius", json!("10")),
        ("/zones/0/rows/0/seats/1/start_direction", json!(90)),
        ("/zones/0/rows/0/seats/1/category", json!(0)),
        ("/zones/0/rows/0/seats/1/uuid", json!(null)),
    ] {
        assert_eq!(
            codes(&with(field, Some(value.clone()))).len(),
            1,
            "{field} = {value}: {:?}",
            codes(&with(field, Some(value.clone())))
        );
    }
    for (field, value) in [
        ("/zones/0/rows/0/row_label", json!(null)),
        ("/zones/0/rows/0/seat_label", json!(null)),
        ("/zones/0/rows/0/row_number_position", json!(null)),
        ("/zones/0/rows/0/row_number_position", json!("both")),
        ("/zones/0/rows/0/seats/1/start_direction", json!(null)),
    ] {
        assert_eq!(codes(&with(field, Some(value.clone()))), [], "{field} = {value}");
    }
}

#[test]
fn guids_follow_the_pattern_of_the_format() {
    for bad in ["", " ", " A-1", "A-1 ", "A", "A\n1", "A-1\n"] {
        let faults = codes(&with(&format!("{SEAT}/seat_guid"), Some(bad.into())));
        assert_eq!(faults.first().map(|f| f.0), Some("guid_invalid"), "{bad:?}: {faults:?}");
    }
    for good in ["A1", "A 1", "1½", "É-7", "座12", "A/1", "A&B", "🪑🪑", "א-1", "<b>x</b>", "'; drop table seat; --"]
    {
        let plan = with(&format!("{SEAT}/seat_guid"), Some(good.into()));
        assert_eq!(read(&plan).value.seats().nth(1).unwrap().guid, good);
    }
    assert_eq!(codes(&with(&format!("{SEAT}/seat_guid"), Some("A\0B".into())))[0].0, "text_has_nul");
}

#[test]
fn labels_are_any_text_and_stay_as_they_are() {
    for label in ["", " ", "1½", "É-7", "座12", "A/1", "A&B", "🪑", "שורה", "bis", "?", "1D", "8号", "[", "A01"]
    {
        let plan = with(&format!("{SEAT}/seat_number"), Some(label.into()));
        assert_eq!(read(&plan).value.seats().nth(1).unwrap().label, label);
        let plan = with(&format!("{ROW}/row_number"), Some(label.into()));
        assert_eq!(read(&plan).value.zones[0].rows[0].label, label);
    }
}

#[test]
fn sixty_rows_keep_their_names() {
    let rows = (1..=60).map(|n| row(&n.to_string(), vec![seat(&format!("{n}-1"), 0.0)])).collect();
    let plan = read(&plan(rows, vec![])).value;
    let labels: Vec<&str> = plan.zones[0].rows.iter().map(|r| r.label.as_str()).collect();
    assert_eq!((labels.len(), labels[26], labels[59]), (60, "27", "60"));
}

#[test]
fn a_number_is_put_into_its_label() {
    let mut plan = with(&format!("{ROW}/row_label"), Some("Row %s".into()));
    plan["zones"][0]["rows"][0]["seat_label"] = "%s号".into();
    let value = read(&plan).value;
    assert_eq!(value.zones[0].rows[0].label, "Row A");
    assert_eq!(value.zones[0].rows[0].seats[0].label, "1号");
    let bomb = with(&format!("{ROW}/row_label"), Some("%s".repeat(100).into()));
    let mut bomb = bomb;
    bomb["zones"][0]["rows"][0]["row_number"] = "x".repeat(200).into();
    assert_eq!(codes(&bomb)[0].0, "text_too_long");
}

#[test]
fn points_are_zone_and_row_and_seat() {
    let mut plan = small();
    plan["zones"][0]["position"] = json!({"x": 100, "y": -1995039});
    plan["zones"][0]["rows"][0]["position"] = json!({"x": 10, "y": 0.5});
    plan["zones"][0]["areas"] = json!([{"shape": "circle", "position": {"x": 1, "y": 2}, "circle": {"radius": 3}}]);
    let plan = read(&plan).value;
    let seat = plan.seats().nth(1).unwrap();
    assert_eq!((seat.x, seat.y), (130.0, -1_995_038.5));
    assert_eq!((plan.zones[0].areas[0].x, plan.zones[0].areas[0].y), (101.0, -1_995_037.0));
}

#[test]
fn two_zones_may_have_the_same_labels() {
    let mut plan = small();
    let mut second = plan["zones"][0].clone();
    second["name"] = "Balcony".into();
    second["position"] = json!({"x": 0, "y": 50});
    second["rows"][0]["seats"] = json!([seat("B/A-1", 0.0)]);
    plan["zones"].as_array_mut().unwrap().push(second);
    assert_eq!(warnings(&plan), [""; 0]);
    // Two zones of one name are one section to whoever reads a ticket.
    plan["zones"][1]["name"] = "Main".into();
    assert_eq!(codes(&plan), [("label_repeated", "zones[1].rows[0].seats[0].seat_number".to_owned())]);
    let message = &faults(&plan)[0].message;
    assert!(message.contains(r#"section "Main", row "A", seat "1" is zones[0].rows[0].seats[0], line"#), "{message}");
    // Seen beside other faults too.
    plan["zones"][0]["rows"][0]["seats"][1]["category"] = "none such".into();
    assert_eq!(codes(&plan).len(), 2);
    plan["zones"][0]["rows"][0]["seats"][1]["category"] = "c".into();
    // Places without a number are nobody's in particular.
    for zone in [0, 1] {
        plan["zones"][zone]["rows"][0]["seats"][0]["seat_number"] = " ".into();
    }
    assert_eq!(warnings(&plan), ["seat_number_empty", "row_repeated"]);
}

#[test]
fn what_is_hard_to_find_in_the_hall_draws_a_warning() {
    let mut plan = small();
    let rows = plan["zones"][0]["rows"].as_array_mut().unwrap();
    rows.push(row(" ", vec![seat("B-1", 0.0), seat("B-2", 40.0)]));
    rows.push(row("A", vec![seat("C-7", 60.0)]));
    let told: Vec<_> = read(&plan).warnings.into_iter().map(|w| (w.code, w.place)).collect();
    assert_eq!(
        told,
        [
            ("row_blank", "zones[0].rows[1].row_number".to_owned()),
            ("row_repeated", "zones[0].rows[2].row_number".to_owned()),
            ("position_repeated", "zones[0].rows[1].seats[0].position".to_owned()),
        ]
    );
}

#[test]
fn what_nobody_sees_does_not_tell_two_seats_apart() {
    let numbers = |a: &str, b: &str| {
        let mut plan = small();
        plan["zones"][0]["rows"][0]["seats"] = json!([seat("A-1", 0.0), seat("A-2", 20.0)]);
        plan["zones"][0]["rows"][0]["seats"][0]["seat_number"] = a.into();
        plan["zones"][0]["rows"][0]["seats"][1]["seat_number"] = b.into();
        plan
    };
    for other in ["1\u{200b}", "1\u{a0}", " 1"] {
        let found: Vec<_> = codes(&numbers("1", other)).into_iter().map(|(code, _)| code).collect();
        assert_eq!(found, ["label_repeated"], "{other:?}");
    }
    assert_eq!(warnings(&numbers("1", "2")), [""; 0]);
    assert_eq!(warnings(&numbers("", "")), ["seat_number_empty", "numbers_blank"]);
}

#[test]
fn look_alikes_stay_different_and_draw_a_warning() {
    let pair = |a: &str, b: &str| {
        let mut plan = small();
        plan["zones"][0]["rows"][0]["seats"][0]["seat_guid"] = a.into();
        plan["zones"][0]["rows"][0]["seats"][1]["seat_guid"] = b.into();
        plan["zones"][0]["rows"][0]["seats"][1]["seat_number"] = "2".into();
        plan
    };
    assert_eq!(warnings(&pair("A1", "А1")), ["guid_looks_alike"]); // the second is Cyrillic
    assert_eq!(warnings(&pair("a-1", "A-1")), ["guid_looks_alike"]);
    assert_eq!(warnings(&pair("A1", "A01")), [""; 0]);
    assert_eq!(read(&pair("A1", "А1")).value.seats().count(), 2);
    let mut labels = small();
    labels["zones"][0]["rows"].as_array_mut().unwrap().push(row("А", vec![seat("B-1", 40.0)])); // Cyrillic
    assert_eq!(warnings(&labels), ["label_looks_alike"]);
}

#[test]
fn what_the_format_does_not_know_is_kept_out_with_one_warning() {
    let mut plan = small();
    for s in [0, 1] {
        plan["zones"][0]["rows"][0]["seats"][s]["price"] = 9.into();
        plan["zones"][0]["rows"][0]["seats"][s]["seat_number"] = s.to_string().into();
    }
    plan["size"]["width"] = 600.5.into();
    let reading = read(&plan);
    let told: Vec<_> = reading.warnings.iter().map(|w| (w.code, w.place.as_str(), w.count)).collect();
    assert_eq!(told, [("size_not_whole", "size.width", 1), ("key_unknown", "zones[0].rows[0].seats[0].price", 2)]);
}

#[test]
fn a_plan_has_a_size_and_a_seat_without_a_number_is_told() {
    assert_eq!(codes(&with("/size/width", Some(json!(-5)))), [("size_invalid", "size.width".to_owned())]);
    assert_eq!(codes(&with("/size/height", Some(json!(0)))), [("size_invalid", "size.height".to_owned())]);
    assert_eq!(warnings(&with(&format!("{SEAT}/seat_number"), Some(json!(" ")))), ["seat_number_empty"]);
}

#[test]
fn categories_are_keys() {
    let mut plan = small();
    plan["categories"] = json!([{"name": "c"}, {"name": "c", "color": "#fff"}]);
    assert_eq!(codes(&plan), [("category_repeated", "categories[1].name".to_owned())]);
    plan["categories"] =
        (0..65).map(|i| json!({"name": if i == 0 { "c".to_owned() } else { i.to_string() }})).collect();
    assert_eq!(codes(&plan), [("too_many", "categories".to_owned())]);
}

#[test]
fn a_colour_that_is_none_is_a_fault() {
    let with_color = |c: &str| with("/categories", Some(json!([{"name": "c", "color": c}])));
    let color = |c: &str| read(&with_color(c)).value.categories[0].color.clone();
    assert_eq!(color("#F0a"), "#ff00aa");
    assert_eq!(color("#4176A5"), "#4176a5");
    assert_eq!((color("red"), color(" ")), ("#0072b2".to_owned(), "#0072b2".to_owned()), "one of ours");
    for none in ["url(javascript:1)", "reddish", "#12", "rgb()"] {
        assert_eq!(codes(&with_color(none)), [("color_unreadable", "categories[0].color".to_owned())], "{none}");
    }
}

#[test]
fn areas_have_a_shape_that_is_known() {
    let area = |area: Value| plan(vec![row("A", vec![seat("A-1", 0.0)])], vec![area]);
    assert_eq!(codes(&area(json!({"shape": "star"}))), [("shape_unknown", "zones[0].areas[0].shape".to_owned())]);
    for (bad, place) in [
        (json!({"shape": "polygon", "polygon": {}}), "zones[0].areas[0].polygon.points"),
        (json!({"shape": "polygon", "polygon": {"points": [{"x": 1}]}}), "zones[0].areas[0].polygon.points[0].y"),
        (json!({"shape": "circle", "circle": {"radius": {"x": 1}}}), "zones[0].areas[0].circle.radius"),
        (json!({"shape": "ellipse", "ellipse": {"radius": 4}}), "zones[0].areas[0].ellipse.radius"),
        (
            json!({"shape": "circle", "rectangle": {"width": "4"}, "circle": {"radius": 1}}),
            "zones[0].areas[0].rectangle.width",
        ),
        (json!({"shape": "text", "text": {"text": "Bar"}}), "zones[0].areas[0].text.position"),
        (json!({"shape": "text", "rotation": "345°"}), "zones[0].areas[0].rotation"),
        (json!({"shape": 4}), "zones[0].areas[0].shape"),
    ] {
        let found = codes(&area(bad.clone()));
        assert!(found.len() == 1 && found[0].1 == place, "{bad}: {found:?}");
    }
    assert_eq!(warnings(&area(json!({"shape": "circle"}))), ["area_empty"]);
    assert_eq!(
        warnings(&area(
            json!({"shape": "text", "rotation": 345, "text": {"text": "Bar", "position": {"x": 1, "y": 1}}})
        )),
        [""; 0]
    );
}

#[test]
fn what_is_not_a_plan_at_all() {
    let code = |bytes: &[u8]| read_alone(bytes).unwrap_err()[0].code;
    assert_eq!(code(b""), "json_invalid");
    assert_eq!(code(b"[]"), "wrong_type");
    assert_eq!(code(b"null"), "wrong_type");
    assert_eq!(code(b"{} {}"), "json_invalid");
    assert_eq!(code(&b"[".repeat(1_000_000)), "too_deep");
    assert_eq!(code(&vec![b' '; FILE_BYTES_MAX + 1]), "file_too_large");
    let deep = format!("{{\"zones\":{}", "[{\"rows\":".repeat(100_000));
    assert_eq!(code(deep.as_bytes()), "too_deep");
    let infinite = small().to_string().replace("20.0", "1e999");
    assert_eq!(code(infinite.as_bytes()), "number_out_of_range");
    let twice = small().to_string().replacen("\"name\"", "\"name\":\"x\",\"name\"", 1);
    assert_eq!(code(twice.as_bytes()), "key_repeated");
    assert_eq!(read_alone(small().to_string().replace("20.0", "NaN").as_bytes()).unwrap_err()[0].line, 1);
}

#[test]
fn long_texts_and_many_seats_are_refused() {
    let long = with(&format!("{SEAT}/seat_number"), Some("é".repeat(TEXT_CHARS_MAX + 1).into()));
    assert_eq!(codes(&long)[0].0, "text_too_long");
    assert_eq!(codes(&with(&format!("{SEAT}/seat_number"), Some("é".repeat(TEXT_CHARS_MAX).into()))), []);
    let seats: Vec<Value> = (0..=SEATS_MAX).map(|i| seat(&format!("s-{i}"), i as f64)).collect();
    let text = plan(vec![row("A", seats)], vec![]).to_string();
    assert_eq!(read_alone(text.as_bytes()).unwrap_err()[0].code, "too_many");
}

#[test]
fn a_plan_with_faults_does_not_hide_those_of_the_file_beside_it() {
    let told = |plan: &str, beside: Value| {
        let faults = read_plan(plan.as_bytes(), Some(beside.to_string().as_bytes())).unwrap_err();
        faults.into_iter().map(|f| (f.file, f.code, f.place)).collect::<Vec<_>>()
    };
    let beside = json!({
        "hause": [], "house": ["A-1", "A-1", "A-9"],
        "standing": [{"id": "pit", "area": "u-1", "name": "Pit", "category": "x", "capacity": 0}],
    });
    let of_beside = |known: bool| -> Vec<(File, &'static str, String)> {
        let mut faults = vec![("key_unknown", "hause"), ("guid_repeated", "house[1]"), ("guid_unknown", "house[2]")];
        faults.push(("category_unknown", "standing[0].category"));
        faults.push(("capacity_invalid", "standing[0].capacity"));
        faults.push(("area_unknown", "standing[0].area"));
        // A repeated guid is found among those that the plan has.
        faults.retain(|(code, _)| {
            known || !(code.ends_with("_unknown") && *code != "key_unknown") && *code != "guid_repeated"
        });
        faults.into_iter().map(|(code, place)| (File::Beside, code, place.to_owned())).collect()
    };
    // A seat that has a fault is a seat, and another is none.
    let unplaced = with("/zones/0/rows/0/seats/0/position", None).to_string();
    let mut both = vec![(File::Plan, "field_missing", "zones[0].rows[0].seats[0].position".to_owned())];
    both.extend(of_beside(true));
    assert_eq!(told(&unplaced, beside.clone()), both);
    // Where not all seats are known, none is called unknown.
    let unnamed = with("/zones/0/rows/0/seats/1/seat_guid", None).to_string();
    let codes: Vec<_> = told(&unnamed, beside.clone()).into_iter().map(|f| f.1).collect();
    assert_eq!(codes, ["field_missing", "key_unknown", "guid_repeated", "capacity_invalid"]);
    // Even a plan that is no JSON.
    let mut both = vec![(File::Plan, "json_invalid", String::new())];
    both.extend(of_beside(false));
    assert_eq!(told("{", beside), both);
    assert_eq!(told("{", json!(1)).len(), 2);
}

#[test]
fn the_file_beside_is_checked_as_strictly() {
    let area = json!({"shape": "rectangle", "uuid": "u-1", "position": {"x": 0, "y": 100}, "rectangle": {"width": 100, "height": 50}});
    let plan =
        plan(vec![row("A", vec![seat("A-1", 0.0), seat("A-2", 20.0), seat("A-3", 40.0)])], vec![area]).to_string();
    let read = |beside: Value| read_plan(plan.as_bytes(), Some(beside.to_string().as_bytes()));
    let standing =
        |capacity: Value| json!({"id": "pit", "area": "u-1", "name": "Pit", "category": "d", "capacity": capacity});
    let (layout, _) = read(json!({
        "version": 1, "accessible": ["A-1"], "companion": {"A-2": "A-1"}, "house": ["A-3"],
        "restricted_view": ["A-3"], "standing": [standing(json!(40))],
    }))
    .unwrap();
    let told: Vec<_> = layout.seats[..4].iter().map(|s| (s.guid.as_str(), s.flags, s.companion_of, s.house)).collect();
    assert_eq!(
        told,
        [("A-1", 1, None, false), ("A-2", 2, Some(0), false), ("A-3", 4, None, true), ("pit/1", 8, None, false)]
    );
    assert_eq!((layout.seats.len(), layout.sections.as_slice()), (43, &["Main".to_owned(), "Pit".to_owned()][..]));
    for (bad, code, place) in [
        (json!({"acessible": ["A-1"]}), "key_unknown", "acessible"),
        (json!({"accessible": ["A-9"]}), "guid_unknown", "accessible[0]"),
        (json!({"accessible": ["A-1", "A-1"]}), "guid_repeated", "accessible[1]"),
        (json!({"house": [1]}), "wrong_type", "house[0]"),
        (json!({"companion": {"A-2": "A-1"}}), "companion_of_none", "companion.A-2"),
        (json!({"accessible": ["A-1", "A-2"], "companion": {"A-2": "A-1"}}), "companion_accessible", "companion.A-2"),
        (json!({"companion": ["A-2"]}), "wrong_type", "companion"),
        (json!({"focus": {"x": 1}}), "field_missing", "focus.y"),
        (json!({"standing": [standing(json!(0))]}), "capacity_invalid", "standing[0].capacity"),
        (
            json!({"standing": [{"id": "pit", "area": "u-1", "name": " ", "category": "d", "capacity": 1}]}),
            "name_empty",
            "standing[0].name",
        ),
        (json!({"standing": [standing(json!(2.5))]}), "capacity_invalid", "standing[0].capacity"),
        (json!({"standing": [standing(json!(200_000))]}), "too_many", "standing[0].capacity"),
        (json!({"standing": [standing(json!(4)), standing(json!(4))]}), "id_repeated", "standing[1].id"),
        (
            json!({"standing": [{"id": "pit", "area": "u-2", "name": "Pit", "category": "d", "capacity": 1}]}),
            "area_unknown",
            "standing[0].area",
        ),
        (
            json!({"standing": [{"id": "pit", "area": "u-1", "name": "Pit", "category": "x", "capacity": 1}]}),
            "category_unknown",
            "standing[0].category",
        ),
        (json!({"version": 2}), "version_unknown", "version"),
        (json!([]), "wrong_type", ""),
    ] {
        let faults = read(bad.clone()).unwrap_err();
        let told = faults.first().map(|f| (f.file, f.code, f.place.as_str()));
        assert_eq!(told, Some((File::Beside, code, place)), "{bad}: {faults:?}");
    }
    // An area without room is told beside others, under its own number.
    let flat = plan.replace("50}", "0}");
    let both = json!({"standing": [standing(json!(0)), standing(json!(4))]}).to_string();
    let faults = read_plan(flat.as_bytes(), Some(both.as_bytes())).unwrap_err();
    let told: Vec<_> = faults.iter().map(|f| (f.code, f.place.as_str())).collect();
    assert_eq!(told, [("capacity_invalid", "standing[0].capacity"), ("area_has_no_room", "standing[1].area")]);
}

#[test]
fn a_plan_without_a_place_is_refused() {
    let plan = plan(vec![row("A", vec![])], vec![]).to_string();
    assert_eq!(read_plan(plan.as_bytes(), None).unwrap_err()[0].code, "plan_empty");
}
