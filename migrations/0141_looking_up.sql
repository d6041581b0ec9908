-- What a counter looks up in the middle of a sale is found by an index, in a house with hundreds of thousands of orders as
-- in one with a hundred.

-- A seat by its whole name, as its plan says it ("Stalls 3 12"). The expression is `checkout::find`'s, to the letter.
create index plan_seat_by_name on plan_seat (lower(section || ' ' || row_label || ' ' || seat_label));

-- Orders that are due are looked for every few seconds by every hub; there are a handful, if any.
create index order_due on "order" (payment_due_until) where state = 'payment_due';

-- What a partner reported of a consignment: its statement sums them at each payment, under the event's lock.
create index consignment_sale_of_consignment on consignment_sale (consignment_id);
