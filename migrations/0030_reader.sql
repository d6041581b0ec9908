-- A card that is held to a reader at a counter, instead of one whose number was typed.

alter table attempt
    add column reader_id text,                -- the provider's reader that collects it; null: no reader
    add column stop_requested boolean not null default false, -- the clerk wants the reader to stop
    add constraint attempt_reader_length check (length(reader_id) between 1 and 255);

-- Telling a reader to stop is a call of its own: written down before it is made, like the others.
alter table provider_call
    drop constraint provider_call_op_known,
    add constraint provider_call_op_known
        check (op in ('create', 'confirm', 'get', 'capture', 'cancel', 'refund', 'list_refunds', 'stop_reader'));
