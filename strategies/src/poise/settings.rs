//! How much work a mapping is worth: every parameter of the phases, and the presets.

use std::str::FromStr;

use super::bisect::Effort;

/// What a preset is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quality {
    /// About twice as fast as the default, a few percent more hop-bytes.
    Fast,
    /// The default.
    Default,
    /// Several times the time, a few percent fewer hop-bytes.
    Best,
}

impl FromStr for Quality {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "fast" => Ok(Quality::Fast),
            "default" => Ok(Quality::Default),
            "best" => Ok(Quality::Best),
            _ => Err("the quality is `fast`, `default` or `best`".into()),
        }
    }
}

/// Every parameter.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Settings {
    /// How hard bisections try.
    pub effort: Effort,
    /// Bisections are repeated only in layers of at most so many blocks.
    pub repeat_blocks: usize,
    /// Moves in vain after which a localized search ends; 0: moves that pay at once only.
    pub patience: usize,
    /// Mappings from scratch, of which the best is kept.
    pub restarts: usize,
    /// Times the final placement is coarsened and refined again.
    pub v_cycles: usize,
    /// Several placements are followed to this layer, the best from there on; 0: one from the beginning.
    pub beam_layers: usize,
    /// How many.
    pub beam_tries: usize,
    /// One object per PE: mappings that are searched from.
    pub starts: usize,
    /// One object per PE: work of tabu search from each start, in iterations times the square of the PEs.
    pub tabu_work: usize,
    /// Steps of annealing per object, at each of its temperatures.
    pub anneal_steps: usize,
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
            starts: 8,
            tabu_work: 3_000_000,
            anneal_steps: 2000,
        };
        match self {
            Quality::Fast => Settings {
                effort: Effort { tries: 2, ..default.effort },
                repeat_blocks: 16,
                patience: 0,
                beam_layers: 0,
                starts: 4,
                tabu_work: 400_000,
                anneal_steps: 0,
                ..default
            },
            Quality::Default => default,
            Quality::Best => Settings {
                patience: 40,
                restarts: 2,
                v_cycles: 1,
                beam_layers: 5,
                beam_tries: 4,
                tabu_work: 10_000_000,
                anneal_steps: 10_000,
                ..default
            },
        }
    }
}
