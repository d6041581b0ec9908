-- The ground: the one clock, and everybody who may act.

-- Every verb asks this function for the time, in a statement of its own, after its locks are taken.
-- now() would be frozen at begin. The test harness replaces this function to set the time;
-- `fullhouse serve` refuses to start on a replaced one.
create function db_clock() returns timestamptz
    language sql volatile as 'select clock_timestamp()';

-- A fan or an operator. A guest is an account too, so that the limit of seats holds for them.
create table account (
    id            uuid primary key,
    email         text not null,
    name          text not null,
    password_hash text not null,
    role          text not null default 'fan',
    created_at    timestamptz not null default clock_timestamp(),
    constraint account_email_shape check (email = lower(email) and length(email) between 3 and 254 and position('@' in email) > 1),
    constraint account_name_length check (length(name) between 1 and 200),
    constraint account_role_known check (role in ('fan', 'operator'))
);
create unique index account_email_once on account (email);

-- Only the hash of a session's token is kept: a copy of the table signs nobody in.
create table session (
    token_hash bytea primary key,
    account_id uuid not null references account on delete cascade,
    created_at timestamptz not null default clock_timestamp(),
    expires_at timestamptz not null,
    constraint session_token_hashed check (length(token_hash) = 32)
);
create index session_of_account on session (account_id);

-- A till or kiosk. Its token is enrolled on the command line and kept only as a hash.
create table terminal (
    id         uuid primary key,
    name       text not null,
    role       text not null,
    token_hash bytea not null,
    revoked_at timestamptz,
    created_at timestamptz not null default clock_timestamp(),
    constraint terminal_name_once unique (name),
    constraint terminal_token_once unique (token_hash),
    constraint terminal_role_known check (role in ('counter', 'kiosk')),
    constraint terminal_token_hashed check (length(token_hash) = 32)
);

-- Whoever holds and buys seats. An account is one buyer for ever;
-- a walk-in customer is a buyer of their own for each transaction at a terminal.
create table buyer (
    id          uuid primary key,
    account_id  uuid references account,
    terminal_id uuid references terminal,
    created_at  timestamptz not null default clock_timestamp(),
    constraint buyer_account_once unique (account_id),
    constraint buyer_is_somebody check (num_nonnulls(account_id, terminal_id) = 1)
);
