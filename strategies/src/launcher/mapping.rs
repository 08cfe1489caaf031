//! Our own mapping files: the PE of every rank, one per line ([`crate::assignment::mapping_file`]).

use super::{Fault, Format, Job, Place, Said, Slots};
use crate::assignment::mapping_file;

/// `mapping` for the table of formats.
pub const FORMAT: Format = Format {
    name: "mapping",
    help: "The mapping of equipoise map --output: the PE of every rank, one per line.",
    write,
    read,
    has_slots: true,
};

fn write(job: &Job) -> Result<String, String> {
    Ok(mapping_file::text(job.pes()))
}

fn read(text: &str, _: &Slots) -> Result<Said, Fault> {
    let said = mapping_file::lines(text)?;
    Ok(said.into_iter().map(|(pe, line)| (Place::Pe(u64::from(pe)), line as usize)).collect())
}
