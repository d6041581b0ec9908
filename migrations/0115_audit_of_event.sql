-- Of which event a deed is, for whoever reads the log of one evening. What was written before has none: the log is
-- never changed.

alter table audit add column event_id bigint references event;
create index audit_of_event on audit (event_id, id) where event_id is not null;

create or replace function audit_seat_note() returns trigger language plpgsql as $$
begin
    if acting_staff() is not null then
        insert into audit (at, verb, actor, terminal_id, event_id, detail, reason)
        select max(created_at), 'seat_' || verb, acting_name(), acting_terminal(), event_id,
               left(format('event %s, seats %s', event_id, string_agg(seat_no::text, ' ' order by seat_no)), 2000), reason
        from made group by event_id, verb, reason;
    end if;
    return null;
end $$;

create or replace function audit_order_note() returns trigger language plpgsql as $$
begin
    if acting_staff() is not null then
        insert into audit (at, verb, actor, terminal_id, event_id, detail, reason)
        select m.created_at, 'order_' || m.verb, acting_name(), acting_terminal(), o.event_id, 'order ' || o.code,
               left(m.text, 500)
        from made m join "order" o on o.id = m.order_id;
    end if;
    return null;
end $$;

create or replace function audit_tender() returns trigger language plpgsql as $$
begin
    if acting_staff() is not null then
        insert into audit (at, verb, actor, terminal_id, event_id, detail, reason)
        select m.created_at, 'sale_' || m.kind, acting_name(), acting_terminal(), o.event_id,
               format('order %s, %s %s', o.code, m.amount_minor, o.currency), left(coalesce(m.reason, 'a sale'), 500)
        from made m join "order" o on o.id = m.order_id where m.kind in ('cash', 'card', 'comp');
    end if;
    return null;
end $$;

create or replace function audit_ticket_print() returns trigger language plpgsql as $$
begin
    if acting_staff() is not null then
        insert into audit (at, verb, actor, terminal_id, event_id, detail, reason)
        select max(m.created_at), 'ticket_print', acting_name(), acting_terminal(), o.event_id,
               format('order %s, %s tickets', o.code, count(*)), left(coalesce(nullif(min(m.reason), ''), 'printed'), 500)
        from made m join "order" o on o.id = m.order_id where m.state = 'sent' group by o.code, o.event_id;
        -- A ticket in another's place was not in the log before: its row is no print.
        insert into audit (at, verb, actor, terminal_id, event_id, detail, reason)
        select m.created_at, 'order_reissue', acting_name(), acting_terminal(), o.event_id,
               format('order %s, ticket %s', o.code, m.ticket_id), left(m.reason, 500)
        from made m join "order" o on o.id = m.order_id where m.state = 'reissued' and m.reason <> '';
    end if;
    return null;
end $$;
