//! Timelines for Perfetto: `convert RUN.trace OUT.pftrace` and `simulate --perfetto FILE`.

use std::path::Path;

use equipoise_apps::Failure;
use equipoise_model::fault::Classified as _;
use equipoise_model::files::write_whole;
use equipoise_model::table::count;
use equipoise_model::{memory, topology};
use equipoise_network::models;
use equipoise_network::trace::Trace;
use equipoise_report::perfetto::{self, Run};

/// The memory that the timeline needs for each PE.
const BYTES_PER_PE: u64 = 200;

/// Whether the file name is that of a timeline (`.pftrace`).
pub(crate) fn is_timeline(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("pftrace"))
}

/// Writes the timeline of the trace in the file `input`, on the machine that it was recorded on.
pub(crate) fn write_recorded(path: &Path, input: &str, trace: &Trace) -> Result<(), Failure> {
    // The number of PEs is a number in the file, and each PE becomes a track.
    let what = format!("the timeline of {}", count(u64::from(trace.pes), "PE"));
    memory::check(BYTES_PER_PE * u64::from(trace.pes), &what, "record a run on fewer PEs")
        .map_err(|error| Failure::input(format!("{input}: {error}")))?;
    let machine = topology::parse(&trace.topology).map_err(|error| error.to_string());
    let machine = machine.and_then(|machine| match machine.pes() < trace.pes as usize {
        true => Err(format!("it has {} PEs, and the run had {}", machine.pes(), trace.pes)),
        false => Ok(machine),
    });
    if let Err(error) = &machine {
        equipoise::warn(&format!(
            "{input} was recorded on {}: {error}; the timeline has neither nodes nor links",
            trace.topology
        ));
    }
    // A run in real time has no network.
    let limits = models::parse(&trace.network).ok().and_then(|model| model.limits());
    let bandwidth = limits.and_then(|limits| limits.bandwidth);
    write(path, &Run { trace, simulated: None, machine: machine.ok().as_deref(), bandwidth })
}

/// Writes the timeline of a run.
pub(crate) fn write(path: &Path, run: &Run) -> Result<(), Failure> {
    perfetto::check_name(path).map_err(|sentence| Failure::usage(format!("--perfetto: {sentence}")))?;
    write_whole(path, &perfetto::encode(run)).map_err(|error| {
        let sentence = format!("cannot write `{}`: {error}; choose a writable path", path.display());
        Failure::Of(error.fault(), sentence)
    })
}
