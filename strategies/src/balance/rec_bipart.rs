//! `RecBipartLB`: the task graph is cut in two, and each half in two, until there is a part for each PE.
//!
//! Charm++'s strategy of that name (S. Ghike): recursive bisection by greedy graph growing and Fiduccia and
//! Mattheyses' refinement (`bisect.rs`), without METIS. Charm++'s code leaves nearly all objects on one PE
//! (max/avg is half the number of PEs on every recorded program); this one does what its name says.
//!
//! The PEs are halved too, in the order of their numbers, so that parts which exchange much are on PEs of
//! near numbers. A half of the graph gets as much load as its PEs have room, from what is fixed on them up
//! to the average, over their speed; what stays on a PE attracts those that talk to it. In the end PEs above
//! the limit give objects away as in [`super::comm_aware_refine`].

use rayon::prelude::*;

use super::comm_aware_refine;
use super::load::Work;
use crate::database::End;
use crate::graph::Graph;
use crate::partition::weights;
use crate::registry::{Named, Param, Params};
use crate::strategy::check;
use crate::{Assignment, Database, Strategy, StrategyError, Topology};

mod bisect;

use bisect::{Halves, bisect};

/// `RecBipartLB` for the registry.
pub const NAMED: Named = Named {
    name: "RecBipartLB",
    aliases: &[],
    help: "Cuts the task graph in two by growing one half, and again, until there is a part per PE: few \
           bytes between PEs, and parts that talk are on PEs of near numbers; much moves once.",
    params: &[Param::imbalance("0.05")],
    needs_communication: true,
    make: |params: &mut Params| Ok(Box::new(RecBipart { imbalance: params.take_imbalance()? })),
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
        Ok(Assignment::new(comm_aware_refine::relieve(database, &work, placement, self.imbalance)))
    }
}

/// What does not change while the graph is cut.
struct Problem {
    /// Bytes each object exchanges with what stays: the PE, which is ascending, and how much.
    pulls: Vec<Vec<(u32, u64)>>,
    /// Room of each available PE, as a share of the load.
    rooms: Vec<f64>,
    available: Vec<u32>,
    /// The allowed imbalance of one cut; that of all of them multiplies.
    slack: f64,
}

/// A part of the graph, and the PEs it is for.
struct Piece {
    graph: Graph,
    /// The objects that are its vertices, ascending.
    objects: Vec<u32>,
    weights: Vec<u32>,
    /// The range of available PEs, by position.
    pes: std::ops::Range<usize>,
}

/// Cuts the graph of the objects that may move, and gives the PE of each object. O((n + E) log n log P).
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
    // Pieces of a level are cut in parallel: none of them knows of another.
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

/// The two halves of a piece that is for at least two PEs; none without objects.
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
    use crate::cost::LoadBound;
    use crate::database::{Database, Edge, End};
    use crate::graph::{Graph, load};
    use crate::testing::{assign, database};

    /// Bytes that cross PEs and max/avg, on so many PEs.
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
    fn grids_are_cut_into_compact_parts_of_equal_load() {
        // 16 squares of 8x8 cut 2 * 3 * 32 edges of 2 bytes.
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
    fn what_stays_attracts_and_pes_that_take_nothing_stay_empty() {
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
