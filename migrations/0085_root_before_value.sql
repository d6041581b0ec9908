-- When a draw's root was published. That it was before the public value could be known is what makes a draw verifiable:
-- were no hub running between the closing and the value, whoever has the database would know secret and value before the
-- entries are fixed, and could try entries until the places pleased them. The moment is written down by the database
-- itself, and a value that was out by then is refused: such a draw is made anew, with a value to come.
alter table draw add column rooted_at timestamptz;

-- Of roots from before, the closing is what is known: the root followed it.
update draw set rooted_at = closed_at where root is not null;

create function draw_notes_its_root() returns trigger language plpgsql as $$
begin
    if old.root is not null then
        if new.rooted_at is distinct from old.rooted_at then
            raise exception 'what a draw has published is final'
                using errcode = 'integrity_constraint_violation', constraint = 'draw_is_final';
        end if;
    elsif new.root is not null then
        new.rooted_at := db_clock();
    end if;
    return new;
end $$;
create trigger draw_notes_its_root before update on draw for each row execute function draw_notes_its_root();

alter table draw add constraint draw_root_has_its_time check ((root is null) = (rooted_at is null));
-- Not of draws that are over: they stay as they were, and whoever checks them is told.
alter table draw add constraint draw_root_before_value check (public_value is null or rooted_at < value_due_at) not valid;
