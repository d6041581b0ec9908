//! An nginx in front of a hub, with the addresses as `deploy/nginx/fullhouse.conf` has them.

use std::path::Path;

use fullhouse::child::{Kept, Spec};

use crate::{
    eventually,
    run::{run, server_program, workspace},
};

pub struct Nginx {
    child: Kept,
    port: u16,
}

/// Lines that every nginx of ours begins with: a directory of its own, nobody's port.
pub fn head(directory: &Path, modules: &str, connections: usize) -> String {
    let user = if nix::unistd::geteuid().is_root() { "user root;" } else { "" };
    let at = |name: &str| directory.join(name).display().to_string();
    format!(
        "{modules}\n{user}\nworker_processes 1;\npid {};\nerror_log {} error;\n\
         events {{ worker_connections {connections}; multi_accept on; }}\n\
         http {{\naccess_log off;\nclient_body_temp_path {tmp};\nproxy_temp_path {tmp};\nfastcgi_temp_path {tmp};\n\
         uwsgi_temp_path {tmp};\nscgi_temp_path {tmp};\n",
        at("pid"),
        at("log"),
        tmp = at("tmp"),
    )
}

impl Nginx {
    /// `hub` is where it passes everything on to.
    pub async fn start(hub: &str) -> Self {
        let directory = run().await.directory("nginx");
        let port = std::net::TcpListener::bind("127.0.0.1:0").and_then(|l| l.local_addr()).expect("a free port").port();
        let hub = hub.strip_prefix("http://").expect("a hub's address");
        let settings = format!(
            "{}proxy_cache_path {} keys_zone=fullhouse_live:10m max_size=200m inactive=10m;\n\
             upstream fullhouse_api {{ server {hub}; keepalive 64; }}\n\
             upstream fullhouse_push {{ server {hub}; keepalive 64; }}\n\
             server {{ listen 127.0.0.1:{port} backlog=4096; include {}; }}\n}}\n",
            head(&directory, "", 15_000),
            directory.join("cache").display(),
            workspace().join("deploy/nginx/fullhouse.conf").display(),
        );
        let path = directory.join("nginx.conf");
        std::fs::write(&path, settings).expect("the run's directory is writable");
        let log = std::fs::File::create(directory.join("output")).expect("the run's directory is writable");
        let child = Spec::new(server_program("nginx"))
            .args(["-g", "daemon off;", "-p"])
            .arg(&directory)
            .arg("-c")
            .arg(&path)
            .output(log)
            .spawn()
            .expect("nginx starts (Debian package: nginx)");
        eventually("nginx listens", || async {
            if let Some(status) = child.ended() {
                let log = std::fs::read_to_string(directory.join("output")).unwrap_or_default();
                panic!("nginx ended with {status}: {log}");
            }
            tokio::net::TcpStream::connect(("127.0.0.1", port)).await.ok()
        })
        .await;
        Self { child, port }
    }

    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    pub fn pid(&self) -> u32 {
        self.child.pid().as_raw().cast_unsigned()
    }

    pub async fn stop(self) {
        self.child.stop().await;
    }
}
