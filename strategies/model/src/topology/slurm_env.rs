//! `slurm-env`: the nodes of the Slurm job that this command runs in.
//!
//! The environment gives the hosts (`SLURM_JOB_NODELIST`) in the order in which Slurm numbers them, and the PEs of each:
//! its GPUs (`SLURM_GPUS_ON_NODE`, else `SLURM_GPUS_PER_NODE`), else its tasks (`SLURM_TASKS_PER_NODE`), else its CPUs
//! (`SLURM_JOB_CPUS_PER_NODE`). Slurm says only for the node of this command how many GPUs it has, so all nodes are taken to have as
//! many. The note of the machine names the variable. The network is that of `network=FILE`, or of `topology.yaml` or `topology.conf`
//! next to the file that `SLURM_CONF` names. If there is neither, the hosts are at one switch.
//!
//! Slurm gives every process only the switches above its own node (`SLURM_TOPOLOGY_ADDR`). So one process cannot see the
//! network, but all processes can print their lines of the file of a machine `switches:FILE`.
//!
//! `hosts=(n[1-8]),pes=8` describes a job from outside. The machine is made from a spec such as
//! `(slurm:topology.conf)[n[1-4]]*flat:8`, which is also the spec of the result.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::allocation::Hosts;
use super::altered::Altered;
use super::{Kind, SpecError, Topology, spec};
use crate::hostlist;
use crate::params::{Param, Params};
use crate::quote::quoted;

/// The entry of `slurm-env` in the list of machines.
pub const KIND: Kind = Kind {
    name: "slurm-env",
    form: "slurm-env, slurm-env:hosts=(n[1-8]),pes=8",
    help: "The nodes of the Slurm job that this command runs in, from Slurm's environment variables; the PEs of a node are \
           its GPUs, else its tasks, else its CPUs.",
    params: PARAMS,
    item: |text| machine(described(text, |name| std::env::var(name).ok())?),
};

const PARAMS: &[Param] = &[
    Param { key: "hosts", default: "auto", help: "the hosts, as in (n[1-8]); auto: those of the job" },
    Param {
        key: "network",
        default: "auto",
        help: "topology.conf or topology.yaml of Slurm, or the file of a machine switches:FILE; auto: the file next to \
               slurm.conf, else all hosts at one switch",
    },
    Param {
        key: "node",
        default: "auto",
        help: "the machine of a node, such as nvidia-smi:FILE; auto: flat",
    },
    Param { key: "pes", default: "auto", help: "PEs of a node; auto: GPUs, else tasks, else CPUs" },
];

/// The most PEs of a node.
const MAX_PES: usize = 1 << 16;

/// The variables that are read for the PEs of a node, in this order.
const VARIABLES: [&str; 4] =
    ["SLURM_GPUS_ON_NODE", "SLURM_GPUS_PER_NODE", "SLURM_TASKS_PER_NODE", "SLURM_JOB_CPUS_PER_NODE"];

/// The machine of a job, as a spec.
struct Described {
    spec: String,
    /// The file of the network and its spec, and the hosts of the job.
    network: Option<(String, String)>,
    hosts: Vec<String>,
    /// Where the number of PEs of a node is from, and whether the network is unknown.
    note: Option<String>,
}

fn machine(described: Described) -> Result<Arc<dyn Topology>, SpecError> {
    let Described { spec, network, hosts, note } = described;
    let whole = |error: SpecError| SpecError { reason: spec::within(&quoted(&spec), error.reason), ..error };
    if let Some((file, network)) = network {
        check_hosts(&file, &*spec::machine(&network, 1)?, &hosts)?;
    }
    let machine = spec::machine(&spec, 1).map_err(whole)?;
    Ok(match note {
        Some(note) => Arc::new(Altered::noted(machine, note)),
        None => machine,
    })
}

/// Checks that a network has the hosts of the job.
fn check_hosts(file: &str, network: &dyn Topology, hosts: &[String]) -> Result<(), SpecError> {
    let known = Hosts::of(network);
    let is_missing =
        |host: &&String| known.as_ref().is_some_and(|Hosts(known)| !known.contains_key(host.as_str()));
    match hosts.iter().find(is_missing) {
        Some(host) => {
            Err(format!("host {host} of the job is not in {file}; add it, or use another file with network=")
                .into())
        }
        None => Ok(()),
    }
}

/// The machine of the job that `variable` describes.
fn described(text: &str, variable: impl Fn(&str) -> Option<String>) -> Result<Described, SpecError> {
    let set = |name: &str| variable(name).filter(|value| !value.trim().is_empty());
    Params::parse_with(KIND.name, PARAMS, text, |params| {
        let (network, node): (String, String) = (params.take("network")?, params.take("node")?);
        let pes = params.take_count_or_auto("pes", MAX_PES)?;
        let given = params.take::<String>("hosts")?;
        let of_job = || set("SLURM_JOB_NODELIST").or_else(|| set("SLURM_NODELIST"));
        let list = match given.strip_prefix('(').and_then(|list| list.strip_suffix(')')) {
            Some(list) => Some(list.to_string()),
            None if given == "auto" => of_job(),
            // Brackets at the end of a spec choose PEs.
            None => {
                return Err(params
                    .bad("hosts", &given, "expected hosts in parentheses, as in (n[1-8])")
                    .into());
            }
        };
        let list = list.ok_or(
            "no Slurm job is running here: SLURM_JOB_NODELIST is not set; run this command in a job, or name the hosts as in \
             slurm-env:hosts=(n[1-4]),pes=8",
        )?;
        let hosts = hostlist::expand(&list).map_err(|reason| format!("the hosts `{list}`: {reason}"))?;
        let (counts, note) = match pes {
            Some(pes) => (vec![pes; hosts.len()], None),
            None => counts(hosts.len(), &set).map(|(counts, note)| (counts, Some(note)))?,
        };
        let file = match network.as_str() {
            "auto" => set("SLURM_CONF").and_then(|conf| next_to(Path::new(&conf))),
            file => Some(file.into()),
        };
        let unknown = "no topology.yaml and no topology.conf next to the file of SLURM_CONF: all hosts are taken to be at one switch, \
                       network=FILE names the network";
        let note = match (&file, note) {
            (None, Some(note)) => Some(format!("{note}; {unknown}")),
            (_, note) => note,
        };
        let network = file.map(|file| {
            let file = file.display().to_string();
            // As a spec, or a file whose name says what it is.
            match file.split_once(':').filter(|(kind, _)| ["slurm", "switches"].contains(kind)) {
                Some((_, name)) => (name.into(), file),
                None => {
                    let kind = if is_of_slurm(&file) { "slurm" } else { "switches" };
                    (file.clone(), format!("{kind}:{file}"))
                }
            }
        });
        let of_job = match &network {
            None => format!("hosts:({list})"),
            Some((_, network)) => format!("({network})[{list}]"),
        };
        Ok(Described { spec: with_nodes(&of_job, &counts, &node)?, network, hosts, note })
    })
}

/// Whether a file is a topology.conf, or a topology.yaml, optionally with the name of a topology.
fn is_of_slurm(file: &str) -> bool {
    let name = file.split('#').next().unwrap_or_default().to_lowercase();
    [".conf", ".yaml", ".yml"].iter().any(|extension| name.ends_with(extension))
}

/// The file with the topology next to slurm.conf. Slurm ignores topology.conf if there is a topology.yaml.
fn next_to(conf: &Path) -> Option<PathBuf> {
    ["topology.yaml", "topology.conf"]
        .map(|name| conf.with_file_name(name))
        .into_iter()
        .find(|file| file.is_file())
}

/// The PEs of every host, and the variable that they are from.
fn counts(hosts: usize, set: &impl Fn(&str) -> Option<String>) -> Result<(Vec<usize>, String), String> {
    let (name, text) = VARIABLES
        .into_iter()
        .find_map(|name| Some((name, set(name)?)))
        .ok_or_else(|| format!("none of {} is set; write pes=N", VARIABLES.join(", ")))?;
    let text = text.trim();
    let (counts, what) = match name {
        "SLURM_GPUS_ON_NODE" | "SLURM_GPUS_PER_NODE" => {
            let gpus = gpus(text).ok_or_else(|| {
                format!("{name}={text} is not a number of GPUs, such as 8 or a100:4,h100:4; write pes=N")
            })?;
            (vec![gpus; hosts], "GPUs")
        }
        _ => {
            let counts = repeated(text, hosts).ok_or_else(|| {
                format!("{name}={text} is not understood: expected numbers such as 8(x4),2; write pes=N")
            })?;
            let what = if name == "SLURM_TASKS_PER_NODE" { "tasks" } else { "CPUs" };
            (counts, what)
        }
    };
    if counts.len() != hosts {
        let found = counts.len();
        return Err(format!(
            "{name}={text} has numbers for {found} hosts, but the job has {hosts}; write pes=N"
        ));
    }
    let without = match what {
        "GPUs" => "",
        _ => "; no variable has a number of GPUs, pes=N gives one",
    };
    Ok((counts, format!("the PEs of a node are its {what} ({name}={text}{without})")))
}

/// The number of GPUs in `8`, `a100:8` or `a100:4,h100:4`.
fn gpus(text: &str) -> Option<usize> {
    let number = |part: &str| part.rsplit(':').next()?.trim().parse::<usize>().ok();
    let sum = text.split(',').map(number).try_fold(0usize, |sum, gpus| sum.checked_add(gpus?));
    sum.filter(|count| (1..=MAX_PES).contains(count))
}

/// The numbers of a list such as `8(x4),2`; not many more than `most`.
fn repeated(text: &str, most: usize) -> Option<Vec<usize>> {
    let mut counts = Vec::new();
    for part in text.trim().split(',') {
        let (count, times) = match part.split_once("(x") {
            Some((count, times)) => (count, times.strip_suffix(')')?.parse().ok()?),
            None => (part, 1),
        };
        let count: usize = count.parse().ok().filter(|count| (1..=MAX_PES).contains(count))?;
        counts.extend(std::iter::repeat_n(count, most.saturating_add(1).min(times)));
    }
    Some(counts)
}

/// The spec of the network with `counts[i]` PEs on node i, on the machine `node`, or `auto`.
fn with_nodes(network: &str, counts: &[usize], node: &str) -> Result<String, SpecError> {
    let most = counts.iter().copied().max().unwrap_or(1);
    let (node, size) = match node {
        "auto" => (format!("flat:{most}"), most),
        given => {
            let size = spec::machine(given, 1)?.pes();
            if size < most {
                return Err(format!(
                    "a node has {most} PEs, but {given} has {size}; write pes={size}, or another node"
                )
                .into());
            }
            (format!("({given})"), size)
        }
    };
    if counts.iter().all(|&count| count == size) {
        return Ok(format!("{network}*{node}"));
    }
    let of_host = |(host, &count): (usize, &usize)| match (host * size, host * size + count - 1) {
        (first, last) if first == last => first.to_string(),
        (first, last) => format!("{first}-{last}"),
    };
    let pes: Vec<String> = counts.iter().enumerate().map(of_host).collect();
    Ok(format!("({network}*{node})[{}]", pes.join(",")))
}

#[cfg(test)]
mod tests {
    use super::super::tests::{check_between, row};
    use super::*;

    /// The spec in an environment.
    fn spec(text: &str, variables: &[(&str, &str)]) -> Result<String, String> {
        let variable = |name: &str| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, value)| value.to_string())
        };
        described(text, variable).map(|found| found.spec).map_err(|error| error.to_string())
    }

    const HOSTS: (&str, &str) = ("SLURM_JOB_NODELIST", "n[1-2],gpu01");

    #[test]
    fn nodes_have_their_gpus_or_tasks_or_cpus() {
        let check = |text: &str, more: &[(&str, &str)], expected: &str| {
            assert_eq!(spec(text, &[&[HOSTS], more].concat()).as_deref(), Ok(expected));
        };
        let tasks = ("SLURM_TASKS_PER_NODE", "2(x3)");
        check("", &[tasks, ("SLURM_GPUS_ON_NODE", "8")], "hosts:(n[1-2],gpu01)*flat:8");
        check("", &[tasks, ("SLURM_GPUS_PER_NODE", "8")], "hosts:(n[1-2],gpu01)*flat:8");
        check("", &[tasks, ("SLURM_GPUS_PER_NODE", "a100:8")], "hosts:(n[1-2],gpu01)*flat:8");
        check("", &[("SLURM_GPUS_PER_NODE", "a100:4,h100:2")], "hosts:(n[1-2],gpu01)*flat:6");
        let both = [("SLURM_GPUS_PER_NODE", "8"), ("SLURM_GPUS_ON_NODE", "4")];
        check("", &both, "hosts:(n[1-2],gpu01)*flat:4");
        check("", &[tasks, ("SLURM_JOB_CPUS_PER_NODE", "9(x3)")], "hosts:(n[1-2],gpu01)*flat:2");
        check("", &[("SLURM_JOB_CPUS_PER_NODE", "9(x3)")], "hosts:(n[1-2],gpu01)*flat:9");
        check("", &[("SLURM_TASKS_PER_NODE", "4(x2),1")], "(hosts:(n[1-2],gpu01)*flat:4)[0-3,4-7,8]");
        check("pes=4,hosts=(n[3,5])", &[tasks], "hosts:(n[3,5])*flat:4");
        check("hosts=(n3,gpu[1-2],n5),pes=4", &[], "hosts:(n3,gpu[1-2],n5)*flat:4");
        check("node=(rails:nodes=1,gpus=4),hosts=(a,b),pes=4", &[], "hosts:(a,b)*((rails:nodes=1,gpus=4))");
        check("pes=4", &[tasks], "hosts:(n[1-2],gpu01)*flat:4");
        check("node=tree:2:2", &[("SLURM_GPUS_ON_NODE", "4")], "hosts:(n[1-2],gpu01)*(tree:2:2)");
        check("node=tree:2:2", &[tasks], "(hosts:(n[1-2],gpu01)*(tree:2:2))[0-1,4-5,8-9]");
        check("network=a.conf,pes=1", &[], "(slurm:a.conf)[n[1-2],gpu01]*flat:1");
        check("network=a.YAML#tree,pes=1", &[], "(slurm:a.YAML#tree)[n[1-2],gpu01]*flat:1");
        check("network=a.json,pes=1", &[], "(switches:a.json)[n[1-2],gpu01]*flat:1");
        check("network=switches:a.txt,pes=1", &[], "(switches:a.txt)[n[1-2],gpu01]*flat:1");
        check("network=slurm:a.txt,pes=1", &[], "(slurm:a.txt)[n[1-2],gpu01]*flat:1");
        let machine = spec::machine("(hosts:(n[1-2],gpu01)*flat:4)[0-3,4-7,8]", 1).expect("a machine");
        check_between(&*machine, |_, _| None);
        assert_eq!(row(&*machine, 0), [0, 1, 1, 1, 4, 4, 4, 4, 4]);
        assert_eq!((machine.host(4), machine.host(8), machine.node_of(8)), (Some("n2"), Some("gpu01"), 2));
    }

    #[test]
    fn a_note_names_the_variable() {
        let check = |text: &str, more: (&str, &str), expected: Option<&str>| {
            let variables = [HOSTS, more];
            let variable = |name: &str| {
                variables.iter().find(|(known, _)| *known == name).map(|(_, value)| value.to_string())
            };
            let machine = machine(described(text, variable).expect(more.0)).expect(more.0);
            assert_eq!(machine.note(), expected);
        };
        let network = "; no topology.yaml and no topology.conf next to the file of SLURM_CONF: all hosts are taken to be at one \
                       switch, network=FILE names the network";
        let gpus = format!("the PEs of a node are its GPUs (SLURM_GPUS_PER_NODE=a100:4){network}");
        check("", ("SLURM_GPUS_PER_NODE", "a100:4"), Some(&gpus));
        let tasks = format!(
            "the PEs of a node are its tasks (SLURM_TASKS_PER_NODE=1(x3); no variable has a number of GPUs, pes=N gives \
             one){network}"
        );
        check("", ("SLURM_TASKS_PER_NODE", "1(x3)"), Some(&tasks));
        check("pes=2", ("SLURM_TASKS_PER_NODE", "1(x3)"), None);
    }

    #[test]
    fn the_network_is_next_to_slurm_conf() {
        let folder = tempfile::tempdir().expect("a folder");
        let conf = folder.path().join("slurm.conf");
        let variables = [HOSTS, ("SLURM_GPUS_ON_NODE", "2"), ("SLURM_CONF", conf.to_str().expect("UTF-8"))];
        assert_eq!(spec("", &variables).as_deref(), Ok("hosts:(n[1-2],gpu01)*flat:2"));
        let topology = folder.path().join("topology.conf");
        std::fs::write(&topology, "SwitchName=s1 Nodes=n[1-9]\nSwitchName=s2 Nodes=gpu[01-02]\n")
            .expect("a file");
        let found = spec("", &variables).expect("a machine");
        assert_eq!(found, format!("(slurm:{})[n[1-2],gpu01]*flat:2", topology.display()));
        let machine = spec::machine(&found, 1).expect("a machine");
        check_between(&*machine, |_, _| None);
        let hosts: Vec<_> = (0..6).map(|pe| machine.host(pe).expect("a name")).collect();
        assert_eq!(hosts, ["n1", "n1", "n2", "n2", "gpu01", "gpu01"]);
        assert_eq!(row(&*machine, 0), [0, 1, 4, 4, 8, 8]);
        assert_eq!(machine.switch_between(0, 2).as_deref(), Some("switch s1"));
        assert_eq!(machine.switch_between(0, 4).as_deref(), Some("network"));
        std::fs::write(&topology, "SwitchName=s1 Nodes=n[1-9]\n").expect("a file");
        let variable = |name: &str| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, value)| value.to_string())
        };
        let error = super::machine(described("", variable).expect("a spec")).map(|machine| machine.pes());
        let expected = format!(
            "host gpu01 of the job is not in {}; add it, or use another file with network=",
            topology.display()
        );
        assert_eq!(error.map_err(|error| error.to_string()), Err(expected));
    }

    #[test]
    fn errors_name_the_variable() {
        let check = |text: &str, variables: &[(&str, &str)], expected: &str| {
            let error = spec(text, variables).expect_err(expected);
            assert!(error.contains(expected), "`{error}` does not contain `{expected}`");
        };
        check("", &[], "no Slurm job is running here: SLURM_JOB_NODELIST is not set");
        check("", &[("SLURM_JOB_NODELIST", "n[1")], "the hosts `n[1`: there is a `[` that is not closed");
        check("", &[HOSTS], "none of SLURM_GPUS_ON_NODE, SLURM_GPUS_PER_NODE, SLURM_TASKS_PER_NODE");
        check(
            "",
            &[HOSTS, ("SLURM_GPUS_ON_NODE", "two")],
            "SLURM_GPUS_ON_NODE=two is not a number of GPUs, such as 8 or a100:4,h100:4; write pes=N",
        );
        check("", &[HOSTS, ("SLURM_TASKS_PER_NODE", "8(x2)")], "has numbers for 2 hosts, but the job has 3");
        check(
            "",
            &[HOSTS, ("SLURM_TASKS_PER_NODE", "8(x99999999)")],
            "has numbers for 4 hosts, but the job has 3",
        );
        check("", &[HOSTS, ("SLURM_TASKS_PER_NODE", "8x3")], "SLURM_TASKS_PER_NODE=8x3 is not understood");
        check("node=tree:2:2,pes=8", &[HOSTS], "a node has 8 PEs, but tree:2:2 has 4; write pes=4");
        check("pes=4,hosts=n", &[], "slurm-env:hosts=n is not understood: expected hosts in parentheses");
        check("nod=tree:2:2", &[HOSTS], "slurm-env has no parameter `nod` (did you mean `node`?)");
    }
}
