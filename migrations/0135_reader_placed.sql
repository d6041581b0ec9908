-- Where a card reader stands decides at which counter people's cards are held to it: whoever moves one is in the log, too.
insert into audit_verb values ('terminal_reader');
