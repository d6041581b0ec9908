-- Consignment: seats of one event that a partner (an agency, a fan club, a school) sells elsewhere, until a cut-off. What it
-- reports sold is an order that it owes for; what it gives back is on sale again, and at the cut-off the rest is by itself.

create table partner (
    id          uuid primary key,               -- of the request that added it: sent again, it is the same one
    code        text not null,                  -- the house's own: what stands on a statement
    name        text not null,
    contact     text not null default '',       -- whom to call; a person's, so that no log repeats it
    made_by     text not null,
    terminal_id uuid not null references terminal,
    made_at     timestamptz not null,
    constraint partner_code_once unique (code),
    constraint partner_code_shape check (code ~ '^[A-Z0-9-]{1,20}$'),
    constraint partner_name_length check (length(name) between 1 and 200),
    constraint partner_contact_length check (length(contact) <= 200)
);

-- A partner is a buyer of its own for each consignment and each of its sales: a buyer has one live hold of an event.
alter table buyer
    add column partner_id uuid references partner,
    drop constraint buyer_is_somebody,
    add constraint buyer_is_somebody check (num_nonnulls(account_id, terminal_id, partner_id) = 1);
create index buyer_of_partner on buyer (partner_id) where partner_id is not null;

-- A consignment is a hold with a name and a release time, like seats that are put aside: its seats have one owner by what
-- holds for every hold, and at the cut-off they are free by the database's clock, whoever sweeps or does not.
create table consignment (
    id          uuid primary key,               -- of the request, too
    hold_id     uuid not null references hold,
    partner_id  uuid not null references partner,
    event_id    bigint not null references event,
    until       timestamptz not null,           -- the hold's held_until, which never changes
    note        text not null,
    body_hash   bytea not null,
    made_by     text not null,
    staff_id    uuid default acting_staff() references staff,
    terminal_id uuid not null references terminal,
    made_at     timestamptz not null,
    constraint consignment_hold_once unique (hold_id),
    constraint consignment_note_length check (length(note) between 1 and 500)
);
create index consignment_of_event on consignment (event_id, made_at);

-- What becomes of each seat. One that is out when the cut-off comes has returned by itself: nothing writes that down, and
-- so nothing can be late with it.
create table consignment_seat (
    consignment_id uuid not null references consignment,
    seat_no        integer not null,
    state          text not null default 'out',
    order_id       uuid references "order",
    changed_at     timestamptz,
    primary key (consignment_id, seat_no),
    constraint consignment_seat_state_known check (state in ('out', 'sold', 'returned')),
    constraint consignment_seat_order_is_told check ((state = 'sold') = (order_id is not null)),
    constraint consignment_seat_change_is_told check ((state = 'out') = (changed_at is null))
);
create function consignment_seat_ends_once() returns trigger language plpgsql as $$
begin
    raise exception 'seat % of consignment % is %', old.seat_no, old.consignment_id, old.state
        using errcode = 'check_violation', constraint = 'consignment_seat_ends_once', table = 'consignment_seat';
end $$;
create trigger consignment_seat_ends_once before update on consignment_seat for each row
    when (old.state <> 'out') execute function consignment_seat_ends_once();

-- What a partner reported sold, once a request.
create table consignment_sale (
    id             uuid primary key,
    consignment_id uuid not null references consignment,
    order_id       uuid not null references "order",
    body_hash      bytea not null,
    sold_at        timestamptz not null,
    constraint consignment_sale_order_once unique (order_id)
);

-- Nobody checks a consignment out: what is sold of it leaves its hold first. Whoever knows the hold's id is refused here,
-- whatever the code above it forgot.
create function consignment_is_not_ordered() returns trigger language plpgsql as $$
begin
    if exists (select from consignment where hold_id = new.hold_id) then
        raise exception 'hold % is consigned', new.hold_id
            using errcode = 'check_violation', constraint = 'consignment_is_not_ordered', table = 'order';
    end if;
    return new;
end $$;
create trigger consignment_is_not_ordered before insert on "order" for each row execute function consignment_is_not_ordered();

-- What pays for such an order is the partner's account. It goes back there: what is given back is owed no more.
alter table tender
    drop constraint tender_kind_known,
    add constraint tender_kind_known check (kind in ('card', 'cash', 'comp', 'voucher', 'exchange', 'account'));
alter table refund
    drop constraint refund_kind_known,
    add constraint refund_kind_known check (kind in ('card', 'cash', 'comp', 'voucher', 'account'));
-- And only a partner has one.
create function account_is_a_partners() returns trigger language plpgsql as $$
begin
    if not exists (select from "order" o join buyer b on b.id = o.buyer_id
                   where o.id = new.order_id and b.partner_id is not null) then
        raise exception 'order % is no partner''s', new.order_id
            using errcode = 'check_violation', constraint = 'account_is_a_partners', table = 'tender';
    end if;
    return new;
end $$;
create trigger account_is_a_partners before insert on tender for each row
    when (new.kind = 'account') execute function account_is_a_partners();

-- What a partner paid of what it owes for an event. Cash lies in the drawer of the shift whose move it is.
create table partner_payment (
    id            uuid primary key,             -- of the request
    partner_id    uuid not null references partner,
    event_id      bigint not null references event,
    amount_minor  bigint not null,
    currency      text not null,
    way           text not null,
    reference     text not null,                -- of the transfer, or the receipt: what is found in the books by it
    shift_move_id bigint references shift_move,
    made_by       text not null,
    staff_id      uuid default acting_staff() references staff,
    terminal_id   uuid not null references terminal,
    made_at       timestamptz not null,
    constraint partner_payment_amount_bounded check (amount_minor between 1 and 999999999),
    constraint partner_payment_way_known check (way in ('transfer', 'cash')),
    constraint partner_payment_cash_in_drawer check ((way = 'cash') = (shift_move_id is not null)),
    constraint partner_payment_move_once unique (shift_move_id),
    constraint partner_payment_reference_length check (length(reference) between 1 and 200)
);
create index partner_payment_of_event on partner_payment (event_id, partner_id);

insert into audit_verb values
    ('partner_add'), ('partner_pay'), ('consign'), ('consign_return'), ('sale_account');

create or replace function audit_tender() returns trigger language plpgsql as $$
begin
    if acting_staff() is not null then
        insert into audit (at, verb, actor, terminal_id, event_id, detail, reason)
        select m.created_at, 'sale_' || m.kind, acting_name(), acting_terminal(), o.event_id,
               format('order %s, %s %s', o.code, m.amount_minor, o.currency), left(coalesce(m.reason, 'a sale'), 500)
        from made m join "order" o on o.id = m.order_id where m.kind in ('cash', 'card', 'comp', 'voucher', 'account');
    end if;
    return null;
end $$;
