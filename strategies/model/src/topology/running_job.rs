//! The machine of a running job: its nodes from the hosts of its processes, in a network if one is given, with the levels
//! of the current host if it is known.

use std::net::IpAddr;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::allocation::{Hosts, part};
use super::job::complete;
use super::spec::{checked, machine};
use super::{Flat, Job, SpecError, Topology, TopologyError, parse};
use crate::table::count;

/// The machine that `spec` describes for a running job: process `p` runs on the host `hosts[p]` and has
/// `pes_per_process` PEs. `job` is this job on a flat network, and `job:SPEC` is this job on the network `SPEC`. Any other
/// spec is parsed as by [`parse`]; the caller compares the numbers of PEs. The spec of the result is complete: `parse`
/// makes the same machine of it without the job.
///
/// With the feature `hwloc`, nodes have the levels of the current host that separate processes or PEs, if its hardware
/// threads can be divided evenly among the PEs of a node.
///
/// # Errors
/// As for `parse`; also if the network lacks a host, or has fewer PEs than the job has nodes.
pub fn job(spec: &str, hosts: &[String], pes_per_process: usize) -> Result<Arc<dyn Topology>, TopologyError> {
    // Without the feature, the current host is unknown.
    job_on(spec, hosts, pes_per_process, parse("hwloc").ok().as_deref())
}

/// [`job`] on nodes with these hardware threads.
pub(super) fn job_on(
    spec: &str,
    hosts: &[String],
    pes_per_process: usize,
    node: Option<&dyn Topology>,
) -> Result<Arc<dyn Topology>, TopologyError> {
    let network = match spec.strip_prefix("job") {
        Some("") => None,
        Some(rest) if rest.starts_with(':') && complete(spec).is_none() => Some(&rest[1..]),
        _ => return parse(spec),
    };
    checked(spec, running(network, hosts, pes_per_process, node))
}

/// The machine of a running job on a network (`None`: flat).
fn running(
    network: Option<&str>,
    hosts: &[String],
    pes: usize,
    node: Option<&dyn Topology>,
) -> Result<Arc<dyn Topology>, SpecError> {
    let (mut number, mut names) = (FxHashMap::default(), Vec::new());
    let mut number_of = |host| {
        *number.entry(host).or_insert_with(|| {
            names.push(host);
            names.len() - 1
        })
    };
    let node_of: Vec<usize> = hosts.iter().map(|host| number_of(host.as_str())).collect();
    let nodes = names.len();
    let network = match network {
        None => Arc::new(Flat::new(nodes)?),
        Some(network) => {
            let network = machine(network, 0)?;
            let places = places(&*network, &names)?;
            part(network, places)?
        }
    };
    // The number of each process in its node.
    let mut used = vec![0; nodes];
    let mut next = |node: usize| {
        used[node] += 1;
        used[node] - 1
    };
    let index: Vec<usize> = node_of.iter().map(|&node| next(node)).collect();
    let most = used.into_iter().max().unwrap_or(0);
    let is_cyclic = most > 1 && nodes > 1 && node_of.iter().enumerate().all(|(q, &node)| node == q % nodes);
    let arities = node.and_then(|node| node.hierarchy()?.arities()).unwrap_or_default();
    let (above, inside) = divide(&arities, most, pes);
    let mut job = Job::new(network, &above, &inside, is_cyclic).map_err(|reason| {
        let (nodes, most) = (count(nodes as u64, "node"), count(most as u64, "process"));
        format!("{nodes} with up to {most} and {} each: {reason}", count(pes as u64, "PE"))
    })?;
    if let Some(node) = node.filter(|node| node.pes() >= most * pes) {
        let threads_per_pe = node.pes() / (most * pes);
        job.cpus = (0..most * pes).map_while(|pe| node.cpu_of(pe * threads_per_pe)).collect();
    }
    let first = node_of.iter().zip(index).map(|(&node, index)| job.process_at(node, index) * pes);
    let pes = first.flat_map(|first| first as u32..(first + pes) as u32).collect();
    Ok(part(Arc::new(job), pes)?)
}

/// The levels of a node above its processes, down to these, and inside a process, down to the PEs. `arities` has the
/// levels of the hardware threads, which the PEs of the node share evenly, in their order. A level counts if
/// each of its parts has whole processes, or whole PEs of one process.
pub(super) fn divide(arities: &[usize], processes: usize, pes: usize) -> (Vec<usize>, Vec<usize>) {
    let (threads, all) = (arities.iter().product::<usize>(), processes.saturating_mul(pes));
    let (mut above, mut inside) = (vec![processes], vec![pes]);
    if all == 0 || !threads.is_multiple_of(all) {
        return (above, inside);
    }
    // The hardware threads and then the PEs of a part.
    let (mut part, threads_per_pe) = (threads, threads / all);
    for arity in arities {
        part /= arity;
        let size = part / threads_per_pe;
        let (levels, lowest) = if size > pes { (&mut above, pes) } else { (&mut inside, 1) };
        // The PEs of a part of the level before.
        let before = levels.last().map_or(0, |last| last * lowest);
        let has_whole = part.is_multiple_of(threads_per_pe) && size.is_multiple_of(lowest);
        if has_whole && lowest < size && size < before && before.is_multiple_of(size) {
            levels.pop();
            levels.extend([before / size, size / lowest]);
        }
    }
    (above, inside)
}

/// The PE of the network for each node of a job; `names` has the host of each node.
fn places(network: &dyn Topology, names: &[&str]) -> Result<Vec<u32>, String> {
    let (spec, pes) = (network.spec(), network.pes());
    let Some(Hosts(pes_of)) = Hosts::of(network) else {
        if pes < names.len() {
            let (pes, nodes) = (count(pes as u64, "PE"), count(names.len() as u64, "node"));
            return Err(format!(
                "`{spec}` has {pes}, but the job has {nodes}; write a network with a PE for each node"
            ));
        }
        return Ok((0..names.len() as u32).collect());
    };
    let mut by_short_name: FxHashMap<&str, Vec<u32>> = FxHashMap::default();
    for (name, pes) in &pes_of {
        by_short_name.entry(without_domain(name)).or_default().extend(pes);
    }
    let mut user: FxHashMap<u32, &str> = FxHashMap::default();
    let mut place = |name| {
        let pes = pes_of.get(name).or_else(|| by_short_name.get(without_domain(name))).ok_or_else(|| {
            format!(
                "`{spec}` has no host `{name}`, which runs a process of the job; add the host, or use `job`"
            )
        })?;
        let &[pe] = &pes[..] else {
            let pes = count(pes.len() as u64, "PE");
            return Err(format!(
                "host `{name}` has {pes} in `{spec}`; write a network with one PE for each host"
            ));
        };
        match user.insert(pe, name) {
            None => Ok(pe),
            Some(first) => Err(format!(
                "hosts `{first}` and `{name}` of the job are one host in `{spec}`; write their domains there"
            )),
        }
    };
    names.iter().map(|&name| place(name)).collect()
}

/// The name of a host without its domain; an IP address has none.
fn without_domain(name: &str) -> &str {
    match name.split_once('.') {
        Some((short, _)) if name.parse::<IpAddr>().is_err() => short,
        _ => name,
    }
}
