//! A recorded run of Jacobi iterations, and its events on other networks and placements, as in section 5.3 of the paper.
//!
//! The paper records traces of a program and replays their events in a network simulator. Here the sample program
//! `stencil2d` runs on the simulated machine with 8x8 blocks on 64 PEs. Its messages between blocks are given the size
//! of the other simulation; messages of the runtime (parts of reductions) keep theirs.

use std::sync::Arc;

use equipoise::{Config, Records};
use equipoise_apps::stencil::{Extent, Rules};
use equipoise_apps::{Failure, stencil2d};
use equipoise_model::Topology;
use equipoise_network::models;
use equipoise_network::trace::{Trace, simulate};

/// The times of iterations.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Time {
    pub(crate) seconds: f64,
    pub(crate) mean_latency_seconds: f64,
}

/// The bytes of a message and the seconds of computation of an iteration in figures 7 to 9.
pub(crate) const MESSAGE_BYTES: u64 = 10_000;
pub(crate) const COMPUTE_SECONDS: f64 = 20e-6;

/// A recorded run.
pub(crate) struct Recorded {
    trace: Trace,
    iterations: u32,
}

/// Cells of a block along each dimension.
const CELLS: i32 = 4;

impl Recorded {
    /// Records a run of a number of iterations.
    ///
    /// # Errors
    /// If the trace cannot be written or read.
    pub(crate) fn of(iterations: u32) -> Result<Recorded, Failure> {
        let folder = tempfile::tempdir().map_err(Failure::input)?;
        let file = folder.path().join("run.trace");
        let mut config = Config::on_machine("torus:4x4x4", "flow:bandwidth=200e6,latency=0.5e-6");
        config.records = Records::trace(&file);
        let charge = Some(COMPUTE_SECONDS / f64::from(CELLS.pow(2)));
        let rules = Rules { iterations, lb_every: 0, charge, ..Rules::default() };
        stencil2d::solve(
            config,
            &stencil2d::Options { blocks: Extent([8; 2]), cells: Extent([CELLS; 2]), rules },
        );
        let mut trace = Trace::read(&file).map_err(Failure::bug)?;
        let pes = trace.pes;
        for message in trace.messages.iter_mut().filter(|message| message.to >= pes) {
            message.bytes = MESSAGE_BYTES;
        }
        Ok(Recorded { trace, iterations })
    }

    /// The times of `iterations` iterations with block `i` on PE `places[i]`.
    ///
    /// # Errors
    /// If the network model does not support the machine.
    pub(crate) fn time(
        &self,
        machine: &Arc<dyn Topology>,
        network: &str,
        places: &[u32],
        iterations: u64,
    ) -> Result<Time, Failure> {
        let placement: Vec<u32> =
            self.trace.objects.iter().map(|object| places[object.rank as usize]).collect();
        let mut network = models::parse(network)?.on(machine)?;
        let timing = simulate(&self.trace, &mut *network, Some(&placement));
        let seconds = timing.seconds * iterations as f64 / f64::from(self.iterations);
        Ok(Time { seconds, mean_latency_seconds: timing.mean_message_latency_seconds })
    }
}

#[cfg(test)]
mod tests {
    use equipoise_model::topology;

    use super::*;

    #[test]
    fn a_recorded_run_has_the_messages_of_its_iterations() {
        let recorded = Recorded::of(5).expect("a trace");
        assert_eq!(
            (recorded.trace.pes, recorded.trace.objects.len(), recorded.trace.arrays.len()),
            (64, 64, 1)
        );
        let halo = recorded.trace.messages.iter().filter(|message| message.bytes == MESSAGE_BYTES).count();
        // 2 * 8 * 7 pairs of neighbors, both ways, in at least 5 exchanges.
        assert!(halo >= 5 * 224, "{halo}");
        // Rank order on a slow network takes at least as long as on a fast one, and at least the computation.
        let machine = topology::parse("torus:4x4x4").expect("a torus");
        let places: Vec<u32> = (0..64).collect();
        let seconds = |network| recorded.time(&machine, network, &places, 5).expect("times").seconds;
        let [slow, fast] = ["flow:bandwidth=5e7", "flow:bandwidth=1e12"].map(seconds);
        assert!(slow > fast && fast >= 5.0 * COMPUTE_SECONDS, "{slow} {fast}");
    }
}
