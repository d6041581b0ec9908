//! An event's plan in memory: who sits beside whom, and how far from the stage.
//!
//! Neighbours come from the runs that the import found in the plan's order and positions, never
//! from what is printed on a seat.

use std::collections::HashMap;

use sqlx::PgPool;

use super::SeatNo;

pub use crate::catalog::layout::flag::{ACCESSIBLE, COMPANION, RESTRICTED_VIEW, RETIRED, STANDING};

#[derive(Debug, Clone)]
pub struct HallSeat {
    pub run: u32,
    pub run_pos: u32,
    pub section: u32,
    pub level: i16,
    pub flags: i16,
    pub companion_of: Option<SeatNo>,
    pub x: f64,
    pub y: f64,
    /// From the focus of the plan, in the plan's units.
    pub distance: f64,
}

impl HallSeat {
    pub fn is(&self, flag: i16) -> bool {
        self.flags & flag != 0
    }

    /// A seat with a seat beside it: rules about who sits next to whom don't hold where people stand.
    pub fn has_neighbours(&self) -> bool {
        self.is_ordinary() && !self.is(STANDING)
    }

    /// Anybody's: neither an accessible place, nor its companion's, nor gone.
    pub fn is_ordinary(&self) -> bool {
        self.flags & (ACCESSIBLE | COMPANION | RETIRED) == 0
    }
}

/// What a hall was read at: another one is another hall.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Edition {
    pub plan_revision_id: i64,
    /// Grows when staff say of a seat that it is something else for this performance.
    pub traits_version: i32,
}

#[derive(Debug)]
pub struct Hall {
    pub event_id: i64,
    pub edition: Edition,
    /// By seat number.
    pub seats: Vec<HallSeat>,
    /// By run number: its seats, side by side.
    pub runs: Vec<Vec<SeatNo>>,
    /// Runs from the one nearest to the stage on, with the distance of its nearest seat.
    pub runs_by_distance: Vec<(u32, f64)>,
    pub section_names: Vec<String>,
}

impl Hall {
    /// Reads the plan of an event, and what its seats are for this performance; `None` where there is no such event.
    pub async fn load(pool: &PgPool, event_id: i64) -> sqlx::Result<Option<Self>> {
        let Some(plan) = sqlx::query!(
            "select r.id, r.focus_x, r.focus_y, e.traits_version
             from event e join plan_revision r on r.id = e.plan_revision_id where e.id = $1",
            event_id
        )
        .fetch_optional(pool)
        .await?
        else {
            return Ok(None);
        };
        let rows = sqlx::query!(
            r#"select p.seat_no, p.section, p.run, p.run_pos, p.x, p.y, seat_flags(p.flags, t.flags) as "flags!",
                    p.companion_of, p.retired, s.level
             from plan_seat p join event_seat s on s.event_id = $2 and s.seat_no = p.seat_no
             left join seat_trait t on t.event_id = $2 and t.seat_no = p.seat_no
             where p.plan_revision_id = $1 order by p.seat_no"#,
            plan.id,
            event_id
        )
        .fetch_all(pool)
        .await?;
        let mut section_names = Vec::new();
        let mut sections = HashMap::new();
        let mut seats = Vec::with_capacity(rows.len());
        for row in rows {
            // Numbers are dense; a hole would mean a half-made event, and then there is no hall yet.
            if row.seat_no as usize != seats.len() {
                return Ok(None);
            }
            let section = *sections.entry(row.section.clone()).or_insert_with(|| {
                section_names.push(row.section);
                section_names.len() as u32 - 1
            });
            seats.push(HallSeat {
                run: row.run as u32,
                run_pos: row.run_pos as u32,
                section,
                level: row.level,
                // A seat that a later revision left out is no flag in the database.
                flags: row.flags | if row.retired { RETIRED } else { 0 },
                companion_of: row.companion_of.filter(|_| row.flags & COMPANION != 0),
                x: row.x,
                y: row.y,
                distance: (row.x - plan.focus_x).hypot(row.y - plan.focus_y),
            });
        }
        let edition = Edition { plan_revision_id: plan.id, traits_version: plan.traits_version };
        Ok(Some(Self::new(event_id, edition, seats, section_names)))
    }

    pub fn new(event_id: i64, edition: Edition, seats: Vec<HallSeat>, section_names: Vec<String>) -> Self {
        let mut runs: Vec<Vec<SeatNo>> = vec![Vec::new(); seats.iter().map(|s| s.run as usize + 1).max().unwrap_or(0)];
        for (number, seat) in seats.iter().enumerate() {
            if !seat.is(RETIRED) {
                runs[seat.run as usize].push(number as SeatNo);
            }
        }
        for run in &mut runs {
            run.sort_by_key(|&s| seats[s as usize].run_pos);
        }
        let mut runs_by_distance: Vec<(u32, f64)> = runs
            .iter()
            .enumerate()
            .filter_map(|(number, run)| {
                let nearest = run.iter().map(|&s| seats[s as usize].distance).min_by(f64::total_cmp)?;
                Some((number as u32, nearest))
            })
            .collect();
        runs_by_distance.sort_by(|a, b| a.1.total_cmp(&b.1));
        Self { event_id, edition, seats, runs, runs_by_distance, section_names }
    }

    pub fn seat(&self, seat: SeatNo) -> Option<&HallSeat> {
        usize::try_from(seat).ok().and_then(|i| self.seats.get(i))
    }

    pub fn section(&self, name: &str) -> Option<u32> {
        self.section_names.iter().position(|s| s == name).map(|i| i as u32)
    }
}

#[cfg(test)]
pub(crate) mod testing {
    use super::*;

    /// Straight rows in front of a stage at (0, 0): `flags[row][seat]`, a pitch of 10, one price level.
    pub(crate) fn rows(flags: &[&[i16]]) -> Hall {
        let mut seats = Vec::new();
        for (row, marks) in flags.iter().enumerate() {
            for (pos, flags) in marks.iter().enumerate() {
                let (x, y) = (10.0 * pos as f64 - 5.0 * (marks.len() as f64 - 1.0), 20.0 + 10.0 * row as f64);
                seats.push(HallSeat {
                    run: row as u32,
                    run_pos: pos as u32,
                    section: 0,
                    level: 0,
                    flags: *flags,
                    companion_of: None,
                    x,
                    y,
                    distance: x.hypot(y),
                });
            }
        }
        Hall::new(1, Edition { plan_revision_id: 1, traits_version: 0 }, seats, vec!["Stalls".to_owned()])
    }
}
