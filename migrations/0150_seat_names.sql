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
