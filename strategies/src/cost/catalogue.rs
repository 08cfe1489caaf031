//! All costs by name: the names that `evaluate --cost` and searches accept, the rows of the tables of `map`, `evaluate` and
//! `explain`, and the columns of `replay`.
//!
//! The name of a cost is also the name of its field in documents. Documents contain the plain number, tables the number
//! with a unit. To add a cost, add an entry to [`ALL`], and compute it in a new file unless it is one of the
//! [`Metrics`] or in a file here.

use std::fmt::Write as _;
use std::str::FromStr;

use equipoise_model::fault::{Classified, Fault};
use equipoise_model::params::ParamError;

use super::criterion::Cost;
use super::mcf_optimal::{self, Ways};
use super::qap::Metric;
use super::{Communication, Metrics, cuts};

mod amount;
mod placed;

pub use amount::Amount;
pub use placed::Placed;

/// Every cost, in the order of tables.
pub const ALL: &[Entry] = &[
    of_metrics("max_load_seconds", "largest load", |m| Amount::Seconds(m.max_load_seconds))
        .needs(Needs::Loads),
    of_metrics("phases_seconds", "slowest PE, summed over phases", |m| {
        m.phases_seconds.map_or(Amount::Unknown, Amount::Seconds)
    })
    .needs(Needs::Phases)
    .column("phases"),
    of_metrics("average_load_seconds", "average load", |m| Amount::Seconds(m.average_load_seconds))
        .needs(Needs::Loads),
    of_metrics("lower_bound_seconds", "lower bound of the largest load", |m| {
        Amount::Seconds(m.lower_bound_seconds)
    })
    .needs(Needs::Loads),
    of_metrics("heaviest_object_seconds", "heaviest object alone", |m| {
        Amount::Seconds(m.heaviest_object_seconds)
    })
    .needs(Needs::Loads),
    of_metrics("imbalance", "max/avg load", |m| Amount::Imbalance(m.imbalance))
        .needs(Needs::Loads)
        .column("max/avg"),
    of_metrics("load_above_bound", "largest load above its lower bound", |m| {
        Amount::above(m.max_load_seconds, m.lower_bound_seconds)
    })
    .needs(Needs::Loads)
    .shown(Shown::OnRequest)
    .column("above bound"),
    of_metrics("step_seconds", "predicted time of the period", |m| {
        m.step_seconds.map_or(Amount::Unknown, Amount::Seconds)
    })
    .needs(Needs::Costs)
    .column("period"),
    of_messages("total_messages", "messages", |c| Amount::Count(c.total_messages.into())),
    of_messages("remote_messages", "messages between PEs", |c| Amount::Count(c.remote_messages.into())),
    of_messages("total_bytes", "bytes", |c| Amount::Bytes(c.total_bytes)),
    of_messages("remote_bytes", "bytes between PEs", |c| Amount::Bytes(c.remote_bytes)),
    of_messages("hop_bytes", "hop-bytes", |c| Amount::Count(c.hop_bytes)),
    of_messages("hop_bytes_lower_bound", "lower bound of hop-bytes", |c| {
        c.hop_bytes_lower_bound.map_or(Amount::Unknown, Amount::Count)
    }),
    of_messages("hops_per_byte", "hops per byte", |c| Amount::Ratio(c.hops_per_byte)).column("hops/byte"),
    of_messages("hops_per_remote_byte", "hops per byte between PEs", |c| {
        Amount::Ratio(c.hops_per_remote_byte)
    }),
    of_messages("dilation_above_1", "hops per byte between PEs above 1", |c| {
        Amount::above(c.hop_bytes as f64, c.remote_bytes as f64)
    })
    .needs(Needs::Distances)
    .shown(Shown::OnRequest)
    .column("above dilation 1"),
    of_messages("max_dilation", "longest dilation", |c| Amount::Count(c.max_dilation.into())),
    of_messages("max_link_bytes", "bytes over the busiest link", |c| {
        c.max_link_bytes.map_or(Amount::Unknown, Amount::Bytes)
    })
    .column("busiest link"),
    of_messages("mean_link_bytes", "bytes over a link on average", |c| {
        c.mean_link_bytes.map_or(Amount::Unknown, Amount::MeanBytes)
    }),
    of_placement("contention", "estimated end, with contention", |placed| {
        Ok(Amount::Seconds(placed.contention_seconds()))
    })
    .shown(Shown::OfPrograms),
    of_metrics("migrations", "objects moved", |m| Amount::Count(m.migrations.into()))
        .needs(Needs::Moves)
        .column("moves"),
    of_metrics("migrated_bytes", "bytes moved", |m| m.migrated_bytes.map_or(Amount::Unknown, Amount::Bytes))
        .needs(Needs::Sizes)
        .column("moved"),
    of_metrics("migration_seconds", "predicted time of the migrations", |m| {
        m.migration_seconds.map_or(Amount::Unknown, Amount::Seconds)
    })
    .needs(Needs::CostsOfMoves)
    .column("moving"),
    // The same integer as `hop_bytes`.
    of_messages("qap:hops", "bytes times hops", |c| Amount::Count(c.hop_bytes))
        .shown(Shown::OnRequest)
        .criterion(Cost::Qap(Metric::Hops)),
    of_placement("qap:bandwidth", "bytes times seconds per byte when all PEs send to all", |placed| {
        placed.cost(Cost::Qap(Metric::Bandwidth), Amount::Seconds)
    })
    .criterion(Cost::Qap(Metric::Bandwidth)),
    of_placement("qap:rtt", "bytes times round-trip seconds", |placed| {
        placed.cost(Cost::Qap(Metric::Rtt), Amount::Ratio)
    })
    .criterion(Cost::Qap(Metric::Rtt)),
    of_placement("mcf", "time of the busiest link", |placed| placed.cost(Cost::Mcf, Amount::Seconds))
        .criterion(Cost::Mcf)
        .needs(Needs::Bandwidths)
        .shown(Shown::Usually),
    of_placement("mcf:optimal", "time of the busiest link, best routes", |placed| {
        let best = placed.best_routes().map_err(|unsolved| unsolved.to_string())?;
        Ok(Amount::Seconds(best.seconds))
    })
    .criterion(Cost::Optimal(Ways::Any)),
    of_placement("mcf:shortest", "time of the busiest link, best shortest routes", |placed| {
        placed.cost(Cost::Optimal(Ways::Shortest), Amount::Seconds)
    })
    .criterion(Cost::Optimal(Ways::Shortest)),
    of_placement("mcf:cuts", "lower bound of the time of the busiest link, by cuts", |placed| {
        let bound = cuts::bound(placed.database, placed.topology, placed.pe_of);
        bound.map(Amount::Seconds).map_err(|unsolved| unsolved.to_string())
    }),
];

/// A cost with its name and its presentation.
pub struct Entry {
    /// The name, which is also its field in documents.
    pub name: &'static str,
    /// The label in tables.
    pub title: &'static str,
    /// The heading of the column in the table of `replay`, if any.
    pub column: Option<&'static str>,
    /// When tables show the cost although it was not requested by name.
    pub shown: Shown,
    /// The criterion of searches that minimises this cost, if any.
    pub criterion: Option<Cost>,
    needs: Needs,
    of: Source,
}

/// When tables show a cost that was not requested by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shown {
    /// Always.
    Usually,
    /// If the tasks are processes of a program.
    OfPrograms,
    /// Never: it is expensive, or rarely useful.
    OnRequest,
}

/// The data without which a cost is meaningless.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Needs {
    Loads,
    /// Loads by phase.
    Phases,
    Messages,
    /// Messages that travel more than one hop.
    Distances,
    Moves,
    /// Sizes of migrated objects.
    Sizes,
    /// Seconds of messages, and the time of the recorded period.
    Costs,
    /// Seconds of migrations.
    CostsOfMoves,
    /// Links with different bandwidths; elsewhere the bytes over the busiest link say the same.
    Bandwidths,
}

/// The input from which a cost is computed.
enum Source {
    Metrics(fn(&Metrics) -> Amount),
    Communication(fn(&Communication) -> Amount),
    Placement(fn(&Placed) -> Result<Amount, String>),
}

/// A cost of loads and migrations.
const fn of_metrics(name: &'static str, title: &'static str, of: fn(&Metrics) -> Amount) -> Entry {
    Entry::new(name, title, Source::Metrics(of))
}

/// A cost of communication that is one of the metrics.
const fn of_messages(name: &'static str, title: &'static str, of: fn(&Communication) -> Amount) -> Entry {
    Entry::new(name, title, Source::Communication(of))
}

/// Any other cost of communication. It is computed on request; a failure makes it unknown, with the error as the reason.
const fn of_placement(
    name: &'static str,
    title: &'static str,
    of: fn(&Placed) -> Result<Amount, String>,
) -> Entry {
    Entry::new(name, title, Source::Placement(of)).shown(Shown::OnRequest)
}

impl Entry {
    const fn new(name: &'static str, title: &'static str, of: Source) -> Self {
        let (column, shown, criterion) = (None, Shown::Usually, None);
        Entry { name, title, column, shown, criterion, needs: Needs::Messages, of }
    }

    const fn needs(self, needs: Needs) -> Self {
        Entry { needs, ..self }
    }

    const fn shown(self, shown: Shown) -> Self {
        Entry { shown, ..self }
    }

    const fn criterion(self, by: Cost) -> Self {
        Entry { criterion: Some(by), ..self }
    }

    /// Only metrics may have columns, because `replay` aggregates metrics over steps.
    const fn column(self, heading: &'static str) -> Self {
        assert!(!matches!(self.of, Source::Placement(_)), "columns are of metrics");
        Entry { column: Some(heading), ..self }
    }

    /// The value of the cost for a placement.
    pub fn of(&self, placed: &Placed) -> Amount {
        match self.of {
            Source::Placement(of) => placed.known(self.name, of),
            _ => self.in_metrics(&placed.metrics),
        }
    }

    /// The value of the cost from metrics alone; unknown if it is not one of the metrics.
    pub fn in_metrics(&self, metrics: &Metrics) -> Amount {
        match self.of {
            Source::Metrics(of) => of(metrics),
            Source::Communication(of) => metrics.communication.as_ref().map_or(Amount::Unknown, of),
            Source::Placement(_) => Amount::Unknown,
        }
    }

    /// Whether the cost is meaningful in a table about this subject.
    pub fn applies_to(&self, subject: Subject) -> bool {
        match self.needs {
            Needs::Loads => subject.loads,
            Needs::Phases => subject.phases,
            Needs::Messages => subject.messages,
            Needs::Distances => subject.distances,
            Needs::Moves => true,
            Needs::Sizes => subject.sizes,
            Needs::Costs | Needs::CostsOfMoves => subject.costs,
            Needs::Bandwidths => subject.bandwidths,
        }
    }

    /// Whether the cost is about migrations, and therefore meaningless for the recorded placement.
    pub fn is_of_moves(&self) -> bool {
        matches!(self.needs, Needs::Moves | Needs::Sizes | Needs::CostsOfMoves)
    }

    /// Whether the cost is a load, whose unit is that of the loads of the tasks.
    pub fn is_load(&self) -> bool {
        matches!(self.needs, Needs::Loads | Needs::Phases)
    }

    /// The cargo feature that the cost needs and this build lacks, if any.
    fn missing_feature(&self) -> Option<&'static str> {
        let is_program = matches!(self.criterion, Some(Cost::Optimal(_)));
        (is_program && !mcf_optimal::IS_BUILT).then_some("lp")
    }
}

/// The data available for a table.
#[derive(Clone, Copy, Debug)]
pub struct Subject {
    /// Whether objects have different loads, or several objects share a PE.
    pub loads: bool,
    /// Whether loads are known by phase.
    pub phases: bool,
    /// Whether there are messages.
    pub messages: bool,
    /// Whether any message travels more than one hop.
    pub distances: bool,
    /// Whether the sizes of objects are known.
    pub sizes: bool,
    /// Whether the costs of messages are known.
    pub costs: bool,
    /// Whether links have different bandwidths.
    pub bandwidths: bool,
}

impl Subject {
    /// All data are available.
    pub const WHOLE: Subject = Subject {
        loads: true,
        phases: true,
        messages: true,
        distances: true,
        sizes: true,
        costs: true,
        bandwidths: true,
    };
}

/// The costs that tables show if no cost is requested by name.
pub fn usual() -> impl Iterator<Item = &'static Entry> {
    ALL.iter().filter(|cost| cost.shown == Shown::Usually)
}

/// The named cost is not available.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CostError {
    /// No cost has this name.
    #[error(transparent)]
    Unknown(#[from] ParamError),
    /// The cost was left out of this build.
    #[error("`{name}` is not in this build; enable the feature `{feature}`")]
    NotBuilt {
        /// The name.
        name: &'static str,
        /// The cargo feature that it needs.
        feature: &'static str,
    },
}

impl Classified for CostError {
    fn fault(&self) -> Fault {
        Fault::Usage
    }
}

/// The cost of that name.
///
/// # Errors
/// When no cost has this name, or the cost is not in this build.
pub fn parse(name: &str) -> Result<&'static Entry, CostError> {
    let Some(entry) = ALL.iter().find(|cost| cost.name == name) else {
        let known: Vec<&str> = ALL.iter().map(|cost| cost.name).collect();
        return Err(ParamError::unknown("cost", name, &known, &known).into());
    };
    match entry.missing_feature() {
        None => Ok(entry),
        Some(feature) => Err(CostError::NotBuilt { name: entry.name, feature }),
    }
}

/// The costs of this build that searches can minimise.
pub(crate) fn minimisable() -> impl Iterator<Item = &'static Entry> {
    ALL.iter().filter(|cost| cost.criterion.is_some() && cost.missing_feature().is_none())
}

impl FromStr for Cost {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let remark = match parse(name) {
            Ok(Entry { criterion: Some(cost), .. }) => return Ok(*cost),
            Err(error @ CostError::NotBuilt { .. }) => return Err(error.to_string()),
            Ok(_) => format!("; searches cannot minimise `{name}`"),
            Err(CostError::Unknown(_)) => String::new(),
        };
        let known: Vec<String> = minimisable().map(|cost| format!("`{}`", cost.name)).collect();
        Err(format!("costs are {}{remark}", known.join(", ")))
    }
}

/// The help text of options that take costs by name.
pub fn help() -> String {
    let width = ALL.iter().map(|cost| cost.name.len()).max().unwrap_or(0);
    ALL.iter().fold(String::new(), |mut text, cost| {
        let needs = cost
            .missing_feature()
            .map_or(String::new(), |feature| format!(" (not in this build: needs `{feature}`)"));
        _ = writeln!(text, "{:width$}  {}{needs}", cost.name, cost.title);
        text
    })
}

/// The help text on the columns of the table of `replay`.
pub fn help_on_columns() -> String {
    let columns = || ALL.iter().filter_map(|cost| Some((cost.column?, cost.title)));
    let width = columns().map(|(heading, _)| heading.len()).max().unwrap_or(0);
    columns().fold(String::new(), |mut text, (heading, title)| {
        _ = writeln!(text, "{heading:width$}  {title}");
        text
    })
}

#[cfg(test)]
mod tests;
