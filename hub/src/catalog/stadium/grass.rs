//! What the stadium's seats look at: the stage with its runway, the standing fields around it, the
//! desk where the sound is mixed, and the stands that are closed behind the stage.

use std::f64::consts::TAU;

use serde_json::{Value, json};

use super::{STAGE_FRONT, oval::Oval};

/// What is drawn on and around the grass. Points are relative to the middle; two
/// angles say how far the stands are closed behind the stage.
pub(super) fn areas(oval: Oval, closed_lower: f64, closed_upper: f64) -> Vec<Value> {
    let polygon = |name: &str, color: &str, points: Vec<(f64, f64)>, text: Option<(&str, f64, f64)>| {
        let points: Vec<Value> = points.into_iter().map(|(u, v)| json!({"x": v.round(), "y": -u.round()})).collect();
        let mut area = json!({
            "shape": "polygon", "uuid": name, "position": {"x": 0, "y": 0}, "rotation": 0,
            "color": color, "border_color": "#00000022", "polygon": {"points": points},
        });
        if let Some((text, u, size)) = text {
            area["text"] = json!({"text": text, "position": {"x": 0, "y": -u}, "size": size, "color": "#ffffff"});
        }
        area
    };
    let floor = oval.wedge((0.0, TAU), (-60.0, -60.0));
    let floor = floor[..floor.len() / 2].to_vec();
    // The runway reaches into the first field, which stands around it.
    let (front, runway_end, runway) = (880.0, 420.0, 90.0);
    let golden = vec![
        (front, -760.0),
        (front, -runway - 20.0),
        (runway_end - 20.0, -runway - 20.0),
        (runway_end - 20.0, runway + 20.0),
        (front, runway + 20.0),
        (front, 760.0),
        (20.0, 900.0),
        (20.0, -900.0),
    ];
    let field = vec![
        (-60.0, -900.0),
        (-60.0, 900.0),
        (-700.0, 820.0),
        (-1050.0, 480.0),
        (-1050.0, 160.0),
        (-760.0, 160.0),
        (-760.0, -160.0),
        (-1050.0, -160.0),
        (-1050.0, -480.0),
        (-700.0, -820.0),
    ];
    let stage = vec![
        (STAGE_FRONT, -660.0),
        (STAGE_FRONT, -runway),
        (runway_end, -runway),
        (runway_end, runway),
        (STAGE_FRONT, runway),
        (STAGE_FRONT, 660.0),
        (1120.0, 660.0),
        (1180.0, 540.0),
        (1400.0, 540.0),
        (1400.0, -540.0),
        (1180.0, -540.0),
        (1120.0, -660.0),
    ];
    let mixer = vec![(-800.0, -110.0), (-800.0, 110.0), (-980.0, 110.0), (-980.0, -110.0)];
    vec![
        polygon("floor", "#2f3b33", floor, None),
        polygon("closed-lower", "#3a3f4b", oval.wedge((-closed_lower, closed_lower), (0.0, 512.0)), None),
        polygon("closed-upper", "#3a3f4b", oval.wedge((-closed_upper, closed_upper), (920.0, 1264.0)), None),
        polygon("golden-circle", "#4a2035", golden, None),
        polygon("field", "#4a3320", field, None),
        polygon("mixer", "#15181e", mixer, Some(("MIX", -890.0, 60.0))),
        polygon("stage", "#15181e", stage, Some(("STAGE", 1180.0, 150.0))),
    ]
}
