//! `topology.yaml` of Slurm: a list of topologies, each a tree of switches, blocks, or flat.
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
//! The default is the first topology with `cluster_default`, or else the first topology. A flat topology is rejected,
//! because it names no hosts.

use saphyr_parser::{Event, Parser};

use super::{Network, Switch, block_sizes};
use crate::fault::{Classified, Fault};
use crate::files::AtLine;
use crate::hostlist;
use crate::spelling::meant;

/// The deepest nesting of lists and mappings.
const MAX_DEPTH: usize = 32;

/// A value and the line in which it begins.
#[derive(Debug)]
struct Value {
    line: usize,
    content: Content,
}

#[derive(Debug)]
enum Content {
    Scalar(String),
    List(Vec<Value>),
    /// Keys and values in file order.
    Map(Vec<(String, Value)>),
}

/// Why a file does not have the requested network.
#[derive(Debug, thiserror::Error)]
pub(super) enum Refusal {
    /// A line is invalid.
    #[error("line {}: {}", .0.0, .0.1)]
    Line(AtLine),
    /// There is no network with this name.
    #[error("{0}")]
    Name(String),
}

impl Classified for Refusal {
    fn fault(&self) -> Fault {
        match self {
            Refusal::Line(_) => Fault::Input,
            Refusal::Name(_) => Fault::Usage,
        }
    }
}

impl From<AtLine> for Refusal {
    fn from(wrong: AtLine) -> Self {
        Refusal::Line(wrong)
    }
}

/// Parses a file and selects the network `wanted`.
pub(super) fn read(text: &str, wanted: Option<&str>) -> Result<Network, Refusal> {
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
            let suggestion = meant(wanted, &names);
            Refusal::Name(format!(
                "there is no topology `{wanted}`{suggestion}; known are {}",
                names.join(", ")
            ))
        })?,
        None => topologies.iter().position(is_default).unwrap_or(0),
    };
    let topology = topologies
        .get(chosen)
        .ok_or((document.line, "expected a list of topologies, found none".to_string()))?;
    Ok(network(topology, names[chosen])?)
}

/// Converts a topology to a network.
fn network(topology: &Value, name: &str) -> Result<Network, AtLine> {
    let kinds = [topology.get("tree")?, topology.get("block")?, topology.get("flat")?];
    match kinds {
        [Some(tree), None, None] => switches(tree),
        [None, Some(block), None] => blocks(block),
        [None, None, Some(flat)] => Err((
            flat.line,
            format!(
                "topology `{name}` is flat and names no hosts; use flat:N for N hosts, or choose another topology"
            ),
        )),
        [None, None, None] => {
            Err((topology.line, format!("topology `{name}` needs one of the keys tree, block and flat")))
        }
        _ => Err((
            topology.line,
            format!("topology `{name}` has more than one of the keys tree, block and flat; give only one"),
        )),
    }
}

fn switches(tree: &Value) -> Result<Network, AtLine> {
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

fn blocks(block: &Value) -> Result<Network, AtLine> {
    block.only(&["block_sizes", "blocks"])?;
    let sizes = match block.get("block_sizes")? {
        Some(given) => {
            let words = given.list("a list of block sizes")?.iter().map(|size| size.scalar("a block size"));
            block_sizes(&words.collect::<Result<Vec<_>, _>>()?).map_err(|reason| (given.line, reason))?
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

    fn scalar(&self, what: &str) -> Result<&str, AtLine> {
        match &self.content {
            Content::Scalar(word) if !word.is_empty() => Ok(word),
            _ => Err((self.line, format!("expected {what}, found {}", self.found()))),
        }
    }

    fn list(&self, what: &str) -> Result<&[Value], AtLine> {
        match &self.content {
            Content::List(values) => Ok(values),
            _ => Err((self.line, format!("expected {what}, found {}", self.found()))),
        }
    }

    fn map(&self) -> Result<&[(String, Value)], AtLine> {
        match &self.content {
            Content::Map(pairs) => Ok(pairs),
            _ => Err((self.line, format!("expected a mapping `key: value`, found {}", self.found()))),
        }
    }

    fn get(&self, key: &str) -> Result<Option<&Value>, AtLine> {
        Ok(self.map()?.iter().find(|pair| pair.0 == key).map(|pair| &pair.1))
    }

    fn need(&self, key: &str, of: &str) -> Result<&Value, AtLine> {
        self.get(key)?.ok_or_else(|| (self.line, format!("{of} needs the key `{key}:`")))
    }

    /// The names of a hostlist or of a list of hostlists; none if the key is missing.
    fn hostlist(&self, key: &str) -> Result<Vec<String>, AtLine> {
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

    /// Checks that there are no other keys.
    fn only(&self, known: &[&str]) -> Result<(), AtLine> {
        match self.map()?.iter().find(|pair| !known.contains(&pair.0.as_str())) {
            None => Ok(()),
            Some((key, value)) => {
                let suggestion = meant(key, known);
                Err((
                    value.line,
                    format!("there is no key `{key}:` here{suggestion}; known are {}", known.join(", ")),
                ))
            }
        }
    }
}

/// Parses the first document of a text.
fn document(text: &str) -> Result<Value, AtLine> {
    // The incomplete values, outermost first; for a mapping, with the key that waits for its value.
    let mut open: Vec<(Value, Option<String>)> = Vec::new();
    for event in Parser::new_from_str(text) {
        let (event, span) = event
            .map_err(|error| (error.marker().line().max(1), format!("this is not YAML: {}", error.info())))?;
        let line = span.start.line().max(1);
        let done = match event {
            Event::Scalar(word, ..) => Value { line, content: Content::Scalar(word.into_owned()) },
            Event::SequenceStart(..) | Event::MappingStart(..) if open.len() >= MAX_DEPTH => {
                return Err((line, format!("lists are nested more than {MAX_DEPTH} levels deep")));
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
                return Err((line, "aliases (`*name`) are not supported; repeat the value".into()));
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
