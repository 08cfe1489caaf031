//! When and where the executions of a run were.

use equipoise_network::trace::{Speeds, Step, Trace};

use super::Run;

/// An execution on a PE, in seconds.
#[derive(Clone, Copy)]
pub(super) struct Slice {
    /// The number of the execution.
    pub(super) execution: u32,
    pub(super) pe: u32,
    pub(super) begin: f64,
    pub(super) end: f64,
}

/// The executions of a run, sorted by PE and time. The slices of a PE do not overlap.
pub(super) struct Slices(pub(super) Vec<Slice>);

impl Slices {
    pub(super) fn new(run: &Run) -> Slices {
        let Trace { executions, exit, .. } = run.trace;
        let seconds = run.simulated.map_or(run.trace.seconds, |(timing, _)| timing.seconds);
        // Work after the execution that ended the run is no part of the run.
        let last = exit.map_or(f64::INFINITY, |_| seconds);
        let normal = Speeds::default();
        let mut ends = vec![0.0; run.pes() as usize];
        let mut slices = Vec::with_capacity(executions.len());
        for (number, execution) in (0u32..).zip(executions) {
            let pe = run.pe(number);
            let mut begin = run.begin_seconds(number);
            if run.simulated.is_none() && execution.same_turn {
                // The trace has the begin of the turn for work of the PE itself, which follows the elements' work.
                begin = begin.max(ends[pe as usize]);
            }
            if begin > last || begin.is_infinite() {
                continue;
            }
            let speeds = run.trace.speeds.get(pe as usize).unwrap_or(&normal);
            let end = execution.steps.iter().fold(begin, |now, step| match *step {
                Step::Work(work) => speeds.finish(now, work),
                Step::Send(_) => now,
            });
            ends[pe as usize] = end;
            slices.push(Slice { execution: number, pe, begin, end: end.min(last) });
        }
        // The sort is stable, so executions that begin together stay in recorded order.
        slices.sort_by(|a, b| a.pe.cmp(&b.pe).then(a.begin.total_cmp(&b.begin)));
        for at in 1..slices.len() {
            let before = slices[at - 1];
            let slice = &mut slices[at];
            if slice.pe == before.pe {
                slice.begin = slice.begin.max(before.end);
                slice.end = slice.end.max(slice.begin);
            }
        }
        Slices(slices)
    }

    /// The slices of each PE that has any.
    pub(super) fn by_pe(&self) -> impl Iterator<Item = &[Slice]> {
        self.0.chunk_by(|a, b| a.pe == b.pe)
    }
}
