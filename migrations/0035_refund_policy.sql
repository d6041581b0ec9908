-- What a buyer may give back by themselves. The event says it; each order keeps what was said when it was
-- bought, so that a later change is not a change of what was promised. Null: nothing.
--   {"until_hours": 48, "keep_percent": 10, "keep_minor": 0, "keep_fees": true}
alter table event add column refund_policy jsonb,
    add constraint event_refund_policy_is_one check (refund_policy is null or refund_policy ? 'until_hours');
alter table "order" add column refund_policy jsonb;
