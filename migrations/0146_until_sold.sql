-- Seats that are kept off sale until the others are sold: standing room, most of all. They are blocked like any others, and
-- wait for a rule; once nothing else of the event is left they go on sale by themselves, once.

create table until_sold (
    id           uuid primary key,           -- of the request that made it: sent again, it is the same one
    event_id     bigint not null references event,
    body_hash    bytea not null,
    reason       text not null,
    made_by      text not null,
    staff_id     uuid default acting_staff() references staff,
    terminal_id  uuid not null references terminal,
    made_at      timestamptz not null,
    ended_at     timestamptz,
    ended_by     text,
    outcome      text,
    seats_opened integer,                    -- put on sale as it ended
    constraint until_sold_reason_length check (length(reason) between 1 and 500),
    -- sold_out: by itself; on_sale: somebody did not want to wait; dropped: its seats stay blocked
    constraint until_sold_outcome_known check (outcome in ('sold_out', 'on_sale', 'dropped')),
    constraint until_sold_end_is_told check (
        num_nonnulls(ended_at, ended_by, outcome, seats_opened) in (0, 4)),
    constraint until_sold_dropped_opens_nothing check (outcome <> 'dropped' or seats_opened = 0)
);
create index until_sold_waits on until_sold (event_id) where ended_at is null;

-- A seat that waits is blocked, and its own row says for which rule: whoever blocks, kills, revives or frees it writes
-- this as well, so that a rule opens nothing that somebody has put to another use since. No index: a hold's update stays
-- as cheap as it was, and whoever asks for a rule's seats reads one event's.
alter table event_seat
    add column until_sold_id uuid,
    add constraint seat_waiting_is_blocked check (until_sold_id is null or (status = 3 and lease_id is null));

-- It begins to wait for a rule of its own event, while that goes on. As of a lease the condition is the trigger's own: a
-- batch of holds pays a comparison a row and no call.
create function seat_waits_for_a_rule() returns trigger language plpgsql as $$
begin
    if not exists (select from until_sold u where u.id = new.until_sold_id and u.event_id = new.event_id and u.ended_at is null)
    then
        raise exception 'seat % of event % waits for no rule of it', new.seat_no, new.event_id
            using errcode = 'check_violation', constraint = 'seat_waits_for_a_rule', table = 'event_seat';
    end if;
    return new;
end $$;
create trigger seat_waits_for_a_rule before update on event_seat for each row
    when (new.until_sold_id is not null and new.until_sold_id is distinct from old.until_sold_id)
    execute function seat_waits_for_a_rule();

-- A rule ends once, whichever hub is first, and leaves no seat that waits for it.
create function until_sold_ends_once() returns trigger language plpgsql as $$
begin
    if old.ended_at is not null or exists (
        select from event_seat s where s.event_id = old.event_id and s.until_sold_id = old.id and new.ended_at is not null)
    then
        raise exception 'rule % has ended, or its seats wait still', old.id
            using errcode = 'check_violation', constraint = 'until_sold_ends_once', table = 'until_sold';
    end if;
    return new;
end $$;
create trigger until_sold_ends_once before update on until_sold for each row execute function until_sold_ends_once();

-- In a seat's story, and by the trigger of notes in the log.
alter table seat_note
    drop constraint seat_note_verb_known,
    add constraint seat_note_verb_known check (verb in ('block', 'unblock', 'kill', 'revive', 'wait'));
insert into audit_verb values ('seat_wait'), ('until_sold');
