-- Whoever has tickets of an event is told when its date or its doors change, whichever verb changed them: a command,
-- a file, a person with psql. What the mail says is decided when it is sent. Its occasion is when the event was to
-- begin and to open its doors as the buyer was told last, and the moment of the change: one that is still waiting
-- tells of later changes too, and tells nothing if all is as it was.
alter table mail
    drop constraint mail_kind_known,
    add constraint mail_kind_known check (kind in
        ('tickets', 'reissued', 'refunded', 'payment_due', 'event_cancelled', 'event_moved', 'check_address'));

create function event_tells_that_it_moved() returns trigger language plpgsql as $$
begin
    insert into mail (order_id, kind, occasion, next_try_at, created_at)
    select o.id, 'event_moved',
           floor(extract(epoch from old.starts_at)) || ' ' || coalesce(floor(extract(epoch from old.doors_at))::text, '-')
               || ' ' || (extract(epoch from db_clock()) * 1000)::bigint,
           db_clock(), db_clock()
    from "order" o join buyer b on b.id = o.buyer_id
    where o.event_id = new.id and b.account_id is not null
      and exists (select from ticket t where t.order_id = o.id and t.state = 'valid')
      -- One that is not being sent right now is decided later than this.
      and not exists (select from mail m where m.order_id = o.id and m.kind = 'event_moved' and m.state = 'queued'
                        and (m.leased_until is null or m.leased_until <= db_clock()))
    on conflict on constraint mail_once do nothing;
    return null;
end $$;

create trigger event_tells_that_it_moved after update of starts_at, doors_at on event
    for each row when ((old.starts_at, old.doors_at) is distinct from (new.starts_at, new.doors_at))
    execute function event_tells_that_it_moved();
