-- The life of a ticket after its issue: how it died, what stands in its place, and every print of it.

alter table ticket add column voided_at timestamptz,
    add column void_reason text,
    add column replaced_by uuid references ticket,
    add constraint ticket_void_is_told check (voided_at is null or state = 'void');
-- What doors ask for: the dead of an event, the latest first.
create index ticket_dead on ticket (event_id, voided_at) where state = 'void';

-- One row a print. A job whose end nobody reported may lie in a printer's buffer: it counts as printed.
create table ticket_print (
    id         uuid primary key,
    ticket_id  uuid not null references ticket,
    order_id   uuid not null references "order",
    state      text not null default 'sent',
    reason     text not null default '',
    actor      text not null,
    created_at timestamptz not null,
    ended_at   timestamptz,
    constraint ticket_print_state_known check (state in ('sent', 'printed', 'failed', 'reissued'))
);
create index ticket_print_of_order on ticket_print (order_id, created_at);
create index ticket_print_of_ticket on ticket_print (ticket_id);
