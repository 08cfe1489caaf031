//! Scotch's mapping files (`.map`, written by `gmap`): the number of vertices, and of each a line with its label and
//! the label of its terminal domain, which are the rank and the PE.

use std::fmt::Write as _;

use super::{Fault, Format, Job, Place, Said, Slots, each_once};

/// `scotch` for the table of formats.
pub const FORMAT: Format = Format {
    name: "scotch",
    help: "A mapping file of Scotch (.map, as of gmap): the number of ranks, then lines of a rank and its PE.",
    write,
    read,
    has_slots: true,
};

fn write(job: &Job) -> Result<String, String> {
    let mut text = format!("{}\n", job.ranks());
    job.pes().enumerate().for_each(|(rank, pe)| _ = writeln!(text, "{rank}\t{pe}"));
    Ok(text)
}

fn read(text: &str, _: &Slots) -> Result<Said, Fault> {
    let lines = (1..).zip(text.lines().map(str::trim)).filter(|(_, line)| !line.is_empty());
    let (mut said, mut promised) = (Vec::new(), None);
    for (line, text) in lines {
        let words: Vec<Option<u64>> = text.split_ascii_whitespace().map(|word| word.parse().ok()).collect();
        match (promised, words.as_slice()) {
            (None, &[Some(ranks)]) => promised = Some((line, ranks)),
            (None, _) => return Err((line, format!("expected the number of ranks, found `{text}`"))),
            (Some(_), &[Some(rank), Some(pe)]) => said.push((rank, Place::Pe(pe), line)),
            (Some(_), _) => return Err((line, format!("expected a rank and its PE, found `{text}`"))),
        }
    }
    let (line, ranks) =
        promised.ok_or((1, "expected the number of ranks, found the end of the file".to_string()))?;
    if ranks != said.len() as u64 {
        let sentence = format!("{ranks} ranks are promised, and there are lines for {}", said.len());
        return Err((line, sentence));
    }
    each_once(said)
}
