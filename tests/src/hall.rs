//! Halls to sell: seating plans as pretix's editor writes them, small enough to reason about.

use serde_json::{Value, json};

/// A block of straight rows in front of a stage.
#[derive(Debug, Clone, Copy)]
pub struct Hall {
    pub rows: u32,
    pub seats_a_row: u32,
}

impl Hall {
    pub fn seat_count(self) -> u32 {
        self.rows * self.seats_a_row
    }

    /// Seat `n` of row `r` gets number `r * seats_a_row + n`, both counted from 0: the order of the plan.
    /// The first half of the rows is of category "Front", the rest "Back".
    pub fn plan(self, name: &str) -> Value {
        let pitch = 10.0;
        let rows: Vec<Value> = (0..self.rows)
            .map(|row| {
                let category = if row < self.rows.div_ceil(2) { "Front" } else { "Back" };
                let seats: Vec<Value> = (0..self.seats_a_row)
                    .map(|seat| {
                        json!({
                            "seat_guid": format!("r{row}s{seat}"),
                            "seat_number": (seat + 1).to_string(),
                            "position": { "x": f64::from(seat) * pitch, "y": 0.0 },
                            "category": category,
                        })
                    })
                    .collect();
                json!({
                    "row_number": (row + 1).to_string(),
                    "position": { "x": 0.0, "y": f64::from(row) * pitch },
                    "seats": seats,
                })
            })
            .collect();
        json!({
            "name": name,
            "size": { "width": f64::from(self.seats_a_row) * pitch, "height": f64::from(self.rows + 3) * pitch },
            "categories": [{ "name": "Front", "color": "#b03060" }, { "name": "Back", "color": "#3060b0" }],
            "zones": [{ "name": "Stalls", "position": { "x": 0.0, "y": 3.0 * pitch }, "rows": rows }],
        })
    }
}
