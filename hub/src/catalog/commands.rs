//! The catalogue on the command line: import a plan, make an event, make up a stadium.
//!
//! A command answers with a printed report and whether it failed (exit code 1); nothing is printed
//! here, so that the demo and the tests use the same functions.

use std::path::PathBuf;

use sqlx::PgPool;

use super::{
    event::{self, EventError, EventSpec},
    import::{self, ImportError, Imported, VenueSpec},
    layout::{self, Layout},
    plan::{Fault, Plan, Warning, beside::Beside},
    stadium,
};

/// Imports a pretix seating plan. Faults are told all at once, and nothing is changed by them.
#[derive(Debug, Clone, clap::Args)]
pub struct ImportArgs {
    /// The plan: seating plan JSON of pretix
    pub plan_file: PathBuf,
    /// The file beside the plan: accessible places, standing areas, house seats. PLAN.seats.json if it exists
    #[arg(long)]
    pub beside: Option<PathBuf>,
    /// Slug of the venue that the plan belongs to
    #[arg(long)]
    pub venue: String,
    #[arg(long)]
    pub venue_name: Option<String>,
    #[arg(long)]
    pub city: Option<String>,
    #[arg(long)]
    pub country: Option<String>,
    /// IANA name, such as Europe/Berlin; needed for a new venue
    #[arg(long)]
    pub time_zone: Option<String>,
    /// Name of the plan at the venue; the plan's own if left out
    #[arg(long)]
    pub plan: Option<String>,
    /// Checks everything, in the database too, and changes nothing
    #[arg(long)]
    pub dry_run: bool,
}

#[derive(Debug, Clone, clap::Subcommand)]
pub enum EventCommand {
    /// Makes an event from a specification in TOML or JSON
    Create(EventSpecArgs),
    /// Prints the specification of an event, as JSON that `edit` takes
    Show { slug: String },
    /// Makes an event what a specification says: times, prices, rules; its slug and its plan stay
    Edit(EventSpecArgs),
}

#[derive(Debug, Clone, clap::Args)]
pub struct EventSpecArgs {
    pub spec: PathBuf,
}

#[derive(Debug, Clone, clap::Subcommand)]
pub enum PlanCommand {
    /// Writes a made-up stadium of about 62,000 seats, and the file beside it
    GenerateStadium(GenerateStadiumArgs),
}

#[derive(Debug, Clone, clap::Args)]
pub struct GenerateStadiumArgs {
    /// The same seed makes the same stadium
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// The plan; the file beside it is written as OUT.seats.json
    #[arg(long)]
    pub out: PathBuf,
}

/// What a command has to say. A failed one ends with exit code 1.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    pub text: String,
    pub failed: bool,
}

impl Report {
    fn failed(text: impl Into<String>) -> Self {
        Self { text: text.into(), failed: true }
    }
}

/// Reads a plan and the file beside it, and lays it out.
pub fn read_plan(plan: &[u8], beside: Option<&[u8]>) -> Result<(Layout, Vec<Warning>), Vec<Fault>> {
    let plan = Plan::read(plan)?;
    let mut warnings = plan.warnings;
    let beside = match beside {
        None => Beside::default(),
        Some(bytes) => {
            let reading = Beside::read(bytes, &plan.value)?;
            warnings.extend(reading.warnings);
            reading.value
        }
    };
    Ok((layout::lay_out(plan.value, &beside)?, warnings))
}

/// `fullhouse import`. An error is one of the machine's (a file or the database that can't be
/// reached); what is wrong with the plan stands in the report.
pub async fn import(pool: &PgPool, args: &ImportArgs) -> anyhow::Result<Report> {
    let beside_file = args.beside.clone().or_else(|| {
        let default = args.plan_file.with_extension("seats.json");
        default.exists().then_some(default)
    });
    let plan = match tokio::fs::read(&args.plan_file).await {
        Ok(bytes) => bytes,
        Err(e) => return Ok(Report::failed(format!("{}: {e}\n", args.plan_file.display()))),
    };
    let beside = match &beside_file {
        None => None,
        Some(path) => match tokio::fs::read(path).await {
            Ok(bytes) => Some(bytes),
            Err(e) => return Ok(Report::failed(format!("{}: {e}\n", path.display()))),
        },
    };
    let (layout, warnings) = match read_plan(&plan, beside.as_deref()) {
        Ok(read) => read,
        Err(faults) => {
            let (plan, count) = (args.plan_file.display(), faults.len());
            let mut text =
                format!("{plan}: {count} {}; nothing was changed\n", if count == 1 { "fault" } else { "faults" });
            faults.iter().for_each(|f| text += &format!("  {f}\n"));
            return Ok(Report::failed(text));
        }
    };
    let venue = VenueSpec {
        slug: args.venue.clone(),
        name: args.venue_name.clone(),
        city: args.city.clone(),
        country: args.country.clone(),
        time_zone: args.time_zone.clone(),
    };
    let name = args.plan.as_deref().unwrap_or(&layout.name);
    let mut text = String::new();
    warnings.iter().for_each(|w| text += &format!("warning: {w}\n"));
    let mut tx = pool.begin().await?;
    let outcome = import::import(&mut tx, &venue, name, &layout).await;
    match outcome {
        Ok(imported) => {
            if args.dry_run {
                tx.rollback().await?;
            } else {
                tx.commit().await?;
            }
            text.push_str(&imported_text(name, &layout, &imported, args.dry_run));
            Ok(Report { text, failed: false })
        }
        Err(ImportError::Database(e)) => Err(e.into()),
        Err(e) => {
            tx.rollback().await?;
            text += &format!("{}: {e}; nothing was changed\n", args.plan_file.display());
            match e {
                ImportError::WouldLose(seats) => seats.iter().for_each(|s| text += &format!("  {s}\n")),
                ImportError::Unpriced(missing) => {
                    missing.iter().for_each(|m| text += &format!("  {}: no price for {:?}\n", m.event, m.category));
                }
                _ => {}
            }
            Ok(Report::failed(text))
        }
    }
}

fn imported_text(name: &str, layout: &Layout, imported: &Imported, dry_run: bool) -> String {
    let Imported { revision, hash, seats, added, returned, retired, altered, events, unchanged } = imported;
    if *unchanged {
        return format!("{name:?}: {seats} seats, the same as revision {revision} ({hash}); nothing was changed\n");
    }
    let done = if dry_run { "would become" } else { "is" };
    let mut text = format!("{name:?} {done} revision {revision} ({hash})\n");
    text += &format!("  {seats} seats in {} sections, {} rows\n", layout.sections.len(), layout.rows.len());
    text += &format!("  {added} new, {returned} back, {retired} retired, {altered} moved or renamed\n");
    for (slug, repriced) in events {
        text += &format!("  event {slug}: moved to it, {repriced} seats repriced\n");
    }
    text
}

/// `fullhouse event …`.
pub async fn event(pool: &PgPool, command: &EventCommand) -> anyhow::Result<Report> {
    match command {
        EventCommand::Show { slug } => show_event(pool, slug).await,
        EventCommand::Create(EventSpecArgs { spec }) | EventCommand::Edit(EventSpecArgs { spec }) => {
            let text = match tokio::fs::read_to_string(spec).await {
                Ok(text) => text,
                Err(e) => return Ok(Report::failed(format!("{}: {e}\n", spec.display()))),
            };
            match command {
                EventCommand::Edit(_) => edit_event_from(pool, &text).await,
                _ => create_event_from(pool, &text).await,
            }
        }
    }
}

async fn show_event(pool: &PgPool, slug: &str) -> anyhow::Result<Report> {
    match event::show(&mut *pool.acquire().await?, slug).await {
        Ok(spec) => Ok(Report { text: serde_json::to_string_pretty(&spec)?, failed: false }),
        Err(e) => refused(slug, e),
    }
}

/// Makes the event that a specification describes.
pub async fn create_event_from(pool: &PgPool, spec: &str) -> anyhow::Result<Report> {
    let spec = match EventSpec::read(spec) {
        Ok(spec) => spec,
        Err(e) => return Ok(Report::failed(format!("{e}\n"))),
    };
    let mut tx = pool.begin().await?;
    match event::create(&mut tx, &spec).await {
        Ok(created) => {
            tx.commit().await?;
            let event::Created { id, slug, seats, on_sale_at } = created;
            Ok(Report { text: format!("event {id}, {slug}: {seats} seats, on sale at {on_sale_at}\n"), failed: false })
        }
        Err(e) => refused(&spec.slug, e),
    }
}

/// Makes an event what a specification says.
pub async fn edit_event_from(pool: &PgPool, spec: &str) -> anyhow::Result<Report> {
    let spec = match EventSpec::read(spec) {
        Ok(spec) => spec,
        Err(e) => return Ok(Report::failed(format!("{e}\n"))),
    };
    let mut tx = pool.begin().await?;
    match event::edit(&mut tx, &spec).await {
        Ok(id) => {
            tx.commit().await?;
            Ok(Report { text: format!("event {id}, {}: saved\n", spec.slug), failed: false })
        }
        Err(e) => refused(&spec.slug, e),
    }
}

/// A transaction that is dropped changes nothing.
fn refused(slug: &str, error: EventError) -> anyhow::Result<Report> {
    if let EventError::Database(e) = error {
        return Err(e.into());
    }
    let mut text = format!("{slug}: {error}; nothing was changed\n");
    if let EventError::Faults(faults) = error {
        faults.iter().for_each(|f| text += &format!("  {f}\n"));
    }
    Ok(Report::failed(text))
}

/// `fullhouse plan generate-stadium`.
pub fn generate_stadium(args: &GenerateStadiumArgs) -> Report {
    let stadium = stadium::generate(args.seed);
    let beside = args.out.with_extension("seats.json");
    for (path, bytes) in [(&args.out, &stadium.plan), (&beside, &stadium.beside)] {
        if let Err(e) = std::fs::write(path, bytes) {
            return Report::failed(format!("{}: {e}\n", path.display()));
        }
    }
    let text = format!("{} and {}: {}\n", args.out.display(), beside.display(), stadium.summary);
    Report { text, failed: false }
}
