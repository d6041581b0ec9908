-- Money that goes back, what the provider's books say beside ours, and why the gate is closed.

-- What somebody decided to give back of an order: all of it, some seats, or an amount; and what
-- becomes of the seats. A second click under the same key finds the first. It belongs to the order
-- and its lines, never to a seat: the seat may be sold and given back again.
create table refund_request (
    id           uuid primary key,
    order_id     uuid not null references "order",
    event_id     bigint not null references event,
    key          text not null,
    body_hash    bytea not null,
    amount_minor bigint not null,
    seat_nos     integer[] not null,          -- empty for an amount alone
    seats_become text,
    reason       text not null,
    actor        text not null,
    created_at   timestamptz not null,
    constraint refund_request_key_once unique (order_id, key),
    constraint refund_request_key_length check (length(key) between 1 and 255),
    constraint refund_request_reason_length check (length(reason) between 1 and 500),
    constraint refund_request_amount_bounded check (amount_minor between 0 and 99999999),
    constraint refund_request_seats_become_known check (seats_become in ('on_sale', 'house', 'dead')),
    constraint refund_request_says_what_becomes check ((cardinality(seat_nos) > 0) = (seats_become is not null))
);
create index refund_request_of_event on refund_request (event_id, created_at);

-- What of each line goes back with a request: the seat's price, and its share of fees.
-- A line whose seat was exchanged for another is neither sold nor given back.
alter table order_line
    drop constraint order_line_state_known,
    add constraint order_line_state_known check (state in ('open', 'sold', 'void', 'exchanged')),
    add column refunded_minor bigint not null default 0,
    add constraint order_line_refund_within_amount check (refunded_minor between 0 and amount_minor);
create table refund_line (
    request_id    uuid not null references refund_request,
    order_line_id bigint not null references order_line,
    amount_minor  bigint not null,
    primary key (request_id, order_line_id),
    constraint refund_line_amount_positive check (amount_minor > 0)
);
-- The cap is the database's: lines are counted where they are written, and the line refuses more than it was.
create function refund_line_counts() returns trigger language plpgsql as $$
begin
    update order_line set refunded_minor = refunded_minor + new.amount_minor where id = new.order_line_id;
    return null;
end $$;
create trigger refund_line_counts after insert on refund_line for each row execute function refund_line_counts();

-- A refund is one movement of money, the way it came: to the card (a worker asks the provider, under
-- the attempt's lease), or out of the drawer (done when it is written).
alter table tender
    add column refunded_minor bigint not null default 0,
    add constraint tender_refund_within_amount check (refunded_minor between 0 and amount_minor);
alter table refund
    alter column attempt_id drop not null,
    add column tender_id   uuid references tender,
    add column request_id  uuid references refund_request,
    add column kind        text not null default 'card',
    add column failure     text,                 -- the provider's word for why not
    add column replaced_by uuid references refund, -- of one that failed: what was done instead
    add column look_at     timestamptz,          -- there is news of it: ask, even if it had arrived
    add column asked_at    timestamptz,          -- when the provider said something about it last
    add column settled_at  timestamptz;
update refund r set tender_id = a.tender_id from attempt a where a.id = r.attempt_id;
alter table refund
    alter column tender_id set not null,
    add constraint refund_kind_known check (kind in ('card', 'cash', 'comp', 'voucher')),
    add constraint refund_to_card_has_attempt check ((kind = 'card') = (attempt_id is not null)),
    add constraint refund_only_failed_is_replaced check (replaced_by is null or state = 'failed');
create unique index refund_replaces_one on refund (replaced_by) where replaced_by is not null;
create index refund_of_request on refund (request_id);
create index refund_to_see_to on refund (created_at) where state <> 'succeeded';
-- Counted here, so that no code can forget it: two clicks at once meet at the row of what was paid.
-- A delta and not a sum, because a statement that waited for that row would sum by its old snapshot.
create function refund_counts() returns trigger language plpgsql as $$
declare
    delta bigint := case when new.state = 'failed' then 0 else new.amount_minor end;
begin
    if tg_op = 'UPDATE' then
        delta := delta - case when old.state = 'failed' then 0 else old.amount_minor end;
    end if;
    if delta <> 0 and new.attempt_id is not null then
        update attempt set refunded_minor = refunded_minor + delta where id = new.attempt_id;
    elsif delta <> 0 then
        update tender set refunded_minor = refunded_minor + delta where id = new.tender_id;
    end if;
    return null;
end $$;
create trigger refund_counts after insert or update of state, amount_minor on refund
    for each row execute function refund_counts();
-- Rows of before were counted even if they had failed.
update attempt a set refunded_minor = coalesce(
    (select sum(r.amount_minor) from refund r where r.attempt_id = a.id and r.state <> 'failed'), 0)
    where refunded_minor > 0;

alter table "order"
    drop constraint order_cancel_reason_known,
    add constraint order_cancel_reason_known
        check (cancel_reason in ('time_over', 'buyer', 'replaced', 'not_paid', 'refunded', 'called_off'));

alter table seat_note
    drop constraint seat_note_verb_known,
    add constraint seat_note_verb_known check (verb in ('block', 'unblock', 'kill'));

-- What people did to an order, and what they wrote beside it.
create table order_note (
    id         bigint generated always as identity primary key,
    order_id   uuid not null references "order",
    verb       text not null,
    text       text not null,
    actor      text not null,
    created_at timestamptz not null,
    constraint order_note_verb_known check (verb in ('note', 'refund', 'exchange', 'reissue', 'cancel')),
    constraint order_note_text_length check (length(text) between 1 and 2000)
);
create index order_note_of_order on order_note (order_id, id);

-- A whole event that is called off. Its orders are gone through one by one; each has one result.
create table event_cancellation (
    event_id    bigint primary key references event,
    reason      text not null,
    actor       text not null,
    started_at  timestamptz not null,
    finished_at timestamptz,                 -- every order has its result
    constraint event_cancellation_reason_length check (length(reason) between 1 and 500)
);
create table event_cancellation_order (
    event_id   bigint not null references event_cancellation,
    order_id   uuid not null references "order",
    result     text not null,
    detail     text not null default '',
    request_id uuid references refund_request,
    updated_at timestamptz not null,
    primary key (event_id, order_id),
    constraint event_cancellation_result_known check (result in ('given_back', 'waiting', 'refused'))
);

-- How each call to the provider went: what the circuit breaker and the figures read. A day is kept.
create table provider_answer (
    id      bigint generated always as identity primary key,
    at      timestamptz not null,
    op      text not null,
    ok      boolean not null,                -- answered, and not by "try again later"
    took_ms integer not null
);
create index provider_answer_recent on provider_answer (at);

-- Who does what only one hub should do at a time.
create table money_lease (
    name   text primary key,
    holder uuid not null,
    until  timestamptz not null
);

-- The provider's books as they were last read. Upserted by the provider's ids: reading twice changes nothing.
create table provider_intent (
    pi_id           text primary key,
    status          text not null,
    amount          bigint not null,         -- the provider's units, as in all of these
    amount_received bigint not null,
    currency        text not null,           -- lower case, the provider's
    charge_id       text,
    attempt_id      uuid,                    -- as its metadata says
    order_id        uuid,
    created_at      timestamptz not null,
    seen_at         timestamptz not null
);
create index provider_intent_of_charge on provider_intent (charge_id);
create table provider_refund (
    re_id      text primary key,
    pi_id      text,
    status     text not null,
    amount     bigint not null,
    currency   text not null,
    refund_id  uuid,                         -- as its metadata says
    created_at timestamptz not null,
    seen_at    timestamptz not null
);
create index provider_refund_of_intent on provider_refund (pi_id);
create table provider_transaction (
    txn_id     text primary key,
    type       text not null,
    amount     bigint not null,              -- in the currency of settlement
    fee        bigint not null,
    net        bigint not null,
    currency   text not null,
    source     text,
    created_at timestamptz not null,
    seen_at    timestamptz not null
);
create index provider_transaction_of_source on provider_transaction (source);

create table reconciliation_run (
    id          bigint generated always as identity primary key,
    started_at  timestamptz not null,
    finished_at timestamptz,
    ok          boolean not null default false,
    window_from timestamptz not null,
    intents     integer not null default 0,
    refunds     integer not null default 0,
    transactions integer not null default 0,
    findings    integer not null default 0,  -- open ones when it ended
    error       text
);
create index reconciliation_run_good on reconciliation_run (finished_at) where ok;

-- Where the books differ. A finding is one thing of one class; it is cleared when it is found no
-- more, and acknowledged when a person has seen to it.
create table money_finding (
    id              bigint generated always as identity primary key,
    class           text not null,
    subject         text not null,           -- attempt:…, intent:…, refund:…, transaction:…, order:…
    order_id        uuid,
    attempt_id      uuid,
    pi_id           text,
    amount          bigint,                  -- the provider's units
    currency        text,
    detail          text not null,
    found_at        timestamptz not null,
    last_seen_at    timestamptz not null,
    repair_tries    integer not null default 0,
    repaired_at     timestamptz,
    cleared_at      timestamptz,
    acknowledged_at timestamptz,
    acknowledged_by text,
    constraint money_finding_class_known check (class in ('M1', 'M2', 'M3', 'M4', 'M5', 'M6', 'M7'))
);
create unique index money_finding_once on money_finding (class, subject) where cleared_at is null;

-- The gate's rows are its own log: who closed it, who opened it, and what they said.
update checkout_gate set reopened_by = 'unknown' where reopened_at is not null and reopened_by is null;
alter table checkout_gate
    add column closed_by   text not null default 'fullhouse',
    add column reopen_note text,
    add constraint checkout_gate_person_says_who check (reopened_at is null or reopened_by is not null);

-- What each hub reads on three clocks: its own and the provider's, against the database's.
create table clock_reading (
    hub         uuid primary key,
    at          timestamptz not null,
    host_ms     bigint not null,             -- the host's clock ahead of the database's
    provider_ms bigint                       -- the provider's, if it spoke lately
);
