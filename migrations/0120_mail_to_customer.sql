-- A customer of a kiosk whose tickets did not come out says where to send them. They have no account: the address stands
-- on the one mail that it is for, and is gone with it.

alter table mail add column address text;      -- null: the account's
alter table mail add column language text;
alter table mail
    add constraint mail_address_length check (length(address) between 3 and 254),
    add constraint mail_address_is_of_an_order check (address is null or order_id is not null),
    -- Sent, dropped or given up, it is forgotten: nobody looks for people in a queue.
    add constraint mail_address_forgotten check (address is null or state = 'queued');
