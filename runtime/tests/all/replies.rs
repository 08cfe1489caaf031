//! Replies: closures parked on one PE receive one reply from any PE.

#![allow(missing_docs)]

use crate::common::*;
use equipoise::prelude::*;
use equipoise::{Shared, try_run};
use std::sync::{Arc, Mutex};

/// Answers questions, sometimes after forwarding them.
#[derive(Serialize, Deserialize)]
struct Oracle {
    rng: Rng,
}

#[chare(index = [i32; 1])]
impl Oracle {
    #[entry]
    fn ask(&mut self, cx: &Cx<Self>, question: u32, way: u32, reply: Reply<(u32, String)>) {
        if self.rng.once_in(3) {
            cx.migrate(Pe(self.rng.sample(cx.pes()) as u32));
        }
        match way {
            0 => reply.send(cx, (question, format!("answer {question}"))),
            _ => {
                let next = [self.rng.sample(cx.shape()[0] as usize) as i32];
                cx.peer(next).ask(question, way - 1, reply);
            }
        }
    }
}

#[derive(Serialize, Deserialize)]
struct Asker {
    oracles: Array<Oracle>,
    received: u32,
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
                me.at(pe, here).received();
            });
            let oracle = [question as i32 % 6];
            self.oracles.at(cx, oracle).ask(question, question % 4, reply);
        }
    }

    #[entry]
    fn received(&mut self, cx: &Cx<Self>) {
        self.received += 1;
        if self.received == QUESTIONS {
            cx.peer(Pe(0)).contribute().all(self.received);
        }
        assert!(self.received <= QUESTIONS);
    }

    #[entry(reduce = equipoise::reduce::sum)]
    fn all(&mut self, cx: &Cx<Self>, received: u32) {
        self.done.exit(cx, received);
    }
}

#[test]
fn every_parked_closure_receives_its_own_reply_once() {
    everywhere(40, 16, |config| {
        let pes = config.pes.unwrap_or(1) as u32;
        let report = equipoise::run(config, |pe, done| {
            let seed = pe.seed();
            let oracles = pe.array([6], |[i]| Oracle { rng: Rng::new(seed, i as u64) });
            let askers = pe.array(Pe(pe.pes() as u32), |_| Asker { oracles, received: 0, done });
            pe.main(move |pe| askers.all(pe).begin());
        });
        assert_eq!(report.result, pes * QUESTIONS);
    });
}

#[test]
fn a_second_answer_is_an_error() {
    everywhere(14, 8, |config| {
        let error = try_run(config, |pe, _: Exit<u32>| {
            let oracles = pe.array([6], |[i]| Oracle { rng: Rng::new(1, i as u64) });
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

/// Keeps its reply after the run, or answers one that was kept.
#[derive(Serialize, Deserialize)]
struct Keeper {
    kept: Shared<Arc<Mutex<Option<Reply<u32>>>>>,
    done: Exit<()>,
}

#[chare(index = ())]
impl Keeper {
    #[entry]
    fn keep(&mut self, cx: &Cx<Self>) {
        *self.kept.get(cx).lock().unwrap() = Some(cx.reply(|_, _| ()));
        self.done.exit(cx, ());
    }

    #[entry]
    fn answer(&mut self, cx: &Cx<Self>) {
        let kept = self.kept.get(cx).lock().unwrap().take();
        kept.expect("an earlier run has kept it").send(cx, 1);
    }
}

#[test]
fn a_reply_of_another_run_is_an_error() {
    let kept = Arc::new(Mutex::new(None));
    let run = |pes: usize, keeps: bool| {
        let report = try_run(Config::threads(pes), |pe, done| {
            let kept = pe.shared(|| Arc::clone(&kept));
            let last = Pe(pe.pes() as u32 - 1);
            let keeper = pe.array_placed((), move |_| last, move |()| Keeper { kept, done });
            pe.main(move |pe| match keeps {
                true => keeper.at(pe, ()).keep(),
                false => keeper.at(pe, ()).answer(),
            });
        });
        report.map(|report| report.result)
    };
    for (pes, sentence) in [
        (1, "panicked: send a `Reply` only in the run that made it ("),
        (
            2,
            "a parked closure on PE 1 was answered twice, or does not exist; send each `Reply` once, in the run that made it",
        ),
    ] {
        run(2, true).expect("the run exits");
        let error = run(pes, false).expect_err("a reply of another run").to_string();
        assert!(error.contains(sentence), "{error}");
    }
}

#[test]
#[ignore = "slow"]
fn all_of_it_at_full_size() {
    at_full_size(&[every_parked_closure_receives_its_own_reply_once, a_second_answer_is_an_error]);
}
