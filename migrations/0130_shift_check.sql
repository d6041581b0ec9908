-- What is tried as a shift begins: a test page is printed, and its code is scanned. Or it is not tried, and why.

create table shift_check (
    id         bigint generated always as identity primary key,
    shift_id   uuid not null references shift,
    what       text not null,
    skipped    text,                          -- why it was not tried, or does not work; null: it works
    staff_id   uuid not null references staff,
    checked_at timestamptz not null,
    constraint shift_check_what_known check (what in ('printer', 'scanner')),
    constraint shift_check_skipped_length check (length(skipped) between 1 and 500)
);
create index shift_check_latest on shift_check (shift_id, what, id); -- the last word about each counts

insert into audit_verb values ('shift_check');
