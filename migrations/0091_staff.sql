-- Who stands at a counter: members of the staff, their sessions at a terminal, and what they did.

create table staff (
    id            uuid primary key,
    name          text not null,
    role          text not null,
    password_hash text not null,
    pin_hash      text,                       -- quicker to type, and good at attended terminals only
    disabled_at   timestamptz,
    created_at    timestamptz not null default clock_timestamp(),
    constraint staff_name_length check (length(name) between 1 and 60),
    constraint staff_role_known check (role in ('clerk', 'supervisor', 'manager'))
);
create unique index staff_name_once on staff (lower(name));

-- Wrong tries at a name in a row, whether there is such a name or not: else a lock would tell which names there are.
create table staff_try (
    name         text primary key,            -- lower case
    failures     integer not null,
    locked_until timestamptz,
    last_at      timestamptz not null
);
create index staff_try_by_age on staff_try (last_at);

-- A session is of one terminal: taken to another it is nobody's. Only the token's hash is kept.
create table staff_session (
    token_hash  bytea primary key,
    staff_id    uuid not null references staff,
    terminal_id uuid not null references terminal,
    created_at  timestamptz not null,
    expires_at  timestamptz not null,
    constraint staff_session_token_hashed check (length(token_hash) = 32)
);
create index staff_session_of_staff on staff_session (staff_id);
create index staff_session_of_terminal on staff_session (terminal_id, created_at);

-- By triggers, because a terminal is locked by operators, by the command line and by whoever comes next.
create function staff_session_ends_with_terminal() returns trigger language plpgsql as $$
begin
    delete from staff_session where terminal_id = new.id;
    return null;
end $$;
create trigger staff_session_ends_with_terminal after update of locked_at, revoked_at on terminal for each row
    when (new.locked_at is distinct from old.locked_at or new.revoked_at is distinct from old.revoked_at)
    execute function staff_session_ends_with_terminal();
create function staff_session_ends_with_staff() returns trigger language plpgsql as $$
begin
    delete from staff_session where staff_id = new.id;
    return null;
end $$;
create trigger staff_session_ends_with_staff after update on staff for each row
    when (new.role <> old.role or new.disabled_at is distinct from old.disabled_at
          or new.password_hash <> old.password_hash or new.pin_hash is distinct from old.pin_hash)
    execute function staff_session_ends_with_staff();

-- Who acts in this transaction. A verb says it once (auth::Actor::acts), and whatever it writes names them: rows by
-- their defaults, the log by its triggers. So no statement can forget it.
create function acting_terminal() returns uuid language sql stable as
    $$ select nullif(current_setting('fullhouse.terminal', true), '')::uuid $$;
create function acting_staff() returns uuid language sql stable as
    $$ select nullif(current_setting('fullhouse.staff', true), '')::uuid $$;
create function acting_name() returns text language sql stable as
    $$ select coalesce(nullif(current_setting('fullhouse.actor', true), ''), 'fullhouse') $$;

alter table tender
    add column terminal_id uuid default acting_terminal() references terminal, -- where it was taken; null: on the page
    add column staff_id    uuid default acting_staff() references staff;
alter table refund
    add column terminal_id uuid default acting_terminal() references terminal, -- where somebody gave it back
    add column staff_id    uuid default acting_staff() references staff;
alter table audit add column staff_id uuid default acting_staff() references staff;
create index audit_of_staff on audit (staff_id, id) where staff_id is not null;

insert into audit_verb values
    ('staff_add'), ('staff_role'), ('staff_password'), ('staff_pin'), ('staff_disable'), ('staff_enable'),
    ('staff_sign_in'), ('staff_sign_out'),
    ('seat_block'), ('seat_unblock'), ('seat_kill'), ('seat_revive'),
    ('order_note'), ('order_refund'), ('order_exchange'), ('order_reissue'), ('order_cancel'),
    ('sale_cash'), ('sale_card'), ('sale_comp'), ('ticket_print');

-- What a person does at a counter is in the log, in the transaction in which it is done.
create function audit_seat_note() returns trigger language plpgsql as $$
begin
    if acting_staff() is not null then
        insert into audit (at, verb, actor, terminal_id, detail, reason)
        select max(created_at), 'seat_' || verb, acting_name(), acting_terminal(),
               left(format('event %s, seats %s', event_id, string_agg(seat_no::text, ' ' order by seat_no)), 2000), reason
        from made group by event_id, verb, reason;
    end if;
    return null;
end $$;
create trigger audit_seat_note after insert on seat_note
    referencing new table as made for each statement execute function audit_seat_note();

create function audit_order_note() returns trigger language plpgsql as $$
begin
    if acting_staff() is not null then
        insert into audit (at, verb, actor, terminal_id, detail, reason)
        select m.created_at, 'order_' || m.verb, acting_name(), acting_terminal(), 'order ' || o.code, left(m.text, 500)
        from made m join "order" o on o.id = m.order_id;
    end if;
    return null;
end $$;
create trigger audit_order_note after insert on order_note
    referencing new table as made for each statement execute function audit_order_note();

create function audit_tender() returns trigger language plpgsql as $$
begin
    if acting_staff() is not null then
        insert into audit (at, verb, actor, terminal_id, detail, reason)
        select m.created_at, 'sale_' || m.kind, acting_name(), acting_terminal(),
               format('order %s, %s %s', o.code, m.amount_minor, o.currency), left(coalesce(m.reason, 'a sale'), 500)
        from made m join "order" o on o.id = m.order_id where m.kind in ('cash', 'card', 'comp');
    end if;
    return null;
end $$;
create trigger audit_tender after insert on tender
    referencing new table as made for each statement execute function audit_tender();

create function audit_ticket_print() returns trigger language plpgsql as $$
begin
    if acting_staff() is not null then
        insert into audit (at, verb, actor, terminal_id, detail, reason)
        select max(m.created_at), 'ticket_print', acting_name(), acting_terminal(),
               format('order %s, %s tickets', o.code, count(*)), left(coalesce(nullif(min(m.reason), ''), 'printed'), 500)
        from made m join "order" o on o.id = m.order_id where m.state = 'sent' group by o.code;
    end if;
    return null;
end $$;
create trigger audit_ticket_print after insert on ticket_print
    referencing new table as made for each statement execute function audit_ticket_print();
