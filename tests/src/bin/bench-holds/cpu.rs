//! Where the processors' time goes: threads of the hub and of the client by their names, the servers
//! by their processes. Linux only; elsewhere everything reads as zero.

use std::{fs, path::Path};

/// Nanoseconds on a processor since the threads and processes began.
#[derive(Debug, Clone, Copy, Default)]
pub struct Cpu {
    pub hub: u64,
    pub client: u64,
    /// PostgreSQL or Redis, with all of its processes.
    pub server: u64,
}

/// Threads whose names begin so are the client's; all others of this process are the hub's.
pub const CLIENT_THREADS: &str = "bench-client";

impl Cpu {
    /// What has been used until now. `server` is the name of the server's program.
    pub fn now(server: &str) -> Self {
        let mut cpu = Self::default();
        for task in entries(Path::new("/proc/self/task")) {
            let name = fs::read_to_string(task.join("comm")).unwrap_or_default();
            let of = if name.starts_with(CLIENT_THREADS) { &mut cpu.client } else { &mut cpu.hub };
            *of += on_processor(&task);
        }
        cpu.server = descendants(std::process::id(), server);
        cpu
    }

    /// Microseconds a request since `before`: hub, client, server.
    pub fn per_request_us(&self, before: &Self, requests: f64) -> [f64; 3] {
        [(self.hub, before.hub), (self.client, before.client), (self.server, before.server)]
            .map(|(now, then)| now.saturating_sub(then) as f64 / 1000.0 / requests.max(1.0))
    }
}

fn entries(directory: &Path) -> impl Iterator<Item = std::path::PathBuf> {
    fs::read_dir(directory).into_iter().flatten().flatten().map(|e| e.path())
}

fn on_processor(task: &Path) -> u64 {
    let text = fs::read_to_string(task.join("schedstat")).unwrap_or_default();
    text.split(' ').next().and_then(|ns| ns.parse().ok()).unwrap_or(0)
}

/// The time of all processes called `name` that descend from `root`.
fn descendants(root: u32, name: &str) -> u64 {
    let processes: Vec<(u32, u32, String)> = entries(Path::new("/proc"))
        .filter_map(|path| {
            let pid: u32 = path.file_name()?.to_str()?.parse().ok()?;
            let stat = fs::read_to_string(path.join("stat")).ok()?;
            let (head, rest) = stat.rsplit_once(')')?;
            let parent = rest.split_whitespace().nth(1)?.parse().ok()?;
            Some((pid, parent, head.split_once('(')?.1.to_owned()))
        })
        .collect();
    let mut family = vec![root];
    let mut next = 0;
    while let Some(parent) = family.get(next).copied() {
        family.extend(processes.iter().filter(|(_, of, _)| *of == parent).map(|(pid, ..)| *pid));
        next += 1;
    }
    let of_name = processes.iter().filter(|(pid, _, called)| family.contains(pid) && called.starts_with(name));
    of_name
        .map(|(pid, ..)| {
            entries(&Path::new("/proc").join(pid.to_string()).join("task")).map(|t| on_processor(&t)).sum::<u64>()
        })
        .sum()
}
