//! The copies of replicas that lead from the plan in use to another plan.

use equipoise_model::Topology;
use equipoise_model::replica_plan::ReplicaPlan;
use rustc_hash::FxHashMap;

use super::Request;

/// A replica that is copied to a PE that has none of its expert in the plan in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// The layer, from 0.
    pub layer: usize,
    /// The expert.
    pub expert: u32,
    /// A PE that has the expert in the plan in use; none if all of them are gone.
    pub from: Option<usize>,
    /// The PE.
    pub to: usize,
}

/// The copies that lead from the previous plan of a request to `plan`, by layer and PE; none without a previous plan. There is one for each
/// of the [moves](super::LayerCosts::moves). A copy comes from the nearest PE that has the expert; of equally near ones, from that which has sent the
/// fewest.
///
/// # Panics
/// When a plan has another shape than the request.
pub fn transfers(plan: &ReplicaPlan, request: &Request, machine: &dyn Topology) -> Option<Vec<Transfer>> {
    let (pes, pes_before) = (machine.pes(), request.pes_before(machine));
    let mut sent = vec![0u32; pes];
    let mut found = Vec::new();
    for (layer, experts) in plan.physical_to_logical.iter().enumerate() {
        let before = request.before(layer, pes, pes_before)?;
        let mut holders = FxHashMap::<u32, Vec<usize>>::default();
        for (pe, experts) in before.iter().enumerate() {
            experts.iter().for_each(|&expert| holders.entry(expert).or_default().push(pe));
        }
        for (to, experts) in experts.chunks(experts.len() / pes).enumerate() {
            for &expert in experts.iter().filter(|expert| !before[to].contains(expert)) {
                let holders = holders.get(&expert).map_or(&[][..], Vec::as_slice);
                let from = holders
                    .iter()
                    .copied()
                    .min_by_key(|&from| (machine.distance(from, to), sent[from], from));
                from.into_iter().for_each(|from| sent[from] += 1);
                found.push(Transfer { layer, expert, from, to });
            }
        }
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use equipoise_model::numbers::Numbers;
    use equipoise_model::topology::parse;

    use super::super::evaluate;
    use super::*;

    #[test]
    fn copies_come_from_near_pes_in_turn() {
        let machine = parse("flat:2*flat:2").expect("a machine");
        let plan = |rows: [[u32; 8]; 1]| ReplicaPlan {
            topology: machine.spec(),
            experts: 4,
            physical_to_logical: rows.map(Vec::from).into(),
        };
        let loads = Numbers { rows: vec![vec![1.0; 4]] };
        let (old, new) = (plan([[0, 1, 2, 3, 0, 1, 2, 3]]), plan([[0, 2, 1, 3, 0, 1, 2, 0]]));
        let request = Request { previous: Some(&old), ..Request::new(&loads, 8) };
        let found = transfers(&new, &request, &*machine).expect("a previous plan");
        let copy = |expert, from, to| Transfer { layer: 0, expert, from: Some(from), to };
        assert_eq!(found, [copy(2, 1, 0), copy(1, 0, 1), copy(0, 2, 3)]);
        let costs = evaluate(&new, &request, &*machine, 1).expect("costs");
        assert_eq!(costs[0].moves, Some(found.len()));
        assert_eq!(transfers(&new, &Request::new(&loads, 8), &*machine), None);

        // Of a machine that has shrunk to its first node, what only the second node had is gone.
        let half = parse("flat:1*flat:2").expect("a machine");
        let old = plan([[0, 1, 0, 1, 2, 3, 2, 3]]);
        let new =
            ReplicaPlan { topology: half.spec(), experts: 4, physical_to_logical: vec![vec![0, 1, 2, 3]] };
        let request = Request { previous: Some(&old), ..Request::new(&loads, 4) };
        let found = transfers(&new, &request, &*half).expect("a previous plan");
        assert_eq!(found.iter().map(|it| (it.expert, it.from)).collect::<Vec<_>>(), [(2, None), (3, None)]);
    }
}
