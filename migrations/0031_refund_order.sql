-- A refund moves forward: written down, on its way, arrived, failed after all (which may follow an arrival).

alter table refund
    add column looked_at timestamptz;        -- when the provider's list was asked for it last

-- What is said late (an answer that was stored, a look that somebody slower began) takes nothing back. Only a look may,
-- and it says so.
create function refund_never_goes_back() returns trigger language plpgsql as $$
declare
    places constant text[] := array['pending', 'accepted', 'succeeded', 'failed'];
begin
    if array_position(places, new.state) < array_position(places, old.state)
       and (new.state = 'pending' or new.looked_at is not distinct from old.looked_at) then
        raise exception 'refund %: from % back to %', old.id, old.state, new.state
            using errcode = 'check_violation', constraint = 'refund_never_goes_back', table = 'refund';
    end if;
    return new;
end $$;
create trigger refund_never_goes_back before update of state on refund
    for each row execute function refund_never_goes_back();
