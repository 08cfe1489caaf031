//! `degraded:FILE`: a machine some of whose links are slower than usual.
//!
//! A line `machine SPEC` names the machine. Every other line is a factor and a link, named as in the tables of `explain`
//! with numbers for PEs: `0.5 3 -> 4` for one direction, `0.5 3 <-> 4` for both. The bandwidth of the link is multiplied by
//! the factor. Distances and routes are unchanged, because networks keep a slow link. Empty lines and lines that begin
//! with `#` are ignored.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::altered::Altered;
use super::error::text;
use super::{Kind, SpecError, Topology, spec};
use crate::files::AtLine;
use crate::quote::quoted;

/// The entry of `degraded:FILE` in the list of machines.
pub const KIND: Kind = Kind {
    name: "degraded",
    form: "degraded:FILE",
    help: "A machine with slow links: a file with a line `machine SPEC`, and lines such as `0.5 3 -> 4` (one direction) or \
           `0.5 3 <-> 4` (both) with the factor of a link's bandwidth.",
    params: &[],
    item: parse,
};

/// The largest number of links of a degraded machine; their names are compared.
const MAX_LINKS: usize = 1 << 18;

/// A slow link in a file.
struct Slow<'a> {
    name: &'a str,
    factor: f64,
    line: usize,
}

fn parse(file: &str) -> Result<Arc<dyn Topology>, SpecError> {
    if file.is_empty() {
        return Err("expected the name of a file with a line `machine SPEC` and slow links".into());
    }
    let content = text("slow links", file)?;
    let at_line = |(line, reason): AtLine| SpecError::in_file(file, format!("line {line}: {reason}"));
    let (named, slow) = read(&content).map_err(at_line)?;
    let (inner, line) = named;
    let machine = spec::machine(inner, 1).map_err(|error| SpecError {
        fault: crate::fault::Fault::Input,
        reason: format!("{file}: line {line}: `{}` is not a topology: {}", quoted(inner), error.reason),
    })?;
    let factors = factors(&*machine, line, slow).map_err(at_line)?;
    Ok(Arc::new(Altered::degraded(machine, format!("degraded:{file}"), factors)))
}

/// The spec of the machine with its line, and the slow links.
fn read(content: &str) -> Result<((&str, usize), Vec<Slow<'_>>), AtLine> {
    let (mut machine, mut slow) = (None, Vec::new());
    for (line, text) in (1..).zip(content.lines().map(str::trim)) {
        if text.is_empty() || text.starts_with('#') {
            continue;
        }
        let expected = || {
            (
                line,
                format!(
                    "expected `machine SPEC`, or a factor and a link such as `0.5 3 -> 4`, found `{text}`"
                ),
            )
        };
        let (word, rest) = text.split_once(char::is_whitespace).ok_or_else(expected)?;
        let rest = rest.trim();
        if word == "machine" {
            if let Some((_, first)) = machine.replace((rest, line)) {
                return Err((line, format!("the machine is already named in line {first}")));
            }
            if rest.contains(KIND.name) {
                return Err((
                    line,
                    "a degraded machine cannot be part of another; write all slow links here".into(),
                ));
            }
            continue;
        }
        let factor: f64 = word.parse().map_err(|_| expected())?;
        if !(1e-9..=1.0).contains(&factor) {
            return Err((
                line,
                format!(
                    "a factor is above 0 and at most 1, found {factor}; for a link that fails, describe the network without it"
                ),
            ));
        }
        slow.push(Slow { name: rest, factor, line });
    }
    let machine = machine.ok_or((1, "no line names the machine; add `machine SPEC`".to_string()))?;
    Ok((machine, slow))
}

/// The factor of every slow link of the machine.
fn factors(machine: &dyn Topology, line: usize, slow: Vec<Slow>) -> Result<FxHashMap<usize, f64>, AtLine> {
    let links = machine.links();
    if links > MAX_LINKS {
        return Err((
            line,
            format!("a degraded machine has at most {MAX_LINKS} links, this one has {links}"),
        ));
    }
    let mut wanted: FxHashMap<String, (f64, usize)> = FxHashMap::default();
    for Slow { name, factor, line } in slow {
        let names = match name.split_once(" <-> ") {
            Some((from, to)) => vec![format!("{from} -> {to}"), format!("{to} -> {from}")],
            None => vec![name.to_string()],
        };
        for name in names {
            if let Some((_, first)) = wanted.get(&name) {
                return Err((line, format!("the link `{name}` already has a factor in line {first}")));
            }
            wanted.insert(name, (factor, line));
        }
    }
    let mut factors = FxHashMap::default();
    for id in 0..links {
        if let Some((factor, _)) = wanted.remove(&machine.link(id).name) {
            factors.insert(id, factor);
        }
    }
    match wanted.into_iter().min_by_key(|(_, (_, line))| *line) {
        Some((name, (_, line))) => {
            let example = (0..links).next().map_or_else(String::new, |id| {
                format!("; links have names such as `{}`", machine.link(id).name)
            });
            Err((line, format!("the machine has no link `{name}`{example}")))
        }
        None => Ok(factors),
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::check_between;
    use crate::topology::parse;

    #[test]
    fn slow_links_have_a_part_of_their_bandwidth() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("slow.txt");
        let machine = |text: &str| {
            std::fs::write(&file, text).expect("a file");
            parse(&format!("degraded:{}", file.display())).map_err(|error| error.to_string())
        };
        let slow = machine(
            "# today\nmachine torus:4x2*flat:2\n0.5 node 0 -> node 1\n\n0.25 node 1 <-> node 2\n0.125 5 -> switch of node 2\n",
        )
        .expect("a machine");
        check_between(&*slow, |_, _| None);
        let whole = parse("torus:4x2*flat:2").expect("a machine");
        let slower: Vec<(String, f64)> = (0..slow.links())
            .filter(|&id| slow.link(id) != whole.link(id))
            .map(|id| (slow.link(id).name, slow.link(id).bandwidth / whole.link(id).bandwidth))
            .collect();
        let expected = [
            ("node 0 -> node 1", 0.5),
            ("node 1 -> node 2", 0.25),
            ("node 2 -> node 1", 0.25),
            ("5 -> switch of node 2", 0.125),
        ];
        assert_eq!(slower, expected.map(|(name, factor)| (name.to_string(), factor)));
        assert_eq!((slow.node_of(3), slow.core_of(3), slow.distance(0, 4)), (1, 1, whole.distance(0, 4)));
        let again = machine(&format!("machine degraded:{}\n", file.display())).err().expect("itself");
        assert!(again.contains("line 1: a degraded machine cannot be part of another"), "{again}");
        for (text, expected) in [
            ("0.5 0 -> 1\n", "line 1: no line names the machine; add `machine SPEC`"),
            (
                "machine torus:4\n\n0.5 0 -> 2\n",
                "line 3: the machine has no link `0 -> 2`; links have names such as `0 -> 1`",
            ),
            ("machine torus:4\n0 0 -> 1\n", "line 2: a factor is above 0 and at most 1, found 0"),
            ("machine torus:4\nslow 0 -> 1\n", "line 2: expected `machine SPEC`, or a factor and a link"),
            (
                "machine torus:4\n0.5 0 -> 1\n0.5 1 <-> 0\n",
                "line 3: the link `0 -> 1` already has a factor in line 2",
            ),
            ("machine torus:4\nmachine torus:4\n", "line 2: the machine is already named in line 1"),
            ("machine tours:4\n", "line 1: `tours:4` is not a topology: there is no machine `tours`"),
        ] {
            let error = machine(text).err().expect(expected);
            assert!(error.contains(expected), "`{error}` does not contain `{expected}`");
        }
    }
}
