//! Slurm's `topology.conf`: a line per switch, or per block.
//!
//! `SwitchName=s1 Switches=s[2-3]`, `SwitchName=s2 Nodes=n[1-16]`, `BlockName=b1 Nodes=n[1-18]`,
//! `BlockSizes=18,36`. Names of parameters are written in any case; `#` begins a comment, and a line that ends
//! in `\` goes on in the next one.

use super::{Network, Switch, Wrong};
use crate::hostlist;
use crate::spelling::meant;

/// What a line may say.
const KNOWN: [&str; 7] =
    ["SwitchName", "Switches", "Nodes", "LinkSpeed", "BlockName", "BlockSizes", "BlockLevels"];

/// The network of a file with this text.
pub(super) fn read(text: &str) -> Result<Network, Wrong> {
    let (mut switches, mut blocks) = (Vec::<Switch>::new(), Vec::<Switch>::new());
    let mut sizes: Option<(usize, Vec<usize>)> = None;
    for (line, text) in joined(text) {
        let wrong = |reason: String| (line, reason);
        let (mut switch, mut is_switch, mut is_block) = (Switch { line, ..Switch::default() }, false, false);
        let mut given: Vec<&str> = Vec::new();
        for word in text.split_whitespace() {
            let (key, value) = word.split_once('=').ok_or_else(|| {
                wrong(format!("expected parameters such as SwitchName=s1 Nodes=n[1-16], found `{word}`"))
            })?;
            let Some(key) = KNOWN.into_iter().find(|known| known.eq_ignore_ascii_case(key)) else {
                let meant = meant(key, &KNOWN);
                return Err(wrong(format!("there is no `{key}`{meant}; known are {}", KNOWN.join(", "))));
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
                    sizes = Some((line, super::yaml::sizes(&list).map_err(wrong)?));
                }
                "BlockLevels" => {
                    let sentence =
                        "BlockLevels is of an older Slurm; give the numbers of nodes as BlockSizes";
                    return Err(wrong(sentence.into()));
                }
                // The speed of a link is not used.
                _ => (),
            }
        }
        match (is_switch, is_block) {
            (true, true) => return Err(wrong("a line describes a switch or a block, not both".into())),
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
            Err((block.line, "there are switches and blocks in one file; give one kind".into()))
        }
        (Some(_), None, Some((line, _))) => Err((line, "there are BlockSizes and no blocks".into())),
        (Some(_), None, None) => Ok(Network::Tree(switches)),
        (None, Some(_), sizes) => {
            Ok(Network::Blocks { sizes: sizes.map_or_else(Vec::new, |(_, sizes)| sizes), blocks })
        }
        (None, None, _) => Err((1, "no line describes a switch or a block".into())),
    }
}

/// The one name that a value is.
fn name(value: &str) -> Result<String, String> {
    let mut names = hostlist::expand(value)?;
    match names.len() {
        1 => Ok(names.swap_remove(0)),
        count => Err(format!("`{value}` is {count} names; describe each by a line of its own")),
    }
}

/// The lines that say anything, with the number of the first one of those that go on.
fn joined(text: &str) -> Vec<(usize, String)> {
    let mut lines: Vec<(usize, String)> = Vec::new();
    let mut goes_on = false;
    for (number, line) in (1..).zip(text.lines()) {
        let said = line.split('#').next().unwrap_or_default().trim();
        let (said, is_open) = said.strip_suffix('\\').map_or((said, false), |said| (said, true));
        match lines.last_mut().filter(|_| goes_on) {
            Some((_, before)) => {
                before.push(' ');
                before.push_str(said);
            }
            None => lines.push((number, said.to_string())),
        }
        goes_on = is_open;
    }
    lines.retain(|(_, line)| !line.trim().is_empty());
    lines
}
