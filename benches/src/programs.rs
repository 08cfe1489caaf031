//! What only takes place before or between messages: creation, and a whole load-balancing step.

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
