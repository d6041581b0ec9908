-- Who stands where in a line is final, like what its draw has published: a place follows from a number, so whoever could
-- give an entry another number or another account would give away a place, and nothing that is published would show it.
-- Wishes, and how an entry ended, are told later: those columns do not come here.
create function line_entry_is_final() returns trigger language plpgsql as $$
begin
    if tg_op = 'DELETE' then
        raise exception 'an entry stays' using errcode = 'integrity_constraint_violation', constraint = 'line_entry_stays';
    end if;
    if (new.event_id, new.number, new.account_id, new.entry_key, new.joined_at)
           is distinct from (old.event_id, old.number, old.account_id, old.entry_key, old.joined_at) then
        raise exception 'an entry keeps its number, its account and its key'
            using errcode = 'integrity_constraint_violation', constraint = 'line_entry_is_final';
    end if;
    return new;
end $$;
create trigger line_entry_is_final before delete or update of event_id, number, account_id, entry_key, joined_at on line_entry
    for each row execute function line_entry_is_final();
