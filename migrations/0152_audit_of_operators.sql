-- The log has what people did, at a terminal or not: an operator, and whoever types a command, gives money back, exchanges,
-- mails and reissues under a name of their own. Workers and buyers say nothing of themselves, and are not in it.
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

create or replace function audit_ticket_print() returns trigger language plpgsql as $$
begin
    if acting_person() then
        insert into audit (at, verb, actor, terminal_id, event_id, detail, reason)
        select max(m.created_at), 'ticket_print', acting_name(), acting_terminal(), o.event_id,
               format('order %s, %s tickets', o.code, count(*)), left(coalesce(nullif(min(m.reason), ''), 'printed'), 500)
        from made m join "order" o on o.id = m.order_id where m.state = 'sent' group by o.code, o.event_id;
        insert into audit (at, verb, actor, terminal_id, event_id, detail, reason)
        select m.created_at, 'order_reissue', acting_name(), acting_terminal(), o.event_id,
               format('order %s, ticket %s', o.code, m.ticket_id), left(m.reason, 500)
        from made m join "order" o on o.id = m.order_id where m.state = 'reissued' and m.reason <> '';
    end if;
    return null;
end $$;

create or replace function audit_mail() returns trigger language plpgsql as $$
begin
    if acting_person() then
        insert into audit (at, verb, actor, terminal_id, event_id, detail, reason)
        select new.created_at, 'ticket_mail', acting_name(), acting_terminal(), o.event_id, 'order ' || o.code,
               case when new.address is null then 'to its buyer again' else 'to an address that was given' end
        from "order" o where o.id = new.order_id;
    end if;
    return null;
end $$;
