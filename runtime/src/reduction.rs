//! Reductions: one value from all elements of an array or of a section, combined by the target entry's function.
//!
//! The n-th contribution of every element belongs to the n-th reduction of its array, and the n-th one to a section to the n-th
//! reduction of this section. So several reductions may be in progress, and an element may migrate between two contributions. PEs
//! combine the contributions of their elements and send the result up the tree of PEs to PE 0, which counts the elements
//! ([`Ledger`]; the members of a section are fixed).
//!
//! Floating-point sums depend on the order of their terms. So contributions are combined in a fixed
//! order, independent of arrival and placement: along a binary tree over the ranks of the array, or the positions in the
//! section. The inner nodes of this tree are the aligned runs of 2^k ranks ([`Pieces`]).

use equipoise_model::random::splitmix;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Built-in reduction functions. Functions of the standard library work, too (`f64::max`, `i32::min`,
/// `u64::wrapping_add` ..).
pub mod reduce {
    use std::ops::{Add, Mul};

    /// The sum. Integers overflow as with `+`: builds with overflow checks panic, others wrap. `u64::wrapping_add` always wraps.
    pub fn sum<V: Add<Output = V>>(a: V, b: V) -> V {
        a + b
    }

    /// The product. Integers overflow as in `sum`.
    pub fn product<V: Mul<Output = V>>(a: V, b: V) -> V {
        a * b
    }

    /// The smaller of two values.
    pub fn min<V: PartialOrd>(a: V, b: V) -> V {
        if b < a { b } else { a }
    }

    /// The larger of two values.
    pub fn max<V: PartialOrd>(a: V, b: V) -> V {
        if b > a { b } else { a }
    }

    /// Whether all are true.
    pub fn all(a: bool, b: bool) -> bool {
        a && b
    }

    /// Whether some are true.
    pub fn any(a: bool, b: bool) -> bool {
        a || b
    }

    /// No value: a barrier, which completes when all elements have contributed.
    pub fn nothing((): (), (): ()) {}

    /// Combines vectors element by element with `f`; keeps the rest of the longer vector.
    pub fn each<V>(mut a: Vec<V>, b: Vec<V>, f: impl Fn(&V, &V) -> V) -> Vec<V> {
        let common = a.len().min(b.len());
        for (a, b) in a.iter_mut().zip(&b) {
            *a = f(a, b);
        }
        a.extend(b.into_iter().skip(common));
        a
    }

    /// The sums, element by element.
    pub fn sums<V: Add<Output = V> + Copy>(a: Vec<V>, b: Vec<V>) -> Vec<V> {
        each(a, b, |&a, &b| a + b)
    }

    /// The smaller values, element by element.
    pub fn mins<V: PartialOrd + Copy>(a: Vec<V>, b: Vec<V>) -> Vec<V> {
        each(a, b, |&a, &b| min(a, b))
    }

    /// The larger values, element by element.
    pub fn maxs<V: PartialOrd + Copy>(a: Vec<V>, b: Vec<V>) -> Vec<V> {
        each(a, b, |&a, &b| max(a, b))
    }

    /// Two reductions in one: a contribution is a pair, whose parts are combined by `first` and `second`. Three are a pair with
    /// a pair in it.
    ///
    /// ```
    /// use equipoise::reduce;
    ///
    /// // #[entry(reduce = |a, b| reduce::pair(a, b, f64::max, reduce::sum))]
    /// assert_eq!(reduce::pair((0.5, 3), (0.25, 4), f64::max, reduce::sum), (0.5, 7));
    /// ```
    pub fn pair<A, B>(
        a: (A, B),
        b: (A, B),
        first: impl FnOnce(A, A) -> A,
        second: impl FnOnce(B, B) -> B,
    ) -> (A, B) {
        (first(a.0, b.0), second(a.1, b.1))
    }

    /// All vectors after one another, in the order of the elements.
    pub fn concat<V>(mut a: Vec<V>, mut b: Vec<V>) -> Vec<V> {
        a.append(&mut b);
        a
    }
}

/// The combined contributions of the run of 2^level ranks from `start`.
#[derive(Debug, Serialize, Deserialize)]
struct Piece<M> {
    start: u32,
    level: u8,
    msg: M,
}

/// Contributions of some ranks, combined as far as the tree allows.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Pieces<M>(Vec<Piece<M>>);

impl<M> Default for Pieces<M> {
    fn default() -> Self {
        Pieces(Vec::new())
    }
}

impl<M> Pieces<M> {
    /// The contribution of one rank.
    pub(crate) fn of(rank: u32, msg: M) -> Self {
        Pieces(vec![Piece { start: rank, level: 0, msg }])
    }

    /// The ranks that contributed, as runs: the first rank and the number of ranks, in ascending order.
    pub(crate) fn runs(&self) -> Vec<(u32, u64)> {
        let mut runs: Vec<_> = self.0.iter().map(|piece| (piece.start, 1 << piece.level)).collect();
        runs.sort_unstable();
        runs
    }

    /// Whether each rank below `len` contributed once.
    pub(crate) fn covers(&self, len: u32) -> bool {
        let runs = self.runs();
        let mut end = 0;
        let mut follows = |(start, count): (u32, u64)| {
            let is_next = u64::from(start) == end;
            end += count;
            is_next
        };
        runs.into_iter().all(&mut follows) && end == u64::from(len)
    }

    /// Sorts by rank. Numbers are sorted in place of messages, because a sort of messages would be compiled for each type of them.
    fn sort(&mut self) {
        if self.0.is_sorted_by_key(|piece| piece.start) {
            return;
        }
        let mut order: Vec<(u32, usize)> = self.0.iter().map(|piece| piece.start).zip(0..).collect();
        order.sort_unstable();
        let mut pieces: Vec<Option<Piece<M>>> = std::mem::take(&mut self.0).into_iter().map(Some).collect();
        self.0.extend(order.into_iter().filter_map(|(_, at)| pieces[at].take()));
    }

    /// The contributions by rank, if none are combined.
    pub(crate) fn into_ranks(mut self) -> impl Iterator<Item = (u32, M)> {
        self.sort();
        self.0.into_iter().map(|piece| (piece.start, piece.msg))
    }

    /// Adds the contribution of one rank.
    #[inline(always)]
    pub(crate) fn add(&mut self, rank: u32, msg: M, combine: impl Fn(M, M) -> M) {
        self.push(Piece { start: rank, level: 0, msg }, combine);
    }

    /// The contributions.
    pub(crate) fn messages(&self) -> impl Iterator<Item = &M> {
        self.0.iter().map(|piece| &piece.msg)
    }

    /// Adds a run, and joins it with the previous run as long as the two are the halves of a run.
    #[inline(always)]
    fn push(&mut self, mut piece: Piece<M>, combine: impl Fn(M, M) -> M) {
        while let Some(last) = self.0.last() {
            let halves = last.level == piece.level
                && piece.level < 32
                && u64::from(last.start) + (1 << piece.level) == u64::from(piece.start)
                && u64::from(last.start) % (2 << piece.level) == 0;
            if !halves {
                break;
            }
            let Some(left) = self.0.pop() else { break };
            piece = Piece { start: left.start, level: left.level + 1, msg: combine(left.msg, piece.msg) };
        }
        self.0.push(piece);
    }

    /// Sorts and joins runs that arrived out of order.
    pub(crate) fn merge(&mut self, combine: impl Fn(M, M) -> M) {
        if self.0.len() > 1 {
            self.sort();
            let pieces = std::mem::take(&mut self.0);
            for piece in pieces {
                self.push(piece, &combine);
            }
        }
    }

    /// Adds all of `other`.
    pub(crate) fn append(&mut self, mut other: Self) {
        self.0.append(&mut other.0);
    }

    /// The value of the whole tree; a missing rank is replaced by its sibling.
    pub(crate) fn fold(mut self, combine: impl Fn(M, M) -> M) -> Option<M> {
        self.sort();
        // Of each entry: its start, the level of the smallest run that contains this entry and the one below, its value.
        let mut stack: Vec<(u32, u32, M)> = Vec::new();
        for piece in self.0 {
            let shared = stack.last().map_or(0, |&(start, ..)| 32 - (start ^ piece.start).leading_zeros());
            while stack.len() > 1 && stack[stack.len() - 1].1 < shared {
                Self::join(&mut stack, &combine);
            }
            stack.push((piece.start, shared, piece.msg));
        }
        while stack.len() > 1 {
            Self::join(&mut stack, &combine);
        }
        stack.pop().map(|(_, _, msg)| msg)
    }

    fn join(stack: &mut Vec<(u32, u32, M)>, combine: impl Fn(M, M) -> M) {
        if let (Some((_, _, right)), Some((start, shared, left))) = (stack.pop(), stack.pop()) {
            stack.push((start, shared, combine(left, right)));
        }
    }
}

/// Counts of the participants in a round of a collective, and of created and ended elements.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Tally {
    /// Elements that participated.
    pub count: u32,
    /// The births of the elements that the participants created, less the births of those that appeared; a wrapping sum. It
    /// is 0 if every element that was created has appeared. Counts would not do: an element may appear before its creator does,
    /// while another element that was created is missing.
    pub births: u64,
    /// Participants that were created by elements and participate for the first time.
    pub appeared: u32,
    /// Elements that ended before they participated.
    pub ended: u32,
}

impl Tally {
    /// Adds another tally.
    #[inline]
    pub(crate) fn add(&mut self, other: Tally) {
        self.count += other.count;
        self.births = self.births.wrapping_add(other.births);
        self.appeared += other.appeared;
        self.ended += other.ended;
    }
}

/// A saved run had fewer elements and rounds than this, so that sums of two of their counts do not overflow.
const COUNTS_END: u32 = 1 << 31;

/// A number for the creation of an element by another element, by their ranks; not 0.
pub(crate) fn birth(creator: u32, rank: u32) -> u64 {
    splitmix(u64::from(creator) << 32 | u64::from(rank)) | 1
}

/// Counts the participants in the rounds of a collective (reductions, or load-balancing barriers) of one
/// array, on PE 0.
///
/// Elements are created and destroyed while rounds are in progress. An element reports the elements it created when it
/// next participates, so no round is complete before its creations are known. A new element reports its first
/// participation (`appeared`), and the round waits until all elements that were created have appeared (`births`).
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Ledger {
    next: u32,
    population: i64,
    rounds: BTreeMap<u32, Tally>,
}

impl Ledger {
    /// A ledger of `population` elements before the first round.
    pub(crate) fn new(population: u32) -> Self {
        Ledger { next: 0, population: i64::from(population), rounds: BTreeMap::new() }
    }

    /// Whether a run can have saved this: counts of elements, in rounds that are not over.
    pub(crate) fn is_plausible(&self) -> bool {
        let is_count = |count: u32| count < COUNTS_END;
        let is_tally = |tally: &Tally| [tally.count, tally.appeared, tally.ended].into_iter().all(is_count);
        u32::try_from(self.population).is_ok_and(is_count)
            && self.next < COUNTS_END
            && self.rounds.iter().all(|(round, tally)| *round >= self.next && is_tally(tally))
    }

    /// All participants become `population` others. Either all or none of them have participated in the oldest incomplete
    /// round.
    pub(crate) fn regroup(&mut self, population: u32) {
        let tally = Tally { count: population, ..Tally::default() };
        let rounds = if self.arrived() > 0 { BTreeMap::from([(self.next, tally)]) } else { BTreeMap::new() };
        *self = Ledger { next: self.next, population: i64::from(population), rounds };
    }

    /// The oldest round that is not complete.
    pub(crate) fn next(&self) -> u32 {
        self.next
    }

    /// The known number of elements that participate in the oldest incomplete round.
    pub(crate) fn population(&self) -> i64 {
        let round = self.rounds.get(&self.next).copied().unwrap_or_default();
        self.population + i64::from(round.appeared) - i64::from(round.ended)
    }

    /// The number of elements that have participated in the oldest incomplete round.
    pub(crate) fn arrived(&self) -> u32 {
        self.rounds.get(&self.next).map_or(0, |round| round.count)
    }

    /// Adds participants to a round.
    pub(crate) fn note(&mut self, round: u32, tally: Tally) {
        debug_assert!(round >= self.next, "round {round} is over, the ledger is at {}", self.next);
        self.rounds.entry(round).or_default().add(tally);
    }

    /// Adds an element that was not created by an element of the array. Returns its first round: the oldest incomplete
    /// one.
    pub(crate) fn admit(&mut self) -> u32 {
        self.population += 1;
        self.next
    }

    /// Whether all elements participated in the oldest incomplete round; true if there are no elements.
    pub(crate) fn complete(&self) -> bool {
        let round = self.rounds.get(&self.next).copied().unwrap_or_default();
        round.births == 0 && i64::from(round.count) == self.population()
    }

    /// Advances to the next round.
    pub(crate) fn advance(&mut self) {
        self.population = self.population();
        self.rounds.remove(&self.next);
        self.next += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Combines by recording the order of combination.
    fn trace(a: String, b: String) -> String {
        format!("({a}{b})")
    }

    fn direct(ranks: &[u32]) -> Option<String> {
        let mut sorted = ranks.to_vec();
        sorted.sort_unstable();
        fn tree(ranks: &[u32], level: u32) -> Option<String> {
            match ranks {
                [] => None,
                [one] => Some(format!("{one} ")),
                many => {
                    let middle = many.partition_point(|rank| rank >> (level - 1) & 1 == 0);
                    match (tree(&many[..middle], level - 1), tree(&many[middle..], level - 1)) {
                        (Some(a), Some(b)) => Some(trace(a, b)),
                        (a, b) => a.or(b),
                    }
                }
            }
        }
        tree(&sorted, 32)
    }

    proptest! {
        #[test]
        fn the_order_of_combination_depends_only_on_the_participants(
            ranks in prop::collection::hash_set(0u32..70, 0..50),
            pes in 1usize..5,
            places: Vec<u8>,
        ) {
            let ranks: Vec<u32> = ranks.into_iter().collect();
            let mut parts: Vec<Pieces<String>> = (0..pes).map(|_| Pieces::default()).collect();
            for (at, &rank) in ranks.iter().enumerate() {
                let pe = places.get(at).map_or(0, |&place| usize::from(place)) % pes;
                parts[pe].add(rank, format!("{rank} "), trace);
            }
            let mut whole = Pieces::default();
            for (pe, mut part) in parts.into_iter().enumerate() {
                if pe % 2 == 0 { part.merge(trace) }
                whole.append(part);
            }
            prop_assert_eq!(whole.fold(trace), direct(&ranks));
        }
    }

    #[test]
    fn knows_whether_every_rank_contributed_once() {
        let mut pieces = Pieces::default();
        [0, 1, 2, 4].into_iter().for_each(|rank| pieces.add(rank, rank, |a, b| a + b));
        assert_eq!(pieces.runs(), [(0, 2), (2, 1), (4, 1)]);
        assert!(!pieces.covers(5), "rank 3 is missing");
        pieces.append(Pieces::of(3, 3));
        assert!(pieces.covers(5) && !pieces.covers(6));
        pieces.append(Pieces::of(1, 1));
        assert!(!pieces.covers(5) && !pieces.covers(6), "rank 1 contributed twice");
    }

    #[test]
    fn runs_in_rank_order_need_at_most_one_piece_per_level() {
        let mut pieces = Pieces::default();
        for rank in 0..100_000 {
            pieces.add(rank, u64::from(rank), |a, b| a + b);
            assert!(pieces.0.len() <= 17);
        }
        assert_eq!(pieces.fold(|a, b| a + b), Some(99_999 * 100_000 / 2));
    }

    #[test]
    fn a_round_waits_for_an_element_whose_own_creation_has_appeared() {
        let one = Tally { count: 1, ..Tally::default() };
        let mut ledger = Ledger::new(1);
        let (child, grandchild) = (birth(0, 1), birth(1, 2));
        ledger.note(0, Tally { births: child, ..one });
        ledger.note(0, Tally { appeared: 1, births: grandchild.wrapping_neg(), ..one });
        assert!(!ledger.complete(), "the child has not participated");
        ledger.note(0, Tally { appeared: 1, births: grandchild.wrapping_sub(child), ..one });
        assert!(ledger.complete());
    }

    #[test]
    fn a_round_waits_for_elements_created_meanwhile() {
        let one = Tally { count: 1, ..Tally::default() };
        let mut ledger = Ledger::new(2);
        // The first element created a third element, which contributes before the first one does.
        let third = birth(0, 2);
        ledger.note(0, Tally { appeared: 1, births: third.wrapping_neg(), ..one });
        ledger.note(0, one);
        assert!(!ledger.complete(), "the creator has not participated");
        ledger.note(0, Tally { births: third, ..one });
        assert!(ledger.complete());
        ledger.advance();
        assert_eq!((ledger.next(), ledger.population()), (1, 3));
        // The third element ends without contributing again.
        ledger.note(1, one);
        ledger.note(1, one);
        assert!(!ledger.complete());
        ledger.note(1, Tally { ended: 1, ..Tally::default() });
        assert!(ledger.complete());
    }

    #[test]
    fn vectors_reduce_element_by_element() {
        assert_eq!(reduce::sums(vec![1, 2], vec![10, 20, 30]), [11, 22, 30]);
        assert_eq!(reduce::maxs(vec![1.0, 5.0], vec![2.0, 4.0]), [2.0, 5.0]);
        assert_eq!(reduce::mins(vec![1, 5], vec![2, 4]), [1, 4]);
        assert_eq!(reduce::concat(vec![1], vec![2, 3]), [1, 2, 3]);
    }
}
