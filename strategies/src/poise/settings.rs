//! The effort of a mapping: every parameter of the phases, and the presets.

use std::str::FromStr;

use crate::partition::bisection::Effort;

/// A preset of the settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quality {
    /// About twice as fast as the default, with a few percent more hop-bytes.
    Fast,
    /// The default.
    Default,
    /// Several times the time of the default, with a few percent fewer hop-bytes.
    Best,
}

impl FromStr for Quality {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "fast" => Ok(Quality::Fast),
            "default" => Ok(Quality::Default),
            "best" => Ok(Quality::Best),
            _ => Err("expected `fast`, `default` or `best`".into()),
        }
    }
}

/// Every parameter of the phases.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Settings {
    /// The effort of bisections.
    pub effort: Effort,
    /// Bisections are repeated only in layers of at most this many blocks.
    pub repeat_blocks: usize,
    /// A localized search ends after this many moves without improvement; 0: only moves that reduce the cost
    /// immediately.
    pub patience: usize,
    /// The number of mappings from scratch; the best is kept.
    pub restarts: usize,
    /// The number of times that the final placement is coarsened and refined again.
    pub v_cycles: usize,
    /// Several placements are followed down to this layer, then only the best; 0: one placement from the start.
    pub beam_layers: usize,
    /// The number of placements that are followed.
    pub beam_tries: usize,
    /// Whether several placements are followed for any graph and machine. If not, several are followed only for small
    /// graphs, and on trees, where cutting again has no effect.
    pub has_wide_beam: bool,
    /// Blocks are cut a second time down to this layer; the second value is for large graphs, where it takes longest.
    pub recut_layers: usize,
    pub recut_layers_of_large: usize,
    /// Whether vertices outside of a block attract its vertices to one of its halves (terminal propagation).
    pub propagates_terminals: bool,
    /// Whether distances include the distance on opened rings.
    pub opens_rings: bool,
    /// Whether objects swap places, and eject each other.
    pub swaps: bool,
    /// Whether overloaded blocks are packed again, together with others.
    pub repacks: bool,
    /// Whether other starts than from scratch are refined, if they cost little enough.
    pub has_other_starts: bool,
    /// One object per PE: the number of mappings from which a search starts.
    pub starts: usize,
    /// One object per PE: the work of tabu search per start, in iterations times the square of the number of PEs; few PEs
    /// need less.
    pub tabu_work: usize,
    /// Steps of annealing per object and temperature.
    pub anneal_steps: usize,
    /// Whether a mapping with the default settings is also tried, so that more effort never gives a worse result.
    pub includes_default: bool,
}

impl Quality {
    pub(crate) fn settings(self) -> Settings {
        let default = Settings {
            effort: Effort::THOROUGH,
            repeat_blocks: usize::MAX,
            patience: 15,
            restarts: 1,
            v_cycles: 0,
            beam_layers: 4,
            beam_tries: 2,
            has_wide_beam: false,
            recut_layers: 64,
            recut_layers_of_large: 4,
            propagates_terminals: true,
            opens_rings: true,
            swaps: true,
            repacks: true,
            has_other_starts: true,
            starts: 8,
            tabu_work: 3_000_000,
            anneal_steps: 2000,
            includes_default: false,
        };
        match self {
            Quality::Fast => Settings {
                effort: Effort { tries: 2, ..default.effort },
                repeat_blocks: 16,
                patience: 0,
                beam_layers: 0,
                recut_layers: 4,
                recut_layers_of_large: 0,
                starts: 4,
                tabu_work: 400_000,
                anneal_steps: 0,
                ..default
            },
            Quality::Default => default,
            Quality::Best => Settings {
                patience: 40,
                restarts: 3,
                v_cycles: 1,
                beam_layers: 5,
                recut_layers_of_large: 64,
                beam_tries: 4,
                has_wide_beam: true,
                // Few long searches are better than many short ones: with 5 starts, sko64 is 0.06 % above the best
                // known on average, and 0.13 % with 18 starts.
                starts: 5,
                tabu_work: 100_000_000,
                anneal_steps: 10_000,
                includes_default: true,
                ..default
            },
        }
    }
}
