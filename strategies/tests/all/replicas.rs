//! Plans of objects with replicas, judged by a checker that shares no code with the search, next to EPLB's plans.

use std::collections::{BTreeMap, BTreeSet};

use equipoise_model::numbers::Numbers;
use equipoise_model::replica_plan::ReplicaPlan;
use equipoise_model::{Topology, topology};
use equipoise_strategies::replicas::eplb::rebalance_experts;
use equipoise_strategies::replicas::{LayerCosts, Request, evaluate, place, published};
use proptest::prelude::*;

/// Nodes, PEs of a node, slots of a PE, and layers with a load for every expert.
#[derive(Clone, Debug)]
struct Case {
    nodes: usize,
    cores: usize,
    slots_of_pe: usize,
    groups: usize,
    loads: Numbers,
}

impl Case {
    fn machine(&self) -> std::sync::Arc<dyn Topology> {
        topology::parse(&format!("flat:{}*flat:{}", self.nodes, self.cores)).expect("a machine")
    }

    fn request(&self) -> Request<'_> {
        let slots = self.nodes * self.cores * self.slots_of_pe;
        Request { groups: self.groups, ..Request::new(&self.loads, slots) }
    }
}

fn load() -> impl Strategy<Value = f64> {
    prop_oneof![8 => 0.0..1e4, 1 => Just(0.0), 1 => 1e4..1e6]
}

/// Cases with at least a slot for every expert, and no PE with more slots than experts that it may have.
fn cases() -> impl Strategy<Value = Case> {
    let numbers = (1..4usize, 1..5usize, 1..5usize, 1..3usize, any::<bool>());
    numbers.prop_flat_map(|(nodes, cores, slots_of_pe, groups_of_node, has_groups)| {
        let groups_of_node = if cores == 1 || !has_groups { 1 } else { groups_of_node };
        // Without groups, all nodes are one.
        let [groups, pes] = if has_groups { [nodes * groups_of_node, cores] } else { [1, nodes * cores] };
        let least = slots_of_pe.div_ceil(groups_of_node);
        let most = pes * slots_of_pe / groups_of_node;
        (least..=most)
            .prop_flat_map(move |of_group| {
                let row = prop::collection::vec(load(), of_group * groups);
                prop::collection::vec(row, 1..3)
            })
            .prop_map(move |rows| Case { nodes, cores, slots_of_pe, groups, loads: Numbers { rows } })
    })
}

/// The load of every PE of a layer, from the definition.
fn pe_loads(case: &Case, layer: usize, plan: &ReplicaPlan) -> Vec<f64> {
    let experts = &plan.physical_to_logical[layer];
    let mut replicas: BTreeMap<u32, f64> = BTreeMap::new();
    experts.iter().for_each(|&expert| *replicas.entry(expert).or_default() += 1.0);
    let mut loads = vec![0.0; case.nodes * case.cores];
    for (slot, expert) in experts.iter().enumerate() {
        loads[slot / case.slots_of_pe] += case.loads.rows[layer][*expert as usize] / replicas[expert];
    }
    loads
}

/// Checks that a plan keeps every rule.
fn check_plan(case: &Case, plan: &ReplicaPlan) {
    assert_eq!(plan.physical_to_logical.len(), case.loads.rows.len());
    for experts in &plan.physical_to_logical {
        assert_eq!(experts.len(), case.nodes * case.cores * case.slots_of_pe);
        let all: BTreeSet<u32> = experts.iter().copied().collect();
        assert_eq!(all, (0..case.loads.columns() as u32).collect(), "every expert has a replica");
        for pe in experts.chunks(case.slots_of_pe) {
            assert_eq!(pe.iter().collect::<BTreeSet<_>>().len(), pe.len(), "{pe:?} repeats an expert");
        }
        if case.groups > 1 {
            let size = case.loads.columns() / case.groups;
            let mut nodes_of_group: BTreeMap<usize, BTreeSet<usize>> = BTreeMap::new();
            for (slot, &expert) in experts.iter().enumerate() {
                let node = slot / case.slots_of_pe / case.cores;
                nodes_of_group.entry(expert as usize / size).or_default().insert(node);
            }
            assert!(nodes_of_group.values().all(|nodes| nodes.len() == 1), "{nodes_of_group:?}");
        }
    }
}

fn max(loads: &[f64]) -> f64 {
    loads.iter().copied().fold(0.0, f64::max)
}

/// The replicas that are not on the same PE in another plan.
fn moves(case: &Case, before: &[u32], now: &[u32]) -> usize {
    let pes = before.chunks(case.slots_of_pe).zip(now.chunks(case.slots_of_pe));
    pes.map(|(before, now)| now.iter().filter(|expert| !before.contains(expert)).count()).sum()
}

fn costs(plan: &ReplicaPlan, request: &Request, machine: &dyn Topology) -> Vec<LayerCosts> {
    evaluate(plan, request, machine, 10).expect("the plan fits")
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn plans_keep_the_rules_and_are_not_above_eplb_where_it_keeps_them(case in cases()) {
        let (machine, request) = (case.machine(), case.request());
        let plan = place(&request, &*machine).expect("a plan");
        check_plan(&case, &plan);
        let theirs = published(&request, &*machine).expect("a plan");
        let (ours, anew) = (costs(&plan, &request, &*machine), costs(&theirs, &request, &*machine));
        for layer in 0..case.loads.rows.len() {
            let [loads, their_loads] = [&plan, &theirs].map(|plan| pe_loads(&case, layer, plan));
            prop_assert!((max(&loads) - ours[layer].max_load).abs() <= 1e-9 * max(&loads));
            prop_assert!((max(&their_loads) - anew[layer].max_load).abs() <= 1e-9 * max(&their_loads));
            if anew[layer].pes_with_repeated_expert == 0 {
                prop_assert!(max(&loads) <= max(&their_loads) * (1.0 + 1e-9));
            }
        }
    }

    #[test]
    fn plans_with_a_previous_plan_keep_the_rules_and_move_nothing_without_need(
        case in cases(), drift in prop::collection::vec(0.5..2.0, 200),
    ) {
        let (machine, request) = (case.machine(), case.request());
        let first = place(&request, &*machine).expect("a plan");
        let same = Request { previous: Some(&first), ..request };
        let stays = place(&same, &*machine).expect("a plan");
        let anew = published(&request, &*machine).expect("a plan");
        for layer in 0..case.loads.rows.len() {
            if max(&pe_loads(&case, layer, &first)) <= max(&pe_loads(&case, layer, &anew)) {
                prop_assert_eq!(&stays.physical_to_logical[layer], &first.physical_to_logical[layer]);
            }
        }
        let drifted = |row: &Vec<f64>| row.iter().zip(drift.iter().cycle()).map(|(load, by)| load * by).collect();
        let later = Case { loads: Numbers { rows: case.loads.rows.iter().map(drifted).collect() }, ..case.clone() };
        let request = Request { previous: Some(&first), ..later.request() };
        let second = place(&request, &*machine).expect("a plan");
        check_plan(&later, &second);
        for (layer, costs) in costs(&second, &request, &*machine).into_iter().enumerate() {
            let [before, now] = [&first, &second].map(|plan| &plan.physical_to_logical[layer]);
            let moves = moves(&case, before, now);
            prop_assert_eq!((costs.moves, costs.bytes_moved), (Some(moves), Some(10 * moves as u128)));
        }
    }

    #[test]
    fn sources_make_no_pe_heavier_and_tokens_are_counted(
        case in cases(), tokens in prop::collection::vec(0.0..100.0, 300),
    ) {
        let (machine, blind) = (case.machine(), case.request());
        let row = |node: usize| (0..case.loads.columns()).map(|it| tokens[(node * 97 + it) % 300]).collect();
        let sources = Numbers { rows: (0..case.nodes).map(row).collect() };
        let request = Request { sources: Some(&sources), ..blind };
        let plans = [place(&blind, &*machine).expect("a plan"), place(&request, &*machine).expect("a plan")];
        check_plan(&case, &plans[1]);
        for (layer, costs) in costs(&plans[1], &request, &*machine).into_iter().enumerate() {
            let [blind, aware] = plans.each_ref().map(|plan| max(&pe_loads(&case, layer, plan)));
            prop_assert!(aware <= blind * (1.0 + 1e-9), "{aware} is above {blind}");
            let experts = &plans[1].physical_to_logical[layer];
            let mut cross = 0.0;
            for (slot, expert) in experts.iter().enumerate() {
                let replicas = experts.iter().filter(|other| *other == expert).count() as f64;
                let here = slot / case.slots_of_pe / case.cores;
                let away = (0..case.nodes).filter(|node| *node != here);
                cross += away.map(|node| sources.rows[node][*expert as usize]).sum::<f64>() / replicas;
            }
            let found = costs.cross_node_tokens.expect("there are sources");
            prop_assert!((found - cross).abs() <= 1e-6 * cross.max(1.0), "{found} is not {cross}");
        }
    }

    #[test]
    fn eplb_fills_all_slots_and_makes_the_heaviest_replica_as_light_as_possible(case in cases()) {
        let (pes, slots) = (case.nodes * case.cores, case.request().slots);
        let plan = rebalance_experts(&case.loads.rows, slots, case.groups, case.nodes, pes).expect("a plan");
        for (layer, loads) in case.loads.rows.iter().enumerate() {
            let counts = &plan.counts[layer];
            prop_assert_eq!(counts.iter().sum::<usize>(), slots);
            for (expert, of_expert) in plan.logical_to_physical[layer].iter().enumerate() {
                prop_assert!(of_expert.len() == counts[expert] && !of_expert.is_empty());
                prop_assert!(of_expert.iter().all(|&slot| plan.physical_to_logical[layer][slot] == expert));
            }
            if case.groups == 1 {
                let heaviest = max(&loads.iter().zip(counts).map(|(load, &count)| load / count as f64).collect::<Vec<_>>());
                // With a lower limit, the experts need more slots.
                let needed: f64 = loads.iter().map(|load| (load / (heaviest * (1.0 - 1e-9))).ceil().max(1.0)).sum();
                prop_assert!(heaviest == 0.0 || needed > slots as f64, "{needed} of {slots}");
            }
        }
    }
}

#[test]
fn the_plan_is_the_same_on_any_number_of_threads() {
    let rows = (0..8).map(|layer| (0..64).map(|it| f64::from((it * it + 37 * layer) % 101 + 1)).collect());
    let loads = Numbers { rows: rows.collect() };
    let machine = topology::parse("flat:2*flat:4").expect("a machine");
    let request = Request::new(&loads, 72);
    let plan = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("threads");
        pool.install(|| place(&request, &*machine)).expect("a plan")
    };
    assert_eq!(plan(1), plan(5));
}

#[test]
fn impossible_requests_are_refused_with_a_remedy() {
    let loads = Numbers { rows: vec![vec![1.0; 12]] };
    let machine = topology::parse("flat:2*flat:4").expect("a machine");
    let check = |request: Request, expected: &str| {
        let error = place(&request, &*machine).expect_err(expected).to_string();
        assert!(error.contains(expected), "{error}");
    };
    check(Request::new(&loads, 8), "8 slots are fewer than 12 experts; use at least 16");
    check(
        Request::new(&loads, 15),
        "15 slots cannot be the same number on each of 8 PEs; use a multiple such as 16",
    );
    check(Request::new(&loads, 0), "use a multiple such as 16");
    check(Request::new(&loads, 104), "13 slots on a PE are more than the 12 that can be there");
    check(Request { groups: 5, ..Request::new(&loads, 16) }, "12 experts cannot form 5 groups");
    let previous = ReplicaPlan {
        topology: String::new(),
        experts: 12,
        physical_to_logical: vec![(0..12).chain(0..12).collect(); 2],
    };
    check(
        Request { previous: Some(&previous), ..Request::new(&loads, 16) },
        "found 2 layers with 24 slots and 12 experts, expected 1 layer with 24 slots",
    );
    let missing = ReplicaPlan {
        topology: String::new(),
        experts: 12,
        physical_to_logical: vec![(0..8).chain(0..8).collect()],
    };
    check(
        Request { previous: Some(&missing), ..Request::new(&loads, 16) },
        "in layer 0, expert 8 of 12 has no replica",
    );
    let sources = Numbers { rows: vec![vec![1.0; 12]; 3] };
    check(
        Request { sources: Some(&sources), ..Request::new(&loads, 16) },
        "found 3 rows of 12 numbers; give 2 rows of 12 numbers: a row per node",
    );
}

#[test]
fn an_expert_with_many_replicas_makes_room_for_another() {
    // Two heavy experts on the 8 PEs of a node: with the counts that make the lightest replicas (6 and 4), two PEs have both.
    let mut loads = vec![vec![0.01; 64]];
    loads[0][..4].copy_from_slice(&[5.225, 2.613, 0.373, 0.307]);
    let loads = Numbers { rows: loads };
    let machine = topology::parse("flat:8").expect("a machine");
    let request = Request::new(&loads, 72);
    let [plan, theirs] =
        [place(&request, &*machine), published(&request, &*machine)].map(|plan| plan.expect("a plan"));
    let [plan, theirs] = [plan, theirs].map(|plan| costs(&plan, &request, &*machine)[0].max_over_average);
    assert!(plan <= theirs + 1e-9, "{plan} is above {theirs}");
}

/// Plans for more and fewer PEs and slots than before: the rules hold, and moves are those to PEs that did not have the expert.
#[test]
fn plans_grow_and_shrink_with_the_machine() {
    let case = |nodes, slots_of_pe| {
        let row = |layer: usize| (0..12).map(|expert| 10.0 + (expert * (7 + layer) % 11) as f64).collect();
        Case { nodes, cores: 2, slots_of_pe, groups: 1, loads: Numbers { rows: (0..3).map(row).collect() } }
    };
    let before = case(3, 3);
    let plan = place(&before.request(), &*before.machine()).expect("a plan");
    for (nodes, slots, most) in [(4, 3, 10), (2, 4, 8), (6, 2, 16), (3, 4, 10), (3, 2, 4), (1, 12, 18)] {
        let now = case(nodes, slots);
        let request = Request { previous: Some(&plan), ..now.request() };
        let next = place(&request, &*now.machine()).expect("a plan");
        check_plan(&now, &next);
        let costs = costs(&next, &request, &*now.machine());
        for (layer, costs) in costs.iter().enumerate() {
            let had: Vec<&[u32]> = plan.physical_to_logical[layer].chunks(3).collect();
            let has = next.physical_to_logical[layer].chunks(slots).enumerate();
            let copied = has.map(|(pe, experts)| {
                experts.iter().filter(|expert| !had.get(pe).is_some_and(|had| had.contains(expert))).count()
            });
            let copied: usize = copied.sum();
            assert_eq!(costs.moves, Some(copied), "{nodes} nodes, {slots} slots, layer {layer}");
            // New slots are filled, and what was on PEs that are gone is copied; little else moves.
            assert!(copied <= most, "{nodes} nodes, {slots} slots, layer {layer}: {copied} copied");
        }
    }
    // Groups follow their nodes.
    let row = |layer: usize| (0..24).map(|expert| 10.0 + (expert * (5 + layer) % 13) as f64).collect();
    let grouped = |nodes| {
        let loads = Numbers { rows: (0..3).map(row).collect() };
        Case { nodes, cores: 2, slots_of_pe: 24 / nodes, groups: 4, loads }
    };
    for (nodes, next_nodes) in [(2, 4), (4, 2), (4, 4)] {
        let (before, now) = (grouped(nodes), grouped(next_nodes));
        let plan = place(&before.request(), &*before.machine()).expect("a plan");
        let request = Request { previous: Some(&plan), ..now.request() };
        let next = place(&request, &*now.machine()).expect("a plan");
        check_plan(&now, &next);
        let total = |plan: &ReplicaPlan| {
            costs(plan, &request, &*now.machine()).iter().filter_map(|costs| costs.moves).sum::<usize>()
        };
        let anew = place(&now.request(), &*now.machine()).expect("a plan");
        assert!(total(&next) <= total(&anew), "{nodes} to {next_nodes} nodes");
    }
    // A plan of another model is refused.
    let other = Case { loads: Numbers { rows: vec![vec![1.0; 13]; 3] }, ..case(3, 3) };
    let request = Request { previous: Some(&plan), ..other.request() };
    let error = place(&request, &*other.machine()).expect_err("13 experts").to_string();
    assert!(
        error.contains("expert 12 of 13 has no replica; give it a slot, or give a plan of this model"),
        "{error}"
    );
}
