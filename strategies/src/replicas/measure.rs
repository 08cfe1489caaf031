//! What a plan costs, computed from the plan alone.

use equipoise_model::Topology;
use equipoise_model::replica_plan::ReplicaPlan;
use serde::Serialize;

use super::Request;
use super::nodes::Nodes;
use crate::StrategyError;

/// What the plan of a layer costs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LayerCosts {
    /// The layer, from 0.
    pub layer: usize,
    /// The load of the heaviest PE.
    pub max_load: f64,
    /// The average load of a PE.
    pub average_load: f64,
    /// The ratio of both; 1 without loads.
    pub max_over_average: f64,
    /// PEs with several replicas of an expert.
    pub pes_with_repeated_expert: usize,
    /// Groups of experts with replicas on several nodes, if groups are kept on nodes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub groups_on_several_nodes: Option<usize>,
    /// Replicas on a PE where the previous plan has no replica of the expert.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub moves: Option<usize>,
    /// The bytes of these replicas.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes_moved: Option<u128>,
    /// Tokens that experts receive.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens: Option<f64>,
    /// Tokens that experts receive from other nodes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cross_node_tokens: Option<f64>,
    /// Distances of all tokens from the PEs of their node.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token_hops: Option<f64>,
}

/// What a plan costs in each layer of a request, with `expert_bytes` bytes per replica.
///
/// # Errors
/// If the request is invalid, or the plan has another shape.
pub fn evaluate(
    plan: &ReplicaPlan,
    request: &Request,
    machine: &dyn Topology,
    expert_bytes: u64,
) -> Result<Vec<LayerCosts>, StrategyError> {
    request.check(machine)?;
    request.check_plan(plan).map_err(|reason| StrategyError::Data(format!("the plan: {reason}")))?;
    let nodes = Nodes::of(machine);
    let distances = request.sources.map(|_| nodes.distances(machine));
    let (pes, pes_before) = (machine.pes(), request.pes_before(machine));
    let keeps_groups = request.keeps_groups(machine);
    let costs = |layer: usize| {
        let experts = &plan.physical_to_logical[layer];
        let counts: Vec<f64> = plan.counts(layer).into_iter().map(|count| count as f64).collect();
        let loads = &request.loads.rows[layer];
        let by_pe = experts.chunks(experts.len() / pes);
        let load =
            |experts: &[u32]| experts.iter().map(|&it| loads[it as usize] / counts[it as usize]).sum::<f64>();
        let max_load = by_pe.clone().map(load).fold(0.0, f64::max);
        let average_load = loads.iter().sum::<f64>() / pes as f64;
        let moves = request.before(layer, pes, pes_before).map(|before| {
            let new = |(now, before): (&[u32], &[u32])| now.iter().filter(|it| !before.contains(it)).count();
            by_pe.clone().zip(before).map(new).sum::<usize>()
        });
        let mut costs = LayerCosts {
            layer,
            max_load,
            average_load,
            max_over_average: if average_load > 0.0 { max_load / average_load } else { 1.0 },
            pes_with_repeated_expert: by_pe.clone().filter(|experts| has_repeated(experts)).count(),
            groups_on_several_nodes: keeps_groups.then(|| torn_groups(experts, request, &nodes)),
            moves,
            bytes_moved: moves.map(|moves| moves as u128 * u128::from(expert_bytes)),
            tokens: None,
            cross_node_tokens: None,
            token_hops: None,
        };
        if let Some((tokens, distances)) = request.sources_of(layer, nodes.number()).zip(distances.as_deref())
        {
            let (mut cross, mut hops) = (0.0, 0.0);
            for (pe, experts) in by_pe.enumerate() {
                for &expert in experts {
                    for (node, from) in tokens.iter().enumerate() {
                        let part = from[expert as usize] / counts[expert as usize];
                        hops += part * distances[pe * nodes.number() + node];
                        cross += if nodes.of_pes()[pe] as usize == node { 0.0 } else { part };
                    }
                }
            }
            costs.tokens = Some(tokens.iter().flatten().sum());
            (costs.cross_node_tokens, costs.token_hops) = (Some(cross), Some(hops));
        }
        costs
    };
    Ok((0..request.loads.rows.len()).map(costs).collect())
}

/// The number of groups that have replicas on several nodes.
fn torn_groups(experts: &[u32], request: &Request, nodes: &Nodes) -> usize {
    let (of_group, slots) = (request.loads.columns() / request.groups, experts.len() / nodes.of_pes().len());
    // The first node of each group, and whether there is another one.
    let mut node_of: Vec<Option<(u32, bool)>> = vec![None; request.groups];
    for (slot, &expert) in experts.iter().enumerate() {
        let node = nodes.of_pes()[slot / slots];
        let (first, has_others) = node_of[expert as usize / of_group].get_or_insert((node, false));
        *has_others |= *first != node;
    }
    node_of.iter().flatten().filter(|(_, has_others)| *has_others).count()
}

fn has_repeated(experts: &[u32]) -> bool {
    let mut sorted = experts.to_vec();
    sorted.sort_unstable();
    sorted.windows(2).any(|pair| pair[0] == pair[1])
}
