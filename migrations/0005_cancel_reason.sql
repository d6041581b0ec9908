-- Why an order was cancelled: its buyer is told so, and staff who are asked can say it.
-- Orders that were cancelled before this migration have no reason; nobody can tell any more.
alter table "order" add column cancel_reason text;
alter table "order"
    add constraint order_cancel_reason_known
        check (cancel_reason in ('time_over', 'buyer', 'replaced', 'not_paid')),
    add constraint order_reason_is_of_a_cancelled
        check (cancel_reason is null or state = 'cancelled');
