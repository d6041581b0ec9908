-- A terminal enrols itself with a code that somebody types at it, and is told what it is for.

alter table terminal
    -- Somebody stands behind it and signs in: its verbs name a person, and its cash needs a shift. Terminals of before
    -- go on without; who has a code gets one with.
    add column attended boolean not null default false,
    add column profile  jsonb not null default '{}', -- what it is for: events, languages, times
    add constraint terminal_attended_is_counter check (not attended or role = 'counter'),
    add constraint terminal_profile_is_object check (jsonb_typeof(profile) = 'object');

-- A code that makes one terminal. It is short, because a person types it: so it is good for minutes, and once.
-- Only hashes are kept: a copy of the table enrols nothing.
create table terminal_enrolment (
    id          uuid primary key,
    name        text not null,
    role        text not null,
    code_hash   bytea not null,
    reason      text not null,
    made_by     text not null,
    made_at     timestamptz not null,
    expires_at  timestamptz not null,
    used_at     timestamptz,
    key_hash    bytea,                        -- of the machine that used it: it may ask again, if the answer got lost
    terminal_id uuid references terminal,
    constraint terminal_enrolment_code_once unique (code_hash),
    constraint terminal_enrolment_hashed check (length(code_hash) = 32 and length(key_hash) = 32),
    constraint terminal_enrolment_role_known check (role in ('counter', 'kiosk')),
    constraint terminal_enrolment_name_length check (length(name) between 1 and 60),
    constraint terminal_enrolment_reason_length check (length(reason) between 1 and 500),
    constraint terminal_enrolment_used_by_one check ((used_at is null) = (terminal_id is null))
);
-- A second code for a name takes the first one's place: of two pieces of paper one is lost.
create unique index terminal_enrolment_open_once on terminal_enrolment (name) where used_at is null;

-- The verbs of the log are rows, so that each migration adds its own and none repeats the others'.
create table audit_verb (verb text primary key);
insert into audit_verb values
    ('terminal_lock'), ('terminal_unlock'), ('terminal_rename'), ('terminal_revoke'),
    ('terminal_code'), ('terminal_enrol'), ('terminal_profile');
alter table audit
    drop constraint audit_verb_known,
    add constraint audit_verb_known foreign key (verb) references audit_verb;
