//! Elements that end and are inserted again at the same index, while messages look for them.

#![allow(missing_docs)]

mod common;

use common::*;
use equipoise::prelude::*;

type Step = (u32, u32);

/// Inserts who is to live again, and hears what everybody got.
#[derive(Serialize, Deserialize)]
struct Registry {
    mortals: Array<Mortal>,
    heard: Vec<Step>,
    lives: u32,
    /// How many have not reported at the end.
    missing: usize,
    done: Exit<(Vec<Step>, u32)>,
}

#[chare(index = ())]
impl Registry {
    #[entry]
    fn bury(&mut self, cx: &Cx<Self>, index: [i32; 1], life: Mortal) {
        self.heard.extend(&life.got);
        self.lives += 1;
        self.mortals.insert(cx, index, Mortal { got: Vec::new(), ..life });
    }

    #[entry]
    fn hear(&mut self, cx: &Cx<Self>, got: Vec<Step>, last: bool) {
        self.heard.extend(got);
        self.lives += u32::from(!last);
        self.missing -= usize::from(last);
        if self.missing == 0 {
            self.done.exit(cx, (std::mem::take(&mut self.heard), self.lives));
        }
    }
}

#[derive(Clone, Serialize, Deserialize)]
struct Mortal {
    dice: Dice,
    got: Vec<Step>,
}

const MORTALS: usize = 9;

#[chare(index = [i32; 1])]
impl Mortal {
    #[entry]
    fn step(&mut self, cx: &Cx<Self>, registry: Array<Registry>, walk: u32, left: u32) {
        self.got.push((walk, left));
        if left > 0 {
            cx.peer([self.dice.draw(MORTALS) as i32]).step(registry, walk, left - 1);
        }
        match self.dice.draw(10) {
            // Another takes its place at once ..
            0 => {
                registry.at(cx, ()).hear(std::mem::take(&mut self.got), false);
                cx.array().insert(cx, cx.index(), self.clone());
                cx.destroy();
            }
            // .. or when somebody else hears of its end.
            1 => {
                registry.at(cx, ()).bury(cx.index(), self.clone());
                cx.destroy();
            }
            2..5 => cx.migrate(Pe(self.dice.draw(cx.pes()) as u32)),
            _ => {}
        }
    }

    #[entry]
    fn report(&mut self, cx: &Cx<Self>, registry: Array<Registry>) {
        registry.at(cx, ()).hear(std::mem::take(&mut self.got), true);
    }
}

#[test]
fn messages_reach_the_next_element_at_the_index_of_one_that_ended() {
    const WALKS: u32 = 6;
    const STEPS: u32 = 150;
    everywhere(60, 40, |config| {
        let report = equipoise::run(config, |pe, done| {
            let seed = pe.seed();
            let mortals =
                pe.array([MORTALS as i32], |[i]| Mortal { dice: Dice::new(seed, i as u64), got: Vec::new() });
            let registry =
                pe.array((), |()| Registry { mortals, heard: Vec::new(), lives: 0, missing: MORTALS, done });
            pe.main(move |pe| {
                for walk in 0..WALKS {
                    mortals.at(pe, [walk as i32]).step(registry, walk, STEPS);
                }
                mortals.all(pe).at_quiescence().report(registry);
            });
        });
        let (mut heard, lives) = report.result;
        heard.sort_unstable();
        let expected: Vec<Step> =
            (0..WALKS).flat_map(|walk| (0..=STEPS).map(move |left| (walk, left))).collect();
        assert_eq!(heard, expected);
        assert!(lives > 50, "only {lives} ended");
    });
}
