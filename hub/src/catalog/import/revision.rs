//! A revision as rows: immutable once they are written.

use flate2::Compression;
use sqlx::PgConnection;

use super::{Imported, expect_rows};
use crate::catalog::{
    geometry::{self, Drawing, Slot},
    layout::{Layout, flag},
};

/// Writes the revision itself, and returns its id.
pub(super) async fn insert_revision(
    tx: &mut PgConnection,
    plan_id: i64,
    imported: &Imported,
    slots: &[Slot],
    drawing: &Drawing,
) -> sqlx::Result<i64> {
    sqlx::query_scalar!(
        "insert into plan_revision (plan_id, revision, hash, seat_count, focus_x, focus_y, geometry)
         values ($1, $2, $3, $4, $5, $6, $7) returning id",
        plan_id,
        imported.revision,
        imported.hash,
        slots.len() as i32,
        drawing.focus.0,
        drawing.focus.1,
        geometry::gzip(&drawing.json, Compression::best()),
    )
    .fetch_one(tx)
    .await
}

/// The columns of `plan_seat`, each as an array: 200,000 rows are one statement.
#[derive(Default)]
struct Columns<'a> {
    seat_no: Vec<i32>,
    guid: Vec<&'a str>,
    section: Vec<&'a str>,
    row_label: Vec<&'a str>,
    seat_label: Vec<&'a str>,
    category: Vec<&'a str>,
    run: Vec<i32>,
    run_pos: Vec<i32>,
    x: Vec<f64>,
    y: Vec<f64>,
    flags: Vec<i16>,
    companion_of: Vec<Option<i32>>,
    house: Vec<bool>,
    retired: Vec<bool>,
}

/// Writes its seats, each with the number of its slot.
pub(super) async fn insert_seats(
    tx: &mut PgConnection,
    revision_id: i64,
    layout: &Layout,
    slots: &[Slot],
    drawing: &Drawing,
) -> sqlx::Result<()> {
    let mut number_of = vec![0i32; layout.seats.len()];
    for (seat_no, slot) in slots.iter().enumerate() {
        if let Slot::Seat(at) = slot {
            number_of[*at] = seat_no as i32;
        }
    }
    let mut c = Columns::default();
    let mut retired_run = geometry::runs_of(layout);
    for (seat_no, slot) in slots.iter().enumerate() {
        c.seat_no.push(seat_no as i32);
        c.x.push(drawing.points[seat_no].0);
        c.y.push(drawing.points[seat_no].1);
        c.retired.push(matches!(slot, Slot::Retired(_)));
        match slot {
            Slot::Seat(at) => {
                let seat = &layout.seats[*at];
                c.guid.push(&seat.guid);
                c.section.push(&layout.sections[seat.section]);
                c.row_label.push(&layout.rows[seat.row].label);
                c.seat_label.push(&seat.label);
                c.category.push(&layout.categories[seat.category].name);
                c.run.push(seat.run as i32);
                c.run_pos.push(seat.run_pos as i32);
                c.flags.push(seat.flags);
                c.companion_of.push(seat.companion_of.map(|at| number_of[at]));
                c.house.push(seat.house);
            }
            Slot::Retired(seat) => {
                c.guid.push(&seat.guid);
                c.section.push(&seat.section);
                c.row_label.push(&seat.row_label);
                c.seat_label.push(&seat.seat_label);
                c.category.push(&seat.category);
                c.run.push(retired_run as i32);
                c.run_pos.push(0);
                c.flags.push(flag::RETIRED);
                c.companion_of.push(None);
                c.house.push(false);
                retired_run += 1;
            }
        }
    }
    let done = sqlx::query!(
        "insert into plan_seat (plan_revision_id, seat_no, guid, section, row_label, seat_label, category,
                                run, run_pos, x, y, flags, companion_of, house, retired)
         select $1, * from unnest($2::int[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[],
                                  $8::int[], $9::int[], $10::float8[], $11::float8[], $12::smallint[],
                                  $13::int[], $14::bool[], $15::bool[])",
        revision_id,
        &c.seat_no,
        &c.guid as &[&str],
        &c.section as &[&str],
        &c.row_label as &[&str],
        &c.seat_label as &[&str],
        &c.category as &[&str],
        &c.run,
        &c.run_pos,
        &c.x,
        &c.y,
        &c.flags,
        &c.companion_of as &[Option<i32>],
        &c.house,
        &c.retired,
    )
    .execute(tx)
    .await?;
    expect_rows(done.rows_affected(), slots.len())
}
