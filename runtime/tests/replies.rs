//! Replies: closures parked on one PE, answered from anywhere, once.

#![allow(missing_docs)]

mod common;

use common::*;
use equipoise::prelude::*;
use equipoise::try_run;

/// Answers questions, sometimes by way of others.
#[derive(Serialize, Deserialize)]
struct Oracle {
    dice: Dice,
}

#[chare(index = [i32; 1])]
impl Oracle {
    #[entry]
    fn ask(&mut self, cx: &Cx<Self>, question: u32, way: u32, reply: Reply<(u32, String)>) {
        if self.dice.once_in(3) {
            cx.migrate(Pe(self.dice.draw(cx.pes()) as u32));
        }
        match way {
            0 => reply.send(cx, (question, format!("answer {question}"))),
            _ => {
                let next = [self.dice.draw(cx.shape()[0] as usize) as i32];
                cx.peer(next).ask(question, way - 1, reply);
            }
        }
    }
}

#[derive(Serialize, Deserialize)]
struct Asker {
    oracles: Array<Oracle>,
    heard: u32,
    done: Exit<u32>,
}

const QUESTIONS: u32 = 25;

#[chare(index = Pe)]
impl Asker {
    #[entry]
    fn begin(&mut self, cx: &Cx<Self>) {
        for question in 0..QUESTIONS {
            let (me, here) = (cx.array(), cx.index());
            let reply = cx.reply(move |pe, (asked, answer): (u32, String)| {
                assert_eq!(pe.here(), here, "a closure runs where it is parked");
                assert_eq!((asked, answer), (question, format!("answer {question}")));
                me.at(pe, here).heard();
            });
            let oracle = [question as i32 % 6];
            self.oracles.at(cx, oracle).ask(question, question % 4, reply);
        }
    }

    #[entry]
    fn heard(&mut self, cx: &Cx<Self>) {
        self.heard += 1;
        if self.heard == QUESTIONS {
            cx.peer(Pe(0)).contribute().all(self.heard);
        }
        assert!(self.heard <= QUESTIONS);
    }

    #[entry(reduce = equipoise::reduce::sum)]
    fn all(&mut self, cx: &Cx<Self>, heard: u32) {
        self.done.exit(cx, heard);
    }
}

#[test]
fn every_parked_closure_hears_its_own_answer_once() {
    everywhere(40, 16, |config| {
        let pes = config.pes.unwrap_or(1) as u32;
        let report = equipoise::run(config, |pe, done| {
            let seed = pe.seed();
            let oracles = pe.array([6], |[i]| Oracle { dice: Dice::new(seed, i as u64) });
            let askers = pe.array(Pe(pe.pes() as u32), |_| Asker { oracles, heard: 0, done });
            pe.main(move |pe| askers.all(pe).begin());
        });
        assert_eq!(report.result, pes * QUESTIONS);
    });
}

#[test]
fn a_second_answer_is_an_error() {
    everywhere(14, 8, |config| {
        let error = try_run(config, |pe, _: Exit<u32>| {
            let oracles = pe.array([6], |[i]| Oracle { dice: Dice::new(1, i as u64) });
            pe.main(move |pe| {
                let reply = pe.reply(|_, _| ());
                oracles.at(pe, [0]).ask(1, 2, reply);
                oracles.at(pe, [5]).ask(1, 0, reply);
            });
        });
        let error = error.map(|report| report.result).expect_err("answered twice").to_string();
        assert!(error.starts_with("a parked closure on PE 0 was answered twice"), "{error}");
    });
}
