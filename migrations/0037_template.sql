-- How an event's tickets look: accent, lines, texts, a logo. Null: as the house's do.
alter table event
    add column ticket_template jsonb,
    add column ticket_logo     bytea,
    add constraint event_ticket_logo_bounded check (octet_length(ticket_logo) between 1 and 262144);

-- People who are forgotten by themselves are looked for by the end of the events that they came to.
alter table account add column forgotten_at timestamptz;
update account set forgotten_at = clock_timestamp() where email like 'forgotten-%@invalid';
