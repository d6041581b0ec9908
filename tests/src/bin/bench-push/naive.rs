//! A broadcast server as anybody would write it: axum, a `broadcast` channel, a task a viewer.

use std::io::Read;

use axum::{
    Router,
    body::Bytes,
    extract::{
        State, WebSocketUpgrade,
        ws::{Message, WebSocket},
    },
    response::Response,
    routing::{get, post},
};
use tokio::sync::broadcast;

type Frames = broadcast::Sender<Bytes>;

/// Until its input ends. The first line that it prints is its port.
pub async fn run() -> anyhow::Result<()> {
    let frames: Frames = broadcast::channel(64).0;
    let router = Router::new().route("/live", get(live)).route("/publish", post(publish)).with_state(frames);
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    println!("{}", listener.local_addr()?.port());
    std::thread::spawn(|| {
        let _ = std::io::stdin().read(&mut [0]);
        std::process::exit(0)
    });
    Ok(axum::serve(listener, router).await?)
}

async fn publish(State(frames): State<Frames>, frame: Bytes) {
    let _ = frames.send(frame);
}

async fn live(State(frames): State<Frames>, upgrade: WebSocketUpgrade) -> Response {
    let frames = frames.subscribe(); // now: whoever has read the answer is to miss no frame
    upgrade.on_upgrade(move |socket| watch(socket, frames))
}

async fn watch(mut socket: WebSocket, mut frames: broadcast::Receiver<Bytes>) {
    loop {
        tokio::select! {
            frame = frames.recv() => match frame {
                Ok(frame) => {
                    if socket.send(Message::Binary(frame)).await.is_err() {
                        return;
                    }
                }
                Err(broadcast::error::RecvError::Lagged(_)) => {}
                Err(broadcast::error::RecvError::Closed) => return,
            },
            message = socket.recv() => match message {
                Some(Ok(_)) => {}
                _ => return,
            },
        }
    }
}
