//! A JSON list with the PE of every rank, as in `[3,0,1,2]`: for programs that order their devices themselves.

use serde_json::value::RawValue;

use super::{Entries, Format, Job, Place, RankFile, Slots};
use crate::files::AtLine;
use crate::files::line_of;

/// The entry of `json` in the list of formats.
pub const FORMAT: Format = Format {
    name: "json",
    form: "",
    help: "A JSON list with the PE of every rank: [3,0,1,2]. A permutation if there are as many ranks as PEs.",
    params: &[],
    item: RankFile { write, read, has_slots: true },
};

fn write(job: &Job) -> Result<String, String> {
    let pes: Vec<String> = job.pes().map(|pe| pe.to_string()).collect();
    Ok(format!("[{}]\n", pes.join(",")))
}

fn read(text: &str, _: &Slots) -> Result<Entries, AtLine> {
    let expected = "expected a list of PEs such as [3,0,1,2]";
    let list: Vec<&RawValue> =
        serde_json::from_str(text).map_err(|error| (error.line().max(1), format!("{expected}; {error}")))?;
    let pe = |raw: &RawValue| {
        let line = line_of(text, raw.get());
        let pe =
            raw.get().parse().map_err(|_| (line, format!("{expected}, found the entry `{}`", raw.get())))?;
        Ok((Place::Pe(pe), line))
    };
    list.into_iter().map(pe).collect()
}
