//! Why the best routing of a placement, or a bound of it, is unknown; and the largest problems that are solved.

use equipoise_model::fault::{Classified, Fault};

/// The maximum number of variables of a linear program: links times senders, after trees are removed. (At this size,
/// the solver takes a minute and 1 GB.)
pub const MAX_VARIABLES: usize = 1 << 16;

/// The maximum number of links of a machine whose graph is constructed. (At this size, that takes a second.)
pub const MAX_LINKS: usize = 1 << 20;

/// The maximum of vertices times (links plus messages) for which cuts are evaluated. (At this size, the evaluation
/// takes seconds.)
pub const MAX_CUT_WORK: usize = 1 << 28;

/// Why the best routing of a placement is unknown.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum Unsolved {
    /// The build has no solver of linear programs.
    #[error("the best routes need a solver of linear programs; enable the cargo feature `lp`")]
    NotBuilt,
    /// The machine is too large.
    #[error(
        "the best routes are computed for machines of at most {MAX_LINKS} links; this machine has {links}"
    )]
    Links {
        /// Links of the machine.
        links: usize,
    },
    /// The linear program is too large.
    #[error(
        "the linear program of the best routes has more than {MAX_VARIABLES} variables (links times senders)"
    )]
    Variables,
    /// The machine has too many cuts.
    #[error(
        "cuts are evaluated for at most {MAX_CUT_WORK} vertices times links and messages; this problem has more"
    )]
    Cuts,
    /// Successive links of a route do not meet at a vertex.
    #[error(
        "successive links of the machine's routes do not meet, as in products, where no link joins a node and its \
             cores; so routes other than the machine's own are unknown"
    )]
    DisjointLinks,
    /// The solver found no solution within the tolerance.
    #[error(
        "the linear program was not solved to 1e-6: with the best routes the busiest link takes between \
             {bound_seconds:e} s and {seconds:e} s"
    )]
    Inexact {
        /// The time of the best routing found.
        seconds: f64,
        /// Lower bound for all routings.
        bound_seconds: f64,
    },
}

impl Classified for Unsolved {
    fn fault(&self) -> Fault {
        match self {
            Unsolved::Inexact { .. } => Fault::Input,
            _ => Fault::Usage,
        }
    }
}
