//! The feed within one process: a bounded channel. A slow room slows the relay, and nothing is lost.

use tokio::sync::{Mutex, OwnedMutexGuard, mpsc};

use super::{Delivery, Lost, Message};

/// Messages under way. Keyframes among them share their bytes with whoever made them.
const MESSAGES_MAX: usize = 256;

pub struct Pipe {
    sender: mpsc::Sender<Message>,
    receiver: std::sync::Arc<Mutex<mpsc::Receiver<Message>>>,
}

impl Default for Pipe {
    fn default() -> Self {
        let (sender, receiver) = mpsc::channel(MESSAGES_MAX);
        Self { sender, receiver: std::sync::Arc::new(Mutex::new(receiver)) }
    }
}

impl Pipe {
    pub(super) async fn send(&self, messages: &[Message]) -> Result<(), Lost> {
        for message in messages {
            self.sender.send(message.clone()).await.map_err(|_| Lost::Closed)?;
        }
        Ok(())
    }

    pub(super) fn receiver(&self) -> Receiver {
        let guard = self.receiver.clone().try_lock_owned().expect("a process has one set of rooms");
        Receiver(guard)
    }
}

pub struct Receiver(OwnedMutexGuard<mpsc::Receiver<Message>>);

impl Receiver {
    pub(super) async fn next(&mut self) -> Delivery {
        match self.0.recv().await {
            Some(message) => Delivery::Message(message),
            None => std::future::pending().await, // the process ends
        }
    }
}
