//! From an answer of a strategy to a placement that keeps the constraints.

use std::cmp::Reverse;
use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use equipoise_model::Topology;
use equipoise_model::constraints::{Level, Rules, allows};
use equipoise_model::table::count;

use super::contracted::Items;
use super::state::{NOWHERE, State};
use crate::balance::load::order;
use crate::cost::commodities::Commodities;

/// How many of the lightest PEs are compared for an item that must leave its PE, beside those of its partners.
const LIGHTEST: usize = 16;

/// The items at their places, and the seconds of the heaviest PE of the answer.
///
/// # Errors
/// If no placement was found.
pub(super) fn repaired<'a>(
    items: &'a Items,
    rules: &'a Rules,
    topology: &dyn Topology,
    answer: &[u32],
) -> Result<(State<'a>, f64), String> {
    let traffic = Commodities::of(&items.database);
    let near = Near { topology, traffic: &traffic };
    let mut order: Vec<u32> =
        (0..items.weight.len() as u32).filter(|&item| !items.is_fixed[item as usize]).collect();
    order.sort_by_key(|&item| rank(items, item));
    let fixed = State::new(items, rules)?;
    let limit_seconds = limit_seconds(&fixed, answer);
    let placed = place_all(fixed, &near, Some(answer), &order, limit_seconds);
    let placed = placed.or_else(|unplaced| {
        if rules.memory.is_none() {
            return Err(unplaced);
        }
        // The places of the answer led to a dead end. Now the largest items choose first.
        order.sort_by_key(|&item| Reverse(items.bytes[item as usize]));
        place_all(State::new(items, rules)?, &near, None, &order, limit_seconds)
    });
    Ok((placed?, limit_seconds))
}

/// Items with the least choice come first, then the heaviest.
fn rank(items: &Items, item: u32) -> (usize, Reverse<u64>, u32) {
    let choice = items.allowed[item as usize].as_ref().map_or(usize::MAX, |set| set.len());
    let seconds: f64 = items.phases.iter().map(|loads| loads[item as usize]).sum();
    (choice, Reverse(order(seconds)), item)
}

/// Numbers that prove that there is no placement.
pub(super) fn prove_impossible(items: &Items, rules: &Rules) -> Result<(), String> {
    let open = |pe: usize| items.database.pes[pe].available;
    if let Some(most) = &rules.most {
        let sum = (0..most.len()).map(|pe| most[pe]).fold(0u64, u64::saturating_add);
        let objects = items.item_of.len() as u64;
        if sum < objects || rules.exact && sum != objects {
            let how = if rules.exact { "exactly" } else { "at most" };
            return Err(format!(
                "the PEs take {how} {}, and there are {}; give --max-objects other numbers",
                count(sum, "object"),
                count(objects, "object")
            ));
        }
    }
    if let Some(memory) = &rules.memory {
        let room =
            (0..memory.len()).filter(|&pe| open(pe)).map(|pe| memory[pe]).fold(0u64, u64::saturating_add);
        let bytes =
            (0..items.bytes.len()).filter(|&item| !items.is_fixed[item]).map(|item| items.bytes[item]);
        let bytes = bytes.fold(0u64, u64::saturating_add);
        if bytes > room {
            return Err(format!(
                "the objects have {bytes} bytes, and the available PEs have room for {room}; give --memory more, or use more PEs"
            ));
        }
    }
    Ok(())
}

/// The groups that must be together in a part of the machine, the largest first.
fn together(items: &Items) -> Vec<(Level, Vec<u32>)> {
    let groups = items.groups.iter().filter(|group| group.0);
    let mut groups: Vec<(Level, Vec<u32>)> =
        groups.map(|(_, level, members)| (*level, members.clone())).collect();
    groups.sort_by_key(|(_, members)| Reverse(members.len()));
    groups
}

/// Chooses a part of the machine for each group that must be together, and lets its items be there only.
///
/// # Errors
/// If no part has room for a group.
pub(super) fn choose_parts(items: &mut Items, rules: &Rules, answer: &[u32]) -> Result<(), String> {
    for (level, members) in together(items) {
        choose_part(items, rules, level, &members, answer)?;
    }
    Ok(())
}

/// Chooses the part of the machine of a group: where most of its load is, of those with room for it.
fn choose_part(
    items: &mut Items,
    rules: &Rules,
    level: Level,
    members: &[u32],
    answer: &[u32],
) -> Result<(), String> {
    let part_of = &rules.parts[&level];
    let parts = part_of.iter().max().map_or(0, |last| *last as usize + 1);
    let mut load = vec![0.0; parts];
    for &item in members {
        let seconds: f64 = items.phases.iter().map(|loads| loads[item as usize]).sum();
        load[part_of[answer[item as usize] as usize] as usize] += seconds;
    }
    let sum = |of: &[u64]| members.iter().map(|&item| of[item as usize]).fold(0u64, u64::saturating_add);
    let (weight, bytes) = (sum(&items.weight), sum(&items.bytes));
    let pes =
        |part: usize| (0..part_of.len() as u32).filter(move |&pe| part_of[pe as usize] as usize == part);
    let open = |pe: &u32| items.database.pes[*pe as usize].available;
    let has_room = |part: usize| {
        let room = |most: &Option<Vec<u64>>| {
            most.as_ref().map_or(u64::MAX, |most| {
                pes(part).filter(open).map(|pe| most[pe as usize]).fold(0u64, u64::saturating_add)
            })
        };
        let may = |&item: &u32| {
            let allowed = &items.allowed[item as usize];
            match items.is_fixed[item as usize] {
                true => part_of[items.database.objects[item as usize].pe as usize] as usize == part,
                false => pes(part).filter(open).any(|pe| allows(allowed, pe)),
            }
        };
        room(&rules.most) >= weight && room(&rules.memory) >= bytes && members.iter().all(may)
    };
    let chosen =
        (0..parts).filter(|&part| has_room(part)).max_by_key(|&part| (order(load[part]), Reverse(part)));
    let Some(part) = chosen else {
        let ids: Vec<String> =
            members.iter().take(5).map(|&item| items.id[item as usize].to_string()).collect();
        return Err(format!(
            "no placement was found: no {level} has room for the group of the objects {}{}",
            ids.join(", "),
            if members.len() > 5 { ", .." } else { "" }
        ));
    };
    let here: Vec<u32> = pes(part).collect();
    for &item in members {
        let set = &mut items.allowed[item as usize];
        let kept = here.iter().copied().filter(|&pe| allows(set, pe)).collect();
        *set = Some(Arc::new(kept));
    }
    Ok(())
}

/// The machine and the messages, for the distances of an item to its partners.
struct Near<'a> {
    topology: &'a dyn Topology,
    traffic: &'a Commodities,
}

impl Near<'_> {
    /// The place of a vertex: an item, or an anchor of a PE.
    fn place(&self, state: &State, vertex: u32) -> u32 {
        match (vertex as usize).checked_sub(self.traffic.tasks) {
            None => state.pe_of[vertex as usize],
            Some(anchor) => self.traffic.anchors[anchor],
        }
    }

    /// The bytes of an item on `pe` times their hops, as far as its partners have places.
    fn hop_bytes(&self, state: &State, item: u32, pe: u32) -> u128 {
        let partners = self.traffic.partners(item as usize).iter();
        let placed = partners.map(|partner| (self.place(state, partner.vertex), partner));
        placed
            .filter(|(place, _)| *place != NOWHERE)
            .map(|(place, partner)| {
                let hops = self.topology.distance(pe as usize, place as usize);
                u128::from(hops) * (u128::from(partner.sent_bytes) + u128::from(partner.received_bytes))
            })
            .sum()
    }

    /// The best PE where an item fits: one that does not become heavier than `limit_seconds` with the fewest hop-bytes, else the one
    /// that finishes first.
    fn best(&self, state: &State, item: u32, limit_seconds: f64) -> Option<u32> {
        let partners = self.traffic.partners(item as usize).iter();
        let of_partners =
            partners.map(|partner| self.place(state, partner.vertex)).filter(|&pe| pe != NOWHERE);
        let mut candidates: BTreeSet<u32> = of_partners.filter(|&pe| state.fits(item, pe)).collect();
        candidates.extend(state.lightest(0).filter(|&pe| state.fits(item, pe)).take(LIGHTEST));
        let grade = |&pe: &u32| {
            let after = |phase| state.seconds(pe, phase) + state.seconds_of(item, pe, phase);
            let seconds: f64 = (0..state.phases()).map(after).fold(0.0, f64::max);
            match seconds <= limit_seconds {
                true => (false, self.hop_bytes(state, item, pe), order(seconds), pe),
                false => (true, u128::from(order(seconds)), 0, pe),
            }
        };
        candidates.into_iter().min_by_key(grade)
    }
}

/// Places all items in this order: first those that fit where the answer has them, then the others.
fn place_all<'a>(
    mut state: State<'a>,
    near: &Near,
    answer: Option<&[u32]>,
    order: &[u32],
    limit_seconds: f64,
) -> Result<State<'a>, String> {
    let mut homeless = Vec::new();
    for &item in order {
        match answer.map(|answer| answer[item as usize]).filter(|&pe| state.fits(item, pe)) {
            Some(pe) => state.put(item, pe),
            None => homeless.push(item),
        }
    }
    for item in homeless {
        match near.best(&state, item, limit_seconds) {
            Some(pe) => state.put(item, pe),
            None => make_room(&mut state, item)?,
        }
    }
    Ok(state)
}

/// The seconds of the heaviest available PE of the answer. `fixed` has the items that cannot move.
fn limit_seconds(fixed: &State, answer: &[u32]) -> f64 {
    let mut seconds: Vec<f64> = (0..fixed.pes()).map(|pe| fixed.seconds(pe, 0)).collect();
    for (item, &pe) in (0..).zip(answer) {
        if fixed.can_move(item) {
            seconds[pe as usize] += fixed.seconds_of(item, pe, 0);
        }
    }
    (0..fixed.pes()).filter(|&pe| fixed.is_available(pe)).map(|pe| seconds[pe as usize]).fold(0.0, f64::max)
}

/// Makes room for an item that fits nowhere: a chain of items moves on, each to the PE of the next, and the last to a PE where it fits.
///
/// This is a breadth-first search for an augmenting path. Each PE is visited once.
fn make_room(state: &mut State, item: u32) -> Result<(), String> {
    let mut unvisited: BTreeSet<u32> = (0..state.pes()).filter(|&pe| state.is_available(pe)).collect();
    // Where an item would go next, and the PE and the item before it on the path.
    let mut before: Vec<(u32, u32)> = vec![(NOWHERE, item); state.pes() as usize];
    let mut queue = VecDeque::new();
    visit(state, item, &mut unvisited, |pe| queue.push_back(pe));
    let mut visited = Vec::new();
    while let Some(pe) = queue.pop_front() {
        visited.push(pe);
        let movable: Vec<u32> = state.on(pe).filter(|&other| state.can_move(other)).collect();
        for other in movable {
            let mut next = Vec::new();
            visit(state, other, &mut unvisited, |to| next.push(to));
            for to in next {
                before[to as usize] = (pe, other);
                if state.fits(other, to) && shift(state, &before, to) {
                    return Ok(());
                }
                queue.push_back(to);
            }
        }
    }
    Err(unplaced(state, item, &visited))
}

/// Calls `reached` for each PE that an item may be on and that was not visited.
fn visit(state: &State, item: u32, unvisited: &mut BTreeSet<u32>, mut reached: impl FnMut(u32)) {
    let new: Vec<u32> = match state.allowed(item) {
        Some(set) => set.iter().copied().filter(|pe| unvisited.contains(pe)).collect(),
        None => unvisited.iter().copied().collect(),
    };
    for pe in new {
        unvisited.remove(&pe);
        reached(pe);
    }
}

/// Moves the items of a path that ends at `to`, the last one first. If one of them does not fit, all return and the answer is `false`.
fn shift(state: &mut State, before: &[(u32, u32)], to: u32) -> bool {
    let mut moved: Vec<(u32, u32)> = Vec::new();
    let mut end = to;
    loop {
        let (from, item) = before[end as usize];
        if from != NOWHERE {
            state.take(item);
        }
        if !state.fits(item, end) {
            if from != NOWHERE {
                state.put(item, from);
            }
            for (item, from) in moved.into_iter().rev() {
                state.take(item);
                state.put(item, from);
            }
            return false;
        }
        state.put(item, end);
        if from == NOWHERE {
            return true;
        }
        moved.push((item, from));
        end = from;
    }
}

/// The error for an item without a place. `visited` are the PEs that the search has reached.
///
/// If there are only counts and places: every movable item on a visited PE may be on visited PEs only, and all of these are full. These
/// items and the one without a place are one more than their places. The set is inclusion-minimal: all its other items have places, so a
/// smaller set with too few places would contain the item without one, and with it all that the search reaches.
fn unplaced(state: &State, item: u32, visited: &[u32]) -> String {
    let id = state.id(item);
    match state.has_only_counts() {
        true => {
            let others = visited.iter().flat_map(|&pe| state.on(pe)).filter(|&other| state.can_move(other));
            let mut ids: Vec<u64> = others.map(|other| state.id(other)).chain([id]).collect();
            ids.sort_unstable();
            let mut pes = visited.to_vec();
            pes.sort_unstable();
            format!(
                "no placement exists: objects {} may be on PEs {} only, which have {} for them",
                listed(&ids),
                listed(&pes),
                count(ids.len() as u64 - 1, "place")
            )
        }
        false => {
            let open = || visited.iter().copied();
            let most_free = open().map(|pe| state.free_bytes(pe)).max().unwrap_or(0);
            let why = match (open().any(|pe| state.has_place(pe)), state.bytes_of(item) > most_free) {
                (_, true) => format!(
                    "it has {}, and the most that a PE has left is {most_free}",
                    count(state.bytes_of(item), "byte")
                ),
                (false, _) => "all PEs where it may be have as many objects as they take".into(),
                _ => "all PEs where it may be have an object of one of its groups, or are full".into(),
            };
            format!("no placement was found: object {id} fits on no PE: {why}")
        }
    }
}

/// The first numbers of a list.
fn listed<T: std::fmt::Display>(numbers: &[T]) -> String {
    const SHOWN: usize = 10;
    let shown: Vec<String> = numbers.iter().take(SHOWN).map(T::to_string).collect();
    let more =
        if numbers.len() > SHOWN { format!(" and {} more", numbers.len() - SHOWN) } else { String::new() };
    shown.join(", ") + &more
}
