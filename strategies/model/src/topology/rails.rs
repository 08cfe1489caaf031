//! `rails:pods=2,nodes=16,gpus=8`: a rail-optimised fat tree of nodes with several GPUs.
//!
//! NVIDIA DGX SuperPOD reference architecture, "rail-optimized" compute fabric: in a pod, GPU i of every node is connected
//! to leaf switch i (rail i). Spine switches connect all leaf switches of all pods. Inside a node, GPUs are connected by
//! NVSwitch. PEs are the GPUs, numbered by pod, then node, then GPU.
//!
//! Distances count links, but an NVSwitch counts once: 1 in a node; 2 between equal rails of a pod; 3 between different rails
//! of a pod, because a message goes over NVSwitch to the GPU of its node on the rail of the destination, and from there over
//! the leaf switch (PXN of NCCL); 4 between pods, up to spine switch (b mod spines) for destination PE b, and down.
//!
//! Links of NVSwitch have the bandwidth `nvlink`, those of leaf switches `network`. A link to a spine switch has the total
//! of a leaf switch divided by the number of spine switches, and by `taper`.

use std::sync::Arc;

use super::{DEFAULT_LATENCY_SECONDS, Hierarchy, Kind, Link, Topology, count_links, count_pes};
use crate::params::{Param, Params};

/// The entry of `rails:..` in the list of machines.
pub const KIND: Kind = Kind {
    name: "rails",
    form: "rails:pods=2,nodes=16,gpus=8",
    help: "A rail-optimised fat tree: GPU i of every node of a pod at leaf switch i, spine switches above, NVSwitch in \
           nodes. Distances 1 in a node, 2 on a rail, 3 between rails of a pod (over NVSwitch), 4 between pods.",
    params: PARAMS,
    item: |text| {
        Params::parse_with("rails", PARAMS, text, |params| {
            let sizes =
                [params.take("pods")?, params.take("nodes")?, params.take("gpus")?, params.take("spines")?];
            let mut positive = |key: &str| -> Result<f64, String> {
                let value: f64 = params.take(key)?;
                if crate::params::is_positive(value) {
                    return Ok(value);
                }
                Err(params.bad(key, &value.to_string(), "expected a number above 0").into())
            };
            let machine = Rails::new(sizes, [positive("nvlink")?, positive("network")?, positive("taper")?]);
            Ok(Arc::new(machine?) as Arc<dyn Topology>)
        })
    },
};

const PARAMS: &[Param] = &[
    Param { key: "pods", default: "1", help: "pods" },
    Param { key: "nodes", default: "", help: "nodes per pod" },
    Param { key: "gpus", default: "8", help: "GPUs per node, which is the number of rails" },
    Param { key: "spines", default: "4", help: "spine switches" },
    Param { key: "nvlink", default: "450e9", help: "bandwidth of a GPU to NVSwitch, in bytes per second" },
    Param {
        key: "network",
        default: "50e9",
        help: "bandwidth of a GPU to its leaf switch, in bytes per second",
    },
    Param { key: "taper", default: "1", help: "bandwidth below leaf switches over the bandwidth above" },
];

/// A rail-optimised fat tree whose GPUs are the PEs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rails {
    pods: usize,
    nodes: usize,
    gpus: usize,
    spines: usize,
    /// In bytes per second.
    nvlink: f64,
    network: f64,
    taper: f64,
    links: usize,
}

/// The end of a link.
enum Place {
    Pe(usize),
    /// The NVSwitch of a node.
    NvSwitch(usize),
    /// The leaf switch of a pod for a rail.
    Leaf(usize, usize),
    Spine(usize),
}

impl Rails {
    /// A network with these numbers of pods, nodes per pod, GPUs per node and spine switches, and the bandwidths of NVSwitch
    /// and of leaf switches with the taper above.
    ///
    /// # Errors
    /// If a size is 0, or there are too many PEs or links.
    pub fn new(
        [pods, nodes, gpus, spines]: [usize; 4],
        [nvlink, network, taper]: [f64; 3],
    ) -> Result<Self, String> {
        let pes = count_pes([pods, nodes, gpus])?;
        if spines == 0 {
            return Err("a size is at least 1".into());
        }
        let above = if pods > 1 { (2 * pods * gpus).checked_mul(spines) } else { Some(0) };
        let links = count_links([Some(4 * pes), above])?;
        Ok(Rails { pods, nodes, gpus, spines, nvlink, network, taper, links })
    }

    /// The pod, the node and the rail of a PE.
    fn place(&self, pe: usize) -> (usize, usize, usize) {
        (pe / self.gpus / self.nodes, pe / self.gpus, pe % self.gpus)
    }

    /// The links up from a PE: to NVSwitch, and to the leaf switch. The next number is the link down.
    fn nvswitch_link(pe: usize) -> usize {
        4 * pe
    }

    fn leaf_link(pe: usize) -> usize {
        4 * pe + 2
    }

    /// The link from a leaf switch up to a spine switch.
    fn spine_link(&self, pod: usize, rail: usize, spine: usize) -> usize {
        4 * self.pes() + 2 * ((pod * self.gpus + rail) * self.spines + spine)
    }

    /// The lower and the upper end of a link, and whether it leads up.
    fn ends(&self, id: usize) -> (Place, Place, bool) {
        let is_up = id % 2 == 0;
        if id >= 4 * self.pes() {
            let cable = (id - 4 * self.pes()) / 2;
            let (leaf, spine) = (cable / self.spines, cable % self.spines);
            return (Place::Leaf(leaf / self.gpus, leaf % self.gpus), Place::Spine(spine), is_up);
        }
        let (pod, node, rail) = self.place(id / 4);
        let upper = if id % 4 < 2 { Place::NvSwitch(node) } else { Place::Leaf(pod, rail) };
        (Place::Pe(id / 4), upper, is_up)
    }

    /// The PE of the node of `a` on the rail of `b`.
    fn proxy(&self, a: usize, b: usize) -> usize {
        a / self.gpus * self.gpus + b % self.gpus
    }
}

impl Topology for Rails {
    fn spec(&self) -> String {
        let Rails { pods, nodes, gpus, spines, nvlink, network, taper, .. } = self;
        let keys = ["spines", "nvlink", "network", "taper"];
        let values = [spines.to_string(), format!("{nvlink:e}"), format!("{network:e}"), taper.to_string()];
        let is_default = |key: &str, value: &str| {
            let default =
                PARAMS.iter().find(|param| param.key == key).and_then(|param| param.default.parse().ok());
            default == value.parse::<f64>().ok()
        };
        let mut spec = format!("rails:pods={pods},nodes={nodes},gpus={gpus}");
        for (key, value) in keys.into_iter().zip(values).filter(|(key, value)| !is_default(key, value)) {
            spec += &format!(",{key}={value}");
        }
        spec
    }

    fn pes(&self) -> usize {
        self.pods * self.nodes * self.gpus
    }

    fn distance(&self, a: usize, b: usize) -> u32 {
        let ((pod, node, rail), (other_pod, other_node, other_rail)) = (self.place(a), self.place(b));
        match () {
            () if a == b => 0,
            () if node == other_node => 1,
            () if pod != other_pod => 4,
            () if rail == other_rail => 2,
            () => 3,
        }
    }

    fn diameter(&self) -> u32 {
        match (self.pods, self.nodes, self.gpus) {
            (1, 1, 1) => 0,
            (1, 1, _) => 1,
            (1, _, 1) => 2,
            (1, _, _) => 3,
            _ => 4,
        }
    }

    fn links(&self) -> usize {
        self.links
    }

    fn link(&self, id: usize) -> Link {
        let name = |place: &Place| match place {
            Place::Pe(pe) => pe.to_string(),
            Place::NvSwitch(node) => format!("nvswitch {node}"),
            Place::Leaf(pod, rail) => format!("leaf {pod}.{rail}"),
            Place::Spine(spine) => format!("spine {spine}"),
        };
        let (lower, upper, is_up) = self.ends(id);
        let (bandwidth, length) = match upper {
            Place::NvSwitch(_) => (self.nvlink, u32::from(!is_up)),
            Place::Spine(_) => (self.network * self.nodes as f64 / self.spines as f64 / self.taper, 1),
            _ => (self.network, 1),
        };
        let (lower, upper) = (name(&lower), name(&upper));
        let name = if is_up { format!("{lower} -> {upper}") } else { format!("{upper} -> {lower}") };
        Link { name, bandwidth, latency_seconds: DEFAULT_LATENCY_SECONDS, length }
    }

    fn route(&self, a: usize, b: usize, links: &mut Vec<usize>) {
        if a == b {
            return;
        }
        let ((pod, node, rail), (other_pod, other_node, other_rail)) = (self.place(a), self.place(b));
        if pod != other_pod {
            let spine = b % self.spines;
            links.extend([Rails::leaf_link(a), self.spine_link(pod, rail, spine)]);
            links.extend([self.spine_link(other_pod, other_rail, spine) + 1, Rails::leaf_link(b) + 1]);
            return;
        }
        let proxy = self.proxy(a, b);
        if rail != other_rail {
            links.extend([Rails::nvswitch_link(a), Rails::nvswitch_link(proxy) + 1]);
        }
        if node != other_node {
            links.extend([Rails::leaf_link(proxy), Rails::leaf_link(b) + 1]);
        }
    }

    /// Between pods over any spine switch; the rest of the way is unique.
    fn onward(&self, a: usize, b: usize, crossed: Option<usize>, links: &mut Vec<usize>) {
        let ((pod, node, _), (other_pod, other_node, other_rail)) = (self.place(a), self.place(b));
        let at = crossed.map_or(Place::Pe(a), |id| {
            let (lower, upper, is_up) = self.ends(id);
            if is_up { upper } else { lower }
        });
        match at {
            Place::Pe(pe) if pe == b => {}
            Place::Pe(pe) if pod == other_pod && (node == other_node || pe != self.proxy(a, b)) => {
                links.push(Rails::nvswitch_link(pe));
            }
            Place::Pe(pe) => links.push(Rails::leaf_link(pe)),
            Place::NvSwitch(_) => links.push(Rails::nvswitch_link(self.proxy(a, b)) + 1),
            Place::Leaf(here, rail) if here == other_pod && rail == other_rail => {
                links.push(Rails::leaf_link(b) + 1)
            }
            Place::Leaf(here, rail) => {
                links.extend(
                    (0..self.spines).map(|step| self.spine_link(here, rail, (b + step) % self.spines)),
                );
            }
            Place::Spine(spine) => links.push(self.spine_link(other_pod, other_rail, spine) + 1),
        }
    }

    fn hierarchy(&self) -> Option<Hierarchy> {
        let outside = if self.pods > 1 { vec![self.pods, self.nodes] } else { vec![self.nodes] };
        Some(Hierarchy::balanced(&outside).over(&Hierarchy::balanced(&[self.gpus])))
    }

    fn node_of(&self, pe: usize) -> usize {
        pe / self.gpus
    }

    fn core_of(&self, pe: usize) -> usize {
        pe % self.gpus
    }

    fn switch_between(&self, a: usize, b: usize) -> Option<String> {
        let ((pod, node, rail), (other_pod, other_node, other_rail)) = (self.place(a), self.place(b));
        Some(match () {
            () if node == other_node => format!("nvswitch {node}"),
            () if pod != other_pod => "spines".into(),
            () if rail == other_rail => format!("leaf {pod}.{rail}"),
            () => format!("pod {pod}"),
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::parse;
    use super::super::tests::{check, route, row};
    use super::*;

    #[test]
    fn messages_change_rails_inside_their_node() {
        let spec = "rails:pods=2,nodes=2,gpus=2,spines=3";
        assert_eq!(route(spec, 0, 1), "0 -> nvswitch 0, nvswitch 0 -> 1");
        assert_eq!(route(spec, 0, 2), "0 -> leaf 0.0, leaf 0.0 -> 2");
        assert_eq!(route(spec, 0, 3), "0 -> nvswitch 0, nvswitch 0 -> 1, 1 -> leaf 0.1, leaf 0.1 -> 3");
        assert_eq!(
            route(spec, 0, 5),
            "0 -> leaf 0.0, leaf 0.0 -> spine 2, spine 2 -> leaf 1.1, leaf 1.1 -> 5"
        );
        let machine = parse(spec).expect("a network");
        check(&*machine);
        assert_eq!(row(&*machine, 0), [0, 1, 2, 3, 4, 4, 4, 4]);
        assert_eq!((machine.node_of(5), machine.core_of(5)), (2, 1));
        assert_eq!(machine.hierarchy().map(|tree| tree.node_level()), Some(2));
        for small in [
            "rails:nodes=3,gpus=1",
            "rails:nodes=1,gpus=3",
            "rails:pods=3,nodes=1,gpus=1",
            "rails:nodes=3,gpus=2",
        ] {
            check(&*parse(small).expect(small));
        }
        // 16 links of 50e9 to 4 spine switches, with half of the bandwidth.
        let tapered = parse("rails:pods=2,nodes=16,taper=2").expect("a network");
        assert_eq!(tapered.link(tapered.links() - 1).bandwidth, 100e9);
        for (spec, expected) in [
            ("rails:gpus=2", "`nodes=` must be given"),
            ("rails:nodes=2,spines=0", "a size is at least 1"),
            ("rails:nodes=2,taper=0", "rails:taper=0 is not understood: expected a number above 0"),
        ] {
            let error = parse(spec).err().expect(expected).to_string();
            assert!(error.contains(expected), "{error}");
        }
    }

    proptest! {
        #[test]
        fn rails_have_the_properties_of_machines(
            pods in 1..4usize, nodes in 1..4usize, gpus in 1..4usize, spines in 1..4usize,
        ) {
            check(&Rails::new([pods, nodes, gpus, spines], [3e9, 1e9, 2.0]).expect("small sizes"));
        }
    }
}
