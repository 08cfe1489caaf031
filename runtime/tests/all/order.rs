//! The initial placement of elements, and the order of messages between two elements.

#![allow(missing_docs)]

use crate::common::*;
use equipoise::prelude::*;
use equipoise::reduce;

/// Sends numbered messages to its peers, and checks the order of received messages.
#[derive(Serialize, Deserialize)]
struct Pen {
    rng: Rng,
    /// The number to expect next, by sender.
    next: Vec<u32>,
    done: Exit<Vec<u32>>,
}

const STAYERS: i32 = 4;
const MOVERS: i32 = 8;
const LETTERS: u32 = 200;

#[chare(index = [i32; 1])]
impl Pen {
    #[entry]
    fn write(&mut self, cx: &Cx<Self>, number: u32) {
        let burst = 1 + self.rng.sample(5) as u32;
        let last = (number + burst).min(LETTERS);
        for to in 0..STAYERS {
            (number..last)
                .for_each(|number| cx.peer([to]).read(cx.index()[0], number, String::from("letter")));
        }
        if last < LETTERS {
            cx.peer(cx.index()).write(last);
        }
    }

    #[entry]
    fn read(&mut self, cx: &Cx<Self>, from: i32, number: u32, _letter: String) {
        let next = &mut self.next[from as usize];
        assert_eq!(number, *next, "from {from} to {:?}", cx.index());
        *next += 1;
    }

    /// Migrates at random, so that slots change while messages are in flight.
    #[entry]
    fn roam(&mut self, cx: &Cx<Self>, left: u32) {
        let to = if self.rng.once_in(2) { 0 } else { self.rng.sample(cx.pes()) as u32 };
        cx.migrate(Pe(to));
        if left > 0 {
            cx.peer(cx.index()).roam(left - 1);
        }
    }

    #[entry]
    fn report(&mut self, cx: &Cx<Self>) {
        cx.peer([0]).contribute().all(self.next.clone());
    }

    #[entry(reduce = reduce::sums)]
    fn all(&mut self, cx: &Cx<Self>, read: Vec<u32>) {
        self.done.exit(cx, read);
    }
}

#[test]
fn messages_between_two_elements_that_stay_on_one_pe_arrive_in_order() {
    everywhere(40, 24, |config| {
        let report = equipoise::run(config, |pe, done| {
            let seed = pe.seed();
            let home = |[i]: [i32; 1]| Pe(if i < STAYERS { 0 } else { i as u32 % pe.pes() as u32 });
            let pens = pe.array_placed([STAYERS + MOVERS], home, |[i]| Pen {
                rng: Rng::new(seed, i as u64),
                next: vec![0; STAYERS as usize],
                done,
            });
            pe.main(move |pe| {
                (0..STAYERS).for_each(|i| pens.at(pe, [i]).write(0));
                (0..MOVERS).for_each(|i| pens.at(pe, [STAYERS + i]).roam(60));
                pens.all(pe).at_quiescence().report();
            });
        });
        assert_eq!(report.result, vec![LETTERS * STAYERS as u32; STAYERS as usize]);
    });
}

/// Reports its PE.
#[derive(Serialize, Deserialize)]
struct Flag {
    made_on: u32,
    done: Exit<Vec<u32>>,
}

#[chare(index = [i32; 2])]
impl Flag {
    #[entry]
    fn raise(&mut self, cx: &Cx<Self>) {
        assert_eq!(self.made_on, cx.here().0, "made and delivered to on different PEs");
        cx.peer([0, 0]).contribute().raised(vec![cx.here().0]);
    }

    #[entry(reduce = reduce::concat)]
    fn raised(&mut self, cx: &Cx<Self>, places: Vec<u32>) {
        self.done.exit(cx, places);
    }
}

const SHAPE: [i32; 2] = [5, 3];

/// The PE of every element, in index order; `listed` places them one by one.
fn places(config: Config, listed: Option<fn([i32; 2]) -> u32>) -> Vec<u32> {
    let report = equipoise::run(config, |pe, done| {
        let made_on = pe.here().0;
        let flag = |_| Flag { made_on, done };
        let flags = match listed {
            Some(place) => pe.array_placed(SHAPE, |index| Pe(place(index)), flag),
            None => pe.array(SHAPE, flag),
        };
        pe.main(move |pe| flags.all(pe).raise());
    });
    report.result
}

#[test]
fn elements_start_where_the_placement_says() {
    let path = std::env::temp_dir().join(format!("places-{}", std::process::id()));
    let file = path.display().to_string();
    let count = SHAPE[0] as u32 * SHAPE[1] as u32;
    for pes in 1..=8 {
        let lines: Vec<u32> = (0..count).map(|rank| (rank * 7 + 3) % pes).collect();
        std::fs::write(&path, lines.iter().map(|pe| format!("{pe}\n")).collect::<String>()).unwrap();
        for config in
            [Config::simulated(pes as usize, 5), Config { seed: 5, ..Config::threads(pes as usize) }]
        {
            let initial = |how: &str| Config { initial: how.into(), ..config.clone() };
            let blocks: Vec<u32> = (0..count).map(|rank| rank * pes / count).collect();
            assert_eq!(places(initial("blocks"), None), blocks);
            let in_turn: Vec<u32> = (0..count).map(|rank| rank % pes).collect();
            assert_eq!(places(initial("roundrobin"), None), in_turn);
            assert_eq!(places(initial(&file), None), lines);
            let random = places(initial("random"), None);
            assert_eq!(
                random,
                places(Config { initial: "random".into(), ..Config::simulated(pes as usize, 5) }, None)
            );
            assert!(
                random.iter().all(|&pe| pe < pes)
                    && (pes == 1 || random.windows(2).any(|two| two[0] != two[1]))
            );
            if pes > 2 {
                let own: Vec<u32> = (0..count).map(|rank| (rank % 5 + rank / 5) % 3).collect();
                assert_eq!(places(initial("random"), Some(|[x, y]| (x + y) as u32 % 3)), own);
            }
        }
    }
    std::fs::remove_file(path).unwrap();
}

#[test]
#[ignore = "slow"]
fn all_of_it_at_full_size() {
    at_full_size(&[messages_between_two_elements_that_stay_on_one_pe_arrive_in_order]);
}
