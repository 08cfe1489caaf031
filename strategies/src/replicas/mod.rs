//! Objects with replicas whose load divides among them, such as the experts of a model: how many of each, and where
//! (`ReplicaLB`).
//!
//! A layer has experts with loads, and PEs with the same number of slots. Every slot gets a replica of an expert, every expert
//! has at least one replica and at most one on a PE, and the load of an expert divides equally among its replicas. [`place`]
//! makes the heaviest PE light; with a previous plan it moves few replicas, and if it knows from which nodes messages come, it
//! shortens their ways. [`evaluate`] judges any plan. [`published`] is the plan of [`eplb`], the published algorithm that plans
//! are compared with.
//!
//! ```
//! use equipoise_model::{numbers::Numbers, topology};
//! use equipoise_strategies::replicas::{Request, evaluate, place};
//!
//! let machine = topology::parse("flat:2*flat:4")?;
//! let loads = Numbers { rows: vec![vec![90., 132., 40., 61., 104., 165., 39., 4., 73., 56., 183., 86.]] };
//! let request = Request::new(&loads, 16);
//! let plan = place(&request, &*machine)?;
//! let costs = evaluate(&plan, &request, &*machine, 0)?;
//! assert!(costs[0].max_over_average < 1.08);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use equipoise_model::numbers::Numbers;
use equipoise_model::replica_plan::ReplicaPlan;
use equipoise_model::table::count;
use equipoise_model::{Topology, memory, topology};
use rayon::prelude::*;

mod chain;
mod complete;
pub mod eplb;
mod exchange;
mod groups;
mod layout;
mod measure;
mod nodes;
mod reduce;
mod search;
mod transfers;
mod undo;

pub use measure::{LayerCosts, evaluate};
pub use transfers::{Transfer, transfers};

use crate::StrategyError;
use nodes::Nodes;

/// What is placed, and what a plan costs.
///
/// The load comes first. With a previous plan, the heaviest PE has at most `tolerance` more load than that of EPLB's plan for these
/// loads; with sources only, at most the load of the plan without sources; as far as the search finds such a plan. Below this
/// load, the cost of a plan is `gamma` times the part of all replicas that must be copied, plus `messages` times the hops of
/// all tokens relative to those with replicas at random places.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// The load of every expert; a row per layer.
    pub loads: &'a Numbers,
    /// The slots of all PEs in each layer.
    pub slots: usize,
    /// The number of groups of experts with consecutive numbers. If the nodes divide it, every node has the same number of
    /// groups, and the experts of a group have all their replicas on one node.
    pub groups: usize,
    /// The plan that is in use. It may be for another number of PEs or slots: PEs of the same number are the same.
    pub previous: Option<&'a ReplicaPlan>,
    /// The tokens from every node to every expert: a row per node, or for each layer a row per node.
    pub sources: Option<&'a Numbers>,
    /// The cost of moving all replicas, relative to that of messages.
    pub gamma: f64,
    /// The cost of messages to replicas at random places.
    pub messages: f64,
    /// The allowed relative excess of the largest load over that of EPLB's plan.
    pub tolerance: f64,
}

impl<'a> Request<'a> {
    /// The cost of moving all replicas, by default.
    pub const GAMMA: f64 = 0.1;
    /// The cost of messages to replicas at random places, by default.
    pub const MESSAGES: f64 = 1.0;
    /// The allowed excess over the largest load of EPLB's plan, by default.
    pub const TOLERANCE: f64 = 0.005;

    /// Layers with these loads and `slots` slots each, without groups, previous plan and sources.
    pub fn new(loads: &'a Numbers, slots: usize) -> Self {
        Request {
            loads,
            slots,
            groups: 1,
            previous: None,
            sources: None,
            gamma: Self::GAMMA,
            messages: Self::MESSAGES,
            tolerance: Self::TOLERANCE,
        }
    }

    /// Whether groups are kept on nodes: whether there are several groups, and the nodes divide them.
    pub fn keeps_groups(&self, machine: &dyn Topology) -> bool {
        let nodes = Nodes::of(machine);
        self.groups > 1 && self.groups.is_multiple_of(nodes.number()) && nodes.are_equal()
    }

    /// What a user should know of a request that can be answered: groups that are not kept on nodes, and a previous plan that was made
    /// for another number of PEs.
    pub fn warnings(&self, machine: &dyn Topology) -> Vec<String> {
        let mut warnings = Vec::new();
        if self.groups > 1 && !self.keeps_groups(machine) {
            let nodes = Nodes::of(machine);
            let reason = match nodes.are_equal() {
                true => format!(
                    "{} cannot be divided among {}",
                    count(self.groups as u64, "group"),
                    count(nodes.number() as u64, "node")
                ),
                false => "nodes have different numbers of PEs".into(),
            };
            warnings.push(format!("groups are not kept on nodes: on {}, {reason}", machine.spec()));
        }
        let other = self.previous.and_then(|plan| other_machine("the previous plan", plan, machine));
        warnings
            .extend(other.map(|other| format!("{other}; PEs of the same number are taken to be the same")));
        let has_no_machine = |plan: &&ReplicaPlan| topology::parse(&plan.topology).is_err();
        let unknown =
            self.previous.filter(|plan| plan.slots_per_layer() != self.slots).filter(has_no_machine);
        warnings.extend(unknown.map(|plan| {
            format!(
                "the previous plan has {} and names no machine that is known here; it is taken to be for {}",
                count(plan.slots_per_layer() as u64, "slot"),
                count(machine.pes() as u64, "PE")
            )
        }));
        warnings
    }

    /// Checks the numbers of layers, experts, slots, PEs and nodes against each other.
    ///
    /// # Errors
    /// If no plan has these numbers, or the previous plan or the sources have another shape.
    pub fn check(&self, machine: &dyn Topology) -> Result<(), StrategyError> {
        let (pes, experts, slots) = (machine.pes(), self.loads.columns(), self.slots);
        let request = |sentence: String| Err(StrategyError::Request(sentence));
        if experts == 0 {
            return Err(StrategyError::Data("there are no experts; give the load of at least one".into()));
        }
        let next = slots.max(experts).checked_next_multiple_of(pes);
        let next = next.unwrap_or_else(|| experts.next_multiple_of(pes));
        if !slots.is_multiple_of(pes) || slots == 0 {
            return request(format!(
                "{slots} slots cannot be the same number on each of {}; use a multiple such as {next}",
                count(pes as u64, "PE")
            ));
        }
        if slots < experts {
            return request(format!(
                "{slots} slots are fewer than {}; use at least {next}",
                count(experts as u64, "expert")
            ));
        }
        if !experts.is_multiple_of(self.groups.max(1)) || self.groups == 0 {
            return request(format!(
                "{} cannot form {} of the same size; use a number that divides the experts",
                count(experts as u64, "expert"),
                count(self.groups as u64, "group")
            ));
        }
        let bytes = (self.loads.rows.len() as u64).saturating_mul(slots as u64).saturating_mul(64);
        memory::check(bytes, "the plan", "use fewer slots").map_err(StrategyError::Request)?;
        if self.sources.is_some() {
            // The distances of nodes to PEs, and the messages of experts on PEs.
            let bytes =
                (pes as u64).saturating_mul((Nodes::of(machine).number() + experts) as u64).saturating_mul(8);
            memory::check(bytes, "the tokens by PE", "use a smaller machine")
                .map_err(StrategyError::Request)?;
        }
        let data = |what: &str, checked: Result<(), String>| {
            checked.map_err(|reason| StrategyError::Data(format!("{what}: {reason}")))
        };
        data("the previous plan", self.check_previous(machine))?;
        data("the sources", self.check_sources(machine, None))
    }

    /// Checks that every PE has at most as many slots as there are experts for it. A plan that is judged may have more.
    fn check_room(&self, machine: &dyn Topology) -> Result<(), StrategyError> {
        let pes = machine.pes();
        let (slots, most) = (self.slots / pes, self.loads.columns() / Zones::of(self, machine).number);
        if slots <= most {
            return Ok(());
        }
        Err(StrategyError::Request(format!(
            "{} on a PE are more than the {most} that can be there, and no PE may have two replicas of an expert; use at most {} \
             slots",
            count(slots as u64, "slot"),
            most * pes
        )))
    }

    /// Checks that the sources have a row per node, or one for each layer and node, and a column per expert. `rows_of_layer` is the number of
    /// rows of a layer, if it is known.
    ///
    /// # Errors
    /// What is different.
    pub fn check_sources(&self, machine: &dyn Topology, rows_of_layer: Option<usize>) -> Result<(), String> {
        let Some(sources) = self.sources else { return Ok(()) };
        let (nodes, layers, experts) =
            (Nodes::of(machine).number(), self.loads.rows.len(), self.loads.columns());
        let (rows, columns) = (sources.rows.len(), sources.columns());
        let is_by_layer = rows_of_layer.is_none_or(|of_layer| of_layer == nodes && rows == nodes * layers);
        if columns == experts && (rows == nodes || rows == nodes * layers) && is_by_layer {
            return Ok(());
        }
        let found = format!("found {} of {}", count(rows as u64, "row"), count(columns as u64, "number"));
        let found = match rows_of_layer {
            Some(of_layer) => {
                format!("{found} in {} of {of_layer}", count((rows / of_layer.max(1)) as u64, "layer"))
            }
            None => found,
        };
        let expected = format!("{} of {}", count(nodes as u64, "row"), count(experts as u64, "number"));
        Err(match layers {
            1 => format!("{found}; give {expected}: a row per node"),
            _ => format!(
                "{found}; give {expected}: a row per node. To give each layer its own, give {} rows, layer by layer",
                nodes * layers
            ),
        })
    }

    /// Checks that the previous plan has the layers and experts of this request, and the same number of slots on each of its PEs.
    ///
    /// # Errors
    /// What is different.
    pub fn check_previous(&self, machine: &dyn Topology) -> Result<(), String> {
        let Some(plan) = self.previous else { return Ok(()) };
        let (pes, slots) = (pes_of(plan, machine), plan.slots_per_layer());
        if !slots.is_multiple_of(pes) {
            return Err(format!(
                "its {} cannot be the same number on each of {}; give a plan whose `topology` is its machine",
                count(slots as u64, "slot"),
                count(pes as u64, "PE")
            ));
        }
        self.check_plan_with(plan, slots)
    }

    /// Checks that a plan has the layers, slots and experts of this request, and a replica of every expert.
    ///
    /// # Errors
    /// What is different.
    pub fn check_plan(&self, plan: &ReplicaPlan) -> Result<(), String> {
        self.check_plan_with(plan, self.slots)
    }

    /// As [`Self::check_plan`], for a plan with `slots` slots in each layer.
    fn check_plan_with(&self, plan: &ReplicaPlan, slots: usize) -> Result<(), String> {
        let numbers = |layers: usize, slots: usize, experts: usize| {
            let layers = count(layers as u64, "layer");
            format!("{layers} with {} and {}", count(slots as u64, "slot"), count(experts as u64, "expert"))
        };
        let (layers, experts) = (self.loads.rows.len(), self.loads.columns());
        let (its_layers, its_slots) = (plan.physical_to_logical.len(), plan.slots_per_layer());
        // A plan that lacks the last experts names fewer.
        if its_layers != layers || its_slots != slots || plan.experts > experts {
            return Err(format!(
                "found {}, expected {}; give a plan for these loads and slots",
                numbers(its_layers, its_slots, plan.experts),
                numbers(layers, slots, experts)
            ));
        }
        for layer in 0..layers {
            let counts = plan.counts(layer);
            let missing = (0..experts).find(|&expert| counts.get(expert).is_none_or(|&count| count == 0));
            if let Some(expert) = missing {
                return Err(format!(
                    "in layer {layer}, expert {expert} of {experts} has no replica; give it a slot, or give a plan of this model"
                ));
            }
        }
        Ok(())
    }

    /// By PE of a machine with `pes` PEs: its experts in a layer of the previous plan, which was made for `pes_before` PEs. New PEs have none.
    fn before(&self, layer: usize, pes: usize, pes_before: usize) -> Option<Vec<&'a [u32]>> {
        let row = &self.previous?.physical_to_logical[layer];
        let slots = row.len() / pes_before;
        Some((0..pes).map(|pe| row.get(pe * slots..(pe + 1) * slots).unwrap_or_default()).collect())
    }

    /// The number of PEs of the previous plan, or of `machine` if there is none.
    fn pes_before(&self, machine: &dyn Topology) -> usize {
        self.previous.map_or(machine.pes(), |plan| pes_of(plan, machine))
    }

    /// The tokens from every node to every expert in a layer.
    fn sources_of(&self, layer: usize, nodes: usize) -> Option<&'a [Vec<f64>]> {
        let rows = &self.sources?.rows;
        Some(if rows.len() == nodes { rows } else { &rows[layer * nodes..(layer + 1) * nodes] })
    }
}

/// Checks that a plan has the same number of slots on each PE of a machine.
///
/// # Errors
/// What is different.
pub fn check_machine(plan: &ReplicaPlan, machine: &dyn Topology) -> Result<(), String> {
    let (slots, pes) = (plan.slots_per_layer(), machine.pes());
    if slots.is_multiple_of(pes) {
        return Ok(());
    }
    Err(format!(
        "its {} cannot be the same number on each of {} of {}; name the machine of the plan with --topology",
        count(slots as u64, "slot"),
        count(pes as u64, "PE"),
        machine.spec()
    ))
}

/// The sentence for a plan that was made for another number of PEs than `machine` has; `what` names the plan.
pub fn other_machine(what: &str, plan: &ReplicaPlan, machine: &dyn Topology) -> Option<String> {
    // A machine file of another computer is no reason to refuse a plan.
    let its = topology::parse(&plan.topology).ok().filter(|its| its.pes() != machine.pes())?;
    let (its_pes, pes) = (count(its.pes() as u64, "PE"), count(machine.pes() as u64, "PE"));
    Some(format!("{what} was made for {its_pes} ({}), and {} has {pes}", its.spec(), machine.spec()))
}

/// The number of PEs that a plan was made for; that of `machine` if the plan does not name a machine that is known here.
fn pes_of(plan: &ReplicaPlan, machine: &dyn Topology) -> usize {
    topology::parse(&plan.topology).map_or(machine.pes(), |its| its.pes())
}

/// EPLB's plan for a request, without regard to the previous plan and the sources. It may have several replicas of an expert on a
/// PE.
///
/// # Errors
/// As for [`Request::check`].
pub fn published(request: &Request, machine: &dyn Topology) -> Result<ReplicaPlan, StrategyError> {
    request.check(machine)?;
    let zones = Zones::of(request, machine);
    let slots = request.slots / machine.pes();
    let layer = |loads: &Vec<f64>| eplb::in_zones(loads, slots, zones.groups, &zones.of_pe, zones.number);
    let physical_to_logical = request.loads.rows.iter().map(layer).collect();
    Ok(ReplicaPlan { topology: machine.spec(), experts: request.loads.columns(), physical_to_logical })
}

/// The zones of a machine: its nodes if groups are kept on nodes, otherwise one zone and one group.
struct Zones {
    of_pe: Vec<u32>,
    number: usize,
    groups: usize,
}

impl Zones {
    fn of(request: &Request, machine: &dyn Topology) -> Self {
        match request.keeps_groups(machine) {
            true => {
                let nodes = Nodes::of(machine);
                Zones { of_pe: nodes.of_pes().to_vec(), number: nodes.number(), groups: request.groups }
            }
            false => Zones { of_pe: vec![0; machine.pes()], number: 1, groups: 1 },
        }
    }
}

/// The plan for a request. The search makes no random choices, and the plan is the same on any number of threads.
///
/// # Errors
/// As for [`Request::check`], or if a PE would have two replicas of an expert.
pub fn place(request: &Request, machine: &dyn Topology) -> Result<ReplicaPlan, StrategyError> {
    request.check(machine)?;
    request.check_room(machine)?;
    let nodes = Nodes::of(machine);
    let zones = Zones::of(request, machine);
    let distances = request.sources.map(|_| nodes.distances(machine));
    let pes_before = request.pes_before(machine);
    let place = |layer: usize| {
        let sources = request.sources_of(layer, nodes.number()).zip(distances.as_deref());
        let message_cost =
            sources.map(|(tokens, distances)| nodes.message_cost(tokens, distances, request.messages));
        let layer = search::Layer {
            loads: &request.loads.rows[layer],
            slots: request.slots / machine.pes(),
            zone_of: &zones.of_pe,
            zones: zones.number,
            groups: zones.groups,
            previous: request.before(layer, machine.pes(), pes_before),
            message_cost: message_cost.unwrap_or_default(),
            gamma: request.gamma,
            messages: request.messages,
            tolerance: request.tolerance,
        };
        layer.place()
    };
    let layers = (0..request.loads.rows.len()).into_par_iter();
    let physical_to_logical = layers.map(place).collect();
    Ok(ReplicaPlan { topology: machine.spec(), experts: request.loads.columns(), physical_to_logical })
}
