//! What the world obeys, and how far it is searched.

use fullhouse::payment::{
    machine::{self, Facts, Key, Missing, RefundState, Said, Seen, State, Step},
    provider::IntentStatus,
};

use super::world::MARGIN_TICKS;

/// What the world obeys. [`Rules::OURS`] are the product's; every other set is one of them broken.
#[derive(Clone, Copy)]
pub struct Rules {
    pub next: fn(State, Seen) -> Option<State>,
    pub plan: fn(&Facts) -> Step,
    pub judge: fn(&Facts, &IntentStatus, bool, bool) -> (Seen, Key),
    pub missing: fn(&Facts) -> Missing,
    pub counts: fn(RefundState, RefundState, Said) -> bool,
    pub margin_ticks: i8,
    /// What is written after a call names the version that it was made for.
    pub version_compare: bool,
    /// So does a call that is written down,
    pub calls_name_their_version: bool,
    /// and it is a version of its own.
    pub calls_supersede: bool,
    /// Whether there is still time is asked once more by the statement that notes a call as sent.
    pub check_at_sending: bool,
    /// A refund that begins after the decision is a version of its own.
    pub refunds_supersede: bool,
    /// So is each thing that is learnt of it.
    pub refund_news_supersede: bool,
    /// So is a cancellation of what is decided.
    pub tidying_supersedes: bool,
    /// Under so many keys it is cancelled at most.
    pub tidies_at_most: u8,
    /// News of a refund are done with only by a look that was begun after them.
    pub news_stay: bool,
    /// A refund that failed and was given back by hand is not begun again.
    pub by_hand_is_seen: bool,
    /// A capture that turns out to have worked after all heals its order only if the money was not given back.
    pub heals_what_is_kept: bool,
    /// `attempt_one_live`
    pub one_live_attempt: bool,
    /// Whether the seat may be sold is found out in the transaction that sells it.
    pub sells_in_one: bool,
    /// The sale looks at the time, after its locks.
    pub sale_reads_the_clock: bool,
}

impl Rules {
    pub const OURS: Rules = Rules {
        next: machine::next,
        plan: machine::plan,
        judge: machine::judge,
        missing: machine::missing,
        counts: machine::counts,
        margin_ticks: MARGIN_TICKS,
        version_compare: true,
        calls_name_their_version: true,
        calls_supersede: true,
        check_at_sending: true,
        refunds_supersede: true,
        refund_news_supersede: true,
        tidying_supersedes: true,
        tidies_at_most: u8::MAX,
        news_stay: true,
        by_hand_is_seen: true,
        heals_what_is_kept: true,
        one_live_attempt: true,
        sells_in_one: true,
        sale_reads_the_clock: true,
    };
}

/// Where a search begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Begin {
    /// The seat is held, and nothing was paid.
    Held,
    /// Money was taken for an order that was not sold (in somebody's dashboard, the hold over): it is to go back. How it came
    /// to that is the other's business, and so there is room for more of what may go wrong from here on.
    ToGiveBack,
    /// The same after the attempt was decided: its capture had failed, and its order was given up.
    TakenLate,
}

/// How far it is searched: the product has no such bounds. Lost requests, lost answers, delays, refusals
/// to serve, deaths of workers and webhooks are not bounded at all.
#[derive(Debug, Clone, Copy)]
pub struct Scope {
    pub begins: Begin,
    pub attempts: u8,
    pub workers: u8,
    /// Answers that the provider failed (500, 400 without a reason), which may cost a key.
    pub failures: u8,
    /// Somebody takes reserved money in the provider's dashboard.
    pub foreign_captures: u8,
    /// Reservations lapse.
    pub lapses: bool,
    /// Refunds fail, at once or later.
    pub refunds_fail: bool,
    /// A day may pass at any time: keys are forgotten.
    pub days: bool,
}
