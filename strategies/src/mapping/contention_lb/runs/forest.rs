//! Trees of tasks on a grid: subtrees into halves.
//!
//! A greedy mapper gives the tasks of a tree places next to their parents until there are none, and those that come last go
//! where something is left. Here the box of PEs is cut in halves across its longest side, and so again; what lies in
//! a box are whole subtrees and single tasks. The largest subtrees choose first: where both halves have room for one, it
//! goes to that nearer to its parent; where neither has, its root becomes a single task, and its children come by
//! themselves. Single tasks go to the half nearer to their partners, those first to which it matters most. Boxes are
//! cut level by level, so that it is known where partners are as well as it is known of the task. So all subtrees are
//! compact, as in the H layout (E. Horowitz, A. Zorat, "The binary tree interconnection network", 1981), and no PE need
//! be free.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use super::{NONE, Problem, WholeGrid};

/// The PE of every task, cut this way and that, if there is no circle of tasks.
pub(super) fn all(problem: &Problem) -> Vec<Vec<u32>> {
    let Some(forest) = Forest::of(problem).filter(|_| problem.grid().is_some()) else { return Vec::new() };
    let cuts = [false, true].into_iter().flat_map(|last| [false, true].map(|high| Cut { last, high }));
    cuts.filter_map(|cut| place(problem, &forest, cut)).collect()
}

/// How ties are broken.
#[derive(Clone, Copy)]
struct Cut {
    /// Whether the last of the longest sides is cut, not the first.
    last: bool,
    /// Whether the upper of two halves is chosen where nothing tells them apart.
    high: bool,
}

/// The PE of every task; none where the machine is no grid.
fn place(problem: &Problem, forest: &Forest, cut: Cut) -> Option<Vec<u32>> {
    let WholeGrid { sizes, pe_at } = problem.grid()?;
    let whole: Vec<(u32, u32)> = sizes.iter().map(|&(side, _)| (0, side as u32)).collect();
    let roots: Vec<Part> =
        forest.roots.iter().map(|&root| Part { tasks: forest.below[root as usize], root }).collect();
    let mut layout = Layout { problem, forest, cut, at: vec![centre(&whole); problem.partners.len()] };
    let mut place = vec![NONE; problem.partners.len()];
    let mut level = vec![(whole, roots)];
    while !level.is_empty() {
        let mut next = Vec::with_capacity(2 * level.len());
        for (sides, parts) in level {
            if parts.is_empty() {
                continue;
            }
            let order = |it: usize| if cut.last { it } else { sides.len() - 1 - it };
            let longest = (0..sides.len()).map(order).max_by_key(|&it| sides[it].1 - sides[it].0);
            match longest.filter(|&it| sides[it].1 - sides[it].0 > 1) {
                Some(dimension) => next.extend(layout.halve(&sides, dimension, parts)),
                None => {
                    let stride = |sum: (usize, usize), (at, side): (&(u32, u32), &(usize, bool))| {
                        (sum.0 + sum.1 * at.0 as usize, sum.1 * side.0)
                    };
                    let at = sides.iter().zip(sizes).fold((0, 1), stride).0;
                    parts.iter().for_each(|part| place[part.root as usize] = pe_at[at]);
                }
            }
        }
        level = next;
    }
    Some(place)
}

/// A box of places: where it begins and ends along each dimension.
type Sides = Vec<(u32, u32)>;

/// Twice the coordinates of the middle of a box.
fn centre(sides: &[(u32, u32)]) -> Vec<u32> {
    sides.iter().map(|&(begin, end)| begin + end - 1).collect()
}

/// A whole subtree, or a task by itself.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Part {
    /// How many tasks it has.
    tasks: u32,
    root: u32,
}

/// Tasks without a circle.
struct Forest {
    roots: Vec<u32>,
    /// By task: its parent.
    parent: Vec<u32>,
    /// By task: how many are below it, itself among them.
    below: Vec<u32>,
}

impl Forest {
    /// The partners of all tasks as trees, each from a root that leaves the smallest subtrees; none if there is a circle.
    fn of(problem: &Problem) -> Option<Forest> {
        let count = problem.partners.len();
        let mut forest = Forest { roots: Vec::new(), parent: vec![NONE; count], below: vec![1; count] };
        let mut is_seen = vec![false; count];
        for first in 0..count as u32 {
            if is_seen[first as usize] {
                continue;
            }
            let tree = forest.hang(problem, first);
            tree.iter().for_each(|&task| is_seen[task as usize] = true);
            let edges: usize = tree.iter().map(|&task| problem.partners[task as usize].len()).sum();
            if edges != 2 * (tree.len() - 1) {
                return None;
            }
            // From the first task to where no child has more than half of all.
            let mut root = first;
            let half = tree.len() as u32 / 2;
            while let Some(child) =
                forest.children(problem, root).find(|&it| forest.below[it as usize] > half)
            {
                root = child;
            }
            forest.hang(problem, root);
            forest.roots.push(root);
        }
        Some(forest)
    }

    /// Makes a task the root of its tree; returns the tasks of that.
    fn hang(&mut self, problem: &Problem, root: u32) -> Vec<u32> {
        let mut tree = vec![root];
        self.parent[root as usize] = NONE;
        let mut is_seen = rustc_hash::FxHashSet::default();
        is_seen.insert(root);
        let mut at = 0;
        while let Some(&task) = tree.get(at) {
            at += 1;
            self.below[task as usize] = 1;
            for &(partner, _) in &problem.partners[task as usize] {
                if is_seen.insert(partner) {
                    self.parent[partner as usize] = task;
                    tree.push(partner);
                }
            }
        }
        for &task in tree[1..].iter().rev() {
            self.below[self.parent[task as usize] as usize] += self.below[task as usize];
        }
        tree
    }

    fn children<'a>(&'a self, problem: &'a Problem, task: u32) -> impl Iterator<Item = u32> + 'a {
        let partners = problem.partners[task as usize].iter().map(|it| it.0);
        partners.filter(move |&it| self.parent[it as usize] == task)
    }
}

struct Layout<'a> {
    problem: &'a Problem<'a>,
    forest: &'a Forest,
    cut: Cut,
    /// By task that is the root of a part: twice the middle of its box; of others, of a box that holds them.
    at: Vec<Vec<u32>>,
}

impl Layout<'_> {
    /// Cuts a box in two across a dimension, with its parts.
    fn halve(&mut self, sides: &Sides, dimension: usize, parts: Vec<Part>) -> [(Sides, Vec<Part>); 2] {
        let (begin, end) = sides[dimension];
        let mut halves =
            [(begin, begin + (end - begin).div_ceil(2)), (begin + (end - begin).div_ceil(2), end)].map(
                |half| {
                    let mut sides = sides.clone();
                    sides[dimension] = half;
                    (sides, Vec::new())
                },
            );
        let volume = |sides: &Sides| sides.iter().map(|&(begin, end)| end - begin).product::<u32>();
        let mut room = [volume(&halves[0].0), volume(&halves[1].0)];
        let centres = [centre(&halves[0].0), centre(&halves[1].0)];
        let (mut heap, mut singles) = (BinaryHeap::new(), Vec::new());
        let mut sort = |part: Part, heap: &mut BinaryHeap<_>| match part.tasks {
            1 => singles.push(part.root),
            _ => heap.push((part.tasks, Reverse(part.root))),
        };
        parts.into_iter().for_each(|part| sort(part, &mut heap));
        while let Some((tasks, Reverse(root))) = heap.pop() {
            let costs = [0, 1].map(|half| self.cost(root, true, &centres[half]));
            let fits = [0, 1].map(|half| tasks <= room[half]);
            let half = match fits {
                [true, true] => self.nearer(costs, room),
                [true, false] => 0,
                [false, true] => 1,
                [false, false] => {
                    sort(Part { tasks: 1, root }, &mut heap);
                    for child in self.forest.children(self.problem, root) {
                        self.at[child as usize] = self.at[root as usize].clone();
                        sort(Part { tasks: self.forest.below[child as usize], root: child }, &mut heap);
                    }
                    continue;
                }
            };
            room[half] -= tasks;
            self.at[root as usize] = centres[half].clone();
            halves[half].1.push(Part { tasks, root });
        }
        let mut by_regret: Vec<(Reverse<u64>, u32, [u64; 2])> = Vec::with_capacity(singles.len());
        for root in singles {
            let costs = [0, 1].map(|half| self.cost(root, false, &centres[half]));
            by_regret.push((Reverse(costs[0].abs_diff(costs[1])), root, costs));
        }
        by_regret.sort_unstable();
        for (_, root, costs) in by_regret {
            let nearer = self.nearer(costs, room);
            let half = if room[nearer] > 0 { nearer } else { 1 - nearer };
            room[half] -= 1;
            self.at[root as usize] = centres[half].clone();
            halves[half].1.push(Part { tasks: 1, root });
        }
        halves
    }

    /// The half that costs less, of equals the one with more room.
    fn nearer(&self, costs: [u64; 2], room: [u32; 2]) -> usize {
        match (costs[0], room[1]).cmp(&(costs[1], room[0])) {
            Ordering::Less => 0,
            Ordering::Equal => usize::from(self.cut.high),
            Ordering::Greater => 1,
        }
    }

    /// How far a part in a box with that middle is from its partners outside: hops times messages, twice.
    fn cost(&self, root: u32, is_whole: bool, middle: &[u32]) -> u64 {
        let parent = self.forest.parent[root as usize];
        let outside = self.problem.partners[root as usize].iter().filter(|it| !is_whole || it.0 == parent);
        let apart = |other: u32| {
            let there = &self.at[other as usize];
            there.iter().zip(middle).map(|(a, b)| u64::from(a.abs_diff(*b))).sum::<u64>()
        };
        outside.map(|&(other, messages)| messages * apart(other)).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::tasks::Tasks;
    use super::super::Host;
    use super::*;
    use crate::program::{Channel, Costs, Model, OVERLAP, generate};
    use crate::topology;

    #[test]
    fn complete_trees_fill_meshes_with_short_ways() {
        for (tasks, machine, longest) in
            [(7, "mesh:4x2", 2), (31, "mesh:8x4", 4), (127, "mesh:16x8", 8), (511, "mesh:32x16", 14)]
        {
            let program = generate::known(&format!("tree:n={tasks}"));
            let program = generate::renumbered(&program, &generate::permutation(tasks, 1));
            let model = Model::of(&program, Costs::default(), OVERLAP).expect("it can be simulated");
            let topology = topology::parse(machine).expect("a mesh");
            let pes: Vec<u32> = (0..topology.pes() as u32).collect();
            let host = Host::new(&*topology, &pes);
            let task_graph = Tasks::new(&model, host.diameter, 0, false);
            let problem = Problem::new(&model, &*topology, &host, &task_graph);
            let far_of = |places: &Vec<u32>| {
                let mut sorted = places.clone();
                sorted.sort_unstable();
                sorted.dedup();
                assert_eq!(sorted.len(), tasks);
                let far = |it: &Channel| {
                    topology.distance(places[it.from as usize] as usize, places[it.to as usize] as usize)
                };
                model.channels.iter().map(far).max().expect("a tree has channels")
            };
            let runs = all(&problem);
            assert_eq!(runs.len(), 4);
            for most in runs.iter().map(far_of) {
                assert!(most <= longest, "{most} hops on {machine}");
            }
        }
    }
}
