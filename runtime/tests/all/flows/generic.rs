//! Flows of generic chares, and of chares whose variants have the names of types of the trait `Chare`.

use crate::common::*;
use crate::generic::{Tally, Value};
use equipoise::prelude::*;
use std::marker::PhantomData;

/// Passes values around a ring, one in each lap; the element at 0 adds up what comes back.
#[derive(Serialize, Deserialize)]
struct Wheel<T, const LAPS: u32> {
    sum: u64,
    done: Exit<u64>,
    of: PhantomData<T>,
}

#[chare(index = [i32; 1])]
impl<T: Value, const LAPS: u32> Wheel<T, LAPS> {
    #[flow]
    fn life(&mut self, cx: &Cx<Self>) {
        let me: i32 = cx.index()[0];
        for lap in 0u32..LAPS {
            if me == 0 {
                cx.peer([1]).pass(lap, T::of(0));
            }
            let mine: T = T::of(me + lap as i32);
            cx.migrate(Pe((me as u32 + lap) % cx.pes() as u32));
            when!(pass(of, value) if of == lap => match me {
                0 => self.sum += value.number(),
                _ => cx.peer([(me + 1) % cx.shape()[0]]).pass(lap, value + mine),
            });
        }
        if me == 0 {
            self.done.exit(cx, self.sum);
        }
    }

    #[entry]
    fn pass(lap: u32, value: T);
}

fn turned<T: Value>(config: Config) -> u64 {
    let report = equipoise::run(config, |pe, done| {
        let wheel = pe.array([5], |_| Wheel::<T, 4> { sum: 0, done, of: PhantomData });
        pe.main(move |pe| wheel.all(pe).life());
    });
    report.result
}

fn expected<T: Value>() -> u64 {
    let lap = |lap| T::of(0).number() + (1..5).map(|me| T::of(me + lap).number()).sum::<u64>();
    (0..4).map(lap).sum()
}

#[test]
fn a_generic_chare_has_a_flow() {
    everywhere(32, 8, |config| {
        assert_eq!(turned::<u64>(config.clone()), expected::<u64>());
        assert_eq!(turned::<Tally>(config), expected::<Tally>());
    });
}

/// Its variants have the names of the types of `Chare`.
#[derive(Serialize, Deserialize)]
enum Stage {
    Msg(Exit<u32>),
    Flow,
    Proxy,
    Index,
}

#[chare(index = ())]
impl Stage {
    #[flow]
    fn life(&mut self, cx: &Cx<Self>) {
        while !matches!(self, Stage::Index) {
            cx.peer(()).next(1);
            when!(next(by) => self.advance(cx, by));
        }
    }

    #[entry]
    fn next(by: u32);

    #[entry(when = by > 0, reduce = u32::max, priority = by)]
    fn skip(&mut self, _cx: &Cx<Self>, by: u32) {
        let _ = by;
    }
}

impl Stage {
    fn advance(&mut self, cx: &Cx<Self>, by: u32) {
        *self = match self {
            Stage::Msg(done) => {
                done.exit(cx, by);
                Stage::Flow
            }
            Stage::Flow => Stage::Proxy,
            Stage::Proxy | Stage::Index => Stage::Index,
        };
    }
}

#[test]
fn variants_of_a_chare_have_any_name() {
    let report = equipoise::run(Config::simulated(2, 0), |pe, done| {
        let stage = pe.array((), |()| Stage::Msg(done));
        pe.main(move |pe| stage.at(pe, ()).life());
    });
    assert_eq!(report.result, 1);
}

#[test]
#[ignore = "slow"]
fn all_of_it_at_full_size() {
    at_full_size(&[a_generic_chare_has_a_flow]);
}
