//! One job at a time: asked before, sent, asked until it is certain.
//!
//! Invariants
//! - A ticket is sent only once everything before it is certainly on paper.
//! - "Printed" is what the printer said after the last byte of the job; whatever else happens once the first byte is on
//!   its way is a doubt.
//! - Every wait is bounded.

use std::{
    net::ToSocketAddrs,
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant, SystemTime},
};

use fullhouse_paper::fonts::Fonts;
use uuid::Uuid;

use super::{
    command::{self, Commands},
    ledger::{End, Job, Ledger, LedgerError},
    link::{self, Link},
    page::Page,
    profile::{Confirms, Place, Profile},
    spool,
    status::{Answer, Answers, Status, Trouble},
};
use crate::journal::Medium;

/// How long to wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    pub connect: Duration,
    /// For a state that was asked for.
    pub answer: Duration,
    /// While it takes no bytes.
    pub stall: Duration,
    /// For the next part to be read, and for "it is on paper" after the last.
    pub done: Duration,
    /// Between two looks at its state meanwhile.
    pub look: Duration,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(3),
            answer: Duration::from_secs(2),
            stall: Duration::from_secs(20),
            done: Duration::from_secs(30),
            look: Duration::from_millis(500),
        }
    }
}

/// A printer.
pub struct Printer {
    profile: Profile,
    fonts: Fonts,
    bounds: Bounds,
    /// It may still wait for the rest of a picture that never came, and would take the next job for it.
    half_way: AtomicBool,
}

/// What goes at once, and how much of it may be unread: less than the smallest buffers hold.
const PART_BYTES: usize = 1_024;
const PARTS_MAX: usize = 2;
/// How long to listen before looking at anything else.
const LISTEN: Duration = Duration::from_millis(100);

/// What is known of a job on its way.
struct Watch {
    /// Parts that were sent and not read yet.
    unread: usize,
    seen: Status,
    /// Answers to the last question how it is.
    awaited: u8,
    looked: Instant,
    /// When it last got on.
    moved: Instant,
}

impl Watch {
    fn new() -> Self {
        let now = Instant::now();
        Self { unread: 0, seen: Status::default(), awaited: 0, looked: now, moved: now }
    }
}

/// More than any command of ours is long: completes a picture, and is nothing to a printer that waits for none.
const NOTHING: [u8; 4_096] = [0; 4_096];

impl std::fmt::Debug for Printer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Printer").field("profile", &self.profile).finish_non_exhaustive()
    }
}

/// A connection, and what came over it that was not asked for yet.
struct Wire {
    link: Box<dyn Link>,
    answers: Answers,
}

impl Printer {
    pub fn new(profile: Profile, fonts: Fonts) -> Self {
        Self { profile, fonts, bounds: Bounds::default(), half_way: AtomicBool::new(true) }
    }

    pub fn with_bounds(self, bounds: Bounds) -> Self {
        Self { bounds, ..self }
    }

    pub fn profile(&self) -> &Profile {
        &self.profile
    }

    /// How it is. Of one that never answers, and of a folder, only that it is there.
    ///
    /// # Errors
    /// Nobody answers there, or not in the language of a printer.
    pub fn status(&self) -> Result<Status, Trouble> {
        if let Place::Folder { .. } = self.profile.place {
            return Ok(Status::default());
        }
        let mut wire = self.wire()?;
        self.look(&mut wire)
    }

    /// Opens the drawer.
    ///
    /// # Errors
    /// It was not told to, or nobody knows.
    pub fn kick(&self) -> Result<(), Trouble> {
        if let Place::Folder { .. } = self.profile.place {
            return Ok(());
        }
        let mut wire = self.wire()?;
        let kick = command::kick(self.profile.drawer);
        wire.link
            .send(&kick, self.bounds.stall)
            .map_err(|cut| if cut.stalled { Trouble::Stalled } else { Trouble::Cut })?;
        // A wire that is dropped at once may take the last bytes with it.
        self.look(&mut wire).map(|_| ())
    }

    /// Where tickets are PDFs: those of yesterday are deleted.
    pub fn tidy(&self) {
        if let Place::Folder { path } = &self.profile.place {
            spool::tidy(path, SystemTime::now());
        }
    }

    /// Prints what nobody keeps a ledger of: a receipt, a report, a test page.
    pub fn print(&self, page: &Page) -> End {
        self.job(&mut None, page, Uuid::now_v7(), || Ok(())).unwrap_or(End::NotPrinted(Trouble::Disk))
    }

    /// Prints jobs one after the other, until one is not certainly on paper; the rest of them is certainly not. All their
    /// ends, in the order of the jobs.
    ///
    /// # Errors
    /// The ledger can't be written: opened anew it knows which are doubtful.
    pub fn print_all<M: Medium>(
        &self,
        ledger: &mut Ledger<M>,
        jobs: Vec<(Job, Page)>,
    ) -> Result<Vec<(Uuid, End)>, LedgerError> {
        for (job, _) in &jobs {
            ledger.intend(job)?;
        }
        let (mut ends, mut trouble, mut wire) = (Vec::with_capacity(jobs.len()), None, None);
        for (job, page) in jobs {
            let end = match trouble {
                Some(trouble) => End::NotPrinted(trouble),
                None => self.job(&mut wire, &page, job.id, || ledger.send(job.id))?,
            };
            ledger.end(job.id, end)?;
            if let End::NotPrinted(why) | End::Doubtful(why) = end {
                trouble = Some(why);
            }
            ends.push((job.id, end));
        }
        Ok(ends)
    }

    /// `sending` is called before the first byte leaves. A wire that did well is used again.
    fn job(
        &self,
        kept: &mut Option<Wire>,
        page: &Page,
        id: Uuid,
        sending: impl FnOnce() -> Result<(), LedgerError>,
    ) -> Result<End, LedgerError> {
        if let Place::Folder { path } = &self.profile.place {
            sending()?;
            let picture = page.picture(&self.fonts, self.profile.paper.dots());
            // The file is the paper: whole, or not there.
            let written = spool::write(path, &id.to_string(), &picture);
            return Ok(written.map_or(End::Doubtful(Trouble::Disk), |_| End::Printed));
        }
        let commands = page.commands(&self.fonts, &self.profile);
        let ready = kept.take().map_or_else(|| self.wire(), Ok).and_then(|mut wire| {
            let status = self.look(&mut wire)?;
            status.trouble().map_or(Ok(wire), Err)
        });
        let mut wire = match ready {
            Ok(wire) => wire,
            Err(trouble) => return Ok(End::NotPrinted(trouble)),
        };
        sending()?;
        let end = self.send(&mut wire, &commands, mark(id));
        self.half_way.store(end != End::Printed, Ordering::SeqCst);
        *kept = Some(wire).filter(|_| end == End::Printed);
        Ok(end)
    }

    /// Little is on its way at once: so its buffer has room for the question how it is, and has little that could come
    /// out later.
    fn send(&self, wire: &mut Wire, commands: &Commands, mark: [u8; 4]) -> End {
        let nothing = if self.half_way.load(Ordering::SeqCst) { &NOTHING[..] } else { &[] };
        let mut sent = wire.link.send(nothing, self.bounds.stall).map_err(|cut| link::Cut { taken: 0, ..cut });
        let answers = self.profile.confirms != Confirms::Nothing;
        let mut watch = Watch::new();
        for (at, part) in commands.parts(PART_BYTES).into_iter().enumerate() {
            while watch.unread >= PARTS_MAX {
                if let Err(end) = self.watch(wire, &mut watch, mark) {
                    return end;
                }
            }
            let question: &[u8] = if answers { &command::ASK_PAPER } else { &[] };
            sent = sent.and_then(|()| wire.link.send(&[part, question].concat(), self.bounds.stall));
            if let Err(cut) = sent {
                let why = if cut.stalled { Trouble::Stalled } else { Trouble::Cut };
                let certain = at == 0 && cut.taken == 0;
                return if certain { End::NotPrinted(why) } else { self.doubt(wire, why) };
            }
            watch.unread += usize::from(answers);
        }
        if !answers {
            return End::Doubtful(Trouble::NoAnswer);
        }
        if self.profile.confirms == Confirms::Jobs
            && wire.link.send(&command::ask_done(mark), self.bounds.stall).is_err()
        {
            return End::Doubtful(Trouble::Cut);
        }
        loop {
            match self.watch(wire, &mut watch, mark) {
                Err(end) => return end,
                Ok(()) if self.profile.confirms == Confirms::Paper && watch.unread == 0 => return self.has_read(wire),
                Ok(()) => {}
            }
        }
    }

    /// Takes in what came, and asks how it is from time to time. An error is the job's end.
    fn watch(&self, wire: &mut Wire, watch: &mut Watch, mark: [u8; 4]) -> Result<(), End> {
        let came = wire.link.receive(self.bounds.look.min(LISTEN)).map_err(|_| End::Doubtful(Trouble::Cut))?;
        wire.answers.push(&came);
        while let Some(answer) = wire.answers.take() {
            match answer {
                Answer::Done(known) if known == mark && self.profile.confirms == Confirms::Jobs => {
                    return Err(End::Printed);
                }
                Answer::Paper(_) => {
                    watch.unread = watch.unread.saturating_sub(1);
                    watch.moved = Instant::now();
                }
                Answer::Status(byte) if watch.awaited > 0 => {
                    watch.seen.learn(5 - watch.awaited, byte);
                    watch.awaited -= 1;
                }
                Answer::Done(_) | Answer::Status(_) => {}
            }
        }
        if let (0, Some(trouble)) = (watch.awaited, watch.seen.trouble()) {
            return Err(self.doubt(wire, trouble));
        }
        if watch.moved.elapsed() >= self.bounds.done {
            return Err(self.doubt(wire, Trouble::NoAnswer));
        }
        if watch.awaited == 0 && watch.looked.elapsed() >= self.bounds.look {
            self.ask(wire).map_err(|_| End::Doubtful(Trouble::Cut))?;
            (watch.seen, watch.awaited, watch.looked) = (Status::default(), 4, Instant::now());
        }
        Ok(())
    }

    /// An older printer has read the whole job, which is not yet on paper; it is if nothing is wrong a moment later.
    fn has_read(&self, wire: &mut Wire) -> End {
        match self.look(wire).map(Status::trouble) {
            Ok(None) => End::Printed,
            Ok(Some(trouble)) | Err(trouble) => self.doubt(wire, trouble),
        }
    }

    /// What is still in its buffer is to be thrown away; it may not know how, and that changes nothing: the ticket is
    /// doubtful.
    fn doubt(&self, wire: &mut Wire, why: Trouble) -> End {
        let _ = wire.link.send(&command::CLEAR, self.bounds.look);
        End::Doubtful(why)
    }

    fn wire(&self) -> Result<Wire, Trouble> {
        let link = match &self.profile.place {
            Place::Network { address } => link::network(address, self.bounds.connect),
            Place::Device { path } => link::device(path),
            Place::Folder { .. } => return Err(Trouble::Unreachable),
        };
        Ok(Wire { link: link.map_err(|_| Trouble::Unreachable)?, answers: Answers::default() })
    }

    fn ask(&self, wire: &mut Wire) -> Result<(), link::Cut> {
        (1..=4).try_for_each(|n| wire.link.send(&command::ask_status(n), self.bounds.answer))
    }

    /// Asks for all four states, and waits for them.
    fn look(&self, wire: &mut Wire) -> Result<Status, Trouble> {
        let mut status = Status::default();
        if self.profile.confirms == Confirms::Nothing {
            return Ok(status);
        }
        self.ask(wire).map_err(|_| Trouble::Cut)?;
        let until = Instant::now() + self.bounds.answer;
        let mut n = 0;
        while n < 4 {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(Trouble::NoAnswer);
            }
            let came = wire.link.receive(left).map_err(|_| Trouble::Cut)?;
            wire.answers.push(&came);
            while n < 4
                && let Some(answer) = wire.answers.take()
            {
                if let Answer::Status(byte) = answer {
                    n += 1;
                    status.learn(n, byte);
                }
            }
        }
        Ok(status)
    }
}

/// Four letters by which a job's answer is told from an earlier one's.
fn mark(id: Uuid) -> [u8; 4] {
    let bytes = id.as_bytes();
    std::array::from_fn(|at| b'A' + (bytes[12 + at] ^ bytes[8 + at]) % 26)
}

/// Whether an address can be looked up: for the settings' form.
pub fn is_address(address: &str) -> bool {
    address.to_socket_addrs().is_ok_and(|mut found| found.next().is_some())
}
