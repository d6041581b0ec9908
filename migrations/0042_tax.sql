-- The tax that is contained in what is charged. An event says its name and rate, or nothing at all;
-- an order keeps what it was bought under.

-- Of `amount` minor units, tax included at `milli_percent` (19000: 19 %), the part that is tax: rounded half up.
create function tax_within(amount bigint, milli_percent int) returns bigint language sql immutable parallel safe
return (2 * amount * milli_percent + 100000 + milli_percent) / (2 * (100000 + milli_percent)::bigint);

alter table event
    add column tax_name text check (char_length(tax_name) between 1 and 40),
    add column tax_milli_percent int check (tax_milli_percent between 0 and 100000),
    add constraint event_tax_whole check ((tax_name is null) = (tax_milli_percent is null));

alter table "order" add column tax_name text;

-- Rounded line by line; an order's tax is the sum. What goes back of a line takes its share of the line's
-- tax along, counted over all that went back so far: with the last of the line, all of its tax is back.
alter table order_line
    add column tax_milli_percent int check (tax_milli_percent between 0 and 100000),
    add column tax_minor bigint generated always as (tax_within(amount_minor, tax_milli_percent)) stored,
    add column tax_refunded_minor bigint generated always as (
        case when amount_minor = 0 then tax_within(0, tax_milli_percent)
             else tax_within(amount_minor, tax_milli_percent) * refunded_minor / amount_minor end) stored;
