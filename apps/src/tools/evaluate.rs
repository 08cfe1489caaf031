//! `equipoise evaluate`: what a mapping costs.

use std::path::PathBuf;
use std::sync::Arc;

use equipoise_strategies::Topology;
use equipoise_strategies::cost::Metrics;
use equipoise_strategies::table::count;

use super::{input, metrics, output};
use crate::Format;

/// What is evaluated.
#[derive(clap::Args)]
pub struct Args {
    /// The task graph: a generator such as mesh:16x16, or a file (METIS .graph, Matrix Market .mtx, .csv,
    /// or a database); `help` lists all kinds
    #[arg(long, value_name = "SPEC|FILE", value_parser = input::graph())]
    graph: String,

    /// The machine, as in torus:4x4x4; `help` lists all kinds
    #[arg(long, value_name = "SPEC", value_parser = input::machine())]
    topology: Arc<dyn Topology>,

    /// The PE of every task: one per line, in task order
    #[arg(long, value_name = "FILE")]
    mapping: PathBuf,

    /// How the result is shown
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

impl Args {
    pub(super) fn run(self) -> anyhow::Result<()> {
        let machine = &*self.topology;
        let database = input::graph_on(&self.graph, machine)?;
        let mapping = input::mapping(&self.mapping, &database)?;
        let metrics =
            output::watched("following every message", || Metrics::full(&database, machine, &mapping));
        let text = || {
            let (tasks, edges) = (database.objects.len() as u64, database.edges.len() as u64);
            let (tasks, edges) = (count(tasks, "task"), count(edges, "edge"));
            let table = metrics::table(&[("", &metrics)]);
            format!("{} on {}: {tasks}, {edges}\n\n{table}", self.graph, machine.spec())
        };
        output::show(self.format, text, &metrics)
    }
}
