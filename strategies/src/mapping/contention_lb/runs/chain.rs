//! Rings and rows of tasks on a grid, along a Hamiltonian cycle or path.
//!
//! A grid of any dimensions has a Hamiltonian path, and a cycle unless it has an odd number of PEs and does not wrap
//! (a mesh is bipartite): so a ring of as many tasks has every partner one hop away, which is where the paper says that
//! its mapper ends on all k-ary n-cubes. The cycle is built dimension by dimension: along rows, of which there are an
//! even number, and back by a column kept for that; where all sides are odd and wrap, around all rows, this way and that,
//! so that the shifts of where a row begins add up to a turn.

use super::{Problem, WholeGrid};

/// The PE of every task, if the tasks are a row, or a ring that closes on the whole machine.
pub(super) fn place(problem: &Problem) -> Option<Vec<u32>> {
    let WholeGrid { sizes, pe_at } = problem.grid()?;
    let chain = chain(problem)?;
    let way = walk(sizes);
    let is_ring = problem.partners.iter().all(|list| list.len() == 2);
    if is_ring && !(way.is_closed && chain.len() == way.order.len()) {
        return None;
    }
    let mut place = vec![0; chain.len()];
    for (&task, &at) in chain.iter().zip(&way.order) {
        place[task as usize] = pe_at[at as usize];
    }
    Some(place)
}

/// The tasks in a row, if every one has at most two partners, and all hang together.
fn chain(problem: &Problem) -> Option<Vec<u32>> {
    let partners = &problem.partners;
    if partners.len() < 3 || partners.iter().any(|list| list.is_empty() || list.len() > 2) {
        return None;
    }
    let mut task = partners.iter().position(|list| list.len() == 1).unwrap_or(0) as u32;
    let mut chain = Vec::with_capacity(partners.len());
    let mut is_seen = vec![false; partners.len()];
    loop {
        is_seen[task as usize] = true;
        chain.push(task);
        match partners[task as usize].iter().find(|next| !is_seen[next.0 as usize]) {
            Some(&(next, _)) => task = next,
            None => break,
        }
    }
    (chain.len() == partners.len()).then_some(chain)
}

/// A way over all places of a grid, and whether its end is beside its beginning.
struct Way {
    order: Vec<u32>,
    is_closed: bool,
}

/// A way over the whole grid with these sides, each wrapping or not; the first dimension is fastest.
fn walk(sizes: &[(usize, bool)]) -> Way {
    let Some((&(last, wraps), before)) = sizes.split_last() else {
        return Way { order: vec![0], is_closed: true };
    };
    let inner = walk(before);
    let count = inner.order.len();
    if last == 1 {
        return inner;
    }
    if count == 1 {
        return Way { order: (0..last as u32).collect(), is_closed: wraps || last == 2 };
    }
    // A place is a column, which is one of the inner way, and a row, which is one of the last dimension.
    let at = |column: usize, row: usize| inner.order[column] + (row * count) as u32;
    if last % 2 == 0 {
        return Way {
            order: comb(last, count).map(|(row, column)| at(column, row)).collect(),
            is_closed: true,
        };
    }
    if count % 2 == 0 {
        return Way {
            order: comb(count, last).map(|(column, row)| at(column, row)).collect(),
            is_closed: true,
        };
    }
    if inner.is_closed && wraps {
        let order = match last >= count {
            true => turns(last, count).map(|(row, column)| at(column, row)).collect(),
            false => turns(count, last).map(|(column, row)| at(column, row)).collect(),
        };
        return Way { order, is_closed: true };
    }
    let snake = (0..last).flat_map(|row| {
        let column = move |it: usize| if row % 2 == 0 { it } else { count - 1 - it };
        (0..count).map(move |it| (row, column(it)))
    });
    Way { order: snake.map(|(row, column)| at(column, row)).collect(), is_closed: false }
}

/// Over an even number of rows, to and fro behind the first column, and back by that: (row, column).
fn comb(rows: usize, columns: usize) -> impl Iterator<Item = (usize, usize)> {
    let forth = (0..rows).flat_map(move |row| {
        let column = move |it: usize| if row % 2 == 0 { it } else { columns - it };
        (1..columns).map(move |it| (row, column(it)))
    });
    forth.chain((0..rows).rev().map(|row| (row, 0)))
}

/// Around every row once, of an odd number of rows that are linked in a ring, and at least as many as there are columns, which
/// are odd, too: (row, column). A row that goes up begins one column before where the row before it began, one that
/// goes down one behind it; there are so many more that go up that the last ends where the first begins.
fn turns(rows: usize, columns: usize) -> impl Iterator<Item = (usize, usize)> {
    let up = (rows + columns) / 2;
    (0..rows).flat_map(move |row| {
        // So many rows before this one went up, and the others down.
        let (ups, downs) = (row.min(up), row.saturating_sub(up));
        let begin = ((columns - 1) * ups + downs) % columns;
        let step = if row < up { 1 } else { columns - 1 };
        (0..columns).map(move |it| (row, (begin + step * it) % columns))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::{self, Shape};

    #[test]
    fn ways_go_over_every_place_from_neighbor_to_neighbor() {
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
            let way = walk(&sizes);
            let mut sorted = way.order.clone();
            sorted.sort_unstable();
            assert_eq!(sorted, (0..machine.pes() as u32).collect::<Vec<_>>(), "{spec}");
            let far = |a: u32, b: u32| machine.distance(a as usize, b as usize) != 1;
            assert!(!way.order.windows(2).any(|pair| far(pair[0], pair[1])), "{spec}: {:?}", way.order);
            assert_eq!(way.is_closed, is_closed, "{spec}");
            let (first, last) = (way.order[0], way.order[way.order.len() - 1]);
            assert!(!is_closed || !far(first, last), "{spec}: {:?}", way.order);
        }
    }
}
