//! `PoiseLB` for the registry: what is asked of it, and in which order the phases do it.

use super::bound::cost_bound;
use super::distance::with_metric;
use super::line;
use super::links;
use super::one_to_one;
use super::present;
use super::problem::Problem;
use super::scratch::{self, Grade, grade};
use super::settings::{Quality, Settings};
use super::settle::settle;
use super::v_cycle;
use crate::cost::{Metrics, link_loads};
use crate::partition::groups::{By, Grouping};
use crate::partition::metis::Method;
use crate::registry::{Named, Param, Params};
use crate::strategy::check;
use crate::table::{bytes, count, percent};
use crate::{Assignment, Database, Strategy, StrategyError, Topology};

/// `PoiseLB` for the registry.
pub const NAMED: Named = Named {
    name: "PoiseLB",
    aliases: &[],
    help: "Few hops, balanced loads and few migrations together: cuts the machine and the objects half by half, \
           refines after every cut, and weighs that against the present placement. For any machine, to millions of \
           objects.",
    params: &[
        Param {
            key: "quality",
            default: "default",
            help: "how long it may think: `fast`, `default` or `best`",
        },
        Param::imbalance("0.03"),
        Param {
            key: "gamma",
            default: "auto",
            help: "hop-bytes that moving one byte of an object is worth; 0: move freely; `auto`: 1 where a program was \
                   recorded, 0 for a task graph",
        },
        Param {
            key: "restarts",
            default: "auto",
            help: "mappings from scratch, of which the best is kept; `auto`: 1, and 3 for the best quality",
        },
        Param {
            key: "links",
            default: "off",
            help: "`on`: in the end the most loaded link is relieved, for at most 1 % more hop-bytes",
        },
    ],
    needs_communication: true,
    make: |params: &mut Params| {
        let gamma = match params.take::<String>("gamma")?.as_str() {
            "auto" => None,
            text => match text.parse::<f64>() {
                Ok(gamma) if gamma >= 0.0 && gamma.is_finite() => Some(gamma),
                _ => return Err(params.bad("gamma", text, "gamma is `auto` or a number of at least 0")),
            },
        };
        let restarts = match params.take::<String>("restarts")?.as_str() {
            "auto" => None,
            text => match text.parse::<usize>() {
                Ok(restarts) if (1..=MAX_RESTARTS).contains(&restarts) => Some(restarts),
                _ => {
                    let expected = format!("restarts are `auto` or a number from 1 to {MAX_RESTARTS}");
                    return Err(params.bad("restarts", text, expected));
                }
            },
        };
        let links = params.take_switch("links")?;
        let (quality, imbalance) = (params.take("quality")?, params.take_imbalance()?);
        Ok(Box::new(PoiseLb { quality, imbalance, gamma, restarts, links }))
    },
};

/// The most restarts: more are a slip of the hand, for hardly any would still be better.
const MAX_RESTARTS: usize = 1000;

/// Other starts than one from scratch are refined unless they cost so many times what that does.
const MAX_COST: i64 = 2;

/// A mapping from scratch is expected to move at least this part of all.
const MOVED: f64 = 0.5;

/// The most objects and PEs for which objects in their order, and groups of METIS that TopoLB places, are starts.
const MAX_TOPOLB_OBJECTS: usize = 8192;
const MAX_TOPOLB_PES: usize = 1024;

/// The strategy that weighs hops, loads and migrations.
#[derive(Clone, Copy, Debug)]
pub struct PoiseLb {
    /// How long it may think.
    pub quality: Quality,
    /// Allowed max/avg - 1.
    pub imbalance: f64,
    /// Hop-bytes that moving one byte is worth; `None`: 1 if a program was recorded, else 0.
    pub gamma: Option<f64>,
    /// Mappings from scratch, of which the best is kept; `None`: as the quality says.
    pub restarts: Option<usize>,
    /// Whether the most loaded link is relieved in the end.
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
        let available = check(database, topology)?;
        let mut settings = self.quality.settings();
        settings.restarts = self.restarts.unwrap_or(settings.restarts);
        let is_recorded = database.pes.iter().any(|pe| pe.wall_seconds > 0.0);
        let gamma = self.gamma.unwrap_or(if is_recorded { 1.0 } else { 0.0 });
        let mut problem =
            Problem::on(database, topology, &available, self.imbalance, gamma, settings.opens_rings)?;
        if problem.movable == 0 {
            return Ok(Assignment::unchanged(database));
        }
        let by = By::Metis(Method::Recursive);
        let grouping = Grouping { by, equal: false, imbalance: self.imbalance };
        let leave_costs = present::leave_costs(&problem, database, gamma);
        let solver = Solver { database, topology, settings, seed, leave_costs, grouping };
        // On a thread of the pool: from without, every parallel step would wait for one to wake.
        let mut block_of = rayon::scope(|_| solver.solve(&mut problem));
        if self.links {
            solver.relieve_links(&problem, &mut block_of);
        }
        let placement = problem.placement(database, &block_of);
        Ok(Assignment { notes: notes(&problem, database, topology, &block_of, &placement), pe_of: placement })
    }
}

/// What hop-bytes were, and what they are, by the names of [`Assignment::notes`].
const BEFORE: &str = "hop-bytes before";
const AFTER: &str = "hop-bytes after";
/// What no placement below the allowed load undercuts.
const AT_LEAST: &str = "hop-bytes at least";

/// What a step gained, what it cost, and how far one could still go at most, as in "Hop-bytes fell to 54.0 % of what they
/// were, for moving 12 objects (3.00 kB); no placement with balanced loads gets below 31.0 %."; of the notes of this strategy and
/// the metrics after it. `None` for the notes of others, and of pipelines, whose start and end are not those of one stage.
pub fn sentence(notes: &[(String, f64)], after: &Metrics) -> Option<String> {
    let value = |name: &str| notes.iter().find(|note| note.0 == name).map(|note| note.1);
    let (before, now, least) = (value(BEFORE)?, value(AFTER)?, value(AT_LEAST)?);
    let volume = after.migrated_bytes.map_or(String::new(), |sum| format!(" ({})", bytes(sum)));
    let cost = match after.migrations {
        0 => "without moving anything".into(),
        some => format!("for moving {}{volume}", count(some, "object")),
    };
    if before <= 0.0 {
        return Some(match now > 0.0 {
            true => format!("Nothing travelled before this step; now something does, for balance, {cost}."),
            false => format!("Nothing travels, {cost}."),
        });
    }
    let change = match percent(now / before) {
        same if same == percent(1.0) => "Hop-bytes are about what they were".into(),
        part if now < before => format!("Hop-bytes fell to {part} of what they were"),
        part => format!("Hop-bytes rose to {part} of what they were"),
    };
    let rest = match least > 0.0 {
        true => format!("no placement with balanced loads gets below {}", percent(least / before)),
        false => "what is possible is not known".into(),
    };
    Some(format!("{change}, {cost}; {rest}."))
}

/// Whether a note is of those that are said in the sentence.
pub fn is_said(note: &str) -> bool {
    [BEFORE, AFTER, AT_LEAST].contains(&note)
}

/// What was gained, what it cost, and how far that is from the bound.
fn notes(
    problem: &Problem,
    database: &Database,
    topology: &dyn Topology,
    block_of: &[u32],
    placement: &[u32],
) -> Vec<(String, f64)> {
    let hop_bytes = |placement: &[u32]| {
        Metrics::of(database, topology, placement)
            .communication
            .map_or(0, |communication| communication.hop_bytes)
    };
    let bound = cost_bound(problem, problem.most_load(block_of)) as f64;
    let least = (bound / problem.machine.last().scale as f64 * problem.unit).floor();
    let after = hop_bytes(placement) as f64;
    debug_assert!(least <= after, "no placement has fewer than {least} hop-bytes, and this one has {after}");
    vec![
        (BEFORE.into(), hop_bytes(&database.placement()) as f64),
        (AFTER.into(), after),
        (AT_LEAST.into(), least),
    ]
}

/// The best placement so far: the one with the least overload, then with the fewest hop-bytes, those included that its
/// moves are worth, then with the least to move.
struct Found<'a> {
    problem: &'a Problem<'a>,
    leave_costs: &'a [i64],
    best: Option<((Grade, i64), Vec<u32>)>,
}

impl Found<'_> {
    /// Of equals the first is kept.
    fn add(&mut self, block_of: Vec<u32>) {
        let grade = present::grade_with_moves(self.problem, self.leave_costs, &block_of);
        if self.best.as_ref().is_none_or(|best| grade < best.0) {
            self.best = Some((grade, block_of));
        }
    }
}

/// A call of the strategy.
struct Solver<'a> {
    database: &'a Database,
    topology: &'a dyn Topology,
    settings: Settings,
    seed: u64,
    /// See [`present::leave_costs`].
    leave_costs: Vec<i64>,
    /// For the start that TopoLB makes.
    grouping: Grouping,
}

impl Solver<'_> {
    /// The block of every vertex: the better of refining what is and mapping anew.
    fn solve(&self, problem: &mut Problem) -> Vec<u32> {
        let mut block_of = self.choose(problem);
        settle(problem, &self.settings, &self.leave_costs, &mut block_of, self.seed);
        block_of
    }

    /// The best placement found below the allowed load, or nearest to it.
    fn choose(&self, problem: &Problem) -> Vec<u32> {
        let all: i64 = self.leave_costs.iter().sum();
        let mut found = Found { problem, leave_costs: &self.leave_costs, best: None };
        let refined = |mut block_of: Vec<u32>| {
            let homes = problem.homes(&self.leave_costs);
            present::refine(problem, &self.settings, homes, &mut block_of, self.seed);
            block_of
        };
        if all > 0 {
            found.add(refined(present::start(problem)));
            let most = problem.capacity.iter().copied().max().unwrap_or(0);
            let settled = cost_bound(problem, most) as f64 + MOVED * all as f64;
            // Not even the best mapping would make up for moving that much.
            if let Some((((0, cost), _), block_of)) = &found.best
                && *cost as f64 <= settled
            {
                return block_of.clone();
            }
        }
        let cost = |block_of: &[u32]| grade(problem, problem.machine.layers.len() - 1, block_of).1;
        let anew = self.anew(problem);
        let most = MAX_COST * cost(&anew);
        found.add(if all > 0 { refined(anew) } else { anew });
        let is_small = problem.movable <= MAX_TOPOLB_OBJECTS && problem.capacity.len() <= MAX_TOPOLB_PES;
        let mut others = Vec::new();
        if !self.settings.has_others {
            return found.best.map_or_else(Vec::new, |best| best.1);
        }
        if all == 0 {
            others.push(present::start(problem));
        }
        if is_small {
            others.push(line::start(problem, self.topology));
        }
        // With one object per PE, wherever, it was a start of the search already.
        let heaviest = problem.graph.heaviest();
        let is_open = problem.capacity.iter().all(|&capacity| capacity >= heaviest);
        if is_small && !(is_open && problem.movable <= problem.capacity.len()) {
            let grouping = self.grouping;
            others.extend(one_to_one::topolb(problem, self.database, self.topology, grouping, self.seed));
        }
        others.into_iter().filter(|other| cost(other) <= most).for_each(|other| found.add(refined(other)));
        found.best.map_or_else(Vec::new, |best| best.1)
    }

    /// The best of several mappings from scratch.
    fn anew(&self, problem: &Problem) -> Vec<u32> {
        let layer = problem.machine.layers.len() - 1;
        let once = |(settings, restart): (&Settings, u64)| {
            let seed = self.seed.wrapping_add(restart.wrapping_mul(0xd134_2543_de82_ef95));
            let mut block_of = scratch::map(problem, settings, seed);
            v_cycle::refine(problem, settings, layer, self.settings.v_cycles, &mut block_of, seed);
            (grade(problem, layer, &block_of), block_of)
        };
        use rayon::prelude::*;
        let default = self.settings.tries_default.then(|| Quality::Default.settings());
        let runs = (0..self.settings.restarts as u64).map(|restart| (&self.settings, restart));
        let runs: Vec<(&Settings, u64)> =
            runs.chain(default.as_ref().map(|settings| (settings, 0))).collect();
        let best = runs.into_par_iter().enumerate().map(|(number, run)| (number, once(run)));
        let best = best.min_by_key(|(number, run)| (run.0, *number)).map(|(_, run)| run);
        let block_of = best.map_or_else(Vec::new, |best| best.1);
        one_to_one::search(problem, self.database, self.topology, &self.settings, block_of, self.seed)
    }

    /// Relieves the most loaded link, if that is so in bytes each way too.
    fn relieve_links(&self, problem: &Problem, block_of: &mut Vec<u32>) {
        let mut relieved = block_of.clone();
        let (distance, homes) = (&problem.machine.last().distance, problem.homes(&self.leave_costs));
        with_metric!(distance, metric => links::relieve(problem, self.topology, metric, homes, &mut relieved));
        let most = |block_of: &[u32]| {
            let placement = problem.placement(self.database, block_of);
            link_loads(self.database, self.topology, &placement).into_iter().max()
        };
        if most(&relieved) < most(block_of) {
            *block_of = relieved;
        }
    }
}
