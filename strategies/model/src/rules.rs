//! [`Constraints`] for a database on a machine, and the check of a placement.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::constraints::{Constraints, Group, Level, MaxObjects, PerPe, Place, PlaceSet};
use crate::fault::{Classified, Fault};
use crate::quote::quoted;
use crate::table::count;
use crate::{Database, Topology};

mod levels;

/// How errors name the kinds of constraints.
struct Names {
    max_objects: &'static str,
    memory: &'static str,
    add_size: &'static str,
    places: &'static str,
    groups: &'static str,
    phases: &'static str,
}

/// As fields of a document.
const FIELDS: Names = Names {
    max_objects: "`max_objects`",
    memory: "`memory`",
    add_size: "add the size to `object_bytes`",
    places: "the list of places",
    groups: "`groups`",
    phases: "`phases`",
};

/// As flags of commands.
const FLAGS: Names = Names {
    max_objects: "--max-objects",
    memory: "--memory",
    add_size: "give it with --object-bytes",
    places: "--fixed",
    groups: "--groups",
    phases: "--phases",
};

/// Why constraints are not about a database and a machine.
enum Unfit {
    /// There are numbers for another number of PEs: the flag is wrong for this machine.
    Length(String),
    /// The file that the flag names is wrong.
    Content(String),
}

impl From<String> for Unfit {
    fn from(reason: String) -> Self {
        Unfit::Content(reason)
    }
}

/// A flag of constraints that does not fit the database or the machine, or the file that it names.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{sentence}")]
pub struct UnfitFlag {
    fault: Fault,
    sentence: String,
}

impl Classified for UnfitFlag {
    fn fault(&self) -> Fault {
        self.fault
    }
}

impl From<Unfit> for UnfitFlag {
    fn from(unfit: Unfit) -> Self {
        match unfit {
            Unfit::Length(sentence) => UnfitFlag { fault: Fault::Usage, sentence },
            Unfit::Content(sentence) => UnfitFlag { fault: Fault::Input, sentence },
        }
    }
}

impl PerPe {
    fn of(&self, what: &str, machine: &dyn Topology) -> Result<Vec<u64>, Unfit> {
        match self {
            PerPe::All(number) => Ok(vec![*number; machine.pes()]),
            PerPe::Each(numbers) if numbers.len() == machine.pes() => Ok(numbers.clone()),
            PerPe::Each(numbers) => Err(Unfit::Length(format!(
                "{what} has {}, and `{}` has {}; give one number per PE",
                count(numbers.len() as u64, "number"),
                machine.spec(),
                count(machine.pes() as u64, "PE")
            ))),
        }
    }
}

impl PlaceSet {
    /// The PEs of the set, ascending.
    fn pes(&self, machine: &dyn Topology, nodes: &[u32]) -> Result<Vec<u32>, String> {
        let mut is_in = vec![false; machine.pes()];
        for &(first, last, of_nodes) in &self.ranges {
            let (what, most) = if of_nodes {
                ("node", nodes.iter().max().copied().unwrap_or(0))
            } else {
                ("PE", machine.pes() as u32 - 1)
            };
            if last > most {
                let spec = machine.spec();
                return Err(format!(
                    "the places `{}` have no {what} {last}: `{spec}` has {what}s 0 to {most}",
                    self.text
                ));
            }
            match of_nodes {
                true => is_in
                    .iter_mut()
                    .zip(nodes)
                    .for_each(|(is_in, node)| *is_in |= (first..=last).contains(node)),
                false => is_in[first as usize..=last as usize].fill(true),
            }
        }
        for host in &self.hosts {
            let of_host = || (0..machine.pes()).filter(|&pe| machine.host(pe) == Some(host));
            if of_host().next().is_none() {
                let (host, spec) = (quoted(host), machine.spec());
                return Err(match machine.host(0) {
                    Some(first) => format!(
                        "the places `{}` have no host `{host}`: the hosts of `{spec}` have names such as `{first}`",
                        self.text
                    ),
                    None => format!(
                        "the places `{}` have a host, but `{spec}` has no names of hosts; write PEs or node:N",
                        self.text
                    ),
                });
            }
            of_host().for_each(|pe| is_in[pe] = true);
        }
        Ok((0..machine.pes() as u32).filter(|&pe| is_in[pe as usize] != self.is_complement).collect())
    }
}

/// Sorted PEs on which an object may be; none: all.
pub type Allowed = Option<Arc<Vec<u32>>>;

/// The constraints of a database on a machine. Objects are positions in the database.
#[derive(Clone, Debug, Default)]
pub struct Rules {
    /// The largest number of objects of each PE; none: any.
    pub most: Option<Vec<u64>>,
    /// Whether each PE has exactly this number.
    pub exact: bool,
    /// The bytes of each PE for objects; none: any.
    pub memory: Option<Vec<u64>>,
    /// The bytes of each object; 0 without `memory`.
    pub bytes: Vec<u64>,
    /// Where each object may be.
    pub allowed: Vec<Allowed>,
    /// Where objects should be, and the seconds that this is worth.
    pub wishes: Vec<(u32, Arc<Vec<u32>>, f64)>,
    /// Groups of objects; the parts of the machine are in `parts`.
    pub groups: Vec<(bool, Level, Vec<u32>)>,
    /// The part of each PE at the levels of the groups.
    pub parts: FxHashMap<Level, Vec<u32>>,
    /// The load of each object in each phase, in seconds at speed 1; empty: the recorded loads only.
    pub phases: Vec<Vec<f64>>,
}

/// Whether `pe` is allowed.
pub fn allows(allowed: &Allowed, pe: u32) -> bool {
    allowed.as_ref().is_none_or(|set| set.binary_search(&pe).is_ok())
}

/// The number of broken constraints that a sentence lists.
const MAX_LISTED: usize = 8;

/// A constraint that a placement breaks.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Broken(pub String);

impl Classified for Broken {
    fn fault(&self) -> Fault {
        Fault::Input
    }
}

impl Constraints {
    /// The constraints for a database and a machine.
    ///
    /// # Errors
    /// If they name objects, PEs or nodes that do not exist, or the size of an object is needed and not known.
    pub fn rules(&self, database: &Database, machine: &dyn Topology) -> Result<Rules, String> {
        self.named_rules(database, machine, &FIELDS).map_err(|unfit| match unfit {
            Unfit::Length(sentence) | Unfit::Content(sentence) => sentence,
        })
    }

    /// As [`Self::rules`], for constraints that flags give, which errors name.
    ///
    /// # Errors
    /// Those of [`Self::rules`].
    pub fn rules_of_flags(&self, database: &Database, machine: &dyn Topology) -> Result<Rules, UnfitFlag> {
        Ok(self.named_rules(database, machine, &FLAGS)?)
    }

    /// Adds these constraints, which flags give, to those of a database. They take the place of recorded ones of their kind.
    ///
    /// # Errors
    /// If they are not about this database and machine.
    pub fn add_to(self, database: &mut Database, machine: &dyn Topology) -> Result<(), UnfitFlag> {
        let recorded = std::mem::take(&mut database.constraints);
        if self.is_empty() {
            database.constraints = recorded;
            return Ok(());
        }
        // Recorded constraints are not the fault of flags, but flags may need recorded sizes.
        let own = self.clone();
        database.constraints = self.or(recorded);
        let object_bytes = database.constraints.object_bytes.clone();
        Constraints { object_bytes, ..own }.rules_of_flags(database, machine).map(|_| ())
    }

    fn named_rules(
        &self,
        database: &Database,
        machine: &dyn Topology,
        names: &Names,
    ) -> Result<Rules, Unfit> {
        let mut rules = Rules { allowed: vec![None; database.objects.len()], ..Rules::default() };
        let by_id: FxHashMap<u64, u32> =
            (0u32..).zip(&database.objects).map(|(i, object)| (object.id, i)).collect();
        let position = |id: u64, named_by: &str| {
            let known = by_id.get(&id).copied();
            known.ok_or_else(|| {
                let objects = count(database.objects.len() as u64, "object");
                // Tasks have the ids 0, 1, .., which the number of them says.
                let last = database.objects.last().filter(|last| last.id >= database.objects.len() as u64);
                let such = last.map_or(String::new(), |last| format!("; ids are such as {}", last.id));
                format!("there is no object {id} among {objects}, but {named_by} names it{such}")
            })
        };
        if let Some(MaxObjects { most, exact }) = &self.max_objects {
            let mut by_pe = most.of(names.max_objects, machine)?;
            if *exact && matches!(most, PerPe::All(_)) {
                let closed = by_pe.iter_mut().zip(&database.pes).filter(|(_, pe)| !pe.available);
                closed.for_each(|(most, _)| *most = 0);
            }
            (rules.most, rules.exact) = (Some(by_pe), *exact);
        }
        rules.bytes = self.bytes(database, names, position)?;
        rules.memory = self.memory.as_ref().map(|memory| memory.of(names.memory, machine)).transpose()?;
        let mut sets: FxHashMap<&str, Arc<Vec<u32>>> = FxHashMap::default();
        let nodes = if self.places.is_empty() { Vec::new() } else { Level::Node.parts(machine)? };
        for Place { object, set, worth_seconds } in &self.places {
            let object = position(*object, names.places)?;
            let pes = match sets.get(&*set.text) {
                Some(pes) => Arc::clone(pes),
                None => {
                    let pes = Arc::new(
                        set.pes(machine, &nodes).map_err(|error| format!("{}: {error}", names.places))?,
                    );
                    sets.insert(&set.text, Arc::clone(&pes));
                    pes
                }
            };
            match worth_seconds {
                Some(seconds) => rules.wishes.push((object, pes, *seconds)),
                None => rules.allowed[object as usize] = Some(pes),
            }
        }
        for Group { together, level, objects } in &self.groups {
            if !rules.parts.contains_key(level) {
                rules.parts.insert(*level, level.parts(machine)?);
            }
            let mut members =
                objects.iter().map(|&id| position(id, names.groups)).collect::<Result<Vec<_>, _>>()?;
            members.sort_unstable();
            members.dedup();
            rules.groups.push((*together, *level, members));
        }
        rules.phases = self.loads(database, names, position)?;
        Ok(rules)
    }

    fn bytes(
        &self,
        database: &Database,
        names: &Names,
        position: impl Fn(u64, &str) -> Result<u32, String>,
    ) -> Result<Vec<u64>, String> {
        if self.memory.is_none() {
            return Ok(vec![0; database.objects.len()]);
        }
        let mut bytes: Vec<Option<u64>> = database.objects.iter().map(|object| object.bytes).collect();
        for &(object, size) in &self.object_bytes {
            bytes[position(object, "the list of sizes")? as usize] = Some(size);
        }
        let known = |(size, object): (Option<u64>, &crate::database::Object)| {
            size.ok_or_else(|| {
                let Names { memory, add_size, .. } = names;
                format!("{memory} needs the size of object {}, which is not recorded; {add_size}", object.id)
            })
        };
        bytes.into_iter().zip(&database.objects).map(known).collect()
    }

    fn loads(
        &self,
        database: &Database,
        names: &Names,
        position: impl Fn(u64, &str) -> Result<u32, String>,
    ) -> Result<Vec<Vec<f64>>, String> {
        let Some((_, first)) = self.phases.first() else { return Ok(Vec::new()) };
        let mut phases = vec![vec![0.0; database.objects.len()]; first.len()];
        let mut is_missing = vec![true; database.objects.len()];
        for (object, loads) in &self.phases {
            let at = position(*object, names.phases)? as usize;
            is_missing[at] = false;
            phases.iter_mut().zip(loads).for_each(|(phase, &load)| phase[at] = load);
        }
        match is_missing.iter().position(|&missing| missing) {
            Some(at) => Err(format!(
                "the loads of object {} by phase are missing; give a line for every object",
                database.objects[at].id
            )),
            None => Ok(phases),
        }
    }
}

impl Rules {
    /// Whether a placement keeps the constraints. Wishes and loads are no constraints.
    ///
    /// # Errors
    /// A constraint that it breaks.
    pub fn check(&self, database: &Database, pe_of: &[u32]) -> Result<(), Broken> {
        self.broken(database, pe_of).next().map_or(Ok(()), Err)
    }

    /// What a placement does with the constraints, as what follows a subject in a sentence: `breaks 2 constraints: ..`. `None` if it keeps
    /// all.
    pub fn verdict(&self, database: &Database, pe_of: &[u32]) -> Option<String> {
        let mut broken = self.broken(database, pe_of).map(|broken| broken.0);
        let listed: Vec<String> = broken.by_ref().take(MAX_LISTED).collect();
        let others = broken.count();
        let text = listed.join("; ");
        match listed.len() + others {
            0 => None,
            1 => Some(format!("breaks a constraint: {text}")),
            many if others == 0 => Some(format!("breaks {many} constraints: {text}")),
            many => Some(format!("breaks {many} constraints: {text}; and {others} more")),
        }
    }

    /// The constraints that a placement breaks: places, then numbers and bytes of PEs, then groups.
    pub fn broken<'a>(
        &'a self,
        database: &'a Database,
        pe_of: &'a [u32],
    ) -> impl Iterator<Item = Broken> + 'a {
        let id = |object: usize| database.objects[object].id;
        let is_misplaced = |(at, pe): &(usize, u32)| !allows(&self.allowed[*at], *pe);
        let misplaced = pe_of.iter().copied().enumerate().filter(is_misplaced);
        let misplaced =
            misplaced.map(move |(at, pe)| format!("object {} is on PE {pe}, where it may not be", id(at)));
        let of_groups = self.groups.iter().flat_map(move |(together, level, members)| {
            let part_of = |object: &u32| self.parts[level][pe_of[*object as usize] as usize];
            let mut parts: Vec<(u32, u32)> =
                members.iter().map(|object| (part_of(object), *object)).collect();
            parts.sort_unstable();
            let is_broken = |pair: &&[(u32, u32)]| (pair[0].0 == pair[1].0) != *together;
            let ends = |pair: &[(u32, u32)]| [pair[0], pair[1]].map(|(_, object)| object as usize);
            let pairs: Vec<_> = parts.windows(2).filter(is_broken).map(ends).collect();
            let how = if *together { "not on the same" } else { "on the same" };
            pairs.into_iter().map(move |[a, b]| format!("objects {} and {} are {how} {level}", id(a), id(b)))
        });
        misplaced.chain(self.overfull(pe_of)).chain(of_groups).map(Broken)
    }

    /// Sentences about PEs with more or fewer objects, or more bytes, than they take.
    fn overfull<'a>(&'a self, pe_of: &'a [u32]) -> impl Iterator<Item = String> + 'a {
        let word = if self.exact { "exactly" } else { "at most" };
        let of_objects = self.most.iter().flat_map(move |most| {
            let mut objects = vec![0u64; most.len()];
            pe_of.iter().for_each(|&pe| objects[pe as usize] += 1);
            let is_broken =
                move |(_, (has, takes)): &(usize, (u64, &u64))| has > *takes || self.exact && has < *takes;
            let broken = objects.into_iter().zip(most).enumerate().filter(is_broken);
            broken.map(move |(pe, (has, takes))| {
                format!("PE {pe} has {}, and takes {word} {takes}", count(has, "object"))
            })
        });
        let of_bytes = self.memory.iter().flat_map(|memory| {
            let mut bytes = vec![0u64; memory.len()];
            for (&pe, &size) in pe_of.iter().zip(&self.bytes) {
                bytes[pe as usize] = bytes[pe as usize].saturating_add(size);
            }
            let broken = bytes.into_iter().zip(memory).enumerate().filter(|(_, (has, room))| has > *room);
            broken.map(|(pe, (has, room))| {
                format!("the objects of PE {pe} have {has} bytes, and it has room for {room}")
            })
        });
        of_objects.chain(of_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{graph, topology};

    #[test]
    fn unknown_ids_are_refused_with_one_that_is_known() {
        let mut database = graph::load("ring:7").expect("a ring").remap(2);
        let machine = topology::parse("flat:2").expect("a machine");
        let places = Place::parse("7 0").expect("places");
        let constraints = Constraints { places, ..Constraints::default() };
        let error = |database: &Database| constraints.rules(database, &*machine).expect_err("no object 7");
        assert_eq!(error(&database), "there is no object 7 among 7 objects, but the list of places names it");
        database.objects.iter_mut().for_each(|object| object.id += 5_000_000_000);
        assert!(error(&database).ends_with(", but the list of places names it; ids are such as 5000000006"));
    }
}
