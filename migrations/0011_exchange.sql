-- A seat that is exchanged for another of the same event: one transaction, one row. A price
-- difference is a tender or a refund of its own.
create table order_exchange (
    id               uuid primary key,
    order_id         uuid not null references "order",
    key              text not null,
    body_hash        bytea not null,
    from_seats       integer[] not null,
    to_seats         integer[] not null,
    difference_minor bigint not null,        -- what the buyer paid more; below 0: what went back
    reason           text not null,
    actor            text not null,
    created_at       timestamptz not null,
    constraint order_exchange_key_once unique (order_id, key),
    constraint order_exchange_is_one_to_one check (cardinality(from_seats) = cardinality(to_seats) and cardinality(from_seats) > 0)
);

-- What staff look orders up by.
create index order_line_of_seat on order_line (event_id, seat_no) where seat_no is not null;
create index ticket_by_seat on ticket (event_id, seat_no);
