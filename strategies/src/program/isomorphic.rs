//! The machine that a program is modelled on: a PE per process, and a link of its own for every channel.

use rustc_hash::FxHashMap;

use super::{Instruction, Program, Statement};
use crate::Topology;
use crate::topology::Link;

/// A PE for each process of a program, and a link for each two of which one sends to the other.
///
/// All PEs are one hop apart. Who never communicates shares one link, which nobody uses.
pub struct Isomorphic {
    pes: usize,
    /// By sender and receiver, ascending.
    channels: Vec<(u32, u32)>,
    link_of: FxHashMap<(u32, u32), u32>,
}

impl Isomorphic {
    /// The machine of a program.
    pub fn of(program: &Program) -> Self {
        let mut channels = Vec::new();
        for (id, process) in program.processes.iter().enumerate() {
            sends(&process.body, id as u32, &mut channels);
        }
        channels.sort_unstable();
        channels.dedup();
        let link_of = channels.iter().copied().zip(0..).collect();
        Isomorphic { pes: program.tasks().max(1), channels, link_of }
    }

    /// Which processes send to which, ascending by sender, then by receiver: link `i` is of channel `i`.
    pub fn channels(&self) -> &[(u32, u32)] {
        &self.channels
    }
}

/// Appends who is sent to in these statements.
fn sends(body: &[Statement], from: u32, channels: &mut Vec<(u32, u32)>) {
    for statement in body {
        match &statement.instruction {
            Instruction::Send { to, .. } => channels.push((from, *to)),
            Instruction::Repeat { body, .. } => sends(body, from, channels),
            Instruction::IntOp(_) | Instruction::Receive { .. } => {}
        }
    }
}

impl Topology for Isomorphic {
    fn spec(&self) -> String {
        format!("isomorphic:{}", self.pes)
    }

    fn pes(&self) -> usize {
        self.pes
    }

    fn distance(&self, a: usize, b: usize) -> u32 {
        u32::from(a != b)
    }

    fn diameter(&self) -> u32 {
        u32::from(self.pes > 1)
    }

    fn links(&self) -> usize {
        self.channels.len() + 1
    }

    fn link(&self, id: usize) -> Link {
        let name = self.channels.get(id).map_or_else(String::new, |(from, to)| format!("{from} -> {to}"));
        Link { name, bandwidth: 1.0, latency_seconds: 1.0, length: 1 }
    }

    fn route(&self, a: usize, b: usize, links: &mut Vec<usize>) {
        if a != b {
            let link = self.link_of.get(&(a as u32, b as u32)).copied();
            links.push(link.map_or(self.channels.len(), |link| link as usize));
        }
    }
}
