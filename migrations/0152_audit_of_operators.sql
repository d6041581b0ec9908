-- The log has what people do to orders and seats, at a terminal or not: an operator, and whoever types a command, under a
-- name of their own. (Paper and mail are a counter's.) Workers and buyers say nothing of themselves, and are not in it.
create function acting_person() returns boolean language sql stable as $$
    select acting_staff() is not null
           or (acting_terminal() is null and nullif(current_setting('fullhouse.actor', true), '') is not null)
$$;

create or replace function audit_order_note() returns trigger language plpgsql as $$
begin
    if acting_person() then
        insert into audit (at, verb, actor, terminal_id, event_id, detail, reason)
        select m.created_at, 'order_' || m.verb, acting_name(), acting_terminal(), o.event_id, 'order ' || o.code,
               left(m.text, 500)
        from made m join "order" o on o.id = m.order_id;
    end if;
    return null;
end $$;

-- Seats are called what people call them.
create or replace function audit_seat_note() returns trigger language plpgsql as $$
begin
    if acting_person() then
        insert into audit (at, verb, actor, terminal_id, event_id, detail, reason)
        select max(created_at), 'seat_' || verb, acting_name(), acting_terminal(), event_id,
               left(format('%s seats: %s', count(*), seat_names(event_id, array_agg(seat_no order by seat_no), 20)), 2000),
               reason
        from made group by event_id, verb, reason;
    end if;
    return null;
end $$;
