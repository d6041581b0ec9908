-- What people are shown as a doubt, on the list and as an age: said once, since the two must agree.
--
-- A payment that is decided counts while the provider refuses to let go of what it still has of it: nobody gives that up
-- any more, so it has to be seen. One whose money is on its way back is on the list as a refund, perhaps for days.
create function attempt_is_in_doubt(a attempt) returns boolean language sql stable as $$
    select a.unknown_since is not null
        and (a.state not in ('declined', 'voided', 'captured', 'capture_failed', 'refunded', 'refund_failed')
             or (a.state in ('declined', 'voided', 'capture_failed') and a.next_run_at is not null
                 and not exists (select from refund r where r.attempt_id = a.id and r.state in ('pending', 'accepted'))))
$$;

-- Those of before were never said to be over, and nobody looked again.
update attempt set unknown_since = null, tries = 0
where state in ('declined', 'voided', 'capture_failed') and next_run_at is null and unknown_since is not null;
-- And what was given up is taken up again.
update attempt a set next_run_at = clock_timestamp()
where a.state in ('declined', 'voided', 'capture_failed') and a.next_run_at is null and a.pi_id is not null
  and (select c.state <> 'answered' or coalesce(c.http, 0) >= 400 from provider_call c
       where c.attempt_id = a.id and c.op = 'cancel' order by c.id desc limit 1);
