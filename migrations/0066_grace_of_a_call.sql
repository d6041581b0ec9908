-- From when the grace of those who were called runs: from their call, or from the end of a pause that it had not run
-- out before. A pause costs nobody their grace, and gives nobody one back.
alter table line_call add column grace_from timestamptz;
alter table line drop column resumed_at;
