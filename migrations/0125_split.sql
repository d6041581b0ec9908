-- A customer pays a part in cash, the rest by card. While the card is asked nothing of the cash is in the books: it lies
-- on the counter, and goes back to the customer if the card declines. It goes into the drawer in the transaction that
-- sells (checkout::confirm), at the terminal and by the clerk who began the payment.
alter table attempt
    add column cash_minor bigint not null default 0, -- what lies beside the card; the card pays the rest
    add constraint attempt_cash_bounded check (cash_minor between 0 and 999999999);
alter table tender
    add column attempt_id uuid references attempt, -- of cash: the card beside which it was taken; null: cash alone
    add constraint tender_beside_card_is_cash check (attempt_id is null or kind = 'cash'),
    add constraint tender_beside_card_once unique (attempt_id);

-- What an order has still to be paid with, in minor units: its total, less the order that it was exchanged for, less the
-- cash that was taken beside a card which could not be charged.
create function order_due_minor(of_order "order") returns bigint language sql stable as $$
    select of_order.total_minor - of_order.credit_minor
         - coalesce((select sum(amount_minor) from tender where order_id = of_order.id and attempt_id is not null), 0)::bigint
$$;

-- The cash needs a drawer, of its currency, before the card is asked: the shift's row is held until the attempt is there.
create function attempt_cash_in_drawer() returns trigger language plpgsql as $$
begin
    perform drawer_of(acting_terminal(), true, new.currency);
    return new;
end $$;
create trigger attempt_cash_in_drawer before insert on attempt for each row
    when (new.cash_minor > 0) execute function attempt_cash_in_drawer();

-- And the drawer stays open until the card has decided: a sale must never find it closed.
create function shift_waits_for_cash() returns trigger language plpgsql as $$
begin
    if exists (select from attempt a join tender t on t.id = a.tender_id
               where t.terminal_id = new.terminal_id and a.cash_minor > 0
                 and a.state in ('new', 'ready', 'confirming', 'action_required', 'auth_unknown', 'authorised')) then
        raise exception 'cash lies beside a card that has not decided, at terminal %', new.terminal_id
            using errcode = 'check_violation', constraint = 'shift_waits_for_cash', table = 'shift';
    end if;
    return new;
end $$;
create trigger shift_waits_for_cash before update on shift for each row
    when (old.closed_at is null and new.closed_at is not null) execute function shift_waits_for_cash();
