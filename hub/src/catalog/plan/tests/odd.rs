//! No file, however odd, brings the reader down.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::catalog::text::visible;

fn any_json() -> impl Strategy<Value = Value> {
    let key = proptest::sample::select(vec![
        "name",
        "zones",
        "categories",
        "size",
        "width",
        "position",
        "x",
        "y",
        "rows",
        "areas",
        "row_number",
        "seats",
        "seat_guid",
        "seat_number",
        "category",
        "radius",
        "shape",
        "polygon",
        "points",
        "text",
        "color",
        "circle",
        "odd",
    ]);
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-1e12..1e12).prop_map(|x: f64| Value::from(x)),
        proptest::sample::select(vec!["polygon", "circle", "text", "c", "", " ", "A-1"]).prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(8, 200, 6, move |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            proptest::collection::vec((key.clone(), inner), 0..8)
                .prop_map(|m| Value::Object(m.into_iter().map(|(k, v)| (k.to_owned(), v)).collect())),
        ]
    })
}

/// A sound plan with one value put somewhere.
fn damaged() -> impl Strategy<Value = Value> {
    let places = proptest::sample::select(vec![
        "/name",
        "/size",
        "/zones",
        "/zones/0",
        "/zones/0/rows",
        "/zones/0/rows/0",
        "/zones/0/rows/0/seats",
        "/zones/0/rows/0/seats/1",
        "/zones/0/rows/0/seats/1/position",
        "/zones/0/areas",
        "/zones/0/areas/0",
        "/zones/0/areas/0/polygon",
        "/zones/0/areas/0/text",
        "/categories",
        "/categories/0",
    ]);
    (places, any_json()).prop_map(|(place, value)| {
        let area =
            json!({"shape": "polygon", "polygon": {"points": []}, "text": {"text": "", "position": {"x": 0, "y": 0}}});
        let mut plan = plan(vec![row("A", vec![seat("A-1", 0.0), seat("A-2", 9.0)])], vec![area]);
        *plan.pointer_mut(place).unwrap() = value;
        plan
    })
}

proptest! {
    #[test]
    fn any_json_is_answered(value in any_json()) {
        let _ = read_plan(value.to_string().as_bytes(), None);
    }

    #[test]
    fn a_damaged_plan_is_drawn_or_refused(plan in damaged(), beside in any_json()) {
        let text = plan.to_string();
        if let Ok((layout, _)) = read_plan(text.as_bytes(), None) {
            let slots: Vec<_> = (0..layout.seats.len()).map(crate::catalog::geometry::Slot::Seat).collect();
            let drawing = crate::catalog::geometry::draw(&layout, &slots);
            prop_assert!(serde_json::from_slice::<Value>(&drawing.json).is_ok());
        }
        let _ = read_plan(text.as_bytes(), Some(beside.to_string().as_bytes()));
    }

    #[test]
    fn a_plan_is_kept_to_the_letter(labels in proptest::collection::hash_set("[^\\x00]{0,12}", 1..20)) {
        let mut seen = std::collections::HashSet::new(); // labels that look the same are a fault
        let labels: Vec<String> = labels.into_iter().filter(|l| seen.insert(visible(l))).collect();
        let seats = labels.iter().enumerate().map(|(i, l)| {
            let mut seat = seat(&format!("guid {i}"), i as f64);
            seat["seat_number"] = l.as_str().into();
            seat
        }).collect();
        let plan = read(&plan(vec![row("A", seats)], vec![])).value;
        let read: Vec<&str> = plan.seats().map(|s| s.label.as_str()).collect();
        prop_assert_eq!(read, labels.iter().map(String::as_str).collect::<Vec<_>>());
    }
}
