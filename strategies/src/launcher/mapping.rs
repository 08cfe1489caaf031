//! Our own mapping files: the PE of every rank, one per line ([`crate::assignment::mapping_file`]).

use super::{Fault, Format, Job, Place, Said, Slots};

/// `mapping` for the table of formats.
pub const FORMAT: Format = Format {
    name: "mapping",
    help: "The mapping of equipoise map --output: the PE of every rank, one per line.",
    write,
    read,
    has_slots: true,
};

fn write(job: &Job) -> Result<String, String> {
    Ok(job.pes().map(|pe| format!("{pe}\n")).collect())
}

fn read(text: &str, _: &Slots) -> Result<Said, Fault> {
    let lines = (1..).zip(text.lines().map(str::trim));
    let counts = |(_, line): &(usize, &str)| !line.is_empty() && !line.starts_with('#');
    let place = |(line, text): (usize, &str)| {
        let pe = text.parse().map_err(|_| (line, format!("expected one PE number, found `{text}`")))?;
        Ok((Place::Pe(pe), line))
    };
    lines.filter(counts).map(place).collect()
}
