use std::collections::VecDeque;

use fullhouse_protocol::{
    frames::{Change, Head, Position, decode_body, encode_delta},
    keyframe::SeatState,
    seat::Status,
    track::Follower as Client,
};
use rand::{Rng, SeedableRng, rngs::StdRng};

use super::{
    room::{Next, tests::config},
    *,
};

const EVENT: i64 = 1;
const SEATS: u32 = 40;

/// A node without a feed and without a database: the test brings the messages.
struct Node {
    follower: Follower,
    arriving: VecDeque<Message>,
}

impl Node {
    fn new(ring_frames_max: usize) -> Self {
        crate::files::raise_limit().unwrap();
        let pool = PgPool::connect_lazy("postgres://nowhere").unwrap();
        let rooms = Rooms::new(config(ring_frames_max), pool, CancellationToken::new()).unwrap();
        let on_frame: OnFrame = Arc::new(|_| {});
        Self { follower: Follower { rooms, assemblies: HashMap::new(), on_frame }, arriving: VecDeque::new() }
    }

    fn room(&self) -> Option<Arc<Room<Map>>> {
        known(&self.follower.rooms.0.maps, EVENT)
    }

    fn receive(&mut self, count: usize) {
        for message in self.arriving.drain(..count.min(self.arriving.len())) {
            self.follower.take(message);
        }
    }
}

/// The relay as the nodes see it, and what it has ever shown of each seat.
struct Relay {
    track: Track,
}

impl Relay {
    fn frame(&mut self, random: &mut StdRng) -> Vec<Message> {
        let mut changes: Vec<Change> = Vec::new();
        for seat_no in 0..SEATS {
            if random.random_bool(0.1) {
                changes.push(Change { seat_no, status: Status::from_bits(random.random()) });
            }
        }
        let head = self.next_head();
        self.track.apply(&head, &changes);
        vec![Message { event_id: EVENT, kind: Kind::Frame, bytes: encode_delta(&head, &changes) }]
    }

    /// All seats at once: what is too large for frames.
    fn shake(&mut self, random: &mut StdRng) -> Vec<Message> {
        let changes: Vec<Change> =
            (0..SEATS).map(|seat_no| Change { seat_no, status: Status::from_bits(random.random()) }).collect();
        self.track.apply(&self.next_head(), &changes);
        self.keyframe()
    }

    fn new_epoch(&mut self) -> Vec<Message> {
        self.track.head.at = Position { epoch: self.track.head.at.epoch + 2, frame: 0 };
        self.keyframe()
    }

    fn keyframe(&self) -> Vec<Message> {
        let seats: Vec<SeatState> =
            self.track.statuses.iter().map(|status| SeatState { status, ..SeatState::default() }).collect();
        KeyframePart::split(self.track.head, &seats, 300)
            .into_iter()
            .map(|part| Message { event_id: EVENT, kind: Kind::Keyframe, bytes: part.encode() })
            .collect()
    }

    fn next_head(&self) -> Head {
        let at = self.track.at();
        Head { at: Position { frame: at.frame + 1, ..at }, ..self.track.head }
    }
}

/// A viewer with its client: connected to a node, or not; reading, or not; polling now and then.
#[derive(Default)]
struct Viewer {
    node: Option<usize>,
    cursor: Option<Position>,
    client: Client,
    seen: Position,
}

impl Viewer {
    fn read(&mut self, nodes: &[Node]) {
        let Some(room) = self.node.and_then(|node| nodes[node].room()) else { return };
        while let Next::Message { bytes, at } = room.next(self.cursor) {
            self.cursor = Some(at);
            self.client.take(Frame::decode(wire::content(&bytes)).unwrap());
            self.check();
        }
    }

    /// From whichever node, as a cache may answer.
    fn fetch(&mut self, node: &Node) {
        let Some(room) = node.room() else { return };
        if self.client.needs_snapshot() {
            self.client.take(Frame::decode(&room.snapshot().bytes).unwrap());
            self.check();
        }
    }

    /// Frames are all the same, from a socket or from a poll.
    fn poll(&mut self, node: &Node) {
        let Some(room) = node.room() else { return };
        for frame in decode_body(&room.recent().bytes).unwrap().1 {
            self.client.take(frame);
            self.check();
        }
    }

    /// Nobody sees a seat go back in time.
    fn check(&mut self) {
        if let Some(track) = self.client.track() {
            let (at, seen) = (track.at(), self.seen);
            assert!((at.epoch, at.frame) >= (seen.epoch, seen.frame), "went back from {seen} to {at}");
            self.seen = at;
        }
    }
}

/// Subscribe, publish, lag, lose, reconnect, on two nodes that are never in step: in the end every
/// viewer's map is the relay's.
#[tokio::test]
async fn whatever_happens_every_viewer_ends_equal_to_the_room() {
    for seed in 0..1_000 {
        let mut random = StdRng::seed_from_u64(seed);
        let head =
            Head { event_id: EVENT, at: Position { epoch: 100, frame: 0 }, seat_count: SEATS, committed_at_ms: 0 };
        let mut relay = Relay { track: Track::new(head, fullhouse_protocol::frames::Statuses::new(SEATS)) };
        let mut nodes = [Node::new(random.random_range(1..12)), Node::new(4)];
        let mut viewers: Vec<Viewer> = (0..8).map(|_| Viewer::default()).collect();
        let broadcast = |nodes: &mut [Node], messages: Vec<Message>| {
            nodes.iter_mut().for_each(|node| node.arriving.extend(messages.iter().cloned()));
        };
        broadcast(&mut nodes, relay.keyframe());
        for _ in 0..120 {
            let node = random.random_range(0..nodes.len());
            let viewer = random.random_range(0..viewers.len());
            match random.random_range(0..100) {
                0..30 => broadcast(&mut nodes, relay.frame(&mut random)),
                30..33 => broadcast(&mut nodes, relay.shake(&mut random)),
                33..36 => broadcast(&mut nodes, relay.keyframe()),
                36..37 => broadcast(&mut nodes, relay.new_epoch()),
                // A message comes twice, or the node has to read again from a keyframe.
                37..39 => {
                    let again = nodes[node].arriving.front().cloned();
                    nodes[node].arriving.extend(again);
                }
                39..40 => drop(nodes[node].arriving.pop_front()),
                40..60 => nodes[node].receive(random.random_range(0..6)),
                60..66 => {
                    let viewer = &mut viewers[viewer];
                    viewer.node = random.random_bool(0.8).then_some(node);
                    viewer.cursor = viewer.client.connect();
                }
                66..70 => viewers[viewer].poll(&nodes[node]),
                70..80 => viewers[viewer].fetch(&nodes[node]),
                _ => viewers[viewer].read(&nodes),
            }
        }
        broadcast(&mut nodes, relay.keyframe());
        nodes.iter_mut().for_each(|node| node.receive(usize::MAX));
        for (number, viewer) in viewers.iter_mut().enumerate() {
            if viewer.node.is_none() {
                viewer.node = Some(number % 2);
                viewer.cursor = viewer.client.connect();
            }
            for _ in 0..100 {
                viewer.read(&nodes);
                viewer.fetch(&nodes[number % 2]);
            }
            assert_eq!(viewer.client.track(), Some(&relay.track), "seed {seed}, viewer {number}");
        }
    }
}
