//! Rooms, rings and viewers: frames to every open map.
//!
//! The feed brings the relay's bytes; a [`room::Room`] applies and keeps them: one an event for its map, and one for
//! its line of people, if it has one. Each open page is a viewer, which is a cursor into a room's ring. Whoever can't hold a socket fetches the same
//! bytes over HTTP. Nothing here decides anything: a map is a hint, and the desk checks again.

pub mod ring; // the last frames
pub mod resource; // built and compressed once
pub mod room; // an event's map or line, as of its head
mod fallback; // a room without a feed
mod wire; // a WebSocket, as far as we need it
pub mod shard; // a thread of open maps

use std::{
    collections::HashMap,
    sync::Arc,
    time::{Duration, Instant},
};

use dashmap::DashMap;
use fullhouse_protocol::{
    frames::{Frame, FrameError, Head},
    keyframe::{Assembly, KeyframePart},
    track::{Step, Track},
};
use sqlx::PgPool;
use tokio::sync::Semaphore;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use self::{
    room::{Line, Map, Room, Source},
    shard::{Arrival, Doors, Numbers, Patience, Place, Places, Shares},
};
use crate::{
    config,
    feed::{Delivery, Feed, Kind, Message, Subscriber},
};

/// Reads of the database for rooms without a feed, at once.
const READS_AT_ONCE_MAX: usize = 2;
/// Sockets that are opened only to be told why they are closed; more than these get it as an HTTP status.
const TURNED_AWAY_AT_ONCE_MAX: usize = 64;
/// A frame that does not follow makes a node read the stream again, at most this often.
const REWIND_INTERVAL: Duration = Duration::from_secs(2);

/// Told of every frame that a room takes: a delta, or a snapshot where a map was taken over.
pub type OnFrame = Arc<dyn Fn(&Frame) + Send + Sync>;

/// The rooms of this process. Cheap to clone.
#[derive(Clone)]
pub struct Rooms(Arc<Inner>);

struct Inner {
    maps: DashMap<i64, Arc<Room<Map>>>,
    lines: DashMap<i64, Arc<Room<Line>>>,
    config: config::Push,
    pool: PgPool,
    reading: Semaphore,
    places: Shares,
    turned_away: Arc<Places>,
    doors: Doors,
    numbers: Arc<Numbers>,
    stop: CancellationToken,
    tasks: TaskTracker,
}

impl Rooms {
    /// No room yet; the shards are there. `stop` makes viewers go elsewhere.
    pub fn new(config: config::Push, pool: PgPool, stop: CancellationToken) -> anyhow::Result<Self> {
        let patience = Patience {
            send: Duration::from_secs(config.send_timeout_s),
            ping_interval: Duration::from_secs(config.ping_interval_s),
        };
        let shards = match config.shards {
            0 => std::thread::available_parallelism().map_or(1, usize::from),
            count => count,
        };
        let (tasks, numbers) = (TaskTracker::new(), Arc::new(Numbers::default()));
        let doors = Doors::open(shards, patience, &numbers, &tasks)?;
        tasks.spawn({
            let (stop, doors) = (stop.clone(), doors.clone());
            async move {
                stop.cancelled().await;
                doors.drain();
            }
        });
        Ok(Self(Arc::new(Inner {
            maps: DashMap::new(),
            lines: DashMap::new(),
            places: Shares::new(config.sockets_max, config.sockets_an_address_max),
            turned_away: Places::new(TURNED_AWAY_AT_ONCE_MAX),
            doors,
            numbers,
            reading: Semaphore::new(READS_AT_ONCE_MAX),
            tasks,
            config,
            pool,
            stop,
        })))
    }

    /// Begins to follow the feed, and to read the database where it says nothing.
    pub fn follow(&self, feed: &Feed, on_frame: OnFrame) {
        let follower = Follower { rooms: self.clone(), assemblies: HashMap::new(), on_frame: on_frame.clone() };
        self.0.tasks.spawn(self.until_stop(follower.run(feed.subscriber())));
        self.0.tasks.spawn(self.until_stop(fallback::run(self.clone(), on_frame)));
    }

    /// The room of an event's map; `None` if there is no such event. Reads the database if the feed has not named it.
    pub async fn map(&self, event_id: i64) -> sqlx::Result<Option<Arc<Room<Map>>>> {
        match known(&self.0.maps, event_id) {
            Some(room) => Ok(Some(room)),
            None => fallback::open_map(self, event_id).await,
        }
    }

    /// The room of an event's line; `None` if there is no such event, or people do not wait for it in a line.
    pub async fn line(&self, event_id: i64) -> sqlx::Result<Option<Arc<Room<Line>>>> {
        match known(&self.0.lines, event_id) {
            Some(room) => Ok(Some(room)),
            None => fallback::open_line(self, event_id).await,
        }
    }

    /// Takes a revision of a line, by whichever way it came.
    fn take_line(&self, head: &Head, bytes: &[u8], source: Source) -> Arc<Room<Line>> {
        let new = || Arc::new(Room::new(Line::new(*head, bytes, source), self.0.doors.clone()));
        let room = self.0.lines.entry(head.event_id).or_insert_with(new).clone();
        room.take(head, bytes, source);
        room
    }

    /// A place for one more socket of this address, if there is one.
    pub fn place(&self, address: &str) -> Option<Place> {
        self.0.places.take(address)
    }

    /// A place for a socket that is only told why it is closed.
    pub fn place_to_turn_away(&self) -> Option<Place> {
        self.0.turned_away.take()
    }

    /// Open maps at present.
    pub fn sockets(&self) -> usize {
        self.0.places.taken()
    }

    /// What the shards have done so far.
    pub fn numbers(&self) -> &Numbers {
        &self.0.numbers
    }

    /// Waits for a handshake to end, and lets the viewer in.
    pub fn admit(&self, arrival: impl Future<Output = Option<Arrival>> + Send + 'static) {
        let doors = self.0.doors.clone();
        self.0.tasks.spawn(async move {
            if let Some(arrival) = arrival.await {
                doors.enter(arrival);
            }
        });
    }

    /// Until `stop`, and then until every viewer has been told and has gone.
    pub async fn closed(self) {
        self.0.stop.cancelled().await;
        self.0.tasks.close();
        self.0.tasks.wait().await;
    }

    pub fn config(&self) -> &config::Push {
        &self.0.config
    }

    fn until_stop(&self, task: impl Future<Output = ()> + Send + 'static) -> impl Future<Output = ()> + Send + 'static {
        let stop = self.0.stop.clone();
        async move { stop.run_until_cancelled(task).await.unwrap_or_default() }
    }
}

fn known<T: room::Topic>(rooms: &DashMap<i64, Arc<Room<T>>>, event_id: i64) -> Option<Arc<Room<T>>> {
    let room = rooms.get(&event_id)?;
    room.ask(); // within the guard, so that it is not closed as unwanted in the same moment
    Some(room.clone())
}

/// What makes rooms of the feed.
struct Follower {
    rooms: Rooms,
    assemblies: HashMap<i64, Assembly>,
    on_frame: OnFrame,
}

impl Follower {
    async fn run(mut self, mut subscriber: Subscriber) {
        let mut rewound: Option<Instant> = None;
        loop {
            match subscriber.next().await {
                Delivery::Message(message) => {
                    let event_id = message.event_id;
                    let may_rewind = rewound.is_none_or(|at| at.elapsed() >= REWIND_INTERVAL);
                    if self.take(message) == Step::Gap && may_rewind {
                        tracing::info!(event.id = event_id, "a frame is missing: the stream is read again");
                        self.assemblies.clear();
                        subscriber.rewind();
                        rewound = Some(Instant::now());
                    }
                }
                Delivery::StartedAnew => {
                    tracing::warn!("the stream is not the one that was read so far");
                    self.assemblies.clear();
                    self.rooms.0.maps.iter().for_each(|room| room.doubt()); // lines are numbered by the database
                }
            }
        }
    }

    /// Applies a message. A gap means that the stream has to be read again.
    fn take(&mut self, message: Message) -> Step {
        let event_id = message.event_id;
        match message.kind {
            Kind::Keyframe => match KeyframePart::decode(&message.bytes) {
                Ok(part) => {
                    if let Some(track) = self.assemblies.entry(event_id).or_default().add(&part) {
                        self.assemblies.remove(&event_id);
                        self.take_keyframe(event_id, track);
                    }
                    Step::Applied
                }
                Err(error) => unreadable(event_id, error),
            },
            Kind::Frame => match Frame::decode(&message.bytes) {
                Ok(Frame::Delta { head, changes }) => {
                    let Some(room) = self.rooms.0.maps.get(&event_id).map(|room| room.clone()) else {
                        return Step::Known; // until its keyframe comes
                    };
                    let step = room.take_frame(&head, &changes, &message.bytes);
                    if step == Step::Applied {
                        (self.on_frame)(&Frame::Delta { head, changes });
                    }
                    step
                }
                Ok(_) => Step::Known,
                Err(error) => unreadable(event_id, error),
            },
            Kind::Line => match Frame::decode(&message.bytes) {
                Ok(Frame::Line { head, .. }) if head.event_id == event_id => {
                    self.rooms.take_line(&head, &message.bytes, Source::Feed);
                    Step::Applied
                }
                Ok(_) => Step::Known,
                Err(error) => unreadable(event_id, error),
            },
        }
    }

    fn take_keyframe(&self, event_id: i64, track: Track) {
        let frame = Frame::Snapshot { head: track.head, statuses: track.statuses.clone() };
        let is_new = match self.rooms.0.maps.entry(event_id) {
            dashmap::Entry::Occupied(room) => room.get().take_keyframe(track),
            dashmap::Entry::Vacant(slot) => {
                let inner = &self.rooms.0;
                slot.insert(Arc::new(Room::new(Map::new(track, Source::Feed, &inner.config), inner.doors.clone())));
                true
            }
        };
        if is_new {
            (self.on_frame)(&frame);
        }
    }
}

/// A frame of a later version: it is skipped, and what follows on it is a gap.
fn unreadable(event_id: i64, error: FrameError) -> Step {
    tracing::warn!(event.id = event_id, %error, "the feed carries what this hub can't read");
    Step::Known
}

#[cfg(test)]
mod tests;
