//! What a server's processes have used: their time, in user space and in all, and their memory.

use std::{
    fs,
    ops::{AddAssign, Sub},
};

/// The kernel counts a process's time in these.
pub const TICK_US: f64 = 10_000.0;

/// Microseconds on a processor.
#[derive(Debug, Clone, Copy, Default)]
pub struct Cost {
    pub user_us: f64,
    pub all_us: f64,
}

impl Cost {
    /// Of all these processes, since they began. In all it is exact to a tick; the user's part is sampled.
    pub fn now(pids: &[u32]) -> Self {
        pids.iter().fold(Self::default(), |mut sum, pid| {
            let text = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            let mut ticks = text.rsplit(')').next().unwrap_or_default().split_whitespace().skip(11);
            let mut next = || ticks.next().and_then(|n| n.parse().ok()).unwrap_or(0.0) * TICK_US;
            let user_us = next();
            sum += Self { user_us, all_us: user_us + next() };
            sum
        })
    }
}

impl Sub for Cost {
    type Output = Self;

    fn sub(self, before: Self) -> Self {
        Self { user_us: self.user_us - before.user_us, all_us: self.all_us - before.all_us }
    }
}

impl AddAssign for Cost {
    fn add_assign(&mut self, more: Self) {
        self.user_us += more.user_us;
        self.all_us += more.all_us;
    }
}

/// Memory of these processes in RAM; what several share counts once.
pub fn memory_bytes(pids: &[u32]) -> u64 {
    pids.iter().map(|pid| of(pid, "smaps_rollup", "Pss:").or_else(|| of(pid, "status", "VmRSS:")).unwrap_or(0)).sum()
}

fn of(pid: &u32, file: &str, name: &str) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/{file}")).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    Some(line.trim().trim_end_matches(" kB").parse::<u64>().ok()? * 1024)
}

/// Memory that the whole machine could still give away.
pub fn available_bytes() -> u64 {
    let text = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:")).unwrap_or_default();
    line.trim().trim_end_matches(" kB").parse().unwrap_or(0_u64) * 1024
}

/// A process and whatever it has started.
pub fn family(root: u32) -> Vec<u32> {
    let children = |pid: u32| {
        let text = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
        text.split_whitespace().filter_map(|n| n.parse().ok()).collect::<Vec<u32>>()
    };
    let mut family = vec![root];
    let mut next = 0;
    while let Some(pid) = family.get(next).copied() {
        family.extend(children(pid));
        next += 1;
    }
    family
}
