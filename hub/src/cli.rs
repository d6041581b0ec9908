//! The command line: subcommands, and what each needs before its own module takes over.

mod audit; // the log of what people did
mod commands; // tickets' keys and codes, vouchers, the queue of mail
mod leases; // seats that terminals sell without a network
mod money; // what is not settled, refunds, the books, the gate
mod queue; // waiting rooms
mod staff; // who signs in at an attended terminal
mod terminals; // tills and kiosks
mod verify_draw; // whether a draw is what it says
mod why; // who does something, and why

pub use commands::Undecided;

use std::{io::IsTerminal, path::PathBuf};

use anyhow::{Context, bail};
use clap::{Args, Parser, Subcommand, ValueEnum};
use sqlx::PgPool;
use tokio::signal::unix::{SignalKind, signal};

use crate::{
    auth::{self, NewAccount},
    catalog::{
        self,
        commands::{EventCommand, ImportArgs, PlanCommand, Report},
    },
    config::Config,
    db, demo, edge, mail,
    payment::{self, simulator},
    retention,
    serve::{self, Roles, StartOptions},
    telemetry, watch,
};

/// Sells a concert hall in minutes and never sells a seat twice.
#[derive(Parser)]
#[command(name = "fullhouse", version, arg_required_else_help = true)]
pub struct Cli {
    /// A file that replaces single settings (the manual of all settings: `fullhouse settings`).
    #[arg(long, global = true, env = "FULLHOUSE_CONFIG", value_name = "FILE")]
    config: Option<PathBuf>,
    /// Logs for machines: a JSON object a line.
    #[arg(long, global = true)]
    log_json: bool,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Open a house to play with: PostgreSQL, payments, events and company included. The fans' page is
    /// served where it is built: in a checkout, after `npm run build`, or from http.assets_dir.
    Demo(demo::Options),
    /// Run a hub until SIGINT or SIGTERM.
    Serve(Serve),
    /// Bring the database's schema up to this binary's.
    Migrate,
    /// Import a seating plan: all faults at once, each with its place.
    Import(ImportArgs),
    /// Make an event, show it, edit it, or call it off.
    #[command(subcommand)]
    Event(Event),
    /// Make up a plan.
    #[command(subcommand)]
    Plan(PlanCommand),
    /// Enrol tills and kiosks: whatever sells by a token of its own.
    #[command(subcommand)]
    Terminal(terminals::TerminalCommand),
    /// Seats that terminals sell without a network: how they stand, and what needs a person.
    #[command(subcommand)]
    Lease(leases::LeaseCommand),
    /// What was promised to whoever brings a code.
    #[command(subcommand)]
    Voucher(VoucherCommand),
    /// Look after the staff: who signs in at an attended terminal, and in which role.
    #[command(subcommand)]
    Staff(staff::StaffCommand),
    /// What people did: sales, prices, refunds, seats, shifts, terminals, members. The latest first.
    Audit(audit::AuditArgs),
    /// Make operators: accounts that may use the staff's side of the API.
    #[command(subcommand)]
    Operator(Operator),
    /// Check ticket codes without a network, and look after the keys that sign them.
    #[command(subcommand)]
    Ticket(TicketCommand),
    /// Look after the queue of mail.
    #[command(subcommand)]
    Mail(MailCommand),
    /// Forget who an account was; its orders stay in the books.
    Shred { email: String },
    /// Run the simulated payment provider until interrupted.
    SimulatePayments(simulator::Args),
    /// Whatever about money is not settled: one list; exit with 1 if something of it needs a person.
    Money(money::MoneyArgs),
    /// Compare the provider's books with ours, and repair what may be; exit with 1 if something needs a person.
    Reconcile(money::ReconcileArgs),
    /// The gate that new payments go through.
    #[command(subcommand)]
    Gate(money::GateCommand),
    /// Give back an order, seats of it, or an amount.
    Refund(money::RefundArgs),
    /// Waiting rooms: open one, set its pace, pause it, see to its draw.
    #[command(subcommand)]
    Queue(queue::QueueCommand),
    /// Recompute a waiting room's draw from what is published, and say whether it is what it says. Exit with 1 if it is
    /// not, with 3 if nobody can say (nothing is drawn yet, the secret is not out, the hub does not answer). Needs no
    /// database.
    VerifyDraw(verify_draw::VerifyArgs),
    /// Who this database's house is to the payment provider.
    #[command(subcommand)]
    Installation(InstallationCommand),
    /// Look for everything that must never be true; exit with 1 if something is.
    Check,
    /// Print the description of the API (OpenAPI).
    Openapi,
    /// Print every setting with its default, unit and reason.
    Settings,
}

#[derive(Subcommand)]
enum InstallationCommand {
    /// Print its id, which everything that is asked of the provider bears.
    Show,
    /// Give this copy of another house's database an id of its own, before a hub is started on it. Payments that came
    /// with the copy stay that house's: they are shown and never touched. Not for a database that is restored to go on.
    New,
}

#[derive(Subcommand)]
enum TicketCommand {
    /// Say what a code claims. Exit with 1 if it is not good, with 3 if its key is not in the list (fetch it anew).
    /// Needs no database and no network.
    Verify {
        code: String,
        /// What `GET /api/ticket-keys` answers, kept in a file.
        #[arg(long, value_name = "FILE")]
        keys: PathBuf,
        /// What `GET /api/box-office/events/{id}/dead-tickets` answers, kept in a file.
        #[arg(long, value_name = "FILE")]
        dead: Option<PathBuf>,
        /// What `GET /api/events/{id}` answers, kept in a file: a ticket of another event is refused, and the seat
        /// has a name.
        #[arg(long, value_name = "FILE")]
        event: Option<PathBuf>,
    },
    /// Write a ticket of an event that nobody has bought, as a PDF to standard output: what its tickets look like.
    Preview {
        /// The event's slug.
        event: String,
        /// en, ja or ko.
        #[arg(long, default_value = "en")]
        language: String,
    },
    /// Print the public halves of the keys, as `--keys` reads them.
    Keys,
    /// Make a new key, which signs from now on. Tickets that older ones signed stay good.
    RotateKey,
}

#[derive(Subcommand)]
enum MailCommand {
    /// Mails that are dead, or in another state (queued, sent, dropped).
    List {
        #[arg(long, default_value = "dead")]
        state: String,
    },
    /// Try a dead mail again; all of them without a number.
    Retry { id: Option<i64> },
}

#[derive(Subcommand)]
enum Event {
    #[command(flatten)]
    Make(EventCommand),
    /// Call it off: the sale stops, holds end, every order is given back. Again: what was refused is tried once more.
    Cancel(money::CallOffArgs),
}

#[derive(Args)]
struct Serve {
    /// What this process does; all of it by default, several if given several times. Separate processes need NATS.
    #[arg(long = "role", value_name = "ROLE")]
    roles: Vec<Role>,
}

#[derive(Clone, Copy, ValueEnum)]
enum Role {
    /// Answers requests and takes holds.
    Api,
    /// Carries the sockets of open maps.
    Push,
    /// Turns committed changes into frames; one leads, others wait.
    Relay,
    /// Sweeps, drives payments, watches what must always be true.
    Workers,
}

#[derive(Subcommand)]
enum VoucherCommand {
    /// The vouchers of an event, and what became of each. (Counters make them; a code is shown once.)
    List {
        /// The event's slug.
        event: String,
    },
}

#[derive(Subcommand)]
enum Operator {
    /// Make an operator, or an account one. The password is asked for, or read from standard input.
    Add {
        /// The address that they sign in with.
        email: String,
        /// Shown to colleagues.
        #[arg(long, default_value = "Operator")]
        name: String,
    },
}

/// An error with its causes, each told once: a library's error often ends with what its cause says.
pub fn told(error: &anyhow::Error) -> String {
    let mut text = String::new();
    for cause in error.chain().map(ToString::to_string) {
        if text.is_empty() {
            text = cause;
        } else if !text.ends_with(&cause) {
            text = format!("{text}: {cause}");
        }
    }
    text
}

/// Does what was asked for. An error is the reason of a refusal.
pub async fn run(cli: Cli) -> anyhow::Result<()> {
    let quiet = matches!(cli.command, Command::Demo(_));
    telemetry::init(cli.log_json, if quiet { telemetry::QUIET } else { telemetry::USUAL });
    let config = Config::load(cli.config.as_deref())?;
    match cli.command {
        Command::Demo(options) => {
            let mut stop = Stop::listen()?;
            demo::run(config, options, async || stop.asked().await).await
        }
        Command::Serve(args) => run_hub(config, roles(&args.roles)).await,
        Command::Migrate => {
            db::migrate(&db::connect(&config.database).await?).await?;
            println!("the schema is up to date");
            Ok(())
        }
        Command::Import(args) => report(catalog::commands::import(&open(&config).await?, &args).await?),
        Command::Event(Event::Make(command)) => {
            let pool = open(&config).await?;
            let mut done = catalog::commands::event(&pool, &command).await?;
            if let Some(spec) = command.written().filter(|_| !done.failed) {
                done.text += &commands::undrawable(&pool, &config.ticket, &spec).await?;
            }
            report(done)
        }
        Command::Event(Event::Cancel(args)) => money::call_off(&open(&config).await?, &args).await,
        Command::Money(args) => money::money(&config, &open(&config).await?, &args).await,
        Command::Reconcile(args) => money::reconcile(&config, &open(&config).await?, &args).await,
        Command::Gate(command) => money::gate(&open(&config).await?, &command).await,
        Command::Refund(args) => money::refund(&open(&config).await?, args).await,
        Command::Queue(command) => report(queue::run(&open(&config).await?, command).await?),
        Command::VerifyDraw(args) => report(verify_draw::verify(args).await?),
        Command::Plan(PlanCommand::GenerateStadium(args)) => report(catalog::commands::generate_stadium(&args)),
        Command::SimulatePayments(args) => simulator::run(args).await,
        Command::Terminal(command) => report(terminals::run(open(&config).await?, command).await?),
        Command::Lease(command) => report(leases::run(&open(&config).await?, command).await?),
        Command::Voucher(VoucherCommand::List { event }) => {
            report(commands::vouchers(&open(&config).await?, &event).await?)
        }
        Command::Audit(args) => report(audit::run(&open(&config).await?, args).await?),
        Command::Staff(command) => report(staff::run(open(&config).await?, command).await?),
        Command::Ticket(TicketCommand::Verify { code, keys, dead, event }) => {
            report(commands::verify(&code, &keys, dead.as_deref(), event.as_deref())?)
        }
        Command::Ticket(TicketCommand::Preview { event, language }) => {
            let pdf = commands::preview(&open(&config).await?, &config.ticket, &event, &language).await?;
            std::io::Write::write_all(&mut std::io::stdout(), &pdf).context("writing the PDF")
        }
        Command::Ticket(TicketCommand::Keys) => report(commands::keys(&open(&config).await?).await?),
        Command::Ticket(TicketCommand::RotateKey) => report(commands::rotate_key(&open(&config).await?).await?),
        Command::Mail(MailCommand::List { state }) => report(commands::mails(&open(&config).await?, &state).await?),
        Command::Mail(MailCommand::Retry { id }) => {
            let again = mail::revive(&open(&config).await?, id).await?;
            anyhow::ensure!(again > 0 || id.is_none(), "there is no such dead mail");
            println!("{again} mails are tried again");
            Ok(())
        }
        Command::Shred { email } => {
            let id = retention::shred(open(&config).await?, &email).await?;
            println!("account {id} is nobody now");
            Ok(())
        }
        Command::Operator(Operator::Add { email, name }) => add_operator(&config, email, name).await,
        Command::Installation(command) => installation(&config, &command).await,
        Command::Check => check(&config).await,
        Command::Openapi => {
            print!("{}", edge::openapi::document());
            Ok(())
        }
        Command::Settings => {
            print!("{}", crate::config::DEFAULTS);
            Ok(())
        }
    }
}

/// A database with this binary's schema.
async fn open(config: &Config) -> anyhow::Result<PgPool> {
    let pool = db::connect(&config.database).await?;
    db::check_schema(&pool).await?;
    Ok(pool)
}

fn report(report: Report) -> anyhow::Result<()> {
    let text = report.text.trim_end();
    anyhow::ensure!(!report.failed, "{text}");
    println!("{text}");
    Ok(())
}

impl Cli {
    /// A hub that only carries viewers: its shards have threads of their own, and what is left for the runtime is
    /// shaking hands, which one worker does with fewer changes of thread than many.
    pub fn only_pushes(&self) -> bool {
        matches!(&self.command, Command::Serve(args) if roles(&args.roles) == Roles { push: true, ..Roles::NONE })
    }
}

fn roles(named: &[Role]) -> Roles {
    if named.is_empty() {
        return Roles::ALL;
    }
    let mut roles = Roles::NONE;
    for role in named {
        match role {
            Role::Api => roles.api = true,
            Role::Push => roles.push = true,
            Role::Relay => roles.relay = true,
            Role::Workers => roles.workers = true,
        }
    }
    roles
}

async fn run_hub(config: Config, roles: Roles) -> anyhow::Result<()> {
    // Listened for before anything starts, so that a signal that comes early is not fatal half-way.
    let mut stop = Stop::listen()?;
    let hub = serve::start(config, StartOptions { roles, ..StartOptions::default() }).await?;
    let failed = tokio::select! {
        () = stop.asked() => None,
        task = hub.failed() => Some(task),
    };
    tracing::info!("stopping; a second signal stops at once");
    tokio::select! {
        () = hub.stop() => match failed {
            None => Ok(()),
            Some(task) => bail!("the hub can't be without its {task}, which ended by itself: see the log"),
        },
        () = stop.asked() => bail!("stopped at once, by a second signal"),
    }
}

/// SIGINT and SIGTERM.
pub struct Stop {
    interrupt: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
}

impl Stop {
    /// From now on the signals no longer end the process by themselves.
    pub fn listen() -> anyhow::Result<Self> {
        let on = |kind| signal(kind).context("listening for signals");
        Ok(Self { interrupt: on(SignalKind::interrupt())?, terminate: on(SignalKind::terminate())? })
    }

    /// Waits for one of them.
    pub async fn asked(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}

async fn add_operator(config: &Config, email: String, name: String) -> anyhow::Result<()> {
    let password = read_secret("Password")?;
    let pool = open(config).await?;
    let (account, was_there) =
        auth::add_operator(&pool, NewAccount { email, name, password }, config.auth.password_length_min).await?;
    let how = if was_there {
        "is an operator; the account was there already, and has the new password"
    } else {
        "is an operator"
    };
    println!("{} {how}", account.email);
    Ok(())
}

/// From `FULLHOUSE_PASSWORD`, or asked for without echo, or the first line of standard input.
fn read_secret(what: &str) -> anyhow::Result<String> {
    if let Ok(password) = std::env::var("FULLHOUSE_PASSWORD") {
        return Ok(password);
    }
    if std::io::stdin().is_terminal() {
        let secret = rpassword::prompt_password(format!("{what}: ")).context("reading the secret")?;
        anyhow::ensure!(secret == rpassword::prompt_password("Again: ")?, "the two differ");
        return Ok(secret);
    }
    let mut line = String::new();
    std::io::stdin().read_line(&mut line).context("reading the password from standard input")?;
    Ok(line.trim_end_matches(['\r', '\n']).to_owned())
}

async fn installation(config: &Config, command: &InstallationCommand) -> anyhow::Result<()> {
    let pool = open(config).await?;
    let id = match command {
        InstallationCommand::Show => payment::installation::id(&pool).await?,
        InstallationCommand::New => payment::installation::renew(&pool).await?,
    };
    println!("{id}");
    Ok(())
}

async fn check(config: &Config) -> anyhow::Result<()> {
    let pool = open(config).await?;
    let violations = watch::check(&pool).await?;
    for v in &violations {
        let event = v.event_id.map_or_else(String::new, |id| format!(" of event {id}"));
        eprintln!("{}: {}{event}", v.invariant, v.what);
    }
    anyhow::ensure!(violations.is_empty(), "what must always be true is not: {} found", violations.len());
    println!("{} invariants hold", watch::INVARIANTS.len());
    println!("installation {}", payment::installation::id(&pool).await?);
    Ok(())
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_well_formed() {
        Cli::command().debug_assert();
    }

    #[test]
    fn a_cause_is_told_once() {
        #[derive(Debug, thiserror::Error)]
        #[error("the library: {0}")]
        struct Library(#[source] std::io::Error);
        let error = anyhow::Error::new(Library(std::io::Error::other("no way"))).context("connecting");
        assert_eq!(told(&error), "connecting: the library: no way");
    }

    #[test]
    fn roles_are_all_or_those_named() {
        let pushes = |line: &str| Cli::parse_from(line.split(' ')).only_pushes();
        assert!(pushes("fullhouse serve --role push"));
        assert!(!pushes("fullhouse serve") && !pushes("fullhouse serve --role push --role relay"));
        assert_eq!(roles(&[]), Roles::ALL);
        assert_eq!(roles(&[Role::Push, Role::Relay]), Roles { push: true, relay: true, ..Roles::NONE });
    }
}
