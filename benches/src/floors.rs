//! Floors: the cost of basic operations of the machine, such as a queue, a pair of threads, or a copy.

use crossbeam_utils::CachePadded;
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::hint::{black_box, spin_loop};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::*};
use std::time::Instant;

/// A message: a rank, a slot and four integers.
type Token = (u32, u32, [i32; 4]);

/// A typed queue and a dense table on one thread without a runtime, ns per message.
pub fn local_queue(messages: usize) -> f64 {
    let mut table = vec![0u64; 1000];
    let mut queue: VecDeque<Token> = (0..1000).map(|rank| (rank, rank, [rank as i32; 4])).collect();
    let start = Instant::now();
    for _ in 0..messages {
        let Some((rank, slot, mut data)) = queue.pop_front() else { break };
        table[slot as usize] += data[0] as u64;
        data[1] -= 1;
        let to = (rank + 1) % 1000;
        queue.push_back((to, to, data));
    }
    black_box(&table);
    start.elapsed().as_nanos() as f64 / messages as f64
}

/// The transfer of a cache line between two cores: two threads pass one word back and forth, ns one way.
pub fn cache_line(turns: u64) -> f64 {
    let word = CachePadded::new(AtomicU64::new(0));
    let side = |odd: u64, core: usize| {
        core_affinity::set_for_current(core_affinity::CoreId { id: core });
        for turn in 0..turns / 2 {
            let mine = 2 * turn + odd;
            while word.load(Acquire) != mine {
                spin_loop();
            }
            word.store(mine + 1, Release);
        }
    };
    let start = Instant::now();
    std::thread::scope(|scope| {
        scope.spawn(|| side(0, 0));
        scope.spawn(|| side(1, 1));
    });
    start.elapsed().as_nanos() as f64 / turns as f64
}

/// A minimal mailbox: one thread fills a locked vector, another swaps it out, ns per message.
pub fn mailbox(messages: usize) -> f64 {
    let mail = CachePadded::new(Mutex::new(Vec::<Token>::new()));
    let over = AtomicBool::new(false);
    let start = Instant::now();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            core_affinity::set_for_current(core_affinity::CoreId { id: 0 });
            for n in 0..messages {
                mail.lock().push((n as u32, n as u32, [1; 4]));
            }
            over.store(true, Release);
        });
        scope.spawn(|| {
            core_affinity::set_for_current(core_affinity::CoreId { id: 1 });
            let (mut batch, mut got) = (Vec::new(), 0);
            while got < messages {
                std::mem::swap(&mut *mail.lock(), &mut batch);
                got += batch.len();
                black_box(&batch);
                batch.clear();
            }
        });
    });
    start.elapsed().as_nanos() as f64 / messages as f64
}

/// One clock reading, ns: the minimum cost of a measured delivery.
pub fn clock(readings: usize) -> f64 {
    let start = Instant::now();
    for _ in 0..readings {
        black_box(Instant::now());
    }
    start.elapsed().as_nanos() as f64 / readings as f64
}

/// Copying `bytes` bytes twice (out of one object, into another), us.
pub fn copy_twice(bytes: usize, times: usize) -> f64 {
    let (from, mut between, mut to) = (vec![1u8; bytes], vec![0u8; bytes], vec![0u8; bytes]);
    let start = Instant::now();
    for _ in 0..times {
        between.copy_from_slice(black_box(&from));
        to.copy_from_slice(black_box(&between));
        black_box(&to);
    }
    start.elapsed().as_secs_f64() * 1e6 / times as f64
}

/// Creating and dropping a plain vector of elements, ns per element.
pub fn plain_creation(elements: usize) -> f64 {
    let start = Instant::now();
    let all: Vec<(Vec<u8>, [u32; 4])> = (0..elements).map(|n| (Vec::new(), [n as u32; 4])).collect();
    black_box(&all);
    start.elapsed().as_nanos() as f64 / elements as f64
}

/// Sorting loads with their numbers, ms: the minimum cost of a strategy that handles objects by descending load.
pub fn sort(loads: u32) -> f64 {
    let mut loads: Vec<(u64, u32)> =
        (0..loads).map(|n| (u64::from(n.wrapping_mul(2_654_435_761)), n)).collect();
    let start = Instant::now();
    black_box(&mut loads).sort_unstable();
    black_box(&loads);
    start.elapsed().as_secs_f64() * 1e3
}

/// Writing a table of `side` x `side` numbers of 8 bytes, ms: the minimum cost of a strategy that compares all groups
/// with all PEs.
pub fn table(side: usize) -> f64 {
    let start = Instant::now();
    let table: Vec<u64> = (0..(side * side) as u64).collect();
    black_box(&table);
    start.elapsed().as_secs_f64() * 1e3
}
