//! A program that exchanges messages between its elements, for tests of processes: their sizes, their amount, and printed lines.

use clap::{Parser, ValueEnum};
use equipoise::prelude::*;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

#[derive(Parser)]
struct Cli {
    /// What the elements do
    #[arg(value_enum)]
    what: What,

    /// Bytes of a message
    #[arg(long, default_value_t = 8)]
    bytes: usize,

    /// Messages or lines of each element
    #[arg(long, default_value_t = 10)]
    times: u32,

    /// Elements, in place of one per PE
    #[arg(long)]
    elements: Option<i32>,

    /// What the setups of all processes but the first do in another way
    #[arg(long, value_enum)]
    differs: Option<Differs>,

    #[command(flatten)]
    config: Config,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
enum What {
    /// Every element sends messages to every element.
    All,
    /// The first element sends to the second as long as it may, which sends four copies of each message to the third, which
    /// is slow.
    Flood,
    /// Every element prints lines.
    Print,
    /// Every element counts itself in its process; an element of each process reports its count.
    Count,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Differs {
    /// They make one more array.
    Arrays,
    /// An array has another entry.
    Entries,
}

#[derive(Serialize, Deserialize)]
struct Member {
    what: What,
    bytes: usize,
    times: u32,
    received: u32,
    sum: u64,
    counted: Shared<AtomicU64>,
    done: Exit<u64>,
}

/// A message that a receiver can check.
fn message(from: i32, number: u32, bytes: usize) -> Vec<u8> {
    let pattern: Vec<u8> = (0..251).map(|at: u32| (at * 7 + number * 31 + from as u32) as u8).collect();
    let mut message = pattern.repeat(bytes / pattern.len() + 1);
    message.truncate(bytes);
    message
}

#[chare(index = [i32; 1])]
impl Member {
    #[entry]
    fn begin(&mut self, cx: &Cx<Self>) {
        let ([me], [all]) = (cx.index(), cx.shape());
        match self.what {
            What::All => {
                for (number, to) in (0..self.times).flat_map(|number| (0..all).map(move |to| (number, to))) {
                    cx.peer([to]).receive(me, number, message(me, number, self.bytes));
                }
            }
            What::Flood if me == 0 => self.flood(cx),
            What::Flood => {}
            What::Count => _ = self.counted.get(cx).fetch_add(1, Relaxed),
            What::Print => {
                for line in 0..self.times {
                    // Long, so that two lines would mix if they were written in parts.
                    cx.print(format!("{me} {line} {}", "-".repeat(300)));
                }
                cx.peer([0]).contribute().total(1);
            }
        }
    }

    /// Sends one message, and itself the order for the next.
    #[entry]
    fn flood(&mut self, cx: &Cx<Self>) {
        if self.times > 0 {
            self.times -= 1;
            cx.peer([1]).pass(self.times, message(0, self.times, self.bytes));
            cx.peer([0]).flood();
        }
    }

    #[entry]
    fn pass(&mut self, cx: &Cx<Self>, number: u32, data: Vec<u8>) {
        (0..4).for_each(|_| cx.peer([2]).receive(0, number, data.clone()));
    }

    #[entry]
    fn receive(&mut self, cx: &Cx<Self>, from: i32, number: u32, data: Vec<u8>) {
        assert!(data == message(from, number, self.bytes), "a message has changed");
        self.received += 1;
        self.sum += data.len() as u64;
        let expected = if self.what == What::Flood { 4 } else { cx.shape()[0] as u32 };
        if self.what == What::Flood {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        if self.received == expected * self.times {
            match self.what {
                What::Flood => self.done.exit(cx, self.sum),
                _ => cx.peer([0]).contribute().total(self.sum),
            }
        }
    }

    #[entry(reduce = equipoise::reduce::sum)]
    fn total(&mut self, cx: &Cx<Self>, sum: u64) {
        self.done.exit(cx, sum);
    }
}

/// One element in each process.
#[derive(Serialize, Deserialize)]
struct Office {
    counted: Shared<AtomicU64>,
    done: Exit<u64>,
}

#[chare(index = Process)]
impl Office {
    /// Reports the number of elements that this process has counted, and where it is.
    #[entry]
    fn report(&mut self, cx: &Cx<Self>) {
        let Process(process) = cx.index();
        let (count, place) = (self.counted.get(cx).load(Relaxed), u64::from(cx.here().0));
        cx.peer(Process(0)).contribute().total(u64::from(process + 1) * (1000 * count + place));
    }

    #[entry(reduce = equipoise::reduce::sum)]
    fn total(&mut self, cx: &Cx<Self>, sum: u64) {
        self.done.exit(cx, sum);
    }
}

mod one {
    use equipoise::prelude::*;

    #[derive(Serialize, Deserialize)]
    pub struct Other;

    #[chare(index = [i32; 1])]
    impl Other {
        #[entry]
        pub fn rest(&mut self, _cx: &Cx<Self>) {}
    }
}

mod two {
    use equipoise::prelude::*;

    #[derive(Serialize, Deserialize)]
    pub struct Other;

    #[chare(index = [i32; 1])]
    impl Other {
        #[entry]
        pub fn sleep(&mut self, _cx: &Cx<Self>) {}
    }
}

fn main() {
    let Cli { what, bytes, times, elements, differs, config } = equipoise::parse();
    let report = equipoise::run(config, |pe, done| {
        let elements = elements.unwrap_or(pe.pes() as i32);
        let counted = pe.shared(AtomicU64::default);
        let members =
            pe.array([elements], |_| Member { what, bytes, times, received: 0, sum: 0, counted, done });
        let offices = (what == What::Count)
            .then(|| pe.array(Process(pe.processes() as u32), |_| Office { counted, done }));
        match differs {
            None => {}
            Some(Differs::Arrays) if pe.process() == Process(0) => {}
            Some(Differs::Entries) if pe.process() == Process(0) => _ = pe.array([1], |_| two::Other),
            Some(_) => _ = pe.array([1], |_| one::Other),
        }
        pe.main(move |pe| {
            members.all(pe).begin();
            if let Some(offices) = offices {
                offices.all(pe).at_quiescence().report();
            }
        });
    });
    if report.process == 0 {
        println!("{} peak {}", report.result, report.job.traffic.peak_unsent_bytes);
    }
}
