//! Random numbers that are the same on every machine: ChaCha with 8 rounds, from a seed.

use rand_chacha::ChaCha8Rng;
use rand_core::{RngCore, SeedableRng};

/// The generator of `seed` for the purpose `stream`; different streams are independent.
pub(crate) fn generator(seed: u64, stream: u64) -> ChaCha8Rng {
    let mut generator = ChaCha8Rng::seed_from_u64(seed);
    generator.set_stream(stream);
    generator
}

/// A number below `bound`, every one equally likely (Lemire 2019, "Fast random integer generation in
/// an interval", algorithm 5).
///
/// # Panics
/// With a bound of 0.
pub(crate) fn below(generator: &mut impl RngCore, bound: u64) -> u64 {
    assert!(bound > 0, "there is no number below 0");
    loop {
        let product = u128::from(generator.next_u64()) * u128::from(bound);
        let low = product as u64;
        // The lowest 2^64 mod bound values of `low` would make some numbers likelier than others.
        if low >= bound || low >= bound.wrapping_neg() % bound {
            return (product >> 64) as u64;
        }
    }
}

/// Puts `items` into an order drawn from the generator, every one equally likely (Fisher and Yates).
pub(crate) fn shuffle<T>(generator: &mut impl RngCore, items: &mut [T]) {
    for last in (1..items.len()).rev() {
        items.swap(last, below(generator, last as u64 + 1) as usize);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_below_the_bound_is_about_equally_likely() {
        let mut generator = generator(1, 0);
        let mut counts = [0u32; 6];
        for _ in 0..60_000 {
            counts[below(&mut generator, 6) as usize] += 1;
        }
        assert!(counts.iter().all(|count| (9_600..10_400).contains(count)), "{counts:?}");
    }

    #[test]
    fn seeds_and_streams_give_different_numbers_and_the_same_again() {
        let first = |seed, stream| generator(seed, stream).next_u64();
        assert_eq!(first(3, 4), first(3, 4));
        assert_ne!(first(3, 4), first(3, 5));
        assert_ne!(first(3, 4), first(4, 4));
    }
}
