//! Mapping files of equipoise: the PE of every rank, one per line ([`crate::assignment::mapping_file`]).

use super::{Entries, Format, Job, Place, RankFile, Slots};
use crate::assignment::mapping_file;
use crate::files::AtLine;

/// The entry of `mapping` in the list of formats.
pub const FORMAT: Format = Format {
    name: "mapping",
    form: "",
    help: "The mapping of equipoise map --output: the PE of every rank, one per line.",
    params: &[],
    item: RankFile { write, read, has_slots: true },
};

fn write(job: &Job) -> Result<String, String> {
    Ok(mapping_file::text(job.pes()))
}

fn read(text: &str, _: &Slots) -> Result<Entries, AtLine> {
    let entries = mapping_file::lines(text)?;
    Ok(entries.into_iter().map(|(pe, line)| (Place::Pe(u64::from(pe)), line as usize)).collect())
}
