//! The binary format of traces.
//!
//! ```text
//! file    8 bytes MAGIC with the version, section of the beginning, one section per part, section of the end
//! begin   columns `topology`, `network`, `seed`, `pes`, `speeds`, `arrays`, and `sorted`: whether objects keep their order
//! part    columns `objects`, `messages`, `executions`: those that come after the previous part; and of the details
//!         `indices` (of these objects), `calls` (of these executions), `waits`, `migrations`
//! end     columns `seconds` and `exit`; and of the details `entries`, `steps`, `memory`, `limits`
//! ```
//! Files of older programs have no columns of details, and older programs skip them.
//! [`equipoise_model::frames`] describes sections. Objects of a recorded run are in the order in which they were first
//! seen; the reader sorts and renumbers them. Without the section of the end the file was cut: the parts are read as the
//! trace of a run that failed, and [`Trace::warnings`] says so. Columns that a reader does not know are skipped.

use equipoise_model::decompress::Expansion;
use equipoise_model::files::Refused;
use equipoise_model::frames::{Ignored, NewSection, Section, TRACE_MAGIC, cut, damaged, text, truncated};
use equipoise_model::table::{count, seconds};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::part::Part;
use super::{Call, Details, Execution, LbStep, Migration, Trace, TraceMessage, TraceObject, Wait};

/// The first bytes of every binary trace; the second last byte is the version of the format.
pub(super) const MAGIC: [u8; 8] = magic(4);

/// The first bytes of traces of a version of the binary format.
pub(super) const fn magic(version: u8) -> [u8; 8] {
    let [a, b, c, d, e, f] = TRACE_MAGIC;
    [a, b, c, d, e, f, version, 0x1a]
}

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

    pub(super) fn part(&mut self, part: &Part) -> Result<Vec<u8>, Refused> {
        let mut section = NewSection::default();
        section.put("objects", &part.objects)?;
        section.put("messages", &part.messages)?;
        section.put("executions", &part.executions)?;
        let indices: Vec<_> = part.indices.iter().map(|index| index.as_bytes()).collect();
        put_some(&mut section, "indices", &indices)?;
        put_some(&mut section, "calls", &part.calls)?;
        put_some(&mut section, "waits", &part.waits)?;
        put_some(&mut section, "migrations", &part.migrations)?;
        self.executions += part.executions.len() as u64;
        self.section(&section)
    }

    /// The end of the file: of `details` the parts that are not written before.
    pub(super) fn end(
        &mut self,
        seconds: f64,
        exit: Option<u32>,
        details: &Details,
    ) -> Result<Vec<u8>, Refused> {
        let mut end = NewSection::default();
        end.put("seconds", &seconds)?;
        end.put("exit", &exit)?;
        let bytes = |names: &Vec<String>| names.iter().map(|name| name.clone().into_bytes()).collect();
        let entries: Vec<Vec<Vec<u8>>> = details.entries.iter().map(bytes).collect();
        put_some(&mut end, "entries", &entries)?;
        let steps: Vec<_> =
            details.steps.iter().map(|step| (step.strategy.as_bytes(), numbers(step))).collect();
        put_some(&mut end, "steps", &steps)?;
        put_some(&mut end, "memory", &details.memory)?;
        let limits = (details.dropped_events, details.begins_seconds, details.clock_error_seconds);
        if limits != (0, 0.0, 0.0) {
            end.put("limits", &limits)?;
        }
        self.section(&end)
    }

    fn section(&mut self, section: &NewSection) -> Result<Vec<u8>, Refused> {
        let mut bytes = Vec::new();
        section.push(&mut bytes, &mut self.expansion)?;
        Ok(bytes)
    }
}

/// Adds a column that readers need not know, unless it is empty.
fn put_some<T: Serialize>(section: &mut NewSection, name: &str, values: &[T]) -> Result<(), Refused> {
    if values.is_empty() { Ok(()) } else { section.put(name, &values) }
}

/// Takes a column that need not be there.
fn take_some<T: DeserializeOwned + Default>(section: &mut Section, name: &str) -> Result<T, Refused> {
    if section.has(name) { section.take(name) } else { Ok(T::default()) }
}

/// What a load-balancing step has in addition to the name of its strategy.
type StepNumbers = (u64, [f64; 2], u64, [f64; 2]);

fn numbers(step: &LbStep) -> StepNumbers {
    (step.number, [step.begin_seconds, step.end_seconds], step.migrations, step.max_over_avg)
}

/// Takes the details of a part.
fn take_part(section: &mut Section, details: &mut Details) -> Result<(), Refused> {
    let indices: Vec<Vec<u8>> = take_some(section, "indices")?;
    details.indices.extend(indices.into_iter().map(text).collect::<Result<Vec<_>, _>>()?);
    details.calls.extend(take_some::<Vec<Call>>(section, "calls")?);
    details.waits.extend(take_some::<Vec<Wait>>(section, "waits")?);
    details.migrations.extend(take_some::<Vec<Migration>>(section, "migrations")?);
    Ok(())
}

/// Takes the details of the end.
fn take_end(section: &mut Section, details: &mut Details) -> Result<(), Refused> {
    let entries: Vec<Vec<Vec<u8>>> = take_some(section, "entries")?;
    let names = |names: Vec<Vec<u8>>| names.into_iter().map(text).collect();
    details.entries = entries.into_iter().map(names).collect::<Result<_, _>>()?;
    let steps: Vec<(Vec<u8>, StepNumbers)> = take_some(section, "steps")?;
    for (strategy, (number, [begin_seconds, end_seconds], migrations, max_over_avg)) in steps {
        let strategy = text(strategy)?;
        details.steps.push(LbStep { number, strategy, begin_seconds, end_seconds, migrations, max_over_avg });
    }
    details.memory = take_some(section, "memory")?;
    (details.dropped_events, details.begins_seconds, details.clock_error_seconds) =
        take_some(section, "limits")?;
    Ok(())
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
            if trace.executions.is_empty() {
                return Err(damaged("it was cut before its first execution"));
            }
            let executions = count(trace.executions.len() as u64, "execution");
            trace.warnings.push(cut(&format!("after {executions}"), rest.len()));
            trace.seconds = trace.executions.iter().map(|it| it.begin_seconds).fold(0.0, f64::max);
            break;
        };
        if section.has("seconds") {
            (trace.seconds, trace.exit) = (section.take("seconds")?, section.take("exit")?);
            take_end(&mut section, &mut trace.details)?;
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
        take_part(&mut section, &mut trace.details)?;
        section.list_ignored(&mut ignored);
    }
    trace.warnings.extend(ignored.clause());
    if trace.details.dropped_events > 0 {
        trace.warnings.push(format!(
            "begins {} after the begin of the run, because the recording dropped its oldest events (--record-limit)",
            seconds(trace.details.begins_seconds)
        ));
    }
    if !sorted {
        trace.sort_objects();
    }
    Ok(trace)
}

impl Trace {
    /// Sorts the objects by array and rank, and renumbers them.
    pub fn sort_objects(&mut self) {
        sort_objects(self);
    }
}

fn sort_objects(trace: &mut Trace) {
    let mut order: Vec<u32> = (0..trace.objects.len() as u32).collect();
    let key = |&at: &u32| (trace.objects[at as usize].array, trace.objects[at as usize].rank);
    order.sort_by_key(key);
    let mut place = vec![0; order.len()];
    for (new, &old) in (trace.pes..).zip(&order) {
        place[old as usize] = new;
    }
    trace.objects = order.iter().map(|&old| trace.objects[old as usize]).collect();
    let indices = std::mem::take(&mut trace.details.indices);
    trace.details.indices = order.iter().filter_map(|&old| indices.get(old as usize).cloned()).collect();
    let pes = trace.pes;
    // A number that does not exist stays unchanged, for the check of the trace.
    let renumbered = |object: u32| {
        let old = object.checked_sub(pes).map(|old| old as usize);
        old.and_then(|old| place.get(old)).copied().unwrap_or(object)
    };
    trace.messages.iter_mut().for_each(|it| it.to = renumbered(it.to));
    trace.executions.iter_mut().for_each(|it| it.object = renumbered(it.object));
    trace.details.waits.iter_mut().for_each(|it| it.object = renumbered(it.object));
    trace.details.migrations.iter_mut().for_each(|it| it.object = renumbered(it.object));
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
        let part = |objects: &[TraceObject], from: usize, to: usize| Part {
            objects: objects.to_vec(),
            messages: trace.messages[from..to.min(2)].to_vec(),
            executions: trace.executions[from..to].to_vec(),
            ..Part::default()
        };
        file.extend(encoder.part(&part(&trace.objects, 0, 1)).expect("room"));
        let first = file.len();
        file.extend(encoder.part(&part(&[], 1, 3)).expect("room"));
        let second = file.len();
        file.extend(encoder.end(6.0, None, &Details::default()).expect("room"));
        assert_eq!(decode(&file).expect("a trace"), trace);
        for length in 0..file.len() {
            let found = decode(&file[..length]);
            if length < begin {
                assert!(found.is_err_and(|error| error.to_string().contains("is truncated")), "{length}");
                continue;
            }
            if length < first {
                let refused = found.expect_err("nothing to read").to_string();
                assert!(refused.contains("before its first execution"), "{length}: {refused}");
                continue;
            }
            let found = found.expect("a shorter trace");
            let whole = 1 + 2 * usize::from(length >= second);
            assert_eq!((found.executions.len(), found.warnings.len()), (whole, 1), "{length}");
        }
        for at in 0..8 * file.len() {
            let mut broken = file.clone();
            broken[at / 8] ^= 1 << (at % 8);
            assert!(decode(&broken).is_err(), "bit {at}");
        }
    }
}
