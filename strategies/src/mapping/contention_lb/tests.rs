//! The strategy on programs with a known best mapping, and its gain over the greedy mapper.

use std::collections::BTreeSet;

use equipoise_model::{database, topology};
use equipoise_network::program::{
    self, Channel, Costs, OVERLAP, Program, ProgramSimulation, execute_on, generate, load,
};

use super::*;
use crate::registry;
use crate::testing::{assign_on, database};

/// The model of a program with tasks renumbered at random.
fn renumbered_model(program: &str, seed: u64) -> Model {
    let program = load(program).expect("a program");
    let renumbered = generate::renumbered(&program, &generate::permutation(program.tasks(), seed));
    Model::of(&renumbered, Costs::default(), OVERLAP).expect("it can be simulated")
}

/// The assignment of a program by the strategy of a spec.
fn mapped(model: &Model, machine: &str, spec: &str) -> Assignment {
    let (machine, choice) =
        (topology::parse(machine).expect(machine), registry::parse(spec, &[]).expect(spec));
    let database = model.database(machine.pes() as u32);
    choice.strategy.assign_program(model, &database, &*machine, 0).expect(spec)
}

const ALONE: &str = "ContentionLB:share=off";
const PAPER: &str = "ContentionLB:share=off,paper=on";

#[test]
fn a_program_on_a_part_of_a_large_machine_is_placed_without_detours() {
    let model = renumbered_model("ring:n=12", 3);
    let answer = mapped(&model, "torus:128x128", ALONE);
    assert_eq!(answer.check(&model.database(16384)), Ok(()));
    assert_eq!(extra_hops(&model, "torus:128x128", &answer.pe_of), 0);
}

/// The hops beyond the first of every channel, times its messages.
fn extra_hops(model: &Model, machine: &str, places: &[u32]) -> u64 {
    let machine = topology::parse(machine).expect("a machine");
    let place = |task: u32| places[task as usize] as usize;
    let of = |it: &Channel| {
        it.messages * u64::from(machine.distance(place(it.from), place(it.to)).saturating_sub(1))
    };
    model.channels.iter().map(of).sum()
}

#[test]
fn regular_programs_are_embedded_optimally() {
    for (program, machine) in [
        ("mesh:sizes=7x7", "mesh:7x7"),
        ("mesh:sizes=8x8", "mesh:8x8"),
        ("mesh:sizes=4x4", "hypercube:4"),
        ("mesh:sizes=8x8", "hypercube:6"),
        ("mesh:sizes=16x8", "hypercube:7"),
        ("ring:n=64", "hypercube:6"),
        ("ring:n=64", "mesh:8x8"),
        ("ring:n=64", "mesh:4x4x4"),
        ("ring:n=27", "torus:3x3x3"),
        ("ring:n=25", "torus:5x5"),
        ("butterfly:n=32,iterations=1", "hypercube:5"),
        ("butterfly:n=64,iterations=1", "hypercube:6"),
    ] {
        let model = renumbered_model(program, 1);
        let places = mapped(&model, machine, ALONE).pe_of;
        assert_eq!(extra_hops(&model, machine, &places), 0, "{program} on {machine}: {places:?}");
    }
}

#[test]
fn meshes_are_embedded_in_meshes_with_the_same_sides() {
    for (size, numberings) in [("4x32", 4), ("6x60", 2), ("8x50", 2), ("8x98", 1)] {
        for seed in 0..numberings {
            let model = renumbered_model(&format!("mesh:sizes={size},iterations=1"), seed);
            let machine = format!("mesh:{size}");
            let places = mapped(&model, &machine, ALONE).pe_of;
            assert_eq!(extra_hops(&model, &machine, &places), 0, "{size}, numbering {seed}");
        }
    }
}

#[test]
fn the_best_of_several_placements_has_fewer_hops_than_the_run_of_the_paper() {
    // Programs, machines, and the maximum of extra hops. Process i on PE i has 512 extra hops in the first case, and
    // 5632 in the second.
    for (program, machine, most) in [
        ("butterfly:n=64,iterations=1", "mesh:8x8", 512),
        ("butterfly:n=256,iterations=1", "mesh:16x16", 5632),
        ("tree:n=127", "mesh:16x8", 80),
        ("mesh:sizes=8x8,iterations=1", "hypercube:6", 0),
    ] {
        let model = renumbered_model(program, 1);
        let hops = |spec| {
            let Assignment { pe_of, notes, .. } = mapped(&model, machine, spec);
            assert_eq!(pe_of.iter().collect::<BTreeSet<_>>().len(), model.tasks.len(), "{program}");
            let runs = notes.iter().find(|it| it.name == "runs").expect("a note").value;
            assert!((spec == PAPER) == (runs == 1.0), "{program}: {runs} runs");
            extra_hops(&model, machine, &pe_of)
        };
        let (one, best) = (hops(PAPER), hops(ALONE));
        assert!(best <= most && best < one, "{program} on {machine}: {best}, with one run {one}");
    }
}

#[test]
fn executing_placements_with_similar_estimates_finds_a_better_one() {
    let mut earlier = 0;
    for (program, machine) in
        [("elimination:n=8", "hypercube:3"), ("tree:n=15", "mesh:4x4"), ("random:n=16,degree=3", "mesh:4x4")]
    {
        let program = load(program).expect("a program");
        let topology = topology::parse(machine).expect("a machine");
        let simulation = ProgramSimulation::new(&program, &topology, Costs::default());
        let model = Model::of(&program, Costs::default(), OVERLAP).expect("it can be simulated");
        let end = |model: &Model| {
            simulation
                .prepare()
                .and_then(|it| it.cycles(&mapped(model, machine, ALONE).pe_of))
                .expect("a mesh can be simulated")
        };
        let (untried, tried) = (end(&model), end(&model.clone().with_simulation(simulation.clone())));
        assert!(tried <= untried, "{program:?}: {tried} and {untried}");
        earlier += usize::from(tried < untried);
    }
    assert!(earlier > 0, "executing the program improves no placement");
}

#[test]
fn programs_that_take_long_are_not_executed() {
    let tried = |program: &Program, machine: &str| {
        let machine = topology::parse(machine).expect("a machine");
        let model = Model::of(program, Costs::default(), OVERLAP).expect("it can be simulated");
        let simulation = ProgramSimulation::new(program, &machine, Costs::default());
        max_executions(&model.with_simulation(simulation))
    };
    let tree = load("tree:n=31").expect("a program");
    assert!(tried(&tree, "mesh:8x4") > 30);
    assert_eq!(tried(&tree, "mesh:45x45"), 0, "the routes between all pairs are walked");
    let busy = |process: u32, other: u32| {
        format!(
            "PROCESS {process}\nREPEAT 4000000\nINT_OP 1\nEND\nSEND {other} 64\nRECEIVE {other} 64\nSTOP\n"
        )
    };
    let busy = program::parse(&(busy(0, 1) + &busy(1, 0))).expect("a program");
    assert_eq!(tried(&busy, "mesh:2"), 0, "all instructions are executed");
}

#[test]
fn a_pe_that_is_the_end_of_an_edge_also_receives_a_task() {
    let mut database = database(4, &[(1.0, 0), (1.0, 1), (1.0, 2), (1.0, 3)]);
    let (object, pe) = (database::End::Object, database::End::Pe);
    let edge = |from, to| database::Edge { from, to, messages: 1, bytes: 1000 };
    database.edges = vec![edge(object(0), pe(3)), edge(object(0), object(1)), edge(object(1), object(2))];
    let places = assign_on("ContentionLB", &database, "mesh:4").expect("an assignment").pe_of;
    assert_eq!(places.iter().collect::<BTreeSet<_>>().len(), 4, "{places:?}");
}

#[test]
fn non_migratable_objects_attract_their_partners() {
    let mut database = database(9, &[(1.0, 0), (1.0, 8), (1.0, 0)]);
    database.objects[1].migratable = false;
    let end = database::End::Object;
    database.edges = vec![database::Edge { from: end(0), to: end(1), messages: 1, bytes: 1000 }];
    let places = assign_on("ContentionLB", &database, "mesh:3x3").expect("an assignment").pe_of;
    assert!(places[1] == 8 && (places[0] == 5 || places[0] == 7), "{places:?}");
    assert_eq!(places.iter().collect::<BTreeSet<_>>().len(), 3, "{places:?}");
}

/// The first two programs may end sooner on one PE or in the present placement. The third one saturates links, which F
/// does not include.
#[test]
fn a_program_that_can_be_executed_ends_no_later_than_in_the_present_placement_or_with_shared_pes() {
    for (program, machine) in [
        ("broadcast:n=8,flits=64,work=8", "hypercube:3"),
        ("tree:n=7,flits=64,work=8", "hypercube:3"),
        ("random:n=16,ratio=0,flits=256", "mesh:4x4"),
    ] {
        let known = load(program).expect(program);
        let topology = topology::parse(machine).expect(machine);
        let model = Model::of(&known, Costs::default(), OVERLAP).expect(program);
        let model = model.with_simulation(ProgramSimulation::new(&known, &topology, Costs::default()));
        let end = |spec: &str, start: Option<u32>| {
            let mut database = model.database(topology.pes() as u32);
            if let Some(pe) = start {
                database = database.placed(&vec![pe; known.tasks()]);
            }
            let strategy = registry::parse(spec, &[]).expect(spec).strategy;
            let answer = strategy.assign_program(&model, &database, &*topology, 0).expect(program);
            let shared = answer.pe_of.iter().collect::<BTreeSet<_>>().len() < known.tasks();
            let run = execute_on(&known, &topology, &answer.pe_of, Costs::default());
            (run.expect(program).cycles, shared)
        };
        let (best, _) = end("ContentionLB", None);
        let alone = end(ALONE, Some(0));
        let on_one = end("ContentionLB", Some(0)).0;
        let paper = end("ContentionLB:paper=on", None).0;
        assert!(
            best <= paper && best <= alone.0 && on_one <= best,
            "{program}: {best} {paper} {alone:?} {on_one}"
        );
        assert!(!alone.1, "{program}");
    }
}
