//! The catalogue on the command line: import a plan, make an event, make up a stadium.
//!
//! A command answers with a printed report and whether it failed (exit code 1); nothing is printed
//! here, so that the demo and the tests use the same functions.

use std::path::{Path, PathBuf};

use fullhouse_protocol::events::EventSummary;
use sqlx::PgPool;

use super::{
    event::{self, Draft, EventError, EventSpec},
    import::{self, ImportError, Imported, Refusal, VenueSpec, venue},
    layout::{self, Layout},
    listing::{self, Sizes},
    plan::{self, Fault, File, Warning},
    search::Listed,
    stadium,
};

/// What `import --help` says of the file beside the plan.
const BESIDE_HELP: &str = "\
The file beside the plan, PLAN.seats.json, says what the pretix format can't. Every key may be left out:

  {
    \"version\": 1,
    \"focus\": {\"x\": 300, \"y\": 20},          where the stage is, in the plan's coordinates
    \"accessible\": [\"A-1\"],                  guids of accessible places
    \"companion\": {\"A-2\": \"A-1\"},           companion's seat: its accessible place
    \"restricted_view\": [\"C-14\"],
    \"house\": [\"B-1\", \"B-2\"],               blocked when an event is made
    \"standing\": [                            an area of the plan (its uuid) and how many stand in it
      {\"id\": \"front\", \"area\": \"5e0c…\", \"name\": \"Front\", \"category\": \"Standing\", \"capacity\": 500}
    ]
  }

Imported again, a plan keeps its seats by their guids: it may move, rename and add, but no seat that is held
or sold may vanish. The venue's name, city, country and time zone change where they are given; the report
names each change.";

/// What `event create --help` says of the specification: the example, with every field.
const EVENT_HELP: &str = concat!("The specification:\n\n", include_str!("../../../assets/plans/events/example.toml"));

/// Imports a pretix seating plan. Faults are told all at once, and nothing is changed by them.
#[derive(Debug, Clone, clap::Args)]
#[command(after_help = BESIDE_HELP)]
pub struct ImportArgs {
    /// The plan: seating plan JSON of pretix
    pub plan_file: PathBuf,
    /// The file beside the plan: accessible places, standing areas, house seats. PLAN.seats.json if it exists
    #[arg(long, value_name = "FILE")]
    pub beside: Option<PathBuf>,
    /// Slug of the venue that the plan belongs to, such as town-hall; a new one is made
    #[arg(long, value_name = "SLUG")]
    pub venue: String,
    /// What people call the venue; the slug, if a new one gets no name
    #[arg(long, value_name = "NAME")]
    pub venue_name: Option<String>,
    /// Where the venue is, as fans read it
    #[arg(long)]
    pub city: Option<String>,
    /// Two capital letters of ISO 3166, such as DE
    #[arg(long, value_name = "CODE")]
    pub country: Option<String>,
    /// IANA name, such as Europe/Berlin; needed for a new venue
    #[arg(long, value_name = "ZONE")]
    pub time_zone: Option<String>,
    /// Lets --time-zone change a venue that has events; those keep the zone that they were made in
    #[arg(long)]
    pub change_time_zone: bool,
    /// Name of the plan at the venue; the plan's own if left out
    #[arg(long, value_name = "NAME")]
    pub plan: Option<String>,
    /// Checks everything, in the database too, and changes nothing
    #[arg(long)]
    pub dry_run: bool,
}

#[derive(Debug, Clone, clap::Subcommand)]
pub enum EventCommand {
    /// Makes an event from a specification in TOML or JSON
    #[command(after_help = EVENT_HELP)]
    Create(EventSpecArgs),
    /// Lists the events by their slugs: name, start, how the sale stands, free seats of all
    List,
    /// Prints the specification of an event, as JSON that `edit` takes
    Show { slug: String },
    /// Makes an event what a specification says: times, prices, rules; its slug and its plan stay
    #[command(after_help = EVENT_HELP)]
    Edit(EventSpecArgs),
}

impl EventCommand {
    /// The file of what it makes or edits.
    pub fn written(&self) -> Option<PathBuf> {
        match self {
            Self::Create(args) | Self::Edit(args) => Some(args.spec.clone()),
            Self::List | Self::Show { .. } => None,
        }
    }
}

#[derive(Debug, Clone, clap::Args)]
pub struct EventSpecArgs {
    /// The file; its fields are below
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

/// Reads a plan and the file beside it, and lays it out; or says all that is wrong with both.
pub fn read_plan(plan: &[u8], beside: Option<&[u8]>) -> Result<(Layout, Vec<Warning>), Vec<Fault>> {
    let plan::Read { plan, beside, mut faults, warnings } = plan::read(plan, beside);
    let Some(plan) = plan else { return Err(faults) };
    match layout::lay_out(plan, &beside) {
        Err(more) => faults.extend(more),
        Ok(layout) if !faults.is_empty() => drop(layout),
        Ok(layout) if !layout.seats.is_empty() => return Ok((layout, warnings)),
        Ok(_) => {
            let message = "the plan has no seat and no standing place".to_owned();
            faults.push(Fault { file: File::Plan, place: "zones".to_owned(), line: 0, code: "plan_empty", message });
        }
    }
    Err(faults)
}

/// Reads both files; or says of each what is wrong with it, or why it can't be read.
async fn read_files(plan: &Path, beside: Option<&Path>) -> Result<(Layout, Vec<Warning>), Vec<String>> {
    let mut told = Vec::new();
    let mut bytes = Vec::new();
    for path in [Some(plan), beside].into_iter().flatten() {
        match tokio::fs::read(path).await {
            Ok(read) => bytes.push(read),
            Err(e) => told.push(format!("{}: {e}", path.display())),
        }
    }
    if !told.is_empty() {
        return Err(told);
    }
    read_plan(&bytes[0], bytes.get(1).map(Vec::as_slice))
        .map_err(|faults| faults.iter().map(ToString::to_string).collect())
}

/// `fullhouse import`. An error is one of the machine's (a file or the database that can't be
/// reached); what is wrong with the plan stands in the report.
pub async fn import(pool: &PgPool, args: &ImportArgs) -> anyhow::Result<Report> {
    let beside_file = args.beside.clone().or_else(|| {
        let default = args.plan_file.with_extension("seats.json");
        default.exists().then_some(default)
    });
    let venue = VenueSpec {
        slug: args.venue.clone(),
        name: args.venue_name.clone(),
        city: args.city.clone(),
        country: args.country.clone(),
        time_zone: args.time_zone.clone(),
        may_change_zone: args.change_time_zone,
    };
    let mut tx = pool.begin().await?;
    let (layout, warnings) = match read_files(&args.plan_file, beside_file.as_deref()).await {
        Ok(read) => read,
        Err(mut told) => {
            let venue = venue::check(&mut tx, &venue).await?;
            told.extend(venue.faults.iter().map(|f| format!("venue: {f}")));
            return Ok(refused_import(args, "fault", &told));
        }
    };
    let name = args.plan.as_deref().unwrap_or(&layout.name);
    let warnings: String = warnings.iter().map(|w| format!("warning: {w}\n")).collect();
    let report = match import::import(&mut tx, &venue, name, &layout).await {
        Ok(imported) => {
            if args.dry_run {
                tx.rollback().await?;
            } else {
                tx.commit().await?;
            }
            Report { text: imported_text(name, &layout, &imported, args.dry_run), failed: false }
        }
        Err(ImportError::Database(e)) => return Err(e.into()),
        Err(ImportError::Refused(refusals)) => {
            let told: Vec<String> = refusals.iter().flat_map(told_refusal).collect();
            refused_import(args, "reason", &told)
        }
    };
    Ok(Report { text: warnings + &report.text, ..report })
}

/// Its faults with the lines that they stand on.
fn numbered(spec: &str, error: EventError) -> EventError {
    match error {
        EventError::Faults(faults) => EventError::Faults(event::lines::numbered(spec, faults)),
        other => other,
    }
}

/// A transaction that is dropped changes nothing.
fn refused_import(args: &ImportArgs, noun: &str, told: &[String]) -> Report {
    let mut text = format!("{}: {}; nothing was changed\n", args.plan_file.display(), count(told.len(), noun));
    told.iter().for_each(|line| text += &format!("  {line}\n"));
    Report::failed(text)
}

/// A line for each seat, category or word that stands against an import.
fn told_refusal(refusal: &Refusal) -> Vec<String> {
    match refusal {
        Refusal::Venue(fault) => vec![format!("venue: {fault}")],
        Refusal::WouldLose(seats) => seats.iter().map(|s| format!("{s} and would vanish")).collect(),
        Refusal::Unpriced(missing) => {
            missing.iter().map(|m| format!("{}: no price for {:?}", m.event, m.category)).collect()
        }
        Refusal::TooManyNumbers(_) => vec![refusal.to_string()],
    }
}

/// A number and its noun, which ends in s unless there is one of it.
fn count(n: usize, noun: &str) -> String {
    format!("{n} {noun}{}", if n == 1 { "" } else { "s" })
}

fn imported_text(name: &str, layout: &Layout, imported: &Imported, dry_run: bool) -> String {
    let Imported { venue, revision, hash, seats, added, returned, retired, altered, events, unchanged } = imported;
    let mut text = if dry_run { "nothing was changed; without --dry-run:\n".to_owned() } else { String::new() };
    venue.iter().for_each(|change| text += &format!("{change}\n"));
    let seats = count(*seats, "seat");
    if *unchanged {
        let rest = if venue.is_empty() { "; nothing was changed" } else { "" };
        return text + &format!("{name:?}: {seats}, the same as revision {revision} ({hash}){rest}\n");
    }
    let done = if dry_run { "would become" } else { "is" };
    text += &format!("{name:?} {done} revision {revision} ({hash})\n");
    let (sections, rows) = (count(layout.sections.len(), "section"), count(layout.rows.len(), "row"));
    text += &format!("  {seats} in {sections}, {rows}\n");
    text += &format!("  {added} new, {returned} back, {retired} retired, {altered} moved or renamed\n");
    for (slug, repriced) in events {
        let repriced = count(usize::try_from(*repriced).unwrap_or(usize::MAX), "seat");
        text += &format!("  event {slug}: moved to it, {repriced} repriced\n");
    }
    text
}

/// `fullhouse event …`.
pub async fn event(pool: &PgPool, command: &EventCommand) -> anyhow::Result<Report> {
    match command {
        EventCommand::List => list_events(pool).await,
        EventCommand::Show { slug } => show_event(pool, slug).await,
        EventCommand::Create(EventSpecArgs { spec }) | EventCommand::Edit(EventSpecArgs { spec }) => {
            let text = match tokio::fs::read_to_string(spec).await {
                Ok(text) => text,
                Err(e) => return Ok(Report::failed(format!("{}: {e}\n", spec.display()))),
            };
            let beside = spec.parent().unwrap_or(Path::new("."));
            match command {
                EventCommand::Edit(_) => edit_event_beside(pool, &text, Some(beside)).await,
                _ => create_event_beside(pool, &text, Some(beside)).await,
            }
        }
    }
}

async fn list_events(pool: &PgPool) -> anyhow::Result<Report> {
    let (events, _) = listing::list(&mut *pool.acquire().await?, &mut Sizes::new()).await?;
    let mut text = String::new();
    for Listed { summary: event, .. } in events {
        let EventSummary { slug, name, starts_local, sale, seats_available, seats_total, .. } = event;
        let starts = starts_local.format("%Y-%m-%d %H:%M");
        let sale = serde_json::to_value(sale)?;
        let sale = sale.as_str().unwrap_or_default().replace('_', " ");
        text += &format!("{slug}\t{name}\t{starts}\t{sale}\t{seats_available} of {seats_total}\n");
    }
    Ok(Report { text, failed: false })
}

async fn show_event(pool: &PgPool, slug: &str) -> anyhow::Result<Report> {
    match event::show(&mut *pool.acquire().await?, slug).await {
        Ok(spec) => Ok(Report { text: serde_json::to_string_pretty(&spec)?, failed: false }),
        Err(e) => refused(slug, e),
    }
}

/// Makes the event that a specification describes; one that stands alone has no logo beside it.
pub async fn create_event_from(pool: &PgPool, spec: &str) -> anyhow::Result<Report> {
    create_event_beside(pool, spec, None).await
}

/// Reads the logo that a specification names, from the folder that it lies in. None: it names none.
async fn logo(spec: &EventSpec, beside: Option<&Path>) -> Result<Option<Vec<u8>>, String> {
    let Some(name) = spec.ticket_logo.as_deref().filter(|name| !name.is_empty()) else { return Ok(None) };
    let Some(folder) = beside else { return Err("ticket_logo: there is no file beside it".to_owned()) };
    let bytes = tokio::fs::read(folder.join(name)).await.map_err(|e| format!("ticket_logo: {name}: {e}"))?;
    match event::look::logo_fault(&bytes) {
        None => Ok(Some(bytes)),
        Some(text) => Err(text),
    }
}

/// What a specification says, and the logo that it names. Its faults wait for those that the database knows.
async fn read_spec(spec: &str, beside: Option<&Path>) -> Result<(Draft, Option<Vec<u8>>), Report> {
    let mut draft = Draft::read(spec).map_err(|e| Report::failed(faults_text(&numbered(spec, e))))?;
    match logo(&draft.spec, beside).await {
        Ok(logo) => Ok((draft, logo)),
        Err(fault) => {
            draft.faults.push(fault);
            Ok((draft, None))
        }
    }
}

async fn create_event_beside(pool: &PgPool, spec: &str, beside: Option<&Path>) -> anyhow::Result<Report> {
    let (draft, logo) = match read_spec(spec, beside).await {
        Ok(both) => both,
        Err(report) => return Ok(report),
    };
    let slug = draft.spec.slug.clone();
    let mut tx = pool.begin().await?;
    let made = event::create(&mut tx, &draft.spec).await;
    match draft.settle(made) {
        Ok(created) => {
            event::set_logo(&mut tx, created.id, logo.as_deref()).await?;
            tx.commit().await?;
            let event::Created { id, slug, seats, on_sale_at } = created;
            Ok(Report { text: format!("event {id}, {slug}: {seats} seats, on sale at {on_sale_at}\n"), failed: false })
        }
        Err(e) => refused(&slug, numbered(spec, e)),
    }
}

/// Makes an event what a specification says.
pub async fn edit_event_from(pool: &PgPool, spec: &str) -> anyhow::Result<Report> {
    edit_event_beside(pool, spec, None).await
}

async fn edit_event_beside(pool: &PgPool, spec: &str, beside: Option<&Path>) -> anyhow::Result<Report> {
    let (draft, logo) = match read_spec(spec, beside).await {
        Ok(both) => both,
        Err(report) => return Ok(report),
    };
    let (slug, has_logo) = (draft.spec.slug.clone(), draft.spec.ticket_logo.is_some());
    let mut tx = pool.begin().await?;
    let saved = event::edit(&mut tx, &draft.spec).await;
    match draft.settle(saved) {
        Ok(event::Edited { id, moved_tickets }) => {
            if has_logo {
                event::set_logo(&mut tx, id, logo.as_deref()).await?;
            }
            tx.commit().await?;
            let mut text = format!("event {id}, {slug}: saved\n");
            if moved_tickets > 0 {
                text.push_str(&format!(
                    "its date or doors have changed: {moved_tickets} tickets that are sold say the old ones on paper \
                     and in their mails; those who have an account get a mail with new ones\n"
                ));
            }
            Ok(Report { text, failed: false })
        }
        Err(e) => refused(&slug, numbered(spec, e)),
    }
}

/// A transaction that is dropped changes nothing.
fn refused(slug: &str, error: EventError) -> anyhow::Result<Report> {
    if let EventError::Database(e) = error {
        return Err(e.into());
    }
    Ok(Report::failed(format!("{slug}: {}", faults_text(&error))))
}

fn faults_text(error: &EventError) -> String {
    let mut text = format!("{error}; nothing was changed\n");
    if let EventError::Faults(faults) = error {
        faults.iter().for_each(|f| text += &format!("  {f}\n"));
    }
    text
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
