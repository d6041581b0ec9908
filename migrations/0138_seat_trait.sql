-- What a seat is for one performance, where that is not what the plan says: a pillar of the set in front of it, a chair
-- taken out for a wheelchair. The plan stays as it is, and so do the other performances.

create table seat_trait (
    event_id bigint not null,
    seat_no  integer not null,
    flags    smallint not null,            -- instead of the plan's: 1 accessible, 2 companion, 4 restricted view
    note     text,                         -- for whoever buys it
    reason   text not null,                -- for staff
    actor    text not null,
    set_at   timestamptz not null,
    primary key (event_id, seat_no),
    foreign key (event_id, seat_no) references event_seat on delete cascade,
    constraint seat_trait_flags_known check (flags between 0 and 7),
    constraint seat_trait_note_length check (length(note) between 1 and 120),
    constraint seat_trait_reason_length check (length(reason) between 1 and 500)
);

-- Hubs keep halls in memory: one that was read before the last change is read again.
alter table event add column traits_version integer not null default 0;

create function seat_traits_changed() returns trigger language plpgsql as $$
begin
    update event set traits_version = traits_version + 1 where id in (select event_id from touched);
    return null;
end $$;
create trigger seat_traits_made after insert on seat_trait
    referencing new table as touched for each statement execute function seat_traits_changed();
create trigger seat_traits_set after update on seat_trait
    referencing new table as touched for each statement execute function seat_traits_changed();
create trigger seat_traits_gone after delete on seat_trait
    referencing old table as touched for each statement execute function seat_traits_changed();

-- A seat's flags for a performance. What the plan alone decides (8: a place to stand) stays.
create function seat_flags(plan smallint, trait smallint) returns smallint language sql immutable as
    $$ select case when trait is null then plan else (plan & ~7::smallint) | trait end $$;

insert into audit_verb values ('seat_trait');
