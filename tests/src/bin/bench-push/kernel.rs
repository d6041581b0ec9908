//! What the kernel has to allow for so many sockets, and what it had been set to, put back at the end.

use std::fs;

use anyhow::Context;

/// Settings that were changed, with what they were.
pub struct Kernel(Vec<(&'static str, String)>);

const PAGE_BYTES: u64 = 4096;

impl Kernel {
    /// Sets what may be set. Without the right to do so nothing changes, and a bench of few viewers runs all the same.
    pub fn prepare() -> anyhow::Result<Self> {
        let pages = memory_bytes()? / PAGE_BYTES;
        let mut kernel = Self(Vec::new());
        kernel.set("net/core/somaxconn", "65535");
        kernel.set("net/ipv4/tcp_max_syn_backlog", "65535");
        kernel.set("net/core/netdev_max_backlog", "65535"); // or loopback drops, and a round waits for a retransmission
        kernel.set("net/ipv4/ip_local_port_range", "1024 65535");
        kernel.set("net/ipv4/tcp_mem", &format!("{} {} {}", pages / 2, pages * 3 / 4, pages));
        Ok(kernel)
    }

    fn set(&mut self, name: &'static str, value: &str) {
        let path = format!("/proc/sys/{name}");
        let Ok(before) = fs::read_to_string(&path) else { return };
        match fs::write(&path, value) {
            Ok(()) => self.0.push((name, before.trim().to_owned())),
            Err(error) => eprintln!("{name} stays as it is: {error}"),
        }
    }
}

impl Drop for Kernel {
    fn drop(&mut self) {
        for (name, before) in self.0.drain(..) {
            if let Err(error) = fs::write(format!("/proc/sys/{name}"), &before) {
                eprintln!("{name} could not be put back to {before}: {error}");
            }
        }
    }
}

fn memory_bytes() -> anyhow::Result<u64> {
    let text = fs::read_to_string("/proc/meminfo").context("/proc/meminfo")?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:")).context("MemTotal")?;
    let kib: u64 = line.trim().trim_end_matches(" kB").parse().context("MemTotal")?;
    Ok(kib * 1024)
}

/// Files that a process may have open.
pub fn files_max() -> usize {
    let text = fs::read_to_string("/proc/self/limits").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("Max open files")).unwrap_or_default();
    line.split_whitespace().next().and_then(|n| n.parse().ok()).unwrap_or(1024)
}

/// How much else the machine does: the mean of the last minute's queue.
pub fn load() -> f64 {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').next().and_then(|n| n.parse().ok()).unwrap_or(0.0)
}
