//! An open map: what the page does with snapshot and frames, in the same order.
//!
//! A gap, a resync or a lost socket is healed as PROTOCOL.md says, and counted: a test may insist that
//! there was none.

use fullhouse_protocol::{
    frames::{Change, Frame, Head, decode_body},
    seat::Status,
    track::{Step, Track},
};
use futures_util::StreamExt;
use tokio::{net::TcpStream, time::Instant};
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async, tungstenite::Message};

use crate::HUNG;

type Socket = WebSocketStream<MaybeTlsStream<TcpStream>>;

pub struct Map {
    hub_url: String,
    event: i64,
    http: reqwest::Client,
    pub track: Track,
    socket: Option<Socket>,
    /// How often it had to begin again from a snapshot.
    pub snapshots: u32,
    /// Close codes that the hub sent.
    pub closed_with: Vec<u16>,
}

impl Map {
    /// Fetches the snapshot, then follows the frames from there.
    pub async fn open(hub_url: &str, event: i64) -> Self {
        let http = reqwest::Client::new();
        let track = snapshot(&http, hub_url, event).await;
        let mut map = Self {
            hub_url: hub_url.to_owned(),
            event,
            http,
            track,
            socket: None,
            snapshots: 1,
            closed_with: Vec::new(),
        };
        map.connect().await;
        map
    }

    pub fn status(&self, seat: i32) -> Status {
        self.track.statuses.get(u32::try_from(seat).expect("a seat's number"))
    }

    /// Loses the socket, as a phone in a tunnel does. [`Map::until`] resumes.
    pub fn drop_socket(&mut self) {
        self.socket = None;
    }

    /// The next connection goes to another hub.
    pub fn move_to(&mut self, hub_url: &str) {
        hub_url.clone_into(&mut self.hub_url);
        self.socket = None;
    }

    /// Follows the frames until the map says so, or the test has hung.
    #[track_caller]
    pub fn until(&mut self, what: &str, so: impl Fn(&Self) -> bool) -> impl Future<Output = ()> {
        let caller = std::panic::Location::caller();
        async move {
            let until = Instant::now() + HUNG;
            while !so(self) {
                let step = tokio::time::timeout_at(until, self.step()).await;
                assert!(step.is_ok(), "{caller}: the map at {} does not show: {what}", self.track.at());
            }
        }
    }

    /// [`Map::until`] a seat has a status.
    #[track_caller]
    pub fn until_seat(&mut self, seat: i32, status: Status) -> impl Future<Output = ()> {
        let caller = std::panic::Location::caller();
        async move {
            let until = Instant::now() + HUNG;
            while self.status(seat) != status {
                let step = tokio::time::timeout_at(until, self.step()).await;
                assert!(step.is_ok(), "{caller}: seat {seat} stays {:?} instead of {status:?}", self.status(seat));
            }
        }
    }

    /// Takes in whatever comes next.
    async fn step(&mut self) {
        let Some(socket) = &mut self.socket else {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await; // a page waits far longer, with jitter
            return self.connect().await;
        };
        match socket.next().await {
            Some(Ok(Message::Binary(bytes))) => {
                self.take(Frame::decode(&bytes).expect("the hub sends frames that can be decoded")).await;
            }
            Some(Ok(Message::Close(close))) => {
                self.closed_with.extend(close.map(|c| u16::from(c.code)));
                self.socket = None;
            }
            Some(Ok(_)) => {} // pings are answered by the library
            Some(Err(_)) | None => self.socket = None,
        }
    }

    async fn take(&mut self, frame: Frame) {
        let step = match &frame {
            Frame::Delta { head, changes } => self.track.apply(head, changes),
            Frame::Span { head, since, changes } => self.track.apply_since(head, *since, changes),
            Frame::Range { head, since, first, statuses } => {
                let seat = |(seat_no, status)| Change { seat_no, status };
                let changes: Vec<Change> = (*first..).zip(statuses.iter()).map(seat).collect();
                self.track.apply_since(head, *since, &changes)
            }
            Frame::Line { .. } => panic!("a line among a map's frames"),
            Frame::Resync { head } if self.track.at() == head.at => Step::Known,
            Frame::Resync { .. } => Step::Gap,
            Frame::Snapshot { .. } => panic!("a snapshot never travels over a socket"),
        };
        if step == Step::Gap {
            self.begin_again(frame.head()).await;
        }
    }

    /// A snapshot that reaches what `needed` says; an older one is bridged by the polled frames.
    async fn begin_again(&mut self, needed: &Head) {
        loop {
            self.track = snapshot(&self.http, &self.hub_url, self.event).await;
            self.snapshots += 1;
            let url = format!("{}/api/events/{}/frames", self.hub_url, self.event);
            let response = self.http.get(url).send().await.and_then(reqwest::Response::error_for_status);
            if let Ok(response) = response
                && let Ok(body) = response.bytes().await
            {
                let (_, frames) = decode_body(&body).expect("the hub's frames can be decoded");
                for frame in frames {
                    if let Frame::Delta { head, changes } = frame {
                        self.track.apply(&head, &changes);
                    }
                }
            }
            let here = self.track.at();
            if (here.epoch, here.frame) >= (needed.at.epoch, needed.at.frame) {
                return;
            }
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
    }

    async fn connect(&mut self) {
        let host = self.hub_url.strip_prefix("http://").expect("a test's hub speaks http");
        let at = self.track.at();
        let url = format!("ws://{host}/api/events/{}/live?epoch={}&frame={}", self.event, at.epoch, at.frame);
        self.socket = connect_async(url).await.ok().map(|(socket, _)| socket);
    }
}

/// The snapshot as anybody gets it; a hub whose room has not opened yet is asked again.
async fn snapshot(http: &reqwest::Client, hub_url: &str, event: i64) -> Track {
    let url = format!("{hub_url}/api/events/{event}/snapshot");
    let until = Instant::now() + HUNG;
    loop {
        let answer = http.get(&url).send().await.and_then(reqwest::Response::error_for_status);
        if let Ok(response) = answer
            && let Ok(bytes) = response.bytes().await
        {
            match Frame::decode(&bytes).expect("the hub's snapshot can be decoded") {
                Frame::Snapshot { head, statuses } => return Track::new(head, statuses),
                other => panic!("not a snapshot: {other:?}"),
            }
        }
        assert!(Instant::now() < until, "no snapshot from {url}");
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
}
