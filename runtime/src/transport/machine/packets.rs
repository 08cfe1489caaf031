//! The packets of a simulated machine, and how long they are under way.

use crate::pe::Packet;
use rustc_hash::FxHashMap;

/// Packets in flight and in inboxes, by number.
#[derive(Default)]
pub(super) struct Packets {
    pub(super) all: Vec<Option<Packet>>,
    free: Vec<usize>,
}

impl Packets {
    pub(super) fn add(&mut self, packet: Packet) -> usize {
        match self.free.pop() {
            Some(number) => {
                self.all[number] = Some(packet);
                number
            }
            None => {
                self.all.push(Some(packet));
                self.all.len() - 1
            }
        }
    }

    pub(super) fn get(&self, number: usize) -> &Packet {
        self.all[number].as_ref().expect("a number stands for a packet until it is taken")
    }

    pub(super) fn remove(&mut self, number: usize) -> Packet {
        self.free.push(number);
        self.all[number].take().expect("a number stands for a packet until it is taken")
    }
}

/// A histogram of message latencies, with buckets of about 1 % width.
#[derive(Default)]
pub(super) struct Latencies {
    pub(super) count: u64,
    sum_seconds: f64,
    /// Counts by sign, exponent and the first 7 bits of the mantissa.
    buckets: FxHashMap<u32, u64>,
}

impl Latencies {
    const SHIFT: u32 = 45;

    pub(super) fn add(&mut self, seconds: f64) {
        self.count += 1;
        self.sum_seconds += seconds;
        *self.buckets.entry((seconds.to_bits() >> Self::SHIFT) as u32).or_default() += 1;
    }

    pub(super) fn mean(&self) -> f64 {
        if self.count == 0 { 0.0 } else { self.sum_seconds / self.count as f64 }
    }

    /// The quantile `part` of the latencies, to the width of a bucket.
    pub(super) fn quantile(&self, part: f64) -> f64 {
        let mut buckets: Vec<(u32, u64)> =
            self.buckets.iter().map(|(&bucket, &count)| (bucket, count)).collect();
        buckets.sort_unstable();
        let mut left = (self.count as f64 * part).ceil() as u64;
        for (bucket, count) in buckets {
            if count >= left {
                return f64::from_bits(u64::from(bucket) << Self::SHIFT);
            }
            left -= count;
        }
        0.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_exact_to_the_width_of_a_bucket() {
        let mut latencies = Latencies::default();
        assert_eq!((latencies.mean(), latencies.quantile(0.99)), (0.0, 0.0));
        (1..=1000).for_each(|i| latencies.add(f64::from(i) * 1e-6));
        assert!((latencies.mean() / 500.5e-6 - 1.0).abs() < 1e-12);
        for part in [0.01, 0.5, 0.99] {
            let found = latencies.quantile(part) / (part * 1e-3);
            assert!((0.99..=1.0).contains(&found), "{part}: {found}");
        }
    }
}
