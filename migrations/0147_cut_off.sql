-- A consignment's cut-off can be changed while it runs: the hold's time, its seats' and the consignment's are one, and move in
-- one transaction. What has come does not move: the seats may be somebody else's by then.
insert into audit_verb values ('consign_cut_off');
