//! The numbers of a report: one document with a version.
//!
//! Lists are columns, so that large reports stay small: all lists of objects have the order of the database, and all lists of PEs
//! have the order of their numbers. Loads and times are seconds, rounded to four digits.

use equipoise_strategies::cost::Metrics;
use serde::Serialize;

use crate::between::Between;
use crate::heat::Heat;

/// The version of the document. It rises where a field goes or changes its meaning; a new field does not raise it.
pub const VERSION: u32 = 4;

/// All numbers of a report.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ReportData {
    /// [`VERSION`].
    pub version: u32,
    /// The title.
    pub title: String,
    /// The spec of the machine.
    pub topology: String,
    /// What the report says in words, the most important sentence first.
    pub sentences: Vec<String>,
    /// The position in `placements` of the recommended placement.
    pub recommended: Option<usize>,
    /// The title of the recommendation: "Recommended", or "Best of these" where keeping the placement before is better. None without a
    /// recommendation.
    pub recommendation_title: Option<String>,
    /// Whether loads are weights of a task graph, which have no unit. The names of fields say seconds all the same.
    pub weights: bool,
    /// The step that placements belong to, if there are several steps.
    pub step: Option<u64>,
    /// The bandwidth of all links in bytes per second, if it is the default of a machine without bandwidths.
    pub assumed_bandwidth: Option<f64>,
    /// The PEs.
    pub pes: Pes,
    /// The objects.
    pub objects: Objects,
    /// The bytes between objects in the order of the database; none if communication was not recorded.
    pub matrix: Option<Matrix>,
    /// The objects that send to objects, which the rows of matrices stand for; empty if these are all objects, as where at least half of
    /// the objects send.
    pub senders: Vec<u32>,
    /// The objects that receive from objects, which the columns of matrices stand for; empty in the same way.
    pub receivers: Vec<u32>,
    /// The fewest objects that together send half of the bytes between objects; none if there are none.
    pub half_senders: Option<u32>,
    /// The part of the bytes between objects whose sender cannot move; none if there are no such bytes, or if nothing can move.
    pub fixed_senders_part: Option<f64>,
    /// The edges with the most bytes: (sender, receiver, bytes), of which both ends are objects.
    pub heaviest_edges: Vec<(u32, u32, u64)>,
    /// The links that the page draws; none if there are no messages.
    pub machine: Option<Machine>,
    /// The placements; the first one is that before.
    pub placements: Vec<Placement>,
    /// The strategies without an answer, with the reason.
    pub refusals: Vec<(String, String)>,
    /// The load of each PE at each step before the step, if there are several steps.
    pub steps: Option<Heat>,
    /// The load-balancing steps of a run; of more than 1000 steps the first 500 and the last 500.
    pub run_steps: Vec<RunStep>,
    /// Which part of the time each PE was busy, if a trace was recorded.
    pub timeline: Option<Heat>,
    /// The load-balancing steps in the timeline: (number, begin in seconds).
    pub timeline_steps: Vec<(u64, f64)>,
    /// The timeline of the recorded run, if that above is of a simulation of its trace.
    pub recorded_timeline: Option<Heat>,
}

/// A load-balancing step of a run.
///
/// Times of periods are seconds for each sync point, so that periods of different lengths can be compared.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct RunStep {
    /// The number of the step.
    pub step: u64,
    /// The strategy; none if the step only collected loads.
    pub strategy: Option<String>,
    /// The sync points of the period before the step.
    pub sync_points: u32,
    /// The objects that moved.
    pub migrations: u64,
    /// The average load of a PE in that period.
    pub average_load_seconds: f64,
    /// The largest load of a PE in that period, and what it would have been with the placement after the step.
    pub max_load_seconds: [f64; 2],
    /// The largest load over the average, with the loads of the period before the step: before and after it.
    pub max_over_avg: [f64; 2],
    /// The hop-bytes of the messages of that period: before and after the step; none if there are no messages.
    pub hop_bytes: Option<[u128; 2]>,
    /// The measured time of the period before the step.
    pub period_seconds: f64,
    /// The predicted time of a period with the loads of the one before and the placement after the step, if costs of messages are known.
    pub predicted_seconds: Option<f64>,
    /// The measured time of the period after the step, with what the step itself took, unless the step is the last one, or the next one is not listed.
    pub next_seconds: Option<f64>,
    /// The time from the call of the last element to the decision, with that of the strategy if it is charged. Not divided by sync points.
    pub decision_seconds: f64,
}

/// The PEs, by number.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Pes {
    /// The names, where hosts are known; else empty.
    pub names: Vec<String>,
    /// The relative speeds; empty if all are 1.
    pub speeds: Vec<f64>,
    /// The time outside of objects.
    pub background_seconds: Vec<f64>,
    /// The PEs that may have no objects.
    pub unavailable: Vec<u32>,
    /// The node of each PE, for the matrix of migrations.
    pub nodes: Vec<u32>,
    /// 0, or what begins with this PE: 1 is a node, 2 is one of the largest parts of the machine.
    pub borders: Vec<u8>,
    /// What these parts are, such as `nodes` or `parts of height 2`; empty if there are none.
    pub largest_parts: String,
}

/// The objects, in the order of the database.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Objects {
    /// The names of arrays.
    pub arrays: Vec<String>,
    /// By object: its array.
    pub array: Vec<u32>,
    /// By dimension, then by object: the coordinate of its index, 0 if its index has fewer dimensions. Empty if objects have no index.
    pub index: Vec<Vec<i32>>,
    /// By object: the dimensions of its index; empty if all indices have the same dimensions.
    pub dimensions: Vec<u8>,
    /// By object: its id, as text because not every browser's number can hold it; empty if all objects have an index, or if ids are positions.
    pub ids: Vec<String>,
    /// By object: its load.
    pub load_seconds: Vec<f64>,
    /// By object: its encoded size in bytes; empty if a size is unknown.
    pub bytes: Vec<u64>,
}

/// A placement, and what it costs.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Placement {
    /// The strategy, or `as recorded`, `in blocks`, `before` or `start` for the placement before.
    pub name: String,
    /// The time that the strategy took; none for the placement before, and on a simulated machine that does not charge it.
    pub strategy_seconds: Option<f64>,
    /// The costs.
    pub metrics: Metrics,
    /// The costs summed over all steps, if there are several and the strategy had an answer for each.
    pub totals: Option<Metrics>,
    /// The time that the strategy took in all steps.
    pub total_strategy_seconds: Option<f64>,
    /// What the placement changes, in words.
    pub sentences: Vec<String>,
    /// Whether no other placement is as good in all costs and better in one of them.
    pub on_front: Option<bool>,
    /// Placements between the one before and this one, by migrations; empty if the report has none.
    pub between: Vec<Between>,
    /// By object: its PE.
    pub pe_of: Vec<u32>,
    /// By PE: its load.
    pub load_seconds: Vec<f64>,
    /// By object: the change of hop-bytes by its migration alone, with all others done; rounded to three digits. Empty for the placement
    /// before.
    pub hop_bytes_by_move: Vec<i64>,
    /// By distance, ascending: (distance, bytes).
    pub distances: Vec<(u32, u64)>,
    /// By level of the machine: (name, bytes).
    pub levels: Vec<(String, u64)>,
    /// By link of [`ReportData::machine`]: bytes over bandwidth.
    pub link_seconds: Vec<f64>,
    /// The first eight of those links of [`ReportData::machine`] whose time is that of the busiest one.
    pub busiest_drawn: Vec<u32>,
    /// The number of links whose time is that of the busiest one, and at least 95 % of it. 0 if no message crosses a link.
    pub busiest_links: [usize; 2],
    /// The links with the longest times: (name, bytes, seconds).
    pub top_links: Vec<(String, u64, f64)>,
    /// The bytes between the PEs of objects; those between objects on one PE are on its diagonal.
    pub matrix: Option<Matrix>,
    /// The load of each PE at each step after the step, if there are several steps.
    pub steps: Option<Heat>,
}

/// A matrix of bytes with a row for each bin of senders and a column for each bin of receivers.
///
/// Senders and receivers are the objects of [`ReportData::senders`] and [`ReportData::receivers`], or the PEs of a placement. A bin is a
/// range of them: sender `i` of `n` is in row `i * rows / n`, and receivers are divided among columns in the same way. Only cells with
/// bytes are listed, row by row.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Matrix {
    /// The number of bins of senders.
    pub rows: usize,
    /// The number of bins of receivers.
    pub columns: usize,
    /// The distance of each cell from the previous one.
    pub gaps: Vec<u32>,
    /// By cell: four times the binary logarithm of the bytes, rounded.
    pub levels: Vec<u16>,
    /// The bytes of the cells with the fewest and the most; zeros if no cell has bytes.
    pub ends: [u64; 2],
}

/// The links of a machine as the page draws them. A drawn link joins the cables between the same two places; its time is that of its
/// busiest cable.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "layout", rename_all = "lowercase")]
pub enum Machine {
    /// A torus, a mesh or a hypercube.
    Grid {
        /// Nodes per dimension, the first dimension fastest.
        sizes: Vec<usize>,
        /// Whether each dimension wraps.
        wraps: Vec<bool>,
        /// By PE: its node.
        nodes: Vec<u32>,
        /// By link: the node where it begins.
        from: Vec<u32>,
        /// By link: the node where it ends.
        to: Vec<u32>,
    },
    /// A tree or fat tree.
    Tree {
        /// By level from below the root to the leaves, by vertex: its first leaf; finally the number of leaves.
        starts: Vec<Vec<u32>>,
        /// By leaf: its PE, or its node if leaves are nodes.
        leaves: Vec<u32>,
        /// Whether the leaves are nodes.
        of_nodes: bool,
        /// By level: its height, as in names of switches, with what its vertices are: `height 2`, `height 1 (nodes)`, `PEs`.
        names: Vec<String>,
        /// By link: the level of its lower end.
        level: Vec<u32>,
        /// By link: the vertex of that level.
        vertex: Vec<u32>,
        /// By link: whether it leads up.
        up: Vec<bool>,
    },
    /// A dragonfly: links within and between groups.
    Groups {
        /// The number of groups.
        groups: usize,
        /// By link: the group where it begins; the number of groups stands for the PEs of the group `to`.
        from: Vec<u32>,
        /// By link: the group where it ends; the number of groups stands for the PEs of the group `from`.
        to: Vec<u32>,
    },
    /// Any other machine: the page lists the busiest links only.
    Links,
}
