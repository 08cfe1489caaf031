//! `vcoordfile` of Fugaku (`mpiexec --vcoordfile FILE`): the coordinates of the node of every rank, one per line.
//!
//! `(1,2)` is a node of a job of two dimensions; there are one to three. What follows the bracket (`core=12`) is not
//! read. Empty lines and lines that begin with `#` do not count.

use rustc_hash::FxHashMap;

use super::{Fault, Format, Job, Place, Said, Slots};

/// `fugaku` for the table of formats.
pub const FORMAT: Format = Format {
    name: "fugaku",
    help: "A vcoordfile of Fugaku (mpiexec --vcoordfile FILE): the node of every rank as (x,y,z), one per line. Says \
           nodes; the machine, or its network, must be a torus or mesh of 1 to 3 dimensions.",
    write,
    read,
    has_slots: false,
};

/// The coordinates of a node, if it is on a grid of a job.
fn position(slots: &Slots, node: usize) -> Result<&[usize], String> {
    slots.position(node).filter(|position| (1..=3).contains(&position.len())).ok_or_else(|| {
        "nodes have coordinates on a torus or mesh of 1 to 3 dimensions, or a product of one, as in \
         torus:4x4x4*tree:4:12; this machine is none"
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

fn read(text: &str, slots: &Slots) -> Result<Said, Fault> {
    let mut at: FxHashMap<&[usize], usize> = FxHashMap::default();
    for node in 0..slots.nodes() {
        at.insert(position(slots, node).map_err(|reason| (1, reason))?, node);
    }
    let mut said = Vec::new();
    for (line, text) in (1..).zip(text.lines().map(str::trim)) {
        if text.is_empty() || text.starts_with('#') {
            continue;
        }
        let inside = text.strip_prefix('(').and_then(|rest| rest.split_once(')')).map(|(inside, _)| inside);
        let numbers = inside.and_then(|inside| {
            let numbers = inside.split(',').map(|word| word.trim().parse::<usize>().ok());
            numbers.collect::<Option<Vec<_>>>()
        });
        let numbers =
            numbers.ok_or_else(|| (line, format!("expected coordinates such as (1,2,3), found `{text}`")))?;
        let node = at.get(numbers.as_slice()).ok_or_else(|| {
            (line, format!("the machine has no node {text}; is it another machine's file?"))
        })?;
        said.push((Place::Node(*node), line));
    }
    Ok(said)
}
