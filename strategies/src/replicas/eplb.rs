//! EPLB, the published expert-parallelism load balancer of DeepSeek, written from its public description: the baseline of
//! the plans of this module.
//!
//! It gives one more replica at a time to the expert with the largest load per replica. It packs by descending weight, each
//! item into the lightest pack with room. If the nodes divide the groups of experts, groups are packed to nodes first, and
//! experts have replicas on their node only; otherwise all experts are placed on all GPUs at once. It may place two replicas
//! of an expert on the same GPU.

/// The plan of EPLB for each layer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rebalanced {
    /// The expert of every slot, by layer; the slots of a GPU are adjacent.
    pub physical_to_logical: Vec<Vec<usize>>,
    /// The slots of every expert in replica order, by layer.
    pub logical_to_physical: Vec<Vec<Vec<usize>>>,
    /// The number of replicas of every expert, by layer.
    pub counts: Vec<Vec<usize>>,
}

/// EPLB's plan for layers with the loads `weight`.
///
/// # Errors
/// If the slots are not a multiple of the GPUs, or fewer than the experts, or groups and nodes do not divide them evenly.
pub fn rebalance_experts(
    weight: &[Vec<f64>],
    num_replicas: usize,
    num_groups: usize,
    num_nodes: usize,
    num_gpus: usize,
) -> Result<Rebalanced, String> {
    // Without whole groups per node, all GPUs are one node and all experts one group.
    let divides = |part: usize, whole: usize| part > 0 && whole.is_multiple_of(part);
    let (groups, nodes) = if divides(num_nodes, num_groups) { (num_groups, num_nodes) } else { (1, 1) };
    if !divides(num_gpus, num_replicas) || !divides(nodes, num_gpus) {
        return Err(format!(
            "{num_replicas} slots on {num_gpus} GPUs of {nodes} nodes are not the same number on each; use a multiple"
        ));
    }
    let mut all = Rebalanced { physical_to_logical: vec![], logical_to_physical: vec![], counts: vec![] };
    for weight in weight {
        let experts = weight.len();
        if !divides(groups, experts) || experts > num_replicas {
            return Err(format!(
                "{experts} experts need {num_replicas} slots in {groups} equal groups; use at least a slot for each expert, and \
                 a number of groups that divides the experts"
            ));
        }
        let slots = layer(weight, num_replicas, groups, nodes, num_gpus);
        let mut slots_of = vec![Vec::new(); experts];
        slots
            .iter()
            .enumerate()
            .for_each(|(slot, &(expert, replica))| slots_of[expert].push((replica, slot)));
        slots_of.iter_mut().for_each(|slots| slots.sort_unstable());
        all.physical_to_logical.push(slots.iter().map(|&(expert, _)| expert).collect());
        all.counts.push(slots_of.iter().map(Vec::len).collect());
        let without_replica = |slots: Vec<(usize, usize)>| slots.into_iter().map(|(_, slot)| slot).collect();
        all.logical_to_physical.push(slots_of.into_iter().map(without_replica).collect());
    }
    Ok(all)
}

/// The expert of every slot of a layer, with zones in the place of nodes; the PEs of a zone need not be adjacent.
pub(super) fn in_zones(
    weight: &[f64],
    slots_of_pe: usize,
    groups: usize,
    zone_of: &[u32],
    zones: usize,
) -> Vec<u32> {
    let pes = zone_of.len();
    let plan = layer(weight, pes * slots_of_pe, groups, zones, pes);
    let mut order: Vec<usize> = (0..pes).collect();
    order.sort_by_key(|&pe| (zone_of[pe], pe));
    let mut slot = vec![0; plan.len()];
    for (experts, pe) in plan.chunks(slots_of_pe).zip(order) {
        let to = slot[pe * slots_of_pe..].iter_mut();
        to.zip(experts).for_each(|(slot, &(expert, _))| *slot = expert as u32);
    }
    slot
}

/// The expert and the number of the replica in every slot of a layer.
fn layer(weight: &[f64], slots: usize, groups: usize, nodes: usize, gpus: usize) -> Vec<(usize, usize)> {
    let group_size = weight.len() / groups;
    let group_weight: Vec<f64> = weight.chunks(group_size.max(1)).map(|group| group.iter().sum()).collect();
    let mut placed = Vec::with_capacity(slots);
    for groups in packed(&group_weight, nodes) {
        let experts: Vec<usize> =
            groups.into_iter().flat_map(|group| group * group_size..(group + 1) * group_size).collect();
        let weight: Vec<f64> = experts.iter().map(|&expert| weight[expert]).collect();
        let (replicas, counts) = replicated(&weight, slots / nodes);
        let share: Vec<f64> = replicas.iter().map(|&(at, _)| weight[at] / counts[at] as f64).collect();
        for gpu in packed(&share, gpus / nodes) {
            placed.extend(gpu.into_iter().map(|slot| (experts[replicas[slot].0], replicas[slot].1)));
        }
    }
    placed
}

/// The expert and the number of the replica of each of `slots` replicas, and the number of replicas of each expert.
fn replicated(weight: &[f64], slots: usize) -> (Vec<(usize, usize)>, Vec<usize>) {
    let mut replicas: Vec<(usize, usize)> = (0..weight.len()).map(|expert| (expert, 0)).collect();
    let mut counts = vec![1; weight.len()];
    while replicas.len() < slots {
        let per_replica = |expert: usize| weight[expert] / counts[expert] as f64;
        // The first of several with the same load.
        let heaviest = (0..weight.len())
            .reduce(|best, expert| if per_replica(expert) > per_replica(best) { expert } else { best });
        let Some(expert) = heaviest else { break };
        replicas.push((expert, counts[expert]));
        counts[expert] += 1;
    }
    (replicas, counts)
}

/// The items in each of `packs` packs of the same size, in the order in which they are put there.
fn packed(weight: &[f64], packs: usize) -> Vec<Vec<usize>> {
    let room = weight.len() / packs;
    let mut pack_of: Vec<Vec<usize>> = vec![Vec::with_capacity(room); packs];
    // With one item per pack there is nothing to balance, and items keep their order.
    if room == 1 {
        pack_of.iter_mut().enumerate().for_each(|(item, pack)| pack.push(item));
        return pack_of;
    }
    let mut order: Vec<usize> = (0..weight.len()).collect();
    order.sort_by(|&a, &b| weight[b].total_cmp(&weight[a]));
    let mut load = vec![0.0; packs];
    for item in order {
        let has_room = (0..packs).filter(|&pack| pack_of[pack].len() < room);
        let lightest = has_room.reduce(|best, pack| if load[pack] < load[best] { pack } else { best });
        let Some(pack) = lightest else { break };
        load[pack] += weight[item];
        pack_of[pack].push(item);
    }
    pack_of
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_example_has_the_published_plan() {
        let weight = [
            [90., 132., 40., 61., 104., 165., 39., 4., 73., 56., 183., 86.].to_vec(),
            [20., 107., 104., 64., 19., 197., 187., 157., 172., 86., 16., 27.].to_vec(),
        ];
        let plan = rebalance_experts(&weight, 16, 4, 2, 8).expect("a plan");
        let expected = [
            vec![5, 6, 5, 7, 8, 4, 3, 4, 10, 9, 10, 2, 0, 1, 11, 1],
            vec![7, 10, 6, 8, 6, 11, 8, 9, 2, 4, 5, 1, 5, 0, 3, 1],
        ];
        assert_eq!(plan.physical_to_logical, expected);
        assert_eq!(plan.counts[0], [1, 2, 1, 1, 2, 2, 1, 1, 1, 1, 2, 1]);
        assert_eq!(plan.logical_to_physical[0][5], [0, 2]);
    }

    #[test]
    fn without_whole_groups_per_node_all_gpus_are_one_node() {
        let weight = [(1..=12).map(f64::from).collect::<Vec<f64>>()];
        let [split, global] = [3, 1].map(|groups| rebalance_experts(&weight, 16, groups, 2, 8));
        assert_eq!(split, global);
        assert_eq!(split.expect("a plan").counts[0], [1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2]);
    }

    #[test]
    fn uneven_numbers_are_refused() {
        let weight = [vec![1.0; 12]];
        for (slots, groups, nodes, gpus) in
            [(15, 4, 2, 8), (8, 4, 2, 8), (16, 4, 0, 0), (16, 5, 5, 8), (16, 10, 2, 8)]
        {
            let plan = rebalance_experts(&weight, slots, groups, nodes, gpus);
            assert!(plan.is_err(), "{slots} {groups} {nodes} {gpus}");
        }
    }
}
