-- The shift of an attended terminal: a drawer that is opened with a float, counted and closed, and the day's lock.

create table shift (
    id             uuid primary key,
    terminal_id    uuid not null references terminal,
    business_day   date not null,             -- the day in the books: a late show's takings are the evening's
    currency       text not null,             -- of the drawer
    float_minor    bigint not null,
    opened_by      uuid not null references staff,
    opened_at      timestamptz not null,
    closed_by      uuid references staff,
    closed_at      timestamptz,
    z_number       bigint,                    -- 1, 2, 3, … of the terminal
    expected_minor bigint,
    counted_minor  bigint,
    explanation    text,                      -- of a variance, which is kept and never forced to nothing
    report         jsonb,                     -- the Z as it was printed: printed again, it is the same
    constraint shift_currency_shape check (currency ~ '^[A-Z]{3}$'),
    constraint shift_float_bounded check (float_minor between 0 and 999999999),
    constraint shift_closed_whole check (
        num_nonnulls(closed_by, closed_at, z_number, expected_minor, counted_minor, report) in (0, 6)),
    constraint shift_variance_explained check (counted_minor = expected_minor or length(explanation) between 1 and 500),
    constraint shift_z_once unique (terminal_id, z_number)
);
create unique index shift_one_open on shift (terminal_id) where closed_at is null;
create index shift_of_day on shift (business_day);

-- Cash in and out of the drawer without a sale.
create table shift_move (
    id           bigint generated always as identity primary key,
    shift_id     uuid not null references shift,
    key          text not null,
    kind         text not null,
    amount_minor bigint not null,
    reason       text not null,
    staff_id     uuid not null references staff,
    made_at      timestamptz not null,
    constraint shift_move_key_once unique (shift_id, key),
    constraint shift_move_kind_known check (kind in ('drop', 'pay_in', 'pay_out')),
    constraint shift_move_amount_bounded check (amount_minor between 1 and 999999999),
    constraint shift_move_reason_length check (length(reason) between 1 and 500)
);

-- A day whose books are closed: no shift of it opens any more.
create table day_lock (
    day       date primary key,
    locked_at timestamptz not null,
    locked_by text not null,
    staff_id  uuid references staff
);

-- What is closed stays closed: a Z that can change is none.
create function shift_stays_closed() returns trigger language plpgsql as $$
begin
    raise exception 'shift % is closed', old.id using errcode = 'check_violation', constraint = 'shift_stays_closed', table = 'shift';
end $$;
create trigger shift_stays_closed before update or delete on shift for each row
    when (old.closed_at is not null) execute function shift_stays_closed();

-- The open shift of a terminal, held until the transaction ends: closing waits for it, and whoever comes after the
-- closing finds none. So a sale is in the Z, or it is refused. Cash at an attended terminal needs one, of its currency.
create function drawer_of(of_terminal uuid, is_cash boolean, of_currency text) returns uuid language plpgsql as $$
declare
    open_shift shift;
    -- What was sold without a network is in a drawer already: whoever settles it says so.
    settles constant boolean := coalesce(current_setting('fullhouse.settles', true), '') <> '';
begin
    select * into open_shift from shift where terminal_id = of_terminal and closed_at is null for share;
    if not is_cash then
        return open_shift.id;
    end if;
    if open_shift.id is null then
        if not settles and (select attended from terminal where id = of_terminal) then
            raise exception 'no shift is open at terminal %', of_terminal
                using errcode = 'check_violation', constraint = 'shift_required', table = 'shift';
        end if;
    elsif open_shift.currency <> of_currency then
        if settles then
            return null;
        end if;
        raise exception 'the drawer of shift % is in %', open_shift.id, open_shift.currency
            using errcode = 'check_violation', constraint = 'shift_currency', table = 'shift';
    end if;
    return open_shift.id;
end $$;

alter table tender add column shift_id uuid references shift; -- whose drawer it is in, or who sold it
alter table refund add column shift_id uuid references shift; -- whose drawer it came from
create index tender_of_shift on tender (shift_id) where shift_id is not null;
create index refund_of_shift on refund (shift_id) where shift_id is not null;

create function tender_in_shift() returns trigger language plpgsql as $$
begin
    new.shift_id := drawer_of(new.terminal_id, new.kind = 'cash', (select currency from "order" where id = new.order_id));
    return new;
end $$;
create trigger tender_in_shift before insert on tender for each row
    when (new.terminal_id is not null and new.shift_id is null) execute function tender_in_shift();
create function refund_in_shift() returns trigger language plpgsql as $$
begin
    new.shift_id := drawer_of(new.terminal_id, true,
        (select o.currency from tender t join "order" o on o.id = t.order_id where t.id = new.tender_id));
    return new;
end $$;
create trigger refund_in_shift before insert on refund for each row
    when (new.terminal_id is not null and new.kind = 'cash' and new.shift_id is null) execute function refund_in_shift();

insert into audit_verb values
    ('shift_open'), ('shift_close'), ('shift_drop'), ('shift_pay_in'), ('shift_pay_out'), ('day_lock');
