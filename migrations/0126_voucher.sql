-- A voucher: so many seats of an event for nothing, for whoever brings its code to a counter. It is promised beforehand
-- (to the press, to an artist's guests) by somebody who may give seats away; the clerk who takes it needs nobody then.

create table voucher (
    id           uuid primary key,              -- of the request that made it: sent again, it is the same one
    event_id     bigint not null references event,
    code_hash    bytea not null,                -- the code itself is known to whoever has it
    seats_max    integer not null,
    recipient    text not null,                 -- for whom
    reason       text not null,
    valid_until  timestamptz not null,          -- not at it, and not after
    made_by      text not null,
    terminal_id  uuid not null references terminal,
    made_at      timestamptz not null,
    withdrawn_at timestamptz,
    withdrawn_by text,
    constraint voucher_code_once unique (code_hash),
    constraint voucher_code_shape check (length(code_hash) = 32),
    constraint voucher_seats_bounded check (seats_max between 1 and 50),
    constraint voucher_recipient_length check (length(recipient) between 1 and 200),
    constraint voucher_reason_length check (length(reason) between 1 and 500),
    constraint voucher_withdrawn_whole check (num_nonnulls(withdrawn_at, withdrawn_by) in (0, 2))
);
create index voucher_of_event on voucher (event_id, made_at);

-- It pays for one order, once, whatever becomes of the order later: who is to come again gets another one.
alter table tender
    add column voucher_id uuid references voucher,
    add constraint tender_voucher_named check ((kind = 'voucher') = (voucher_id is not null)),
    add constraint tender_voucher_once unique (voucher_id);

-- And only what it is for. Its row is held until the sale ends: it is withdrawn before or after, not meanwhile.
create function voucher_pays() returns trigger language plpgsql as $$
declare
    promised voucher;
    bought "order";
    seats bigint;
begin
    select * into promised from voucher where id = new.voucher_id for update;
    select * into bought from "order" where id = new.order_id;
    select count(*) into seats from order_line where order_id = new.order_id and seat_no is not null;
    if promised.withdrawn_at is not null or promised.event_id <> bought.event_id or seats > promised.seats_max
       or promised.valid_until <= new.created_at then
        raise exception 'voucher % does not pay for order %', new.voucher_id, new.order_id
            using errcode = 'check_violation', constraint = 'voucher_pays', table = 'tender';
    end if;
    return new;
end $$;
create trigger voucher_pays before insert on tender for each row
    when (new.voucher_id is not null) execute function voucher_pays();

insert into audit_verb values ('voucher_make'), ('voucher_withdraw'), ('sale_voucher');

create or replace function audit_tender() returns trigger language plpgsql as $$
begin
    if acting_staff() is not null then
        insert into audit (at, verb, actor, terminal_id, event_id, detail, reason)
        select m.created_at, 'sale_' || m.kind, acting_name(), acting_terminal(), o.event_id,
               format('order %s, %s %s', o.code, m.amount_minor, o.currency), left(coalesce(m.reason, 'a sale'), 500)
        from made m join "order" o on o.id = m.order_id where m.kind in ('cash', 'card', 'comp', 'voucher');
    end if;
    return null;
end $$;
