//! A reproducible random number generator: ChaCha with 8 rounds and an explicit seed.

use rand_chacha::ChaCha8Rng;
use rand_core::{RngCore, SeedableRng};

/// The random number generator for a `seed` and a `stream`; streams are independent of each other.
pub fn generator(seed: u64, stream: u64) -> ChaCha8Rng {
    let mut generator = ChaCha8Rng::seed_from_u64(seed);
    generator.set_stream(stream);
    generator
}

/// A uniformly distributed number below `bound` (Lemire 2019, "Fast random integer generation in an interval",
/// algorithm 5).
///
/// # Panics
/// If `bound` is 0.
pub fn below(generator: &mut impl RngCore, bound: u64) -> u64 {
    assert!(bound > 0, "the bound must be at least 1");
    loop {
        let product = u128::from(generator.next_u64()) * u128::from(bound);
        let low = product as u64;
        // Rejects the lowest 2^64 mod bound values of `low`, which would bias the result.
        if low >= bound || low >= bound.wrapping_neg() % bound {
            return (product >> 64) as u64;
        }
    }
}

/// One step of the SplitMix64 generator: a good hash of 64 bits.
pub fn splitmix(seed: u64) -> u64 {
    let mut z = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Shuffles `items` uniformly (Fisher and Yates).
pub fn shuffle<T>(generator: &mut impl RngCore, items: &mut [T]) {
    for last in (1..items.len()).rev() {
        items.swap(last, below(generator, last as u64 + 1) as usize);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_below_a_bound_are_uniformly_distributed() {
        let mut generator = generator(1, 0);
        let mut counts = [0u32; 6];
        for _ in 0..60_000 {
            counts[below(&mut generator, 6) as usize] += 1;
        }
        assert!(counts.iter().all(|count| (9_600..10_400).contains(count)), "{counts:?}");
    }

    #[test]
    fn generators_are_reproducible_and_differ_by_seed_and_stream() {
        let first = |seed, stream| generator(seed, stream).next_u64();
        assert_eq!(first(3, 4), first(3, 4));
        assert_ne!(first(3, 4), first(3, 5));
        assert_ne!(first(3, 4), first(4, 4));
    }
}
