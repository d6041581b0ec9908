//! Draws how the pace of a line follows what goes wrong (`make plots`): an hour of a simulated sale each.

use std::path::Path;

use fullhouse_tests::plant::{
    Ours, Plant, bounds, plot,
    troubles::{self, SECONDS, SEED},
    turns,
};

fn main() -> std::io::Result<()> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("plots");
    std::fs::create_dir_all(&folder)?;
    for scenario in troubles::all() {
        let bounds = bounds(scenario.rate_max, scenario.inside_max);
        let hold_max_ms = f64::from(bounds.ceilings.hold_ms);
        let trace = Plant::new(SEED, &scenario.troubles).run(SECONDS, &mut Ours::new(bounds));
        let path = folder.join(format!("pace-{}.svg", scenario.name));
        std::fs::write(&path, plot::draw(&scenario, &trace, hold_max_ms))?;
        println!("{} (seed {SEED}, {} turns)", scenario.name, turns(&trace));
    }
    Ok(())
}
