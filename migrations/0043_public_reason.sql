-- Why an event does not take place, as everybody may read it; the reason that staff give stays among them.
alter table event_cancellation
    add column public_reason text,
    add constraint event_cancellation_public_reason_said check (char_length(public_reason) between 1 and 500);
