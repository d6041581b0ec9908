-- A card at a reader was logged as a sale when it was asked for: one that was declined, or stopped, stood there as sold, and
-- another clerk who was paid afterwards did not. It is logged now when it has paid: in the transaction that sells its order,
-- or that finds an order paid which was due. That is a worker's, so who acted is read from the tender, which is where and
-- by whom the latest card was taken. The cash beside it is written in the same transaction, and was never logged.
create or replace function audit_tender() returns trigger language plpgsql as $$
begin
    insert into audit (at, verb, actor, terminal_id, staff_id, event_id, detail, reason)
    select m.created_at, 'sale_' || m.kind,
           case when acting_staff() is null then format('%s at %s', s.name, t.name) else acting_name() end,
           m.terminal_id, m.staff_id, o.event_id,
           format('order %s, %s %s', o.code, m.amount_minor, o.currency), left(coalesce(m.reason, 'a sale'), 500)
    from made m join "order" o on o.id = m.order_id
         join staff s on s.id = m.staff_id join terminal t on t.id = m.terminal_id
    where m.kind in ('cash', 'comp', 'voucher', 'account');
    return null;
end $$;

-- Only of readers: what people pay on the page is in their orders. Looked at as the transaction ends, since a reader may
-- take a card whose order comes to nothing: that money goes back, and was no sale.
create function audit_card() returns trigger language plpgsql as $$
begin
    insert into audit (at, verb, actor, terminal_id, staff_id, event_id, detail, reason)
    select new.updated_at, 'sale_card', format('%s at %s', s.name, t.name), m.terminal_id, m.staff_id, o.event_id,
           format('order %s, %s %s', o.code, new.amount_minor, o.currency), 'a sale'
    from tender m join "order" o on o.id = m.order_id
         join staff s on s.id = m.staff_id join terminal t on t.id = m.terminal_id
    where m.id = new.tender_id and o.state in ('confirmed', 'payment_due');
    return null;
end $$;
create constraint trigger audit_card after update of state on attempt
    deferrable initially deferred for each row
    when (new.reader_id is not null
          and new.state in ('capture_pending', 'capture_unknown', 'captured')
          and old.state not in ('capture_pending', 'capture_unknown', 'captured', 'capture_failed'))
    execute function audit_card();
