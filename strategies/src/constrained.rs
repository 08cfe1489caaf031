//! Any strategy under [`Constraints`](equipoise_model::constraints::Constraints): counts, memory, places, groups, and loads by phase.
//!
//! [`keep`] makes a strategy that keeps the constraints of the database that it is given:
//!
//! 1. Objects that must be together on a PE become one object, and objects that may be on one PE only are fixed there
//!    (`contracted.rs`). The strategy answers for these objects, so it keeps those constraints by itself.
//!    A strategy that refuses these objects, such as `FileLB`, whose file has all of them, is asked for all.
//!    If the answer breaks a constraint, strategies that know constraints are asked for a placement that keeps them
//!    ([`Strategy::assign_within`]). It is taken if its heaviest PE is not clearly heavier than that of the
//!    answer, or else than that of the placement of the other steps.
//! 2. Objects stay where the answer has them as far as the constraints allow. The others go, those with the least choice first, where
//!    they fit: to a PE that does not become heavier than the heaviest PE of the answer, and among these to the one with the fewest
//!    hop-bytes; else to the PE that finishes first. If an object fits nowhere, a chain of objects moves on to make room (`repair.rs`).
//! 3. While the heaviest PE is heavier than that of the answer, objects leave it or are exchanged, where the constraints allow that. With
//!    loads by phase, the cost is the sum over phases of the slowest PE, and this step always runs (`improve.rs`).
//! 4. If the constraints have moved an object, a search begins once more with the answer. It lets objects break constraints at first,
//!    and goes to a placement near the answer that keeps them, with few hop-bytes (`search.rs`). If it finds none, it begins with the
//!    placement of step 3. Of both placements, that with fewer hop-bytes is taken, and of equals the one nearer to the answer. If step 2 finds no
//!    place for an object, the search is tried as well.
//! 5. Wishes are granted that cost less than they are worth (`improve.rs`).
//! 6. If the constraints have moved an object, and the placement before keeps the constraints and is no worse in load, hop-bytes and the busiest
//!    link, nothing moves.
//!
//! Where all objects have the same load, as ranks have, steps 2 to 4 are first tried with one more constraint: no PE takes more objects
//! than the fullest PE of the answer. If they find no placement, they begin once more with the placement before in place of the answer.
//!
//! Counts and places alone are a bipartite matching with capacities. The chains of step 2 are its augmenting paths, so a placement is found
//! if there is one; otherwise the error names a smallest set of objects that have too few places (Hall's theorem). With memory or groups the
//! problem contains bin packing. If the steps above find no placement, a complete search follows (`complete.rs`), which may become too long. The error
//! says `no placement was found`, unless this search or a single number proves that there is none.

use std::borrow::Cow;
use std::sync::Arc;

use equipoise_model::assignment::Note;
use equipoise_model::database::Object;
use equipoise_model::rules::Rules;
use equipoise_model::{Assignment, Database, Topology};
use equipoise_network::program::Model;

use crate::cost::commodities::Commodities;
use crate::cost::{mcf, travel};
use crate::descriptor::Choice;
use crate::placement::ROUNDING;
use crate::strategy::{Alternatives, check};
use crate::{Strategy, StrategyError};

use complete::Outcome;
use contracted::Items;
use nearer::Near;
use repair::NoPlacement;
use search::Search;
use state::State;

mod complete;
mod contracted;
mod improve;
mod nearer;
mod repair;
mod search;
mod state;

/// The part by which the heaviest PE may be heavier in the placement of a strategy that knows constraints than in others.
const HEAVIER: f64 = 0.01;

/// The same strategy, which keeps the constraints of its databases. It decides in one place, also if the strategy has no centre.
#[must_use]
pub fn keep(choice: &Choice) -> Choice {
    Choice { strategy: Arc::new(Constrained(Arc::clone(&choice.strategy))), ..choice.clone() }
}

/// A strategy that keeps constraints.
struct Constrained(Arc<dyn Strategy>);

impl Constrained {
    /// The answer of the strategy, which `ask` asks for a database, and the placement that keeps the constraints.
    fn place(
        &self,
        database: &Database,
        topology: &dyn Topology,
        seed: u64,
        ask: impl Fn(&Database) -> Result<Assignment, StrategyError>,
    ) -> Result<Assignment, StrategyError> {
        if database.constraints.is_empty() {
            return ask(database);
        }
        // First, because its errors say what to give instead. Callers check constraints of flags before.
        let rules = database.constraints.rules(database, topology).map_err(StrategyError::Data)?;
        let available = check(database, topology)?;
        let items = contracted::of(database, &rules, &available).map_err(StrategyError::Constraints)?;
        repair::prove_impossible(&items, &rules).map_err(StrategyError::Constraints)?;
        let answer = match ask(&items.database) {
            Err(StrategyError::Data(_)) if items.database.objects.len() < database.objects.len() => {
                let all = ask(database)?;
                all.check(database)
                    .map_err(|impossible| StrategyError::rejected("the strategy", impossible))?;
                Assignment { pe_of: items.of_objects(&all.pe_of), ..all }
            }
            answer => answer?,
        };
        answer
            .check(&items.database)
            .map_err(|impossible| StrategyError::rejected("the strategy", impossible))?;
        let keeps = rules.check(database, &items.placement(&answer.pe_of)).is_ok();
        let mut own = None;
        // With loads by phase the strategy is not asked, because the database of the items has no such loads.
        if !keeps && items.phases.len() == 1 {
            let as_full = as_full_as(&items, &rules, &answer.pe_of);
            for with in as_full.iter().chain([&rules]) {
                if own.is_none() {
                    own = self.within(&items, with, &rules, topology, seed)?;
                }
            }
        }
        let kept =
            better(own, &items, &rules, topology, &answer.pe_of).map_err(StrategyError::Constraints)?;
        let mut pe_of = items.placement(&kept.pe_of);
        let mut changed = distance(&answer.pe_of, &kept.pe_of);
        if changed > 0 && present_is_as_good(database, topology, &rules, &pe_of) {
            (pe_of, changed) = (database.placement(), distance(&answer.pe_of, &items.before()));
        }
        rules.check(database, &pe_of).map_err(|broken| {
            StrategyError::Bug(format!(
                "the placement breaks a constraint: {broken} (please report this bug)"
            ))
        })?;
        // What the strategy says of its answer does not hold for another placement.
        let mut notes = if changed == 0 { answer.notes } else { Vec::new() };
        notes.push(Note::new("objects that constraints moved", changed as f64));
        if !rules.wishes.is_empty() {
            notes.push(Note::new("wishes granted", kept.granted as f64));
        }
        Ok(Assignment { notes, ..Assignment::new(pe_of) })
    }

    /// The placement of a strategy that knows constraints, if it keeps those of `with`; wishes are granted as far as `rules` allow.
    fn within(
        &self,
        items: &Items,
        with: &Rules,
        rules: &Rules,
        topology: &dyn Topology,
        seed: u64,
    ) -> Result<Option<Kept>, StrategyError> {
        let mut items = Cow::Borrowed(items);
        if !with.parts.is_empty() {
            let before = items.before();
            if repair::choose_parts(items.to_mut(), with, &before).is_err() {
                return Ok(None);
            }
        }
        let Ok(fixed) = State::new(&items, with) else { return Ok(None) };
        let room = fixed.room().clone();
        let Some(found) = self.0.assign_within(&items.database, topology, seed, room)? else {
            return Ok(None);
        };
        found
            .check(&items.database)
            .map_err(|impossible| StrategyError::rejected("the strategy", impossible))?;
        let placed = (0..).zip(found.pe_of.iter().copied()).filter(|&(item, _)| fixed.can_move(item));
        if !fixed.room().clone().put_all(placed) {
            return Ok(None);
        }
        granted(&items, rules, &found.pe_of).map(Some).map_err(StrategyError::Constraints)
    }
}

/// How many objects are on different PEs in two placements.
fn distance(a: &[u32], b: &[u32]) -> usize {
    a.iter().zip(b).filter(|(a, b)| a != b).count()
}

/// Whether the present placement keeps the constraints, and is no worse than `pe_of` in what strategies lower: its heaviest PE, hop-bytes, and
/// the time of the busiest link. Never with wishes or loads by phase, which have other costs, or if objects must leave PEs that are not available.
fn present_is_as_good(database: &Database, topology: &dyn Topology, rules: &Rules, pe_of: &[u32]) -> bool {
    let before = database.placement();
    let is_stranded = |object: &Object| object.migratable && !database.pes[object.pe as usize].available;
    if !rules.wishes.is_empty()
        || !rules.phases.is_empty()
        || database.objects.iter().any(is_stranded)
        || rules.check(database, &before).is_err()
    {
        return false;
    }
    let [present, other] = [&before[..], pe_of].map(|pe_of| {
        let heaviest = database.pe_loads(pe_of).into_iter().fold(0.0, f64::max);
        (heaviest, travel(database, topology, pe_of).hop_bytes)
    });
    let busiest = |pe_of: &[u32]| mcf::cost(database, topology, pe_of);
    // The route of every message is needed for the links only.
    present.0 <= other.0 * (1.0 + ROUNDING) && present.1 <= other.1 && busiest(&before) <= busiest(pe_of)
}

/// A placement that keeps the constraints, with wishes granted.
fn granted(items: &Items, rules: &Rules, pe_of: &[u32]) -> Result<Kept, String> {
    let mut placed = State::with(items, rules, pe_of)?;
    let granted = improve::grant(items, &mut placed);
    Ok(Kept { pe_of: placed.pe_of, granted })
}

/// A placement of items that keeps the constraints.
struct Kept {
    pe_of: Vec<u32>,
    /// The wishes that are granted.
    granted: usize,
}

/// The placement `own` of a strategy that knows constraints, unless that near the answer is clearly lighter.
fn better(
    own: Option<Kept>,
    items: &Items,
    rules: &Rules,
    topology: &dyn Topology,
    answer: &[u32],
) -> Result<Kept, String> {
    let heaviest = |pe_of: &[u32]| items.database.pe_loads(pe_of).into_iter().fold(0.0, f64::max);
    let is_lighter = |a: &[u32], b: &[u32]| heaviest(a) * (1.0 + HEAVIER) < heaviest(b);
    let Some(own) = own else { return kept(items, rules, topology, answer) };
    if !is_lighter(answer, &own.pe_of) {
        return Ok(own);
    }
    match near_answer(items, rules, topology, answer) {
        Ok(kept) if is_lighter(&kept.pe_of, &own.pe_of) => Ok(kept),
        _ => Ok(own),
    }
}

/// A placement that keeps the constraints: near the answer, or else by a complete search.
fn kept(items: &Items, rules: &Rules, topology: &dyn Topology, answer: &[u32]) -> Result<Kept, String> {
    let reason = match near_answer(items, rules, topology, answer) {
        Ok(kept) => return Ok(kept),
        Err(NoPlacement::Proven(sentence)) => return Err(sentence),
        Err(NoPlacement::NotFound(reason)) => reason,
    };
    match complete::search(items, rules) {
        Outcome::Found(pe_of) => {
            let traffic = Commodities::of(&items.database);
            let mut items = items.clone();
            repair::keep_parts(&mut items, rules, &pe_of);
            let near = Near { topology, traffic: &traffic };
            near_start(&near, &items, (rules, rules), &pe_of, answer).map_err(|why| why.to_string())
        }
        Outcome::Impossible => {
            let flags = flags_of(items, rules);
            Err(format!(
                "no placement exists, as a complete search shows; loosen {flags}. One attempt ended here: {reason}"
            ))
        }
        Outcome::Unknown => Err(NoPlacement::NotFound(reason).to_string()),
    }
}

/// The flags of the constraints that exclude placements, as in `--memory or --fixed`.
fn flags_of(items: &Items, rules: &Rules) -> String {
    let has_groups = !items.groups.is_empty() || items.weight.iter().any(|&weight| weight > 1);
    let flags = [
        ("--max-objects", rules.most.is_some()),
        ("--memory", rules.memory.is_some()),
        ("--groups", has_groups),
        ("--fixed", items.allowed.iter().any(Option::is_some)),
    ];
    let used = flags.into_iter().filter(|(_, is_used)| *is_used).map(|(flag, _)| flag);
    used.collect::<Vec<_>>().join(" or ")
}

/// The placement near the answer, by the steps 2 to 5.
fn near_answer(
    items: &Items,
    rules: &Rules,
    topology: &dyn Topology,
    answer: &[u32],
) -> Result<Kept, NoPlacement> {
    let traffic = Commodities::of(&items.database);
    let near = Near { topology, traffic: &traffic };
    let attempt = |with: &Rules, start: &[u32]| {
        let mut items = Cow::Borrowed(items);
        if !with.parts.is_empty() {
            repair::choose_parts(items.to_mut(), with, start)?;
        }
        near_start(&near, &items, (with, rules), start, answer)
    };
    let before = items.before();
    let as_full = as_full_as(items, rules, answer);
    let first = as_full.iter().flat_map(|with| [(with, answer), (with, before.as_slice())]);
    for (with, start) in first {
        let attempted = attempt(with, start);
        if attempted.is_ok() {
            return attempted;
        }
    }
    attempt(rules, answer).or_else(|why| attempt(rules, &before).map_err(|_| why))
}

/// A placement near `start` that keeps the constraints of `with`; wishes are granted as far as `rules` allow. PEs do not become heavier than
/// the heaviest of the answer, if that is possible.
fn near_start(
    near: &Near,
    items: &Items,
    (with, rules): (&Rules, &Rules),
    start: &[u32],
    answer: &[u32],
) -> Result<Kept, NoPlacement> {
    let fixed = State::new(items, with)?;
    // Seconds above the limit by less are rounding.
    let limit_seconds = repair::limit_seconds(&fixed, answer) * (1.0 + ROUNDING);
    let mut placed = repair::repaired(items, with, near, start, limit_seconds).or_else(|why| {
        // With counts and places alone, there is no placement.
        let no_limits = vec![f64::INFINITY; fixed.phases()];
        let search = || searched(near, items, with, start, &no_limits, &[]);
        let found = if fixed.has_only_counts() { None } else { search() };
        found.map_or(Err(why), |pe_of| Ok(State::with(items, with, &pe_of)?))
    })?;
    improve::balance(&mut placed, limit_seconds);
    let pe_of = shortened(near, items, with, &placed, start, limit_seconds);
    // A wish may be worth that a PE takes one more object.
    Ok(granted(items, rules, &pe_of)?)
}

/// A placement near `from` that keeps the constraints, by searches that begin with the items of `active` and those that break a constraint. Of
/// several, the one with the fewest hop-bytes, and of equals the nearest to `from`. All with fewer hop-bytes than `from` are equals.
fn searched(
    near: &Near,
    items: &Items,
    rules: &Rules,
    from: &[u32],
    limit_seconds: &[f64],
    active: &[u32],
) -> Option<Vec<u32>> {
    let (enough, all) = search::tries(items.is_fixed.iter().filter(|&&is| !is).count());
    // What has fewer hop-bytes than the answer is no better: the strategy has seen more than them, as McfLB the links.
    let least = near.twice_all(from);
    let mut best: Option<((u128, usize), Vec<u32>)> = None;
    for seed in 0..all {
        if seed >= enough && best.is_some() {
            break;
        }
        let search = Search::new(near, items, rules, from, limit_seconds.to_vec());
        let Some(found) = search.run(active.iter().copied(), seed) else { continue };
        let value = (near.twice_all(&found).max(least), distance(&found, from));
        if best.as_ref().is_none_or(|best| value < best.0) {
            best = Some((value, found));
        }
    }
    best.map(|(_, found)| found)
}

/// The placement `placed`, or one near `start` that is not heavier and has fewer hop-bytes, or as many and is nearer to `start`.
fn shortened(
    near: &Near,
    items: &Items,
    rules: &Rules,
    placed: &State,
    start: &[u32],
    limit_seconds: f64,
) -> Vec<u32> {
    if placed.pe_of == start {
        return placed.pe_of.clone();
    }
    let slowest =
        |phase: usize| placed.lightest(phase).next_back().map_or(0.0, |pe| placed.seconds(pe, phase));
    let least = if placed.phases() == 1 { limit_seconds } else { 0.0 };
    let limits: Vec<f64> = (0..placed.phases()).map(|phase| slowest(phase).max(least)).collect();
    let is_moved =
        |item: &u32| placed.can_move(*item) && placed.pe_of[*item as usize] != start[*item as usize];
    let moved: Vec<u32> = (0..start.len() as u32).filter(is_moved).collect();
    let found = searched(near, items, rules, start, &limits, &[])
        .or_else(|| searched(near, items, rules, &placed.pe_of, &limits, &moved));
    let value = |pe_of: &[u32]| (near.twice_all(pe_of), distance(pe_of, start));
    found.filter(|pe_of| value(pe_of) < value(&placed.pe_of)).unwrap_or_else(|| placed.pe_of.clone())
}

/// The constraints, and that no PE takes more objects than the fullest PE of the answer; none where objects have different loads.
fn as_full_as(items: &Items, rules: &Rules, answer: &[u32]) -> Option<Rules> {
    if rules.exact || !items.have_equal_loads() {
        return None;
    }
    let mut full = vec![0; items.database.pes.len()];
    answer.iter().zip(&items.weight).for_each(|(&pe, weight)| full[pe as usize] += weight);
    let fullest = full.iter().copied().max().unwrap_or(0);
    let most = match &rules.most {
        Some(most) => most.iter().map(|&most| most.min(fullest)).collect(),
        None => vec![fullest; full.len()],
    };
    Some(Rules { most: Some(most), ..rules.clone() })
}

impl Strategy for Constrained {
    fn assign(
        &self,
        database: &Database,
        topology: &dyn Topology,
        seed: u64,
    ) -> Result<Assignment, StrategyError> {
        self.place(database, topology, seed, |items| self.0.assign(items, topology, seed))
    }

    fn assign_program(
        &self,
        model: &Model,
        database: &Database,
        topology: &dyn Topology,
        seed: u64,
    ) -> Result<Assignment, StrategyError> {
        self.place(database, topology, seed, |items| match items.objects.len() == database.objects.len() {
            true => self.0.assign_program(model, items, topology, seed),
            // The processes of a program are not those of groups.
            false => self.0.assign(items, topology, seed),
        })
    }

    fn alternatives(
        &self,
        database: &Database,
        topology: &dyn Topology,
        seed: u64,
        is_enough: &dyn Fn(&Assignment) -> bool,
    ) -> Result<Alternatives, StrategyError> {
        if database.constraints.is_empty() {
            return self.0.alternatives(database, topology, seed, is_enough);
        }
        // Those of the strategy need not keep the constraints.
        Ok(Alternatives { answer: self.assign(database, topology, seed)?, others: Vec::new() })
    }
}
