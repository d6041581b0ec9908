//! Three ways to hold four seats, and the servers that they stand on.

use std::{
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
    time::Duration,
};

use anyhow::Context;
use fullhouse::{
    child::{Kept, Spec},
    config::{Config, Secret},
    db,
    embedded_postgres::{EmbeddedPostgres, Options},
    hold::{ByRole, Key, Refusal, Request, Rules, Take, Way, Wish, desk::Desks},
    seat_map::{Boards, SeatSet},
};
use fullhouse_tests::{rows::buyers, run::server_program};
use sqlx::PgPool;
use uuid::Uuid;

use super::{Ask, CLIENTS};

pub enum Outcome {
    Granted { held_until_ms: i64 },
    Refused,
}

pub enum Backend {
    Ours { desks: Desks, event: i64, buyers: Vec<Uuid> },
    Naive { pool: PgPool, event: i64, buyers: Vec<Uuid> },
    Redis { connection: redis::aio::MultiplexedConnection, script: redis::Script, now_ms: Arc<AtomicI64> },
}

const HOLD_TTL_MS: i64 = 480_000;

/// One transaction a request, in one round trip: what a careful programmer writes without a desk.
/// Seats are locked in order, so that two requests can't deadlock; the rest is what ours writes.
const NAIVE: &str = r#"
create or replace function naive_hold(the_event bigint, the_buyer uuid, the_key text, hash bytea, wanted int[])
returns timestamptz language plpgsql as $$
declare
    t timestamptz; rules record; mine record; touched int[]; free int; bought int; until timestamptz; h uuid;
    nos int[]; states smallint[]; vers int[]; untils timestamptz[];
begin
    if exists (select from hold_request r where r.buyer_id = the_buyer and r.key = the_key) then
        return (select h2.held_until from hold_request r join hold h2 on h2.id = r.hold_id where r.buyer_id = the_buyer and r.key = the_key);
    end if;
    select * into rules from event where id = the_event;
    select * into mine from hold where event_id = the_event and buyer_id = the_buyer and state = 'live' for update;
    touched := wanted || coalesce(mine.seat_nos, '{}');
    perform from event_seat where event_id = the_event and seat_no = any(touched) order by seat_no for update;
    t := db_clock();
    select count(*) into free from event_seat where event_id = the_event and seat_no = any(wanted)
        and (status = 0 or (status = 1 and (held_until <= t or hold_id = mine.id)));
    if free < cardinality(wanted) then return null; end if;
    select count(*) into bought from "order" o join order_line l on l.order_id = o.id
        where o.event_id = the_event and o.buyer_id = the_buyer and l.state = 'sold' and l.seat_no is not null;
    if bought + cardinality(wanted) > rules.seat_limit then return null; end if;
    if mine.id is null then
        h := gen_random_uuid(); until := t + make_interval(secs => rules.hold_ttl_s);
        insert into hold (id, event_id, buyer_id, seat_nos, held_until, seats_taken, created_at)
            values (h, the_event, the_buyer, wanted, until, cardinality(wanted), t);
    else
        h := mine.id; until := mine.held_until;
        update hold set seat_nos = wanted, version = version + 1, seats_taken = seats_taken + cardinality(wanted) where id = h;
    end if;
    with changed as (
        update event_seat s set version = s.version + 1,
            status = case when s.seat_no = any(wanted) then 1 else 0 end,
            hold_id = case when s.seat_no = any(wanted) then h end,
            held_until = case when s.seat_no = any(wanted) then until end
        where s.event_id = the_event and s.seat_no = any(touched)
        returning s.seat_no, s.status, s.version, s.held_until)
    select array_agg(c.seat_no), array_agg(c.status), array_agg(c.version), array_agg(c.held_until) into nos, states, vers, untils from changed c;
    insert into hold_request (buyer_id, key, body_hash, hold_id, answer, created_at)
        values (the_buyer, the_key, hash, h, jsonb_build_object('hold', jsonb_build_object('id', h, 'seats', wanted, 'held_until', until), 'now', t), t);
    insert into outbox (event_id, seat_nos, statuses, versions, held_until, created_at) values (the_event, nos, states, vers, untils, t);
    return until;
end $$"#;

/// Five keys: the client's hold and four seats. The last hold goes back first.
const LUA: &str = r#"
local last = redis.call('GET', KEYS[1])
for i = 2, 5 do
    local owner = redis.call('GET', KEYS[i])
    if owner and owner ~= ARGV[1] then return 0 end
end
if last then
    for seat in string.gmatch(last, '%d+') do redis.call('DEL', 's:' .. seat) end
end
for i = 2, 5 do redis.call('SET', KEYS[i], ARGV[1], 'PX', ARGV[2]) end
redis.call('SET', KEYS[1], ARGV[3], 'PX', ARGV[2])
return 1"#;

impl Backend {
    pub async fn ours(pool: &PgPool, event: i64) -> anyhow::Result<Self> {
        let desks = Desks::new(&Config::defaults(), pool.clone(), Boards::default());
        Ok(Self::Ours { desks, event, buyers: buyers(pool, CLIENTS as i32).await })
    }

    pub async fn naive(pool: &PgPool, event: i64) -> anyhow::Result<Self> {
        sqlx::query(NAIVE).execute(pool).await?;
        Ok(Self::Naive { pool: pool.clone(), event, buyers: buyers(pool, CLIENTS as i32).await })
    }

    pub async fn redis(redis: &Redis) -> anyhow::Result<Self> {
        let connection = redis.connect().await?;
        Ok(Self::Redis { connection, script: redis::Script::new(LUA), now_ms: Arc::new(AtomicI64::new(0)) })
    }

    pub async fn hold(&self, ask: &Ask) -> Outcome {
        match self {
            Self::Ours { desks, event, buyers } => {
                let mut body_hash = [0; 32];
                body_hash[..4].copy_from_slice(&ask.seats[0].to_le_bytes());
                let take = Take {
                    buyer_id: buyers[ask.client],
                    wish: Wish::Seats(SeatSet::new(ask.seats.clone(), 6).expect("four different seats")),
                    fewer_ok: false,
                    replace: true,
                    rules: Rules::Fan,
                    way: Way::ByRole(ByRole::default()),
                    key: Key { name: ask.key.clone(), body_hash },
                };
                match desks.ask(*event, Request::Take(take)).await {
                    Ok(granted) => {
                        let hold = granted.hold.expect("seats were granted");
                        Outcome::Granted { held_until_ms: hold.held_until.timestamp_millis() }
                    }
                    Err(Refusal::SeatsUnavailable { .. }) => Outcome::Refused,
                    Err(other) => panic!("the desk refused: {other}"),
                }
            }
            Self::Naive { pool, event, buyers } => {
                let until: Option<chrono::DateTime<chrono::Utc>> =
                    sqlx::query_scalar("select naive_hold($1, $2, $3, $4, $5)")
                        .bind(event)
                        .bind(buyers[ask.client])
                        .bind(&ask.key)
                        .bind(&ask.seats[0].to_le_bytes()[..])
                        .bind(&ask.seats)
                        .fetch_one(pool)
                        .await
                        .expect("the function answers");
                match until {
                    Some(until) => Outcome::Granted { held_until_ms: until.timestamp_millis() },
                    None => Outcome::Refused,
                }
            }
            Self::Redis { connection, script, now_ms } => {
                let mut call = script.prepare_invoke();
                call.key(format!("h:{}", ask.client));
                for seat in &ask.seats {
                    call.key(format!("s:{seat}"));
                }
                let seats = ask.seats.iter().map(i32::to_string).collect::<Vec<_>>().join(",");
                call.arg(ask.client + 1).arg(HOLD_TTL_MS).arg(seats);
                let granted: i32 = call.invoke_async(&mut connection.clone()).await.expect("redis answers");
                let held_until_ms = now_ms.load(Ordering::Relaxed) + HOLD_TTL_MS;
                if granted == 1 { Outcome::Granted { held_until_ms } } else { Outcome::Refused }
            }
        }
    }

    /// An empty hall before each run.
    pub async fn clear(&self, pool: &PgPool, event: i64) -> anyhow::Result<()> {
        match self {
            Self::Redis { connection, now_ms, .. } => {
                now_ms.store(chrono::Utc::now().timestamp_millis(), Ordering::Relaxed);
                let _: () = redis::cmd("FLUSHALL").query_async(&mut connection.clone()).await?;
            }
            Self::Ours { .. } | Self::Naive { .. } => {
                // The cascade comes by what is only written to (a till's journal), and is empty here.
                sqlx::raw_sql(
                    "set session_replication_role = replica;
                     truncate hold, hold_request, outbox cascade;
                     reset session_replication_role",
                )
                .execute(pool)
                .await?;
                sqlx::query("delete from event_seat where event_id = $1 and status <> 0")
                    .bind(event)
                    .execute(pool)
                    .await?;
                sqlx::query(
                    "insert into event_seat (event_id, seat_no, level) select $1, n, 0 from generate_series(0, $2 - 1) as n on conflict do nothing",
                )
                .bind(event)
                .bind(super::SEATS)
                .execute(pool)
                .await?;
                sqlx::query("vacuum (freeze, analyze) event_seat").execute(pool).await?;
                sqlx::query("checkpoint").execute(pool).await?;
            }
        }
        Ok(())
    }

    pub fn requests_a_batch(&self) -> f64 {
        let Self::Ours { desks, .. } = self else { return 0.0 };
        let counts = desks.counts();
        counts.requests.load(Ordering::Relaxed) as f64 / counts.batches.load(Ordering::Relaxed).max(1) as f64
    }
}

pub async fn postgres(directory: &Path) -> anyhow::Result<EmbeddedPostgres> {
    let options = Options { data: directory.join("cluster"), durable: true, connections_max: 300 };
    let postgres = EmbeddedPostgres::start(options).await?;
    postgres.ensure_database("bench").await?;
    Ok(postgres)
}

/// One pool for both ways: as many connections as there are clients, so that neither waits for one.
pub async fn pool(postgres: &EmbeddedPostgres) -> anyhow::Result<PgPool> {
    let mut settings = Config::defaults().database;
    settings.url = Secret::new(postgres.url("bench"));
    settings.connections_max = CLIENTS as u32 + 8;
    settings.acquire_timeout_ms = 60_000;
    let pool = db::connect(&settings).await?;
    db::migrate(&pool).await?;
    // All connections are there before anything is timed.
    let mut open = Vec::new();
    for _ in 0..settings.connections_max {
        open.push(pool.acquire().await?);
    }
    Ok(pool)
}

/// A redis-server of our own that syncs each write to disk.
pub struct Redis {
    socket: std::path::PathBuf,
    _child: Kept,
}

impl Redis {
    pub async fn start(directory: &Path) -> anyhow::Result<Self> {
        let socket = directory.join("redis.sock");
        let child = Spec::new(server_program("redis-server"))
            .args(["--port", "0", "--unixsocket"])
            .arg(&socket)
            .args(["--appendonly", "yes", "--appendfsync", "always", "--save", "", "--daemonize", "no", "--dir"])
            .arg(directory)
            .spawn()
            .context("redis-server starts (Debian package: redis-server)")?;
        let redis = Self { socket, _child: child };
        for _ in 0..200 {
            if redis.connect().await.is_ok() {
                return Ok(redis);
            }
            tokio::time::sleep(Duration::from_millis(25)).await;
        }
        anyhow::bail!("redis-server lets nobody in")
    }

    async fn connect(&self) -> anyhow::Result<redis::aio::MultiplexedConnection> {
        let client = redis::Client::open(format!("redis+unix://{}", self.socket.display()))?;
        Ok(client.get_multiplexed_async_connection().await?)
    }
}
