-- The waiting room: who stands in which event's line, how the places were drawn, who was called, who is inside.
--
-- A place is a function of the draw and an entry's number, so the draw writes nothing per entry: what is
-- stored is what went into it. protocol/DRAW.md says how anybody computes a place from it.

-- Where tickets to a line start: an account whose mail somebody has read. Others can buy, but not join.
alter table account add column email_checked_at timestamptz;

-- A draw and what it published. The secret stays in this table until it is revealed. A draw that was given
-- up stays too, with its reason: nobody can draw until they like what comes out.
create table draw (
    event_id       bigint not null references event,
    draw_no        integer not null,
    commitment     bytea not null,           -- published before anybody can join
    secret         bytea not null,
    public_source  text,                     -- where a value will come from that nobody here can choose; null: none,
    public_round   text,                     -- and the draw is called committed, never verifiable
    value_due_at   timestamptz,              -- not before this: at least a minute after the root is out
    public_value   bytea,
    created_at     timestamptz not null,
    closed_at      timestamptz,              -- whoever joins from here on stands behind
    entry_count    bigint,                   -- entries 0 .. entry_count - 1 are drawn
    root           bytea,                    -- of the tree over those entries: nobody is added or lost afterwards
    drawn_at       timestamptz,
    revealed_at    timestamptz,
    abandoned_at   timestamptz,
    abandoned_why  text,
    primary key (event_id, draw_no),
    constraint draw_numbered check (draw_no > 0),
    constraint draw_commitment_hashed check (length(commitment) = 32),
    constraint draw_secret_length check (length(secret) = 32),
    constraint draw_source_has_round check (num_nulls(public_source, public_round, value_due_at) in (0, 3)),
    constraint draw_source_length check (length(public_source) between 1 and 200 and length(public_round) between 1 and 200),
    constraint draw_value_has_source check (public_value is null or public_source is not null),
    constraint draw_value_length check (length(public_value) between 1 and 1024),
    constraint draw_closed_is_counted check ((closed_at is null) = (entry_count is null)),
    constraint draw_root_after_closing check (root is null or (closed_at is not null and length(root) = 32)),
    constraint draw_value_after_root check (public_value is null or root is not null),
    constraint draw_drawn_is_complete check (
        drawn_at is null or (root is not null and (public_source is null or public_value is not null))),
    constraint draw_revealed_after_drawn check (revealed_at is null or drawn_at is not null or abandoned_at is not null),
    constraint draw_abandoned_is_told check ((abandoned_at is null) = (abandoned_why is null))
);
create unique index draw_one_current on draw (event_id) where abandoned_at is null;

-- What was published can't be changed afterwards, whoever tries.
create function draw_is_final() returns trigger language plpgsql as $$
begin
    if tg_op = 'DELETE' then
        raise exception 'a draw stays' using errcode = 'integrity_constraint_violation', constraint = 'draw_stays';
    end if;
    if (new.event_id, new.draw_no, new.commitment, new.secret, new.created_at)
           is distinct from (old.event_id, old.draw_no, old.commitment, old.secret, old.created_at)
       or (new.public_source, new.public_round, new.value_due_at)
           is distinct from (old.public_source, old.public_round, old.value_due_at)
       or (old.closed_at is not null and (new.closed_at, new.entry_count) is distinct from (old.closed_at, old.entry_count))
       or (old.root is not null and new.root is distinct from old.root)
       or (old.public_value is not null and new.public_value is distinct from old.public_value)
       or (old.drawn_at is not null and new.drawn_at is distinct from old.drawn_at)
       or (old.revealed_at is not null and new.revealed_at is distinct from old.revealed_at)
       or (old.abandoned_at is not null and new.abandoned_at is distinct from old.abandoned_at) then
        raise exception 'what a draw has published is final'
            using errcode = 'integrity_constraint_violation', constraint = 'draw_is_final';
    end if;
    return new;
end $$;
create trigger draw_is_final before update or delete on draw for each row execute function draw_is_final();

-- One row an event that has a waiting room. Its lock gives out numbers, so it is held for moments only:
-- by a batch of joins, by the tick that calls people, and by operators. Opening is the event's on-sale.
create table line (
    event_id        bigint primary key references event,
    revision        bigint not null default 1, -- raised with every change that people should see: the frame's number
    changed_at      timestamptz not null,
    joins_at        timestamptz not null,
    closes_at       timestamptz not null,    -- who joined before this is drawn
    draw_no         integer not null,        -- the draw that counts; a line never lacks one, so no join precedes a commitment
    challenge_key   bytea not null,          -- what the challenges at the door are signed with
    next_number     bigint not null default 0,
    called_through  bigint not null default 0, -- all places below may come in
    called_at       timestamptz,             -- when the last were called
    budget          double precision not null default 0, -- people that the rate allows and who were not called yet
    budget_at       timestamptz,
    rate_minute     integer not null,        -- what the controller says now
    rate_minute_min integer not null,        -- its bounds
    rate_minute_max integer not null,
    rate_fixed      integer,                 -- an operator's word instead of the controller's
    rate_reason     text not null default '',
    controller      jsonb,                   -- what the controller remembers from step to step
    inside          integer not null default 0, -- as it was counted last
    inside_max      integer not null,
    expected        integer not null default 0, -- called lately and not here yet
    seats_left      integer not null default 0, -- as they were counted last
    counted_at      timestamptz,
    sold_out_at     timestamptz,
    next_batch_at   timestamptz,             -- more seats will come
    paused_at       timestamptz,
    message         jsonb,                   -- what people read while they wait, by language
    shown_state     text not null default 'soon', -- what the last frame said: time alone changes it
    show_s          integer not null default 30,  -- called and not here: the next are called
    grace_s         integer not null default 600, -- so long after the call the entry is still good
    pass_s          integer not null default 600,
    pass_max_s      integer not null default 1800, -- renewing ends here
    holds_live_max  integer,                 -- null: as many as there are seats
    checkouts_live_max integer,
    constraint line_current_draw foreign key (event_id, draw_no) references draw deferrable initially deferred,
    constraint line_times check (joins_at < closes_at),
    constraint line_challenge_key_length check (length(challenge_key) = 32),
    constraint line_called_who_can_be check (called_through >= 0 and next_number >= 0 and called_through <= next_number),
    constraint line_rate_bounds check (
        0 <= rate_minute_min and rate_minute_min <= rate_minute_max and rate_minute_max <= 1000000
        and rate_minute between 0 and rate_minute_max and rate_fixed between 0 and 1000000),
    constraint line_inside_bounds check (inside_max between 0 and 1000000),
    constraint line_state_known check (
        shown_state in ('soon', 'joining', 'closed', 'open', 'paused', 'sold_out', 'over')),
    constraint line_durations check (
        show_s between 1 and 3600 and grace_s between show_s and 86400
        and pass_s between 10 and 86400 and pass_max_s between pass_s and 86400),
    constraint line_live_max check (holds_live_max >= 0 and checkouts_live_max >= 0)
) with (fillfactor = 20); -- rewritten every second: its versions stay on one page

-- A place that was called stays called, a number that was given is never given again, and a frame is
-- never older than the one before.
create function line_only_rises() returns trigger language plpgsql as $$
begin
    if new.called_through < old.called_through then
        raise exception 'the line was called through % already', old.called_through
            using errcode = 'integrity_constraint_violation', constraint = 'line_called_through_rises';
    end if;
    if new.next_number < old.next_number or new.revision < old.revision then
        raise exception 'numbers and revisions of a line only rise'
            using errcode = 'integrity_constraint_violation', constraint = 'line_only_rises';
    end if;
    return new;
end $$;
create trigger line_only_rises before update on line for each row execute function line_only_rises();

-- Opening, closing and calling off belong to the event; the line's frame shows them.
create function line_follows_event() returns trigger language plpgsql as $$
begin
    update line set revision = revision + 1, changed_at = db_clock() where event_id = new.id;
    return null;
end $$;
create trigger line_follows_event after update on event for each row
    when (old.on_sale_at is distinct from new.on_sale_at or old.off_sale_at is distinct from new.off_sale_at
          or old.sale_state is distinct from new.sale_state)
    execute function line_follows_event();

-- One account's stand in a line. Numbers are dense from 0 in order of joining, and never change. No foreign
-- keys: each would write a lock into a row of account as half a million people come; the batch that
-- inserts has looked the account up.
create table line_entry (
    event_id    bigint not null,
    number      bigint not null,
    account_id  uuid not null,
    entry_key   bytea not null,              -- chance; what the tree's leaf is made of, so that leaves name nobody
    joined_at   timestamptz not null,
    party_size  smallint,
    price_level smallint,
    accessible  smallint not null default 0, -- places for wheelchairs
    companions  smallint not null default 0,
    lapsed_at   timestamptz,                 -- called, and not come within the grace
    left_at     timestamptz,                 -- by their own wish, or after their time inside
    primary key (event_id, number),
    constraint line_entry_key_length check (length(entry_key) = 16),
    constraint line_entry_party_bounded check (party_size between 1 and 50),
    constraint line_entry_accessible_bounded check (accessible between 0 and 50 and companions between 0 and 50),
    constraint line_entry_ends_once check (num_nonnulls(lapsed_at, left_at) < 2)
);
create unique index line_entry_one_standing on line_entry (event_id, account_id)
    where lapsed_at is null and left_at is null;
-- What became of an account's earlier entries: a challenge from before the last one was used for it.
create index line_entry_ended on line_entry (event_id, account_id, joined_at)
    where lapsed_at is not null or left_at is not null;

-- One row a tick that called somebody: when a place was called follows from it.
create table line_call (
    event_id      bigint not null references event,
    from_place    bigint not null,
    through_place bigint not null,           -- the first that was not called
    at            timestamptz not null,
    reason        text not null default '',
    primary key (event_id, from_place),
    constraint line_call_somebody check (from_place >= 0 and through_place > from_place)
);
create index line_call_by_time on line_call (event_id, at);

-- The right to take seats, for a while. The token that the buyer carries names this row; the row decides.
create table pass (
    id              uuid primary key,
    event_id        bigint not null references event,
    account_id      uuid not null,
    number          bigint not null,
    place           bigint not null,
    session_hash    bytea not null,          -- of the session that it was given to
    issued_at       timestamptz not null,
    expires_at      timestamptz not null,
    renewable_until timestamptz not null,
    ended_at        timestamptz,
    ended_why       text,
    constraint pass_of_entry foreign key (event_id, number) references line_entry,
    constraint pass_session_hashed check (length(session_hash) = 32),
    constraint pass_within_max check (issued_at <= expires_at and expires_at <= renewable_until),
    constraint pass_ended_is_told check ((ended_at is null) = (ended_why is null)),
    constraint pass_ended_why_known check (ended_why in ('complete', 'expired', 'revoked', 'moved', 'left'))
);
create unique index pass_one_live on pass (event_id, account_id) where ended_at is null;
create index pass_of_place on pass (event_id, place);
create index pass_live_by_expiry on pass (event_id, expires_at) where ended_at is null;

-- Who changed what about a line, and why: people and the controller alike.
create table line_change (
    id       bigint generated always as identity primary key,
    event_id bigint not null references event,
    at       timestamptz not null,
    actor    text not null,                  -- an operator's address, `controller`, `hub`, or a terminal's name
    what     text not null,
    was      jsonb,
    is_now   jsonb,
    reason   text not null default '',
    constraint line_change_told check (length(actor) between 1 and 300 and length(what) between 1 and 60 and length(reason) <= 500)
);
create index line_change_of_event on line_change (event_id, id);
