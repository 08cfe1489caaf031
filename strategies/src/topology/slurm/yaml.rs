//! Slurm's `topology.yaml`: a list of topologies, each a tree of switches, blocks, or flat.
//!
//! ```yaml
//! - topology: fabric
//!   cluster_default: true
//!   tree:
//!     switches:
//!       - switch: root
//!         children: leaf[1-2]
//!       - switch: leaf1
//!         nodes: n[1-16]
//! - topology: racks
//!   block:
//!     block_sizes: [4, 16]
//!     blocks:
//!       - block: b1
//!         nodes: n[1-4]
//! ```
//!
//! Without a name it is the first that is the cluster's default, or else the first. A flat topology names no
//! hosts, so it is no machine here.

use saphyr_parser::{Event, Parser};

use super::{Network, Switch, Wrong};
use crate::hostlist;
use crate::spelling::meant;

/// How deep lists and mappings may be nested.
const MAX_DEPTH: usize = 32;

/// A value and the line it begins in.
#[derive(Debug)]
struct Value {
    line: usize,
    content: Content,
}

#[derive(Debug)]
enum Content {
    Scalar(String),
    List(Vec<Value>),
    /// Keys and values, in their order.
    Map(Vec<(String, Value)>),
}

/// The network that a file with this text describes under the name `wanted`.
pub(super) fn read(text: &str, wanted: Option<&str>) -> Result<Network, Wrong> {
    let document = document(text)?;
    let topologies = document.list("a list of topologies")?;
    let mut names = Vec::new();
    for topology in topologies {
        names.push(topology.need("topology", "a topology")?.scalar("the name of a topology")?);
    }
    let is_default = |topology: &Value| {
        let value = topology.get("cluster_default").ok().flatten();
        value.is_some_and(|value| matches!(&value.content, Content::Scalar(word) if is_true(word)))
    };
    let chosen = match wanted {
        Some(wanted) => names.iter().position(|name| *name == wanted).ok_or_else(|| {
            let meant = meant(wanted, &names);
            (document.line, format!("there is no topology `{wanted}`{meant}; there are {}", names.join(", ")))
        })?,
        None => topologies.iter().position(is_default).unwrap_or(0),
    };
    let topology = topologies
        .get(chosen)
        .ok_or((document.line, "expected a list of topologies, found none".to_string()))?;
    let name = names[chosen];
    let kinds = [topology.get("tree")?, topology.get("block")?, topology.get("flat")?];
    match kinds {
        [Some(tree), None, None] => switches(tree),
        [None, Some(block), None] => blocks(block),
        [None, None, Some(flat)] => Err((
            flat.line,
            format!(
                "topology `{name}` is flat, so it names no hosts; write flat:N for N hosts, or choose another"
            ),
        )),
        [None, None, None] => Err((
            topology.line,
            format!("topology `{name}` has none of tree, block and flat, which are understood"),
        )),
        _ => Err((topology.line, format!("topology `{name}` has several of tree, block and flat; give one"))),
    }
}

fn switches(tree: &Value) -> Result<Network, Wrong> {
    tree.only(&["switches"])?;
    let mut switches = Vec::new();
    for switch in tree.need("switches", "a tree")?.list("a list of switches")? {
        switch.only(&["switch", "children", "nodes", "link_speed"])?;
        let name = switch.need("switch", "a switch")?.scalar("the name of a switch")?.to_string();
        switches.push(Switch {
            name,
            line: switch.line,
            children: switch.hostlist("children")?,
            hosts: switch.hostlist("nodes")?,
        });
    }
    Ok(Network::Tree(switches))
}

fn blocks(block: &Value) -> Result<Network, Wrong> {
    block.only(&["block_sizes", "blocks"])?;
    let sizes = match block.get("block_sizes")? {
        Some(given) => {
            let words = given.list("a list of block sizes")?.iter().map(|size| size.scalar("a block size"));
            sizes(&words.collect::<Result<Vec<_>, _>>()?).map_err(|reason| (given.line, reason))?
        }
        None => Vec::new(),
    };
    let mut blocks = Vec::new();
    for block in block.need("blocks", "a block topology")?.list("a list of blocks")? {
        block.only(&["block", "nodes"])?;
        let name = block.need("block", "a block")?.scalar("the name of a block")?.to_string();
        let hosts = block.hostlist("nodes")?;
        blocks.push(Switch { name, line: block.line, children: Vec::new(), hosts });
    }
    Ok(Network::Blocks { sizes, blocks })
}

/// Numbers of nodes, each a multiple of the one before.
pub(super) fn sizes(words: &[&str]) -> Result<Vec<usize>, String> {
    let mut sizes: Vec<usize> = Vec::new();
    for word in words {
        let size = word.trim().parse().ok().filter(|&size| size > 0);
        let size: usize =
            size.ok_or_else(|| format!("expected block sizes such as 4,8,16, found `{}`", words.join(",")))?;
        if let Some(before) = sizes.last().filter(|&&before| size <= before || size % before != 0) {
            return Err(format!("block size {size} is no multiple of {before}; list them from the smallest"));
        }
        sizes.push(size);
    }
    Ok(sizes)
}

fn is_true(word: &str) -> bool {
    ["true", "yes", "on", "1"].iter().any(|known| word.eq_ignore_ascii_case(known))
}

impl Value {
    fn found(&self) -> String {
        match &self.content {
            Content::Scalar(word) => format!("`{word}`"),
            Content::List(_) => "a list".into(),
            Content::Map(_) => "a mapping".into(),
        }
    }

    fn scalar(&self, what: &str) -> Result<&str, Wrong> {
        match &self.content {
            Content::Scalar(word) if !word.is_empty() => Ok(word),
            _ => Err((self.line, format!("expected {what}, found {}", self.found()))),
        }
    }

    fn list(&self, what: &str) -> Result<&[Value], Wrong> {
        match &self.content {
            Content::List(values) => Ok(values),
            _ => Err((self.line, format!("expected {what}, found {}", self.found()))),
        }
    }

    fn map(&self) -> Result<&[(String, Value)], Wrong> {
        match &self.content {
            Content::Map(pairs) => Ok(pairs),
            _ => Err((self.line, format!("expected a mapping `key: value`, found {}", self.found()))),
        }
    }

    fn get(&self, key: &str) -> Result<Option<&Value>, Wrong> {
        Ok(self.map()?.iter().find(|pair| pair.0 == key).map(|pair| &pair.1))
    }

    fn need(&self, key: &str, of: &str) -> Result<&Value, Wrong> {
        self.get(key)?.ok_or_else(|| (self.line, format!("{of} has a `{key}:`, and there is none here")))
    }

    /// The names of a hostlist, or of a list of them; none if there is no such key.
    fn hostlist(&self, key: &str) -> Result<Vec<String>, Wrong> {
        let Some(value) = self.get(key)? else { return Ok(Vec::new()) };
        let lists = match &value.content {
            Content::List(lists) => lists.as_slice(),
            _ => std::slice::from_ref(value),
        };
        let mut names = Vec::new();
        for list in lists {
            let list = (list.scalar("names such as n[1-16]")?, list.line);
            names.extend(hostlist::expand(list.0).map_err(|reason| (list.1, reason))?);
        }
        Ok(names)
    }

    /// Whether there are no other keys.
    fn only(&self, known: &[&str]) -> Result<(), Wrong> {
        match self.map()?.iter().find(|pair| !known.contains(&pair.0.as_str())) {
            None => Ok(()),
            Some((key, value)) => {
                let meant = meant(key, known);
                Err((value.line, format!("there is no `{key}:` here{meant}; known are {}", known.join(", "))))
            }
        }
    }
}

/// The first document of a text.
fn document(text: &str) -> Result<Value, Wrong> {
    // What is not complete yet, outermost first: the value, and the key of a mapping that waits for its value.
    let mut open: Vec<(Value, Option<String>)> = Vec::new();
    for event in Parser::new_from_str(text) {
        let (event, span) = event
            .map_err(|error| (error.marker().line().max(1), format!("this is not YAML: {}", error.info())))?;
        let line = span.start.line().max(1);
        let done = match event {
            Event::Scalar(word, ..) => Value { line, content: Content::Scalar(word.into_owned()) },
            Event::SequenceStart(..) | Event::MappingStart(..) if open.len() >= MAX_DEPTH => {
                return Err((line, format!("lists are nested more than {MAX_DEPTH} deep")));
            }
            Event::SequenceStart(..) => {
                open.push((Value { line, content: Content::List(Vec::new()) }, None));
                continue;
            }
            Event::MappingStart(..) => {
                open.push((Value { line, content: Content::Map(Vec::new()) }, None));
                continue;
            }
            Event::SequenceEnd | Event::MappingEnd => match open.pop() {
                Some((value, _)) => value,
                None => continue,
            },
            Event::Alias(_) => {
                return Err((line, "names of values (`*name`) are not understood; write the value".into()));
            }
            _ => continue,
        };
        let Some((value, key)) = open.last_mut() else { return Ok(done) };
        match (&mut value.content, key.take()) {
            (Content::List(values), _) => values.push(done),
            (Content::Map(pairs), Some(key)) => {
                if pairs.iter().any(|pair| pair.0 == key) {
                    return Err((done.line, format!("`{key}:` is given twice")));
                }
                pairs.push((key, done));
            }
            (Content::Map(_), None) => *key = Some(done.scalar("a key")?.to_string()),
            (Content::Scalar(_), _) => (),
        }
    }
    Err((1, "the file is empty; expected a list of topologies".into()))
}
