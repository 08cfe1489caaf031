//! A part of the machine for strategies whose cost grows faster than the number of PEs.
//!
//! If there are far more PEs than objects, most PEs stay idle in any good placement. [`OnPart`] then runs a strategy on the
//! PEs in use and on free PEs near them. Distances and routes stay those of the whole machine. A faster free PE farther away
//! is left out.

use equipoise_model::constraints::Constraints;
use equipoise_model::database::{Edge, End, Object};
use equipoise_model::table::count;
use equipoise_model::topology::Allocation;
use equipoise_model::{Assignment, Database, Topology};
use equipoise_network::program::Model;

use crate::strategy::{Alternatives, check};
use crate::{Strategy, StrategyError};

/// With at most this many PEs, a strategy gets the whole machine.
pub(crate) const LEAST_PES: usize = 4096;

/// With at most this many PEs per object, a strategy gets the whole machine; a large part has as many.
pub(crate) const PES_PER_OBJECT: usize = 4;

/// The PEs of a part with few objects. (On most machines, the routes between all pairs of 1024 PEs fit into a table.)
const LEAST_PART: usize = 1024;

/// The maximum number of PEs in use whose distances to all PEs are computed.
const MAX_SOURCES: usize = 16;

/// A strategy that gets only a part of machines with far more PEs than objects.
#[derive(Clone, Copy, Debug)]
pub struct OnPart<S>(pub S);

impl<S: Strategy> Strategy for OnPart<S> {
    fn assign(
        &self,
        database: &Database,
        topology: &dyn Topology,
        seed: u64,
    ) -> Result<Assignment, StrategyError> {
        match Part::of(database, topology)? {
            Some(part) => Ok(part.on_whole(self.0.assign(&part.database, &part.machine, seed)?)),
            None => self.0.assign(database, topology, seed),
        }
    }

    fn alternatives(
        &self,
        database: &Database,
        topology: &dyn Topology,
        seed: u64,
        is_enough: &dyn Fn(&Assignment) -> bool,
    ) -> Result<Alternatives, StrategyError> {
        let Some(part) = Part::of(database, topology)? else {
            return self.0.alternatives(database, topology, seed, is_enough);
        };
        let is_enough = |answer: &Assignment| is_enough(&part.on_whole(answer.clone()));
        let Alternatives { answer, mut others } =
            self.0.alternatives(&part.database, &part.machine, seed, &is_enough)?;
        others.iter_mut().for_each(|placement| part.map(placement));
        Ok(Alternatives { answer: part.on_whole(answer), others })
    }

    fn assign_program(
        &self,
        model: &Model,
        database: &Database,
        topology: &dyn Topology,
        seed: u64,
    ) -> Result<Assignment, StrategyError> {
        match Part::of(database, topology)? {
            // A model that names PEs names those of the whole machine.
            Some(part) if model.tasks.iter().all(|task| task.stays_on.is_none()) => {
                let model = Model { simulation: None, ..model.clone() };
                Ok(part.on_whole(self.0.assign_program(&model, &part.database, &part.machine, seed)?))
            }
            _ => self.0.assign_program(model, database, topology, seed),
        }
    }
}

/// A part of a machine, and the database of its PEs.
struct Part<'a> {
    /// The PEs, ascending; PE `i` of the part is PE `pes[i]` of the machine.
    pes: Vec<u32>,
    machine: Allocation<&'a dyn Topology>,
    database: Database,
}

impl<'a> Part<'a> {
    /// The part for `database`; `None` if the strategy gets the whole machine.
    ///
    /// # Errors
    /// Those of [`check`].
    fn of(database: &Database, topology: &'a dyn Topology) -> Result<Option<Self>, StrategyError> {
        let (all, objects) = (topology.pes(), database.objects.len());
        if all <= LEAST_PES.max(PES_PER_OBJECT * objects) {
            return Ok(None);
        }
        let available = check(database, topology)?;
        let mut is_used = vec![false; all];
        database.objects.iter().for_each(|object| is_used[object.pe as usize] = true);
        for end in edges_of_objects(database).flat_map(|edge| [edge.from, edge.to]) {
            if let End::Pe(pe) = end {
                is_used[pe as usize] = true;
            }
        }
        let used: Vec<u32> = (0..all as u32).filter(|&pe| is_used[pe as usize]).collect();
        let Some(room) = LEAST_PART.max(PES_PER_OBJECT * objects).checked_sub(used.len()) else {
            return Ok(None);
        };
        let free: Vec<u32> = available.into_iter().filter(|&pe| !is_used[pe as usize]).collect();
        let mut pes = nearest(topology, &used, free, room);
        pes.extend(&used);
        pes.sort_unstable();
        let spec = format!("{} near the objects", count(pes.len() as u64, "PE"));
        let machine = Allocation::of(topology, pes.clone(), spec).map_err(StrategyError::Bug)?;
        let database = reduced(database, &pes);
        Ok(Some(Part { pes, machine, database }))
    }

    /// An assignment to the part as an assignment to the machine.
    fn on_whole(&self, mut answer: Assignment) -> Assignment {
        self.map(&mut answer.pe_of);
        answer
    }

    fn map(&self, placement: &mut [u32]) {
        placement.iter_mut().for_each(|pe| *pe = self.pes[*pe as usize]);
    }
}

/// The edges with an object at an end. Other edges cost the same in every placement.
fn edges_of_objects(database: &Database) -> impl Iterator<Item = &Edge> {
    let is_object = |end| matches!(end, End::Object(_));
    database.edges.iter().filter(move |edge| is_object(edge.from) || is_object(edge.to))
}

/// At most `room` PEs of `free`. One half is nearest to the first PE of `used`, so that all objects find room close
/// together; the rest is nearest to any PE of `used`. Ties go to the lowest PE.
fn nearest(topology: &dyn Topology, used: &[u32], mut free: Vec<u32>, room: usize) -> Vec<u32> {
    let mut row = vec![0; topology.pes()];
    let mut chosen = Vec::with_capacity(room);
    let mut distance = vec![u32::MAX; topology.pes()];
    // Distances from all PEs in use would cost too much if they are many, so they are evenly spaced.
    let sources = used.iter().step_by(used.len().div_ceil(MAX_SOURCES).max(1));
    for (number, &source) in sources.enumerate() {
        topology.distances_from(source as usize, &mut row);
        if number == 0 {
            take(&mut free, &row, room / 2, &mut chosen);
        }
        distance.iter_mut().zip(&row).for_each(|(least, &this)| *least = this.min(*least));
    }
    take(&mut free, &distance, room - chosen.len(), &mut chosen);
    chosen
}

/// Moves the `most` PEs of the least distance from `free` to `chosen`.
fn take(free: &mut Vec<u32>, distance: &[u32], most: usize, chosen: &mut Vec<u32>) {
    let most = most.min(free.len());
    if most < free.len() {
        free.select_nth_unstable_by_key(most, |&pe| (distance[pe as usize], pe));
    }
    chosen.extend(free.drain(..most));
}

/// The database of the PEs `pes`, ascending, which include all PEs of objects and of the ends of their edges.
fn reduced(database: &Database, pes: &[u32]) -> Database {
    let number = |pe: u32| pes.partition_point(|&other| other < pe) as u32;
    let end = |end: End| match end {
        End::Object(object) => End::Object(object),
        End::Pe(pe) => End::Pe(number(pe)),
    };
    let object = |object: &Object| Object { pe: number(object.pe), ..object.clone() };
    Database {
        step: database.step,
        arrays: database.arrays.clone(),
        pes: pes.iter().map(|&pe| database.pes[pe as usize].clone()).collect(),
        objects: database.objects.iter().map(object).collect(),
        communication_recorded: database.communication_recorded,
        edges: edges_of_objects(database)
            .map(|edge| Edge { from: end(edge.from), to: end(edge.to), ..edge.clone() })
            .collect(),
        dangling_edges: database.dangling_edges,
        costs: database.costs.clone(),
        constraints: Constraints::default(),
    }
}

#[cfg(test)]
mod tests {
    use equipoise_model::database::PeRecord;
    use equipoise_model::{graph, topology};

    use super::*;
    use crate::poise::PoiseLb;
    use crate::testing;

    const END: u32 = 77;

    /// Objects on PEs 5000, 9000 and 9000 of 16384; object 2 is not migratable and exchanges messages with PE [`END`].
    /// PE 5001 is not available, PE 9001 is fast and has a background load.
    fn database() -> Database {
        let mut database = testing::database(16384, &[(1.0, 5000), (2.0, 9000), (3.0, 9000)]);
        database.objects[2].migratable = false;
        database.pes[5001].available = false;
        database.pes[9001] = PeRecord { speed: 4.0, background_seconds: 0.5, ..PeRecord::default() };
        let edge = |from, to| Edge { from, to, messages: 1, bytes: 8 };
        let object = End::Object;
        database.edges =
            vec![edge(End::Pe(3), End::Pe(4)), edge(object(0), object(1)), edge(object(2), End::Pe(END))];
        database
    }

    #[test]
    fn a_part_has_the_pes_in_use_and_the_nearest_available_pes() {
        let (database, machine) = (database(), topology::parse("torus:128x128").expect("a torus"));
        let part = Part::of(&database, &*machine).expect("it can be used").expect("few objects");
        assert!(part.pes.len() == LEAST_PART && part.pes.is_sorted());
        for near in [5000, 9000, END, 4999, 5128, 8999, 9001, 9128] {
            assert!(part.pes.contains(&near), "{near}");
        }
        assert!(![5001, 3, 4].iter().any(|pe| part.pes.contains(pe)));
        // The PEs within 15 hops of the first PE in use fit into half of the part.
        let distance = |pe: &u32| machine.distance(END as usize, *pe as usize);
        let disc: Vec<u32> = (0..16384).filter(|pe| distance(pe) <= 15).collect();
        assert_eq!(disc.len(), 481);
        assert!(disc.iter().all(|pe| part.pes.contains(pe)));
    }

    #[test]
    fn the_database_of_a_part_keeps_its_pes_objects_and_distances() {
        let (database, machine) = (database(), topology::parse("torus:128x128").expect("a torus"));
        let part = Part::of(&database, &*machine).expect("it can be used").expect("few objects");
        let on_whole = |placement| part.on_whole(Assignment::new(placement)).pe_of;
        assert_eq!(part.database.check(), Ok(()));
        assert_eq!(on_whole(part.database.placement()), database.placement());
        let records = part.pes.iter().map(|&pe| &database.pes[pe as usize]);
        assert!(part.database.pes.iter().eq(records));
        let edges = &part.database.edges;
        assert_eq!((edges.len(), &edges[0]), (2, &database.edges[1]));
        let End::Pe(end) = edges[1].to else { panic!("{edges:?}") };
        assert_eq!(on_whole(vec![end]), [END]);
        let objects = part.database.placement();
        let between =
            |machine: &dyn Topology, pes: &[u32]| machine.distance(pes[0] as usize, pes[1] as usize);
        assert_eq!(between(&part.machine, &objects), between(&*machine, &[5000, 9000]));
    }

    #[test]
    fn a_strategy_gets_the_whole_machine_unless_pes_are_many_and_objects_few() {
        let has_part = |spec: &str, objects: usize| {
            let machine = topology::parse(spec).expect(spec);
            let database = testing::database(machine.pes(), &vec![(1.0, 0); objects]);
            Part::of(&database, &*machine).expect("it can be used").map(|part| part.pes.len())
        };
        assert_eq!(has_part("torus:64x64", 1), None);
        assert_eq!(has_part("torus:65x64", 1), Some(1024));
        assert_eq!(has_part("torus:65x64", 1039), Some(4156));
        assert_eq!(has_part("torus:65x64", 1040), None);
        let mut database = database();
        let edge = |pe| Edge { from: End::Object(0), to: End::Pe(pe), messages: 1, bytes: 8 };
        database.edges = (0..1025).map(edge).collect();
        let machine = topology::parse("torus:128x128").expect("a torus");
        assert!(Part::of(&database, &*machine).expect("it can be used").is_none());
    }

    #[test]
    fn errors_name_the_part() {
        let error = testing::assign_on("TMLB_TREEBASED:level=99", &database(), "torus:128x128");
        let error = error.expect_err("too deep").to_string();
        assert!(error.contains("`torus:128x128[1024 PEs near the objects]`"), "{error}");
    }

    #[test]
    fn hop_bytes_are_hardly_more_than_on_the_whole_machine() {
        let machine = topology::parse("torus:128x128").expect("a torus");
        let database = graph::load("mesh:6x6").expect("a mesh").remap(16384);
        let hop_bytes = |strategy: &dyn Strategy| {
            let answer = strategy.assign(&database, &*machine, 0).expect("an assignment");
            assert_eq!(answer.check(&database), Ok(()));
            testing::communication(&database, &*machine, &answer.pe_of).hop_bytes
        };
        let [whole, part] = [hop_bytes(&PoiseLb::default()), hop_bytes(&OnPart(PoiseLb::default()))];
        assert!(20 * part <= 21 * whole, "{part} on the part, {whole} on the whole machine");
    }
}
