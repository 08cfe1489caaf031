//! What only takes place before or between messages: creation, and a whole load-balancing step; and a program that
//! only talks.

use equipoise::Report;
use equipoise::prelude::*;
use std::time::Instant;

/// An element with next to nothing in it.
#[derive(Serialize, Deserialize)]
pub struct Small {
    data: Vec<u8>,
    numbers: [u32; 4],
    done: Exit<f64>,
}

#[chare(index = [i32; 1])]
impl Small {
    #[entry]
    fn stop(&mut self, cx: &Cx<Self>) {
        self.done.exit(cx, f64::from(self.numbers[0]) + self.data.len() as f64);
    }
}

/// Creates so many elements on one PE; returns ns per element, and bytes per element beside the element.
pub fn create(elements: i32) -> (f64, f64) {
    let before = resident_bytes();
    let mut taken = (0.0, 0.0);
    let cell = std::sync::Mutex::new(&mut taken);
    equipoise::run(Config::threads(1), |pe, done| {
        let start = Instant::now();
        let array = pe.array([elements], |[n]| Small { data: Vec::new(), numbers: [n as u32; 4], done });
        let nanoseconds = start.elapsed().as_nanos() as f64 / f64::from(elements);
        let bytes = (resident_bytes() - before) / f64::from(elements) - size_of::<Small>() as f64;
        **cell.lock().expect("one PE") = (nanoseconds, bytes);
        pe.main(move |pe| array.at(pe, [0]).stop());
    });
    taken
}

fn resident_bytes() -> f64 {
    let pages = std::fs::read_to_string("/proc/self/statm").ok();
    let pages = pages.and_then(|text| text.split(' ').nth(1)?.parse::<f64>().ok());
    pages.unwrap_or(f64::NAN) * 4096.0
}

/// An element that does nothing but balance.
#[derive(Serialize, Deserialize)]
pub struct Balanced {
    steps: u32,
    epoch: Shared<Instant>,
    done: Exit<f64>,
}

#[chare(index = [i32; 1], sync)]
impl Balanced {
    #[entry]
    fn step(&mut self, cx: &Cx<Self>) {
        let [me] = cx.index();
        if self.steps == 0 {
            if me == 0 {
                self.done.exit(cx, self.epoch.get(cx).elapsed().as_secs_f64());
            }
            return;
        }
        self.steps -= 1;
        // The heavy elements change places from step to step, so that some always move.
        let heavy = (me + self.steps as i32 * 37) % 512 < 64;
        cx.charge(if heavy { 2e-5 } else { 1e-5 });
        cx.at_sync().step();
    }
}

/// Seconds per load-balancing step of so many elements, arrival to resumption included.
pub fn balance(config: Config, elements: i32, steps: u32) -> Report<f64> {
    equipoise::run(config, |pe, done| {
        let epoch = pe.shared(Instant::now);
        let array = pe.array([elements], |_| Balanced { steps, epoch, done });
        pe.main(move |pe| array.all(pe).step());
    })
}

/// An element that talks to the elements around it, without ever waiting for more than one message from each.
#[derive(Serialize, Deserialize)]
pub struct Talker {
    heard: u32,
    left: u32,
    done: Exit<u32>,
}

/// How many elements on either side are spoken to.
const AROUND: i32 = 5;

#[chare(index = [i32; 1])]
impl Talker {
    #[entry]
    fn speak(&mut self, cx: &Cx<Self>) {
        let ([me], [all]) = (cx.index(), cx.shape());
        for by in (1..=AROUND).flat_map(|by| [by, -by]) {
            // An odd stride puts those who talk on PEs that are far apart.
            cx.peer([(me + by * 257).rem_euclid(all)]).hear([0; 16]);
        }
    }

    #[entry]
    fn hear(&mut self, cx: &Cx<Self>, _words: [u64; 16]) {
        self.heard += 1;
        if self.heard == 2 * AROUND as u32 {
            (self.heard, self.left) = (0, self.left - 1);
            match self.left {
                0 => cx.peers().contribute().silent(1),
                _ => self.speak(cx),
            }
        }
    }

    #[entry(reduce = u32::wrapping_add)]
    fn silent(&mut self, cx: &Cx<Self>, count: u32) {
        self.done.exit(cx, count);
    }
}

/// One element per PE of a machine, and `messages` messages in all, more or less; returns the seconds it takes here
/// per message, and the report.
pub fn talk(config: Config, pes: i32, messages: usize) -> (f64, Report<u32>) {
    let left = (messages / (pes as usize * 2 * AROUND as usize)).max(1) as u32;
    let start = Instant::now();
    let report = equipoise::run(config, |pe, done| {
        let array = pe.array([pes], |_| Talker { heard: 0, left, done });
        pe.main(move |pe| array.all(pe).speak());
    });
    let messages = f64::from(left) * f64::from(pes) * f64::from(2 * AROUND);
    (start.elapsed().as_secs_f64() / messages, report)
}
