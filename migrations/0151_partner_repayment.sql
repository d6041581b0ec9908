-- What a partner paid before something of it went back, the house pays back: a payment below zero, and out of a drawer where
-- it is cash.
alter table partner_payment
    drop constraint partner_payment_amount_bounded,
    add constraint partner_payment_amount_bounded check (amount_minor <> 0 and abs(amount_minor) <= 999999999);

insert into audit_verb values ('partner_repay');
