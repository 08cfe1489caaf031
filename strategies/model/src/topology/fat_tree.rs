//! `fattree:4:8:16/20e9:10e9:10e9`: a tree with several parallel switches in place of each inner node.
//!
//! Arities, bandwidths and parents are given from the top level: here the machine has 4 parts of 8 leaf switches with
//! 16 PEs each. Links below the top switches have 20e9 bytes per second, links below the middle switches and links of
//! PEs 10e9 (default: 1e9 everywhere). This is the extended generalized fat tree of S. R. Öhring, M. Ibel, S. K. Das,
//! M. J. Kumar ("On generalized fat trees", 1995): with arities m and parents w, counted from the PEs, a switch of
//! level l is one of w_1 .. w_l switches above the same m_1 .. m_l PEs (its number is its *plane*), and has w_(l+1)
//! parents, which differ in their plane only.
//!
//! By default, a switch has as many parents as children, and a PE has one parent: the links of every level have the
//! total bandwidth of the PEs (the k-ary n-tree of F. Petrini, M. Vanneschi, 1997). A third list sets the numbers of
//! parents: in `fattree:320:20//8:1`, leaf switches of 20 PEs have 8 parents.
//!
//! A distance is the number of links crossed. A message goes up to the lowest level above both ends, then down. Among
//! the parents it takes number (b / (w_1 .. w_l)) mod w_(l+1), where b is the destination PE, so that messages to
//! different PEs separate as early as possible (D-mod-K: E. Zahavi, "D-Mod-K routing providing non-blocking traffic for
//! shift permutations on real life fat trees", 2010).

use std::sync::Arc;

use super::{
    DEFAULT_BANDWIDTH, DEFAULT_LATENCY_SECONDS, Hierarchy, Kind, Link, Shape, Topology, Tree, count_links,
    per_level,
};

/// The entry of `fattree:..` in the list of machines.
pub const KIND: Kind = Kind {
    name: "fattree",
    form: "fattree:4:8:16/20e9:10e9:10e9",
    help: "Levels of switches: arities, and bandwidths of the links below, per level from the top. As many \
           parents as children, or the numbers of a third list (//8:16:1). Distance in links; up-link by \
           destination.",
    params: &[],
    item: |text| Ok(Arc::new(FatTree::parse(text)?)),
};

/// A fat tree with PEs as leaves.
#[derive(Clone, Debug, PartialEq)]
pub struct FatTree {
    /// The tree with a single switch per node; it has the same distances.
    tree: Tree,
    /// From the lowest level to the top.
    levels: Vec<Level>,
    links: usize,
}

/// The switches of a level and the links below them.
#[derive(Clone, Debug, PartialEq)]
struct Level {
    arity: usize,
    bandwidth: f64,
    /// The number of switches of this level to which a child is linked.
    parents: usize,
    /// The number of PEs below a child of this level.
    pes_per_child: usize,
    /// The numbers of switches above the same PEs: on this level, and on the level below.
    planes: usize,
    planes_below: usize,
    /// The number of the first link, which leads from the first child up to the first plane. Links are numbered by
    /// child, then by plane, then by direction (up, down).
    first_link: usize,
}

impl FatTree {
    /// The fat tree with these (arity, bandwidth of the links below, parents of a child), from the top level.
    ///
    /// # Errors
    /// If there is no level or more than 32, an arity or a number of parents is 0, a bandwidth is not above 0 and
    /// finite, or there are too many PEs or links.
    pub fn new(levels: &[(usize, f64, usize)]) -> Result<Self, String> {
        let hops = (1..=levels.len() as u32).rev().map(|level| 2 * level);
        let tree = Tree::new(&levels.iter().map(|level| level.0).zip(hops).collect::<Vec<_>>())?;
        let mut all = FatTree { levels: Vec::with_capacity(levels.len()), links: 0, tree };
        let (mut pes_per_child, mut planes_below) = (1, 1usize);
        for &(arity, bandwidth, parents) in levels.iter().rev() {
            if !(bandwidth > 0.0 && bandwidth.is_finite()) {
                return Err(format!(
                    "a bandwidth is a positive number of bytes per second, found {bandwidth}"
                ));
            }
            if parents == 0 {
                return Err("a number of parents is at least 1".into());
            }
            let planes = planes_below.checked_mul(parents);
            let links = planes.and_then(|planes| planes.checked_mul(2 * (all.pes() / pes_per_child)));
            let (first_link, planes_here) = (all.links, planes.unwrap_or(0));
            all.links = count_links([Some(all.links), links])?;
            let level = Level {
                arity,
                bandwidth,
                parents,
                pes_per_child,
                planes: planes_here,
                planes_below,
                first_link,
            };
            all.levels.push(level);
            pes_per_child *= arity;
            planes_below = planes_here;
        }
        Ok(all)
    }

    /// The default numbers of parents of the children of each level, from the top: switches have as many parents as
    /// children.
    fn full(arities: &[usize]) -> Vec<usize> {
        arities[1..].iter().copied().chain([1]).collect()
    }

    fn parse(text: &str) -> Result<Self, String> {
        let expected =
            || format!("expected arities and bandwidths such as 4:8:16/20e9:10e9:10e9, found `{text}`");
        let parts: Vec<&str> = text.split('/').collect();
        let &[arities, ref rest @ ..] = parts.as_slice() else { return Err(expected()) };
        let arities: Vec<usize> = per_level(arities).ok_or_else(expected)?;
        let (bandwidths, parents) = match *rest {
            [] => ("", ""),
            [bandwidths] => (bandwidths, ""),
            [bandwidths, parents] => (bandwidths, parents),
            _ => return Err(expected()),
        };
        let bandwidths: Vec<f64> = match bandwidths {
            "" => vec![DEFAULT_BANDWIDTH; arities.len()],
            given => per_level(given).ok_or_else(expected)?,
        };
        let parents: Vec<usize> = match parents {
            "" => FatTree::full(&arities),
            given => per_level(given).ok_or_else(expected)?,
        };
        for (what, given) in [("bandwidths", bandwidths.len()), ("numbers of parents", parents.len())] {
            if given != arities.len() {
                let levels = arities.len();
                return Err(format!(
                    "there are {levels} arities, but {given} {what}; give one for each level"
                ));
            }
        }
        let levels = arities.into_iter().zip(bandwidths).zip(parents);
        FatTree::new(
            &levels.map(|((arity, bandwidth), parents)| (arity, bandwidth, parents)).collect::<Vec<_>>(),
        )
    }

    /// The height, node and plane of the switch (or PE) at the end of a link.
    fn end(&self, link: usize) -> (usize, usize, usize) {
        let height = self.levels.partition_point(|level| level.first_link <= link) - 1;
        let level = &self.levels[height];
        let cable = (link - level.first_link) / 2;
        let (child, plane) = (cable / level.planes, cable % level.planes);
        let is_up = (link - level.first_link).is_multiple_of(2);
        if is_up {
            (height + 1, child / level.arity, plane)
        } else {
            (height, child, plane % level.planes_below)
        }
    }

    /// The name of a switch, or of a PE if the height is 0.
    fn name(height: usize, node: usize, plane: usize) -> String {
        if height == 0 { node.to_string() } else { format!("switch {height}.{node}.{plane}") }
    }
}

impl Topology for FatTree {
    fn spec(&self) -> String {
        let join =
            |f: &dyn Fn(&Level) -> String| self.levels.iter().rev().map(f).collect::<Vec<_>>().join(":");
        let arities: Vec<usize> = self.levels.iter().rev().map(|level| level.arity).collect();
        let parents: Vec<usize> = self.levels.iter().rev().map(|level| level.parents).collect();
        let mut spec = format!(
            "fattree:{}/{}",
            join(&|level| level.arity.to_string()),
            join(&|level| format!("{:e}", level.bandwidth))
        );
        if parents != FatTree::full(&arities) {
            spec += &format!("/{}", join(&|level| level.parents.to_string()));
        }
        spec
    }

    fn pes(&self) -> usize {
        self.tree.pes()
    }

    fn distance(&self, a: usize, b: usize) -> u32 {
        self.tree.distance(a, b)
    }

    fn distances_from(&self, a: usize, row: &mut [u32]) {
        self.tree.distances_from(a, row);
    }

    fn diameter(&self) -> u32 {
        self.tree.diameter()
    }

    fn links(&self) -> usize {
        self.links
    }

    fn link(&self, id: usize) -> Link {
        let height = self.levels.partition_point(|level| level.first_link <= id) - 1;
        let level = &self.levels[height];
        let cable = (id - level.first_link) / 2;
        let (child, plane) = (cable / level.planes, cable % level.planes);
        let below = Self::name(height, child, plane % level.planes_below);
        let above = Self::name(height + 1, child / level.arity, plane);
        let is_up = (id - level.first_link).is_multiple_of(2);
        Link {
            name: if is_up { format!("{below} -> {above}") } else { format!("{above} -> {below}") },
            bandwidth: level.bandwidth,
            latency_seconds: DEFAULT_LATENCY_SECONDS,
            length: 1,
        }
    }

    /// The parent taken at level l is digit l of the PE number `b` (in the mixed radix of the numbers of parents). A
    /// plane is such a number, so the planes on the route are `b` modulo the numbers of planes.
    fn route(&self, a: usize, b: usize, links: &mut Vec<usize>) {
        let apart = |level: &&Level| a / level.pes_per_child != b / level.pes_per_child;
        let height = self.levels.iter().take_while(apart).count();
        let levels = &self.levels[..height];
        let cable = |level: &Level, pe: usize| {
            level.first_link + 2 * (pe / level.pes_per_child * level.planes + b % level.planes)
        };
        links.extend(levels.iter().map(|level| cable(level, a)));
        links.extend(levels.iter().rev().map(|level| cable(level, b) + 1));
    }

    /// Up to any parent while `b` is not below the switch; the way down is unique.
    fn onward(&self, a: usize, b: usize, crossed: Option<usize>, links: &mut Vec<usize>) {
        let (height, node, plane) = crossed.map_or((0, a, 0), |link| self.end(link));
        let pes_below = self.levels.get(height).map_or(self.pes(), |level| level.pes_per_child);
        if b / pes_below != node {
            let level = &self.levels[height];
            let digit = b % level.planes / level.planes_below;
            let up = |step| {
                let parent = (digit + step) % level.parents;
                level.first_link + 2 * (node * level.planes + plane + parent * level.planes_below)
            };
            links.extend((0..level.parents).map(up));
        } else if height > 0 {
            let level = &self.levels[height - 1];
            links.push(level.first_link + 2 * (b / level.pes_per_child * level.planes + plane) + 1);
        }
    }

    /// Without the plane, in which switches above the same PEs differ.
    fn switch_between(&self, a: usize, b: usize) -> Option<String> {
        self.tree.switch_between(a, b)
    }

    fn hierarchy(&self) -> Option<Hierarchy> {
        self.tree.hierarchy()
    }

    fn shape(&self) -> Shape {
        self.hierarchy().map_or(Shape::Any, Shape::Tree)
    }
}

#[cfg(test)]
mod tests {
    use super::super::parse;
    use super::super::tests::route;

    #[test]
    fn routes_take_the_up_link_given_by_the_destination() {
        assert_eq!(
            route("fattree:2:2:2", 0, 6),
            "0 -> switch 1.0.0, switch 1.0.0 -> switch 2.0.0, switch 2.0.0 -> switch 3.0.2, \
             switch 3.0.2 -> switch 2.1.0, switch 2.1.0 -> switch 1.3.0, switch 1.3.0 -> 6"
        );
        let spec = |text: &str| parse(text).expect(text).spec();
        assert_eq!(spec("fattree:4:8:16/20e9:10e9:10e9"), "fattree:4:8:16/2e10:1e10:1e10");
        assert_eq!(spec("fattree:320:20//8:1"), "fattree:320:20/1e9:1e9/8:1");
        assert_eq!(spec("fattree:4:8//8:1"), "fattree:4:8/1e9:1e9");
        let machine = parse("fattree:4:8:16/20e9:10e9:10e9").expect("a fat tree");
        // Every level has the total bandwidth of the PEs: a link up and a link down for each PE.
        assert_eq!((machine.pes(), machine.links()), (512, 3 * 2 * 512));
        assert_eq!((machine.link(0).bandwidth, machine.link(machine.links() - 1).bandwidth), (10e9, 20e9));
    }

    /// Zahavi 2010, theorem 1: in a full fat tree, the D-mod-K routes of a shift (i to i + s, simultaneously for all i)
    /// share no link.
    #[test]
    fn the_routes_of_a_shift_share_no_link_of_a_full_fat_tree() {
        let machine = parse("fattree:3:4:2").expect("a fat tree");
        let (pes, mut route) = (machine.pes(), Vec::new());
        for shift in 1..pes {
            let mut loads = vec![0; machine.links()];
            for pe in 0..pes {
                route.clear();
                machine.route(pe, (pe + shift) % pes, &mut route);
                route.iter().for_each(|&link| loads[link] += 1);
            }
            assert_eq!(loads.iter().max(), Some(&1), "shift {shift}");
        }
    }
}
