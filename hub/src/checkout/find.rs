//! Looking an order up by whatever somebody at the counter has: the order's code or id, a ticket's code, a
//! name, an address, a seat, the last four digits of the card, an id of the payment provider's.
//!
//! What is not stored can't be found: of a card there are its last four digits, and nothing else.

use fullhouse_protocol::staff::OrderFound;
use sqlx::PgPool;
use uuid::Uuid;

use crate::words::Language;

/// As many as a person reads; the latest come first.
const FOUND_MAX: i64 = 50;
/// Words of a name or a seat that are looked at.
const WORDS_MAX: usize = 6;

/// Orders that the text may mean. Given an event, only its orders.
///
/// Each way to mean one is a question of its own, which an index answers: asked all at once of each order, they are asked
/// of every order that there is. Only names are read one after the other, those of people and not of orders.
pub async fn orders(pool: &PgPool, text: &str, event_id: Option<i64>) -> sqlx::Result<Vec<OrderFound>> {
    let text = text.trim();
    let words: Vec<String> = text.split_whitespace().take(WORDS_MAX).map(|w| format!("%{}%", escaped(w))).collect();
    if words.is_empty() {
        return Ok(Vec::new());
    }
    // A seat by its whole name: "Stalls 3 1" is neither row 31 nor place 11. As it stands in the plan, or as it is said.
    let seat = [plain(text), bare(text)];
    let meant = sqlx::query_scalar!(
        r#"select meant.id as "id!" from (
               select id from "order" where code = upper($1) or id = $2
               union select order_id from ticket where code = $1 or id = $2
               union select order_id from attempt where card_last4 = $1 or pi_id = $1 or id = $2
               union select a.order_id from provider_intent i join attempt a on a.pi_id = i.pi_id where i.charge_id = $1
               union select a.order_id from refund r join attempt a on a.id = r.attempt_id where r.provider_id = $1 or r.id = $2
               union select o.id from account a join buyer b on b.account_id = a.id join "order" o on o.buyer_id = b.id
                     where a.email = lower($1) or a.name ilike all ($3)
               union select o.id from partner r join buyer b on b.partner_id = r.id join "order" o on o.buyer_id = b.id
                     where r.code = upper($1) or r.name ilike all ($3)
               union select l.order_id from plan_seat p join event e on e.plan_revision_id = p.plan_revision_id
                     join order_line l on l.event_id = e.id and l.seat_no = p.seat_no and l.state <> 'exchanged'
                     where lower(p.section || ' ' || p.row_label || ' ' || p.seat_label) = any ($5)) as meant
           -- Each by its id, however many the planner expects.
           cross join lateral (select event_id, created_at from "order" where id = meant.id offset 0) as o
           where $4::bigint is null or o.event_id = $4
           order by o.created_at desc limit $6"#,
        text,
        Uuid::parse_str(text).ok(),
        &words,
        event_id,
        &seat[..],
        FOUND_MAX
    )
    .fetch_all(pool)
    .await?;
    shown(pool, &meant).await
}

/// One order, as it is found.
pub async fn order(pool: &PgPool, id: Uuid) -> sqlx::Result<Option<OrderFound>> {
    Ok(shown(pool, &[id]).await?.pop())
}

/// The latest first.
async fn shown(pool: &PgPool, ids: &[Uuid]) -> sqlx::Result<Vec<OrderFound>> {
    sqlx::query_as!(
        OrderFound,
        r#"select o.id as order_id, o.code, o.event_id, e.name as event_name, o.state, o.total_minor, o.currency, o.channel,
                  coalesce(a.name, r.name) as "buyer_name?", a.email as "buyer_email?", o.created_at,
                  array(select distinct l.seat_no from order_line l where l.order_id = o.id and l.state = 'sold' and l.seat_no is not null order by 1) as "seats!: Vec<i32>"
           from "order" o join event e on e.id = o.event_id join buyer b on b.id = o.buyer_id left join account a on a.id = b.account_id
           left join partner r on r.id = b.partner_id
           where o.id = any($1) order by o.created_at desc"#,
        ids
    )
    .fetch_all(pool)
    .await
}

/// Seats of an order, each said by its number in the plan or as its ticket or the map says it ("Block A 3 12", "Block A
/// Row 3 Seat 12", "Block A, row 3, seat 12", in any of our languages); several with commas between. The error is what could not be understood.
pub async fn seats(pool: &PgPool, order_id: Uuid, said: &[String]) -> sqlx::Result<Result<Vec<i32>, String>> {
    let known = sqlx::query!(
        r#"select p.seat_no, p.section, p.row_label, p.seat_label
           from order_line l join event e on e.id = l.event_id
           join plan_seat p on p.plan_revision_id = e.plan_revision_id and p.seat_no = l.seat_no
           where l.order_id = $1 and l.state <> 'exchanged'"#,
        order_id
    )
    .fetch_all(pool)
    .await?;
    let names: Vec<(i32, Vec<String>)> =
        known.into_iter().map(|k| (k.seat_no, names_of(&k.section, &k.row_label, &k.seat_label))).collect();
    let find = |text: &str| -> Option<i32> {
        let text = plain(text);
        let named = names.iter().find(|(_, names)| names.contains(&text)).map(|(seat_no, _)| *seat_no);
        named.or_else(|| text.parse().ok())
    };
    let mut found = Vec::new();
    for text in said {
        match find(text) {
            Some(seat_no) => found.push(seat_no),
            None => {
                for part in text.split(',') {
                    let Some(seat_no) = find(part) else { return Ok(Err(part.trim().to_owned())) };
                    found.push(seat_no);
                }
            }
        }
    }
    found.sort_unstable();
    found.dedup();
    Ok(Ok(found))
}

/// However a seat may be said.
fn names_of(section: &str, row: &str, number: &str) -> Vec<String> {
    let mut names = vec![plain(&format!("{section} {row} {number}"))];
    for language in Language::ALL {
        let [section_word, row_word] = ["ticket.section", "ticket.row"].map(|w| language.say(w));
        let row = if row.trim().is_empty() { String::new() } else { format!("{row_word} {row}") };
        for seat_word in ["ticket.seat", "ticket.place"].map(|w| language.say(w)) {
            names.push(plain(&format!("{section} {row} {seat_word} {number}")));
            names.push(plain(&format!("{section_word} {section} {row} {seat_word} {number}")));
        }
    }
    // As the map says it in Japanese and Korean; in English it says what tickets say, with commas.
    names.push(plain(&format!("{section} {row}列 {number}番")));
    names.push(plain(&format!("{section} {row}열 {number}번")));
    names
}

fn plain(text: &str) -> String {
    text.split(|c: char| c.is_whitespace() || c == '·' || c == ',')
        .filter(|w| !w.is_empty())
        .collect::<Vec<_>>()
        .join(" ")
        .to_lowercase()
}

/// A seat without the words around its numbers, as tickets, the map and people say them ("main, row 6, seat 6b").
fn bare(text: &str) -> String {
    let words: Vec<String> = Language::ALL
        .into_iter()
        .flat_map(|language| {
            ["ticket.section", "ticket.row", "ticket.seat", "ticket.place"].map(|word| plain(language.say(word)))
        })
        .flat_map(|said| said.split(' ').map(str::to_owned).collect::<Vec<_>>())
        .collect();
    let said = plain(text);
    let bare = said.split(' ').filter(|word| !words.iter().any(|w| w == word));
    bare.map(|word| word.trim_end_matches(['列', '番', '열', '번'])).collect::<Vec<_>>().join(" ")
}

/// A pattern's own signs are letters here.
fn escaped(word: &str) -> String {
    word.replace('\\', "\\\\").replace('%', "\\%").replace('_', "\\_")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seat_is_said_as_its_ticket_says_it() {
        let names = names_of("Block A", "3", "12");
        for text in [
            "Block A, row 3, seat 12",
            "Block A 3列 12番",
            "Block A 3열 12번",
            "Block A 3 12",
            "block a  row 3 seat 12",
            "Section Block A Row 3 Seat 12",
        ] {
            assert!(names.contains(&plain(text)), "{text}: {names:?}");
        }
        for text in ["Block A, row 3, seat 12", "Block A 3列 12番", "구역 Block A 열 3 좌석 12", "block a 3 12"]
        {
            assert_eq!(bare(text), "block a 3 12", "{text}");
        }
        assert!(!names.contains(&plain("Block A 31 2")));
        assert!(names_of("Floor", " ", "7").contains(&plain("Floor Seat 7")), "where people stand");
    }
}
