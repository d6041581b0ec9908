//! What goes wrong in a run.

/// From a second until another.
#[derive(Debug, Clone, Copy)]
pub enum Trouble {
    /// The database bears only such a share.
    SlowDatabase { from: u32, until: u32, share: f64 },
    /// It is away, and comes back with cold caches: half of what it bears, and all of it three minutes later.
    NoDatabase { from: u32, until: u32 },
    /// The provider answers nobody.
    NoProvider { from: u32, until: u32 },
    /// The provider bears only such a share.
    SlowProvider { from: u32, until: u32, share: f64 },
    /// Somebody else's writes beside ours, a second.
    Others { from: u32, until: u32, writes: f64 },
}

impl Trouble {
    pub(super) fn database(&self, now: u32) -> f64 {
        match *self {
            Trouble::SlowDatabase { from, until, share } if (from..until).contains(&now) => share,
            Trouble::NoDatabase { from, until } if (from..until).contains(&now) => 0.0,
            Trouble::NoDatabase { until, .. } if (until..until + 180).contains(&now) => {
                0.5 + f64::from(now - until) / 360.0
            }
            _ => 1.0,
        }
    }

    pub(super) fn provider(&self, now: u32) -> f64 {
        match *self {
            Trouble::NoProvider { from, until } if (from..until).contains(&now) => 0.0,
            Trouble::SlowProvider { from, until, share } if (from..until).contains(&now) => share,
            _ => 1.0,
        }
    }

    pub(super) fn others(&self, now: u32) -> f64 {
        match *self {
            Trouble::Others { from, until, writes } if (from..until).contains(&now) => writes,
            _ => 0.0,
        }
    }

    /// When it begins, and when it is over.
    pub fn times(&self) -> (u32, u32) {
        match *self {
            Trouble::SlowDatabase { from, until, .. }
            | Trouble::NoDatabase { from, until }
            | Trouble::NoProvider { from, until }
            | Trouble::SlowProvider { from, until, .. }
            | Trouble::Others { from, until, .. } => (from, until),
        }
    }
}

/// A run with a name: what goes wrong, and what the operator allows.
#[derive(Debug, Clone)]
pub struct Scenario {
    pub name: &'static str,
    pub title: &'static str,
    pub troubles: Vec<Trouble>,
    pub rate_max: u32,
    pub inside_max: u32,
}

/// An hour each.
pub const SECONDS: u32 = 3_600;
pub const SEED: u64 = 20_261_130;

pub fn all() -> Vec<Scenario> {
    let scenario = |name, title, troubles| Scenario { name, title, troubles, rate_max: 1_200, inside_max: 4_000 };
    vec![
        Scenario {
            rate_max: 6_000,
            ..scenario("too-much-allowed", "The operator allows three times what the sale bears", Vec::new())
        },
        scenario(
            "slow-database",
            "The database bears 40 % for ten minutes",
            vec![Trouble::SlowDatabase { from: 1_200, until: 1_800, share: 0.4 }],
        ),
        scenario(
            "payment-outage",
            "The payment provider is away for five minutes",
            vec![Trouble::NoProvider { from: 1_200, until: 1_500 }],
        ),
        scenario(
            "slow-payments",
            "The payment provider bears a fifth for ten minutes",
            vec![Trouble::SlowProvider { from: 1_200, until: 1_800, share: 0.2 }],
        ),
        scenario(
            "spike",
            "Another sale takes half of the database for two minutes",
            vec![Trouble::Others { from: 1_200, until: 1_320, writes: 70.0 }],
        ),
        scenario(
            "recovery",
            "The database is away for a minute, and comes back cold",
            vec![Trouble::NoDatabase { from: 1_200, until: 1_260 }],
        ),
    ]
}
