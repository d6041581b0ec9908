//! A request over a bare socket, whose client hangs up before it is answered, and can tell that the hub knows.

use serde_json::Value;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use crate::{HUNG, fan::Fan};

pub struct Caller {
    stream: TcpStream,
}

impl Caller {
    /// Posts as [`Fan::post_once`] does, and does not wait for the answer.
    pub async fn post_once(fan: &Fan, path: &str, key: &str, body: &Value) -> Self {
        let host = fan.base().strip_prefix("http://").expect("a test's hub speaks http");
        let (body, cookie) = (body.to_string(), fan.cookie().unwrap_or_default());
        let request = format!(
            "POST {path} HTTP/1.1\r\nhost: {host}\r\nsec-fetch-site: same-origin\r\ncookie: {cookie}\r\n\
             idempotency-key: {key}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        let mut stream = TcpStream::connect(host).await.expect("the hub takes connections");
        stream.write_all(request.as_bytes()).await.expect("the hub takes requests");
        Self { stream }
    }

    /// Hangs up, and waits until the hub has hung up as well: whatever carried the request there is gone.
    pub async fn hang_up(mut self) {
        self.stream.shutdown().await.expect("it was not answered yet");
        let mut answer = Vec::new();
        let end = tokio::time::timeout(HUNG, self.stream.read_to_end(&mut answer)).await;
        assert!(end.is_ok(), "the hub does not notice that its client has gone");
        assert_eq!(String::from_utf8_lossy(&answer), "", "nobody was there any more, so nobody was answered");
    }
}
