//! Refusals as `application/problem+json`, and the one table of their codes.
//!
//! A code exists only if a client acts on it; `tests/` walks this table, so that none goes unused.

use axum::{
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use serde_json::{Map, Value};

macro_rules! codes {
    ($($(#[$doc:meta])* $variant:ident $code:literal $status:ident $title:literal;)*) => {
        /// What can be refused, by the name that clients know it by.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Code { $($(#[$doc])* $variant),* }

        impl Code {
            pub const ALL: &[Code] = &[$(Code::$variant),*];

            pub fn name(self) -> &'static str {
                match self { $(Code::$variant => $code),* }
            }

            pub fn status(self) -> StatusCode {
                match self { $(Code::$variant => StatusCode::$status),* }
            }

            pub fn title(self) -> &'static str {
                match self { $(Code::$variant => $title),* }
            }
        }
    };
}

codes! {
    BadRequest "bad_request" BAD_REQUEST "The request is not well formed";
    JsonInvalid "json_invalid" BAD_REQUEST "The body is not the JSON that this address takes";
    BodyTooLarge "body_too_large" PAYLOAD_TOO_LARGE "The body is too large";
    NotFound "not_found" NOT_FOUND "There is nothing here";
    MethodNotAllowed "method_not_allowed" METHOD_NOT_ALLOWED "This address does not take that method";
    EventUnknown "event_unknown" NOT_FOUND "There is no such event";
    HoldUnknown "hold_unknown" NOT_FOUND "You have no such hold";
    OrderUnknown "order_unknown" NOT_FOUND "You have no such order";
    NotSignedIn "not_signed_in" UNAUTHORIZED "Sign in first";
    CredentialsWrong "credentials_wrong" UNAUTHORIZED "Name and secret do not match";
    Forbidden "forbidden" FORBIDDEN "You may not do this";
    Csrf "csrf" FORBIDDEN "The request came from another site";
    EmailTaken "email_taken" CONFLICT "There is an account with this address";
    AddressUnchecked "address_unchecked" FORBIDDEN "Show first that you read your mail: we send you a link";
    AddressCodeInvalid "address_code_invalid" BAD_REQUEST "This is not a link that we have sent";
    AddressCodeExpired "address_code_expired" CONFLICT "This link is too old; ask for another";
    LineUnknown "line_unknown" NOT_FOUND "This event has no waiting room";
    LineNotJoining "line_not_joining" CONFLICT "The waiting room is not open yet";
    LineOver "line_over" CONFLICT "The sale has ended, and its waiting room with it";
    LineNotCalled "line_not_called" CONFLICT "It is not your turn yet";
    LinePaused "line_paused" CONFLICT "Nobody is let in for the moment";
    LineExists "line_exists" CONFLICT "This event has a waiting room already";
    LineInvalid "line_invalid" UNPROCESSABLE_ENTITY "This can't be done to this waiting room";
    EntryNone "entry_none" NOT_FOUND "You do not stand in this line";
    EntryLapsed "entry_lapsed" CONFLICT "You were called and did not come in time; join again, at the end";
    PreferencesInvalid "preferences_invalid" UNPROCESSABLE_ENTITY "So many do not fit together";
    ChallengeInvalid "challenge_invalid" BAD_REQUEST "The challenge is not solved";
    ChallengeExpired "challenge_expired" CONFLICT "The challenge is too old; ask for another";
    ChallengeForeign "challenge_foreign" FORBIDDEN "The challenge was given to somebody else, or for another event";
    JoinsTooMany "joins_too_many" TOO_MANY_REQUESTS "This account has joined and left this waiting room too often";
    ChallengeUsed "challenge_used" CONFLICT "The challenge was used before; ask for another";
    PassMissing "pass_missing" FORBIDDEN "This sale has a waiting room: you need its pass";
    PassInvalid "pass_invalid" FORBIDDEN "This is not a pass of ours";
    PassExpired "pass_expired" CONFLICT "Your time inside has run out";
    PassOver "pass_over" CONFLICT "This pass has ended";
    PassMoved "pass_moved" CONFLICT "You went on on another device";
    PassForeign "pass_foreign" FORBIDDEN "This pass was given to somebody else, or for another event";
    EventFullOfHolds "event_full_of_holds" SERVICE_UNAVAILABLE "As many people choose seats as may at once; try again shortly";
    EventFullOfCheckouts "event_full_of_checkouts" SERVICE_UNAVAILABLE "As many people pay as may at once; try again shortly";
    ProofNone "proof_none" NOT_FOUND "There is no such entry in this draw, or its entries are not fixed yet";
    DrawIncomplete "draw_incomplete" INTERNAL_SERVER_ERROR "Entries of this draw are missing here: it can't be checked until they are back";
    DrawsTooMany "draws_too_many" CONFLICT "This line was drawn as often as it may be";
    AccountInvalid "account_invalid" UNPROCESSABLE_ENTITY "The account's details are not valid";
    TooManyRequests "too_many_requests" TOO_MANY_REQUESTS "Too many requests";
    SeatUnknown "seat_unknown" UNPROCESSABLE_ENTITY "The event has no such seat";
    SectionUnknown "section_unknown" UNPROCESSABLE_ENTITY "The event has no such section";
    SeatsEmpty "seats_empty" UNPROCESSABLE_ENTITY "No seat is named";
    SeatsTooMany "seats_too_many" UNPROCESSABLE_ENTITY "More seats than one request may name";
    SeatsRepeated "seats_repeated" UNPROCESSABLE_ENTITY "A seat is named twice";
    SeatsUnavailable "seats_unavailable" CONFLICT "Somebody else was faster";
    NoneTogether "none_together" CONFLICT "There are not that many seats together";
    LimitReached "limit_reached" CONFLICT "That is more than one buyer may have";
    SeatsApart "seats_apart" CONFLICT "The seats of this event are sold side by side";
    SeatsTooFew "seats_too_few" CONFLICT "This event is sold from a smallest party on";
    LeavesSingleSeat "leaves_single_seat" CONFLICT "This would leave a single seat";
    CompanionNeedsAccessible "companion_needs_accessible" CONFLICT "A companion seat goes with its accessible place";
    ChurnSpent "churn_spent" TOO_MANY_REQUESTS "You have taken and returned too many seats; wait a while";
    HoldFrozen "hold_frozen" CONFLICT "A payment for these seats is under way";
    HoldEnded "hold_ended" CONFLICT "The hold has ended";
    SaleNotOpen "sale_not_open" CONFLICT "The sale has not opened yet";
    SaleClosed "sale_closed" CONFLICT "The sale has closed";
    SalePaused "sale_paused" CONFLICT "The sale is paused";
    EventCancelled "event_cancelled" CONFLICT "The event is cancelled";
    SeatsInUse "seats_in_use" CONFLICT "Seats are held or sold";
    SeatsDead "seats_dead" CONFLICT "Seats were given up for good: revive them, with a reason";
    TerminalLocked "terminal_locked" FORBIDDEN "This terminal is locked";
    TerminalUnknown "terminal_unknown" NOT_FOUND "There is no such terminal";
    LeaseUnknown "lease_unknown" NOT_FOUND "There is no such lease";
    LeaseClosed "lease_closed" CONFLICT "The terminal has closed this lease itself";
    LeasesTooMany "leases_too_many" CONFLICT "This terminal has to close a lease first";
    JournalGap "journal_gap" CONFLICT "Sales before this one are missing";
    JournalConflict "journal_conflict" CONFLICT "Another sale was settled under this number";
    JournalUnreadable "journal_unreadable" UNPROCESSABLE_ENTITY "This sale can't be read here; keep it";
    JournalOpen "journal_open" CONFLICT "What was sold of this lease is not settled yet";
    NameTaken "name_taken" CONFLICT "This name is somebody else's";
    StaffRequired "staff_required" UNAUTHORIZED "Somebody of the staff has to sign in at this terminal";
    StaffLocked "staff_locked" LOCKED "Too many wrong tries at this name; try again later";
    StaffUnknown "staff_unknown" NOT_FOUND "There is no such member of the staff";
    CashBesideCard "cash_beside_card" CONFLICT "Cash lies beside a card that has not decided: finish or stop that sale first";
    ShiftRequired "shift_required" CONFLICT "Open a shift first: cash needs a drawer";
    ShiftOpen "shift_open" CONFLICT "A shift is open at this terminal";
    ShiftUnknown "shift_unknown" NOT_FOUND "There is no such shift at this terminal";
    ShiftCurrency "shift_currency" CONFLICT "The drawer of this shift is in another currency";
    DrawerShort "drawer_short" CONFLICT "There is not so much in the drawer";
    VarianceUnexplained "variance_unexplained" UNPROCESSABLE_ENTITY "What was counted is not what should be there: say why";
    LeasesOpen "leases_open" CONFLICT "Seats of this till are leased: give them back first";
    ShiftsOpen "shifts_open" CONFLICT "Shifts of this day are open";
    DayLocked "day_locked" CONFLICT "The books of this day are closed";
    UntilInvalid "until_invalid" UNPROCESSABLE_ENTITY "Seats are put aside for a minute at least, and until the event begins at most";
    RoleTooLow "role_too_low" FORBIDDEN "Somebody with more rights has to do this";
    EnrolmentRefused "enrolment_refused" UNAUTHORIZED "This code enrols nothing (any more)";
    ReaderNotYours "reader_not_yours" FORBIDDEN "This reader was not enrolled at this terminal";
    IdempotencyKeyMissing "idempotency_key_missing" BAD_REQUEST "An Idempotency-Key header of 1 to 255 characters is needed";
    IdempotencyMismatch "idempotency_mismatch" UNPROCESSABLE_ENTITY "This Idempotency-Key was used for another request";
    Busy "busy" SERVICE_UNAVAILABLE "Too busy; try again shortly";
    OrderNotOpen "order_not_open" CONFLICT "The order can't be paid any more";
    AttemptLive "attempt_live" CONFLICT "A payment for this order is under way";
    TooLateToPay "too_late_to_pay" CONFLICT "Too little of the hold is left to start a payment";
    PaymentGateClosed "payment_gate_closed" SERVICE_UNAVAILABLE "Payments are paused";
    TicketTypeUnknown "ticket_type_unknown" UNPROCESSABLE_ENTITY "There is no such ticket type for this seat";
    AmountMismatch "amount_mismatch" UNPROCESSABLE_ENTITY "The order's total is a different one";
    VoucherUnknown "voucher_unknown" NOT_FOUND "No voucher has this code";
    VoucherUsed "voucher_used" CONFLICT "This voucher was used";
    VoucherOver "voucher_over" CONFLICT "This voucher was withdrawn, or its time is over";
    VoucherMismatch "voucher_mismatch" CONFLICT "This voucher is for another event, or for fewer seats";
    PartnerUnknown "partner_unknown" NOT_FOUND "There is no such partner";
    ConsignmentUnknown "consignment_unknown" NOT_FOUND "There is no such consignment";
    ConsignmentOver "consignment_over" CONFLICT "The cut-off has come: what was not sold is on sale again";
    SeatsNotConsigned "seats_not_consigned" CONFLICT "The partner does not have these seats";
    UntilSoldUnknown "until_sold_unknown" NOT_FOUND "No seats wait by this rule";
    UntilSoldOver "until_sold_over" CONFLICT "These seats wait no more";
    NothingLeft "nothing_left" CONFLICT "The others are sold already: there is nothing to wait for";
    OwesLess "owes_less" CONFLICT "Less is owed than that";
    OrderOnAccount "order_on_account" CONFLICT "A partner's account pays for this order: give it back, and sell anew";
    TenderInvalid "tender_invalid" UNPROCESSABLE_ENTITY "This does not pay the order";
    TicketUnknown "ticket_unknown" NOT_FOUND "There is no such ticket";
    TicketNotValid "ticket_not_valid" CONFLICT "The ticket is not valid";
    TicketPrinted "ticket_printed" CONFLICT "The ticket is on paper already, or may be: reissue it";
    TicketsNotReady "tickets_not_ready" CONFLICT "The order has no valid tickets";
    OrderNotPaid "order_not_paid" CONFLICT "The order has no money to give back";
    RefundTooMuch "refund_too_much" CONFLICT "There is not so much left to give back";
    RefundNotAllowed "refund_not_allowed" CONFLICT "This order was bought without a right to give it back";
    SeatPartlyRefunded "seat_partly_refunded" CONFLICT "Part of the seat's price was given back already";
    RefundTooLate "refund_too_late" CONFLICT "It is too late to give this order back";
    RefundNotFailed "refund_not_failed" CONFLICT "This refund needs nobody";
    BooksNotCompared "books_not_compared" CONFLICT "More went back than is known here: compare the books first";
    GateOpensByItself "gate_opens_by_itself" CONFLICT "It opens by itself when it is over";
    SignatureInvalid "signature_invalid" BAD_REQUEST "The signature does not match";
    TooManySockets "too_many_sockets" SERVICE_UNAVAILABLE "This node carries as many maps as it may";
    Internal "internal" INTERNAL_SERVER_ERROR "Something went wrong on our side";
}

/// A refusal: a code, a sentence for people, and what a client needs to act on it.
#[derive(Debug)]
pub struct Problem {
    code: Code,
    detail: Option<String>,
    extra: Map<String, Value>,
    retry_after_s: u32,
}

impl Problem {
    pub fn new(code: Code) -> Self {
        Self { code, detail: None, extra: Map::new(), retry_after_s: 1 }
    }

    pub fn code(&self) -> Code {
        self.code
    }

    /// A sentence for people. Never what the database or a library said.
    pub fn detail(mut self, detail: impl Into<String>) -> Self {
        self.detail = Some(detail.into());
        self
    }

    /// A member of its own, described with the code in `protocol/PROTOCOL.md`.
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.extra.insert(name.to_owned(), value.into());
        self
    }

    /// When trying again makes sense, for the codes that say to try again.
    pub fn retry_after_s(mut self, seconds: u32) -> Self {
        self.retry_after_s = seconds;
        self
    }

    /// Logs what went wrong inside, and tells the client only that it did.
    pub fn internal(error: impl std::fmt::Display) -> Self {
        tracing::error!(error = %error, "a request failed inside");
        Self::new(Code::Internal)
    }
}

impl From<Code> for Problem {
    fn from(code: Code) -> Self {
        Self::new(code)
    }
}

impl From<sqlx::Error> for Problem {
    fn from(error: sqlx::Error) -> Self {
        if crate::db::is_transient(&error) {
            tracing::warn!(error = %error, "the database did not answer in time");
            return Self::new(Code::Busy);
        }
        // Said by the database, in the transaction that would have moved the cash: whatever verb it was.
        match crate::db::constraint(&error) {
            Some("shift_required") => Code::ShiftRequired.into(),
            Some("shift_currency") => Code::ShiftCurrency.into(),
            Some("shift_waits_for_cash") => Code::CashBesideCard.into(),
            // Ids that come from the request's key. Under its event's lock the same request finds what it did; another
            // one of another event, at the same time, comes to here.
            Some(
                "consignment_pkey"
                | "consignment_sale_pkey"
                | "partner_payment_pkey"
                | "customer_hold_buyer_once"
                | "lease_key_once",
            ) => Code::IdempotencyMismatch.into(),
            _ => Self::internal(error),
        }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let mut body = Map::new();
        body.insert("type".into(), format!("urn:fullhouse:problem:{}", self.code.name()).into());
        body.insert("code".into(), self.code.name().into());
        body.insert("title".into(), self.code.title().into());
        body.insert("status".into(), self.code.status().as_u16().into());
        if let Some(detail) = self.detail {
            body.insert("detail".into(), detail.into());
        }
        body.extend(self.extra);
        let mut response = (self.code.status(), Value::Object(body).to_string()).into_response();
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        if matches!(
            self.code.status(),
            StatusCode::SERVICE_UNAVAILABLE | StatusCode::TOO_MANY_REQUESTS | StatusCode::LOCKED
        ) {
            headers.insert(header::RETRY_AFTER, self.retry_after_s.into());
        }
        if self.code == Code::TooManySockets {
            // Nobody asks anything else on it, and one that waited for that would take a place from requests.
            headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
        response
    }
}
