//! Tasks that a hub can't be without. One that ends before the hub is told to stop is a fault of ours:
//! whoever runs the hub ends the process, so that it is started anew instead of running on by half.

use tokio::sync::watch;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

/// Where core tasks are started, and which of them ended first.
pub struct Core {
    tasks: TaskTracker,
    stop: CancellationToken,
    ended: watch::Sender<Option<&'static str>>,
}

impl Core {
    pub fn new(stop: CancellationToken) -> Self {
        Self { tasks: TaskTracker::new(), stop, ended: watch::Sender::new(None) }
    }

    /// Starts a task that is to run until the hub stops.
    pub fn spawn(&self, name: &'static str, task: impl Future<Output = ()> + Send + 'static) {
        let (stop, ended) = (self.stop.clone(), self.ended.clone());
        self.tasks.spawn(async move {
            // In a task of its own, so that its panic comes back to us.
            let outcome = tokio::spawn(task).await;
            if !stop.is_cancelled() {
                let how = if outcome.is_err() { "panicked" } else { "ended" };
                tracing::error!(task = name, how, "a task that the hub can't be without is gone");
                ended.send_if_modified(|first| first.replace(name).is_none());
            }
        });
    }

    /// No more are started.
    pub fn close(&self) {
        self.tasks.close();
    }

    /// Waits until all have ended.
    pub async fn wait(&self) {
        self.tasks.wait().await;
    }

    /// Waits for a task that ends too early, and names it; for ever, if none does.
    pub async fn failed(&self) -> &'static str {
        let mut ended = self.ended.subscribe();
        let first = ended.wait_for(Option::is_some).await.expect("the sender is ours");
        first.expect("waited for")
    }
}
