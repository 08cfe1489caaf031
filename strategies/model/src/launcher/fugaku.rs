//! `vcoordfile` of Fugaku (`mpiexec --vcoordfile FILE`): the coordinates of the node of every rank, one per line.
//!
//! `(1,2)` is a node of a job with two dimensions; one to three dimensions are supported. The number of cores after the
//! bracket (`core=12`) is ignored, as are empty lines and lines that begin with `#`.

use rustc_hash::FxHashMap;

use super::{Entries, Format, Job, Place, RankFile, Slots};
use crate::files::AtLine;

/// The entry of `fugaku` in the list of formats.
pub const FORMAT: Format = Format {
    name: "fugaku",
    form: "",
    help: "A vcoordfile of Fugaku (mpiexec --vcoordfile FILE): the node of every rank as (x,y,z), one per \
           line. Contains nodes, but no slots; the machine, or its network, must be a torus or mesh of 1 to 3 \
           dimensions.",
    params: &[],
    item: RankFile { write, read, has_slots: false },
};

/// The coordinates of a node, if the machine is a grid of one to three dimensions.
fn position(slots: &Slots, node: usize) -> Result<&[usize], String> {
    slots.position(node).filter(|position| (1..=3).contains(&position.len())).ok_or_else(|| {
        "nodes have no coordinates on this machine; use a torus or mesh of 1 to 3 dimensions, or a product, as in \
         torus:4x4x4*tree:4:12"
            .into()
    })
}

fn write(job: &Job) -> Result<String, String> {
    let line = |node| {
        let words: Vec<String> = position(job.slots, node)?.iter().map(usize::to_string).collect();
        Ok(format!("({})\n", words.join(",")))
    };
    job.nodes().map(line).collect()
}

fn read(text: &str, slots: &Slots) -> Result<Entries, AtLine> {
    let mut at: FxHashMap<&[usize], usize> = FxHashMap::default();
    for node in 0..slots.nodes() {
        at.insert(position(slots, node).map_err(|reason| (1, reason))?, node);
    }
    let mut entries = Vec::new();
    for (line, text) in (1..).zip(text.lines().map(str::trim)) {
        if text.is_empty() || text.starts_with('#') {
            continue;
        }
        let parts = text.strip_prefix('(').and_then(|rest| rest.split_once(')'));
        let inside = parts.filter(|(_, after)| is_cores(after)).map(|(inside, _)| inside);
        let numbers = inside.and_then(|inside| {
            let numbers = inside.split(',').map(|word| word.trim().parse::<usize>().ok());
            numbers.collect::<Option<Vec<_>>>()
        });
        let numbers = numbers.ok_or_else(|| {
            (
                line,
                format!("expected coordinates such as (1,2,3), found `{text}`; only core=N may follow them"),
            )
        })?;
        let node = at.get(numbers.as_slice()).ok_or_else(|| {
            (line, format!("the machine has no node `{text}`; check that the file is for this machine"))
        })?;
        entries.push((Place::Node(*node), line));
    }
    Ok(entries)
}

/// Whether the text after the coordinates is empty or a number of cores.
fn is_cores(after: &str) -> bool {
    let number =
        after.trim_ascii_start().strip_prefix("core=").filter(|_| after.starts_with(char::is_whitespace));
    after.is_empty() || number.is_some_and(|number| number.parse::<u64>().is_ok())
}
