//! The demo: opened by one command, and gone without a trace but its data.

use std::{
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use fullhouse::child::{Kept, Spec};
use fullhouse_tests::{HUNG, binary, eventually_within, fan::Fan, run::run};
use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};

/// The first start makes a cluster and imports a stadium; at the end a checkpoint is written.
const OPENED_OR_CLOSED: Duration = HUNG.saturating_mul(12);

struct Demo {
    child: Kept,
    said: PathBuf,
}

impl Demo {
    fn start(data: &Path, more: &[&str]) -> Self {
        let said = data.join("said");
        let child = Spec::new(binary::path())
            .args(["demo", "--listen", "127.0.0.1:0", "--data"])
            .arg(data)
            .args(more)
            .directory(fullhouse_tests::run::workspace())
            .end_signal(Signal::SIGINT)
            .output(std::fs::File::create(&said).unwrap())
            .spawn()
            .unwrap();
        Self { child, said }
    }

    fn said(&self) -> String {
        std::fs::read_to_string(&self.said).unwrap()
    }

    async fn url(&self) -> String {
        eventually_within(OPENED_OR_CLOSED, "the demo says where it is", || async {
            let said = self.said();
            assert!(self.child.ended().is_none(), "the demo does not start: {said}");
            said.split_whitespace().find(|word| word.starts_with("http://")).map(str::to_owned)
        })
        .await
    }
}

/// Processes whose command line names the directory.
fn running(data: &Path) -> usize {
    let name = data.to_str().unwrap();
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    processes.filter(|p| std::fs::read(p.path().join("cmdline")).is_ok_and(|c| contains(&c, name.as_bytes()))).count()
}

fn contains(text: &[u8], part: &[u8]) -> bool {
    text.windows(part.len()).any(|window| window == part)
}

#[tokio::test]
async fn the_demo_opens_closes_and_opens_again_on_the_same_data() {
    let data = run().await.directory("demo");
    let first = Instant::now();
    let demo = Demo::start(&data, &[]);
    let url = demo.url().await;
    let first = first.elapsed();
    let events = Fan::stranger(&url).get("/api/events").await.ok();
    let fan = Fan::sign_in(&url, "fan1@example.com", "sit with me").await;
    let event = events["events"]
        .as_array()
        .unwrap()
        .iter()
        .find(|event| event["sale"] == "on_sale")
        .expect("something is on sale")["id"]
        .as_i64()
        .unwrap();
    let held = fan.best(event, 2).await.ok();
    assert!(running(&data) >= 2, "the demo and its PostgreSQL");
    demo.child.stop().await;
    assert_eq!(running(&data), 0, "Ctrl-C leaves nothing");

    let second = Instant::now();
    let demo = Demo::start(&data, &[]);
    let url = demo.url().await;
    let second = second.elapsed();
    assert!(second < first, "what was made at the first start ({first:?}) is found at the second ({second:?})");
    let again = Fan::sign_in(&url, "fan1@example.com", "sit with me").await;
    assert_eq!(again.my_hold(event).await.ok()["hold"]["id"], held["hold"]["id"]);

    demo.child.signal(Signal::SIGKILL);
    demo.child.stop().await;
    eventually_within(OPENED_OR_CLOSED, "a killed demo leaves nothing", || async {
        (running(&data) == 0).then_some(())
    })
    .await;
    let demo = Demo::start(&data, &[]);
    demo.url().await;
    let server = std::fs::read_to_string(data.join("postgres/postmaster.pid")).unwrap();
    kill(Pid::from_raw(server.lines().next().unwrap().parse().unwrap()), Signal::SIGKILL).unwrap();
    let status =
        eventually_within(OPENED_OR_CLOSED, "a demo without its PostgreSQL ends", || async { demo.child.ended() })
            .await;
    assert_eq!(status.code(), Some(1));
    assert!(demo.said().contains("the demo's PostgreSQL ended by itself"), "{}", demo.said());
}
