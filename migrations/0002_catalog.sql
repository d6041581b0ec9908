-- What is on: venues, performers, seating plans and events.

create table venue (
    id        bigint generated always as identity primary key,
    slug      text not null,
    name      text not null,
    city      text not null default '',
    country   text not null default '',
    time_zone text not null,
    constraint venue_slug_once unique (slug)
);

create table performer (
    id   bigint generated always as identity primary key,
    slug text not null,
    name text not null,
    constraint performer_slug_once unique (slug)
);

-- A plan belongs to a venue; what is drawn is always one of its revisions.
create table plan (
    id       bigint generated always as identity primary key,
    venue_id bigint not null references venue,
    name     text not null,
    constraint plan_name_once unique (venue_id, name)
);

-- Immutable, and known by the hash of its content (plan and the file beside it).
create table plan_revision (
    id          bigint generated always as identity primary key,
    plan_id     bigint not null references plan,
    revision    integer not null,
    hash        text not null,               -- sha256 of geometry and identity, lower hex
    seat_count  integer not null,            -- numbers in use, retired ones included
    focus_x     double precision not null,   -- the point that "near the stage" is measured from
    focus_y     double precision not null,
    geometry    bytea not null,              -- the geometry resource (JSON), gzip
    imported_at timestamptz not null default clock_timestamp(),
    constraint plan_revision_once unique (plan_id, revision),
    constraint plan_revision_hash_once unique (plan_id, hash),
    constraint plan_revision_seat_count_bounded check (seat_count between 1 and 200000)
);
create index plan_revision_by_hash on plan_revision (hash);

-- A seat as drawn. seat_no is dense within a revision and travels on the wire;
-- the guid is the identity across revisions: a revision keeps the number of each guid,
-- appends new ones and retires old ones.
create table plan_seat (
    plan_revision_id bigint not null references plan_revision on delete cascade,
    seat_no    integer not null,
    guid       text not null,
    section    text not null,                -- the zone's name
    row_label  text not null,
    seat_label text not null,
    category   text not null,
    run        integer not null,             -- seats of one run, in seat order, sit side by side
    run_pos    integer not null,
    x          double precision not null,
    y          double precision not null,
    flags      smallint not null default 0,  -- 1 accessible, 2 companion, 4 restricted view, 8 standing
    companion_of integer,                    -- seat_no of the accessible place that it belongs to
    house      boolean not null default false, -- blocked when an event is made from the plan
    retired    boolean not null default false,
    primary key (plan_revision_id, seat_no),
    constraint plan_seat_guid_once unique (plan_revision_id, guid)
);

create table event (
    id               bigint generated always as identity primary key,
    slug             text not null,
    name             text not null,
    description      text not null default '',
    tags             text[] not null default '{}',
    plan_revision_id bigint not null references plan_revision,
    -- Local time, zone and instant of what people plan by. The local time wins if the zone's rules change.
    time_zone        text not null,
    doors_local      timestamp,
    doors_at         timestamptz,
    starts_local     timestamp not null,
    starts_at        timestamptz not null,
    on_sale_local    timestamp not null,
    on_sale_at       timestamptz not null,
    off_sale_local   timestamp not null,
    off_sale_at      timestamptz not null,
    currency         text not null,
    seat_limit       integer not null default 6,     -- seats a buyer, held and bought
    hold_ttl_s       integer not null default 480,
    churn_seats_max  integer not null default 120,   -- seats a buyer may take in an hour, taken again or not
    single_seat_rule boolean not null default true,  -- refuse a selection that leaves a single seat without need
    consecutive_rule boolean not null default false, -- refuse a selection that does not sit side by side
    seats_min        integer not null default 1,     -- seats that a hold has at least
    sale_state       text not null default 'open',   -- open, paused, cancelled; the window is by time
    created_at       timestamptz not null default clock_timestamp(),
    constraint event_slug_once unique (slug),
    constraint event_currency_shape check (currency ~ '^[A-Z]{3}$'),
    constraint event_seat_limit_bounded check (seat_limit between 1 and 50),
    constraint event_seats_min_bounded check (seats_min between 1 and seat_limit),
    constraint event_hold_ttl_bounded check (hold_ttl_s between 1 and 86400),
    constraint event_sale_state_known check (sale_state in ('open', 'paused', 'cancelled')),
    constraint event_sale_window check (off_sale_at > on_sale_at)
);
create index event_by_start on event (starts_at);

create table event_performer (
    event_id     bigint not null references event on delete cascade,
    performer_id bigint not null references performer,
    billing      smallint not null default 0,
    primary key (event_id, performer_id)
);

-- A price level is a category of the plan as this event sells it.
create table price_level (
    event_id bigint not null references event on delete cascade,
    level    smallint not null,
    name     text not null,
    category text not null,
    color    text not null,
    primary key (event_id, level),
    constraint price_level_category_once unique (event_id, category),
    constraint price_level_number check (level between 0 and 63)
);

-- What a ticket costs, tax included, in minor units of the event's currency.
create table price (
    event_id     bigint not null,
    level        smallint not null,
    ticket_type  text not null,
    amount_minor bigint not null,
    position     smallint not null default 0,
    primary key (event_id, level, ticket_type),
    foreign key (event_id, level) references price_level on delete cascade,
    constraint price_amount_bounded check (amount_minor between 0 and 99999999),
    constraint price_ticket_type_shape check (ticket_type ~ '^[a-z][a-z0-9_]{0,31}$')
);

-- Fees are lines of their own.
create table fee (
    event_id     bigint not null references event on delete cascade,
    code         text not null,
    basis        text not null,
    amount_minor bigint not null,
    primary key (event_id, code),
    constraint fee_basis_known check (basis in ('seat', 'order')),
    constraint fee_amount_bounded check (amount_minor between 0 and 99999999)
);
