//! What about a line could go on for ever, and where it ends.

use chrono::TimeDelta;
use fullhouse::{admission::calling, waiting_room::bounds::DRAWS_MAX};
use fullhouse_tests::{
    fan::{Answer, Fan},
    line::{Line, enter, join, mine},
};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

async fn operator(line: &Line) -> Fan {
    let operator = line.people(1).await.remove(0);
    line.run(&format!("update account set role = 'operator' where email = '{}'", operator.email)).await;
    operator
}

async fn change(operator: &Fan, line: &Line, body: Value) -> Answer {
    let path = format!("/api/staff/events/{}/queue", line.event);
    operator.send(operator.request(Method::PATCH, &path).json(&body)).await
}

/// The control is the rule that gives all of the grace back with each pause: paused often enough, its calls never end.
#[tokio::test]
async fn however_often_a_line_is_paused_the_grace_runs_twice_at_most() {
    let line = Line::open().await;
    let fan = line.joined(1).await.remove(0);
    let operator = operator(&line).await;
    line.clock.freeze_at(line.clock.now().await).await;
    line.opens().await;
    line.run("create table naive_call as select at, grace_from from line_call").await;
    let mut unpaused_s = 0;
    while mine(&fan, line.event).await.ok()["state"] == "called" {
        assert!(unpaused_s <= 2 * 600, "still called after {unpaused_s} s");
        line.clock.advance(TimeDelta::seconds(200)).await;
        unpaused_s += 200;
        let lapsed = mine(&fan, line.event).await.ok()["state"] == "lapsed";
        change(&operator, &line, json!({ "reason": "a fault", "paused": true })).await.ok();
        if !lapsed {
            assert_eq!(enter(&fan, line.event).await.code(), "line_paused");
        }
        line.run(
            "update naive_call set grace_from = db_clock() + interval '900 s'
             where coalesce(grace_from, at) + interval '600 s' >= db_clock()",
        )
        .await;
        line.clock.advance(TimeDelta::seconds(900)).await;
        change(&operator, &line, json!({ "reason": "mended", "paused": false })).await.ok();
        let state = mine(&fan, line.event).await.ok()["state"].clone();
        assert_eq!(state == "lapsed", lapsed, "a pause ends nobody's grace and gives none back that was over");
    }
    assert!(unpaused_s > 600, "the first pause gave all of it back: {unpaused_s} s");
    let naive = line.count("select count(*) from naive_call where grace_from + interval '600 s' > db_clock()").await;
    assert_eq!(naive, 1, "the control is good for as long again");
    assert_eq!(enter(&fan, line.event).await.code(), "entry_lapsed");
    line.close().await;
}

/// Whoever may draw for ever can wait for places that please them.
#[tokio::test]
async fn a_line_is_drawn_anew_so_often_and_no_more() {
    let line = Line::open().await;
    line.joined(3).await;
    let operator = operator(&line).await;
    for _ in 1..DRAWS_MAX {
        change(&operator, &line, json!({ "reason": "again", "redraw": {} })).await.ok();
    }
    let refused = change(&operator, &line, json!({ "reason": "once more", "redraw": {} })).await;
    assert_eq!((refused.code(), refused.status), ("draws_too_many", StatusCode::CONFLICT));
    assert_eq!(refused.body["limit"], DRAWS_MAX);
    let draws = operator.get(&format!("/api/events/{}/queue/draws", line.event)).await.ok();
    assert_eq!(draws["draws"].as_array().unwrap().len(), DRAWS_MAX as usize, "each of them stays public");
    assert_eq!(line.opens().await, 3, "the last one counts");
    line.close().await;
}

/// Somebody has lost entries: that is no moment's matter, and no reader is told to come back for it.
#[tokio::test]
async fn a_draw_whose_entries_are_missing_says_so_until_they_are_back() {
    let line = Line::open().await;
    line.joined(5).await;
    line.run("alter table line_entry disable trigger line_entry_is_final").await;
    line.run("create table kept as select * from line_entry where number = 3").await;
    line.run("delete from line_entry where number = 3").await;
    line.clock.advance(TimeDelta::hours(1)).await;
    let parts = line.hub.parts();
    let looked = calling::look(&parts.config.admission, &parts.pool, &parts.room, line.event).await;
    let said = looked.unwrap_err().to_string();
    assert!(said.contains("5 entries, and 4 are there"), "{said}");
    let public = Fan::stranger(&line.hub.url());
    for path in ["draws/1/leaves", "proof/0"] {
        let answer = public.get(&format!("/api/events/{}/queue/{path}", line.event)).await;
        assert_eq!((answer.code(), answer.status), ("draw_incomplete", StatusCode::INTERNAL_SERVER_ERROR), "{path}");
        assert_eq!((&answer.body["entries"], &answer.body["found"]), (&json!(5), &json!(4)));
        assert!(!answer.headers.contains_key("retry-after"), "asking again is no use");
    }
    assert_eq!(join(&line.people(1).await[0], line.event).await.status, StatusCode::CREATED, "the line goes on");
    line.run("insert into line_entry select * from kept").await;
    line.run("alter table line_entry enable trigger line_entry_is_final").await;
    assert_eq!(line.look().await, 6);
    assert_eq!(public.get(&format!("/api/events/{}/queue/proof/3", line.event)).await.status, StatusCode::OK);
    line.close().await;
}
