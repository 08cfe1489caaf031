//! From an answer of a strategy to a placement that keeps the constraints.

use std::cmp::Reverse;
use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use equipoise_model::constraints::Level;
use equipoise_model::fault::{Classified, Fault};
use equipoise_model::random::{generator, shuffle};
use equipoise_model::rules::{Rules, allows};
use equipoise_model::table::count;

use super::contracted::{Items, listed, named, sets};
use super::nearer::Near;
use super::state::{NOWHERE, State};
use crate::balance::load::order;

/// Why items have no placement.
#[derive(Debug, thiserror::Error)]
pub(super) enum NoPlacement {
    /// There is none, as this sentence says.
    #[error("{0}")]
    Proven(String),
    /// A search ended here.
    #[error("no placement was found: {0}; loosen a constraint, or try another balancer")]
    NotFound(String),
}

impl Classified for NoPlacement {
    fn fault(&self) -> Fault {
        Fault::Usage
    }
}

impl From<String> for NoPlacement {
    fn from(sentence: String) -> Self {
        NoPlacement::Proven(sentence)
    }
}

/// How many orders of the items are tried, if the places of the start lead to a dead end.
const RESTARTS: u64 = 16;
/// How many places of items that could move are tried for an item that fits nowhere.
const MOST_DISPLACED: u32 = 1 << 22;

/// The items at their places. Items stay where `start` has them as far as they can; others go where PEs do not become heavier than
/// `limit_seconds`, if they can.
///
/// # Errors
/// If no placement was found.
pub(super) fn repaired<'a>(
    items: &'a Items,
    rules: &'a Rules,
    near: &Near,
    start: &[u32],
    limit_seconds: f64,
) -> Result<State<'a>, NoPlacement> {
    let mut order: Vec<u32> =
        (0..items.weight.len() as u32).filter(|&item| !items.is_fixed[item as usize]).collect();
    order.sort_by_key(|&item| rank(items, item));
    let fixed = State::new(items, rules)?;
    let is_proof = fixed.has_only_counts();
    let mut placed = place_all(fixed, near, Some(start), &order, limit_seconds);
    if !is_proof && placed.is_err() {
        // The places of the start led to a dead end. Now the largest items choose first, then items in random orders.
        order.sort_by_key(|&item| Reverse(items.bytes[item as usize]));
        for restart in 0..RESTARTS {
            let again = place_all(State::new(items, rules)?, near, None, &order, limit_seconds);
            if again.is_ok() {
                placed = again;
                break;
            }
            shuffle(&mut generator(restart, 0), &mut order);
        }
    }
    placed
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
    for (together, level, members) in &items.groups {
        let parts = rules.parts[level].iter().max().map_or(0, |last| *last as usize + 1);
        if !together && members.len() > parts {
            let ids: Vec<u64> = members.iter().map(|&item| items.id[item as usize]).collect();
            return Err(format!(
                "no placement exists: the {} {} must be apart, and the machine has {parts} of the level `{level}`; make the group smaller",
                count(members.len() as u64, "object"),
                listed(&ids)
            ));
        }
    }
    contradiction(items)
}

/// Two items that must be apart at a level, although a group puts them together there, or in a part of it.
fn contradiction(items: &Items) -> Result<(), String> {
    for (level, coarser) in [(Level::Node, [Level::Node, Level::Switch]), (Level::Switch, [Level::Switch; 2])]
    {
        let set_of = sets(items.weight.len(), &items.groups, level);
        for (_, _, members) in items.groups.iter().filter(|(is, at, _)| !is && coarser.contains(at)) {
            let mut first = std::collections::BTreeMap::new();
            for &item in members {
                if let Some(other) = first.insert(set_of[item as usize], item) {
                    let [a, b] = [other, item].map(|item| items.id[item as usize]);
                    return Err(format!(
                        "no placement exists: objects {a} and {b} must be apart, and groups keep them together at the level {level}; \
                         change one of these groups"
                    ));
                }
            }
        }
    }
    Ok(())
}

/// The groups of items that must be together at a level, the largest first. Groups with a common item are one.
fn together(items: &Items, level: Level) -> Vec<Vec<u32>> {
    let set_of = sets(items.weight.len(), &items.groups, level);
    let mut sets = vec![Vec::new(); items.weight.len()];
    (0..).zip(set_of).for_each(|(item, set): (u32, u32)| sets[set as usize].push(item));
    sets.retain(|members| members.len() > 1);
    sets.sort_by_key(|members| Reverse(members.len()));
    sets
}

/// Lets the items of a group be only where the part of the machine with these PEs allows it.
fn restrict(items: &mut Items, members: &[u32], pes: &[u32]) {
    for &item in members {
        let set = &mut items.allowed[item as usize];
        let kept = pes.iter().copied().filter(|&pe| allows(set, pe)).collect();
        *set = Some(Arc::new(kept));
    }
}

/// Lets the items of groups that must be together be only in the part of the machine where `pe_of` has them.
pub(super) fn keep_parts(items: &mut Items, rules: &Rules, pe_of: &[u32]) {
    for level in [Level::Node, Level::Switch] {
        let Some(part_of) = rules.parts.get(&level) else { continue };
        for members in together(items, level) {
            let part = part_of[pe_of[members[0] as usize] as usize];
            let pes: Vec<u32> = (0..).zip(part_of).filter(|(_, of)| **of == part).map(|(pe, _)| pe).collect();
            restrict(items, &members, &pes);
        }
    }
}

/// Chooses a part of the machine for each group that must be together, and lets its items be there only: the largest groups first, each
/// where most of its load is with the placement `start`, of the parts with room.
///
/// # Errors
/// If no part has room for a group.
pub(super) fn choose_parts(items: &mut Items, rules: &Rules, start: &[u32]) -> Result<(), NoPlacement> {
    let levels = [Level::Node, Level::Switch].into_iter().filter(|level| rules.parts.contains_key(level));
    let mut machine: Vec<Parts> = levels.map(|level| Parts::new(items, rules, level)).collect();
    let mut groups: Vec<(usize, Vec<u32>)> = Vec::new();
    for (at, parts) in machine.iter().enumerate() {
        groups.extend(together(items, parts.level).into_iter().map(|members| (at, members)));
    }
    groups.sort_by_key(|(_, members)| Reverse(members.len()));
    for (at, members) in groups {
        let part = choose_part(items, &machine, at, &members, start).ok_or_else(|| {
            let ids: Vec<u64> = members.iter().map(|&item| items.id[item as usize]).collect();
            let (level, ids) = (machine[at].level, listed(&ids));
            NoPlacement::NotFound(format!(
                "no {level} has room for the group of the objects {ids} where --fixed and other groups allow it"
            ))
        })?;
        // Also the switch of a node, so that no other group counts on its room.
        let pes = machine[at].parts[part].pes.clone();
        for parts in &mut machine[at..] {
            parts.reserve(items, &members, parts.part_of[pes[0] as usize]);
        }
        restrict(items, &members, &pes);
    }
    Ok(())
}

/// The nodes or the switches.
struct Parts<'a> {
    level: Level,
    /// By PE: its part.
    part_of: &'a [u32],
    parts: Vec<Part>,
    /// Whether the room of each item is taken.
    is_reserved: Vec<bool>,
}

/// A node or a switch.
#[derive(Default)]
struct Part {
    pes: Vec<u32>,
    /// The objects that fit, in addition to those of the groups that have chosen it.
    objects: u64,
    /// The bytes that fit, likewise.
    bytes: u64,
}

impl<'a> Parts<'a> {
    fn new(items: &Items, rules: &'a Rules, level: Level) -> Parts<'a> {
        let part_of = &rules.parts[&level];
        let mut parts: Vec<Part> = Vec::new();
        for (pe, &part) in (0u32..).zip(part_of) {
            parts.resize_with(parts.len().max(part as usize + 1), Part::default);
            let part = &mut parts[part as usize];
            part.pes.push(pe);
            if items.database.pes[pe as usize].available {
                let room = |of: &Option<Vec<u64>>| of.as_ref().map_or(u64::MAX, |of| of[pe as usize]);
                part.objects = part.objects.saturating_add(room(&rules.most));
                part.bytes = part.bytes.saturating_add(room(&rules.memory));
            }
        }
        let mut all = Parts { level, part_of, parts, is_reserved: vec![false; items.weight.len()] };
        // Items that cannot move have their room, which is not counted on PEs that are not available.
        for (item, object) in (0..).zip(&items.database.objects) {
            match items.database.pes[object.pe as usize].available {
                _ if !items.is_fixed[item as usize] => (),
                true => all.reserve(items, &[item], part_of[object.pe as usize]),
                false => all.is_reserved[item as usize] = true,
            }
        }
        all
    }

    /// The objects and bytes of the members without room so far.
    fn need(&self, items: &Items, members: &[u32]) -> (u64, u64) {
        let comes = || members.iter().map(|&item| item as usize).filter(|&item| !self.is_reserved[item]);
        let sum = |of: &[u64]| comes().map(|item| of[item]).fold(0u64, u64::saturating_add);
        (sum(&items.weight), sum(&items.bytes))
    }

    fn has_room(&self, items: &Items, members: &[u32], part: usize) -> bool {
        let (objects, bytes) = self.need(items, members);
        self.parts[part].objects >= objects && self.parts[part].bytes >= bytes
    }

    fn reserve(&mut self, items: &Items, members: &[u32], part: u32) {
        let (objects, bytes) = self.need(items, members);
        let part = &mut self.parts[part as usize];
        (part.objects, part.bytes) = (part.objects.saturating_sub(objects), part.bytes.saturating_sub(bytes));
        members.iter().for_each(|&item| self.is_reserved[item as usize] = true);
    }
}

/// The part of the machine of a group, at the level `machine[at]`: where most of its load is, of those with room for it, also in the switch
/// of a node. `None` if there is none.
fn choose_part(items: &Items, machine: &[Parts], at: usize, members: &[u32], start: &[u32]) -> Option<usize> {
    let Parts { part_of, parts, .. } = &machine[at];
    let mut load = vec![0.0; parts.len()];
    for &item in members {
        let seconds: f64 = items.phases.iter().map(|loads| loads[item as usize]).sum();
        load[part_of[start[item as usize] as usize] as usize] += seconds;
    }
    let has_room = |number: &usize| {
        let part = &parts[*number];
        let is_open = |pe: &&u32| items.database.pes[**pe as usize].available;
        let may = |&item: &u32| match items.is_fixed[item as usize] {
            true => part_of[items.database.objects[item as usize].pe as usize] as usize == *number,
            false => part.pes.iter().filter(is_open).any(|&pe| allows(&items.allowed[item as usize], pe)),
        };
        let above = |of: &Parts| of.part_of[part.pes[0] as usize] as usize;
        machine[at..].iter().all(|of| of.has_room(items, members, above(of))) && members.iter().all(may)
    };
    let chosen = (0..parts.len()).filter(has_room);
    chosen.max_by_key(|&part| (order(load[part]), Reverse(part)))
}

/// Places all items in this order: first those that fit where the start has them, then the others.
fn place_all<'a>(
    mut state: State<'a>,
    near: &Near,
    start: Option<&[u32]>,
    order: &[u32],
    limit_seconds: f64,
) -> Result<State<'a>, NoPlacement> {
    let mut homeless = Vec::new();
    for &item in order {
        match start.map(|start| start[item as usize]).filter(|&pe| state.fits(item, pe)) {
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

/// The seconds in all phases of the heaviest available PE of the answer. `fixed` has the items that cannot move.
pub(super) fn limit_seconds(fixed: &State, answer: &[u32]) -> f64 {
    let mut seconds: Vec<f64> = (0..fixed.pes()).map(|pe| fixed.total_seconds(pe)).collect();
    for (item, &pe) in (0..).zip(answer) {
        if fixed.can_move(item) {
            seconds[pe as usize] += fixed.total_seconds_of(item, pe);
        }
    }
    (0..fixed.pes()).filter(|&pe| fixed.is_available(pe)).map(|pe| seconds[pe as usize]).fold(0.0, f64::max)
}

/// Makes room for an item that fits nowhere: a chain of items moves on, each to the PE of the next, and the last to a PE where it fits.
///
/// This is a breadth-first search for an augmenting path. Each PE is visited once.
fn make_room(state: &mut State, item: u32) -> Result<(), NoPlacement> {
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
                if shift(state, &before, to) {
                    return Ok(());
                }
                queue.push_back(to);
            }
        }
    }
    if !state.has_only_counts() && displace(state, item) {
        return Ok(());
    }
    Err(unplaced(state, item, &visited))
}

/// Moves one other item, so that an item fits where the other was: with memory or groups, full PEs are not all alike, and a path with one
/// step may pass a PE that the search has already visited. Returns whether there is one.
fn displace(state: &mut State, item: u32) -> bool {
    let mut attempts = MOST_DISPLACED;
    let pes = || 0..state.pes();
    let mut others = Vec::new();
    for pe in pes().filter(|&pe| state.is_available(pe) && state.may_be(item, pe)) {
        others.extend(state.on(pe).filter(|&other| state.can_move(other)).map(|other| (pe, other)));
    }
    for (pe, other) in others {
        state.take(other);
        if state.fits(item, pe) {
            state.put(item, pe);
            let to = (0..state.pes()).find(|&to| {
                attempts = attempts.saturating_sub(1);
                state.fits(other, to)
            });
            if let Some(to) = to {
                state.put(other, to);
                return true;
            }
            state.take(item);
        }
        state.put(other, pe);
        if attempts == 0 {
            break;
        }
    }
    false
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
fn unplaced(state: &State, item: u32, visited: &[u32]) -> NoPlacement {
    let id = state.id(item);
    match state.has_only_counts() {
        true => {
            let others = visited.iter().flat_map(|&pe| state.on(pe)).filter(|&other| state.can_move(other));
            let mut ids: Vec<u64> = others.map(|other| state.id(other)).chain([id]).collect();
            ids.sort_unstable();
            let mut pes = visited.to_vec();
            pes.sort_unstable();
            let stays = visited.iter().flat_map(|&pe| state.on(pe)).filter(|&other| !state.can_move(other));
            let mut stays: Vec<u64> = stays.map(|other| state.id(other)).collect();
            stays.sort_unstable();
            let stay = if stays.is_empty() {
                String::new()
            } else {
                format!(" in addition to {}, which must be there", named("object", &stays))
            };
            NoPlacement::Proven(format!(
                "no placement exists: {} may be on {} only, which {} {} for {}{stay}; give --max-objects or --fixed more room",
                named("object", &ids),
                named("PE", &pes),
                if pes.len() == 1 { "has" } else { "have" },
                count(ids.len() as u64 - 1, "place"),
                if ids.len() == 1 { "it" } else { "them" },
            ))
        }
        false => {
            let open = || visited.iter().copied();
            let most_free = open().map(|pe| state.free_bytes(pe)).max().unwrap_or(0);
            // The item may be a group.
            let (they, them, have) =
                if state.weight_of(item) > 1 { ("they", "them", "have") } else { ("it", "it", "has") };
            let why = match (open().any(|pe| state.has_place(pe)), state.bytes_of(item) > most_free) {
                (_, true) => format!(
                    "{they} {have} {}, and the most that a PE has left is {most_free}",
                    count(state.bytes_of(item), "byte")
                ),
                _ if state.weight_of(item) > 1 && open().all(|pe| !state.takes(item, pe)) => format!(
                    "they must be on one PE, and no PE where they may be takes {} more",
                    count(state.weight_of(item), "object")
                ),
                (false, _) => format!("all PEs where {they} may be have as many objects as they take"),
                _ if !state.has_groups() => format!("all PEs where {they} may be are full"),
                _ => format!(
                    "all PEs where {they} may be have an object from which a group keeps {them}, or are full"
                ),
            };
            let what = match state.weight_of(item) {
                1 => format!("object {id} fits on no PE"),
                objects => {
                    format!("object {id} and the {} with it fit on no PE", count(objects - 1, "object"))
                }
            };
            NoPlacement::NotFound(format!("{what}: {why}"))
        }
    }
}
