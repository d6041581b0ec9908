//! How many connections an address has. A last net: one address can't take all of them, and everybody else's with them.
//!
//! A whole venue may share an address, so nobody is turned away while one of its connections is idle: the one that has
//! been idle longest makes room, and its browser opens another when it needs one. Proxies that are named are exempt.

use std::{
    collections::HashMap,
    net::IpAddr,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Instant,
};

use tokio_util::sync::CancellationToken;

use super::extract::net;

/// Of a connection with a request under way.
const BUSY: u64 = u64::MAX;
/// One that is new has its first request on its way for so long.
const NEW_MS_MAX: u64 = 1_000;

pub struct Connections {
    an_address_max: usize,
    trusted: Vec<IpAddr>,
    began: Instant,
    by_address: Mutex<HashMap<IpAddr, Vec<Arc<Connection>>>>,
}

/// One that is open.
pub struct Connection {
    address: IpAddr,
    began: Instant,
    /// Milliseconds after `began`, or [`BUSY`]; of a new one, when it will be.
    idle_since: AtomicU64,
    /// It is to end as soon as nothing is under way.
    pub leave: CancellationToken,
}

impl Connections {
    /// `trusted`: addresses of proxies, behind which everybody is.
    pub fn new(an_address_max: usize, trusted: &[String]) -> Arc<Self> {
        let trusted = trusted.iter().filter_map(|t| t.parse().ok()).map(|t: IpAddr| t.to_canonical()).collect();
        Arc::new(Self { an_address_max, trusted, began: Instant::now(), by_address: Mutex::default() })
    }

    /// Counts one more of `peer`. `None`: it has as many as it may, and all of them are busy, new, or about to end.
    pub fn admit(self: &Arc<Self>, peer: IpAddr) -> Option<Counted> {
        let address = net(peer);
        let connection = Arc::new(Connection {
            address,
            began: self.began,
            idle_since: AtomicU64::new(self.now_ms() + NEW_MS_MAX),
            leave: CancellationToken::new(),
        });
        if !self.trusted.contains(&peer.to_canonical()) {
            let mut by_address = self.by_address.lock().unwrap_or_else(PoisonError::into_inner);
            let open = by_address.entry(address).or_default();
            if open.len() >= self.an_address_max && !self.makes_room(open) {
                return None;
            }
            open.push(connection.clone());
        }
        Some(Counted { connections: self.clone(), connection })
    }

    fn now_ms(&self) -> u64 {
        self.began.elapsed().as_millis() as u64
    }

    /// Asks the one that has been idle longest to end. Those that were asked and are still there (one may be in the
    /// middle of a long answer) are few, or an address could have as many as it likes.
    fn makes_room(&self, open: &[Arc<Connection>]) -> bool {
        let leaving = open.iter().filter(|c| c.leave.is_cancelled()).count();
        let since = |c: &Arc<Connection>| c.idle_since.load(Ordering::Relaxed);
        let now = self.now_ms();
        let idle = open.iter().filter(|c| !c.leave.is_cancelled()).map(|c| (since(c), c));
        match idle.filter(|(since, _)| *since <= now).min_by_key(|(since, _)| *since) {
            Some((_, longest)) if leaving <= self.an_address_max / 4 => {
                longest.leave.cancel();
                true
            }
            _ => false,
        }
    }
}

impl Connection {
    pub fn busy(&self) {
        self.idle_since.store(BUSY, Ordering::Relaxed);
    }

    pub fn idle(&self) {
        self.idle_since.store(self.began.elapsed().as_millis() as u64, Ordering::Relaxed);
    }
}

/// A connection, counted as long as this lives.
pub struct Counted {
    connections: Arc<Connections>,
    pub connection: Arc<Connection>,
}

impl Drop for Counted {
    fn drop(&mut self) {
        let mut by_address = self.connections.by_address.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(open) = by_address.get_mut(&self.connection.address) {
            open.retain(|c| !Arc::ptr_eq(c, &self.connection));
            if open.is_empty() {
                by_address.remove(&self.connection.address);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    /// That has been there for some time.
    fn connections(an_address_max: usize) -> Arc<Connections> {
        let trusted = &["10.0.0.9".to_owned()];
        let mut connections = Arc::into_inner(Connections::new(an_address_max, trusted)).unwrap();
        connections.began -= Duration::from_secs(60);
        Arc::new(connections)
    }

    fn idle_since(counted: &Counted, ms: u64) {
        counted.connection.idle_since.store(ms, Ordering::Relaxed);
    }

    #[test]
    fn the_longest_idle_makes_room_and_a_busy_or_new_one_never_does() {
        let connections = connections(3);
        let mut open: Vec<Counted> = (0..3).map(|_| connections.admit(ip("192.0.2.1")).unwrap()).collect();
        assert!(connections.admit(ip("192.0.2.1")).is_none(), "all of them are new");
        let leaves = |counted: &Counted| counted.connection.leave.is_cancelled();
        open[0].connection.busy();
        idle_since(&open[1], 7);
        idle_since(&open[2], 5);
        let fourth = connections.admit(ip("192.0.2.1")).unwrap();
        assert!(leaves(&open[2]) && !leaves(&open[1]) && !leaves(&open[0]));
        fourth.connection.busy();
        drop(open.remove(2));
        open[1].connection.busy();
        assert!(connections.admit(ip("192.0.2.1")).is_none(), "all of them are busy");
        assert!(connections.admit(ip("192.0.2.2")).is_some(), "another address");
        assert!((0..9).all(|_| connections.admit(ip("10.0.0.9")).is_some()), "a proxy of ours");
        drop(fourth);
        assert!(connections.admit(ip("192.0.2.1")).is_some());
    }

    #[test]
    fn one_net_of_ipv6_is_one_address_and_those_about_to_end_are_few() {
        let connections = connections(8);
        let mut open = Vec::new();
        while let Some(counted) = connections.admit(ip(&format!("2001:db8:1:2::{:x}", open.len()))) {
            idle_since(&counted, 0);
            open.push(counted);
        }
        assert_eq!(open.len(), 8 + 3, "those that were asked to end are still there");
        assert!(connections.admit(ip("2001:db8:1:3::1")).is_some(), "the net beside it");
        drop(open);
        assert!(connections.by_address.lock().unwrap().is_empty());
    }
}
