-- How a card reader is, as its provider said last. A hint for people: no payment is decided by it.

alter table reader
    add column state    text,                 -- null: the provider has not said yet
    add column state_at timestamptz,          -- when it said so
    add column asked_at timestamptz,          -- written before it is asked, so that all hubs together ask once in a while
    add constraint reader_state_known check (state in ('online', 'busy', 'offline', 'unknown')),
    add constraint reader_state_dated check ((state is null) = (state_at is null));
