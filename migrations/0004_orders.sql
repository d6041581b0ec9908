-- A priced hold, what pays for it, and what the buyer gets.

create table "order" (
    id           uuid primary key,
    code         text not null,              -- what people say at a counter
    event_id     bigint not null references event,
    buyer_id     uuid not null references buyer,
    hold_id      uuid not null references hold,
    state        text not null default 'open',
    currency     text not null,
    total_minor  bigint not null,
    channel      text not null,              -- web, counter, kiosk
    actor        text not null,              -- who moved it last, for the log
    created_at   timestamptz not null,
    confirmed_at timestamptz,
    cancel_requested boolean not null default false,
    payment_due_until timestamptz,           -- a capture failed after the seats were confirmed: pay again until then
    constraint order_code_once unique (code),
    constraint order_state_known check (state in ('open', 'confirmed', 'payment_due', 'cancelled')),
    constraint order_total_bounded check (total_minor between 0 and 99999999),
    constraint order_confirmed_has_time check ((state in ('confirmed', 'payment_due')) <= (confirmed_at is not null)),
    constraint order_channel_known check (channel in ('web', 'counter', 'kiosk'))
);
-- A hold is checked out once at a time; pricing it again replaces the open order.
create unique index order_one_open_per_hold on "order" (hold_id) where state = 'open';
create index order_of_buyer on "order" (event_id, buyer_id);
create index order_recent on "order" (buyer_id, created_at desc);

-- A seat, or a fee (seat_no null). Amounts are what the server computed; a client's price is never read.
create table order_line (
    id           bigint generated always as identity primary key,
    order_id     uuid not null references "order",
    event_id     bigint not null,
    seat_no      integer,
    ticket_type  text,
    fee_code     text,
    amount_minor bigint not null,
    state        text not null default 'open',
    constraint order_line_is_seat_or_fee check (num_nonnulls(seat_no, fee_code) = 1 and (seat_no is null) = (ticket_type is null)),
    constraint order_line_state_known check (state in ('open', 'sold', 'void')),
    constraint order_line_amount_bounded check (amount_minor between 0 and 99999999)
);
create index order_line_of_order on order_line (order_id);
-- Invariant 1, said by the database: a seat of an event is sold once.
create unique index order_line_one_sale on order_line (event_id, seat_no) where state = 'sold' and seat_no is not null;

-- What pays for an order. The sum of live tenders of a confirmed order is its total.
create table tender (
    id           uuid primary key,
    order_id     uuid not null references "order",
    kind         text not null,
    amount_minor bigint not null,
    received_minor bigint,                   -- cash handed over; the change is the difference
    reason       text,                       -- of a comp
    created_at   timestamptz not null,
    constraint tender_kind_known check (kind in ('card', 'cash', 'comp', 'voucher')),
    constraint tender_cash_covers check (kind <> 'cash' or received_minor >= amount_minor),
    constraint tender_comp_has_reason check (kind <> 'comp' or length(reason) > 0)
);
create index tender_of_order on tender (order_id);

-- One try to pay by card. Work on it is found by next_run_at; a worker leases it by moving that forward.
create table attempt (
    id              uuid primary key,
    order_id        uuid not null references "order",
    tender_id       uuid not null references tender,
    amount_minor    bigint not null,
    currency        text not null,
    payment_method  text not null,           -- the provider's token; never card data
    pi_id           text,                    -- the provider's object, once it exists
    state           text not null,
    version         integer not null default 1,
    hold_expires_at timestamptz not null,
    next_run_at     timestamptz,             -- when a worker looks at it again; null: nothing to do
    leased_until    timestamptz,             -- a worker is at it; a crashed one loses it at this time
    pokes           integer not null default 0, -- counted up by whoever has news: a worker that was busy looks again
    tries           integer not null default 0, -- looks in vain since the doubt began
    unknown_since   timestamptz,
    authorised_minor bigint,                 -- what the provider says it holds for us, in our minor units
    captured_minor  bigint not null default 0,
    refunded_minor  bigint not null default 0, -- asked for, whether arrived or not
    action_url      text,                    -- the challenge that the buyer must meet
    outcome         text,                    -- stable code for the buyer: declined, hold_ended, ...
    decline_code    text,
    created_at      timestamptz not null,
    updated_at      timestamptz not null,
    constraint attempt_state_known check (state in (
        'new', 'ready', 'confirming', 'action_required', 'auth_unknown', 'declined', 'authorised',
        'capture_pending', 'capture_unknown', 'captured', 'capture_failed',
        'void_pending', 'void_unknown', 'voided',
        'refund_pending', 'refund_accepted', 'refunded', 'refund_failed')),
    constraint attempt_pi_once unique (pi_id),
    constraint attempt_amount_bounded check (amount_minor between 1 and 99999999),
    constraint attempt_refund_within_capture check (refunded_minor between 0 and captured_minor)
);
-- One live attempt an order: a second card waits until the first is decided. A failed capture counts
-- as decided (the buyer may pay again); a failed refund does not, since its money is still with us.
create unique index attempt_one_live on attempt (order_id)
    where state not in ('declined', 'voided', 'captured', 'capture_failed', 'refunded');
-- At most one captured attempt an order that was not given back.
create unique index attempt_one_capture on attempt (order_id) where state in ('capture_pending', 'capture_unknown', 'captured');
create index attempt_due on attempt (next_run_at) where next_run_at is not null;
create index attempt_of_order on attempt (order_id, created_at);

-- Every call is written down and committed before it is made, and repeated byte for byte.
create table provider_call (
    id         bigint generated always as identity primary key,
    attempt_id uuid not null references attempt,
    refund_id  uuid,                         -- what a call of op refund asks for
    op         text not null,
    path       text not null,
    idem_key   text,                         -- null for reads
    body       bytea not null,
    state      text not null,
    sends      integer not null default 0,
    sent_at    timestamptz,                  -- the last time
    http       integer,
    answer     jsonb,
    request_id text,
    replayed   boolean not null default false,
    created_at timestamptz not null,
    constraint provider_call_op_known check (op in ('create', 'confirm', 'get', 'capture', 'cancel', 'refund', 'list_refunds')),
    constraint provider_call_state_known check (state in ('prepared', 'sent', 'answered', 'unknown')),
    constraint provider_call_key_once unique (idem_key)
);
create index provider_call_of_attempt on provider_call (attempt_id, id);

-- Why no new attempt may begin. A row that is not reopened closes the gate; captures, voids,
-- refunds and looks go on.
create table checkout_gate (
    id          bigint generated always as identity primary key,
    reason      text not null,
    detail      text not null default '',
    by_person   boolean not null,            -- only a person may reopen it
    closed_at   timestamptz not null,
    reopened_at timestamptz,
    reopened_by text
);
create unique index checkout_gate_one_reason on checkout_gate (reason) where reopened_at is null;

-- The client's own key for paying: the same key and body find the same attempt.
create table client_request (
    order_id   uuid not null references "order",
    key        text not null,
    body_hash  bytea not null,
    attempt_id uuid not null references attempt,
    created_at timestamptz not null,
    primary key (order_id, key),
    constraint client_request_key_length check (length(key) between 1 and 255)
);

-- Stored before it is answered; applied by asking the provider. A webhook is a hint.
create table webhook_event (
    event_id    text primary key,
    type        text not null,
    object_id   text,
    livemode    boolean not null,
    raw         bytea not null,
    header      text not null,
    received_at timestamptz not null,
    next_try_at timestamptz not null,        -- what is about nothing of ours (yet) is tried again
    done_at     timestamptz,
    outcome     text
);
create index webhook_event_open on webhook_event (next_try_at) where done_at is null;

create table refund (
    id           uuid primary key,
    attempt_id   uuid not null references attempt,
    amount_minor bigint not null,
    state        text not null,
    provider_id  text,
    reason       text not null,
    created_at   timestamptz not null,
    constraint refund_provider_once unique (provider_id),
    constraint refund_amount_positive check (amount_minor > 0),
    constraint refund_state_known check (state in ('pending', 'accepted', 'succeeded', 'failed'))
);
create index refund_of_attempt on refund (attempt_id);

-- The key that ticket codes are signed with. The public half is what a door needs.
create table ticket_key (
    id          smallint primary key,
    secret      bytea not null,
    public      bytea not null,
    created_at  timestamptz not null,
    retired_at  timestamptz,
    constraint ticket_key_lengths check (length(secret) = 32 and length(public) = 32)
);

-- One a seat. Made when the order is confirmed, valid once the money is captured.
-- The id is 128 bits of chance, and is what the code carries.
create table ticket (
    id         uuid primary key,
    order_id   uuid not null references "order",
    event_id   bigint not null,
    seat_no    integer not null,
    code       text not null,
    state      text not null,
    created_at timestamptz not null,
    constraint ticket_code_once unique (code),
    constraint ticket_state_known check (state in ('pending', 'valid', 'void'))
);
create index ticket_of_order on ticket (order_id);
create unique index ticket_one_per_seat on ticket (event_id, seat_no) where state <> 'void';
