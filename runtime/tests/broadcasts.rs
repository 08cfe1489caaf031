//! Broadcasts and sections: everybody addressed hears each once, while everybody moves.

#![allow(missing_docs)]

mod common;

use common::*;
use equipoise::prelude::*;

/// A piece of news: who sent it, and its number.
type News = (u32, u32);

#[derive(Serialize, Deserialize)]
struct Listener {
    dice: Dice,
    heard: Vec<News>,
    judge: Array<Judge>,
}

#[chare(index = [i32; 1])]
impl Listener {
    #[entry]
    fn hear(&mut self, cx: &Cx<Self>, from: u32, number: u32, text: String) {
        assert_eq!(text, format!("{number} from {from}"));
        self.heard.push((from, number));
        if self.dice.once_in(3) {
            cx.migrate(Pe(self.dice.draw(cx.pes()) as u32));
        }
    }

    /// Moves about for no reason.
    #[entry]
    fn roam(&mut self, cx: &Cx<Self>, left: u32) {
        cx.migrate(Pe(self.dice.draw(cx.pes()) as u32));
        if left > 0 {
            cx.peer(cx.index()).roam(left - 1);
        }
    }

    /// Creates another.
    #[entry]
    fn create(&mut self, cx: &Cx<Self>, child: i32) {
        let listener = Listener { dice: self.dice.clone(), heard: Vec::new(), judge: self.judge };
        cx.array().insert(cx, [child], listener);
    }

    #[entry]
    fn report(&mut self, cx: &Cx<Self>) {
        self.judge.at(cx, ()).note(cx.index()[0], std::mem::take(&mut self.heard));
    }
}

/// What a listener heard: its index, the news.
type Heard = (i32, Vec<News>);

#[derive(Serialize, Deserialize)]
struct Judge {
    heard: Vec<Heard>,
    /// How many have not reported at the end.
    missing: usize,
    done: Exit<Vec<Heard>>,
}

#[chare(index = ())]
impl Judge {
    #[entry]
    fn note(&mut self, cx: &Cx<Self>, index: i32, heard: Vec<News>) {
        self.heard.push((index, heard));
        self.missing -= 1;
        if self.missing == 0 {
            self.heard.sort();
            self.done.exit(cx, std::mem::take(&mut self.heard));
        }
    }
}

/// Whom the news are for, and what happens meanwhile.
#[derive(Clone, Copy, PartialEq, Serialize, Deserialize)]
enum Kind {
    /// Everybody, all the time.
    All,
    /// Those whose index leaves the remainder `number % 3` when divided by 3.
    Sections,
    /// Everybody there is: some are created meanwhile.
    Growing,
}

const NEWS: u32 = 40;
const LISTENERS: i32 = 12;

#[derive(Serialize, Deserialize)]
struct Speaker {
    dice: Dice,
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
                listeners.only(cx, move |[i]| i as u32 % 3 == number % 3).hear(me, number, text)
            }
            _ => listeners.all(cx).hear(me, number, text),
        }
        let anyone = [self.dice.draw(LISTENERS as usize) as i32];
        match self.kind {
            Kind::Growing if me == 0 => {
                let child = LISTENERS + number as i32;
                if self.dice.once_in(2) {
                    let listener = Listener {
                        dice: Dice::new(cx.seed(), child as u64),
                        heard: Vec::new(),
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

fn heard(config: Config, kind: Kind) -> Vec<Heard> {
    let report = equipoise::run(config, |pe, done| {
        let seed = pe.seed();
        let growing = kind == Kind::Growing;
        let missing = LISTENERS as usize + if growing { NEWS as usize } else { 0 };
        let judge = pe.array((), |()| Judge { heard: Vec::new(), missing, done });
        let listener = move |i: i32| Listener { dice: Dice::new(seed, i as u64), heard: Vec::new(), judge };
        let listeners = match growing {
            true => pe.sparse([LISTENERS + NEWS as i32]),
            false => pe.array([LISTENERS], |[i]| listener(i)),
        };
        let speakers = pe.array(Pe(pe.pes() as u32), |Pe(pe)| Speaker {
            dice: Dice::new(seed, 1000 + u64::from(pe)),
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
fn every_element_hears_each_broadcast_once_while_all_migrate() {
    everywhere(60, 24, |config| {
        let speakers = config.pes.unwrap_or(1) as u32;
        let all: Vec<News> =
            (0..speakers).flat_map(|from| (0..NEWS).map(move |number| (from, number))).collect();
        let heard = heard(config, Kind::All);
        assert_eq!(heard.len(), LISTENERS as usize);
        for (index, mut news) in heard {
            news.sort_unstable();
            assert_eq!(news, all, "listener {index}");
        }
    });
}

#[test]
fn a_section_hears_what_is_sent_to_it_once_and_nobody_else_does() {
    everywhere(40, 16, |config| {
        let speakers = config.pes.unwrap_or(1) as u32;
        for (index, mut news) in heard(config, Kind::Sections) {
            news.sort_unstable();
            let numbers = || (0..NEWS).filter(|number| number % 3 == index as u32 % 3);
            let all: Vec<News> = (0..speakers).flat_map(|from| numbers().map(move |n| (from, n))).collect();
            assert_eq!(news, all, "listener {index}");
        }
    });
}

/// The news of one sender on PE 0 are numbered in the order they were sent: what somebody hears who was
/// not there from the beginning begins somewhere, and lacks nothing from there on.
fn check_suffix(what: &str, mut news: Vec<News>) {
    news.retain(|(from, _)| *from == 0);
    news.sort_unstable();
    let first = news.first().map_or(NEWS, |&(_, number)| number);
    let expected: Vec<News> = (first..NEWS).map(|number| (0, number)).collect();
    assert_eq!(news, expected, "{what}");
}

#[test]
fn an_element_created_meanwhile_hears_every_broadcast_from_some_point_on_once() {
    everywhere(60, 24, |config| {
        let heard = heard(config, Kind::Growing);
        assert_eq!(heard.len(), LISTENERS as usize + NEWS as usize);
        for (index, news) in heard {
            check_suffix(&format!("listener {index}"), news);
        }
    });
}

#[test]
fn elements_that_main_creates_hear_what_main_sends_next() {
    everywhere(60, 24, |config| {
        let report = equipoise::run(config, |pe, done| {
            let judge = pe.array((), |()| Judge { heard: Vec::new(), missing: LISTENERS as usize, done });
            let listeners = pe.sparse([LISTENERS]);
            let seed = pe.seed();
            pe.main(move |pe| {
                for i in 0..LISTENERS {
                    let dice = Dice::new(seed, i as u64);
                    listeners.insert(pe, [i], Listener { dice, heard: Vec::new(), judge });
                    listeners.all(pe).hear(7, i as u32, format!("{i} from 7"));
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
