//! An attended counter, and who stands behind it.

use serde_json::{Value, json};

use crate::{fan::Fan, scene::Scene, till::Till};

/// Of every member of a test's staff.
pub const PASSWORD: &str = "a password of the staff";
const PIN: &str = "246810";

/// A terminal that was enrolled with a code.
pub struct Desk {
    hub_url: String,
    token: String,
}

impl Desk {
    /// Enrols a counter of this name.
    pub async fn open(scene: &Scene, name: &str) -> Self {
        let operator = scene.operator().await;
        let asked = json!({ "name": name, "role": "counter", "reason": "a test" });
        let code = operator.post("/api/staff/enrolments", asked).await.ok()["code"].clone();
        let made = operator.post("/api/box-office/enrol", json!({ "code": code })).await.ok();
        Self { hub_url: scene.hub.url(), token: made["token"].as_str().expect("a token").to_owned() }
    }

    /// The terminal with nobody behind it.
    pub fn without_staff(&self) -> Till {
        Till::with_token(&self.hub_url, &self.token)
    }

    /// With a session that somebody has at another terminal.
    pub fn with_staff_of(&self, other: &Till) -> Till {
        self.without_staff().attended_by(other.staff().expect("somebody is signed in there"))
    }

    /// Makes a member and signs them in, by their PIN.
    pub async fn sign_in(&self, scene: &Scene, name: &str, role: &str) -> Till {
        member(&scene.operator().await, name, role).await;
        let given = json!({ "name": name, "pin": PIN });
        self.signed_in(self.without_staff().post("/api/box-office/sign-in", given).await.ok())
    }

    /// Signs in somebody who is a member already.
    pub async fn sign_in_as(&self, name: &str) -> Till {
        self.sign_in_with(name, PASSWORD).await
    }

    pub async fn sign_in_with(&self, name: &str, password: &str) -> Till {
        let given = json!({ "name": name, "password": password });
        self.signed_in(self.without_staff().post("/api/box-office/sign-in", given).await.ok())
    }

    fn signed_in(&self, answer: Value) -> Till {
        self.without_staff().attended_by(answer["token"].as_str().expect("a session's token"))
    }
}

/// Makes a member of the staff, with the password and PIN of all of them.
pub async fn member(operator: &Fan, name: &str, role: &str) -> Value {
    let new = json!({ "name": name, "role": role, "password": PASSWORD, "pin": PIN, "reason": "a test" });
    operator.post("/api/staff/members", new).await.ok()
}
