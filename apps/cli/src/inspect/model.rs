//! `equipoise inspect` of a program: its model in the contention-aware mapper (De Petris, Perego 1994, section 3.2).

use std::cmp::Reverse;
use std::fmt::Write as _;

use equipoise_apps::{Failure, Format, output};
use equipoise_model::table::{aligned, count};
use equipoise_network::program::{self, Model};
use serde::Serialize;

use crate::program::ModelArgs;

/// The JSON document: the quantities of the paper, from the run on an ideal machine, without contention.
#[derive(Serialize)]
struct Document<'a> {
    program: &'a str,
    /// The number of instructions that all processes execute.
    instructions: u64,
    /// The processes; their number is T in the paper.
    processes: Vec<ProcessRow>,
    /// The channels; their number is a in the paper.
    channels: Vec<ChannelRow>,
    /// By phase: its channels, as indices into `channels`. The number of phases is P in the paper.
    phases: &'a [Vec<u32>],
}

#[derive(Serialize)]
struct ProcessRow {
    process: u32,
    /// w_i, the work including sends and receives.
    work_cycles: f64,
    /// q_i, the wait.
    wait_cycles: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    memory_bytes: Option<u64>,
}

#[derive(Serialize)]
struct ChannelRow {
    from: u32,
    to: u32,
    /// m_ij, the number of messages.
    messages: u64,
    /// l_ij, the mean length of a message.
    flits: f64,
    /// q_ij, the wait of the receiver.
    wait_cycles: f64,
}

/// Shows the model of a program; the text lists only the `heaviest` heaviest processes and channels.
pub(crate) fn show(spec: &str, assumed: ModelArgs, heaviest: usize, format: Format) -> Result<(), Failure> {
    let program = program::load(spec)?;
    let model = assumed.model(&program)?;
    let process = |(process, task): (u32, &program::Task)| ProcessRow {
        process,
        work_cycles: Model::cycles(task.work_ticks),
        wait_cycles: Model::cycles(task.wait_ticks),
        memory_bytes: task.memory_bytes,
    };
    let channel = |it: &program::Channel| ChannelRow {
        from: it.from,
        to: it.to,
        messages: it.messages,
        flits: Model::cycles(it.flit_ticks),
        wait_cycles: Model::cycles(it.wait_ticks),
    };
    let document = Document {
        program: spec,
        instructions: program.steps(),
        processes: (0..).zip(&model.tasks).map(process).collect(),
        channels: model.channels.iter().map(channel).collect(),
        phases: &model.phases,
    };
    output::show(format, || text(&document, &model, heaviest), &document)
}

fn text(document: &Document, model: &Model, heaviest: usize) -> String {
    let phases = count(document.phases.len() as u64, "communication phase");
    let mut text = format!(
        "{}: {}, {}, {phases}, {}\n",
        document.program,
        count(document.processes.len() as u64, "task"),
        count(document.channels.len() as u64, "channel"),
        count(document.instructions, "instruction"),
    );
    let mut order: Vec<usize> = (0..model.tasks.len()).collect();
    order.sort_by_key(|&it| Reverse(model.tasks[it].work_ticks + model.tasks[it].wait_ticks));
    let mut lines =
        vec![["process", "work, cycles", "wait, cycles", "memory, bytes"].map(String::from).to_vec()];
    for it in order.into_iter().take(heaviest).map(|at| &document.processes[at]) {
        lines.push(vec![
            it.process.to_string(),
            format!("{:.0}", it.work_cycles),
            format!("{:.0}", it.wait_cycles),
            it.memory_bytes.map_or_else(String::new, |bytes| bytes.to_string()),
        ]);
    }
    let _ = write!(text, "\n{}", aligned(&lines));
    let mut order: Vec<usize> = (0..model.channels.len()).collect();
    let flits = |it: &program::Channel| i128::from(it.messages) * i128::from(it.flit_ticks);
    order.sort_by_key(|&it| Reverse(flits(&model.channels[it])));
    let mut lines =
        vec![["from", "to", "messages", "flits each", "receiver waits, cycles"].map(String::from).to_vec()];
    for it in order.into_iter().take(heaviest).map(|at| &document.channels[at]) {
        lines.push(vec![
            it.from.to_string(),
            it.to.to_string(),
            it.messages.to_string(),
            format!("{:.1}", it.flits),
            format!("{:.0}", it.wait_cycles),
        ]);
    }
    if lines.len() > 1 {
        let _ = write!(text, "\n{}", aligned(&lines));
    }
    text
}
