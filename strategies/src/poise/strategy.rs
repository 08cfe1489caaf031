//! `PoiseLB` as a registered strategy: its parameters, and the call of the phases.

use equipoise_model::params::{Param, ParamError, Params};
use equipoise_model::{Assignment, Database, Topology};

use super::machine::Distances;
use super::machine::timed::Timed;
use super::objective::{MAX_GAMMA, measured_gamma, migration_costs};
use super::problem::Problem;
use super::quick::{IfItPays, seconds_per_object};
use super::report::report;
use super::settings::{Quality, Settings};
use super::{Solver, between};
use crate::descriptor::Recipe;
use crate::near_pes::OnPart;
use crate::strategy::{Alternatives, check};
use crate::{Strategy, StrategyError};
use equipoise_model::descriptor::Descriptor;

/// `PoiseLB` for the registry.
pub const NAMED: Descriptor<Recipe> = Descriptor {
    name: "PoiseLB",
    form: "",
    help: "Few hops, balanced loads and few migrations together: bisects machine and objects recursively, \
           refines after every cut, and compares that with refining the present placement. For any machine, \
           up to millions of objects. Where links have different bandwidths, it counts the time of bytes on links \
           instead of hops, on machines of up to 1024 PEs. As the only strategy of a step whose costs of \
           messages are known, it places objects by loads and messages only if a search is not expected to save what it thinks.",
    params: &[
        Param { key: "quality", default: "default", help: "search effort: `fast`, `default` or `best`" },
        Param::imbalance("0.03"),
        Param {
            key: "gamma",
            default: "auto",
            help: "cost of moving one byte of an object, in hop-bytes, at most 1e9; 0: moves are free; `auto`: from the \
                   measured costs of migrations and the time that PEs wait for messages, 1 if these are unknown, 0 for a task graph",
        },
        Param {
            key: "restarts",
            default: "auto",
            help: "number of mappings from scratch, 1 to 1000; the best is kept; `auto`: 1, and 3 for the best quality",
        },
        Param {
            key: "links",
            default: "off",
            help: "`on`: at the end, reduce the time of the busiest link, for at most 1 % more hop-bytes, or time of all links where bandwidths differ",
        },
    ],
    item: Recipe {
        needs_communication: true,
        make: |params: &mut Params| Ok(Box::new(OnPart(PoiseLb::take(params)?))),
    },
};

/// Makes the strategy for a step that has no other one: a search that cannot pay for its thinking is left out, unless the parameters say
/// what to weigh or how long to search.
pub(crate) fn make_alone(params: &mut Params) -> Result<Box<dyn Strategy>, ParamError> {
    let poise = PoiseLb::take(params)?;
    let is_told = poise.gamma.is_some() || poise.restarts.is_some() || poise.links;
    let PoiseLb { quality, imbalance, .. } = poise;
    Ok(match seconds_per_object(quality) {
        Some(seconds_per_object) if !is_told => {
            Box::new(IfItPays { search: OnPart(poise), seconds_per_object, imbalance })
        }
        _ => Box::new(OnPart(poise)),
    })
}

/// The maximum number of restarts; larger values are rejected, since further restarts hardly improve the result.
const MAX_RESTARTS: usize = 1000;

/// The strategy that combines hops, loads and migrations.
#[derive(Clone, Copy, Debug)]
pub struct PoiseLb {
    /// The search effort.
    pub quality: Quality,
    /// Allowed max/avg - 1.
    pub imbalance: f64,
    /// The cost of moving one byte, in hop-bytes; `None`: from measured costs, 1 if these are unknown, 0 for a task graph.
    pub gamma: Option<f64>,
    /// The number of mappings from scratch; `None`: the number of the quality preset.
    pub restarts: Option<usize>,
    /// Whether the load of the busiest link is reduced at the end.
    pub links: bool,
}

impl Default for PoiseLb {
    fn default() -> Self {
        PoiseLb { quality: Quality::Default, imbalance: 0.03, gamma: None, restarts: None, links: false }
    }
}

impl Strategy for PoiseLb {
    fn assign(
        &self,
        database: &Database,
        topology: &dyn Topology,
        seed: u64,
    ) -> Result<Assignment, StrategyError> {
        self.assign_with(self.quality.settings(), database, topology, seed)
    }

    fn alternatives(
        &self,
        database: &Database,
        topology: &dyn Topology,
        seed: u64,
        is_enough: &dyn Fn(&Assignment) -> bool,
    ) -> Result<Alternatives, StrategyError> {
        let mut others = Vec::new();
        let settings = self.quality.settings();
        let answer =
            self.solve(settings, database, topology, seed, |solver, problem, block_of, answer| {
                if !is_enough(answer) {
                    let placements = between::placements(solver, problem, block_of);
                    others =
                        placements.iter().map(|block_of| problem.placement(database, block_of)).collect();
                }
            })?;
        Ok(Alternatives { answer, others })
    }
}

impl PoiseLb {
    /// The strategy with these parameters.
    fn take(params: &mut Params) -> Result<PoiseLb, ParamError> {
        let gamma = match params.take::<String>("gamma")?.as_str() {
            "auto" => None,
            text => match text.parse::<f64>() {
                Ok(gamma) if (0.0..=MAX_GAMMA).contains(&gamma) => Some(gamma),
                _ => {
                    let expected = format!("expected `auto` or a number from 0 to {MAX_GAMMA}");
                    return Err(params.bad("gamma", text, expected));
                }
            },
        };
        let restarts = params.take_count_or_auto("restarts", MAX_RESTARTS)?;
        let links = params.take_switch("links")?;
        let (quality, imbalance) = (params.take("quality")?, params.take_imbalance()?);
        Ok(PoiseLb { quality, imbalance, gamma, restarts, links })
    }

    /// As [`Strategy::assign`], with the effort given by `settings`.
    pub(super) fn assign_with(
        &self,
        settings: Settings,
        database: &Database,
        topology: &dyn Topology,
        seed: u64,
    ) -> Result<Assignment, StrategyError> {
        self.solve(settings, database, topology, seed, |_, _, _, _| {})
    }

    /// As [`Self::assign_with`]; `look` sees the solved problem and the answer.
    fn solve(
        &self,
        mut settings: Settings,
        database: &Database,
        topology: &dyn Topology,
        seed: u64,
        look: impl FnOnce(&Solver, &Problem, &[u32], &Assignment),
    ) -> Result<Assignment, StrategyError> {
        let available = check(database, topology)?;
        settings.restarts = self.restarts.unwrap_or(settings.restarts);
        let gamma = self.gamma.unwrap_or_else(|| measured_gamma(database, topology));
        // Where links have different bandwidths, what counts is the time of bytes on links.
        let timed = if database.edges.is_empty() { None } else { Timed::of(topology) };
        let (machine, gamma, distances): (&dyn Topology, _, _) = match &timed {
            Some(timed) => (timed, gamma * timed.hop, Distances::OfPes),
            None => (topology, gamma, Distances::OfShape { opens_rings: settings.opens_rings }),
        };
        let mut problem = Problem::new(database, machine, &available, self.imbalance, gamma, distances)?;
        if problem.movable == 0 {
            return Ok(Assignment::unchanged(database));
        }
        let migration_costs = migration_costs(&problem, database, gamma);
        let imbalance = self.imbalance;
        let solver = Solver { database, topology: machine, settings, seed, migration_costs, imbalance };
        // The solver runs on a thread of the pool. From outside of the pool, every parallel step would wait until a
        // thread wakes up.
        let mut block_of = rayon::scope(|_| solver.solve(&mut problem));
        if self.links {
            solver.relieve_links(&problem, &mut block_of);
        }
        let answer = report(&problem, database, topology, &block_of, timed.is_some());
        look(&solver, &problem, &block_of, &answer);
        Ok(answer)
    }
}
