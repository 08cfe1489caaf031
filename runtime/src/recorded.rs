//! The trace of a run that is over, and the files of `--record` and `--perfetto`.

use crate::events::Alignment;
use crate::events::join::{Names, ProcessEvents, join};
use crate::node::{Node, Outcome};
use crate::options::{Settings, unwritable};
use crate::process;
use equipoise_model::files::write_whole;
use equipoise_model::table::{bytes, count, seconds};
use equipoise_network::trace::Trace;
use equipoise_report::perfetto::{self, Run};

/// Makes the trace of a run that is over, on process 0, of what the PEs of all processes recorded in real time.
pub(crate) fn complete(node: &Node, outcome: &mut Outcome) {
    if node.start.is_none() || node.first != 0 {
        return;
    }
    let mut processes = std::mem::take(&mut outcome.gathered_events);
    let pes = std::mem::take(&mut outcome.events);
    processes.push(ProcessEvents { process: 0, alignment: Alignment::default(), pes });
    let trace = trace(node, &mut processes);
    if node.settings.program {
        clock_note(&trace, &processes).iter().for_each(|note| process::note(note));
    }
    outcome.trace = Some(trace);
}

fn trace(node: &Node, processes: &mut [ProcessEvents]) -> Trace {
    let settings = &node.settings;
    let element = |(array, rank)| node.pulses.element(array, rank);
    let names = Names {
        arrays: node.pulses.array_names(),
        expedited: node.pulses.expedited(),
        entries: node.pulses.all_entries(),
        element: &element,
    };
    let head = Trace {
        topology: settings.topology.spec(),
        network: if settings.is_distributed { "mpi" } else { "threads" }.into(),
        seed: settings.seed,
        pes: node.pes,
        ..Trace::default()
    };
    join(head, &names, processes)
}

/// The warning that events were dropped, if any were.
pub(crate) fn dropped(settings: &Settings, trace: &Trace) -> Option<String> {
    let details = &trace.details;
    (details.dropped_events > 0).then(|| {
        format!(
            "it begins {} after the begin of the run, because the oldest events were dropped when the memory of --record-limit ({}) \
             was full; give a larger size to record more",
            seconds(details.begins_seconds),
            bytes(settings.records.limit())
        )
    })
}

/// What a user should know of the clocks of a trace; nothing where one clock was enough.
fn clock_note(trace: &Trace, processes: &[ProcessEvents]) -> Option<String> {
    if processes.len() < 2 {
        return None;
    }
    let aligned = format!(
        "recording: the clocks of {} are aligned within {} to that of process 0",
        count(processes.len() as u64, "process"),
        seconds(trace.details.clock_error_seconds)
    );
    let drifts = processes.iter().filter(|it| it.process > 0).map(|it| it.alignment.drift());
    let drift = drifts.collect::<Option<Vec<_>>>().and_then(|drifts| drifts.into_iter().max());
    Some(match drift {
        Some(drift) => {
            format!("{aligned}; they drifted by at most {} during the run", seconds(drift as f64 * 1e-9))
        }
        // A run that failed has no second comparison.
        None => format!("{aligned} at the begin of the run; they were not compared at its end"),
    })
}

/// Writes the files of a run; returns why files could not be written. A trace of virtual time is written already.
pub(crate) fn write(settings: &Settings, trace: &Trace) -> Vec<String> {
    let mut errors = Vec::new();
    if let Some(path) = settings.records.record.as_ref().filter(|_| settings.simulation.is_none()) {
        errors.extend(trace.write(path).err().map(|error| error.to_string()));
    }
    if let Some(path) = &settings.records.perfetto {
        let limits = settings.simulation.as_ref().and_then(|simulation| simulation.limits);
        let bandwidth = limits.and_then(|limits| limits.bandwidth);
        let run = Run { trace, simulated: None, machine: Some(&*settings.topology), bandwidth };
        let written = write_whole(path, &perfetto::encode(&run));
        errors.extend(written.err().map(|error| unwritable("--perfetto", path, &error)));
    }
    errors
}
