//! A JSON list with the PE of every rank, as in `[3,0,1,2]`: what a program that orders its devices itself reads.

use serde_json::value::RawValue;

use super::{Fault, Format, Job, Place, Said, Slots};
use crate::files::line_of;

/// `json` for the table of formats.
pub const FORMAT: Format = Format {
    name: "json",
    help: "A JSON list with the PE of every rank, a permutation where there are as many: [3,0,1,2].",
    write,
    read,
    has_slots: true,
};

fn write(job: &Job) -> Result<String, String> {
    let pes: Vec<String> = job.pes().map(|pe| pe.to_string()).collect();
    Ok(format!("[{}]\n", pes.join(",")))
}

fn read(text: &str, _: &Slots) -> Result<Said, Fault> {
    let expected = "expected a list of PEs such as [3,0,1,2]";
    let list: Vec<&RawValue> =
        serde_json::from_str(text).map_err(|error| (error.line().max(1), format!("{expected}; {error}")))?;
    let pe = |raw: &RawValue| {
        let line = line_of(text, raw.get());
        let pe = raw.get().parse().map_err(|_| (line, format!("{expected}, found `{}` in it", raw.get())))?;
        Ok((Place::Pe(pe), line))
    };
    list.into_iter().map(pe).collect()
}
