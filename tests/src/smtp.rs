//! A real SMTP server (aiosmtpd) that keeps what it gets, refuses when it is told to, and can be away.

use std::{fs, path::PathBuf};

use fullhouse::{
    child::{Kept, Spec},
    config::{Config, Secret},
};
use serde_json::Value;

use crate::{
    eventually,
    run::{run, workspace},
};

/// Debian's own: where its packages put aiosmtpd.
const PYTHON: &str = "/usr/bin/python3";

pub struct Smtp {
    port: u16,
    folder: PathBuf,
    server: Option<Kept>,
}

impl Smtp {
    /// An address at which nobody answers yet.
    pub async fn away() -> Self {
        let port = std::net::TcpListener::bind("127.0.0.1:0").and_then(|l| l.local_addr()).expect("a free port").port();
        Self { port, folder: run().await.directory("smtp"), server: None }
    }

    pub async fn start() -> Self {
        let mut smtp = Self::away().await;
        smtp.come().await;
        smtp
    }

    /// It answers from now on.
    pub async fn come(&mut self) {
        let log = fs::File::create(self.folder.join("log")).expect("the run's directory is writable");
        let script = workspace().join("tests/smtp_sink.py");
        let spec = Spec::new(PYTHON).arg(script).arg(self.port.to_string()).arg(&self.folder).output(log);
        let server = spec.spawn().expect("python3-aiosmtpd is installed (.ci/setup test)");
        eventually("the SMTP server answers", || async {
            if let Some(status) = server.ended() {
                panic!("it ended with {status}: {}", fs::read_to_string(self.folder.join("log")).unwrap_or_default());
            }
            tokio::net::TcpStream::connect(("127.0.0.1", self.port)).await.ok().map(drop)
        })
        .await;
        self.server = Some(server);
    }

    /// Points a hub's settings here.
    pub fn configure(&self, config: &mut Config) {
        config.mail.smtp_url = Secret::new(format!("smtp://127.0.0.1:{}", self.port));
        config.mail.from = "Fullhouse <tickets@house.example>".to_owned();
        config.mail.tick_ms = 20;
        config.mail.timeout_s = 2;
    }

    /// Every mail gets this answer, until there is none.
    pub fn answer(&self, answer: Option<&str>) {
        let file = self.folder.join("answer");
        match answer {
            Some(answer) => fs::write(file, answer).expect("the run's directory is writable"),
            None => fs::remove_file(file).expect("it answered something"),
        }
    }

    /// Mails that were refused with [`Smtp::answer`].
    pub fn refused(&self) -> usize {
        fs::read(self.folder.join("refused")).map_or(0, |marks| marks.len())
    }

    /// What has come, in order.
    pub fn mails(&self) -> Vec<Mail> {
        let files = fs::read_dir(&self.folder).expect("its folder").flatten().map(|f| f.path());
        let mut files: Vec<PathBuf> = files.filter(|f| f.extension().is_some_and(|e| e == "json")).collect();
        files.sort();
        files.iter().map(|f| Mail(serde_json::from_slice(&fs::read(f).expect("a mail")).expect("JSON"))).collect()
    }

    /// Until so many have come.
    pub async fn until(&self, count: usize) -> Vec<Mail> {
        eventually(&format!("{count} mails have come"), || async {
            let mails = self.mails();
            (mails.len() >= count).then_some(mails)
        })
        .await
    }

    pub async fn stop(mut self) {
        if let Some(server) = self.server.take() {
            server.stop().await;
        }
    }
}

/// A mail, as another program's parser read it.
#[derive(Debug)]
pub struct Mail(pub Value);

impl Mail {
    /// The values of a header.
    pub fn header(&self, name: &str) -> Vec<&str> {
        let headers = self.0["headers"].as_array().expect("headers").iter();
        headers
            .filter(|h| h[0].as_str().is_some_and(|n| n.eq_ignore_ascii_case(name)))
            .filter_map(|h| h[1].as_str())
            .collect()
    }

    pub fn subject(&self) -> &str {
        self.header("subject")[0]
    }

    pub fn text(&self) -> &str {
        self.0["text"].as_str().expect("a text")
    }

    pub fn html(&self) -> &str {
        self.0["html"].as_str().expect("HTML")
    }

    /// The attached PDF.
    pub fn pdf(&self) -> Vec<u8> {
        let attachments = self.0["attachments"].as_array().expect("attachments");
        assert_eq!(attachments.len(), 1, "{:?}", self.0["headers"]);
        assert_eq!(attachments[0]["type"], "application/pdf");
        data_encoding::BASE64.decode(attachments[0]["base64"].as_str().unwrap().as_bytes()).expect("base64")
    }
}
