//! Better placements that keep the constraints: moves and exchanges from the heaviest PE, and wishes.

use std::cmp::Reverse;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::contracted::Items;
use super::state::State;
use crate::balance::load::order;

/// How many of the lightest PEs receive objects of the heaviest.
const RECEIVERS: usize = 16;
/// Pairs of items that are compared, at most; about a second.
const ATTEMPTS: u64 = 1 << 25;

/// How many exchanges are tried for a wish.
const MOST_EXCHANGES: usize = 256;

/// Makes a placement as light as `limit_seconds` if it can; with phases, as light as it can.
pub(super) fn balance(state: &mut State, limit_seconds: f64) {
    let mut attempts = ATTEMPTS;
    while attempts > 0 && (state.phases() > 1 || state.cost_seconds() > limit_seconds) {
        if !relieve(state, &mut attempts) {
            break;
        }
    }
}

/// Makes the heaviest PE of a phase lighter. Returns whether it could.
fn relieve(state: &mut State, attempts: &mut u64) -> bool {
    for phase in 0..state.phases() {
        let Some(heaviest) = state.lightest(phase).next_back() else { continue };
        let mut leaving: Vec<u32> = state.on(heaviest).filter(|&item| state.can_move(item)).collect();
        leaving.sort_by_key(|&item| Reverse(order(state.seconds_of(item, heaviest, phase))));
        let receivers: Vec<u32> =
            state.lightest(phase).filter(|&pe| pe != heaviest).take(RECEIVERS).collect();
        for &item in &leaving {
            if receivers.iter().any(|&to| moves(state, item, to)) {
                return true;
            }
        }
        for &to in &receivers {
            let others: Vec<u32> = state.on(to).filter(|&other| state.can_move(other)).collect();
            for &item in &leaving {
                *attempts = attempts.saturating_sub(1 + others.len() as u64);
                for &other in &others {
                    if relieves(state, (item, heaviest), (other, to), phase) && exchanges(state, item, other)
                    {
                        return true;
                    }
                }
            }
        }
    }
    false
}

/// Whether an exchange makes the heavier of two PEs lighter in a phase, and the other one not as heavy.
fn relieves(state: &State, (item, from): (u32, u32), (other, to): (u32, u32), phase: usize) -> bool {
    let after = |pe, leaves, comes| {
        state.seconds(pe, phase) - state.seconds_of(leaves, pe, phase) + state.seconds_of(comes, pe, phase)
    };
    let heaviest = state.seconds(from, phase);
    after(from, item, other) < heaviest && after(to, other, item) < heaviest
}

/// The sum over phases of the heavier of two PEs, and their squares, which fall when the two become more equal.
fn pair(state: &State, a: u32, b: u32) -> (f64, f64) {
    let of = |phase| (state.seconds(a, phase), state.seconds(b, phase));
    let sums = (0..state.phases()).map(of).map(|(a, b)| (a.max(b), a * a + b * b));
    sums.fold((0.0, 0.0), |(max, squares), (m, s)| (max + m, squares + s))
}

/// Whether a pair became better.
fn is_better(state: &State, before: (f64, f64, f64), a: u32, b: u32) -> bool {
    let (max, squares) = pair(state, a, b);
    let least = before.0 * (1.0 - crate::placement::ROUNDING);
    state.cost_seconds() <= before.2 && max < least && squares < before.1
}

fn before(state: &State, a: u32, b: u32) -> (f64, f64, f64) {
    let (max, squares) = pair(state, a, b);
    (max, squares, state.cost_seconds())
}

/// Moves an item if that pays.
fn moves(state: &mut State, item: u32, to: u32) -> bool {
    let from = state.pe_of[item as usize];
    let was = before(state, from, to);
    state.attempt(&[(item, from, to)], |state| is_better(state, was, from, to))
}

/// Exchanges two items if that pays.
fn exchanges(state: &mut State, item: u32, other: u32) -> bool {
    let (from, to) = (state.pe_of[item as usize], state.pe_of[other as usize]);
    let was = before(state, from, to);
    state.attempt(&[(item, from, to), (other, to, from)], |state| is_better(state, was, from, to))
}

/// What granted wishes are worth, by item.
struct Wishes<'a> {
    items: &'a Items,
    of_item: FxHashMap<u32, Vec<usize>>,
}

impl Wishes<'_> {
    /// What the wishes of an item are worth that are granted on a PE.
    fn worth_seconds(&self, item: u32, pe: u32) -> f64 {
        let of_item = self.of_item.get(&item).into_iter().flatten();
        let wishes = of_item.map(|&wish| &self.items.wishes[wish]);
        wishes.filter(|wish| wish.1.binary_search(&pe).is_ok()).map(|wish| wish.2).sum()
    }

    /// What the wishes gain if items move from the first PE to the second.
    fn gain_seconds(&self, moves: &[(u32, u32, u32)]) -> f64 {
        moves
            .iter()
            .map(|&(item, from, to)| self.worth_seconds(item, to) - self.worth_seconds(item, from))
            .sum()
    }
}

/// Grants wishes, the dearest first, if the cost grows by less than they are worth: by a move, or where that does not fit by an exchange.
/// Returns how many are granted.
pub(super) fn grant(items: &Items, state: &mut State) -> usize {
    let mut order_of_wishes: Vec<usize> = (0..items.wishes.len()).collect();
    order_of_wishes.sort_by_key(|&wish| (Reverse(order(items.wishes[wish].2)), wish));
    let mut of_item: FxHashMap<u32, Vec<usize>> = FxHashMap::default();
    order_of_wishes.iter().for_each(|&wish| of_item.entry(items.wishes[wish].0).or_default().push(wish));
    let wishes = Wishes { items, of_item };
    for wish in order_of_wishes {
        let (item, set, _) = &items.wishes[wish];
        let (item, from) = (*item, state.pe_of[*item as usize]);
        if set.binary_search(&from).is_ok() || !state.can_move(item) {
            continue;
        }
        state.take(item);
        let places = set.iter().copied().filter(|&pe| state.fits(item, pe));
        let finished = |pe: u32| order(state.total_seconds(pe) + state.total_seconds_of(item, pe));
        let place = places.min_by_key(|&pe| (finished(pe), pe));
        state.put(item, from);
        let is_granted = place.is_some_and(|to| pays(state, &wishes, &[(item, from, to)]));
        if !is_granted {
            let others = set.iter().flat_map(|&pe| state.on(pe).map(move |other| (other, pe)));
            let others: Vec<(u32, u32)> =
                others.filter(|of| state.can_move(of.0)).take(MOST_EXCHANGES).collect();
            others
                .into_iter()
                .any(|(other, to)| pays(state, &wishes, &[(item, from, to), (other, to, from)]));
        }
    }
    let granted =
        |(item, set, _): &&(u32, Arc<Vec<u32>>, f64)| set.binary_search(&state.pe_of[*item as usize]).is_ok();
    items.wishes.iter().filter(granted).count()
}

/// Moves items if the constraints allow that and the wishes gain at least what it costs.
fn pays(state: &mut State, wishes: &Wishes, moves: &[(u32, u32, u32)]) -> bool {
    let cost_seconds = state.cost_seconds();
    let gain_seconds = wishes.gain_seconds(moves);
    gain_seconds > 0.0 && state.attempt(moves, |state| state.cost_seconds() - cost_seconds <= gain_seconds)
}
