-- What joining and admission need beside the tables of 0050.

-- A solved challenge is good for one entry: whoever has left and joins again solves another.
alter table line_entry add column challenge_nonce bytea;

-- A pause costs nobody their grace: it counts from here if it was called before.
alter table line add column resumed_at timestamptz;

-- Mail about an account: the link that checks its address.
alter table mail
    alter column order_id drop not null,
    add column account_id uuid references account on delete cascade,
    drop constraint mail_kind_known,
    add constraint mail_kind_known
        check (kind in ('tickets', 'reissued', 'refunded', 'payment_due', 'event_cancelled', 'check_address')),
    add constraint mail_about_one check (num_nonnulls(order_id, account_id) = 1);
create unique index mail_account_once on mail (account_id, kind, occasion) where account_id is not null;

-- A pass ends with the order that it was for, in the order's own transaction, whichever verb completed it:
-- the place inside is free the moment that the order is complete.
create function pass_over_with_order() returns trigger language plpgsql as $$
declare
    over_number bigint;
begin
    update pass p set ended_at = db_clock(), ended_why = 'complete'
    from buyer b
    where b.id = new.buyer_id and p.event_id = new.event_id and p.account_id = b.account_id and p.ended_at is null
    returning p.number into over_number;
    if over_number is not null then
        update line_entry set left_at = db_clock()
        where event_id = new.event_id and number = over_number and lapsed_at is null and left_at is null;
    end if;
    return null;
end $$;
create trigger pass_over_with_order after update on "order" for each row
    when (old.state <> 'confirmed' and new.state = 'confirmed') execute function pass_over_with_order();
