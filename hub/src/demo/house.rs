//! What is in the demo: its events, its accounts, its till. Made once, and found again at the next start.

use std::{
    fmt::Write,
    fs,
    os::unix::fs::{OpenOptionsExt, PermissionsExt},
    path::Path,
};

use anyhow::Context;
use chrono::{DateTime, TimeDelta, Utc};
use sqlx::{Connection, PgConnection, PgPool};

use crate::{
    auth::{self, AccountError, Auth, EnrolError, NewAccount},
    catalog::{
        commands::read_plan,
        event::{self, EventSpec, with_days},
        import::{self, VenueSpec},
        stadium,
    },
    config::Config,
    waiting_room::open::{NewLine, open as open_line},
};

/// One of the demo's events.
struct Show {
    venue: Venue,
    /// The plan, and the file beside it.
    plan: fn() -> PlanFiles,
    spec: &'static str,
    /// Its sale opens some minutes after it is put on, behind a waiting room.
    has_line: bool,
}

struct Venue {
    slug: &'static str,
    name: &'static str,
    city: &'static str,
    country: &'static str,
    time_zone: &'static str,
}

/// A plan, and the file beside it.
type PlanFiles = (Vec<u8>, Option<Vec<u8>>);

const SHOWS: &[Show] = &[
    Show {
        venue: Venue {
            slug: "kitahara-circuit",
            name: "Kitahara Circuit",
            city: "Kitahara",
            country: "JP",
            time_zone: "Asia/Tokyo",
        },
        plan: || {
            (
                include_bytes!("../../../assets/plans/race-track.json").to_vec(),
                Some(include_bytes!("../../../assets/plans/race-track.seats.json").to_vec()),
            )
        },
        spec: include_str!("../../../assets/plans/events/race-day.toml"),
        has_line: false,
    },
    Show {
        venue: Venue {
            slug: "aurora-bowl",
            name: "Aurora Bowl",
            city: "Seoul",
            country: "KR",
            time_zone: "Asia/Seoul",
        },
        plan: || {
            let stadium = stadium::generate(STADIUM_SEED);
            (stadium.plan, Some(stadium.beside))
        },
        spec: include_str!("../../../assets/plans/events/stadium-night.toml"),
        has_line: false,
    },
    Show {
        venue: HANGAR,
        plan: airliner,
        spec: include_str!("../../../assets/plans/events/supper-flight.toml"),
        has_line: false,
    },
    Show {
        venue: HANGAR,
        plan: airliner,
        spec: include_str!("../../../assets/plans/events/breakfast-flight.toml"),
        has_line: true,
    },
];

const HANGAR: Venue =
    Venue { slug: "hangar-nord", name: "Hangar Nord", city: "Toulouse", country: "FR", time_zone: "Europe/Paris" };

fn airliner() -> PlanFiles {
    (
        include_bytes!("../../../assets/plans/airliner.json").to_vec(),
        Some(include_bytes!("../../../assets/plans/airliner.seats.json").to_vec()),
    )
}

/// From the demo's start until the sale behind the waiting room opens, and from the draw until then.
const LINE_OPENS_IN: TimeDelta = TimeDelta::seconds(75);
const LINE_DRAWN_BEFORE: TimeDelta = TimeDelta::seconds(20);

/// The same stadium at every start.
const STADIUM_SEED: u64 = 1;

const FANS: u32 = 3;
const FAN_PASSWORD: &str = "sit with me";
const OPERATOR_EMAIL: &str = "operator@example.com";
const OPERATOR_PASSWORD: &str = "open the doors";
const TILL: &str = "Demo till";

/// What people need to know to try it.
pub struct House {
    till_token: String,
    /// Events with a waiting room: slug, and when their sale opens.
    lines: Vec<(String, DateTime<Utc>)>,
}

/// Makes what is missing. `hold_ttl_s` holds for every event, those that were there included.
pub async fn open(pool: &PgPool, config: &Config, data: &Path, hold_ttl_s: i32) -> anyhow::Result<House> {
    let mut db = pool.acquire().await?;
    for show in SHOWS {
        put_on(&mut db, show).await?;
    }
    sqlx::query!("update event set hold_ttl_s = $1", hold_ttl_s).execute(&mut *db).await?;
    let lines = sqlx::query!(
        "select e.slug, e.on_sale_at from line l join event e on e.id = l.event_id where e.off_sale_at > now() order by e.id"
    )
    .fetch_all(&mut *db)
    .await?;
    let lines = lines.into_iter().map(|line| (line.slug, line.on_sale_at)).collect();
    drop(db);
    make_accounts(pool, config).await?;
    Ok(House { till_token: till_token(pool, data).await?, lines })
}

/// Puts an event on unless it is: its plan is read only then, which takes a second for a stadium.
/// One whose sale is over makes room for the next performance, and stays in the books.
async fn put_on(db: &mut PgConnection, show: &Show) -> anyhow::Result<()> {
    let mut spec = EventSpec::read(&with_days(show.spec, Utc::now().date_naive()))?;
    let over = sqlx::query_scalar!(r#"select off_sale_at < now() as "over!" from event where slug = $1"#, spec.slug)
        .fetch_optional(&mut *db)
        .await?;
    match over {
        Some(false) => return Ok(()),
        Some(true) => {
            sqlx::query!("update event set slug = slug || '-' || id where slug = $1", spec.slug)
                .execute(&mut *db)
                .await?;
        }
        None => {}
    }
    let (plan, beside) = (show.plan)();
    let (layout, _) = read_plan(&plan, beside.as_deref())
        .map_err(|faults| anyhow::anyhow!("{} faults, the first: {}", faults.len(), faults[0]))
        .with_context(|| format!("the plan of {}", spec.slug))?;
    layout.name.clone_into(&mut spec.plan);
    let venue = VenueSpec {
        slug: show.venue.slug.to_owned(),
        name: Some(show.venue.name.to_owned()),
        city: Some(show.venue.city.to_owned()),
        country: Some(show.venue.country.to_owned()),
        time_zone: Some(show.venue.time_zone.to_owned()),
        may_change_zone: false,
    };
    let mut tx = db.begin().await?;
    import::import(&mut tx, &venue, &layout.name, &layout).await?;
    let slug = spec.slug.clone();
    let created = event::create(&mut tx, &spec).await.with_context(|| format!("the event {slug}"))?;
    if show.has_line {
        stand_in_line(&mut tx, created.id).await.with_context(|| format!("the waiting room of {slug}"))?;
    }
    Ok(tx.commit().await?)
}

/// The sale opens soon, and can be joined at once.
async fn stand_in_line(db: &mut PgConnection, event_id: i64) -> anyhow::Result<()> {
    let on_sale_at = sqlx::query_scalar!(
        r#"update event e set on_sale_at = t.at, on_sale_local = t.at at time zone e.time_zone
           from (select date_trunc('second', db_clock()) + make_interval(secs => $2) as at) t
           where e.id = $1 returning e.on_sale_at"#,
        event_id,
        LINE_OPENS_IN.num_seconds() as f64
    )
    .fetch_one(&mut *db)
    .await?;
    let new = NewLine {
        joins_at: on_sale_at - LINE_OPENS_IN,
        closes_at: on_sale_at - LINE_DRAWN_BEFORE,
        public: None,
        rate_minute_min: 20,
        rate_minute_max: 120,
        inside_max: 30,
    };
    Ok(open_line(db, event_id, &new, "demo").await?)
}

async fn make_accounts(pool: &PgPool, config: &Config) -> anyhow::Result<()> {
    let auth = Auth::new(pool.clone(), &config.auth);
    for number in 1..=FANS {
        let new = NewAccount { email: fan_email(number), name: format!("Fan {number}"), password: FAN_PASSWORD.into() };
        match auth.sign_up(new, "127.0.0.1").await {
            Ok(_) | Err(AccountError::EmailTaken) => {}
            Err(error) => return Err(error).context("a demo account"),
        }
    }
    sqlx::query!(
        "update account set email_checked_at = db_clock() where email_checked_at is null and email like 'fan_@example.com'"
    )
    .execute(pool)
    .await?;
    let operator =
        NewAccount { email: OPERATOR_EMAIL.into(), name: "Olive Operator".into(), password: OPERATOR_PASSWORD.into() };
    let _ = auth::add_operator(pool, operator, config.auth.password_length_min).await.context("the demo's operator")?;
    Ok(())
}

fn fan_email(number: u32) -> String {
    format!("fan{number}@example.com")
}

/// The till's token. The database keeps only its hash, so the demo keeps it in a file of its own.
async fn till_token(pool: &PgPool, data: &Path) -> anyhow::Result<String> {
    let file = data.join("till-token");
    match auth::enrol(pool, TILL, "counter").await {
        Ok((_, token)) => {
            let mut out = fs::OpenOptions::new().create(true).truncate(true).write(true).mode(0o600).open(&file)?;
            fs::set_permissions(&file, fs::Permissions::from_mode(0o600))?;
            std::io::Write::write_all(&mut out, token.reveal().as_bytes())?;
            Ok(token.reveal().to_owned())
        }
        Err(EnrolError::NameTaken(_)) => {
            fs::read_to_string(&file).with_context(|| format!("the till's token in {}", file.display()))
        }
        Err(error) => Err(error).context("the demo's till"),
    }
}

impl House {
    /// Says where it is and how to get in.
    pub fn print(&self, url: &str, data: &Path, database_url: &str, mail_folder: &str, crowd: u32) {
        let mut text = format!("\n  Fullhouse is open: {url}\n\n");
        let fans: Vec<String> = (1..=FANS).map(fan_email).collect();
        let _ = writeln!(text, "  fans         {}   password: {FAN_PASSWORD}", fans.join(", "));
        let _ = writeln!(
            text,
            "  operator     {OPERATOR_EMAIL}   password: {OPERATOR_PASSWORD}   (lines: {url}/staff; the staff's side of the API)"
        );
        let _ = writeln!(text, "  a till       Authorization: Bearer {}", self.till_token);
        let _ = writeln!(text, "  cards        the form offers them: approved, declined, with a challenge, slow, lost");
        if crowd > 0 {
            let _ = writeln!(text, "  company      {crowd} synthetic fans are on their way");
        }
        if !mail_folder.is_empty() {
            let _ = writeln!(text, "  mail         {mail_folder} (a file each; your mail program opens them)");
        }
        for (slug, opens_at) in &self.lines {
            let opens = if *opens_at > Utc::now() {
                format!("its sale opens at {}", opens_at.with_timezone(&chrono::Local).format("%H:%M:%S"))
            } else {
                "its line is being called".to_owned()
            };
            let _ = writeln!(
                text,
                "  waiting room {url}/events/{slug} ({opens}; the page gives you the link that checks an address)"
            );
        }
        let _ = writeln!(text, "  data         {}", data.display());
        let program = std::env::current_exe().map_or("fullhouse".to_owned(), |file| file.display().to_string());
        let _ = writeln!(text, "  commands     FULLHOUSE__DATABASE__URL='{database_url}' {program} --help");
        let _ = writeln!(text, "\n  Ctrl-C closes it.\n");
        print!("{text}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_demos_events_can_be_read_and_their_plans_laid_out() {
        for show in SHOWS {
            let spec = EventSpec::read(&with_days(show.spec, Utc::now().date_naive())).unwrap();
            assert_eq!(spec.venue, show.venue.slug);
            let (plan, beside) = (show.plan)();
            let (layout, _) =
                read_plan(&plan, beside.as_deref()).unwrap_or_else(|faults| panic!("{}: {faults:?}", spec.slug));
            assert_eq!(layout.name, spec.plan);
        }
    }
}
