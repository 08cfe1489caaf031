//! Every strategy by name: what `--balancer` understands, and the help and tables made from it.
//!
//! A spec is `NAME`, `NAME:key=value,key=value`, or a pipeline `A+B` whose strategies run one after
//! the other in one step, each on the placement the one before left. `+` and `,` are separators, so
//! no value can contain them.

use std::fmt::{self, Write as _};
use std::sync::Arc;

use crate::balance::{
    comm_aware_refine, distributed, dummy, file, greedy, greedy_comm, greedy_refine, metis_lb, random,
    rec_bipart, refine, refine_comm, refine_swap, rotate, tempered,
};
use crate::mapping::{
    contention_lb, hier_topo_map, lee_aggarwal, libtopomap, mcf_lb, refine_topolb, swap_lb, tmlb_min_weight,
    tmlb_tree_based, topocentlb, topolb, treematch, treematch_const,
};
pub use crate::params::{Param, ParamError, Params};
use crate::poise::balancer;
use crate::program::Model;
use crate::{Assignment, Database, Strategy, StrategyError, Topology};

/// Every strategy, in the order help lists them.
pub const ALL: &[&Named] = &[
    &greedy_refine::NAMED,
    &refine::NAMED,
    &refine_swap::NAMED,
    &greedy::NAMED,
    &greedy_comm::NAMED,
    &refine_comm::NAMED,
    &comm_aware_refine::NAMED,
    &metis_lb::NAMED,
    &rec_bipart::NAMED,
    &distributed::NAMED,
    &tempered::NAMED,
    &balancer::NAMED,
    &topolb::NAMED,
    &topocentlb::NAMED,
    &refine_topolb::NAMED,
    &hier_topo_map::NAMED,
    &libtopomap::NAMED,
    &contention_lb::NAMED,
    &lee_aggarwal::NAMED,
    &mcf_lb::NAMED,
    &swap_lb::NAMED,
    &treematch::NAMED,
    &treematch_const::NAMED,
    &tmlb_min_weight::NAMED,
    &tmlb_tree_based::NAMED,
    &file::NAMED,
    &random::NAMED,
    &rotate::NAMED,
    &dummy::NAMED,
];

/// A strategy as the command line knows it.
pub struct Named {
    /// Its name in a spec, as in Charm++.
    pub name: &'static str,
    /// Other names it is found by.
    pub aliases: &'static [&'static str],
    /// What it does and when to use it.
    pub help: &'static str,
    /// The keys it takes.
    pub params: &'static [Param],
    /// Whether it reads [`Database::edges`]; without such a strategy nobody need record them.
    pub needs_communication: bool,
    /// Makes it from its parameters, all of which it takes.
    pub make: fn(&mut Params) -> Result<Box<dyn Strategy>, ParamError>,
}

/// A strategy somebody chose.
#[derive(Clone)]
pub struct Choice {
    /// The spec as written; for a user's own strategy, its name.
    pub spec: String,
    /// The strategy.
    pub strategy: Arc<dyn Strategy>,
    /// Whether it reads [`Database::edges`].
    pub needs_communication: bool,
}

impl fmt::Debug for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Choice")
            .field("spec", &self.spec)
            .field("needs_communication", &self.needs_communication)
            .finish_non_exhaustive()
    }
}

/// The strategy of a spec.
///
/// `own` are a user's own strategies; they are found by their [`Choice::spec`], before the others.
///
/// # Errors
/// When the spec names an unknown strategy or key, or a value is not understood.
pub fn parse(spec: &str, own: &[Choice]) -> Result<Choice, ParamError> {
    let mut stages = Vec::new();
    for stage in spec.split('+') {
        stages.push(parse_one(stage.trim(), own)?);
    }
    let needs_communication = stages.iter().any(|stage| stage.needs_communication);
    let strategy: Arc<dyn Strategy> = match stages.as_slice() {
        [only] => only.strategy.clone(),
        _ => Arc::new(Pipeline { stages }),
    };
    Ok(Choice { spec: spec.trim().to_string(), strategy, needs_communication })
}

fn parse_one(spec: &str, own: &[Choice]) -> Result<Choice, ParamError> {
    if let Some(choice) = own.iter().find(|choice| choice.spec == spec) {
        return Ok(choice.clone());
    }
    let malformed =
        |reason: String| ParamError::Malformed { spec: spec.to_string(), what: "strategy", reason };
    let (name, rest) = spec.split_once(':').unwrap_or((spec, ""));
    if name.is_empty() {
        return Err(malformed("expected NAME or NAME:key=value,key=value".into()));
    }
    let Some(named) = ALL.iter().find(|named| named.name == name || named.aliases.contains(&name)) else {
        if own.iter().any(|choice| choice.spec == name) {
            return Err(malformed(format!("{name} is the program's own and takes no parameters here")));
        }
        let own_names = own.iter().map(|choice| choice.spec.as_str());
        let known: Vec<&str> = ALL.iter().map(|named| named.name).chain(own_names).collect();
        return Err(ParamError::unknown("strategy", name, &known));
    };
    let strategy = Params::serve(named.name, named.params, rest, named.make)?;
    Ok(Choice {
        spec: spec.to_string(),
        strategy: strategy.into(),
        needs_communication: named.needs_communication,
    })
}

/// Every strategy that can be used without being given anything, in the order of [`ALL`].
pub fn every() -> Vec<Choice> {
    let needs_nothing = |named: &&&Named| named.params.iter().all(|param| !param.default.is_empty());
    ALL.iter().filter(needs_nothing).filter_map(|named| parse(named.name, &[]).ok()).collect()
}

/// Strategies that run one after the other in one step.
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
    /// Asks every stage in turn, each with the placement that the one before left.
    fn run(
        &self,
        database: &Database,
        ask: impl Fn(&dyn Strategy, &Database) -> Result<Assignment, StrategyError>,
    ) -> Result<Assignment, StrategyError> {
        let mut current = database.clone();
        let mut notes = Vec::new();
        for Choice { spec, strategy, .. } in &self.stages {
            let answer =
                ask(&**strategy, &current).map_err(|error| error.map(|why| format!("{spec}: {why}")))?;
            // A later stage must be able to trust the placement it is given.
            answer.check(&current).map_err(|why| StrategyError::Mistake(format!("{spec}: {why}")))?;
            current = current.placed(&answer.pe_of);
            notes.extend(answer.notes.into_iter().map(|(name, value)| (format!("{spec} {name}"), value)));
        }
        Ok(Assignment { pe_of: current.placement(), notes })
    }
}

/// What `--balancer help` prints: every strategy, its parameters with defaults, when to use which.
pub fn help() -> String {
    let mut text = String::from(
        "A strategy is NAME or NAME:key=value,key=value; A+B runs B on what A left, in one step.\n",
    );
    for named in ALL {
        let _ = write!(text, "\n{}", named.name);
        for alias in named.aliases {
            let _ = write!(text, " (or {alias})");
        }
        let communication = if named.needs_communication { " Reads communication." } else { "" };
        let _ = writeln!(text, "\n    {}{communication}", named.help);
        for param in named.params {
            let (key, default, help) = (param.key, param.default, param.help);
            let required = if default.is_empty() { " (must be given)" } else { "" };
            let _ = writeln!(text, "    {key}={default}{required}: {help}");
        }
    }
    text
}

/// The Markdown table of the strategies.
pub fn table() -> String {
    let mut text =
        String::from("| strategy | what it does | parameters | reads communication |\n|---|---|---|---|\n");
    for named in ALL {
        let params: Vec<String> = named
            .params
            .iter()
            .map(|param| format!("`{}={}` {}", param.key, param.default, param.help))
            .collect();
        let reads = if named.needs_communication { "yes" } else { "no" };
        let _ = writeln!(text, "| `{}` | {} | {} | {reads} |", named.name, named.help, params.join("; "));
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
    fn what_is_wrong_with_a_spec_is_said_with_what_is_known() {
        check_error(
            "GreedyLb2",
            "there is no strategy `GreedyLb2` (did you mean `GreedyLB`?); known are GreedyRefineLB, ",
        );
        check_error("Quantum", "there is no strategy `Quantum`; known are GreedyRefineLB, ");
        check_error("", "expected NAME or NAME:key=value");
        check_error("GreedyLB+", "expected NAME or NAME:key=value");
        check_error("GreedyLB:imbalance=1", "GreedyLB takes no `imbalance`; it has no parameters");
        check_error(
            "RefineLB:balance=1",
            "RefineLB takes no `balance` (did you mean `imbalance`?); known are imbalance",
        );
        check_error("RefineLB:imbalance", "expected key=value, found `imbalance`");
        check_error("RefineLB:imbalance=1,imbalance=2", "`imbalance` is given twice");
        check_error(
            "RefineLB:imbalance=much",
            "RefineLB:imbalance=much is not understood: a number is expected",
        );
        check_error("RefineLB:imbalance=-0.1", "RefineLB:imbalance=-0.1 is not understood: the allowed");
        check_error("RefineLB:imbalance=NaN", "is a number of at least 0");
        check_error("RefineLB:imbalance=", "a value must be given");
    }

    #[test]
    fn a_pipeline_shows_each_strategy_what_the_one_before_left() {
        let database = database(4, &[(1.0, 0), (1.0, 1), (1.0, 2), (1.0, 3)]);
        let answer = assign("RotateLB+RotateLB + RotateLB", &database);
        assert_eq!(answer.map(|answer| answer.pe_of), Ok(vec![3, 0, 1, 2]));
    }

    /// Puts every object on a PE that does not exist.
    struct Wild;

    impl Strategy for Wild {
        fn assign(&self, database: &Database, _: &dyn Topology, _: u64) -> Result<Assignment, StrategyError> {
            Ok(Assignment { pe_of: vec![99; database.objects.len()], notes: vec![("luck".into(), 7.0)] })
        }
    }

    #[test]
    fn a_users_own_strategy_is_found_by_its_name() {
        let wild = Choice { spec: "WildLB".into(), strategy: Arc::new(Wild), needs_communication: true };
        let own = [wild];
        let choice = parse("WildLB", &own).expect("it was handed over");
        assert!(choice.needs_communication && choice.spec == "WildLB");
        let error = parse("WildLD", &own).expect_err("a typing error").to_string();
        assert!(error.contains("did you mean `WildLB`?"), "{error}");

        let error = parse("WildLB:luck=7", &own).expect_err("no parameters").to_string();
        assert!(error.contains("WildLB is the program's own and takes no parameters"), "{error}");

        let database = database(2, &[(1.0, 0)]);
        let flat = crate::topology::parse("flat:2").expect("a flat machine");
        let pipeline = parse("WildLB+GreedyLB", &own).expect("a pipeline");
        assert!(pipeline.needs_communication);
        let error = pipeline.strategy.assign(&database, &*flat, 0).expect_err("PE 99 does not exist");
        assert_eq!(error.to_string(), "WildLB: it put object 0 on PE 99, and there are only 2");
    }

    #[test]
    fn a_database_of_another_size_or_without_a_place_is_refused() {
        let mut database = database(2, &[(1.0, 0)]);
        let flat = crate::topology::parse("flat:3").expect("a flat machine");
        let strategy = parse("GreedyLB", &[]).expect("a strategy").strategy;
        let error = strategy.assign(&database, &*flat, 0).expect_err("2 is not 3").to_string();
        assert!(error.contains("the database has 2 PEs and `flat:3` has 3"), "{error}");
        database.pes.iter_mut().for_each(|pe| pe.available = false);
        let error = assign("GreedyLB", &database).expect_err("nobody takes objects").to_string();
        assert!(error.contains("no PE is available"), "{error}");
    }

    #[test]
    fn help_and_table_name_every_strategy_and_parameter() {
        for named in ALL {
            assert!(help().contains(&format!("\n{}", named.name)), "{}", named.name);
            assert!(table().contains(&format!("| `{}`", named.name)), "{}", named.name);
            for param in named.params {
                let (key, default) = (param.key, param.default);
                assert!(table().contains(&format!("`{key}={default}`")) && help().contains(key), "{key}");
            }
        }
    }

    #[test]
    fn names_are_unique() {
        let mut names: Vec<&str> =
            ALL.iter().flat_map(|n| n.aliases.iter().chain([&n.name])).copied().collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
    }
}
