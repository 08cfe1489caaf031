//! The objects that a strategy places under constraints: groups that must be on one PE as one object each.

use std::collections::BTreeMap;
use std::sync::Arc;

use equipoise_model::Database;
use equipoise_model::constraints::Level;
use equipoise_model::database::{Edge, End, Object};
use equipoise_model::rules::{Allowed, Rules, allows};
use rustc_hash::FxHashMap;

use crate::placement::ROUNDING;
use crate::room::{Needs, Room};

/// Objects, each one or several objects of the original database.
#[derive(Clone)]
pub(super) struct Items {
    /// The database of the items. Items with one possible PE are there and not migratable.
    pub(super) database: Database,
    /// The item of each object.
    pub(super) item_of: Vec<u32>,
    /// Whether each item is where it must stay.
    pub(super) is_fixed: Vec<bool>,
    /// The number of objects of each item.
    pub(super) weight: Vec<u64>,
    /// The bytes of each item.
    pub(super) bytes: Vec<u64>,
    /// Where each item may be.
    pub(super) allowed: Vec<Allowed>,
    /// The loads of each item in each phase, at speed 1.
    pub(super) phases: Vec<Vec<f64>>,
    /// Groups of items at a level: whether together, the level, the items.
    pub(super) groups: Vec<(bool, Level, Vec<u32>)>,
    /// Where items should be, and the seconds that this is worth.
    pub(super) wishes: Vec<(u32, Arc<Vec<u32>>, f64)>,
    /// The id of the first object of each item, for errors.
    pub(super) id: Vec<u64>,
}

impl Items {
    /// The PE of each object, from the PE of each item.
    pub(super) fn placement(&self, pe_of: &[u32]) -> Vec<u32> {
        self.item_of.iter().map(|&item| pe_of[item as usize]).collect()
    }

    /// The PE of each item, from the PE of each object: that of its first object, unless the item cannot move.
    pub(super) fn of_objects(&self, pe_of: &[u32]) -> Vec<u32> {
        let mut places: Vec<u32> = self.database.objects.iter().map(|object| object.pe).collect();
        for (&item, &pe) in self.item_of.iter().zip(pe_of).rev() {
            if self.database.objects[item as usize].migratable {
                places[item as usize] = pe;
            }
        }
        places
    }

    /// The room for items on PEs that have none.
    pub(super) fn room<'a>(&'a self, rules: &'a Rules) -> Room<'a> {
        let needs =
            Needs { count: &self.weight, bytes: &self.bytes, allowed: &self.allowed, groups: &self.groups };
        Room::new(needs, rules, &self.database.pes)
    }

    /// The seconds of each PE in each phase without items: the background, which is divided equally among phases.
    pub(super) fn background_seconds(&self) -> Vec<Vec<f64>> {
        let phases = self.phases.len();
        let background = self.database.pes.iter().map(|pe| pe.background_seconds / phases as f64);
        vec![background.collect(); phases]
    }

    /// The seconds of an item on a PE in a phase.
    pub(super) fn seconds(&self, item: u32, pe: u32, phase: usize) -> f64 {
        self.phases[phase][item as usize] / self.database.pes[pe as usize].speed
    }

    /// Where the items were before.
    pub(super) fn before(&self) -> Vec<u32> {
        self.database.objects.iter().map(|object| object.pe).collect()
    }

    /// Whether all objects that can move have the same load, and there are no phases.
    pub(super) fn have_equal_loads(&self) -> bool {
        let each = (0..self.weight.len()).filter(|&item| !self.is_fixed[item]);
        let mut loads = each.map(|item| self.phases[0][item] / self.weight[item] as f64);
        let first = loads.next();
        let is_same = |load: f64| first.is_some_and(|first| (load - first).abs() <= ROUNDING * first);
        self.phases.len() == 1 && loads.all(is_same)
    }
}

/// The number of the set of each object; objects in a chain of groups that must be together at a level are in one set. Sets are numbered
/// by their first objects.
pub(super) fn sets(objects: usize, groups: &[(bool, Level, Vec<u32>)], at: Level) -> Vec<u32> {
    let mut leader: Vec<u32> = (0..objects as u32).collect();
    fn root(leader: &mut [u32], mut of: u32) -> u32 {
        while leader[of as usize] != of {
            leader[of as usize] = leader[leader[of as usize] as usize];
            of = leader[of as usize];
        }
        of
    }
    for (together, level, members) in groups {
        if *together && *level == at {
            for pair in members.windows(2) {
                let (a, b) = (root(&mut leader, pair[0]), root(&mut leader, pair[1]));
                leader[a.max(b) as usize] = a.min(b);
            }
        }
    }
    let mut number = vec![0; objects];
    let mut next = 0;
    for object in 0..objects as u32 {
        let first = root(&mut leader, object);
        if first == object {
            number[object as usize] = next;
            next += 1;
        } else {
            number[object as usize] = number[first as usize];
        }
    }
    number
}

/// The PEs in both sets.
fn both(a: &Allowed, b: &Allowed) -> Allowed {
    match (a, b) {
        (None, other) | (other, None) => other.clone(),
        (Some(a), Some(b)) if Arc::ptr_eq(a, b) => Some(Arc::clone(a)),
        (Some(a), Some(b)) => {
            Some(Arc::new(a.iter().copied().filter(|pe| b.binary_search(pe).is_ok()).collect()))
        }
    }
}

/// The items of a database.
///
/// # Errors
/// If an object has no place: it may be on no available PE, or cannot move where it must be.
pub(super) fn of(database: &Database, rules: &Rules, available: &[u32]) -> Result<Items, String> {
    let item_of = sets(database.objects.len(), &rules.groups, Level::Pe);
    let count = item_of.iter().max().map_or(0, |last| *last as usize + 1);
    let mut items = Items {
        database: Database {
            objects: Vec::with_capacity(count),
            edges: Vec::new(),
            pes: database.pes.clone(),
            costs: database.costs.clone(),
            ..Database::default()
        },
        is_fixed: Vec::new(),
        weight: vec![0; count],
        bytes: vec![0; count],
        allowed: vec![None; count],
        phases: vec![vec![0.0; count]; rules.phases.len().max(1)],
        groups: Vec::new(),
        wishes: rules
            .wishes
            .iter()
            .map(|(object, set, worth)| (item_of[*object as usize], Arc::clone(set), *worth))
            .collect(),
        id: Vec::with_capacity(count),
        item_of,
    };
    items.database.step = database.step;
    items.database.communication_recorded = database.communication_recorded;
    merge(&mut items, database, rules)?;
    items.is_fixed = items.database.objects.iter().map(|object| !object.migratable).collect();
    fix_single(&mut items, database, available)?;
    for (together, level, original) in &rules.groups {
        let mut members: Vec<u32> = original.iter().map(|&object| items.item_of[object as usize]).collect();
        members.sort_unstable();
        let whole = members.len();
        members.dedup();
        if !together && members.len() < whole {
            let ids: Vec<u64> = original.iter().map(|&object| database.objects[object as usize].id).collect();
            return Err(format!(
                "two of the objects {ids:?} must be apart, and a group says that they are on one PE; change one of the two groups"
            ));
        }
        if members.len() > 1 {
            items.groups.push((*together, *level, members));
        }
    }
    if count == database.objects.len() {
        // Without groups on one PE the strategy sees the same database, so that constraints which bind nothing change nothing.
        let fixed = std::mem::take(&mut items.database.objects);
        items.database = database.clone();
        for (object, fixed) in items.database.objects.iter_mut().zip(fixed) {
            (object.pe, object.migratable) = (fixed.pe, fixed.migratable);
        }
    } else {
        items.database.edges = edges(database, &items.item_of);
    }
    Ok(items)
}

/// Adds every object to its item.
fn merge(items: &mut Items, database: &Database, rules: &Rules) -> Result<(), String> {
    for (at, object) in database.objects.iter().enumerate() {
        let item = items.item_of[at] as usize;
        if item == items.database.objects.len() {
            items.database.objects.push(Object { bytes: None, load_seconds: 0.0, ..object.clone() });
            items.id.push(object.id);
        }
        let merged = &mut items.database.objects[item];
        merged.load_seconds += object.load_seconds;
        if let Some(bytes) = object.bytes {
            merged.bytes = Some(merged.bytes.unwrap_or(0).saturating_add(bytes));
        }
        if !object.migratable {
            if !merged.migratable && merged.pe != object.pe {
                return Err(format!(
                    "objects {} and {} must be on one PE, but cannot leave PEs {} and {}",
                    items.id[item], object.id, merged.pe, object.pe
                ));
            }
            (merged.pe, merged.migratable) = (object.pe, false);
        }
        items.weight[item] += 1;
        items.bytes[item] = items.bytes[item].saturating_add(rules.bytes[at]);
        items.allowed[item] = both(&items.allowed[item], &rules.allowed[at]);
        for (phase, loads) in items.phases.iter_mut().enumerate() {
            loads[item] += rules.phases.get(phase).map_or(object.load_seconds, |loads| loads[at]);
        }
    }
    Ok(())
}

/// Fixes items that may be on one PE only.
fn fix_single(items: &mut Items, original: &Database, available: &[u32]) -> Result<(), String> {
    // An object of each item that must leave its PE for one that cannot.
    let pairs = items.item_of.iter().zip(&original.objects);
    let comes: FxHashMap<u32, u64> = pairs
        .filter(|(item, object)| object.pe != items.database.objects[**item as usize].pe)
        .map(|(item, object)| (*item, object.id))
        .collect();
    for (item, object) in items.database.objects.iter_mut().enumerate() {
        let (id, allowed, is_group) = (items.id[item], &items.allowed[item], items.weight[item] > 1);
        let group = || {
            let members = items.item_of.iter().zip(&original.objects).filter(|(of, _)| **of as usize == item);
            listed(&members.map(|(_, object)| object.id).collect::<Vec<_>>())
        };
        if !object.migratable {
            let is_open = available.binary_search(&object.pe).is_ok();
            if let Some(other) = comes.get(&(item as u32)).filter(|_| !is_open) {
                return Err(format!(
                    "object {other} must be on PE {} with an object that cannot move, but the PE is not available; change the group",
                    object.pe
                ));
            }
            if !allows(allowed, object.pe) {
                let pe = object.pe;
                return Err(match is_group {
                    true => format!(
                        "objects {} must be on one PE, and one of them cannot leave PE {pe}, where not all of them may be; change their \
                         places or the group",
                        group()
                    ),
                    false => format!("object {id} may not be on PE {pe}, and cannot move; change its places"),
                });
            }
            continue;
        }
        let Some(set) = allowed else { continue };
        let mut places = set.iter().copied().filter(|pe| available.binary_search(pe).is_ok());
        match (places.next(), places.next()) {
            (None, _) if set.is_empty() => {
                return Err(match is_group {
                    true => format!(
                        "objects {} must be on one PE, but no PE is among the places of all of them; change their places or the group",
                        group()
                    ),
                    false => format!("object {id} may be on no PE; give it other places"),
                });
            }
            (None, _) => {
                return Err(format!("no PE where object {id} may be is available; give it other places"));
            }
            (Some(pe), None) => (object.pe, object.migratable) = (pe, false),
            _ => {}
        }
    }
    Ok(())
}

/// The communication between items, and between items and PEs.
fn edges(database: &Database, item_of: &[u32]) -> Vec<Edge> {
    let end = |end: End| match end {
        End::Object(object) => End::Object(item_of[object as usize]),
        End::Pe(pe) => End::Pe(pe),
    };
    let mut sums: BTreeMap<(End, End), (u64, u64)> = BTreeMap::new();
    for edge in &database.edges {
        let ends = (end(edge.from), end(edge.to));
        if ends.0 != ends.1 {
            let sum = sums.entry(ends).or_default();
            *sum = (sum.0 + edge.messages, sum.1 + edge.bytes);
        }
    }
    let merged = |((from, to), (messages, bytes))| Edge { from, to, messages, bytes };
    sums.into_iter().map(merged).collect()
}

/// The first numbers of a list.
pub(super) fn listed<T: std::fmt::Display>(numbers: &[T]) -> String {
    const SHOWN: usize = 10;
    let shown: Vec<String> = numbers.iter().take(SHOWN).map(T::to_string).collect();
    let more =
        if numbers.len() > SHOWN { format!(" and {} more", numbers.len() - SHOWN) } else { String::new() };
    shown.join(", ") + &more
}

/// A noun in the right number, and the numbers of what it names: `PE 3`, `PEs 3, 4`.
pub(super) fn named<T: std::fmt::Display>(noun: &str, numbers: &[T]) -> String {
    format!("{noun}{} {}", if numbers.len() == 1 { "" } else { "s" }, listed(numbers))
}
