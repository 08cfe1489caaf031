//! `topograph:FILE.json`: instances of a cloud or cluster as listed by the graph engine of topograph.
//!
//! The file is a JSON object with `instances`. Each instance has an `id`, `network_layers` (the switches above it,
//! closest first) and `labels`. The labels `accelerator.topograph.run/domain` and `../sub-domain` (older: `attributes`
//! with `nvlink`) name the accelerator fabric, which is closer than any switch. Instances are the PEs and their ids the
//! host names; instances of a switch are consecutive, and switches are ordered by their first occurrence. Distances are
//! links crossed. Several top switches get a common parent named `network`.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::error::from_file;
use super::{Kind, NamedTree, Part};
use crate::files::line_of;

/// The entry of `topograph:FILE.json` in the list of machines.
pub const KIND: Kind = Kind {
    name: "topograph",
    form: "topograph:FILE.json",
    help: "The instances of topograph's JSON as PEs, below their accelerator domains and network layers; \
           distances are links crossed.",
    params: &[],
    item: |name| {
        if name.is_empty() {
            return Err("expected the name of a JSON file with instances and their network_layers".into());
        }
        let spec = format!("topograph:{name}");
        Ok(Arc::new(from_file("instances", name, |text| read(&spec, text))?))
    },
};

/// The labels of the accelerator fabric and of a part of it.
const DOMAINS: [&str; 2] = ["accelerator.topograph.run/domain", "accelerator.topograph.run/sub-domain"];

#[derive(Deserialize)]
struct Written<'a> {
    #[serde(borrow)]
    instances: Vec<&'a RawValue>,
}

#[derive(Deserialize)]
struct Instance {
    id: String,
    #[serde(default)]
    network_layers: Vec<String>,
    #[serde(default)]
    labels: FxHashMap<String, String>,
    #[serde(default)]
    attributes: FxHashMap<String, serde_json::Value>,
}

impl Instance {
    /// The names of all ancestors, closest first.
    fn above(&self) -> Vec<String> {
        let older = self.attributes.get("nvlink").and_then(|nvlink| nvlink.as_str()).map(String::from);
        let [domain, sub] = DOMAINS.map(|label| self.labels.get(label).cloned());
        let fabric = [("sub-domain", sub), ("domain", domain.or(older))];
        let fabric = fabric.into_iter().filter_map(|(kind, name)| Some(format!("{kind} {}", name?)));
        fabric.chain(self.network_layers.iter().map(|name| format!("switch {name}"))).collect()
    }
}

/// Parses a file.
fn read(spec: &str, text: &str) -> Result<NamedTree, String> {
    let at = |error: serde_json::Error| format!("line {}: {error}", error.line().max(1));
    let expected = "expected a JSON object with `instances`, each with an `id` and `network_layers`";
    let Written { instances } =
        serde_json::from_str(text).map_err(|error| format!("{}; {expected}", at(error)))?;
    let mut parts = vec![Part { name: Some("network".into()), parent: 0, is_pe: false }];
    // The index of the part for each name, and the line of its first occurrence.
    let (mut known, mut ids) = (FxHashMap::<String, (usize, usize)>::default(), FxHashMap::default());
    for raw in instances {
        let first = line_of(text, raw.get());
        let instance: Instance = serde_json::from_str(raw.get()).map_err(|error| {
            format!("line {}: {}; {expected}", first + error.line().max(1) - 1, message_of(&error))
        })?;
        if let Some(line) = ids.insert(instance.id.clone(), first) {
            return Err(format!("line {first}: instance {} already occurs in line {line}", instance.id));
        }
        let mut parent = 0;
        for name in instance.above().into_iter().rev() {
            let (part, line) = *known.entry(name.clone()).or_insert((parts.len(), first));
            if part == parts.len() {
                parts.push(Part { name: Some(name), parent, is_pe: false });
            } else if parts[part].parent != parent {
                let name_of = |part: usize| parts[part].name.as_deref().unwrap_or_default();
                return Err(format!(
                    "line {first}: {name} is below {} here, but below {} in line {line}; a tree has one \
                    parent per switch: remove one of them",
                    name_of(parent),
                    name_of(parts[part].parent)
                ));
            }
            parent = part;
        }
        parts.push(Part { name: Some(instance.id), parent, is_pe: true });
    }
    let last = text.lines().count().max(1);
    NamedTree::new(spec, Part::without_idle_root(parts)).map_err(|reason| format!("line {last}: {reason}"))
}

/// The message of a parser error without its position, which is relative to the instance.
fn message_of(error: &serde_json::Error) -> String {
    let text = error.to_string();
    text.rsplit_once(" at line ").map_or(text.clone(), |(reason, _)| reason.to_string())
}

#[cfg(test)]
mod tests {
    use super::super::parse;
    use super::super::tests::{check, row};
    use super::*;

    /// Two NVLink domains below a leaf switch, a third domain below another, and an instance without a domain.
    const GOLDEN: &str = r#"{
  "instances": [
    {"id": "I21", "network_layers": ["leaf-a", "spine"], "labels": {"accelerator.topograph.run/domain": "nvl-1"}},
    {"id": "I25", "network_layers": ["leaf-b", "spine"], "labels": {"accelerator.topograph.run/domain": "nvl-3"}},
    {"id": "I22", "network_layers": ["leaf-a", "spine"], "labels": {"accelerator.topograph.run/domain": "nvl-1"}},
    {"id": "I23", "network_layers": ["leaf-a", "spine"], "attributes": {"nvlink": "nvl-2"}},
    {"id": "I24", "network_layers": ["leaf-a", "spine"]}
  ]
}
"#;

    #[test]
    fn instances_are_below_their_domains_and_layers() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("topology.json");
        std::fs::write(&file, GOLDEN).expect("a file");
        let machine = parse(&format!("topograph:{}", file.display())).expect("a machine");
        check(&*machine);
        let hosts: Vec<&str> = (0..5).filter_map(|pe| machine.host(pe)).collect();
        assert_eq!(hosts, ["I21", "I22", "I23", "I24", "I25"]);
        assert_eq!(row(&*machine, 0), [0, 2, 4, 3, 6]);
        let mut route = Vec::new();
        machine.route(0, 4, &mut route);
        let names: Vec<String> = route.into_iter().map(|id| machine.link(id).name).collect();
        assert_eq!(names[..2], ["0 -> domain nvl-1", "domain nvl-1 -> switch leaf-a"]);
    }

    #[test]
    fn errors_name_the_line() {
        let check = |from: &str, to: &str, expected: &str| {
            assert!(GOLDEN.contains(from), "{from}");
            let error = read("", &GOLDEN.replace(from, to)).expect_err(expected);
            assert!(error.contains(expected), "`{error}` does not contain `{expected}`");
        };
        check("I25", "I21", "line 4: instance I21 already occurs in line 3");
        check(
            r#""leaf-b", "spine""#,
            r#""leaf-b", "leaf-a""#,
            "line 4: switch leaf-a is below network here, but below switch spine in line 3",
        );
        check("nvl-3", "nvl-1", "line 4: domain nvl-1 is below switch leaf-b here");
        check(r#""id": "I25", "#, "", "line 4: missing field `id`; expected a JSON");
        check("I22", "I 22", "line 9: `I 22` is not a valid name; use a name without blanks");
        check("\"instances\"", "\"nodes\"", "expected a JSON object with `instances`");
        check("},\n    {\"id\": \"I24\"", "}\n    {\"id\": \"I24\"", "line 7: expected `,` or `]`");
    }
}
