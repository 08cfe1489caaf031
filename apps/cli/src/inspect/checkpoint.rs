//! `equipoise inspect` of a checkpoint.

use std::path::Path;

use equipoise::checkpoint::{Checkpoint, CheckpointArray};
use equipoise_apps::{Failure, output};
use equipoise_model::quote::printable;
use equipoise_model::table::{aligned, bytes, count, pairs, seconds};
use serde::Serialize;

/// The one JSON document.
#[derive(Serialize)]
struct Document {
    checkpoint: u64,
    folder: String,
    program: String,
    build: String,
    pes: u32,
    processes: u32,
    seed: u64,
    lb_steps: u32,
    bytes: u64,
    arrays: Vec<CheckpointArray>,
}

impl Document {
    fn text(&self) -> String {
        let Document {
            checkpoint, folder, program, build, pes, processes, seed, lb_steps, bytes: all, ..
        } = self;
        let lines = pairs(&[
            ("checkpoint", format!("{checkpoint}, in {folder}")),
            ("program", program.clone()),
            ("build", build.clone()),
            (
                "saved on",
                format!("{} in {}", count(u64::from(*pes), "PE"), count(u64::from(*processes), "process")),
            ),
            ("seed", seed.to_string()),
            ("load-balancing steps", lb_steps.to_string()),
            ("size", bytes(*all)),
        ]);
        let mut rows =
            vec![["array", "shape", "elements", "bytes", "largest", "load"].map(str::to_owned).to_vec()];
        rows.extend(self.arrays.iter().map(|array| {
            vec![
                array.name.clone(),
                array.shape.clone(),
                array.elements.to_string(),
                bytes(array.bytes),
                bytes(array.largest_bytes),
                seconds(array.load_seconds),
            ]
        }));
        printable(&format!("{lines}\n{}", aligned(&rows)))
    }
}

/// Whether `path` is a folder, which only a checkpoint can be.
pub(super) fn is_one(path: &str) -> bool {
    Path::new(path).is_dir()
}

/// Shows the newest checkpoint in a folder, or the one that the folder is.
pub(super) fn show(path: &str, format: output::Format) -> Result<(), Failure> {
    let checkpoint = Checkpoint::open(Path::new(path)).map_err(Failure::input)?;
    let document = Document {
        checkpoint: checkpoint.number(),
        folder: checkpoint.folder().display().to_string(),
        program: checkpoint.program(),
        build: checkpoint.build(),
        pes: checkpoint.pes(),
        processes: checkpoint.processes(),
        seed: checkpoint.seed(),
        lb_steps: checkpoint.steps(),
        bytes: checkpoint.bytes(),
        arrays: checkpoint.arrays(),
    };
    output::show_table(format, || document.text(), &document, &document.arrays)
}
