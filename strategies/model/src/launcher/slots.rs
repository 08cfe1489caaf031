//! A machine as counted by launchers: nodes and their slots.

use rustc_hash::FxHashMap;

use super::LauncherError;
use crate::Topology;
use crate::files::AtLine;
use crate::table::count;

/// The place and the line of every rank.
pub(super) type Entries = Vec<(Place, usize)>;

/// A file may have this many ranks more than twice the slots: more cannot fit, and a short file may claim any number.
const MORE_RANKS: u64 = 1024;

/// The place of a rank in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// A PE.
    Pe(u64),
    /// A slot of a node.
    Slot(usize, u64),
    /// Any slot of a node.
    Node(usize),
}

/// The nodes of a machine and their slots.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slots {
    nodes: Vec<Node>,
    /// For each PE: its node, and the number of earlier PEs of the node.
    place_of: Vec<(u32, u32)>,
    /// For each PE: its number in the complete node, which may have further PEs.
    core_of: Vec<u32>,
    /// The number of slots per PE.
    per_pe: u32,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Node {
    pes: Vec<u32>,
    host: Option<String>,
    position: Option<Vec<usize>>,
}

impl Slots {
    /// The nodes of a machine ([`Topology::node_of`]) in the order of their first PEs, with `per_pe` slots per PE.
    ///
    /// # Panics
    /// If `per_pe` is 0.
    pub fn of(machine: &dyn Topology, per_pe: u32) -> Slots {
        assert!(per_pe > 0, "a PE has at least one slot");
        let (mut nodes, mut place_of) = (Vec::<Node>::new(), Vec::with_capacity(machine.pes()));
        let mut known: FxHashMap<usize, u32> = FxHashMap::default();
        let shape = machine.shape();
        for pe in 0..machine.pes() {
            let node = *known.entry(machine.node_of(pe)).or_insert(nodes.len() as u32);
            if node as usize == nodes.len() {
                let (host, position) = (machine.host(pe).map(String::from), shape.position(pe));
                nodes.push(Node { pes: Vec::new(), host, position });
            }
            let pes = &mut nodes[node as usize].pes;
            place_of.push((node, pes.len() as u32));
            pes.push(pe as u32);
        }
        let core_of = (0..machine.pes()).map(|pe| machine.core_of(pe) as u32).collect();
        Slots { nodes, place_of, core_of, per_pe }
    }

    /// The number of nodes.
    pub fn nodes(&self) -> usize {
        self.nodes.len()
    }

    /// The node of a PE.
    ///
    /// # Panics
    /// If the PE does not exist.
    pub fn node_of(&self, pe: usize) -> usize {
        self.place_of[pe].0 as usize
    }

    /// The largest number of ranks of a file. Files with fewer ranks that do not fit get an error that names the node.
    pub(super) fn max_ranks(&self) -> u64 {
        2 * self.place_of.len() as u64 * u64::from(self.per_pe) + MORE_RANKS
    }

    /// The number of slots of a node.
    pub(super) fn slots(&self, node: usize) -> u64 {
        self.nodes[node].pes.len() as u64 * u64::from(self.per_pe)
    }

    /// The number of a slot in the complete node, which may have further slots.
    pub(super) fn number_of(&self, node: usize, slot: u64) -> u64 {
        let per_pe = u64::from(self.per_pe);
        let pe = self.nodes[node].pes[(slot / per_pe) as usize];
        u64::from(self.core_of[pe as usize]) * per_pe + slot % per_pe
    }

    /// The slot for each node and [slot number](Slots::number_of).
    pub(super) fn numbered(&self) -> FxHashMap<(usize, u64), u64> {
        let of_node =
            |node| (0..self.slots(node)).map(move |slot| ((node, self.number_of(node, slot)), slot));
        (0..self.nodes.len()).flat_map(of_node).collect()
    }

    /// The error for a slot number that a node does not have.
    pub(super) fn no_slot(&self, node: usize, number: u64) -> String {
        const SHOWN: u64 = 16;
        let slots = self.slots(node);
        let shown = (0..slots.min(SHOWN)).map(|slot| self.number_of(node, slot).to_string());
        let more = if slots > SHOWN { ", .." } else { "" };
        let shown = shown.collect::<Vec<_>>().join(", ");
        format!("{} has only slots {shown}{more} here, but not slot {number}", self.name(node))
    }

    /// The host name of a node, or the error if there is none.
    pub(super) fn host(&self, node: usize) -> Result<&str, String> {
        self.nodes[node].host.as_deref().ok_or_else(|| {
            "the machine has no host names; use a machine from a file with names, as in \
             slurm:topology.conf*tree:2:8"
                .into()
        })
    }

    /// The node of each host.
    pub(super) fn hosts(&self) -> Result<FxHashMap<&str, usize>, String> {
        let mut hosts = FxHashMap::default();
        for node in 0..self.nodes.len() {
            let host = self.host(node)?;
            if hosts.insert(host, node).is_some() {
                return Err(format!(
                    "two nodes of the machine have the name {host}; give each a unique name"
                ));
            }
        }
        Ok(hosts)
    }

    /// The host name of a node, or `+n2` for node 2 if the machine has no host names.
    pub(super) fn label(&self, node: usize) -> String {
        self.nodes[node].host.clone().unwrap_or_else(|| format!("+n{node}"))
    }

    /// The node with a host name, or of the form `+n2`. `hosts` is the result of [`Slots::hosts`].
    pub(super) fn find(
        &self,
        hosts: &Result<FxHashMap<&str, usize>, String>,
        host: &str,
    ) -> Result<usize, String> {
        match (host.strip_prefix("+n"), hosts) {
            (Some(number), _) => {
                let node = number.parse().ok().filter(|&node| node < self.nodes());
                let last = self.nodes() - 1;
                node.ok_or_else(|| format!("there is no node {host}; nodes are +n0 to +n{last}"))
            }
            (None, Ok(hosts)) => hosts.get(host).copied().ok_or_else(|| {
                format!("the machine has no host {host}; check that the file is for this machine")
            }),
            (None, Err(reason)) => Err(format!("host {host} is unknown: {reason}")),
        }
    }

    /// The coordinates of a node, if the machine is a grid.
    pub(super) fn position(&self, node: usize) -> Option<&[usize]> {
        self.nodes[node].position.as_deref()
    }

    /// The name of a node for messages.
    pub(super) fn name(&self, node: usize) -> String {
        self.nodes[node].host.as_ref().map_or_else(|| format!("node {node}"), |host| format!("host {host}"))
    }

    /// The PE of every rank; checks that places exist and that there are not more ranks than slots.
    pub(super) fn ranks(&self, entries: &[(Place, usize)]) -> Result<Vec<u32>, AtLine> {
        let mut on_pe = vec![0u32; self.place_of.len()];
        let mut on_node = vec![0u64; self.nodes.len()];
        let mut in_slot: FxHashMap<(usize, u64), usize> = FxHashMap::default();
        let mut pe_of = Vec::with_capacity(entries.len());
        for (rank, &(place, line)) in entries.iter().enumerate() {
            let wrong = |reason: String| (line, format!("rank {rank}: {reason}"));
            let pe = match place {
                Place::Pe(pe) => {
                    let last = self.place_of.len() - 1;
                    let pe = u32::try_from(pe).ok().filter(|&pe| pe as usize <= last);
                    let pe = pe.ok_or_else(|| wrong(format!("there is no such PE; PEs are 0 to {last}")))?;
                    on_pe[pe as usize] += 1;
                    if on_pe[pe as usize] > self.per_pe {
                        return Err(wrong(format!("PE {pe} already has {}", count(self.per_pe, "rank"))));
                    }
                    pe
                }
                Place::Slot(node, slot) => {
                    let (name, slots) = (self.name(node), self.slots(node));
                    if slot >= slots {
                        return Err(wrong(format!(
                            "{name} has only slots 0 to {}, but not slot {slot}",
                            slots - 1
                        )));
                    }
                    if let Some(other) = in_slot.insert((node, slot), rank) {
                        return Err(wrong(format!("slot {slot} of {name} already has rank {other}")));
                    }
                    self.nodes[node].pes[(slot / u64::from(self.per_pe)) as usize]
                }
                Place::Node(node) => {
                    let slot = on_node[node];
                    on_node[node] += 1;
                    if slot >= self.slots(node) {
                        return Err(wrong(format!(
                            "{} already has {}",
                            self.name(node),
                            count(slot, "rank")
                        )));
                    }
                    self.nodes[node].pes[(slot / u64::from(self.per_pe)) as usize]
                }
            };
            pe_of.push(pe);
        }
        Ok(pe_of)
    }
}

/// The ranks of a job, each in its own slot of a machine.
#[derive(Clone, Debug)]
pub struct Job<'a> {
    pub(super) slots: &'a Slots,
    /// For each rank: its PE, and its slot of the node.
    places: Vec<(u32, u64)>,
}

impl<'a> Job<'a> {
    /// The job with rank `i` on PE `pe_of[i]`.
    ///
    /// # Errors
    /// If there is no rank, or a PE does not exist or has more ranks than slots.
    pub fn new(pe_of: &[u32], slots: &'a Slots) -> Result<Self, LauncherError> {
        let wrong = |reason: String| Err(LauncherError::Job(reason));
        if pe_of.is_empty() {
            return wrong("there is no rank to place; give a graph with at least one task".into());
        }
        let mut on_pe = vec![0u32; slots.place_of.len()];
        let mut places = Vec::with_capacity(pe_of.len());
        for (rank, &pe) in pe_of.iter().enumerate() {
            let Some(&(_, core)) = slots.place_of.get(pe as usize) else {
                return wrong(format!("rank {rank} is on PE {pe}, which the machine does not have"));
            };
            let taken = &mut on_pe[pe as usize];
            places.push((pe, u64::from(core) * u64::from(slots.per_pe) + u64::from(*taken)));
            *taken += 1;
        }
        if let Some((pe, taken)) =
            on_pe.iter().enumerate().max_by_key(|&(pe, taken)| (taken, usize::MAX - pe))
            && *taken > slots.per_pe
        {
            let has_room = pe_of.len() as u64 <= slots.place_of.len() as u64 * u64::from(slots.per_pe);
            let remedy = match has_room {
                true => format!("map with --max-objects {}", slots.per_pe),
                false => "map to at least as many PEs as ranks".into(),
            };
            return wrong(format!(
                "PE {pe} has {taken} ranks, but only {}; use --slots {taken} if {taken} processes run on it, or {remedy}",
                count(slots.per_pe, "slot")
            ));
        }
        Ok(Job { slots, places })
    }

    pub(super) fn ranks(&self) -> usize {
        self.places.len()
    }

    /// The PE of every rank.
    pub(super) fn pes(&self) -> impl Iterator<Item = u32> {
        self.places.iter().map(|place| place.0)
    }

    /// The node of every rank.
    pub(super) fn nodes(&self) -> impl Iterator<Item = usize> {
        self.places.iter().map(|place| self.slots.node_of(place.0 as usize))
    }

    /// The node of every rank, and its slot of the node.
    pub(super) fn node_slots(&self) -> impl Iterator<Item = (usize, u64)> {
        self.places.iter().map(|&(pe, slot)| (self.slots.node_of(pe as usize), slot))
    }
}

/// Sorts places by rank; every rank from 0 to the last must occur exactly once.
pub(super) fn sort_by_rank(entries: Vec<(u64, Place, usize)>) -> Result<Entries, AtLine> {
    let ranks = entries.len();
    let last = entries.iter().map(|(_, _, line)| *line).max().unwrap_or(1);
    let mut by_rank: Vec<Option<(Place, usize)>> = vec![None; ranks];
    for (rank, place, line) in entries {
        let Some(known) = usize::try_from(rank).ok().and_then(|rank| by_rank.get_mut(rank)) else {
            let most = ranks - 1;
            let ranks = count(ranks as u64, "rank");
            return Err((line, format!("the file has {ranks}, numbered 0 to {most}, but names rank {rank}")));
        };
        if let Some((_, first)) = known.replace((place, line)) {
            return Err((line, format!("rank {rank} already has a place in line {first}")));
        }
    }
    // No rank is missing: there are as many entries as ranks, no rank occurs twice, and no rank is too large.
    by_rank.into_iter().map(|place| place.ok_or((last, "a rank is missing".into()))).collect()
}
