-- A card reader stands at one terminal: no other may have a card held to it.
create table reader (
    id          text primary key,            -- the provider's
    terminal_id uuid not null references terminal,
    enrolled_at timestamptz not null default clock_timestamp(),
    constraint reader_id_shape check (id ~ '^[A-Za-z0-9_]{1,64}$')
);
create index reader_of_terminal on reader (terminal_id);

-- A dead seat comes back to life by a verb of its own, with a reason.
alter table seat_note
    drop constraint seat_note_verb_known,
    add constraint seat_note_verb_known check (verb in ('block', 'unblock', 'kill', 'revive'));
