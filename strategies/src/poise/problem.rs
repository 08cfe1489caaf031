//! The input of all phases: a database and a machine, in integers.
//!
//! Loads become integers: unchanged if they are whole numbers (numbers of objects, vertex weights of files), else
//! scaled to an average of 2^20. The unit of volumes is their greatest common divisor. The unit is finer if migration
//! costs are smaller than the greatest common divisor, and coarser if the sum of all volumes exceeds 32 bits. Objects
//! that cannot move and edge ends that are PEs become anchors: vertices without load, numbered after the movable
//! vertices. Each anchor is in the block of its PE.

use equipoise_model::database::End;
use equipoise_model::{Database, Topology};

use super::board::{Board, Homes};
use super::limits::Limits;
use super::machine::{Distances, Machine, NONE};
use crate::StrategyError;
use crate::partition::bisection::csr::{Csr, Half};

/// The average load if loads are not whole numbers.
const AVERAGE_LOAD: f64 = (1u64 << 20) as f64;

/// The maximum sum of all loads, and the maximum sum of volumes times distances, so that sums stay below 2^62.
const MAX_TOTAL: f64 = (1u64 << 50) as f64;
const MAX_COST: u128 = 1 << 58;

/// The cost of moving an average object is at least this many units of volume, if the sum of volumes permits.
const MOVE_PARTS: f64 = 8.0;

/// A database on a machine.
pub(crate) struct Problem<'a> {
    pub machine: Machine<'a>,
    /// The movable objects, then the anchors.
    pub graph: Csr,
    /// The number of movable objects.
    pub movable: usize,
    /// The object of each movable vertex.
    pub objects: Vec<u32>,
    /// By anchor: its block in the last layer.
    pub anchors: Vec<u32>,
    /// By block of the last layer: the allowed load of movable objects.
    pub capacity: Vec<i64>,
    /// The capacities for other limits.
    pub limits: Limits,
    /// By movable vertex: its present block in the last layer; [`NONE`] if its PE is unavailable.
    pub home_of: Vec<u32>,
    /// Bytes that a weight of 1 stands for.
    pub unit: f64,
    /// By how much the integer load of a PE may exceed its true load, because the load of each object is rounded up; 0 if loads are exact.
    pub rounding: i64,
    /// Whether no load was recorded, so that objects are counted.
    pub counts_objects: bool,
}

impl<'a> Problem<'a> {
    /// The problem for the movable objects of a checked database, on the PEs `available`. Moves cost `gamma` hop-bytes
    /// per byte.
    ///
    /// Capacities are those of [`Limits::new`] for `imbalance`.
    ///
    /// # Errors
    /// When the edges exceed 32-bit counters.
    pub fn new(
        database: &Database,
        topology: &'a dyn Topology,
        available: &[u32],
        imbalance: f64,
        gamma: f64,
        distances: Distances,
    ) -> Result<Problem<'a>, StrategyError> {
        let movable: Vec<u32> = (0..database.objects.len() as u32)
            .filter(|&object| database.objects[object as usize].migratable)
            .collect();
        let WholeLoads { loads, unit_seconds, rounding } = whole_loads(database, &movable);
        let mut vertex_of = vec![NONE; database.objects.len()];
        for (&object, vertex) in movable.iter().zip(0..) {
            vertex_of[object as usize] = vertex;
        }
        let anchored = anchored_pes(database, &vertex_of);
        let finest = gamma * mean_size(database, &movable).unwrap_or(0.0) / MOVE_PARTS;
        // Costs are sums of weights times distances. Distances are multiplied by 2 on grids, and by 16 where they are
        // sampled.
        let most = u128::from(u32::MAX).min(MAX_COST / (32 * (u128::from(topology.diameter()) + 1))).max(1);
        let (graph, unit) = volumes(database, &vertex_of, loads, &anchored, most, finest)?;
        let mut used = available.to_vec();
        used.extend(&anchored);
        used.sort_unstable();
        used.dedup();
        let machine = Machine::new(topology, &used, distances);
        let block_of_pe = machine.blocks_of_pes(database.pes.len());
        let loads = &graph.loads[..movable.len()];
        let (limits, first) = Limits::new(database, available, (loads, unit_seconds, rounding), imbalance);
        let home = |&object: &u32| {
            let pe = database.objects[object as usize].pe as usize;
            if database.pes[pe].available { block_of_pe[pe] } else { NONE }
        };
        Ok(Problem {
            home_of: movable.iter().map(home).collect(),
            capacity: machine.order.iter().map(|&pe| first[pe as usize]).collect(),
            limits,
            anchors: anchored.iter().map(|&pe| block_of_pe[pe as usize]).collect(),
            movable: movable.len(),
            objects: movable,
            machine,
            graph,
            unit,
            rounding,
            counts_objects: unit_seconds == 0.0,
        })
    }

    /// The PE of every object of `database` when vertex `v` is in block `block_of[v]` of the last layer.
    pub fn placement(&self, database: &Database, block_of: &[u32]) -> Vec<u32> {
        let mut placement = database.placement();
        for (&object, &block) in self.objects.iter().zip(block_of) {
            placement[object as usize] = self.machine.order[block as usize];
        }
        placement
    }

    /// The capacities of the blocks of a layer: the sums over their PEs, less a part of the slack above their fair
    /// share. The part is larger in earlier layers, which leave slack to later cuts.
    pub fn capacities(&self, layer: usize) -> Vec<i64> {
        let layers = self.machine.layers.len();
        if layer + 1 == layers {
            return self.capacity.clone();
        }
        let all: i64 = self.capacity.iter().sum();
        let share = self.graph.total_load() as f64 / all.max(1) as f64;
        let slack = 0.3 + 0.7 * layer as f64 / layers as f64;
        let of_block = |range: &[u32]| {
            let most: i64 = self.capacity[range[0] as usize..range[1] as usize].iter().sum();
            let fair = most as f64 * share;
            let capacity = fair + (most as f64 - fair).max(0.0) * slack;
            (capacity.floor() as i64).max(fair.ceil() as i64).min(most)
        };
        self.machine.layers[layer].starts.windows(2).map(of_block).collect()
    }

    /// The last layer as input of refinement, with this metric, capacities and present blocks.
    pub fn board<'b, M>(
        &'b self,
        distance: &'b M,
        capacity: &'b [i64],
        homes: Option<Homes<'b>>,
        includes_adjacent: bool,
    ) -> Board<'b, M> {
        let (graph, movable, near) = (&self.graph, self.movable, &self.machine.last().near);
        Board { graph, movable, distance, near, capacity, homes, includes_adjacent }
    }

    /// By block of the last layer: the load that its PE may have below a limit in seconds, at least its capacity.
    pub fn raised(&self, limit_seconds: f64) -> Vec<i64> {
        let by_pe = self.limits.capacities(limit_seconds);
        let raised = self.machine.order.iter().map(|&pe| by_pe[pe as usize]);
        raised.zip(&self.capacity).map(|(raised, &capacity)| raised.max(capacity)).collect()
    }

    /// The most seconds of a PE with movable objects.
    pub fn slowest_seconds(&self, loads: &[i64]) -> f64 {
        let loads = self.machine.order.iter().zip(loads).filter(|(_, load)| **load > 0);
        loads.map(|(&pe, &load)| self.limits.seconds(pe, load)).fold(0.0, f64::max)
    }

    /// By block of the last layer: the load of the movable objects in it.
    pub fn loads(&self, block_of: &[u32]) -> Vec<i64> {
        let mut loads = vec![0; self.capacity.len()];
        block_of.iter().zip(&self.graph.loads).for_each(|(&block, load)| loads[block as usize] += load);
        loads
    }

    /// The maximum load of movable objects per PE: the highest allowed load, or the highest load in the placement if
    /// that is larger.
    pub fn most_load(&self, block_of: &[u32]) -> i64 {
        self.loads(block_of).into_iter().chain(self.capacity.iter().copied()).max().unwrap_or(0)
    }

    /// The present blocks with these costs of leaving them; `None` if all costs are 0.
    pub fn homes<'b>(&'b self, migration_costs: &'b [i64]) -> Option<Homes<'b>> {
        let counts = migration_costs.iter().any(|&cost| cost > 0);
        counts.then_some(Homes { home_of: &self.home_of, migration_costs })
    }

    /// The block of each anchor in a layer.
    pub fn anchors_in(&self, layer: usize) -> impl Iterator<Item = u32> {
        let starts = &self.machine.layers[layer].starts;
        self.anchors.iter().map(|&place| starts.partition_point(|&start| start <= place) as u32 - 1)
    }
}

/// The integer loads of movable objects.
struct WholeLoads {
    /// The loads, rounded up; at least 1 each.
    loads: Vec<i64>,
    /// The seconds of one unit; 0 if no load was recorded.
    unit_seconds: f64,
    /// How many units the sum of loads may be too large; 0 if loads are exact.
    rounding: i64,
}

/// The integer loads of the movable objects.
fn whole_loads(database: &Database, movable: &[u32]) -> WholeLoads {
    let loads = || movable.iter().map(|&object| database.objects[object as usize].load_seconds);
    let heaviest = loads().fold(0.0, f64::max);
    // Relative to the heaviest, because the sum of large loads may overflow.
    let relative: f64 = loads().map(|load| load / heaviest).sum();
    if !(relative > 0.0 && relative.is_finite()) {
        return WholeLoads { loads: vec![1; movable.len()], unit_seconds: 0.0, rounding: 0 };
    }
    let lightest = loads().filter(|&load| load > 0.0).fold(f64::INFINITY, f64::min);
    let is_whole = |unit: f64| {
        let mut whole = loads().map(|load| load / unit);
        heaviest / unit * relative < MAX_TOTAL && whole.all(|load| load.fract() == 0.0 && load >= 1.0)
    };
    let average = heaviest * (relative / movable.len() as f64);
    let fine = (average / AVERAGE_LOAD).max(heaviest / MAX_TOTAL * 2.0 * relative).max(f64::MIN_POSITIVE);
    let (unit_seconds, rounding) = match [1.0, lightest].into_iter().find(|&unit| is_whole(unit)) {
        Some(unit) => (unit, 0),
        None => (fine, movable.len() as i64),
    };
    let loads = loads().map(|load| ((load / unit_seconds).ceil() as i64).max(1)).collect();
    WholeLoads { loads, unit_seconds, rounding }
}

/// The PEs that communicate with movable objects, directly or through objects that cannot move; ascending.
fn anchored_pes(database: &Database, vertex_of: &[u32]) -> Vec<u32> {
    let mut pes = Vec::new();
    for edge in &database.edges {
        match (fixed_pe(database, vertex_of, edge.from), fixed_pe(database, vertex_of, edge.to)) {
            (Some(pe), None) | (None, Some(pe)) => pes.push(pe),
            _ => {}
        }
    }
    pes.sort_unstable();
    pes.dedup();
    pes
}

/// The PE of an end of an edge; `None` if the end is a movable object.
fn fixed_pe(database: &Database, vertex_of: &[u32], end: End) -> Option<u32> {
    match end {
        End::Pe(pe) => Some(pe),
        End::Object(object) if vertex_of[object as usize] == NONE => {
            Some(database.objects[object as usize].pe)
        }
        End::Object(_) => None,
    }
}

/// The mean size in bytes of the objects whose size was measured; `None` if no size was measured.
pub(crate) fn mean_size(database: &Database, objects: &[u32]) -> Option<f64> {
    let sizes = objects.iter().filter_map(|&object| database.objects[object as usize].bytes);
    let (sum, count) = sizes
        .filter(|&bytes| bytes > 0)
        .fold((0.0, 0.0), |(sum, count), bytes| (sum + bytes as f64, count + 1.0));
    (count > 0.0).then(|| sum / count)
}

/// The traffic between vertices, and the bytes per unit of weight: at least `finest`, and large enough that the sum of
/// all weights is at most `most`.
fn volumes(
    database: &Database,
    vertex_of: &[u32],
    mut loads: Vec<i64>,
    anchored: &[u32],
    most: u128,
    finest: f64,
) -> Result<(Csr, f64), StrategyError> {
    let movable = loads.len();
    let vertices = movable + anchored.len();
    let vertex = |end: End| match fixed_pe(database, vertex_of, end) {
        Some(pe) => anchored.binary_search(&pe).ok().map(|at| (movable + at) as u32),
        None => match end {
            End::Object(object) => Some(vertex_of[object as usize]),
            End::Pe(_) => None,
        },
    };
    // With the number of each edge.
    let pairs = || {
        database.edges.iter().zip(0u32..).filter_map(|(edge, number)| {
            let (a, b) = (vertex(edge.from)?, vertex(edge.to)?);
            let matters = a != b && edge.bytes > 0 && (a.min(b) as usize) < movable;
            matters.then_some((a, b, number))
        })
    };
    if database.edges.len() > u32::MAX as usize / 2 {
        return Err(StrategyError::Data(format!(
            "PoiseLB maps at most {} edges, and there are {}; remove the lightest edges",
            u32::MAX / 2,
            database.edges.len()
        )));
    }
    let bytes_of = |number: u32| database.edges[number as usize].bytes;
    let (mut unit, mut total) = (0, 0u128);
    let mut starts = vec![0u32; vertices + 1];
    for (a, b, number) in pairs() {
        unit = divisor(unit, bytes_of(number));
        total += u128::from(bytes_of(number));
        starts[a as usize + 1] += 1;
        starts[b as usize + 1] += 1;
    }
    let units = total / u128::from(unit.max(1));
    let unit = u128::from(unit.max(1)) * units.div_ceil(most).max(1);
    let unit = u64::try_from(unit).unwrap_or(u64::MAX);
    // If the unit is larger than `finest`, it is divided into parts, as far as the limit of the sum permits.
    let room = (most / units.max(1)).clamp(1, u128::from(u32::MAX)) as u32;
    let parts = if finest > 0.0 { ((unit as f64 / finest).ceil() as u32).clamp(1, room) } else { 1 };
    for v in 0..vertices {
        starts[v + 1] += starts[v];
    }
    // Until they are merged, half-edges have the number of their edge in place of a weight.
    let mut halves = vec![Half { to: 0, weight: 0 }; starts[vertices] as usize];
    let mut next = starts.clone();
    for (a, b, number) in pairs() {
        for (from, to) in [(a, b), (b, a)] {
            let place = &mut next[from as usize];
            halves[*place as usize] = Half { to, weight: number };
            *place += 1;
        }
    }
    drop(next);
    loads.resize(vertices, 0);
    let graph = Csr::merged(starts, halves, loads, |same| {
        let bytes = same.iter().fold(0u64, |sum, half| sum.saturating_add(bytes_of(half.weight)));
        // Rounded down, so that the sum of all weights does not grow.
        (bytes / unit) as u32 * parts
    });
    Ok((graph, unit as f64 / f64::from(parts)))
}

/// The greatest common divisor (Euclid).
fn divisor(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { divisor(b, a % b) }
}
