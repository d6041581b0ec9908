-- How terminals are, as they say themselves; a lock that can be taken off again; and the log of what was done to them.

alter table terminal
    add column locked_at     timestamptz,
    add column locked_reason text,
    add column health        jsonb,              -- what it said last
    add column health_at     timestamptz,        -- and when
    add constraint terminal_name_length check (length(name) between 1 and 200),
    add constraint terminal_lock_has_reason check ((locked_at is null) = (locked_reason is null));

-- Who did what to what, and why: written in the transaction of what was done, and never changed.
create table audit (
    id          bigint generated always as identity primary key,
    at          timestamptz not null,
    verb        text not null,
    actor       text not null,
    terminal_id uuid references terminal,
    detail      text not null default '',
    reason      text not null,
    constraint audit_verb_known check (verb in ('terminal_lock', 'terminal_unlock', 'terminal_rename', 'terminal_revoke')),
    constraint audit_reason_length check (length(reason) between 1 and 500)
);
create index audit_of_terminal on audit (terminal_id, id);

create function audit_stays() returns trigger language plpgsql as $$
begin
    raise exception 'the audit log is only written to' using errcode = 'check_violation', constraint = 'audit_stays', table = 'audit';
end $$;
create trigger audit_stays before update or delete or truncate on audit execute function audit_stays();
