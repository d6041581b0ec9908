-- How each hub is doing, as it measured it itself: what the pace of the lines follows. One row a hub, written anew
-- every two seconds. Rows that are older than ten do not count, so a hub that is gone is no measure.
create table hub_load (
    hub           uuid primary key,         -- chance, of each start
    at            timestamptz not null,     -- clock_timestamp(): it is about machines, not about the trade
    holds         integer not null,         -- answered since the row before
    hold_p50_ms   integer,                  -- null: none
    hold_p99_ms   integer,
    lock_wait_ms  integer not null,         -- the mean wait of a batch for its event's lock
    write_ms      integer not null,         -- how long the row before took, connection and commit included
    pool_percent  integer not null,         -- connections in use, the mean
    answers       integer not null,
    faults        integer not null,         -- of those, 5xx
    constraint hub_load_counts check (holds >= 0 and faults between 0 and answers),
    constraint hub_load_percent check (pool_percent between 0 and 100),
    constraint hub_load_times check (lock_wait_ms >= 0 and write_ms >= 0)
) with (fillfactor = 20); -- its versions stay on one page
