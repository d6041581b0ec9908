//! Webhooks: signed, late, twice, in no order, and again until somebody says 2xx.

use std::time::Duration;

use serde_json::Value;

use super::{Simulator, rules::Webhook, state};
use crate::{config::Secret, payment::signature};

impl Simulator {
    /// Delivers what has happened since the last time. Waits only for those that must arrive before the answer does.
    pub(super) async fn deliver_outgoing(&self) {
        state::keep_now(self).await; // a webhook is an answer too
        let outgoing = std::mem::take(&mut self.world().outgoing);
        for (event, how) in outgoing {
            let (sim, first) = (self.clone(), how.before_response);
            let n = {
                let mut world = self.world();
                world.deliveries += 1;
                let n = world.deliveries;
                world.delivering.insert(n, (event.clone(), how.clone()));
                n
            };
            let delivery = tokio::spawn(async move {
                sim.deliver(event, how).await;
                if !sim.stop().is_cancelled() {
                    let mut world = sim.world();
                    world.delivering.remove(&n);
                    world.changed = true;
                }
            });
            if first {
                // A failed delivery goes on by itself; the answer does not wait for the second try.
                let _ = tokio::time::timeout(Duration::from_secs(5), delivery).await;
            }
        }
    }

    async fn deliver(&self, event: Value, how: Webhook) {
        let Some(url) = self.webhook_url() else { return };
        let body = event.to_string();
        let mut wait = Duration::from_millis(how.delay_ms.unwrap_or(self.config().webhook_delay_ms));
        let mut schedule = how.retry_ms.as_ref().unwrap_or(&self.config().webhook_retry_ms).iter();
        loop {
            if self.stop().run_until_cancelled(tokio::time::sleep(wait)).await.is_none() {
                return;
            }
            // Each delivery is signed anew, at the time of the line: whoever checks it has no other clock.
            let t = chrono::Utc::now().timestamp() - how.signed_ago_s;
            let mut secrets = self.config().webhook_secrets.clone();
            if how.two_secrets {
                secrets.insert(0, Secret::new("whsec_of_tomorrow"));
            }
            let mut header = signature::sign(&secrets, t, body.as_bytes());
            if how.bad_signature {
                header = format!("t={t},v1={}", "0".repeat(64));
            }
            let request = self.http().post(&url).header("content-type", "application/json; charset=utf-8");
            let sent = request.header("stripe-signature", header).body(body.clone()).send();
            let answer = tokio::time::timeout(Duration::from_secs(10), sent).await;
            let status = answer.ok().and_then(Result::ok).map(|r| r.status());
            self.world().log.push(serde_json::json!({
                "op": "webhook", "event": event["id"], "type": event["type"], "status": status.map(|s| s.as_u16()),
            }));
            if status.is_some_and(|s| s.is_success()) {
                return;
            }
            match schedule.next() {
                Some(ms) => wait = Duration::from_millis(*ms),
                None => return,
            }
        }
    }
}
