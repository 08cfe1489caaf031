//! `PoiseLB` without one of its ingredients, to measure their effects. Only with the feature `ablation`.

use equipoise_model::{Assignment, Database, Topology};

use super::PoiseLb;
use super::settings::Settings;
use crate::partition::bisection::Effort;
use crate::{Strategy, StrategyError};

/// `PoiseLB` with one ingredient disabled.
#[derive(Clone, Copy, Debug)]
pub struct Without {
    /// The complete strategy.
    pub poise: PoiseLb,
    /// The disabled ingredient.
    pub ablation: Ablation,
}

impl Strategy for Without {
    fn assign(
        &self,
        database: &Database,
        topology: &dyn Topology,
        seed: u64,
    ) -> Result<Assignment, StrategyError> {
        let settings = self.ablation.out_of(self.poise.quality.settings());
        self.poise.assign_with(settings, database, topology, seed)
    }
}

/// An ingredient of the algorithm that can be disabled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ablation {
    /// Several initial bisections of the smallest graph; the best is kept.
    Tries,
    /// Several bisections of every level of small graphs (W-cycles).
    Repeats,
    /// Localized search, which continues after moves that do not reduce the cost immediately.
    Search,
    /// Several placements followed through the first layers (beam search).
    Beam,
    /// Cutting blocks a second time, when the placement of all other blocks is known.
    Again,
    /// The attraction of vertices outside of a block (terminal propagation).
    Terminals,
    /// The distance on rings opened to lines, which distances in the first layers include.
    Lines,
    /// Swaps and ejections.
    Swaps,
    /// Packing overloaded blocks again, together with others.
    Repacks,
    /// V-cycles over the final placement.
    Cycles,
    /// For small graphs: starts other than from scratch, namely the present placement, the order of the objects, and
    /// TopoLB's groups.
    Others,
    /// One object per PE: searches from several starts.
    Starts,
    /// One object per PE: tabu search.
    Tabu,
    /// One object per PE: simulated annealing.
    Annealing,
}

impl Ablation {
    /// All ablations by name.
    pub const ALL: [(&'static str, Ablation); 14] = [
        ("tries", Ablation::Tries),
        ("repeats", Ablation::Repeats),
        ("search", Ablation::Search),
        ("beam", Ablation::Beam),
        ("again", Ablation::Again),
        ("terminals", Ablation::Terminals),
        ("lines", Ablation::Lines),
        ("swaps", Ablation::Swaps),
        ("repacks", Ablation::Repacks),
        ("cycles", Ablation::Cycles),
        ("others", Ablation::Others),
        ("starts", Ablation::Starts),
        ("tabu", Ablation::Tabu),
        ("annealing", Ablation::Annealing),
    ];

    /// The settings without this ingredient.
    fn out_of(self, settings: Settings) -> Settings {
        let effort = settings.effort;
        match self {
            Ablation::Tries => Settings { effort: Effort { tries: 1, ..effort }, ..settings },
            Ablation::Repeats => Settings { effort: Effort { repeats: 1, ..effort }, ..settings },
            Ablation::Search => Settings { patience: 0, ..settings },
            Ablation::Beam => Settings { beam_layers: 0, ..settings },
            Ablation::Again => Settings { recut_layers: 0, recut_layers_of_large: 0, ..settings },
            Ablation::Terminals => Settings { propagates_terminals: false, ..settings },
            Ablation::Lines => Settings { opens_rings: false, ..settings },
            Ablation::Swaps => Settings { swaps: false, ..settings },
            Ablation::Repacks => Settings { repacks: false, ..settings },
            Ablation::Cycles => Settings { v_cycles: 0, ..settings },
            Ablation::Others => Settings { has_other_starts: false, ..settings },
            Ablation::Starts => Settings { starts: 1, ..settings },
            Ablation::Tabu => Settings { tabu_work: 0, ..settings },
            Ablation::Annealing => Settings { anneal_steps: 0, ..settings },
        }
    }
}
