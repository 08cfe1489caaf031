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
    /// Without something, to see what that is worth: V-cycles are left out of the best, all else of the default.
    Without(Ingredient),
}

/// Something that mappings could be made without.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ingredient {
    /// Several first bisections of the smallest graph, of which the best is kept.
    Tries,
    /// Several bisections of every level of small graphs (W-cycles).
    Repeats,
    /// Localized search, that goes on where moves do not pay at once.
    Search,
    /// Several placements that are followed through the first layers.
    Beam,
    /// Cutting blocks again when it is known where the others went.
    Again,
    /// What is outside of a block and draws at its halves (terminal propagation).
    Terminals,
    /// A part of the distance on rings opened to lines, in the first layers.
    Lines,
    /// Swaps and ejections.
    Swaps,
    /// Packing overloaded blocks anew with others.
    Repacks,
    /// V-cycles over the final placement.
    Cycles,
    /// Small graphs: the present placement, the order of the objects, and TopoLB's groups, as other starts than one from
    /// scratch.
    Others,
    /// One object per PE: searches from several mappings.
    Starts,
    /// One object per PE: tabu search.
    Tabu,
    /// One object per PE: annealing.
    Annealing,
}

impl Ingredient {
    /// All of them, with what they are called.
    pub const ALL: [(&'static str, Ingredient); 14] = [
        ("tries", Ingredient::Tries),
        ("repeats", Ingredient::Repeats),
        ("search", Ingredient::Search),
        ("beam", Ingredient::Beam),
        ("again", Ingredient::Again),
        ("terminals", Ingredient::Terminals),
        ("lines", Ingredient::Lines),
        ("swaps", Ingredient::Swaps),
        ("repacks", Ingredient::Repacks),
        ("cycles", Ingredient::Cycles),
        ("others", Ingredient::Others),
        ("starts", Ingredient::Starts),
        ("tabu", Ingredient::Tabu),
        ("annealing", Ingredient::Annealing),
    ];

    /// What is left without it.
    fn out_of(self, settings: Settings) -> Settings {
        let effort = settings.effort;
        match self {
            Ingredient::Tries => Settings { effort: Effort { tries: 1, ..effort }, ..settings },
            Ingredient::Repeats => Settings { effort: Effort { repeats: 1, ..effort }, ..settings },
            Ingredient::Search => Settings { patience: 0, ..settings },
            Ingredient::Beam => Settings { beam_layers: 0, ..settings },
            Ingredient::Again => Settings { again_layers: 0, again_layers_of_large: 0, ..settings },
            Ingredient::Terminals => Settings { is_drawn: false, ..settings },
            Ingredient::Lines => Settings { opens_rings: false, ..settings },
            Ingredient::Swaps => Settings { swaps: false, ..settings },
            Ingredient::Repacks => Settings { repacks: false, ..settings },
            Ingredient::Cycles => Settings { v_cycles: 0, ..settings },
            Ingredient::Others => Settings { has_others: false, ..settings },
            Ingredient::Starts => Settings { starts: 1, ..settings },
            Ingredient::Tabu => Settings { tabu_work: 0, ..settings },
            Ingredient::Annealing => Settings { anneal_steps: 0, ..settings },
        }
    }
}

impl FromStr for Quality {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "fast" => Ok(Quality::Fast),
            "default" => Ok(Quality::Default),
            "best" => Ok(Quality::Best),
            _ => {
                let left_out = text.strip_prefix("no-");
                let without = Ingredient::ALL.into_iter().find(|(name, _)| Some(*name) == left_out);
                without.map(|(_, ingredient)| Quality::Without(ingredient)).ok_or_else(|| {
                    let names = Ingredient::ALL.map(|(name, _)| format!("`no-{name}`")).join(", ");
                    format!("the quality is `fast`, `default` or `best`, or without something, for comparison: {names}")
                })
            }
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
    /// Whether that is so for any graph and machine, or for small graphs and on trees only, where cutting again has
    /// nothing to go by.
    pub has_wide_beam: bool,
    /// Blocks are cut again down to this layer, and of large graphs, where that takes longest, down to that.
    pub again_layers: usize,
    pub again_layers_of_large: usize,
    /// Whether what is outside of a block draws at its halves.
    pub is_drawn: bool,
    /// Whether a part of the distance is that on opened rings.
    pub opens_rings: bool,
    /// Whether objects change places, and push each other out.
    pub swaps: bool,
    /// Whether overloaded blocks are packed anew with others.
    pub repacks: bool,
    /// Whether other starts than from scratch are refined, where those are cheap.
    pub has_others: bool,
    /// One object per PE: mappings that are searched from.
    pub starts: usize,
    /// One object per PE: work of tabu search from each start, in iterations times the square of the PEs, of
    /// which few PEs need less.
    pub tabu_work: usize,
    /// Steps of annealing per object, at each of its temperatures.
    pub anneal_steps: usize,
    /// Whether a mapping from scratch of the default counts, too, so that more work does not end with less.
    pub tries_default: bool,
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
            again_layers: 64,
            again_layers_of_large: 4,
            is_drawn: true,
            opens_rings: true,
            swaps: true,
            repacks: true,
            has_others: true,
            starts: 8,
            tabu_work: 3_000_000,
            anneal_steps: 2000,
            tries_default: false,
        };
        match self {
            Quality::Fast => Settings {
                effort: Effort { tries: 2, ..default.effort },
                repeat_blocks: 16,
                patience: 0,
                beam_layers: 0,
                again_layers: 4,
                again_layers_of_large: 0,
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
                again_layers_of_large: 64,
                beam_tries: 4,
                has_wide_beam: true,
                // Fewer and longer searches find more: sko64 is 0.06 % above the best known on average, and 0.13 % with 18.
                starts: 5,
                tabu_work: 100_000_000,
                anneal_steps: 10_000,
                tries_default: true,
                ..default
            },
            Quality::Without(Ingredient::Cycles) => Ingredient::Cycles.out_of(Quality::Best.settings()),
            Quality::Without(ingredient) => ingredient.out_of(default),
        }
    }
}
