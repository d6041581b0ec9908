-- A turn is over with its order, also if the pass had run out before the payment was through: else whoever is still
-- within the grace of their call would come in once more, ahead of everybody who waits.
create index pass_of_entry on pass (event_id, number);

create or replace function pass_over_with_order() returns trigger language plpgsql as $$
declare
    account uuid;
begin
    select b.account_id into account from buyer b where b.id = new.buyer_id;
    if account is null then
        return null; -- somebody at a counter
    end if;
    -- As `entry::lock`: a pass that is given at this moment is given before, and ends here, or is refused.
    perform pg_advisory_xact_lock(hashtextextended('pass ' || new.event_id || ' ' || account, 0));
    update pass p set ended_at = db_clock(), ended_why = 'complete'
    where p.event_id = new.event_id and p.account_id = account and p.ended_at is null;
    -- Whoever stands there anew, and was not called since, stays.
    update line_entry n set left_at = db_clock()
    where n.event_id = new.event_id and n.account_id = account and n.lapsed_at is null and n.left_at is null
      and exists (select from pass p where p.event_id = n.event_id and p.number = n.number);
    return null;
end $$;
