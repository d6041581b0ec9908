-- A ticket that is mailed lets in like one on paper, and paper was in the log: whoever of the staff sends an order's tickets
-- again, or to an address that somebody gives, is there too. The address is not: the log is kept for ever, and addresses
-- are forgotten.
insert into audit_verb values ('ticket_mail');

create function audit_mail() returns trigger language plpgsql as $$
begin
    if acting_staff() is not null then
        insert into audit (at, verb, actor, terminal_id, event_id, detail, reason)
        select new.created_at, 'ticket_mail', acting_name(), acting_terminal(), o.event_id, 'order ' || o.code,
               case when new.address is null then 'to its buyer again' else 'to an address that was given' end
        from "order" o where o.id = new.order_id;
    end if;
    return null;
end $$;
create trigger audit_mail after insert on mail for each row
    when (new.occasion like 'again %' or new.occasion like 'to %') execute function audit_mail();
