//! An exhaustive search: every state that a model can reach, breadth first, and who can still get home from there.
//!
//! States are known by 64 bits of hash, as other model checkers do: of ten million states, two share one
//! with a chance of some three in a million. A path is told by doing its choices again.

use std::{
    collections::{HashMap, VecDeque},
    fmt::Debug,
    hash::{BuildHasherDefault, Hash, Hasher},
};

/// What can be searched.
pub trait Model {
    type State: Copy + Hash + Debug;
    type What: Copy + Debug;

    fn start(&self) -> Self::State;

    /// Everything that may happen next. The same state always gives the same list.
    fn choices(&self, state: &Self::State, choices: &mut Vec<Choice<Self::What, Self::State>>);

    /// What must never be so, if it is so.
    fn wrong(&self, state: &Self::State) -> Option<&'static str>;

    /// Nothing is left to be done.
    fn is_home(&self, state: &Self::State) -> bool;
}

pub struct Choice<W, S> {
    pub what: W,
    pub to: S,
    /// What happens by itself once nothing goes wrong any more and nobody acts: workers, time, answers.
    pub fair: bool,
}

#[derive(Debug)]
pub struct Searched {
    pub states: usize,
    pub steps: usize,
    /// Of the longest shortest path.
    pub depth: u32,
    pub fault: Option<Fault>,
}

/// What is wrong, and the shortest way there.
#[derive(Debug, Clone)]
pub struct Fault {
    pub what: String,
    pub path: Vec<String>,
}

/// Searches until something is wrong or nothing is new. More than `states_max` states are a fault of the model's bounds.
pub fn search<M: Model>(model: &M, states_max: usize) -> Searched {
    let mut known: HashMap<u64, u32, BuildHasherDefault<Fx>> = HashMap::default();
    let mut came_from: Vec<(u32, u16)> = vec![(0, 0)];
    let mut fair = Fair::default();
    let mut home: Vec<bool> = Vec::new();
    let start = model.start();
    known.insert(fingerprint(&start), 0);
    let mut open = VecDeque::from([(0_u32, 0_u32, start)]);
    let (mut steps, mut depth) = (0, 0);
    let mut choices = Vec::new();
    while let Some((id, far, state)) = open.pop_front() {
        depth = far;
        if let Some(what) = model.wrong(&state) {
            let fault = Fault { what: what.to_owned(), path: path(model, &came_from, id) };
            return Searched { states: known.len(), steps, depth, fault: Some(fault) };
        }
        debug_assert_eq!(home.len(), id as usize);
        home.push(model.is_home(&state));
        choices.clear();
        model.choices(&state, &mut choices);
        fair.begin();
        for (n, choice) in choices.iter().enumerate() {
            steps += 1;
            let new = known.len() as u32;
            let to = *known.entry(fingerprint(&choice.to)).or_insert(new);
            if to == new {
                came_from.push((id, n as u16));
                open.push_back((to, far + 1, choice.to));
            }
            if choice.fair && to != id {
                fair.ways.push(to);
            }
        }
        assert!(known.len() <= states_max, "more than {states_max} states: the model's bounds are too wide");
    }
    let lost = fair.cannot_get_home(home);
    let fault = lost.map(|id| Fault { what: "it never ends".to_owned(), path: path(model, &came_from, id) });
    Searched { states: known.len(), steps, depth, fault }
}

/// The fair ways from each state, one state after the other: four bytes a way, which is most of what a search keeps.
#[derive(Default)]
struct Fair {
    ways: Vec<u32>,
    begins: Vec<u32>,
}

impl Fair {
    /// What is pushed from now on are ways from the next state.
    fn begin(&mut self) {
        self.begins.push(u32::try_from(self.ways.len()).expect("four thousand million ways"));
    }

    /// The first state from which no way leads home. `can`: it is at home. Most ways lead to states that were found later,
    /// so that going through them from the last to the first is over after a few rounds.
    fn cannot_get_home(mut self, mut can: Vec<bool>) -> Option<u32> {
        self.begin();
        loop {
            let mut news = false;
            for id in (0..can.len()).rev() {
                if can[id] {
                    continue;
                }
                let ways = &self.ways[self.begins[id] as usize..self.begins[id + 1] as usize];
                if ways.iter().any(|to| can[*to as usize]) {
                    (can[id], news) = (true, true);
                }
            }
            if !news {
                return can.iter().position(|can| !can).map(|id| id as u32);
            }
        }
    }
}

fn path<M: Model>(model: &M, came_from: &[(u32, u16)], mut id: u32) -> Vec<String> {
    let mut ways = Vec::new();
    while id != 0 {
        let (from, n) = came_from[id as usize];
        ways.push(n);
        id = from;
    }
    let (mut state, mut told) = (model.start(), Vec::new());
    for n in ways.into_iter().rev() {
        let mut choices = Vec::new();
        model.choices(&state, &mut choices);
        let choice = choices.swap_remove(n as usize);
        told.push(format!("{:?}", choice.what));
        state = choice.to;
    }
    told.push(format!("{state:?}"));
    told
}

pub fn fingerprint(state: &impl Hash) -> u64 {
    let mut hasher = Fx::default();
    state.hash(&mut hasher);
    hasher.finish()
}

/// Multiplies and turns, a word at a time: quick, and good enough for what nobody chooses.
#[derive(Default)]
pub struct Fx(u64);

impl Fx {
    fn add(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(23) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}

impl Hasher for Fx {
    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.add(u64::from_le_bytes(word));
        }
    }

    fn write_u8(&mut self, n: u8) {
        self.add(u64::from(n));
    }

    fn write_i8(&mut self, n: i8) {
        self.add(n as u64);
    }

    fn write_u16(&mut self, n: u16) {
        self.add(u64::from(n));
    }

    fn write_u64(&mut self, n: u64) {
        self.add(n);
    }

    fn write_usize(&mut self, n: usize) {
        self.add(n as u64);
    }

    fn write_isize(&mut self, n: isize) {
        self.add(n as u64);
    }

    fn finish(&self) -> u64 {
        let mut n = self.0;
        n = (n ^ (n >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93);
        n ^ (n >> 32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Counts up to nine; from three on it may fall into a hole.
    struct Counting {
        hole: bool,
        wrong_at: u8,
    }

    impl Model for Counting {
        type State = u8;
        type What = &'static str;

        fn start(&self) -> u8 {
            0
        }

        fn choices(&self, state: &u8, choices: &mut Vec<Choice<&'static str, u8>>) {
            if *state < 9 {
                choices.push(Choice { what: "on", to: state + 1, fair: true });
            }
            if self.hole && *state == 3 {
                choices.push(Choice { what: "falls", to: 100, fair: false });
            }
            if *state == 100 {
                choices.push(Choice { what: "is helped", to: 4, fair: false });
                choices.push(Choice { what: "waits", to: 100, fair: true });
            }
        }

        fn wrong(&self, state: &u8) -> Option<&'static str> {
            (*state == self.wrong_at).then_some("wrong")
        }

        fn is_home(&self, state: &u8) -> bool {
            *state == 9
        }
    }

    #[test]
    fn the_search_sees_every_state_and_tells_the_shortest_way() {
        let searched = search(&Counting { hole: false, wrong_at: 50 }, 100);
        assert_eq!((searched.states, searched.depth), (10, 9));
        assert!(searched.fault.is_none());
        let fault = search(&Counting { hole: false, wrong_at: 2 }, 100).fault.expect("2 is reached");
        assert_eq!((fault.what.as_str(), fault.path.len()), ("wrong", 3));
    }

    #[test]
    fn the_search_finds_a_state_that_only_help_from_outside_leads_out_of() {
        let fault = search(&Counting { hole: true, wrong_at: 50 }, 100).fault.expect("the hole has no fair way out");
        assert_eq!(fault.what, "it never ends");
        assert_eq!(fault.path[3], "\"falls\"");
    }
}
