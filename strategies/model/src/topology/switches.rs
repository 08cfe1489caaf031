//! `switches:FILE`: the switches above every host.
//!
//! The file is a JSON object `{"n1": "leaf1", "n2": ["leaf1", "spine1"]}` with a switch, or the switches, closest first, for
//! every host; or it has lines `n1 spine1.leaf1.n1`, as `srun sh -c 'echo $SLURMD_NODENAME $SLURM_TOPOLOGY_ADDR'` prints them:
//! the switches from the top, separated by dots, and the host at the end. In JSON, such an address may replace a switch, too.
//! Lines may occur several times; empty lines and lines that begin with `#` are ignored.
//!
//! Hosts are the PEs; those of a switch are consecutive, and switches are ordered by their first host. Distances are
//! links crossed. Several top switches get a common parent named `network`.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::error::from_file;
use super::{Kind, NamedTree, Part};
use crate::files::line_of;

/// The entry of `switches:FILE` in the list of machines.
pub const KIND: Kind = Kind {
    name: "switches",
    form: "switches:FILE",
    help: "The switches above every host: a JSON object {host: switch} or {host: [closest switch, .., top switch]}, or \
           lines `host top.leaf.host` with SLURM_TOPOLOGY_ADDR. Hosts are PEs, and those of a switch have successive \
           numbers, so a number may not be the place in the file. Distances are links crossed.",
    params: &[],
    item: |name| {
        if name.is_empty() {
            return Err("expected the name of a file with the switch of every host".into());
        }
        let spec = format!("switches:{name}");
        Ok(Arc::new(from_file("switches", name, |text| read(&spec, text))?))
    },
};

/// A host, the switches above it from the top, and the line.
struct Entry {
    host: String,
    above: Vec<String>,
    line: usize,
}

/// The pairs of a JSON object in the order of the file, with repeated keys.
struct Pairs<'a>(Vec<(String, &'a RawValue)>);

impl<'de: 'a, 'a> Deserialize<'de> for Pairs<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Object;
        impl<'de> Visitor<'de> for Object {
            type Value = Pairs<'de>;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object with the switch of every host")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Pairs<'de>, A::Error> {
                let mut pairs = Vec::new();
                while let Some(pair) = map.next_entry()? {
                    pairs.push(pair);
                }
                Ok(Pairs(pairs))
            }
        }
        deserializer.deserialize_map(Object)
    }
}

/// The switch of a host, or its switches.
#[derive(Deserialize)]
#[serde(untagged)]
enum Switches {
    One(String),
    ClosestFirst(Vec<String>),
}

/// The components of an address from the top, if the last one is the host. Dots in brackets do not separate.
fn address(text: &str, host: &str) -> Option<Vec<String>> {
    let (mut parts, mut depth) = (vec![String::new()], 0i32);
    for letter in text.chars() {
        depth += i32::from(letter == '[') - i32::from(letter == ']');
        match parts.last_mut() {
            Some(part) if letter != '.' || depth > 0 => part.push(letter),
            _ => parts.push(String::new()),
        }
    }
    // The name of a host may have dots.
    while parts.len() > 1
        && parts.last().is_some_and(|last| last != host && host.ends_with(&format!(".{last}")))
    {
        let last = parts.pop().unwrap_or_default();
        if let Some(before) = parts.last_mut() {
            *before += &format!(".{last}");
        }
    }
    parts.pop().filter(|last| last == host).map(|_| parts)
}

fn from_json(text: &str) -> Result<Vec<Entry>, String> {
    let expected = "expected a JSON object with a switch, or a list of switches, for every host";
    let at = |error: serde_json::Error| format!("line {}: {error}; {expected}", error.line().max(1));
    let Pairs(pairs) = serde_json::from_str(text).map_err(at)?;
    let entry = |(host, raw): (String, &RawValue)| {
        let line = line_of(text, raw.get());
        let switches = serde_json::from_str(raw.get())
            .map_err(|_| format!("line {line}: the value of host {host} is not understood; {expected}"))?;
        let above = match switches {
            Switches::One(switch) => address(&switch, &host).unwrap_or_else(|| vec![switch]),
            Switches::ClosestFirst(mut switches) => {
                switches.reverse();
                switches
            }
        };
        Ok(Entry { host, above, line })
    };
    pairs.into_iter().map(entry).collect()
}

fn from_lines(text: &str) -> Result<Vec<Entry>, String> {
    let (mut entries, mut first) = (Vec::new(), FxHashMap::<&str, (&str, usize)>::default());
    for (line, text) in (1..).zip(text.lines().map(str::trim)) {
        if text.is_empty() || text.starts_with('#') {
            continue;
        }
        let words: Vec<&str> = text.split_ascii_whitespace().collect();
        let &[host, written] = words.as_slice() else {
            return Err(format!(
                "line {line}: expected a host and its address, as in `n1 spine1.leaf1.n1`, found `{text}`"
            ));
        };
        let above = address(written, host)
            .ok_or_else(|| format!("line {line}: the address {written} does not end with the host {host}"))?;
        // Every process of a host prints the same line.
        match first.insert(host, (written, line)) {
            Some((other, first)) if other != written => {
                return Err(format!("line {line}: host {host} has another address in line {first}, {other}"));
            }
            Some(_) => {}
            None => entries.push(Entry { host: host.to_string(), above, line }),
        }
    }
    Ok(entries)
}

/// Parses a file.
fn read(spec: &str, text: &str) -> Result<NamedTree, String> {
    let entries = if text.trim_start().starts_with('{') { from_json(text)? } else { from_lines(text)? };
    let mut parts = vec![Part { name: Some("network".into()), parent: 0, is_pe: false }];
    // By switch: its part, and the line of its first occurrence.
    let (mut known, mut hosts) = (FxHashMap::<String, (usize, usize)>::default(), FxHashMap::default());
    for Entry { host, above, line } in entries {
        if let Some(first) = hosts.insert(host.clone(), line) {
            return Err(format!("line {line}: host {host} already has a switch in line {first}"));
        }
        let mut parent = 0;
        for name in above {
            let (part, first) = *known.entry(name.clone()).or_insert((parts.len(), line));
            if part == parts.len() {
                parts.push(Part { name: Some(format!("switch {name}")), parent, is_pe: false });
            } else if parts[part].parent != parent {
                let name_of = |part: usize| parts[part].name.as_deref().unwrap_or_default();
                return Err(format!(
                    "line {line}: switch {name} is below {} here, but below {} in line {first}; a tree has one parent per \
                     switch: remove one of them",
                    name_of(parent),
                    name_of(parts[part].parent)
                ));
            }
            parent = part;
        }
        parts.push(Part { name: Some(host), parent, is_pe: true });
    }
    let last = text.lines().count().max(1);
    NamedTree::new(spec, Part::without_idle_root(parts)).map_err(|reason| format!("line {last}: {reason}"))
}

#[cfg(test)]
mod tests {
    use super::super::parse;
    use super::super::tests::{check, row};
    use super::*;

    #[test]
    fn hosts_are_below_their_switches() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("switches");
        let machine = |text: &str| {
            std::fs::write(&file, text).expect("a file");
            let machine = parse(&format!("switches:{}", file.display())).expect("a machine");
            check(&*machine);
            machine
        };
        let hosts = |machine: &dyn crate::Topology| -> Vec<String> {
            (0..machine.pes()).filter_map(|pe| machine.host(pe).map(String::from)).collect()
        };
        let flat = machine(r#"{"n1": "s1", "n2": "s2", "n3": "s1"}"#);
        assert_eq!(
            (hosts(&*flat), row(&*flat, 0)),
            (vec!["n1".into(), "n3".into(), "n2".into()], vec![0, 2, 4])
        );
        assert_eq!(flat.switch_between(0, 1).as_deref(), Some("switch s1"));
        assert_eq!(flat.switch_between(0, 2).as_deref(), Some("network"));
        let deep = machine("{\"n1\": [\"s1\", \"top\"],\n \"n2\": \"top.s2.n2\", \"n3\": [\"s1\", \"top\"]}");
        let lines = machine("# host address\nn1 top.s1.n1\nn1 top.s1.n1\n\nn2 top.s2.n2\nn3 top.s1.n3\n");
        for tree in [&deep, &lines] {
            assert_eq!((hosts(&**tree), row(&**tree, 0)), (hosts(&*flat), row(&*flat, 0)));
            assert_eq!(tree.switch_between(0, 2).as_deref(), Some("switch top"));
        }
        assert_eq!(
            address("s[1-2.3].leaf.n1.cluster", "n1.cluster"),
            Some(vec!["s[1-2.3]".into(), "leaf".into()])
        );
        assert_eq!(address("n1", "n1"), Some(vec![]));
        assert_eq!(address("s1", "n1"), None);
    }

    #[test]
    fn errors_name_the_line() {
        let check = |text: &str, expected: &str| {
            let error = read("", text).expect_err(expected);
            assert!(error.contains(expected), "`{error}` does not contain `{expected}`");
        };
        check("{\"n1\": \"s1\",\n\"n1\": \"s2\"}", "line 2: host n1 already has a switch in line 1");
        check("{\"n1\": 7}", "line 1: the value of host n1 is not understood");
        check("{\"n1\"}", "line 1: expected `:`");
        check(
            "{\"n1\": [\"s1\", \"a\"],\n\"n2\": [\"s1\", \"b\"]}",
            "line 2: switch s1 is below switch b here, but below switch a in line 1",
        );
        check("{}", "line 1: the machine has no host");
        check("n1\n", "line 1: expected a host and its address");
        check("n1 s1.n2\n", "line 1: the address s1.n2 does not end with the host n1");
        check("n1 s1.n1\nn1 s2.n1\n", "line 2: host n1 has another address in line 1, s1.n1");
    }
}
