-- Several houses may sell through one account of a payment provider: each is an installation, and touches what is its own.

-- Made once; written into everything that is asked of the provider. A copy of this database that is not to be the
-- same house needs another: `fullhouse installation new`.
create table installation (
    only_one boolean primary key default true,
    id       uuid not null default gen_random_uuid(),
    made_at  timestamptz not null default clock_timestamp(),
    constraint installation_only_one check (only_one)
);
insert into installation default values;
create function installation_id() returns uuid language sql stable as 'select id from installation';

-- Whose an attempt is. One of before the copy is driven by the house that it was copied from, and by nobody else.
alter table attempt add column installation uuid not null default installation_id();

alter table provider_intent add column installation uuid; -- as its metadata says

-- Whether an intent is ours to touch: an attempt that knows it decides; else what its metadata says; and of one that says
-- nothing, whether others use the account as well.
create function intent_is_ours(pi text, house uuid, account_shared boolean) returns boolean language sql stable as $$
    select coalesce((select a.installation = installation_id() from attempt a where a.pi_id = pi),
                    house = installation_id(), not account_shared)
$$;
