//! The machine on which a program is modelled: one PE per process, and one link per channel.

use rustc_hash::FxHashMap;

use equipoise_model::Topology;
use equipoise_model::topology::Link;

use super::{Instruction, Program, Statement};

/// A machine with one PE per process of a program, and one link per channel (pair of sender and receiver).
///
/// All PEs are one hop apart. The routes between processes without a channel share one link that carries no messages.
pub struct Isomorphic {
    pes: usize,
    /// By sender and receiver, ascending.
    channels: Vec<(u32, u32)>,
    link_of: FxHashMap<(u32, u32), u32>,
}

impl Isomorphic {
    /// The isomorphic machine of a program.
    pub fn of(program: &Program) -> Self {
        let mut channels = Vec::new();
        for (id, process) in program.processes.iter().enumerate() {
            collect_channels(&process.body, id as u32, &mut channels);
        }
        channels.sort_unstable();
        channels.dedup();
        let link_of = channels.iter().copied().zip(0..).collect();
        Isomorphic { pes: program.tasks().max(1), channels, link_of }
    }

    /// The channels (sender, receiver), sorted by sender, then by receiver. Link `i` belongs to channel `i`.
    pub fn channels(&self) -> &[(u32, u32)] {
        &self.channels
    }
}

/// Appends the channels of all sends of `body`.
fn collect_channels(body: &[Statement], from: u32, channels: &mut Vec<(u32, u32)>) {
    for statement in body {
        match &statement.instruction {
            Instruction::Send { to, .. } => channels.push((from, *to)),
            Instruction::Repeat { body, .. } => collect_channels(body, from, channels),
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
