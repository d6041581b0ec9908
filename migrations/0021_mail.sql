-- Mail: what happened to an order and its buyer should know. Who it goes to, in which language, and
-- whether there is anything to say at all is decided when it is sent, so none of that is kept here.

-- What a buyer reads on paper and in mail. The page sets it; a browser's wish is the first guess.
alter table account add column language text not null default 'en',
    add constraint account_language_known check (language in ('en', 'ja', 'ko'));

create table mail (
    id           bigint generated always as identity primary key,
    order_id     uuid not null references "order",
    kind         text not null,
    occasion     text not null default '',   -- which of several of a kind: a refund, a reissued ticket, a wish to have it again
    state        text not null default 'queued',
    tries        integer not null default 0,
    next_try_at  timestamptz,                -- null: it is decided
    leased_until timestamptz,                -- a worker is at it; a crashed one loses it at this time
    tried_at     timestamptz,                -- the last time; what the rate is counted by
    last_error   text,
    created_at   timestamptz not null,
    decided_at   timestamptz,
    -- One mail an event of an order, however often and by however many it is asked for.
    constraint mail_once unique (order_id, kind, occasion),
    constraint mail_kind_known check (kind in ('tickets', 'reissued', 'refunded', 'payment_due', 'event_cancelled')),
    constraint mail_state_known check (state in ('queued', 'sent', 'dropped', 'dead')),
    constraint mail_queued_has_time check ((state = 'queued') = (next_try_at is not null))
);
create index mail_due on mail (next_try_at) where state = 'queued';
create index mail_tried on mail (tried_at) where tried_at is not null;
create index mail_dead on mail (id) where state = 'dead';
