//! Elements move by hand, have children, end and are replaced, all while broadcasts and the reductions
//! that answer them are under way.

#![allow(missing_docs)]

mod common;

use common::*;
use equipoise::prelude::*;
use equipoise::reduce;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

const ROUNDS: u32 = 12;
const FOUNDERS: i32 = 6;
/// Children a founder may have at a time, at indices of their own.
const CHILDREN: i32 = 4;

/// Hears every round once and in order from its birth on, wherever it is and whatever else it does.
#[derive(Serialize, Deserialize)]
struct Member {
    dice: Dice,
    /// The next round it hears.
    next: u32,
    /// Rounds it heard itself.
    heard: u32,
    /// Of a founder: which of its children live, and how many it may still have.
    children: [bool; CHILDREN as usize],
    births: u32,
    clerk: Array<Clerk>,
    runs: Runs,
}

/// How many entry methods have run.
type Runs = Shared<AtomicU64>;

#[chare(index = [i32; 1])]
impl Member {
    #[entry]
    fn round(&mut self, cx: &Cx<Self>, number: u32) {
        self.runs.get(cx).fetch_add(1, Relaxed);
        assert_eq!(number, self.next, "of {:?}", cx.index());
        self.next += 1;
        self.heard += 1;
        self.clerk.at(cx, ()).contribute().heard(1);
        self.bear(cx);
        let founder = cx.index()[0] < FOUNDERS;
        if !founder && self.dice.once_in(3) {
            let [me] = cx.index();
            cx.peer([(me - FOUNDERS) / CHILDREN]).gone((me - FOUNDERS) % CHILDREN);
            self.clerk.at(cx, ()).note(self.heard);
            cx.destroy();
        } else if self.dice.once_in(2) {
            cx.migrate(Pe(self.dice.draw(cx.pes()) as u32));
        }
    }

    /// Moves about, and has children on the way.
    #[entry]
    fn roam(&mut self, cx: &Cx<Self>) {
        self.runs.get(cx).fetch_add(1, Relaxed);
        let [me] = cx.index();
        self.bear(cx);
        cx.migrate(Pe(self.dice.draw(cx.pes()) as u32));
        if !self.dice.once_in(12) {
            cx.peer([me]).roam();
        }
    }

    fn bear(&mut self, cx: &Cx<Self>) {
        let [me] = cx.index();
        let free = self.children.iter().position(|alive| !alive);
        if let Some(child) = free.filter(|_| self.births > 0)
            && self.dice.once_in(3)
        {
            self.children[child] = true;
            self.births -= 1;
            let index = FOUNDERS + me * CHILDREN + child as i32;
            let dice = Dice::new(u64::from(self.births), index as u64);
            cx.array().insert(cx, [index], Member { dice, heard: 0, births: 0, ..*self });
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
        self.clerk.at(cx, ()).contribute().over(u64::from(self.heard));
    }
}

#[derive(Serialize, Deserialize)]
struct Clerk {
    rounds: u32,
    /// Of all rounds together: who heard them by their contributions,
    contributions: u64,
    /// and by what those that ended say.
    gone: u64,
    members: Array<Member>,
    runs: Runs,
    done: Exit<(u64, u64, u64)>,
}

#[chare(index = ())]
impl Clerk {
    #[entry(reduce = reduce::sum)]
    fn heard(&mut self, cx: &Cx<Self>, count: u64) {
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
    fn note(&mut self, cx: &Cx<Self>, heard: u32) {
        self.runs.get(cx).fetch_add(1, Relaxed);
        self.gone += u64::from(heard);
    }

    #[entry(reduce = reduce::sum)]
    fn over(&mut self, cx: &Cx<Self>, heard: u64) {
        self.runs.get(cx).fetch_add(1, Relaxed);
        let runs = self.runs.get(cx).load(Relaxed);
        self.done.exit(cx, (self.contributions, heard + self.gone, runs));
    }
}

fn check(config: Config) {
    let report = equipoise::run(config, |pe, done| {
        let runs = pe.shared(|| AtomicU64::new(0));
        let members: Array<Member> = pe.sparse([FOUNDERS * (1 + CHILDREN)]);
        let clerk = pe.array((), |()| Clerk { rounds: 0, contributions: 0, gone: 0, members, runs, done });
        let seed = pe.seed();
        pe.main(move |pe| {
            for index in 0..FOUNDERS {
                let dice = Dice::new(seed, index as u64);
                let children = [false; CHILDREN as usize];
                members.insert(
                    pe,
                    [index],
                    Member { dice, next: 0, heard: 0, children, births: 6, clerk, runs },
                );
                members.at(pe, [index]).roam();
            }
            members.all(pe).round(0);
        });
    });
    let (contributed, heard, runs) = report.result;
    assert_eq!(report.executions, runs);
    assert!(contributed >= u64::from(ROUNDS) * FOUNDERS as u64);
    assert_eq!(contributed, heard);
}

#[test]
fn who_lands_behind_the_broadcasts_hears_them_before_it_has_children_or_ends() {
    everywhere(400, 20, check);
}
