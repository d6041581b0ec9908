-- Selling without a network: seats that belong to a terminal until it says what became of them.

-- A lease. Its time ends selling at the terminal and nothing here: only the terminal's closing report, or a
-- person who takes the risk, ends it. Anything else could sell a seat twice.
create table lease (
    id          uuid primary key,
    terminal_id uuid not null references terminal,
    event_id    bigint not null references event,
    key         text not null,               -- the terminal's own: a grant whose answer got lost is found again
    body_hash   bytea not null,
    currency    text not null,
    seats_max   integer not null,            -- a buyer, as the event had it
    sells_for_s integer not null,
    next_seq    bigint not null,             -- of the terminal's journal, as it was told with the grant
    state       text not null default 'open',
    granted_by  text not null,
    granted_at  timestamptz not null,
    ended_at    timestamptz,
    ended_by    text,
    reason      text,                        -- of a write-off
    constraint lease_key_once unique (terminal_id, key),
    constraint lease_key_length check (length(key) between 1 and 255),
    constraint lease_state_known check (state in ('open', 'closed', 'written_off')),
    constraint lease_end_is_told check ((state = 'open') = (ended_at is null) and (state = 'open') = (ended_by is null)),
    constraint lease_write_off_has_reason check ((state = 'written_off') = (reason is not null)),
    constraint lease_sells_for_bounded check (sells_for_s between 1 and 43200)
);
create index lease_open on lease (terminal_id) where state = 'open';
create index lease_ended on lease (ended_at desc) where state <> 'open';

-- A seat of a lease, with the ticket that the terminal may print for it. The ticket becomes a row of its own when the
-- sale is settled; until then its code is genuine and not dead, so that a door lets in who bought it without a network.
create table lease_seat (
    lease_id  uuid not null references lease,
    event_id  bigint not null,
    seat_no   integer not null,
    ticket_id uuid not null,
    code      text not null,
    prices    jsonb not null,                -- by ticket type, minor units, fees included
    state     text not null default 'leased',
    order_id  uuid references "order",
    dead_at   timestamptz,                   -- since when the code is for no door
    -- Of the seat's row, as the write-off left it: the same still means that nobody did anything with it since.
    written_off_version integer,
    primary key (lease_id, seat_no),
    constraint lease_seat_ticket_once unique (ticket_id),
    constraint lease_seat_code_once unique (code),
    -- resold: sold after the write-off, under another code
    constraint lease_seat_state_known check (state in ('leased', 'sold', 'returned', 'written_off', 'resold')),
    constraint lease_seat_order_is_told check ((order_id is not null) = (state in ('sold', 'resold'))),
    constraint lease_seat_code_dies check ((dead_at is not null) = (state in ('returned', 'written_off', 'resold'))),
    constraint lease_seat_version_is_told check ((written_off_version is not null) = (state in ('written_off', 'resold')))
);
-- A seat is leased to one terminal at a time.
create unique index lease_seat_one_owner on lease_seat (event_id, seat_no) where state = 'leased';
create index lease_seat_dead on lease_seat (event_id, dead_at) where dead_at is not null;

-- What a lease has ended for a seat stays ended.
create function lease_seat_ends_once() returns trigger language plpgsql as $$
begin
    raise exception 'seat % of lease % is %', old.seat_no, old.lease_id, old.state
        using errcode = 'check_violation', constraint = 'lease_seat_ends_once', table = 'lease_seat';
end $$;
create trigger lease_seat_ends_once before update on lease_seat for each row
    when (old.state <> new.state and old.state <> 'leased' and not (old.state = 'written_off' and new.state = 'resold'))
    execute function lease_seat_ends_once();

-- A leased seat looks blocked to everybody. Its one owner is the terminal.
alter table event_seat
    add column lease_id uuid,
    add constraint seat_leased_is_blocked check (lease_id is null or status = 3);

-- Nobody takes a seat out of a lease but the verbs that ended it there first. Whoever writes the seat alone (a block, a
-- hold, an import, a query by hand) fails here, whatever the code above it forgot. The condition is the trigger's own, so
-- that a batch of holds pays a comparison a row and no call.
create function seat_is_leased() returns trigger language plpgsql as $$
begin
    if not exists (
        select from lease_seat l
        where l.lease_id = old.lease_id and l.event_id = old.event_id and l.seat_no = old.seat_no and l.state <> 'leased')
    then
        raise exception 'seat % of event % is leased to a terminal', old.seat_no, old.event_id
            using errcode = 'check_violation', constraint = 'seat_is_leased', table = 'event_seat';
    end if;
    return new;
end $$;
create trigger seat_is_leased before update on event_seat for each row
    when (old.lease_id is not null and new.lease_id is distinct from old.lease_id)
    execute function seat_is_leased();

-- How far a terminal's journal is settled. The row's lock makes two deliveries of one journal follow one another.
create table journal (
    terminal_id uuid primary key references terminal,
    next_seq    bigint not null default 1,
    constraint journal_next_seq_positive check (next_seq >= 1)
);

-- A sale as the terminal journalled it, and what became of it. The same number with the same bytes finds this row.
create table journal_entry (
    terminal_id  uuid not null references terminal,
    seq          bigint not null,
    body         text not null,
    body_hash    bytea not null,
    lease_id     uuid not null,              -- as the body says: there may be no such lease
    event_id     bigint not null,
    currency     text not null,
    total_minor  bigint not null,            -- in the drawer, whatever became of the sale
    order_id     uuid references "order",
    refusal      text,
    needs_person boolean not null,
    received_at  timestamptz not null,
    seen_at      timestamptz,
    seen_by      text,
    seen_note    text,
    primary key (terminal_id, seq),
    constraint journal_entry_one_outcome check (num_nonnulls(order_id, refusal) = 1),
    constraint journal_entry_refusal_known check (refusal in (
        'lease_unknown', 'lease_closed', 'seat_unknown', 'seat_sold', 'price_mismatch', 'seat_gone')),
    constraint journal_entry_refusal_needs_person check (refusal is null or needs_person),
    constraint journal_entry_seen_is_told check ((seen_at is null) = (seen_by is null) and (seen_at is null) = (seen_note is null)),
    constraint journal_entry_order_once unique (order_id)
);
create index journal_entry_to_see_to on journal_entry (received_at) where needs_person and seen_at is null;

-- What was answered is what is answered again.
create function journal_stays() returns trigger language plpgsql as $$
begin
    raise exception 'the journal of a terminal is only written to'
        using errcode = 'check_violation', constraint = 'journal_stays', table = 'journal_entry';
end $$;
create trigger journal_stays before update on journal_entry for each row
    when ((old.terminal_id, old.seq, old.body, old.body_hash, old.order_id, old.refusal)
          is distinct from (new.terminal_id, new.seq, new.body, new.body_hash, new.order_id, new.refusal))
    execute function journal_stays();
create trigger journal_stays_whole before delete or truncate on journal_entry execute function journal_stays();
