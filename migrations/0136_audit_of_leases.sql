-- A lease gives seats to one machine, and a write-off takes the risk that it sold them: who did so is in the log like
-- everything else that people do. Written here, so that no verb can forget it. A terminal that gives back what it did not
-- sell does so by itself: then it is the terminal that is named.
insert into audit_verb values ('lease_grant'), ('lease_close'), ('lease_write_off'), ('journal_seen');

create function audit_lease() returns trigger language plpgsql as $$
declare
    begins constant boolean := tg_op = 'INSERT';
begin
    insert into audit (at, verb, actor, terminal_id, event_id, detail, reason)
    select case when begins then new.granted_at else new.ended_at end,
           case when begins then 'lease_grant' when new.state = 'written_off' then 'lease_write_off' else 'lease_close' end,
           case when begins then new.granted_by else new.ended_by end,
           coalesce(acting_terminal(), t.id), new.event_id, format('lease %s of %s', new.id, t.name),
           coalesce(new.reason, case when begins then 'seats to sell without a network' else 'what was not sold goes back' end)
    from terminal t where t.id = new.terminal_id;
    return null;
end $$;
create trigger audit_lease_begins after insert on lease for each row execute function audit_lease();
create trigger audit_lease_ends after update of state on lease for each row
    when (old.state = 'open' and new.state <> 'open') execute function audit_lease();

create function audit_journal_seen() returns trigger language plpgsql as $$
begin
    insert into audit (at, verb, actor, terminal_id, event_id, detail, reason)
    select new.seen_at, 'journal_seen', new.seen_by, coalesce(acting_terminal(), t.id),
           (select e.id from event e where e.id = new.event_id), format('sale %s of %s', new.seq, t.name), left(new.seen_note, 500)
    from terminal t where t.id = new.terminal_id;
    return null;
end $$;
create trigger audit_journal_seen after update of seen_at on journal_entry for each row
    when (old.seen_at is null and new.seen_at is not null) execute function audit_journal_seen();
