-- The relay reads what its last snapshot did not show: by transaction, not by number. Rows that were
-- deleted stay in the table's pages for as long as any transaction is older than they are, and a read
-- by number would pass all of them, at every tick, beside a transaction that stays open for long.
alter table outbox add column xid xid8 not null default pg_current_xact_id();
create index outbox_by_transaction on outbox (xid);
