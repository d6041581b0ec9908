//! What the attempts went through that something is said of: for whoever reads why a soak failed.

use std::collections::BTreeSet;

use uuid::Uuid;

use crate::database::Database;

/// More would not be read.
const STORIES_MAX: usize = 6;

/// A line an attempt, with a line for each of its calls.
pub async fn stories(database: &Database, said: &[String]) -> Vec<String> {
    let named: BTreeSet<Uuid> = said.iter().flat_map(|what| ids(what)).collect();
    let mut stories = Vec::new();
    for id in named {
        let told: Vec<String> = sqlx::query_scalar(
            "select line from (
                 select 0 as n, format('%s %s version %s tries %s pokes %s lease %s next %s reader %s %s outcome %s: %s', id, state, version, tries,
                     pokes, leased_until, next_run_at, reader_id, pi_id, outcome, updated_at) as line
                 from attempt where id = $1
                 union all
                 select id, format('  %s %s %s sends %s http %s replayed %s sent %s: %s', op, idem_key, state, sends, http, replayed, sent_at,
                     coalesce(answer #>> '{error,code}', answer ->> 'status'))
                 from provider_call where attempt_id = $1
             ) as told order by n",
        )
        .bind(id)
        .fetch_all(database.pool())
        .await
        .expect("the test's database answers");
        if !told.is_empty() && stories.len() < STORIES_MAX {
            stories.push(told.join("\n"));
        }
    }
    stories
}

fn ids(text: &str) -> impl Iterator<Item = Uuid> {
    text.split(|c: char| !c.is_ascii_hexdigit() && c != '-').filter_map(|word| word.parse().ok())
}
