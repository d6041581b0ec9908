-- What is given back by hand instead of to a card is counted where the money came from, with what went to the card:
-- one cap for both. (`attempt_refund_within_capture`, which `refund_counts` keeps.)
alter table refund
    drop constraint refund_to_card_has_attempt,
    add constraint refund_to_card_has_attempt check (kind <> 'card' or attempt_id is not null);
-- Something that was given back elsewhere may take the place of more than one that failed.
drop index refund_replaces_one;
create index refund_instead_of on refund (replaced_by) where replaced_by is not null;
-- Those of before, as far as the cap allows it.
with by_hand as (
    select b.id, b.tender_id, b.amount_minor, f.attempt_id
    from refund b join refund f on f.replaced_by = b.id
    where b.attempt_id is null and f.attempt_id is not null
), counted as (
    select h.attempt_id, sum(h.amount_minor) as amount_minor
    from by_hand h join attempt a on a.id = h.attempt_id
    group by h.attempt_id, a.captured_minor, a.refunded_minor
    having sum(h.amount_minor) <= a.captured_minor - a.refunded_minor
), named as (
    update refund r set attempt_id = h.attempt_id from by_hand h
    where h.id = r.id and h.attempt_id in (select attempt_id from counted)
), moved as (
    update tender t set refunded_minor = t.refunded_minor - m.amount_minor
    from (select tender_id, sum(amount_minor) as amount_minor from by_hand
          where attempt_id in (select attempt_id from counted) group by tender_id) m
    where m.tender_id = t.id
)
update attempt a set refunded_minor = a.refunded_minor + c.amount_minor from counted c where c.attempt_id = a.id;

-- What a person said who has seen to a finding.
alter table money_finding add column acknowledged_note text;
