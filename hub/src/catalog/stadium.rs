//! placeholder
pub struct Stadium {
    pub plan: Vec<u8>,
    pub beside: Vec<u8>,
    pub summary: String,
}
pub fn generate(_seed: u64) -> Stadium {
    Stadium { plan: vec![], beside: vec![], summary: String::new() }
}
