//! The order of devices for a mesh of JAX: a JSON list with the number of the device of every rank.
//!
//! `numpy.array(jax.devices())[order].reshape(shape)` is the array of devices for `jax.sharding.Mesh`. JAX sorts devices by
//! process, so device numbers count the slots of one node after the other; process i must run on node i of the machine.

use serde_json::value::RawValue;

use super::{Entries, Format, Job, Place, RankFile, Slots};
use crate::files::AtLine;
use crate::files::line_of;

/// The entry of `jax` in the list of formats.
pub const FORMAT: Format = Format {
    name: "jax",
    form: "",
    help: "The device order for a mesh of JAX: a JSON list with the device of every rank, numbered node by node, for \
           numpy.array(jax.devices())[order].",
    params: &[],
    item: RankFile { write, read, has_slots: true },
};

/// For each node, the number of its first device, and finally the number of devices.
fn first_devices(slots: &Slots) -> Vec<u64> {
    let sum = |sum: &mut u64, node| {
        *sum += slots.slots(node);
        Some(*sum)
    };
    std::iter::once(0).chain((0..slots.nodes()).scan(0, sum)).collect()
}

fn write(job: &Job) -> Result<String, String> {
    let first = first_devices(job.slots);
    let devices: Vec<String> =
        job.node_slots().map(|(node, slot)| (first[node] + slot).to_string()).collect();
    Ok(format!("[{}]\n", devices.join(",")))
}

fn read(text: &str, slots: &Slots) -> Result<Entries, AtLine> {
    let expected = "expected a list of devices such as [3,0,1,2]";
    let list: Vec<&RawValue> =
        serde_json::from_str(text).map_err(|error| (error.line().max(1), format!("{expected}; {error}")))?;
    let (first, mut entries) = (first_devices(slots), Vec::with_capacity(list.len()));
    let devices = first[slots.nodes()];
    for raw in list {
        let line = line_of(text, raw.get());
        let device: u64 =
            raw.get().parse().map_err(|_| (line, format!("{expected}, found the entry `{}`", raw.get())))?;
        if device >= devices {
            return Err((line, format!("there is no device {device}; devices are 0 to {}", devices - 1)));
        }
        let node = first.partition_point(|&first| first <= device) - 1;
        entries.push((Place::Slot(node, device - first[node]), line));
    }
    Ok(entries)
}
