-- What a clerk does for a customer besides selling: seats put aside under a name, a price that is not the list's.

-- Seats that wait for somebody: a hold like any other, with a name and a release time of its own. Any counter sells it.
create table customer_hold (
    hold_id     uuid primary key references hold,
    buyer_id    uuid not null references buyer,
    event_id    bigint not null references event,
    name        text not null,
    note        text not null default '',
    made_by     text not null,
    staff_id    uuid default acting_staff() references staff,
    terminal_id uuid not null references terminal,
    made_at     timestamptz not null,
    constraint customer_hold_buyer_once unique (buyer_id),
    constraint customer_hold_name_length check (length(name) between 1 and 200),
    constraint customer_hold_note_length check (length(note) <= 500)
);
create index customer_hold_of_event on customer_hold (event_id);

-- What the list said, and why it was not that.
alter table order_line
    add column list_minor   bigint,
    add column price_reason text,
    add constraint order_line_price_explained check (
        (list_minor is null) = (price_reason is null) and length(price_reason) between 1 and 500);

insert into audit_verb values ('customer_hold'), ('customer_release'), ('price_override');
