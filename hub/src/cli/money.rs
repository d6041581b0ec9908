//! Money on the command line: what is not settled, the books, the gate, refunds, an event that is called off.

use std::fmt::Write;

use anyhow::{Context, bail, ensure};
use clap::{Args, Subcommand, ValueEnum};
use fullhouse_protocol::money::{CalledOff, Finding, MoneyList, OwedOrder};
use sqlx::PgPool;

use super::why::By;
use crate::{
    auth::is_readable,
    checkout::find,
    config::Config,
    currency,
    payment::{
        Payments,
        apportion::{ApportionError, What},
        call_off, gate, list,
        reconcile::{self, Report, finding},
        refund::{self, Ask, RefundError, SeatsBecome},
    },
};

#[derive(Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct MoneyArgs {
    #[command(subcommand)]
    command: Option<MoneyCommand>,
    /// For machines
    #[arg(long)]
    json: bool,
}

#[derive(Subcommand)]
enum MoneyCommand {
    /// A difference between the books is seen to: it needs nobody any more. Your name is kept. (Other differences of
    /// its kind do not hide behind it, and a gate that it closed is opened by `gate open`.)
    Acknowledge {
        /// The number that the list says
        finding: i64,
        /// Who you are
        #[arg(long, value_parser = sentence)]
        by: String,
        /// What you have seen to
        #[arg(long, value_parser = sentence)]
        note: String,
    },
}

/// What a person says for the log: 1 to 500 characters that are not all blank.
pub(super) fn sentence(text: &str) -> Result<String, String> {
    let text = text.trim();
    if !is_readable(text) || text.chars().count() > 500 || text.contains('\0') {
        return Err("1 to 500 characters are needed".to_owned());
    }
    Ok(text.to_owned())
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
    /// Why no new payments begin, if they don't; exit with 1 then
    Show {
        #[arg(long)]
        json: bool,
    },
    /// Take back a reason that does not open by itself. Your name is kept
    Open {
        reason: String,
        /// Who you are
        #[arg(long, value_parser = sentence)]
        by: String,
        /// What you have seen to
        #[arg(long, default_value = "seen to", value_parser = sentence)]
        note: String,
    },
    /// Begin no new payments until a person opens the gate again
    Pause {
        /// Who you are
        #[arg(long, value_parser = sentence)]
        by: String,
        /// Why; staff read it
        #[arg(long, alias = "reason", value_parser = sentence)]
        note: String,
    },
}

#[derive(Args)]
pub struct RefundArgs {
    /// The order's code or id
    order: String,
    /// Only these seats, each with its share of fees: by number, or as tickets say it ("Block A Row 3 Seat 12")
    #[arg(long, conflicts_with_all = ["amount", "all"])]
    seats: Vec<String>,
    /// Only an amount, in the order's currency as people write it (33.33); the seats stay
    #[arg(long, conflicts_with = "all", value_name = "AMOUNT")]
    amount: Option<String>,
    /// Whatever is left of it
    #[arg(long)]
    all: bool,
    /// What becomes of the seats
    #[arg(long, value_enum)]
    seats_become: Option<Become>,
    #[arg(long, value_parser = sentence)]
    reason: String,
    #[command(flatten)]
    by: By,
    /// The same key again finds the same refund; without one, a new key is made and printed
    #[arg(long, value_parser = sentence)]
    key: Option<String>,
    /// Give the same back once more, although that was done less than a minute ago
    #[arg(long, conflicts_with = "key")]
    again: bool,
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
    /// For staff
    #[arg(long, value_parser = sentence)]
    reason: String,
    /// For everybody, beside the event
    #[arg(long, value_parser = sentence)]
    public_reason: Option<String>,
    /// Who you are
    #[arg(long, value_parser = sentence)]
    by: String,
    #[arg(long)]
    json: bool,
}

fn print_json(value: &impl serde::Serialize) -> anyhow::Result<()> {
    println!("{}", serde_json::to_string_pretty(value)?);
    Ok(())
}

/// `fullhouse money`. An error if something needs a person.
pub async fn money(config: &Config, pool: &PgPool, args: &MoneyArgs) -> anyhow::Result<()> {
    if let Some(MoneyCommand::Acknowledge { finding, by, note }) = &args.command {
        let done = finding::acknowledge(pool, *finding, by, note).await?;
        ensure!(done, "there is no difference {finding} that is open and not acknowledged");
        println!("{finding} is acknowledged");
        return Ok(());
    }
    let list = list::read(pool).await?;
    if args.json {
        print_json(&list)?;
    } else {
        print!("{}", said(&list)?);
    }
    let people = needs(&list, config.reconcile.account_shared);
    ensure!(people.is_empty(), "a person is needed: {}", people.join(", "));
    Ok(())
}

/// A doubt of this age is looked at by people, not only by workers.
const DOUBT_S: i64 = 24 * 3600;

/// What of the list needs a person. What is on its way, and what was acknowledged, does not.
fn needs(list: &MoneyList, account_shared: bool) -> Vec<&'static str> {
    let open = |f: &Finding| f.acknowledged_by.is_none() && !f.repaired && !(account_shared && f.class == "M7");
    [
        ("the gate is closed", !list.gate.is_empty()),
        ("money without an order", list.money_without_order.iter().any(open)),
        ("orders without money", list.orders_without_money.iter().any(|o| o.why == "given_back_elsewhere")),
        ("orders that are due", !list.payment_due.is_empty()),
        ("payments in doubt for a day", list.doubts.iter().any(|d| d.age_s >= DOUBT_S)),
        ("refunds that failed", list.refunds_failed > 0),
        ("other differences between the books", list.findings.iter().any(open)),
    ]
    .into_iter()
    .filter_map(|(what, is)| is.then_some(what))
    .collect()
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
            "  {} {} for {} s, {}, looked {} times",
            d.order_code,
            d.state,
            d.age_s,
            currency::amount(&d.currency, d.amount_minor),
            d.looks
        )?;
    }
    section(&mut out, "Refunds that have not arrived", list.refunds.len())?;
    for r in &list.refunds {
        let failure = r.failure.as_deref().map(|f| format!(": {f}")).unwrap_or_default();
        let amount = currency::amount(&r.currency, r.amount_minor);
        writeln!(out, "  {} {} {amount} ({}){failure}", r.order_code, r.state, r.refund_id)?;
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
        writeln!(out, "  {} {} {} ({order}): {}{seen}", f.id, f.class, f.subject, f.detail)?;
    }
    Ok(())
}

fn say_orders(out: &mut String, title: &str, orders: &[OwedOrder]) -> std::fmt::Result {
    section(out, title, orders.len())?;
    for o in orders {
        let total = currency::amount(&o.currency, o.total_minor);
        writeln!(out, "  {} {} {total} since {}", o.code, o.why, o.since.format("%F %T"))?;
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
    let shared = config.reconcile.account_shared;
    let open = report.found.iter().filter(|(found, outcome)| needs_a_person(found, *outcome, shared)).count();
    ensure!(open == 0, "a person has to see to {open} of them");
    Ok(())
}

/// What others do with an account that they share is theirs to know.
fn needs_a_person(found: &finding::Found, outcome: reconcile::Outcome, account_shared: bool) -> bool {
    let theirs = account_shared && found.class == finding::Class::M7;
    !theirs && matches!(outcome, reconcile::Outcome::Listed | reconcile::Outcome::RepairFailed)
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
                print_json(&list.gate)?;
            } else if list.gate.is_empty() {
                println!("The gate is open.");
            } else {
                for r in &list.gate {
                    println!("{} since {} by {}: {}", r.reason, r.closed_at.format("%F %T"), r.closed_by, r.detail);
                }
            }
            ensure!(list.gate.is_empty(), "the gate is closed");
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
    let order = sqlx::query!(r#"select id, currency from "order" where code = upper($1) or id::text = $1"#, args.order)
        .fetch_optional(pool)
        .await?
        .with_context(|| format!("there is no order {}", args.order))?;
    let what = match (args.all, args.amount, args.seats) {
        (true, _, _) => What::All,
        (_, Some(text), _) => {
            let amount = currency::minor(&order.currency, &text).filter(|minor| *minor > 0);
            What::Amount(amount.with_context(|| not_an_amount(&order.currency, &text))?)
        }
        (_, _, said) if !said.is_empty() => match find::seats(pool, order.id, &said).await? {
            Ok(seats) => What::Seats(seats),
            Err(said) => bail!("the order has no seat {said:?}"),
        },
        _ => bail!("say what goes back: --all, --seats or --amount"),
    };
    let ask = Ask {
        order_id: order.id,
        key: args.key.clone().unwrap_or_else(|| uuid::Uuid::new_v4().to_string()),
        what,
        seats_become: args.seats_become.map(|b| match b {
            Become::OnSale => SeatsBecome::OnSale,
            Become::House => SeatsBecome::House,
            Become::Dead => SeatsBecome::Dead,
        }),
        reason: args.reason,
        actor: args.by.actor(),
        called_off: false,
    };
    if args.key.is_none()
        && !args.again
        && let Some(key) = refund::just_given_back(pool, &ask).await?
    {
        bail!("the same was given back less than a minute ago (--key {key}); --again gives it back once more");
    }
    let key = ask.key.clone();
    let request_id = match refund::give_back(pool, ask).await {
        Err(RefundError::Apportion(ApportionError::MoreThanIsLeft { left_minor })) => {
            bail!("only {} is left to give back", currency::amount(&order.currency, left_minor))
        }
        Err(RefundError::SeatsNeedFate) => {
            bail!("say what becomes of the seats: --seats-become on-sale, house or dead")
        }
        Err(RefundError::OrderNotPaid(state)) => bail!("{}", not_paid(&state)),
        other => other?,
    };
    let given = refund::given_back(pool, request_id).await?.context("it was just written")?;
    println!("{} go back (--key {key})", currency::amount(&given.currency, given.amount_minor));
    for r in given.refunds {
        println!("  {} {} {} ({})", r.kind, currency::amount(&given.currency, r.amount_minor), r.state, r.id);
    }
    Ok(())
}

fn not_an_amount(currency: &str, text: &str) -> String {
    let digits = match currency::exponent(currency) {
        0 => "no digits".to_owned(),
        n => format!("{n} digits"),
    };
    format!("--amount {text}: an amount above 0 is needed, and {currency} has {digits} behind the point")
}

/// Of an order whose money was never taken, or is back already.
fn not_paid(state: &str) -> String {
    match state {
        "open" => "the order was not paid so far, so nothing can go back (its state is `open`)".to_owned(),
        "payment_due" => "the order's payment failed, so nothing can go back (its state is `payment_due`)".to_owned(),
        state => format!("nothing of the order can go back: its state is `{state}`"),
    }
}

/// `fullhouse event cancel`
pub async fn call_off(pool: &PgPool, args: &CallOffArgs) -> anyhow::Result<()> {
    let event_id = sqlx::query_scalar!("select id from event where slug = $1 or id::text = $1", args.event)
        .fetch_optional(pool)
        .await?
        .with_context(|| format!("there is no event {}", args.event))?;
    let (reason, public_reason, actor) = (args.reason.clone(), args.public_reason.clone(), args.by.clone());
    call_off::begin(pool, event_id, call_off::Why { reason, public_reason, actor }).await?;
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
        "Orders: {}; {} refunded, {} on their way, {} where nothing was paid, {} that wait for their payment or their turn, {} refused\n",
        report.orders.len(),
        count("refunded"),
        count("on_its_way"),
        count("nothing_paid"),
        count("waiting"),
        report.refused_count
    );
    for o in report.orders.iter().filter(|o| o.result == "refused") {
        out.push_str(&format!("  {} {}: {}\n", o.code, currency::amount(&o.currency, o.amount_minor), o.detail));
    }
    if count("waiting") + count("on_its_way") > 0 {
        out.push_str("Hubs that run go on with it; run this again to see how far it is.\n");
    }
    out
}
