//! Broadcasts and sections: every receiver gets each message once, while all elements migrate.

#![allow(missing_docs)]

use crate::common::*;
use equipoise::prelude::*;

/// A message: its sender and its number.
type News = (u32, u32);

#[derive(Serialize, Deserialize)]
struct Listener {
    rng: Rng,
    received: Vec<News>,
    judge: Array<Judge>,
}

#[chare(index = [i32; 1])]
impl Listener {
    #[entry]
    fn receive(&mut self, cx: &Cx<Self>, from: u32, number: u32, text: String) {
        assert_eq!(text, format!("{number} from {from}"));
        self.received.push((from, number));
        if self.rng.once_in(3) {
            cx.migrate(Pe(self.rng.sample(cx.pes()) as u32));
        }
    }

    /// Migrates at random.
    #[entry]
    fn roam(&mut self, cx: &Cx<Self>, left: u32) {
        cx.migrate(Pe(self.rng.sample(cx.pes()) as u32));
        if left > 0 {
            cx.peer(cx.index()).roam(left - 1);
        }
    }

    /// Creates another listener.
    #[entry]
    fn create(&mut self, cx: &Cx<Self>, child: i32) {
        let listener = Listener { rng: self.rng.clone(), received: Vec::new(), judge: self.judge };
        cx.array().insert(cx, [child], listener);
    }

    #[entry]
    fn report(&mut self, cx: &Cx<Self>) {
        self.judge.at(cx, ()).note(cx.index()[0], std::mem::take(&mut self.received));
    }
}

/// The index of a listener, and the news it received.
type Received = (i32, Vec<News>);

#[derive(Serialize, Deserialize)]
struct Judge {
    received: Vec<Received>,
    /// Listeners that have not reported at the end.
    missing: usize,
    done: Exit<Vec<Received>>,
}

#[chare(index = ())]
impl Judge {
    #[entry]
    fn note(&mut self, cx: &Cx<Self>, index: i32, received: Vec<News>) {
        self.received.push((index, received));
        self.missing -= 1;
        if self.missing == 0 {
            self.received.sort();
            self.done.exit(cx, std::mem::take(&mut self.received));
        }
    }
}

/// The receivers of the news, and concurrent events.
#[derive(Clone, Copy, PartialEq, Serialize, Deserialize)]
enum Kind {
    /// All listeners.
    All,
    /// Listeners whose index modulo 3 equals `number % 3`.
    Sections,
    /// All existing listeners, while others are created.
    Growing,
}

const NEWS: u32 = 20;
const LISTENERS: i32 = 12;

#[derive(Serialize, Deserialize)]
struct Speaker {
    rng: Rng,
    kind: Kind,
    listeners: Array<Listener>,
    judge: Array<Judge>,
}

#[chare(index = Pe)]
impl Speaker {
    #[entry]
    fn speak(&mut self, cx: &Cx<Self>, number: u32) {
        let Pe(me) = cx.index();
        let text = format!("{number} from {me}");
        let listeners = self.listeners;
        match self.kind {
            Kind::Sections => {
                listeners.only(cx, move |[i]| i as u32 % 3 == number % 3).receive(me, number, text)
            }
            _ => listeners.all(cx).receive(me, number, text),
        }
        let anyone = [self.rng.sample(LISTENERS as usize) as i32];
        match self.kind {
            Kind::Growing if me == 0 => {
                let child = LISTENERS + number as i32;
                if self.rng.once_in(2) {
                    let listener = Listener {
                        rng: Rng::new(cx.seed(), child as u64),
                        received: Vec::new(),
                        judge: self.judge,
                    };
                    listeners.insert(cx, [child], listener);
                } else {
                    listeners.at(cx, anyone).create(child);
                }
                listeners.at(cx, [child]).roam(5);
            }
            _ => {}
        }
        if number + 1 < NEWS {
            cx.peer(cx.index()).speak(number + 1);
        }
    }
}

fn received(config: Config, kind: Kind) -> Vec<Received> {
    let report = equipoise::run(config, |pe, done| {
        let seed = pe.seed();
        let growing = kind == Kind::Growing;
        let missing = LISTENERS as usize + if growing { NEWS as usize } else { 0 };
        let judge = pe.array((), |()| Judge { received: Vec::new(), missing, done });
        let listener = move |i: i32| Listener { rng: Rng::new(seed, i as u64), received: Vec::new(), judge };
        let listeners = match growing {
            true => pe.sparse([LISTENERS + NEWS as i32]),
            false => pe.array([LISTENERS], |[i]| listener(i)),
        };
        let speakers = pe.array(Pe(pe.pes() as u32), |Pe(pe)| Speaker {
            rng: Rng::new(seed, 1000 + u64::from(pe)),
            kind,
            listeners,
            judge,
        });
        pe.main(move |pe| {
            if growing {
                (0..LISTENERS).for_each(|i| listeners.insert(pe, [i], listener(i)));
            }
            let quiet = pe.reply(move |pe, ()| {
                (0..LISTENERS).for_each(|i| listeners.at(pe, [i]).roam(20));
                speakers.all(pe).speak(0);
                listeners.all(pe).at_quiescence().report();
            });
            quiet.send(pe, ());
        });
    });
    report.result
}

#[test]
fn every_element_receives_each_broadcast_once_while_all_migrate() {
    everywhere(40, 16, |config| {
        let speakers = config.pes.unwrap_or(1) as u32;
        let all: Vec<News> =
            (0..speakers).flat_map(|from| (0..NEWS).map(move |number| (from, number))).collect();
        let received = received(config, Kind::All);
        assert_eq!(received.len(), LISTENERS as usize);
        for (index, mut news) in received {
            news.sort_unstable();
            assert_eq!(news, all, "listener {index}");
        }
    });
}

#[test]
fn only_the_elements_of_a_section_receive_its_messages_and_once() {
    everywhere(40, 16, |config| {
        let speakers = config.pes.unwrap_or(1) as u32;
        for (index, mut news) in received(config, Kind::Sections) {
            news.sort_unstable();
            let numbers = || (0..NEWS).filter(|number| number % 3 == index as u32 % 3);
            let all: Vec<News> = (0..speakers).flat_map(|from| numbers().map(move |n| (from, n))).collect();
            assert_eq!(news, all, "listener {index}");
        }
    });
}

/// The news of a sender on PE 0 are numbered in order of sending. A listener created later receives all news from some
/// number on.
fn check_suffix(what: &str, mut news: Vec<News>) {
    news.retain(|(from, _)| *from == 0);
    news.sort_unstable();
    let first = news.first().map_or(NEWS, |&(_, number)| number);
    let expected: Vec<News> = (first..NEWS).map(|number| (0, number)).collect();
    assert_eq!(news, expected, "{what}");
}

#[test]
fn a_new_element_receives_each_broadcast_from_some_point_on_once() {
    everywhere(24, 12, |config| {
        let received = received(config, Kind::Growing);
        assert_eq!(received.len(), LISTENERS as usize + NEWS as usize);
        for (index, news) in received {
            check_suffix(&format!("listener {index}"), news);
        }
    });
}

#[test]
fn elements_created_by_main_receive_later_broadcasts_of_main() {
    everywhere(60, 24, |config| {
        let report = equipoise::run(config, |pe, done| {
            let judge = pe.array((), |()| Judge { received: Vec::new(), missing: LISTENERS as usize, done });
            let listeners = pe.sparse([LISTENERS]);
            let seed = pe.seed();
            pe.main(move |pe| {
                for i in 0..LISTENERS {
                    let rng = Rng::new(seed, i as u64);
                    listeners.insert(pe, [i], Listener { rng, received: Vec::new(), judge });
                    listeners.all(pe).receive(7, i as u32, format!("{i} from 7"));
                }
                listeners.all(pe).at_quiescence().report();
            });
        });
        for (index, mut news) in report.result {
            news.sort_unstable();
            let expected: Vec<News> = (index as u32..LISTENERS as u32).map(|number| (7, number)).collect();
            assert_eq!(news, expected, "listener {index}");
        }
    });
}

#[test]
#[ignore = "slow"]
fn all_of_it_at_full_size() {
    at_full_size(&[
        every_element_receives_each_broadcast_once_while_all_migrate,
        only_the_elements_of_a_section_receive_its_messages_and_once,
        a_new_element_receives_each_broadcast_from_some_point_on_once,
        elements_created_by_main_receive_later_broadcasts_of_main,
    ]);
}
