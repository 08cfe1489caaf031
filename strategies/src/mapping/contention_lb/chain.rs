//! Rings and rows of tasks along a Hamiltonian cycle or path of a grid.
//!
//! Every grid has a Hamiltonian path. It also has a Hamiltonian cycle, unless it has an odd number of PEs and does not wrap
//! (a mesh is bipartite). So every partner in a ring of tasks is one hop away, as the paper states of its mapper on all
//! k-ary n-cubes. A greedy mapper misses the last link, where the two ends meet. The cycle is built dimension by dimension:
//! along an even number of rows, and back along a reserved column. If all sides are odd and wrap, the cycle goes around
//! each row, upwards or downwards, so that the shifts between rows add up to a full turn.

use equipoise_model::Topology;
use equipoise_model::topology::Shape;

use crate::mapping::de_petris_perego::tasks::Tasks;

/// The PE of every task, if the tasks form a row or a ring and the machine is a complete grid with all PEs available.
pub(super) fn place(tasks: &Tasks, topology: &dyn Topology, available: &[u32]) -> Option<Vec<u32>> {
    let Shape::Grid { sizes, nodes } = topology.shape() else { return None };
    let size = sizes.iter().map(|it| it.0).product::<usize>();
    if nodes.len() != size || available.len() != size {
        return None;
    }
    let chain = chain(tasks)?;
    let mut pe_at = vec![0; size];
    for (pe, &node) in (0..).zip(&nodes) {
        pe_at[node as usize] = pe;
    }
    let mut place = vec![0; chain.len()];
    for (task, at) in chain.into_iter().zip(walk(&sizes)) {
        place[task as usize] = pe_at[at as usize];
    }
    Some(place)
}

/// The tasks in the order of the row or ring, if they form one: they are connected, with at most two partners each.
fn chain(tasks: &Tasks) -> Option<Vec<u32>> {
    let count = tasks.count();
    if (0..count).any(|task| !(1..=2).contains(&tasks.partners(task).len())) {
        return None;
    }
    let mut next = (0..count as u32).min_by_key(|&task| tasks.partners(task as usize).len());
    let mut chain = Vec::with_capacity(count);
    let mut is_seen = vec![false; count];
    while let Some(task) = next {
        is_seen[task as usize] = true;
        chain.push(task);
        next = tasks.partners(task as usize).iter().copied().find(|&it| !is_seen[it as usize]);
    }
    (chain.len() == count).then_some(chain)
}

/// All places of a grid from neighbor to neighbor; the first dimension varies fastest. `sizes` has the length of each
/// side, and whether it wraps. The last place is next to the first if that is possible.
fn walk(sizes: &[(usize, bool)]) -> Vec<u32> {
    let Some((&(last, _), before)) = sizes.split_last() else { return vec![0] };
    let inner = walk(before);
    let count = inner.len();
    // A column is a position in the inner walk, and a row is a position in the last dimension.
    let at = |(column, row): (usize, usize)| inner[column] + (row * count) as u32;
    let swap = |(row, column): (usize, usize)| (column, row);
    if last % 2 == 0 {
        comb(last, count).map(swap).map(at).collect()
    } else if count % 2 == 0 {
        comb(count, last).map(at).collect()
    } else if sizes.iter().all(|it| it.1) {
        match last >= count {
            true => turns(last, count).map(swap).map(at).collect(),
            false => turns(count, last).map(at).collect(),
        }
    } else {
        let snake =
            |row: usize| (0..count).map(move |it| (if row % 2 == 0 { it } else { count - 1 - it }, row));
        (0..last).flat_map(snake).map(at).collect()
    }
}

/// Walks back and forth over an even number of rows without the first column, then back along that column: (row, column).
fn comb(rows: usize, columns: usize) -> impl Iterator<Item = (usize, usize)> {
    let forth = (0..rows).flat_map(move |row| {
        let column = move |it: usize| if row % 2 == 0 { it } else { columns - it };
        (1..columns).map(move |it| (row, column(it)))
    });
    forth.chain((0..rows).rev().map(|row| (row, 0)))
}

/// Walks once around each row: (row, column). Rows and columns are odd in number and wrap, and there are at least as many
/// rows as columns. An upward row begins one column before the previous row, a downward row one column after it. The
/// number of upward rows is such that the last row ends where the first begins.
fn turns(rows: usize, columns: usize) -> impl Iterator<Item = (usize, usize)> {
    let up = (rows + columns) / 2;
    (0..rows).flat_map(move |row| {
        // The numbers of upward and downward rows before this one.
        let (ups, downs) = (row.min(up), row.saturating_sub(up));
        let begin = ((columns - 1) * ups + downs) % columns;
        let step = if row < up { 1 } else { columns - 1 };
        (0..columns).map(move |it| (row, (begin + step * it) % columns))
    })
}

#[cfg(test)]
mod tests {
    use equipoise_model::topology;

    use super::*;

    #[test]
    fn a_walk_visits_every_place_from_neighbor_to_neighbor() {
        for (spec, is_closed) in [
            ("mesh:4", false),
            ("torus:5", true),
            ("mesh:2x2", true),
            ("mesh:3x3", false),
            ("mesh:4x3", true),
            ("mesh:3x4", true),
            ("mesh:28x28", true),
            ("torus:3x3", true),
            ("torus:5x3", true),
            ("torus:3x7", true),
            ("torus:5x5x5", true),
            ("torus:3x3x3x3", true),
            ("torus:7x7m", false),
            ("mesh:3x1x5", false),
            ("mesh:4x4x4", true),
            ("mesh:3x3x4", true),
            ("mesh:2x3x3", true),
            ("hypercube:1", true),
            ("hypercube:9", true),
        ] {
            let machine = topology::parse(spec).expect(spec);
            let Shape::Grid { sizes, .. } = machine.shape() else { panic!("{spec}") };
            let walk = walk(&sizes);
            let mut sorted = walk.clone();
            sorted.sort_unstable();
            assert_eq!(sorted, (0..machine.pes() as u32).collect::<Vec<_>>(), "{spec}");
            let far = |a: u32, b: u32| machine.distance(a as usize, b as usize) != 1;
            assert!(!walk.windows(2).any(|pair| far(pair[0], pair[1])), "{spec}: {walk:?}");
            assert_eq!(!far(walk[0], walk[walk.len() - 1]), is_closed, "{spec}: {walk:?}");
        }
    }
}
