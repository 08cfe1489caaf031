//! Elements call `migrate`, create children, end and are replaced while broadcasts and reductions are in progress.

#![allow(missing_docs)]

use crate::common::*;
use equipoise::prelude::*;
use equipoise::reduce;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

const ROUNDS: u32 = 12;
const FOUNDERS: i32 = 6;
/// The most children of a founder at a time, at reserved indices.
const CHILDREN: i32 = 4;

/// Checks that it receives every round after its creation once, in order.
#[derive(Serialize, Deserialize)]
struct Member {
    rng: Rng,
    /// The next round it receives.
    next: u32,
    /// Rounds it received itself.
    received: u32,
    /// For a founder: which of its children exist, and how many it may still create.
    children: [bool; CHILDREN as usize],
    births: u32,
    clerk: Array<Clerk>,
    runs: Runs,
}

/// The number of executed entry methods.
type Runs = Shared<AtomicU64>;

#[chare(index = [i32; 1])]
impl Member {
    #[entry]
    fn round(&mut self, cx: &Cx<Self>, number: u32) {
        self.runs.get(cx).fetch_add(1, Relaxed);
        assert_eq!(number, self.next, "of {:?}", cx.index());
        self.next += 1;
        self.received += 1;
        self.clerk.at(cx, ()).contribute().received(1);
        self.bear(cx);
        let founder = cx.index()[0] < FOUNDERS;
        if !founder && self.rng.once_in(3) {
            let [me] = cx.index();
            cx.peer([(me - FOUNDERS) / CHILDREN]).gone((me - FOUNDERS) % CHILDREN);
            self.clerk.at(cx, ()).note(self.received);
            cx.destroy();
        } else if self.rng.once_in(2) {
            cx.migrate(Pe(self.rng.sample(cx.pes()) as u32));
        }
    }

    /// Migrates at random, and creates children.
    #[entry]
    fn roam(&mut self, cx: &Cx<Self>) {
        self.runs.get(cx).fetch_add(1, Relaxed);
        let [me] = cx.index();
        self.bear(cx);
        cx.migrate(Pe(self.rng.sample(cx.pes()) as u32));
        if !self.rng.once_in(12) {
            cx.peer([me]).roam();
        }
    }

    fn bear(&mut self, cx: &Cx<Self>) {
        let [me] = cx.index();
        let free = self.children.iter().position(|alive| !alive);
        if let Some(child) = free.filter(|_| self.births > 0)
            && self.rng.once_in(3)
        {
            self.children[child] = true;
            self.births -= 1;
            let index = FOUNDERS + me * CHILDREN + child as i32;
            let rng = Rng::new(u64::from(self.births), index as u64);
            cx.array().insert(cx, [index], Member { rng, received: 0, births: 0, ..*self });
            cx.peer([index]).roam();
        }
    }

    #[entry]
    fn gone(&mut self, cx: &Cx<Self>, child: i32) {
        self.runs.get(cx).fetch_add(1, Relaxed);
        self.children[child as usize] = false;
    }

    #[entry]
    fn count(&mut self, cx: &Cx<Self>) {
        self.runs.get(cx).fetch_add(1, Relaxed);
        self.clerk.at(cx, ()).contribute().over(u64::from(self.received));
    }
}

#[derive(Serialize, Deserialize)]
struct Clerk {
    rounds: u32,
    /// The sum of received rounds over all contributions.
    contributions: u64,
    /// The sum of received rounds that ended elements reported.
    gone: u64,
    members: Array<Member>,
    runs: Runs,
    done: Exit<(u64, u64, u64)>,
}

#[chare(index = ())]
impl Clerk {
    #[entry(reduce = reduce::sum)]
    fn received(&mut self, cx: &Cx<Self>, count: u64) {
        self.runs.get(cx).fetch_add(1, Relaxed);
        self.contributions += count;
        self.rounds += 1;
        if self.rounds < ROUNDS {
            self.members.all(cx).round(self.rounds);
        } else {
            self.members.all(cx).at_quiescence().count();
        }
    }

    #[entry]
    fn note(&mut self, cx: &Cx<Self>, received: u32) {
        self.runs.get(cx).fetch_add(1, Relaxed);
        self.gone += u64::from(received);
    }

    #[entry(reduce = reduce::sum)]
    fn over(&mut self, cx: &Cx<Self>, received: u64) {
        self.runs.get(cx).fetch_add(1, Relaxed);
        let runs = self.runs.get(cx).load(Relaxed);
        self.done.exit(cx, (self.contributions, received + self.gone, runs));
    }
}

fn check(config: Config) {
    let is_one_process = config.pes_per_process.is_none();
    let report = equipoise::run(config, |pe, done| {
        let runs = pe.shared(|| AtomicU64::new(0));
        let members: Array<Member> = pe.sparse([FOUNDERS * (1 + CHILDREN)]);
        let clerk = pe.array((), |()| Clerk { rounds: 0, contributions: 0, gone: 0, members, runs, done });
        let seed = pe.seed();
        pe.main(move |pe| {
            for index in 0..FOUNDERS {
                let rng = Rng::new(seed, index as u64);
                let children = [false; CHILDREN as usize];
                members.insert(
                    pe,
                    [index],
                    Member { rng, next: 0, received: 0, children, births: 6, clerk, runs },
                );
                members.at(pe, [index]).roam();
            }
            members.all(pe).round(0);
        });
    });
    let (contributed, received, runs) = report.result;
    // Each process has its own counter.
    assert!(if is_one_process { report.executions == runs } else { report.executions >= runs });
    assert!(contributed >= u64::from(ROUNDS) * FOUNDERS as u64);
    assert_eq!(contributed, received);
}

#[test]
fn a_late_element_receives_missed_broadcasts_before_it_creates_or_ends() {
    everywhere(400, 20, check);
}

#[test]
#[ignore = "slow"]
fn all_of_it_at_full_size() {
    at_full_size(&[a_late_element_receives_missed_broadcasts_before_it_creates_or_ends]);
}
