//! The registry of strategies: parses the specs of `--balancer` and generates its help.
//!
//! A spec is `NAME`, `NAME:key=value,key=value`, or a pipeline `A+B`. The strategies of a pipeline run in sequence in one
//! step, each on the placement of the strategy before. `+` and `,` are separators, so values cannot contain them, except in
//! square brackets: a value may be a whole spec, as in `HierLB:node=[PoiseLB:quality=fast],root=[GreedyLB+RefineLB]`.

use std::fmt::Write as _;
use std::sync::Arc;

use equipoise_model::assignment::Note;
use equipoise_model::descriptor::{self, Descriptor};
use equipoise_model::params::{ParamError, Params, split_outside_brackets};
use equipoise_model::{Assignment, Database, Topology};
use equipoise_network::program::Model;

use crate::auto::{self, Candidate};
use crate::balance::{
    comm_aware_refine, distributed, dummy, file, greedy, greedy_comm, greedy_refine, hier, metis_lb, random,
    rec_bipart, refine, refine_comm, refine_swap, rotate, tempered,
};
use crate::descriptor::{Choice, Recipe};
use crate::mapping::{
    contention_lb, hier_topo_map, lee_aggarwal, libtopomap, mcf_lb, refine_topolb, swap_lb, tmlb_min_weight,
    tmlb_tree_based, topocentlb, topolb, treematch, treematch_const,
};
use crate::poise::{self, PoiseLb, Quality};
use crate::{Strategy, StrategyError};

/// Every strategy, in the order of the help.
pub const ALL: &[&Descriptor<Recipe>] = &[
    &greedy_refine::NAMED,
    &refine::NAMED,
    &refine_swap::NAMED,
    &greedy::NAMED,
    &greedy_comm::NAMED,
    &refine_comm::NAMED,
    &comm_aware_refine::NAMED,
    &metis_lb::NAMED,
    &rec_bipart::NAMED,
    &HIER_LB,
    &distributed::NAMED,
    &tempered::NAMED,
    &poise::NAMED,
    &topolb::NAMED,
    &topocentlb::NAMED,
    &refine_topolb::NAMED,
    &hier_topo_map::NAMED,
    &libtopomap::NAMED,
    &CONTENTION_LB,
    &lee_aggarwal::NAMED,
    &mcf_lb::NAMED,
    &swap_lb::NAMED,
    &treematch::NAMED,
    &treematch_const::NAMED,
    &tmlb_min_weight::NAMED,
    &tmlb_tree_based::NAMED,
    &AUTO_LB,
    &file::NAMED,
    &random::NAMED,
    &rotate::NAMED,
    &dummy::NAMED,
];

/// `ContentionLB` with the placement of `PoiseLB` as an additional candidate, because the cost of `PoiseLB` includes the
/// bytes on saturated links and `PoiseLB` maps trees well.
const CONTENTION_LB: Descriptor<Recipe> = Descriptor {
    item: Recipe {
        make: |params| {
            let poise = PoiseLb { quality: Quality::Fast, gamma: Some(0.0), ..PoiseLb::default() };
            contention_lb::make(params, vec![Arc::new(poise)])
        },
        ..contention_lb::NAMED.item
    },
    ..contention_lb::NAMED
};

/// `AutoLB` with its candidates. The seconds per object were measured on steps of 500 to 4,000 objects.
const AUTO_LB: Descriptor<Recipe> = Descriptor {
    item: Recipe {
        make: |params| {
            let candidates = [
                ("GreedyRefineLB", 4e-7),
                ("RefineLB", 6e-7),
                ("CommAwareRefineLB", 1e-6),
                ("PoiseLB:quality=fast", 3e-5),
            ];
            let candidates = candidates.into_iter().map(|(spec, seconds_per_object)| {
                Ok(Candidate { choice: parse_part(spec, &[])?, seconds_per_object })
            });
            let candidates = candidates.collect::<Result<_, ParamError>>()?;
            auto::make(params, candidates)
        },
        ..auto::NAMED.item
    },
    ..auto::NAMED
};

/// `HierLB` with the parser of the strategies that it names. What both defaults allow adds up to about the 3 % of one.
const HIER_LB: Descriptor<Recipe> = Descriptor {
    params: &hier::params("[GreedyRefineLB:imbalance=0.02]", "[GreedyRefineLB:imbalance=0.01]"),
    item: Recipe { make: |params| hier::make(params, |spec| parse_part(spec, &[])), ..hier::NAMED.item },
    ..hier::NAMED
};

/// `PoiseLB` as the only strategy of a step. A part of a step, as a stage of a pipeline, inside of nodes or as a candidate, is no record of a period,
/// by which it could predict what a search is worth.
const POISE_ALONE: Descriptor<Recipe> =
    Descriptor { item: Recipe { make: poise::make_alone, ..poise::NAMED.item }, ..poise::NAMED };

/// Pairs of an alias and the name in [`ALL`].
pub const ALIASES: &[(&str, &str)] = &[("RandCentLB", "RandomLB"), ("auto", "AutoLB")];

/// The load balancers of Charm++ that are not available, and what to use instead.
const OF_CHARM: &[(&str, &str)] = &[
    ("TreeLB", "GreedyRefineLB, the strategy that TreeLB runs at the root of its tree, or HierLB"),
    ("HybridLB", "HierLB"),
    ("HierarchicalLB", "HierLB"),
    ("GreedyRefineCentralLB", "GreedyRefineLB"),
    ("GreedyCentralLB", "GreedyLB"),
    ("NeighborLB", "DistributedLB"),
    ("NeighborCommLB", "DistributedLB"),
    ("WSLB", "DistributedLB"),
    ("DiffusionLB", "RefineCommLB, or DistributedLB for many PEs"),
    ("CommLB", "GreedyCommLB"),
    ("ComboCentLB", "A+B, which runs A and then B in one step, as in GreedyLB+RefineLB"),
    ("ScotchLB", "MetisLB"),
    ("ScotchRefineLB", "RefineCommLB"),
    ("ScotchTopoLB", "PoiseLB"),
    ("ZoltanLB", "MetisLB"),
    ("GraphPartLB", "MetisLB"),
    ("GraphBFTLB", "MetisLB"),
    ("TeamLB", "MetisLB"),
    ("RecBisectBfLB", "RecBipartLB"),
    ("OrbLB", "RecBipartLB; positions of objects are not recorded"),
    ("TreeMatchLB", "TreeMatch"),
    ("GreedyAgentLB", "PoiseLB"),
    ("GridCommLB", "PoiseLB; describe the grid with --topology"),
    ("GridCommRefineLB", "PoiseLB; describe the grid with --topology"),
    ("GridMetisLB", "PoiseLB; describe the grid with --topology"),
    ("GridHybridLB", "PoiseLB; describe the grid with --topology"),
    ("RefineKLB", "RefineLB"),
    ("RandRefLB", "RandomLB+RefineLB"),
    ("TempAwareRefineLB", "RefineLB; temperatures are not measured"),
    ("TempAwareCommLB", "RefineCommLB; temperatures are not measured"),
    ("TempAwareGreedyLB", "GreedyLB; temperatures are not measured"),
    ("NullLB", "DummyLB, or leave out the load balancer"),
    ("BlockLB", "FileLB with a file that places the objects in blocks"),
];

/// The entry of [`ALL`] with this name or alias.
pub fn find(name: &str) -> Option<&'static Descriptor<Recipe>> {
    let name = ALIASES.iter().find(|(alias, _)| *alias == name).map_or(name, |(_, name)| name);
    ALL.iter().copied().find(|named| named.name == name)
}

/// The strategy of a spec.
///
/// `custom` are strategies of the program. They are looked up by [`Choice::spec`] and take precedence over [`ALL`].
///
/// # Errors
/// If the spec has an unknown strategy, an unknown key or an invalid value.
pub fn parse(spec: &str, custom: &[Choice]) -> Result<Choice, ParamError> {
    if stages_of(spec).count() == 1 {
        return parse_one(spec.trim(), custom, |named| {
            if named.name == poise::NAMED.name { &POISE_ALONE } else { named }
        });
    }
    parse_part(spec, custom)
}

/// As [`parse`], for a part of what decides in a step.
fn parse_part(spec: &str, custom: &[Choice]) -> Result<Choice, ParamError> {
    let mut stages = Vec::new();
    for stage in stages_of(spec) {
        stages.push(parse_one(stage, custom, |named| named)?);
    }
    let needs_communication = stages.iter().any(|stage| stage.needs_communication);
    let strategy: Arc<dyn Strategy> = match stages.as_slice() {
        [only] => only.strategy.clone(),
        _ => Arc::new(Pipeline { stages }),
    };
    Ok(Choice { spec: spec.trim().to_string(), strategy, needs_communication })
}

/// The specs of the strategies of a pipeline.
fn stages_of(spec: &str) -> impl Iterator<Item = &str> {
    split_outside_brackets(spec, '+').map(str::trim)
}

/// The spec with `key=value` in each of its strategies that has this parameter and does not set it; none if no strategy
/// has it.
pub fn with_default(spec: &str, key: &str, value: impl std::fmt::Display) -> Option<String> {
    let has_key =
        |name: &str| find(name).is_some_and(|named| named.params.iter().any(|param| param.key == key));
    let stages = || stages_of(spec).map(descriptor::split);
    let stage = |(name, rest): (&str, &str)| match (has_key(name), rest) {
        (true, rest) => format!("{name}:{}", Params::with_default(rest, key, &value)),
        (false, "") => name.to_string(),
        (false, rest) => format!("{name}:{rest}"),
    };
    stages().any(|(name, _)| has_key(name)).then(|| stages().map(stage).collect::<Vec<_>>().join("+"))
}

/// The strategy of a spec without stages, made by `form` of its entry in [`ALL`].
fn parse_one(
    spec: &str,
    custom: &[Choice],
    form: fn(&'static Descriptor<Recipe>) -> &'static Descriptor<Recipe>,
) -> Result<Choice, ParamError> {
    if let Some(choice) = custom.iter().find(|choice| choice.spec == spec) {
        return Ok(choice.clone());
    }
    let malformed =
        |reason: String| ParamError::Malformed { spec: spec.to_string(), what: "strategy", reason };
    let mut others = split_outside_brackets(spec, ',').skip(1).map(|other| descriptor::split(other.trim()).0);
    if others.any(|other| find(other).is_some()) {
        let reason = "it names several strategies; give them one by one, or join those of one step with `+`";
        return Err(malformed(reason.into()));
    }
    let (name, rest) = descriptor::split(spec);
    if name.is_empty() {
        return Err(malformed("expected NAME or NAME:key=value,key=value".into()));
    }
    let Some(named) = find(name) else {
        if custom.iter().any(|choice| choice.spec == name) {
            return Err(malformed(format!("{name} is a strategy of the program and takes no parameters")));
        }
        if let Some(&(name, instead)) = OF_CHARM.iter().find(|(of_charm, _)| *of_charm == name) {
            return Err(ParamError::OfCharm { what: "strategy", name, instead });
        }
        let custom_names = custom.iter().map(|choice| choice.spec.as_str());
        let known: Vec<&str> = ALL.iter().map(|named| named.name).chain(custom_names).collect();
        return Err(ParamError::unknown("strategy", name, &known, &known));
    };
    let strategy = Params::parse_with(named.name, named.params, rest, form(named).item.make)?;
    Ok(Choice {
        spec: spec.to_string(),
        strategy: strategy.into(),
        needs_communication: named.item.needs_communication,
    })
}

/// The strategies without required parameters, in the order of [`ALL`].
pub fn without_required_parameters() -> Vec<Choice> {
    let all_have_defaults =
        |named: &&&Descriptor<Recipe>| named.params.iter().all(|param| !param.default.is_empty());
    ALL.iter().filter(all_have_defaults).filter_map(|named| parse(named.name, &[]).ok()).collect()
}

/// Strategies that run in sequence in one step.
struct Pipeline {
    stages: Vec<Choice>,
}

impl Strategy for Pipeline {
    fn assign(
        &self,
        database: &Database,
        topology: &dyn Topology,
        seed: u64,
    ) -> Result<Assignment, StrategyError> {
        self.run(database, |strategy, current| strategy.assign(current, topology, seed))
    }

    fn assign_program(
        &self,
        model: &Model,
        database: &Database,
        topology: &dyn Topology,
        seed: u64,
    ) -> Result<Assignment, StrategyError> {
        self.run(database, |strategy, current| strategy.assign_program(model, current, topology, seed))
    }
}

impl Pipeline {
    /// Runs the stages in sequence, each on the placement of the stage before.
    fn run(
        &self,
        database: &Database,
        run_stage: impl Fn(&dyn Strategy, &Database) -> Result<Assignment, StrategyError>,
    ) -> Result<Assignment, StrategyError> {
        let mut current = database.clone();
        let mut notes = Vec::new();
        // Sentences are dropped: they compare placements before and after one stage, not the whole pipeline.
        for Choice { spec, strategy, .. } in &self.stages {
            let answer = run_stage(&**strategy, &current)
                .map_err(|error| error.map(|why| format!("{spec}: {why}")))?;
            // Later stages rely on a valid placement.
            answer.check(&current).map_err(|impossible| StrategyError::rejected(spec, impossible))?;
            current = current.placed(&answer.pe_of);
            notes.extend(
                answer.notes.into_iter().map(|note| Note::new(format!("{spec} {}", note.name), note.value)),
            );
        }
        Ok(Assignment { notes, ..Assignment::new(current.placement()) })
    }
}

/// The output of `--balancer help`: every strategy with its use, and its parameters with their defaults.
pub fn help() -> String {
    let mut text = String::from(
        "A strategy is NAME or NAME:key=value,key=value; A+B runs A, then B on the placement of A, in one step.\n\
         A value that is a strategy is in square brackets, as in key=[NAME:key=value].\n",
    );
    for named in ALL {
        let mut title = named.name.to_owned();
        for (alias, _) in ALIASES.iter().filter(|(_, name)| *name == named.name) {
            let _ = write!(title, " (or {alias})");
        }
        if named.item.needs_communication {
            title += " (reads communication)";
        }
        let _ = write!(text, "\n{}", named.entry(&title));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{assign, database};

    #[track_caller]
    fn check_error(spec: &str, expected: &str) {
        let error = parse(spec, &[]).expect_err(expected).to_string();
        assert!(error.contains(expected), "`{error}` does not contain `{expected}`");
    }

    #[test]
    fn errors_in_specs_list_the_known_names() {
        check_error(
            "GreedyLb2",
            "there is no strategy `GreedyLb2` (did you mean `GreedyLB`?); known are GreedyRefineLB, ",
        );
        check_error("Quantum", "there is no strategy `Quantum`; known are GreedyRefineLB, ");
        check_error("", "expected NAME or NAME:key=value");
        check_error("GreedyLB+", "expected NAME or NAME:key=value");
        check_error("GreedyLB,RefineLB", "it names several strategies; give them one by one");
        check_error("RefineLB:imbalance=0.1, PoiseLB:gamma=0", "it names several strategies");
        check_error("GreedyLB:imbalance=1", "GreedyLB has no parameter `imbalance`; it has no parameters");
        check_error(
            "RefineLB:balance=1",
            "RefineLB has no parameter `balance` (did you mean `imbalance`?); known are imbalance",
        );
        check_error("RefineLB:imbalance", "expected key=value, found `imbalance`");
        check_error("RefineLB:imbalance=1,imbalance=2", "`imbalance` is given twice");
        check_error(
            "RefineLB:imbalance=much",
            "RefineLB:imbalance=much is not understood: expected a number",
        );
        check_error("RefineLB:imbalance=-0.1", "RefineLB:imbalance=-0.1 is not understood: the allowed");
        check_error("RefineLB:imbalance=NaN", "is a number from 0 to 1000000000");
        check_error("RefineLB:imbalance=", "a value must be given");
        check_error("HierLB:root=GreedyLB", "expected a spec in square brackets, as in root=[NAME]");
        check_error("HierLB:root=[GreedyLB,node=[RefineLB]", "expected a spec in square brackets");
        check_error("HierLB:root=[GreedyLb]", "did you mean `GreedyLB`?");
        check_error("HierLB:pes=0", "expected `auto` or a number from 1 to ");
    }

    #[test]
    fn a_load_balancer_of_charm_that_is_not_available_has_an_alternative() {
        check_error("TreeLB", "the strategy `TreeLB` of Charm++ is not available; use GreedyRefineLB, the ");
        check_error(
            "GreedyLB+OrbLB:x=1",
            "the strategy `OrbLB` of Charm++ is not available; use RecBipartLB",
        );
        for (name, instead) in OF_CHARM {
            assert!(find(name).is_none(), "{name} is available");
            let words = instead.split(|letter: char| !letter.is_alphanumeric());
            let mut strategies =
                words.filter(|word| word.len() > 2 && word.ends_with("LB") || *word == "TreeMatch");
            assert!(strategies.clone().count() > 0, "{instead}");
            assert!(strategies.all(|word| find(word).is_some() || word == *name), "{instead}");
        }
    }

    #[test]
    fn a_strategy_in_a_pipeline_starts_from_the_placement_of_the_one_before() {
        let database = database(4, &[(1.0, 0), (1.0, 1), (1.0, 2), (1.0, 3)]);
        let answer = assign("RotateLB+RotateLB + RotateLB", &database);
        assert_eq!(answer.map(|answer| answer.pe_of), Ok(vec![3, 0, 1, 2]));
    }

    #[test]
    fn values_in_brackets_are_whole_specs() {
        let inner = "RefineLB:imbalance=0.1+HierLB:node=[GreedyLB+RotateLB],root=[GreedyLB]";
        let spec = format!("HierLB:node=[{inner}],pes=2,root=[RotateLB]+RotateLB");
        assert_eq!(parse(&spec, &[]).map(|choice| choice.spec), Ok(spec.clone()));
        assert_eq!(stages_of(&spec).count(), 2);
        let of = |spec| with_default(spec, "imbalance", 1);
        assert_eq!(of("HierLB:node=[RefineLB]"), None);
        assert_eq!(
            of("HierLB:node=[RefineLB]+RefineLB").as_deref(),
            Some("HierLB:node=[RefineLB]+RefineLB:imbalance=1")
        );
    }

    /// Puts every object on a PE that does not exist.
    struct OutOfRange;

    impl Strategy for OutOfRange {
        fn assign(&self, database: &Database, _: &dyn Topology, _: u64) -> Result<Assignment, StrategyError> {
            Ok(Assignment::new(vec![99; database.objects.len()]))
        }
    }

    #[test]
    fn a_custom_strategy_is_found_by_its_name() {
        let choice =
            Choice { spec: "CustomLB".into(), strategy: Arc::new(OutOfRange), needs_communication: true };
        let custom = [choice];
        let choice = parse("CustomLB", &custom).expect("it is a custom strategy");
        assert!(choice.needs_communication && choice.spec == "CustomLB");
        let error = parse("CustomLD", &custom).expect_err("a typing error").to_string();
        assert!(error.contains("did you mean `CustomLB`?"), "{error}");

        let error = parse("CustomLB:key=7", &custom).expect_err("no parameters").to_string();
        assert!(error.contains("CustomLB is a strategy of the program and takes no parameters"), "{error}");

        let database = database(2, &[(1.0, 0)]);
        let flat = equipoise_model::topology::parse("flat:2").expect("a flat machine");
        let pipeline = parse("CustomLB+GreedyLB", &custom).expect("a pipeline");
        assert!(pipeline.needs_communication);
        let error = pipeline.strategy.assign(&database, &*flat, 0).expect_err("PE 99 does not exist");
        let expected =
            "the assignment of CustomLB was rejected: object 0 is on PE 99, but there are 2 PEs (0 and 1)";
        assert!(error.to_string().starts_with(expected), "{error}");
    }

    #[test]
    fn refuses_a_database_of_another_size_or_without_available_pes() {
        let mut database = database(2, &[(1.0, 0)]);
        let flat = equipoise_model::topology::parse("flat:3").expect("a flat machine");
        let strategy = parse("GreedyLB", &[]).expect("a strategy").strategy;
        let error = strategy.assign(&database, &*flat, 0).expect_err("2 is not 3").to_string();
        assert!(error.contains("the database has 2 PEs and `flat:3` has 3"), "{error}");
        database.pes.iter_mut().for_each(|pe| pe.available = false);
        let error = assign("GreedyLB", &database).expect_err("no PE is available").to_string();
        assert!(error.contains("no PE is available"), "{error}");
    }

    #[test]
    fn help_names_every_strategy_and_parameter() {
        for named in ALL {
            assert!(help().contains(&format!("\n{}", named.name)), "{}", named.name);
            for param in named.params {
                let (key, default) = (param.key, param.default);
                assert!(help().contains(&format!("    {key}={default}")), "{key}");
            }
        }
    }

    #[test]
    fn names_are_unique() {
        let mut names: Vec<&str> =
            ALL.iter().map(|named| named.name).chain(ALIASES.iter().map(|it| it.0)).collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
    }
}
