//! Money on the command line: what is not settled, the books, the gate, refunds, an event that is called off.

use std::fmt::Write;

use anyhow::{Context, bail, ensure};
use clap::{Args, Subcommand, ValueEnum};
use fullhouse_protocol::money::{CalledOff, Finding, MoneyList, OwedOrder};
use sqlx::PgPool;

use crate::{
    config::Config,
    currency,
    payment::{
        Payments,
        apportion::What,
        call_off, gate, list,
        reconcile::{self, Report},
        refund::{self, Ask, SeatsBecome},
    },
};

#[derive(Args)]
pub struct MoneyArgs {
    /// For machines
    #[arg(long)]
    json: bool,
}

#[derive(Args)]
pub struct ReconcileArgs {
    /// How far back the books are read; reconcile.window_h by default
    #[arg(long)]
    hours: Option<i64>,
    #[arg(long)]
    json: bool,
}

#[derive(Subcommand)]
pub enum GateCommand {
    /// Why no new payments begin, if they don't
    Show {
        #[arg(long)]
        json: bool,
    },
    /// Take back a reason that does not open by itself. Your name is kept
    Open {
        reason: String,
        /// Who you are
        #[arg(long)]
        by: String,
        /// What you have seen to
        #[arg(long, default_value = "seen to")]
        note: String,
    },
    /// Begin no new payments until a person opens the gate again
    Pause {
        #[arg(long)]
        by: String,
        #[arg(long)]
        note: String,
    },
}

#[derive(Args)]
pub struct RefundArgs {
    /// The order's code or id
    order: String,
    /// Only these seats, by number, each with its share of fees
    #[arg(long, value_delimiter = ',', conflicts_with_all = ["amount", "all"])]
    seats: Vec<i32>,
    /// Only an amount, in minor units; the seats stay
    #[arg(long, conflicts_with = "all")]
    amount: Option<i64>,
    /// Whatever is left of it
    #[arg(long)]
    all: bool,
    /// What becomes of the seats
    #[arg(long, value_enum)]
    seats_become: Option<Become>,
    #[arg(long)]
    reason: String,
    /// Who you are
    #[arg(long)]
    by: String,
    /// The same key again finds the same refund
    #[arg(long)]
    key: Option<String>,
}

#[derive(Clone, Copy, ValueEnum)]
enum Become {
    OnSale,
    House,
    Dead,
}

#[derive(Args)]
pub struct CallOffArgs {
    /// The event's slug or id
    event: String,
    #[arg(long)]
    reason: String,
    /// Who you are
    #[arg(long)]
    by: String,
    #[arg(long)]
    json: bool,
}

fn print_json(value: &impl serde::Serialize) -> anyhow::Result<()> {
    println!("{}", serde_json::to_string_pretty(value)?);
    Ok(())
}

/// `fullhouse money`
pub async fn money(pool: &PgPool, args: &MoneyArgs) -> anyhow::Result<()> {
    let list = list::read(pool).await?;
    if args.json {
        return print_json(&list);
    }
    print!("{}", said(&list)?);
    Ok(())
}

/// The list in words, the worst first.
fn said(list: &MoneyList) -> Result<String, std::fmt::Error> {
    let mut out = String::new();
    match &list.gate[..] {
        [] => writeln!(out, "The gate is open.")?,
        reasons => {
            writeln!(out, "The gate is CLOSED:")?;
            for r in reasons {
                let opens = if r.by_person { "a person opens it" } else { "opens by itself" };
                writeln!(out, "  {} since {} ({opens}): {}", r.reason, r.closed_at.format("%F %T"), r.detail)?;
            }
        }
    }
    match &list.reconciled {
        None => writeln!(out, "The books were never compared.")?,
        Some(r) if r.ok => {
            writeln!(out, "The books were compared at {}; {} findings.", r.started_at.format("%F %T"), r.findings)?
        }
        Some(r) => {
            let why = r.error.as_deref().unwrap_or("it did not end");
            writeln!(out, "The last comparison of the books, at {}, FAILED: {why}", r.started_at.format("%F %T"))?;
        }
    }
    say_findings(&mut out, "Money without an order", &list.money_without_order)?;
    say_orders(&mut out, "Orders without money", &list.orders_without_money)?;
    say_orders(&mut out, "Orders that are due", &list.payment_due)?;
    section(&mut out, "In doubt", list.doubts.len())?;
    for d in &list.doubts {
        writeln!(
            out,
            "  {} {} for {} s, {} {}, looked {} times",
            d.order_code, d.state, d.age_s, d.amount_minor, d.currency, d.looks
        )?;
    }
    section(&mut out, "Refunds that have not arrived", list.refunds.len())?;
    for r in &list.refunds {
        let failure = r.failure.as_deref().map(|f| format!(": {f}")).unwrap_or_default();
        writeln!(out, "  {} {} {} {} ({}){failure}", r.order_code, r.state, r.amount_minor, r.currency, r.refund_id)?;
    }
    say_findings(&mut out, "Other differences between the books", &list.findings)?;
    Ok(out)
}

fn section(out: &mut String, title: &str, count: usize) -> std::fmt::Result {
    if count == 0 { writeln!(out, "{title}: none") } else { writeln!(out, "{title}: {count}") }
}

fn say_findings(out: &mut String, title: &str, findings: &[Finding]) -> std::fmt::Result {
    section(out, title, findings.len())?;
    for f in findings {
        let order = f.order_code.as_deref().unwrap_or("no order");
        let seen = f.acknowledged_by.as_deref().map(|by| format!(" (acknowledged by {by})")).unwrap_or_default();
        writeln!(out, "  {} {} ({order}): {}{seen}", f.class, f.subject, f.detail)?;
    }
    Ok(())
}

fn say_orders(out: &mut String, title: &str, orders: &[OwedOrder]) -> std::fmt::Result {
    section(out, title, orders.len())?;
    for o in orders {
        writeln!(out, "  {} {} {} {} since {}", o.code, o.why, o.total_minor, o.currency, o.since.format("%F %T"))?;
    }
    Ok(())
}

/// `fullhouse reconcile`. An error if something needs a person.
pub async fn reconcile(config: &Config, pool: &PgPool, args: &ReconcileArgs) -> anyhow::Result<()> {
    let payments = Payments::new(config)?;
    let hours = args.hours.unwrap_or(config.reconcile.window_h);
    ensure!((1..=24 * 90).contains(&hours), "--hours: 1 to {}", 24 * 90);
    let report = reconcile::run(&payments, pool, hours).await?;
    if args.json {
        print_json(&serde_json::json!({
            "run_id": report.run_id, "from": report.from, "intents": report.intents, "refunds": report.refunds,
            "transactions": report.transactions,
            "findings": report.found.iter().map(|(f, outcome)| serde_json::json!({
                "class": f.class.name(), "subject": f.subject, "order_id": f.order_id, "attempt_id": f.attempt_id,
                "pi_id": f.pi_id, "amount": f.amount, "currency": f.currency, "detail": f.detail, "outcome": outcome.name(),
            })).collect::<Vec<_>>(),
        }))?;
    } else {
        print!("{}", compared(&report));
    }
    let open = report.found.iter().filter(|(_, outcome)| needs_a_person(*outcome)).count();
    ensure!(open == 0, "{open} differences need a person");
    Ok(())
}

fn needs_a_person(outcome: reconcile::Outcome) -> bool {
    matches!(outcome, reconcile::Outcome::Listed | reconcile::Outcome::RepairFailed)
}

fn compared(report: &Report) -> String {
    let Report { intents, refunds, transactions, .. } = report;
    let mut out = format!(
        "Since {}: {intents} payments, {refunds} refunds, {transactions} transactions.\n",
        report.from.format("%F %T")
    );
    if report.found.is_empty() {
        out.push_str("The books agree.\n");
    }
    for (f, outcome) in &report.found {
        out.push_str(&format!("{} {}: {} [{}]\n", f.class.name(), f.subject, f.detail, outcome.name()));
    }
    out
}

/// `fullhouse gate`
pub async fn gate(pool: &PgPool, command: &GateCommand) -> anyhow::Result<()> {
    match command {
        GateCommand::Show { json } => {
            let list = list::read(pool).await?;
            if *json {
                return print_json(&list.gate);
            }
            if list.gate.is_empty() {
                println!("The gate is open.");
            }
            for r in list.gate {
                println!("{} since {} by {}: {}", r.reason, r.closed_at.format("%F %T"), r.closed_by, r.detail);
            }
            Ok(())
        }
        GateCommand::Open { reason, by, note } => {
            gate::open(pool, reason, by, note).await?;
            println!("{reason} is taken back");
            Ok(())
        }
        GateCommand::Pause { by, note } => {
            gate::pause(pool, note, by).await?;
            println!("no new payments begin");
            Ok(())
        }
    }
}

/// `fullhouse refund`
pub async fn refund(pool: &PgPool, args: RefundArgs) -> anyhow::Result<()> {
    let what = match (args.all, args.amount, args.seats) {
        (true, _, _) => What::All,
        (_, Some(amount), _) => What::Amount(amount),
        (_, _, mut seats) if !seats.is_empty() => {
            seats.sort_unstable();
            seats.dedup();
            What::Seats(seats)
        }
        _ => bail!("say what goes back: --all, --seats or --amount"),
    };
    let order_id = sqlx::query_scalar!(r#"select id from "order" where code = upper($1) or id::text = $1"#, args.order)
        .fetch_optional(pool)
        .await?
        .with_context(|| format!("there is no order {}", args.order))?;
    let ask = Ask {
        order_id,
        key: args.key.unwrap_or_else(|| uuid::Uuid::new_v4().to_string()),
        what,
        seats_become: args.seats_become.map(|b| match b {
            Become::OnSale => SeatsBecome::OnSale,
            Become::House => SeatsBecome::House,
            Become::Dead => SeatsBecome::Dead,
        }),
        reason: args.reason,
        actor: args.by,
        called_off: false,
    };
    let request_id = refund::give_back(pool, ask).await?;
    let given = refund::given_back(pool, request_id).await?.context("it was just written")?;
    println!("{} go back", currency::amount(&given.currency, given.amount_minor));
    for r in given.refunds {
        println!("  {} {} {} ({})", r.kind, currency::amount(&given.currency, r.amount_minor), r.state, r.id);
    }
    Ok(())
}

/// `fullhouse event cancel`
pub async fn call_off(pool: &PgPool, args: &CallOffArgs) -> anyhow::Result<()> {
    let event_id = sqlx::query_scalar!("select id from event where slug = $1 or id::text = $1", args.event)
        .fetch_optional(pool)
        .await?
        .with_context(|| format!("there is no event {}", args.event))?;
    call_off::begin(pool, event_id, &args.reason, &args.by).await?;
    while call_off::go_on(pool, event_id).await? {}
    let report = call_off::report(pool, event_id).await?.context("it was just written")?;
    if args.json {
        print_json(&report)?;
    } else {
        print!("{}", called_off(&report));
    }
    ensure!(
        report.refused_count == 0,
        "{} orders could not be given back: run this again when that is seen to",
        report.refused_count
    );
    Ok(())
}

fn called_off(report: &CalledOff) -> String {
    let count = |result: &str| report.orders.iter().filter(|o| o.result == result).count();
    let mut out = format!(
        "{} orders: {} refunded, {} on their way, {} where nothing was paid, {} with a payment under way, {} refused\n",
        report.orders.len(),
        count("refunded"),
        count("on_its_way"),
        count("nothing_paid"),
        count("waiting"),
        report.refused_count
    );
    for o in report.orders.iter().filter(|o| o.result == "refused") {
        out.push_str(&format!("  {} {} {}: {}\n", o.code, o.amount_minor, o.currency, o.detail));
    }
    if count("waiting") + count("on_its_way") > 0 {
        out.push_str("Hubs that run go on with it; run this again to see how far it is.\n");
    }
    out
}
