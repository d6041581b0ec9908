//! Crowds in processes of their own, since a process may have only so many files open.
//!
//! Orders go in as lines of JSON, answers come out; a crowd whose orders end ends.

use std::{
    io::Read,
    os::fd::AsFd,
    process::Stdio,
    time::{Duration, Instant},
};

use anyhow::{Context, bail};
use fullhouse_tests::viewers::{Crowd, Plan, Tally};
use serde::{Deserialize, Serialize};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines},
    process::{Child, ChildStdin, ChildStdout, Command},
};

#[derive(Debug, Serialize, Deserialize)]
enum Order {
    /// A new crowd of so many; answered when it is there. `clock` is of the frames, a second.
    Come {
        plan: Plan,
        viewers: usize,
        clock: u64,
        seed: u64,
        within_ms: u64,
    },
    /// Answered when everybody has this frame.
    Expect {
        frame: u64,
        within_ms: u64,
    },
    /// Answered when everybody has an open socket again.
    Gather {
        within_ms: u64,
    },
    /// Answered with what was seen since.
    Report,
    Leave,
}

#[derive(Debug, Serialize, Deserialize)]
struct Answer {
    /// Who has no socket, or not the frame.
    lacking: usize,
    open: usize,
    tally: Tally,
}

/// The process of a crowd.
pub fn run() -> anyhow::Result<()> {
    let mut crowd: Option<Crowd> = None;
    let mut pending: Option<(Order, Instant)> = None;
    let mut input: Vec<u8> = Vec::new();
    let stdin = std::io::stdin();
    loop {
        let readable = match crowd.as_mut() {
            Some(crowd) => crowd.turn(Duration::from_millis(20))?,
            None => true,
        };
        if readable && pending.is_none() {
            let mut bytes = [0; 4096];
            let count = stdin.lock().read(&mut bytes)?;
            if count == 0 {
                return Ok(());
            }
            input.extend_from_slice(&bytes[..count]);
        }
        if pending.is_none()
            && let Some(end) = input.iter().position(|byte| *byte == b'\n')
        {
            let order: Order = serde_json::from_slice(&input.drain(..=end).collect::<Vec<u8>>())?;
            let mut within = 0;
            match &order {
                Order::Come { plan, viewers, clock, seed, within_ms } => {
                    let mut new = Crowd::new(plan.clone(), *clock, *seed)?;
                    new.watch(stdin.as_fd())?;
                    new.grow(*viewers);
                    crowd = Some(new);
                    within = *within_ms;
                }
                Order::Expect { frame, within_ms } => {
                    crowd.as_mut().context("nobody has come")?.expect(*frame);
                    within = *within_ms;
                }
                Order::Gather { within_ms } => within = *within_ms,
                Order::Report => {}
                Order::Leave => crowd.as_mut().context("nobody has come")?.leave(),
            }
            pending = Some((order, Instant::now() + Duration::from_millis(within)));
        }
        let Some(crowd) = crowd.as_mut() else { continue };
        let Some((order, until)) = &pending else { continue };
        let lacking = match order {
            Order::Come { .. } | Order::Gather { .. } => crowd.wanted() - crowd.open(),
            Order::Expect { .. } => crowd.lacking(),
            Order::Report | Order::Leave => 0,
        };
        if lacking == 0 || Instant::now() >= *until {
            let tally =
                if matches!(order, Order::Report) { std::mem::take(&mut crowd.tally) } else { Tally::default() };
            let answer = Answer { lacking, open: crowd.open(), tally };
            println!("{}", serde_json::to_string(&answer)?);
            pending = None;
        }
    }
}

/// One of them, from outside.
struct Process {
    child: Child,
    orders: ChildStdin,
    answers: Lines<BufReader<ChildStdout>>,
}

impl Process {
    fn start() -> anyhow::Result<Self> {
        let mut child = Command::new(std::env::current_exe()?)
            .arg("crowd")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .context("a crowd")?;
        let orders = child.stdin.take().context("a crowd's input")?;
        let answers = BufReader::new(child.stdout.take().context("a crowd's output")?).lines();
        Ok(Self { child, orders, answers })
    }

    async fn order(&mut self, order: &Order) -> anyhow::Result<()> {
        let line = serde_json::to_string(order)? + "\n";
        self.orders.write_all(line.as_bytes()).await.context("a crowd has ended")
    }

    async fn answer(&mut self) -> anyhow::Result<Answer> {
        let line = self.answers.next_line().await?.context("a crowd has ended")?;
        Ok(serde_json::from_str(&line)?)
    }
}

/// All viewers of a run.
#[derive(Default)]
pub struct Crowds(Vec<Process>);

impl Crowds {
    /// So many at each of these plans, at once; returns when all are there.
    pub async fn come(&mut self, plans: &[(Plan, usize)], clock: u64, within: Duration) -> anyhow::Result<()> {
        self.come_from(plans, clock, within, 1).await
    }

    /// The same from other addresses than those of another crowd: each takes a net, from `net` on.
    pub async fn come_from(
        &mut self,
        plans: &[(Plan, usize)],
        clock: u64,
        within: Duration,
        net: u8,
    ) -> anyhow::Result<()> {
        while self.0.len() < plans.len() {
            self.0.push(Process::start()?);
        }
        for (number, (process, (plan, viewers))) in self.0.iter_mut().zip(plans).enumerate() {
            let plan = Plan { net: net + number as u8, ..plan.clone() };
            let within_ms = within.as_millis() as u64;
            process.order(&Order::Come { plan, viewers: *viewers, clock, seed: number as u64, within_ms }).await?;
        }
        let answer = self.answers().await?;
        if answer.lacking > 0 {
            let report = self.report().await?;
            bail!("{} of {} viewers did not come: {report:?}", answer.lacking, answer.lacking + answer.open);
        }
        Ok(())
    }

    /// Waits until everybody has a frame. Returns how many don't.
    pub async fn expect(&mut self, frame: u64, within: Duration) -> anyhow::Result<usize> {
        self.ask(&Order::Expect { frame, within_ms: within.as_millis() as u64 }).await.map(|answer| answer.lacking)
    }

    /// Waits until everybody has a socket. Returns how many don't.
    pub async fn gather(&mut self, within: Duration) -> anyhow::Result<usize> {
        self.ask(&Order::Gather { within_ms: within.as_millis() as u64 }).await.map(|answer| answer.lacking)
    }

    pub async fn report(&mut self) -> anyhow::Result<Tally> {
        self.ask(&Order::Report).await.map(|answer| answer.tally)
    }

    pub async fn leave(&mut self) -> anyhow::Result<()> {
        self.ask(&Order::Leave).await.map(|_| ())
    }

    pub fn pids(&self) -> Vec<u32> {
        self.0.iter().filter_map(|process| process.child.id()).collect()
    }

    async fn ask(&mut self, order: &Order) -> anyhow::Result<Answer> {
        for process in &mut self.0 {
            process.order(order).await?;
        }
        self.answers().await
    }

    async fn answers(&mut self) -> anyhow::Result<Answer> {
        let mut all = Answer { lacking: 0, open: 0, tally: Tally::default() };
        for process in &mut self.0 {
            let answer = process.answer().await?;
            all.lacking += answer.lacking;
            all.open += answer.open;
            all.tally.merge(&answer.tally);
        }
        Ok(all)
    }
}
