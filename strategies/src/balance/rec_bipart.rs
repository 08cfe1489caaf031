//! `RecBipartLB`: recursive bisection of the task graph, until there is one part per PE.
//!
//! Charm++'s strategy of that name (S. Ghike): recursive bisection by greedy graph growing and Fiduccia-Mattheyses
//! refinement (`bisect.rs`), without METIS. Charm++'s code leaves nearly all objects on one PE (max/avg is half the
//! number of PEs on every recorded program); this implementation bisects as intended.
//!
//! The PEs are bisected too, in index order, so that parts which exchange much are on PEs with close indices. A half of
//! the graph gets the load its PEs have room for: from the fixed load of each PE up to the average, times its speed.
//! Fixed objects and PEs attract their partners (terminal propagation). Finally, PEs above the limit give objects away
//! as in `relief.rs`.

use rayon::prelude::*;

use equipoise_model::database::End;
use equipoise_model::graph::Graph;
use equipoise_model::params::{Param, Params};
use equipoise_model::{Assignment, Database, Topology};

use super::load::Work;
use super::relief::relieve;
use crate::descriptor::Recipe;
use crate::partition::weights;
use crate::strategy::check;
use crate::{Strategy, StrategyError};
use equipoise_model::descriptor::Descriptor;

mod bisect;

use bisect::{Halves, bisect};

/// `RecBipartLB` for the registry.
pub const NAMED: Descriptor<Recipe> = Descriptor {
    name: "RecBipartLB",
    form: "",
    help: "Recursive bisection of the task graph by greedy graph growing: few bytes between PEs, and parts that \
           communicate are on PEs with close indices. Many objects migrate at the first step.",
    params: &[Param::imbalance("0.05")],
    item: Recipe {
        needs_communication: true,
        make: |params: &mut Params| Ok(Box::new(RecBipart { imbalance: params.take_imbalance()? })),
    },
};

/// The strategy that bisects the task graph.
#[derive(Clone, Copy, Debug)]
pub struct RecBipart {
    /// How far above the average a PE may be: max/avg - 1.
    pub imbalance: f64,
}

impl Strategy for RecBipart {
    fn assign(
        &self,
        database: &Database,
        topology: &dyn Topology,
        _: u64,
    ) -> Result<Assignment, StrategyError> {
        let work = Work::new(database, check(database, topology)?);
        let placement = place(database, &work, self.imbalance);
        Ok(Assignment::new(relieve(database, &work, placement, self.imbalance)))
    }
}

/// The data that does not change during the bisections.
struct Problem {
    /// Bytes that each object exchanges with fixed objects and PEs, as pairs of PE (ascending) and bytes.
    pulls: Vec<Vec<(u32, u64)>>,
    /// Room of each available PE, relative to the largest room.
    rooms: Vec<f64>,
    available: Vec<u32>,
    /// The allowed imbalance of one bisection. The imbalances of successive bisections multiply.
    slack: f64,
}

/// A part of the graph and its PEs.
struct Piece {
    graph: Graph,
    /// The objects of the vertices, ascending.
    objects: Vec<u32>,
    weights: Vec<u32>,
    /// The positions of its PEs among the available PEs.
    pes: std::ops::Range<usize>,
}

/// Bisects the graph of the movable objects; returns the PE of each object. O((n + E) log n log P).
fn place(database: &Database, work: &Work, imbalance: f64) -> Vec<u32> {
    let average_seconds = work.average_seconds();
    let room = |&pe: &u32| {
        let seconds = (average_seconds - work.fixed_seconds[pe as usize]) * work.speed(pe);
        if seconds.is_finite() { seconds.max(0.0) } else { work.speed(pe) }
    };
    let mut rooms: Vec<f64> = work.available.iter().map(room).collect();
    if rooms.iter().all(|&room| room == 0.0) {
        rooms = work.available.iter().map(|&pe| work.speed(pe)).collect();
    }
    let largest = rooms.iter().copied().fold(0.0, f64::max);
    rooms.iter_mut().for_each(|room| *room /= largest);

    let mut pulls = vec![Vec::new(); database.objects.len()];
    let stays = |end: End| match end {
        End::Pe(pe) => Some(pe),
        End::Object(object) => {
            let record = &database.objects[object as usize];
            (!record.migratable).then_some(record.pe)
        }
    };
    for edge in &database.edges {
        for (from, to) in [(edge.from, edge.to), (edge.to, edge.from)] {
            if let (End::Object(object), Some(pe)) = (from, stays(to)) {
                pulls[object as usize].push((pe, edge.bytes));
            }
        }
    }
    pulls.iter_mut().for_each(|pulls| pulls.sort_unstable());

    let mut objects = work.movable.clone();
    objects.sort_unstable();
    let levels = (work.available.len().max(2) as f64).log2().ceil();
    let problem = Problem {
        pulls,
        rooms,
        available: work.available.clone(),
        slack: (1.0 + imbalance).powf(1.0 / levels) - 1.0,
    };
    let whole = Piece {
        graph: Graph::of(database).induced(&objects),
        weights: weights(objects.iter().map(|&object| work.load_seconds(object))),
        objects,
        pes: 0..work.available.len(),
    };
    let mut placement = database.placement();
    // The pieces of a level are independent, so they are bisected in parallel.
    let mut pieces = vec![whole];
    while !pieces.is_empty() {
        let (whole, rest): (Vec<Piece>, Vec<Piece>) =
            pieces.into_iter().partition(|piece| piece.pes.len() == 1);
        for piece in whole {
            let pe = problem.available[piece.pes.start];
            piece.objects.iter().for_each(|&object| placement[object as usize] = pe);
        }
        let cut = |piece: Piece| halve(piece, &problem);
        pieces = rest.into_par_iter().flat_map_iter(cut).collect();
    }
    placement
}

/// The two halves of a piece with at least two PEs; empty if the piece has no objects.
fn halve(piece: Piece, problem: &Problem) -> Vec<Piece> {
    let Piece { graph, objects, weights, pes } = piece;
    if objects.is_empty() {
        return Vec::new();
    }
    let middle = pes.start + pes.len() / 2;
    let sides = [pes.start..middle, middle..pes.end];
    let [room, other] = sides.clone().map(|side| problem.rooms[side].iter().sum::<f64>());
    let share = if room + other > 0.0 { room / (room + other) } else { 0.5 };
    let first_of = |side: &std::ops::Range<usize>| problem.available[side.start];
    let last_of = |side: &std::ops::Range<usize>| problem.available[side.end - 1];
    let pull = |&object: &u32| -> i128 {
        let pulls = &problem.pulls[object as usize];
        let towards = |side: &std::ops::Range<usize>| -> i128 {
            let is_there = |&&(pe, _): &&(u32, u64)| (first_of(side)..=last_of(side)).contains(&pe);
            pulls.iter().filter(is_there).map(|&(_, bytes)| i128::from(bytes)).sum()
        };
        towards(&sides[0]) - towards(&sides[1])
    };
    let halves = Halves {
        graph: &graph,
        weights: &weights,
        pulls: objects.iter().map(pull).collect(),
        share,
        slack: problem.slack,
    };
    let is_first = bisect(&halves);
    let half = |(side, pes): (usize, std::ops::Range<usize>)| {
        let inside: Vec<u32> =
            (0..objects.len() as u32).filter(|&v| is_first[v as usize] == (side == 0)).collect();
        Piece {
            graph: graph.induced(&inside),
            objects: inside.iter().map(|&v| objects[v as usize]).collect(),
            weights: inside.iter().map(|&v| weights[v as usize]).collect(),
            pes,
        }
    };
    sides.into_iter().enumerate().map(half).collect()
}

#[cfg(test)]
mod tests {
    use equipoise_model::database::{Database, Edge, End};
    use equipoise_model::graph::{Graph, load};

    use crate::cost::LoadBound;
    use crate::testing::{assign, database};

    /// Bytes that cross PEs and max/avg, on `pes` PEs.
    fn quality(graph: &str, pes: u32, change: impl FnOnce(&mut Database)) -> (u64, f64) {
        let mut database = load(graph).expect("a generator").remap(pes);
        change(&mut database);
        let answer = assign("RecBipartLB", &database).expect("RecBipartLB serves every database");
        let crosses = |&(a, b, _): &(u32, u32, u64)| answer.pe_of[a as usize] != answer.pe_of[b as usize];
        let cut = Graph::of(&database).pairs().filter(crosses).map(|(.., bytes)| bytes).sum();
        let max = database.pe_loads(&answer.pe_of).into_iter().fold(0.0, f64::max);
        (cut, max / LoadBound::of(&database).average_seconds)
    }

    #[track_caller]
    fn check(graph: &str, pes: u32, most_cut: u64, most: f64) {
        let (cut, max_per_average) = quality(graph, pes, |_| ());
        assert!(cut <= most_cut && max_per_average <= most, "{graph} on {pes}: {cut}, {max_per_average}");
    }

    #[test]
    fn grids_are_partitioned_into_compact_parts_of_equal_load() {
        // An ideal partition into 16 squares of 8x8 cuts 2 * 3 * 32 edges of 2 bytes.
        check("mesh:32x32", 16, 384 * 14 / 10, 1.05);
        check("mesh:32x32", 7, 384, 1.06);
        // Two halves of a ring cut two edges.
        check("ring:100", 2, 4, 1.05);
        check("ring:128", 16, 16 * 2 * 2, 1.13);
        check("mesh:8x8", 64, 2 * 112, 1.0);
    }

    #[test]
    fn unequal_pes_get_unequal_parts() {
        let (cut, max_per_average) = quality("mesh:32x32", 4, |d| {
            d.pes[1].speed = 3.0;
            d.pes[2].background_seconds = 100.0;
        });
        assert!(max_per_average <= 1.05 && cut <= 2 * 130, "{cut}, {max_per_average}");
    }

    #[test]
    fn fixed_ends_attract_their_partners_and_unavailable_pes_get_nothing() {
        let mut database = database(4, &[(0.0, 3), (1.0, 0), (1.0, 0), (1.0, 0), (0.0, 0)]);
        database.objects[0].migratable = false;
        database.objects[4].migratable = false;
        database.pes[1].available = false;
        let edge = |from, to, bytes| Edge { from, to, messages: 1, bytes };
        let object = End::Object;
        database.edges = vec![edge(object(0), object(1), 5 << 33), edge(End::Pe(2), object(2), 9)];
        let answer = assign("RecBipartLB", &database).map(|answer| answer.pe_of);
        assert_eq!(answer, Ok(vec![3, 3, 2, 0, 0]));
    }
}
