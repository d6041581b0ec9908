-- Seats of one order become seats of another: of another event, or paid up by card. What the old seats cost
-- is a credit of the new order; only the rest is paid. Until that money is here the old seats stay as they are.

alter table "order"
    add column credit_minor bigint not null default 0,  -- paid already, with the order that it comes from
    add constraint order_credit_within_total check (credit_minor between 0 and total_minor),
    drop constraint order_cancel_reason_known,
    add constraint order_cancel_reason_known
        check (cancel_reason in ('time_over', 'buyer', 'replaced', 'not_paid', 'refunded', 'called_off'));

create table order_swap (
    id            uuid primary key,
    from_order    uuid not null references "order",
    to_order      uuid not null references "order",
    key           text not null,
    body_hash     bytea not null,
    from_seats    integer[] not null,
    value_minor   bigint not null,           -- what the old seats cost
    surplus_minor bigint not null,           -- of that, what the new ones did not need: it goes back
    reason        text not null,
    actor         text not null,
    created_at    timestamptz not null,
    done_at       timestamptz,               -- the old seats are given up, their money belongs to the new order
    dropped_at    timestamptz,               -- the new order came to nothing; the old one is as it was
    constraint order_swap_key_once unique (from_order, key),
    constraint order_swap_to_once unique (to_order),
    constraint order_swap_has_seats check (cardinality(from_seats) > 0),
    constraint order_swap_surplus_within_value check (surplus_minor between 0 and value_minor),
    constraint order_swap_ends_once check (num_nonnulls(done_at, dropped_at) < 2)
);
create index order_swap_open on order_swap (from_order) where done_at is null and dropped_at is null;

-- The money itself does not move: it is a tender of the new order, and missing from the old one.
-- What goes back of it goes back the way it came to the old order.
alter table tender
    drop constraint tender_kind_known,
    add constraint tender_kind_known check (kind in ('card', 'cash', 'comp', 'voucher', 'exchange')),
    drop constraint tender_refund_within_amount,
    add constraint tender_refund_within_amount check (refunded_minor between 0 and greatest(amount_minor, 0)),
    add constraint tender_only_exchange_takes_away check (amount_minor >= 0 or kind = 'exchange');
