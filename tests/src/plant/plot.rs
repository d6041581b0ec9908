//! A run as a drawing (SVG): rate, latency, and people inside, one above the other.

use std::fmt::Write;

use super::{Second, troubles::Scenario};

const WIDTH: f64 = 860.0;
const PANEL: f64 = 130.0;
const GAP: f64 = 34.0;
const LEFT: f64 = 64.0;
const RIGHT: f64 = 16.0;
const TOP: f64 = 40.0;

struct Line<'a> {
    colour: &'a str,
    name: &'a str,
    values: Vec<f64>,
}

struct Panel<'a> {
    title: &'a str,
    lines: Vec<Line<'a>>,
    /// A dashed line, and what it is.
    limit: Option<(f64, &'a str)>,
    /// The largest that is drawn, so that one spike does not flatten the rest.
    most: f64,
}

/// Draws a run.
pub fn draw(scenario: &Scenario, trace: &[Second], hold_max_ms: f64) -> String {
    let line = |colour, name, of: fn(&Second) -> f64| Line { colour, name, values: trace.iter().map(of).collect() };
    let most = |lines: &[Line]| lines.iter().flat_map(|l| &l.values).fold(1.0_f64, |a, b| a.max(*b)) * 1.1;
    let rate = vec![line("#1d4ed8", "rate", |s| f64::from(s.rate_minute))];
    let hold = vec![line("#b91c1c", "holding, p99", |s| s.hold_ms)];
    let late = vec![line("#7c3aed", "payments late", |s| s.payments_late_s)];
    let inside = vec![
        line("#9ca3af", "how many may be", |s| f64::from(s.inside_max)),
        line("#047857", "are inside", |s| f64::from(s.inside)),
    ];
    let panels = [
        Panel { most: most(&rate), title: "people a minute", lines: rate, limit: None },
        Panel {
            most: most(&hold).min(4.0 * hold_max_ms),
            title: "holding takes, ms (cut off at the top)",
            lines: hold,
            limit: Some((hold_max_ms, "too much")),
        },
        Panel {
            most: most(&late).max(20.0),
            title: "payments are late by, s",
            lines: late,
            limit: Some((15.0, "too much")),
        },
        Panel { most: most(&inside), title: "people inside", lines: inside, limit: None },
    ];
    let height = TOP + panels.len() as f64 * (PANEL + GAP) + 10.0;
    let mut svg = String::new();
    let mut put = |text: String| {
        writeln!(svg, "{text}").expect("a String takes everything");
    };
    put(format!(
        r##"<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}" font-family="sans-serif" font-size="12" fill="#111827"><rect width="100%" height="100%" fill="#ffffff"/>"##
    ));
    put(format!(r#"<text x="{LEFT}" y="22" font-size="15" font-weight="bold">{}</text>"#, scenario.title));
    let seconds = trace.len() as f64;
    let x = |second: f64| LEFT + second / seconds * (WIDTH - LEFT - RIGHT);
    for (index, panel) in panels.iter().enumerate() {
        let top = TOP + index as f64 * (PANEL + GAP) + 14.0;
        let y = |value: f64| top + PANEL - value.min(panel.most) / panel.most * PANEL;
        for trouble in &scenario.troubles {
            let (from, until) = trouble.times();
            put(format!(
                r##"<rect x="{:.1}" y="{top}" width="{:.1}" height="{PANEL}" fill="#fef3c7"/>"##,
                x(f64::from(from)),
                x(f64::from(until)) - x(f64::from(from))
            ));
        }
        for (start, end) in closed(trace) {
            put(format!(
                r##"<rect x="{:.1}" y="{top}" width="{:.1}" height="{PANEL}" fill="#fecaca"/>"##,
                x(start),
                x(end) - x(start)
            ));
        }
        put(format!(r#"<text x="{LEFT}" y="{:.1}" font-weight="bold">{}</text>"#, top - 5.0, panel.title));
        let mut at = WIDTH - RIGHT;
        for line in panel.lines.iter().rev().filter(|_| panel.lines.len() > 1) {
            put(format!(
                r#"<text x="{at}" y="{:.1}" text-anchor="end" fill="{}">{}</text>"#,
                top - 5.0,
                line.colour,
                line.name
            ));
            at -= 110.0;
        }
        for share in [0.0, 0.5, 1.0] {
            let value = panel.most * share;
            put(format!(
                r##"<path d="M{LEFT} {0:.1}H{1}" stroke="#e5e7eb"/><text x="{2}" y="{3:.1}" text-anchor="end" fill="#6b7280">{value:.0}</text>"##,
                y(value),
                WIDTH - RIGHT,
                LEFT - 6.0,
                y(value) + 4.0
            ));
        }
        if let Some((limit, name)) = panel.limit.filter(|(limit, _)| *limit < panel.most) {
            put(format!(
                r##"<path d="M{LEFT} {0:.1}H{1}" stroke="#6b7280" stroke-dasharray="4 3"/><text x="{2}" y="{3:.1}" fill="#6b7280">{name}</text>"##,
                y(limit),
                WIDTH - RIGHT,
                LEFT + 4.0,
                y(limit) - 3.0
            ));
        }
        for line in &panel.lines {
            let mut path = String::new();
            for (second, value) in line.values.iter().enumerate().step_by(4) {
                let letter = if second == 0 { 'M' } else { 'L' };
                write!(path, "{letter}{:.1} {:.1}", x(second as f64), y(*value)).expect("a String takes everything");
            }
            put(format!(r#"<path d="{path}" fill="none" stroke="{}" stroke-width="1.5"/>"#, line.colour));
        }
        for minute in (0..=trace.len() / 60).step_by(10) {
            put(format!(
                r##"<text x="{:.1}" y="{:.1}" text-anchor="middle" fill="#6b7280">{minute} min</text>"##,
                x(minute as f64 * 60.0).min(WIDTH - RIGHT - 14.0),
                top + PANEL + 14.0
            ));
        }
    }
    put("</svg>".to_owned());
    svg
}

/// When the gate was closed: from and until, seconds.
fn closed(trace: &[Second]) -> Vec<(f64, f64)> {
    let mut spans: Vec<(f64, f64)> = Vec::new();
    for (second, _) in trace.iter().enumerate().filter(|(_, s)| s.gate_closed) {
        let second = second as f64;
        match spans.last_mut() {
            Some((_, end)) if *end == second => *end = second + 1.0,
            _ => spans.push((second, second + 1.0)),
        }
    }
    spans
}
