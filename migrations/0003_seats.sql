-- Who has which seat. The rows here own the seats; everything else is a copy that may be late.

-- One live hold a buyer and event. Its seats are the rows of event_seat that name it;
-- seat_nos repeats them so that they can be found without an index on a column that a hold changes.
create table hold (
    id          uuid primary key,
    event_id    bigint not null references event,
    buyer_id    uuid not null references buyer,
    seat_nos    integer[] not null,
    state       text not null default 'live',
    held_until  timestamptz not null,
    attempt_id  uuid,                        -- a live attempt to pay freezes the hold
    version     integer not null default 1,
    seats_taken integer not null,            -- every seat ever taken by it: what churn is summed from
    created_at  timestamptz not null,
    ended_at    timestamptz,
    constraint hold_state_known check (state in ('live', 'released', 'expired', 'bought')),
    constraint hold_live_has_seats check (state <> 'live' or cardinality(seat_nos) > 0),
    constraint hold_ended_once check ((state = 'live') = (ended_at is null))
) with (fillfactor = 70);
create unique index hold_one_live on hold (event_id, buyer_id) where state = 'live';
create index hold_of_buyer on hold (event_id, buyer_id, created_at);
-- What the sweeper walks. held_until of a hold never changes, so updates of a live hold stay HOT.
create index hold_live_by_deadline on hold (held_until) where state = 'live';

-- Answers to holding, found again by the client's idempotency key. Refusals are not stored.
create table hold_request (
    buyer_id   uuid not null,
    key        text not null,
    body_hash  bytea not null,
    hold_id    uuid not null,
    answer     jsonb not null,
    created_at timestamptz not null,
    primary key (buyer_id, key),
    constraint hold_request_key_length check (length(key) between 1 and 255)
);
create index hold_request_by_age on hold_request (created_at);

-- One row an event and seat; standing places too. A change must stay HOT: no index on anything
-- that a hold changes, and half of each page free. No foreign key on hold_id and order_id: it
-- would look up and lock a row per seat; the checker compares them instead (fullhouse check).
create table event_seat (
    event_id   bigint not null,
    seat_no    integer not null,
    status     smallint not null default 0,  -- 0 available, 1 held, 2 sold, 3 blocked
    level      smallint not null,            -- price level
    version    integer not null default 1,
    hold_id    uuid,
    held_until timestamptz,
    order_id   uuid,
    primary key (event_id, seat_no),
    constraint seat_one_owner check (
        case status
            when 0 then hold_id is null and held_until is null and order_id is null
            when 1 then hold_id is not null and held_until is not null and order_id is null
            when 2 then hold_id is null and held_until is null and order_id is not null
            when 3 then hold_id is null and held_until is null and order_id is null
            else false
        end)
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05);

-- Why a seat is not for sale, and the trail of what staff did to it.
create table seat_note (
    id         bigint generated always as identity primary key,
    event_id   bigint not null references event,
    seat_no    integer not null,
    verb       text not null,
    reason     text not null,
    actor      text not null,
    created_at timestamptz not null,
    constraint seat_note_verb_known check (verb in ('block', 'unblock')),
    constraint seat_note_reason_length check (length(reason) between 1 and 500)
);
create index seat_note_of_seat on seat_note (event_id, seat_no, id);

-- What the bus carries: a row a batch, written in the transaction of the change, deleted once the
-- bus has acknowledged it. There is no cursor, so a row that commits late can't be skipped;
-- versions make the order harmless.
create table outbox (
    id          bigint generated always as identity primary key,
    event_id    bigint not null,
    seat_nos    integer[] not null,
    statuses    smallint[] not null,
    versions    integer[] not null,
    held_until  timestamptz[] not null,      -- null in a place that is not held
    created_at  timestamptz not null,
    constraint outbox_columns_match check (
        cardinality(seat_nos) > 0
        and cardinality(seat_nos) = cardinality(statuses)
        and cardinality(seat_nos) = cardinality(versions)
        and cardinality(seat_nos) = cardinality(held_until))
) with (autovacuum_vacuum_scale_factor = 0.0, autovacuum_vacuum_threshold = 2000);
