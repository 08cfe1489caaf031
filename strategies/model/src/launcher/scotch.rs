//! Mapping files of Scotch (`.map`, as written by `gmap`): the number of vertices, then a line per vertex with its
//! label (the rank) and the label of its terminal domain (the PE).

use std::fmt::Write as _;

use super::{Entries, Format, Job, Place, RankFile, Slots, sort_by_rank};
use crate::files::AtLine;
use crate::table::count;

/// The entry of `scotch` in the list of formats.
pub const FORMAT: Format = Format {
    name: "scotch",
    form: "",
    help: "A mapping file of Scotch (.map, as written by gmap): the number of ranks, then a line per rank \
           with the rank and its PE.",
    params: &[],
    item: RankFile { write, read, has_slots: true },
};

fn write(job: &Job) -> Result<String, String> {
    let mut text = format!("{}\n", job.ranks());
    job.pes().enumerate().for_each(|(rank, pe)| _ = writeln!(text, "{rank}\t{pe}"));
    Ok(text)
}

fn read(text: &str, _: &Slots) -> Result<Entries, AtLine> {
    let lines = (1..).zip(text.lines().map(str::trim)).filter(|(_, line)| !line.is_empty());
    let (mut entries, mut stated) = (Vec::new(), None);
    for (line, text) in lines {
        let words: Vec<Option<u64>> = text.split_ascii_whitespace().map(|word| word.parse().ok()).collect();
        match (stated, words.as_slice()) {
            (None, &[Some(ranks)]) => stated = Some((line, ranks)),
            (None, _) => return Err((line, format!("expected the number of ranks, found `{text}`"))),
            (Some(_), &[Some(rank), Some(pe)]) => entries.push((rank, Place::Pe(pe), line)),
            (Some(_), _) => return Err((line, format!("expected a rank and its PE, found `{text}`"))),
        }
    }
    let (line, ranks) =
        stated.ok_or((1, "expected the number of ranks, found the end of the file".to_string()))?;
    if ranks != entries.len() as u64 {
        let sentence = format!(
            "the first line says {}, but the file has lines for {}",
            count(ranks, "rank"),
            entries.len()
        );
        return Err((line, sentence));
    }
    sort_by_rank(entries)
}
