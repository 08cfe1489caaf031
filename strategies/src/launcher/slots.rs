//! A machine as a launcher counts it: nodes, and slots of them.

use rustc_hash::FxHashMap;

use crate::Topology;

/// What is wrong with a line of a file: its number, from 1, and a sentence.
pub(super) type Fault = (usize, String);

/// What a file says of every rank, and in which line.
pub(super) type Said = Vec<(Place, usize)>;

/// The most ranks of a file that names many at once.
pub(super) const MAX_RANKS: u64 = 1 << 26;

/// Where a file puts a rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// On a PE.
    Pe(u64),
    /// On a slot of a node.
    Slot(usize, u64),
    /// Anywhere on a node.
    Node(usize),
}

/// Nodes and their slots.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slots {
    nodes: Vec<Node>,
    /// By PE: its node, and how many PEs of that come before it.
    place_of: Vec<(u32, u32)>,
    /// By PE: which of the PEs of its whole node it is, of which not all need to be here.
    core_of: Vec<u32>,
    /// Slots of a PE.
    per_pe: u32,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Node {
    pes: Vec<u32>,
    host: Option<String>,
    position: Option<Vec<usize>>,
}

impl Slots {
    /// The nodes of a machine ([`Topology::node_of`]), in the order of their first PEs, with `per_pe` slots for
    /// each of their PEs.
    ///
    /// # Panics
    /// Without a slot for each PE.
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

    /// How many nodes there are.
    pub fn nodes(&self) -> usize {
        self.nodes.len()
    }

    /// The node of a PE.
    ///
    /// # Panics
    /// When there is no such PE.
    pub fn node_of(&self, pe: usize) -> usize {
        self.place_of[pe].0 as usize
    }

    /// How many slots a node has.
    pub(super) fn slots(&self, node: usize) -> u64 {
        self.nodes[node].pes.len() as u64 * u64::from(self.per_pe)
    }

    /// The number of a slot among those of the whole node, of which not all need to be here.
    pub(super) fn number_of(&self, node: usize, slot: u64) -> u64 {
        let per_pe = u64::from(self.per_pe);
        let pe = self.nodes[node].pes[(slot / per_pe) as usize];
        u64::from(self.core_of[pe as usize]) * per_pe + slot % per_pe
    }

    /// The slot of every node and [number](Slots::number_of).
    pub(super) fn numbered(&self) -> FxHashMap<(usize, u64), u64> {
        let of_node =
            |node| (0..self.slots(node)).map(move |slot| ((node, self.number_of(node, slot)), slot));
        (0..self.nodes.len()).flat_map(of_node).collect()
    }

    /// That a node has no slot of that number.
    pub(super) fn no_slot(&self, node: usize, number: u64) -> String {
        const SHOWN: u64 = 16;
        let slots = self.slots(node);
        let shown = (0..slots.min(SHOWN)).map(|slot| self.number_of(node, slot).to_string());
        let more = if slots > SHOWN { ", .." } else { "" };
        let shown = shown.collect::<Vec<_>>().join(", ");
        format!("{} has slots {shown}{more} here, and no slot {number}", self.name(node))
    }

    /// The name of a node's host, or why there is none and what to do about it.
    pub(super) fn host(&self, node: usize) -> Result<&str, String> {
        self.nodes[node].host.as_deref().ok_or_else(|| {
            "the machine does not say the names of hosts; use one of a file that does, as in \
             slurm:topology.conf*tree:2:8"
                .into()
        })
    }

    /// The node of every host.
    pub(super) fn hosts(&self) -> Result<FxHashMap<&str, usize>, String> {
        let mut hosts = FxHashMap::default();
        for node in 0..self.nodes.len() {
            let host = self.host(node)?;
            if hosts.insert(host, node).is_some() {
                return Err(format!(
                    "two nodes of the machine are called {host}; give each a name of its own"
                ));
            }
        }
        Ok(hosts)
    }

    /// The coordinates of a node, where the machine is a grid.
    pub(super) fn position(&self, node: usize) -> Option<&[usize]> {
        self.nodes[node].position.as_deref()
    }

    /// What a person calls a node.
    pub(super) fn name(&self, node: usize) -> String {
        self.nodes[node].host.as_ref().map_or_else(|| format!("node {node}"), |host| format!("host {host}"))
    }

    /// The PE of every rank, if places exist and nobody has more ranks than slots.
    pub(super) fn settle(&self, said: &[(Place, usize)]) -> Result<Vec<u32>, Fault> {
        let mut on_pe = vec![0u32; self.place_of.len()];
        let mut on_node = vec![0u64; self.nodes.len()];
        let mut in_slot: FxHashMap<(usize, u64), usize> = FxHashMap::default();
        let mut pe_of = Vec::with_capacity(said.len());
        for (rank, &(place, line)) in said.iter().enumerate() {
            let wrong = |reason: String| (line, format!("rank {rank}: {reason}"));
            let pe = match place {
                Place::Pe(pe) => {
                    let last = self.place_of.len() - 1;
                    let pe = u32::try_from(pe).ok().filter(|&pe| pe as usize <= last);
                    let pe = pe.ok_or_else(|| wrong(format!("there is no such PE; they are 0 to {last}")))?;
                    on_pe[pe as usize] += 1;
                    if on_pe[pe as usize] > self.per_pe {
                        return Err(wrong(format!("PE {pe} has {} already", ranks(u64::from(self.per_pe)))));
                    }
                    pe
                }
                Place::Slot(node, slot) => {
                    let (name, slots) = (self.name(node), self.slots(node));
                    if slot >= slots {
                        return Err(wrong(format!(
                            "{name} has slots 0 to {}, and no slot {slot}",
                            slots - 1
                        )));
                    }
                    if let Some(other) = in_slot.insert((node, slot), rank) {
                        return Err(wrong(format!("slot {slot} of {name} has rank {other} already")));
                    }
                    self.nodes[node].pes[(slot / u64::from(self.per_pe)) as usize]
                }
                Place::Node(node) => {
                    let slot = on_node[node];
                    on_node[node] += 1;
                    if slot >= self.slots(node) {
                        return Err(wrong(format!("{} has {} already", self.name(node), ranks(slot))));
                    }
                    self.nodes[node].pes[(slot / u64::from(self.per_pe)) as usize]
                }
            };
            pe_of.push(pe);
        }
        Ok(pe_of)
    }
}

fn ranks(count: u64) -> String {
    if count == 1 { "a rank".into() } else { format!("its {count} ranks") }
}

/// Ranks on the PEs of a machine, each in a slot of its own.
#[derive(Clone, Debug)]
pub struct Job<'a> {
    pub(super) slots: &'a Slots,
    /// By rank: its PE, and its slot of the node.
    places: Vec<(u32, u64)>,
}

impl<'a> Job<'a> {
    /// The job whose rank `i` runs on PE `pe_of[i]`.
    ///
    /// # Errors
    /// Without a rank, when a PE does not exist, or has more ranks than slots.
    pub fn new(pe_of: &[u32], slots: &'a Slots) -> Result<Self, String> {
        if pe_of.is_empty() {
            return Err("there is no rank to place; give a graph of at least one task".into());
        }
        let mut on_pe = vec![0u32; slots.place_of.len()];
        let mut places = Vec::with_capacity(pe_of.len());
        for (rank, &pe) in pe_of.iter().enumerate() {
            let Some(&(_, core)) = slots.place_of.get(pe as usize) else {
                return Err(format!("rank {rank} is on PE {pe}, which the machine does not have"));
            };
            let taken = &mut on_pe[pe as usize];
            places.push((pe, u64::from(core) * u64::from(slots.per_pe) + u64::from(*taken)));
            *taken += 1;
        }
        if let Some((pe, taken)) =
            on_pe.iter().enumerate().max_by_key(|&(pe, taken)| (taken, usize::MAX - pe))
            && *taken > slots.per_pe
        {
            return Err(format!(
                "PE {pe} has {taken} ranks, and {} of a slot each; say --slots {taken} if so many processes run on \
                 it, or map on at least as many PEs as there are ranks",
                slots.per_pe
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

    /// The node of every rank and its slot of that.
    pub(super) fn node_slots(&self) -> impl Iterator<Item = (usize, u64)> {
        self.places.iter().map(|&(pe, slot)| (self.slots.node_of(pe as usize), slot))
    }
}

/// What is said of ranks in any order, by rank; every one from 0 to the last is to be there once.
pub(super) fn each_once(said: Vec<(u64, Place, usize)>) -> Result<Said, Fault> {
    let ranks = said.len();
    let last = said.iter().map(|(_, _, line)| *line).max().unwrap_or(1);
    let mut by_rank: Vec<Option<(Place, usize)>> = vec![None; ranks];
    for (rank, place, line) in said {
        let Some(known) = usize::try_from(rank).ok().and_then(|rank| by_rank.get_mut(rank)) else {
            let most = ranks - 1;
            return Err((line, format!("there are {ranks} ranks, so they are 0 to {most}, and not {rank}")));
        };
        if let Some((_, first)) = known.replace((place, line)) {
            return Err((line, format!("rank {rank} has its place in line {first} already")));
        }
    }
    // As many as there are, none twice, and none beyond: so none is missing.
    by_rank.into_iter().map(|place| place.ok_or((last, "a rank is missing".into()))).collect()
}
