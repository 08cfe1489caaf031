//! The binary format of traces.
//!
//! ```text
//! file    8 bytes MAGIC with the version, section of the beginning, one section per part, section of the end
//! begin   columns `topology`, `network`, `seed`, `pes`, `speeds`, `arrays`, and `sorted`: whether objects keep their order
//! part    columns `objects`, `messages`, `executions`: those that come after the previous part
//! end     columns `seconds` and `exit`
//! ```
//! [`equipoise_model::frames`] describes sections. Objects of a recorded run are in the order in which they were first
//! seen; the reader sorts and renumbers them. Without the section of the end the file was cut: the parts are read as the
//! trace of a run that failed, and [`Trace::warnings`] says so. Columns that a reader does not know are skipped.

use equipoise_model::decompress::Expansion;
use equipoise_model::files::Refused;
use equipoise_model::frames::{Ignored, NewSection, Section, TRACE_MAGIC, cut, damaged, text, truncated};
use equipoise_model::table::count;

use super::{Execution, Trace, TraceMessage, TraceObject};

/// The first bytes of every binary trace; the second last byte is the version of the format.
pub(super) const MAGIC: [u8; 8] = magic(4);

/// The first bytes of traces of a version of the binary format.
pub(super) const fn magic(version: u8) -> [u8; 8] {
    let [a, b, c, d, e, f] = TRACE_MAGIC;
    [a, b, c, d, e, f, version, 0x1a]
}

/// The executions or messages after which a part is written.
pub(super) const PART: usize = 1 << 12;

/// Encodes a trace part by part.
pub(super) struct Encoder {
    expansion: Expansion,
    /// The number of executions so far.
    pub(super) executions: u64,
}

impl Encoder {
    /// The encoder, and the beginning of the file; `sorted` if objects keep the order in which they are written.
    pub(super) fn new(head: &Trace, sorted: bool) -> Result<(Encoder, Vec<u8>), Refused> {
        let mut encoder = Encoder { expansion: Expansion::NEW, executions: 0 };
        let mut begin = NewSection::default();
        begin.put("topology", &head.topology.as_bytes())?;
        begin.put("network", &head.network.as_bytes())?;
        begin.put("seed", &head.seed)?;
        begin.put("pes", &head.pes)?;
        begin.put("speeds", &head.speeds)?;
        begin.put("arrays", &head.arrays.iter().map(|name| name.as_bytes()).collect::<Vec<_>>())?;
        begin.put("sorted", &sorted)?;
        let mut file = MAGIC.to_vec();
        begin.push(&mut file, &mut encoder.expansion)?;
        Ok((encoder, file))
    }

    pub(super) fn part(
        &mut self,
        objects: &[TraceObject],
        messages: &[TraceMessage],
        executions: &[Execution],
    ) -> Result<Vec<u8>, Refused> {
        let mut part = NewSection::default();
        part.put("objects", &objects)?;
        part.put("messages", &messages)?;
        part.put("executions", &executions)?;
        self.executions += executions.len() as u64;
        self.section(&part)
    }

    pub(super) fn end(&mut self, seconds: f64, exit: Option<u32>) -> Result<Vec<u8>, Refused> {
        let mut end = NewSection::default();
        end.put("seconds", &seconds)?;
        end.put("exit", &exit)?;
        self.section(&end)
    }

    fn section(&mut self, section: &NewSection) -> Result<Vec<u8>, Refused> {
        let mut bytes = Vec::new();
        section.push(&mut bytes, &mut self.expansion)?;
        Ok(bytes)
    }
}

/// Decodes what follows [`MAGIC`].
pub(super) fn decode_sections(mut rest: &[u8], file_bytes: usize) -> Result<Trace, Refused> {
    let mut expansion = Expansion::NEW;
    let mut ignored = Ignored::default();
    let begin = Section::next(&mut rest, file_bytes, &mut expansion)?;
    let mut begin = begin.ok_or_else(|| truncated(file_bytes, file_bytes + 1))?;
    let arrays: Vec<Vec<u8>> = begin.take("arrays")?;
    let mut trace = Trace {
        topology: text(begin.take("topology")?)?,
        network: text(begin.take("network")?)?,
        seed: begin.take("seed")?,
        pes: begin.take("pes")?,
        speeds: begin.take("speeds")?,
        arrays: arrays.into_iter().map(text).collect::<Result<_, _>>()?,
        ..Trace::default()
    };
    let sorted: bool = begin.take("sorted")?;
    begin.list_ignored(&mut ignored);
    loop {
        let Some(mut section) = Section::next(&mut rest, file_bytes, &mut expansion)? else {
            let executions = count(trace.executions.len() as u64, "execution");
            trace.warnings.push(cut(&format!("after {executions}"), rest.len()));
            trace.seconds = trace.executions.iter().map(|it| it.begin_seconds).fold(0.0, f64::max);
            break;
        };
        if section.has("seconds") {
            (trace.seconds, trace.exit) = (section.take("seconds")?, section.take("exit")?);
            section.list_ignored(&mut ignored);
            if !rest.is_empty() {
                let bytes = count(rest.len() as u64, "byte");
                return Err(damaged(&format!("its end is followed by {bytes}")));
            }
            break;
        }
        trace.objects.extend(section.take::<Vec<TraceObject>>("objects")?);
        trace.messages.extend(section.take::<Vec<TraceMessage>>("messages")?);
        trace.executions.extend(section.take::<Vec<Execution>>("executions")?);
        section.list_ignored(&mut ignored);
    }
    trace.warnings.extend(ignored.clause());
    if !sorted {
        sort_objects(&mut trace);
    }
    Ok(trace)
}

/// Sorts the objects by array and rank, and renumbers them.
fn sort_objects(trace: &mut Trace) {
    let mut order: Vec<u32> = (0..trace.objects.len() as u32).collect();
    let key = |&at: &u32| (trace.objects[at as usize].array, trace.objects[at as usize].rank);
    order.sort_by_key(key);
    let mut place = vec![0; order.len()];
    for (new, &old) in (trace.pes..).zip(&order) {
        place[old as usize] = new;
    }
    trace.objects = order.iter().map(|&old| trace.objects[old as usize]).collect();
    let pes = trace.pes;
    // A number that does not exist stays as it is, for the check of the trace.
    let renumbered = |object: u32| {
        let old = object.checked_sub(pes).map(|old| old as usize);
        old.and_then(|old| place.get(old)).copied().unwrap_or(object)
    };
    trace.messages.iter_mut().for_each(|it| it.to = renumbered(it.to));
    trace.executions.iter_mut().for_each(|it| it.object = renumbered(it.object));
}

#[cfg(test)]
mod tests {
    use super::super::file::decode;
    use super::super::tests::exchange;
    use super::*;

    #[test]
    fn every_prefix_is_a_shorter_trace_or_refused() {
        let trace = exchange();
        let (mut encoder, mut file) = Encoder::new(&trace, true).expect("room");
        let begin = file.len();
        file.extend(
            encoder.part(&trace.objects, &trace.messages[..1], &trace.executions[..1]).expect("room"),
        );
        let first = file.len();
        file.extend(encoder.part(&[], &trace.messages[1..], &trace.executions[1..]).expect("room"));
        let second = file.len();
        file.extend(encoder.end(6.0, None).expect("room"));
        assert_eq!(decode(&file).expect("a trace"), trace);
        for length in 0..file.len() {
            let found = decode(&file[..length]);
            if length < begin {
                assert!(found.is_err_and(|error| error.to_string().contains("is truncated")), "{length}");
                continue;
            }
            let found = found.expect("a shorter trace");
            let whole = if length < first { 0 } else { 1 + 2 * usize::from(length >= second) };
            assert_eq!((found.executions.len(), found.warnings.len()), (whole, 1), "{length}");
        }
        for at in 0..8 * file.len() {
            let mut broken = file.clone();
            broken[at / 8] ^= 1 << (at % 8);
            assert!(decode(&broken).is_err(), "bit {at}");
        }
    }
}
