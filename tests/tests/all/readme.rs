//! What the README says to type leads from an empty database to a sale. Only the build, the addresses and
//! the folder of the page are not as they stand there.

use std::process::Stdio;

use fullhouse::child::{Kept, Spec};
use fullhouse_tests::{
    HUNG,
    binary::path,
    database::Database,
    eventually,
    fan::Fan,
    provider::CARD,
    run::{run, workspace},
    till::Till,
};
use serde_json::json;

/// The shell's lines of the block of a chapter in which a line stands.
fn block(readme: &str, chapter: &str, line: &str) -> Vec<String> {
    let chapter = readme.split("\n## ").find(|part| part.starts_with(chapter)).expect("the chapter");
    let mut blocks = chapter.split("```sh\n").filter_map(|rest| rest.split("```").next());
    let block = blocks.find(|block| block.lines().any(|own| own == line)).expect("the block");
    block.lines().map(str::to_owned).collect()
}

fn free_port() -> String {
    let port = std::net::TcpListener::bind("127.0.0.1:0").and_then(|l| l.local_addr()).expect("a free port").port();
    port.to_string()
}

/// A line's program in a process that ends with us, in the environment that the lines before it made.
fn keep_running(line: &str, environment: &[(String, String)]) -> Kept {
    let mut words = line.trim_end_matches('&').split_whitespace();
    assert_eq!(words.next(), Some("fullhouse"), "{line}");
    let mut spec = Spec::new(path());
    for word in words {
        spec = spec.arg(word);
    }
    for (name, value) in environment {
        spec = spec.env(name, value);
    }
    spec.spawn().expect("it starts")
}

#[tokio::test]
async fn what_the_readme_says_leads_to_a_sale() {
    let database = Database::new().await;
    // As empty as a new one: the tests' databases are migrated when they are made.
    sqlx::query("drop schema public cascade").execute(database.pool()).await.unwrap();
    sqlx::query("create schema public").execute(database.pool()).await.unwrap();
    let page = run().await.directory("page");
    std::fs::write(page.join("index.html"), "<!doctype html><title>Fullhouse</title>").unwrap();
    let (hub_port, provider_port) = (free_port(), free_port());
    let database_url = database.url().await;
    let here = |line: &str| {
        line.replace("postgres://user:password@host/database", &database_url)
            .replace("assets/fan/dist", page.to_str().unwrap())
            .replace("8080", &hub_port)
            .replace("8090", &provider_port)
    };
    let readme = std::fs::read_to_string(workspace().join("README.md")).unwrap();
    let lines: Vec<String> =
        block(&readme, "Running it on your own PostgreSQL", "fullhouse migrate").iter().map(|l| here(l)).collect();
    let stays = |line: &&String| line.ends_with('&') || line.as_str() == "fullhouse serve";
    let script: Vec<&str> = lines.iter().filter(|l| !stays(l)).map(String::as_str).collect();
    assert!(script.len() >= 9 && lines.iter().filter(stays).count() == 2, "{lines:#?}");

    let folder = path().parent().unwrap().to_owned();
    let search = format!("{}:{}", folder.display(), std::env::var("PATH").unwrap_or_default());
    let typed = tokio::process::Command::new("bash")
        .args(["-euo", "pipefail", "-c", &format!("{}\nenv", script.join("\n"))])
        .current_dir(workspace())
        .env("PATH", search)
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output();
    let typed = tokio::time::timeout(HUNG, typed).await.expect("it ends").expect("bash starts");
    let (out, err) = (String::from_utf8_lossy(&typed.stdout), String::from_utf8_lossy(&typed.stderr));
    assert!(typed.status.success(), "{out}\n{err}");
    let environment: Vec<(String, String)> = out
        .lines()
        .filter(|line| line.starts_with("FULLHOUSE__"))
        .filter_map(|line| line.split_once('=').map(|(name, value)| (name.to_owned(), value.to_owned())))
        .chain([("FULLHOUSE__HTTP__LISTEN".to_owned(), format!("127.0.0.1:{hub_port}"))])
        .collect();
    let kept: Vec<Kept> = lines.iter().filter(stays).map(|line| keep_running(line, &environment)).collect();

    let url = format!("http://127.0.0.1:{hub_port}");
    let client = reqwest::Client::new();
    eventually("the hub is ready", || async {
        client.get(format!("{url}/readyz")).send().await.ok().filter(|r| r.status().is_success())
    })
    .await;
    assert!(client.get(&url).send().await.unwrap().text().await.unwrap().contains("<title>"), "the page is there");
    let fan = Fan::sign_up(&url).await;
    assert_eq!(fan.get("/api/payment/config").await.ok()["cards"], true);
    let event = fan.get("/api/events").await.ok()["events"][0]["id"].as_i64().expect("an event on sale");
    let held = fan.best(event, 2).await.ok();
    let order = fan.checkout(held["hold"]["id"].as_str().unwrap()).await.ok()["order"].clone();
    fan.pay(&order, "one", CARD).await.ok();
    eventually("the order is confirmed", || async {
        let order = fan.order(order["id"].as_str().unwrap()).await.ok()["order"].clone();
        (order["state"] == "confirmed").then_some(())
    })
    .await;

    let token = out.lines().find(|line| line.len() == 43 && !line.contains([' ', '='])).expect("the terminal's token");
    let till = Till::with_token(&url, token);
    let body = json!({ "event_id": event, "best": { "count": 1 } });
    let held = till.post("/api/box-office/holds", body).await.ok();
    till.sell_for_cash(&held, 20_000).await.ok();
    Fan::sign_in(&url, "you@example.org", "a long password").await;
    for child in kept.into_iter().rev() {
        child.stop().await;
    }
    database.finish().await;
}
