-- Who leaves and joins again before their place was called takes their entry up again: made anew each time, one account
-- could fill a draw with entries that nobody stands behind. Each join uses a challenge, and all that an entry was joined
-- with are kept, one after the other: which ones were used, and how often an account has joined, is read from them.
alter table line_entry add constraint line_entry_challenges_whole check (length(challenge_nonce) % 16 = 0);
comment on column line_entry.challenge_nonce is 'of each time that this entry was joined, 16 bytes each, in order';
