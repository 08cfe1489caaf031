//! `topology.conf` of Slurm: a line per switch or block.
//!
//! `SwitchName=s1 Switches=s[2-3]`, `SwitchName=s2 Nodes=n[1-16]`, `BlockName=b1 Nodes=n[1-18]`, `BlockSizes=18,36`.
//! Names of parameters are case-insensitive; `#` begins a comment, and a line that ends in `\` is continued in the next
//! line.

use super::{Network, Switch};
use crate::files::AtLine;
use crate::hostlist;
use crate::spelling::meant;

/// The parameters of a line.
const KNOWN: [&str; 7] =
    ["SwitchName", "Switches", "Nodes", "LinkSpeed", "BlockName", "BlockSizes", "BlockLevels"];

/// Parses a file.
pub(super) fn read(text: &str) -> Result<Network, AtLine> {
    let (mut switches, mut blocks) = (Vec::<Switch>::new(), Vec::<Switch>::new());
    let mut sizes: Option<(usize, Vec<usize>)> = None;
    for (line, text) in logical_lines(text) {
        let wrong = |reason: String| (line, reason);
        let (mut switch, mut is_switch, mut is_block) = (Switch { line, ..Switch::default() }, false, false);
        let mut given: Vec<&str> = Vec::new();
        for word in text.split_whitespace() {
            let (key, value) = word.split_once('=').ok_or_else(|| {
                wrong(format!("expected parameters such as SwitchName=s1 Nodes=n[1-16], found `{word}`"))
            })?;
            let Some(key) = KNOWN.into_iter().find(|known| known.eq_ignore_ascii_case(key)) else {
                let suggestion = meant(key, &KNOWN);
                return Err(wrong(format!(
                    "there is no parameter `{key}`{suggestion}; known are {}",
                    KNOWN.join(", ")
                )));
            };
            if given.contains(&key) {
                return Err(wrong(format!("{key} is given twice in one line")));
            }
            given.push(key);
            let value = value.trim_matches('"');
            match key {
                "SwitchName" | "BlockName" => {
                    switch.name = name(value).map_err(wrong)?;
                    (is_switch, is_block) =
                        (is_switch || key == "SwitchName", is_block || key == "BlockName");
                }
                "Switches" => switch.children = hostlist::expand(value).map_err(wrong)?,
                "Nodes" => switch.hosts = hostlist::expand(value).map_err(wrong)?,
                "BlockSizes" => {
                    let list: Vec<&str> = value.split(',').collect();
                    sizes = Some((line, super::block_sizes(&list).map_err(wrong)?));
                }
                "BlockLevels" => {
                    let sentence = "BlockLevels belongs to an older version of Slurm; give the numbers of \
                                    nodes as BlockSizes";
                    return Err(wrong(sentence.into()));
                }
                // The link speed is ignored.
                _ => (),
            }
        }
        match (is_switch, is_block) {
            (true, true) => return Err(wrong("a line describes either a switch or a block".into())),
            (true, false) => switches.push(switch),
            (false, true) if !switch.children.is_empty() => {
                return Err(wrong("a block has Nodes, not Switches".into()));
            }
            (false, true) => blocks.push(switch),
            (false, false) if given == ["BlockSizes"] => (),
            (false, false) => {
                return Err(wrong("expected SwitchName= or BlockName= in this line".into()));
            }
        }
    }
    match (switches.first(), blocks.first(), sizes) {
        (Some(_), Some(block), _) => {
            Err((block.line, "there are both switches and blocks; give only one kind".into()))
        }
        (Some(_), None, Some((line, _))) => Err((line, "there are BlockSizes, but no blocks".into())),
        (Some(_), None, None) => Ok(Network::Tree(switches)),
        (None, Some(_), sizes) => {
            Ok(Network::Blocks { sizes: sizes.map_or_else(Vec::new, |(_, sizes)| sizes), blocks })
        }
        (None, None, _) => Err((1, "no line describes a switch or a block".into())),
    }
}

/// The single name in a value.
fn name(value: &str) -> Result<String, String> {
    let mut names = hostlist::expand(value)?;
    match names.len() {
        1 => Ok(names.swap_remove(0)),
        count => Err(format!("`{value}` is {count} names; give each its own line")),
    }
}

/// The lines with content; continued lines are joined and have the number of the first line.
fn logical_lines(text: &str) -> Vec<(usize, String)> {
    let mut lines: Vec<(usize, String)> = Vec::new();
    let mut is_continued = false;
    for (number, line) in (1..).zip(text.lines()) {
        let content = line.split('#').next().unwrap_or_default().trim();
        let (content, is_open) =
            content.strip_suffix('\\').map_or((content, false), |content| (content, true));
        match lines.last_mut().filter(|_| is_continued) {
            Some((_, before)) => {
                before.push(' ');
                before.push_str(content);
            }
            None => lines.push((number, content.to_string())),
        }
        is_continued = is_open;
    }
    lines.retain(|(_, line)| !line.trim().is_empty());
    lines
}
