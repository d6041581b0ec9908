-- What the log says of seats is read by people: their names, and no numbers of ours.

-- Seats as people call them, in this order: the first ones, and how many more there are.
create function seat_names(of_event bigint, seat_nos integer[], named_max integer) returns text language sql stable as $$
    select string_agg(name, ', ' order by place)
           || case when cardinality(seat_nos) > named_max
               then format(', %s more', cardinality(seat_nos) - named_max) else '' end
    from (
        select n.place,
               coalesce(nullif(concat_ws(' ', nullif(p.section, ''), nullif(p.row_label, ''), nullif(p.seat_label, '')), ''),
                        'seat number ' || n.seat_no) as name
        from unnest(seat_nos) with ordinality as n(seat_no, place) join event e on e.id = of_event
        left join plan_seat p on p.plan_revision_id = e.plan_revision_id and p.seat_no = n.seat_no
        order by n.place limit named_max
    ) as named
$$;

create or replace function audit_seat_note() returns trigger language plpgsql as $$
begin
    if acting_staff() is not null then
        insert into audit (at, verb, actor, terminal_id, event_id, detail, reason)
        select max(created_at), 'seat_' || verb, acting_name(), acting_terminal(), event_id,
               left(format('%s seats: %s', count(*), seat_names(event_id, array_agg(seat_no order by seat_no), 20)), 2000),
               reason
        from made group by event_id, verb, reason;
    end if;
    return null;
end $$;
