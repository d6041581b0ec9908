-- What is kept of a card: who made it and its last four digits, as the provider says them after it has paid.
-- They are what a buyer reads on a receipt and what staff look an order up by. Nothing else of a card is ever here.
alter table attempt
    add column card_brand text,
    add column card_last4 text,
    add constraint attempt_card_brand_short check (length(card_brand) between 1 and 32),
    add constraint attempt_card_last4_digits check (card_last4 ~ '^[0-9]{4}$');
create index attempt_by_last4 on attempt (card_last4) where card_last4 is not null;
