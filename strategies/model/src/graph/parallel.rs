//! `parallel:tp=8,pp=4,dp=16,ep=8,cp=1`: the ranks of a training job of a transformer, and the bytes of one step.
//!
//! The dimensions are those of Megatron-LM: tensor (`tp`), context (`cp`), expert (`ep`), data (`dp`) and pipeline
//! parallel (`pp`). There are tp * cp * dp * pp ranks. In `order`, the first dimension varies fastest
//! (`RankGenerator` in `megatron/core/parallel_state.py`). Experts have a grid of their own over the same ranks: `etp`
//! tensor parallel, `ep`, and the rest data parallel. [`Layout`] has the groups, `volumes.rs` the bytes.
//!
//! The messages of a group of n ranks, which are in ascending order:
//!
//! - Tensor, data and expert data parallel: an all-reduce of S bytes per rank. `collective=ring`: every rank sends
//!   2 (n-1)/n S to its successor (P. Patarasuk, X. Yuan, "Bandwidth optimal all-reduce algorithms for clusters of
//!   workstations", 2009). `collective=tree`: two binary trees, each with half of the bytes up and down every edge (P.
//!   Sanders, J. Speck, J. L. Träff, "Two-tree algorithms for full bandwidth broadcast, reduction and scan", 2009), in
//!   the shape of NCCL.
//! - Context parallel: keys and values travel round the ring of the group: every rank sends S bytes to its successor (H.
//!   Liu, M. Zaharia, P. Abbeel, "Ring attention with blockwise transformers for near-infinite context", 2023). With
//!   `collective=tree`, they are gathered over the two trees: an edge carries the blocks of all ranks behind it.
//! - Pipeline parallel: every rank sends S bytes to the next stage, and receives as many.
//! - Expert parallel: every rank sends S/n bytes to every other (all-to-all).
//!
//! Data parallel groups span the context parallel ranks, too, because these have the same weights.

use super::making::{Generator, Make, check_size};
use super::{edge, merge, tasks};
use crate::database::{Database, Edge, ObjectIndex};
use crate::params::{Param, Params};

mod layout;
#[cfg(test)]
mod tests;
mod volumes;

pub use layout::{Dimension, Group, Layout, Role};
use volumes::Volumes;

/// The entry of `parallel:..` in the list of generators.
pub(super) const GENERATOR: Generator = Generator {
    name: "parallel",
    form: "parallel:tp=8,pp=4,dp=16,ep=8,cp=1",
    help: "The ranks of a training job with tensor, pipeline, data, expert and context parallelism, and the bytes of \
           one step. Volumes follow from the size of the model, or are given as .._bytes: per rank and step, the bytes \
           that are reduced (tp, dp, etp, edp), sent to the next rank (cp, pp), or sent to all ranks of the group together (ep). \
           Bytes are as in 4096, 44M (44 * 1024^2) or 1e9.",
    params: PARAMS,
    item: Make::Arguments(|arguments| Ok(make(arguments)?)),
};

const PARAMS: &[Param] = &[
    Param { key: "tp", default: "1", help: "tensor parallel ranks" },
    Param { key: "cp", default: "1", help: "context parallel ranks" },
    Param { key: "ep", default: "1", help: "expert parallel ranks, a part of the other dimensions" },
    Param { key: "dp", default: "1", help: "data parallel ranks" },
    Param { key: "pp", default: "1", help: "pipeline stages" },
    Param { key: "etp", default: "auto", help: "tensor parallel ranks of experts; auto: tp" },
    Param {
        key: "order",
        default: "tp-cp-ep-dp-pp",
        help: "the dimensions, fastest first, as Megatron-LM names them",
    },
    Param {
        key: "collective",
        default: "ring",
        help: "all-reduces, and exchanges of keys and values, by ring or tree",
    },
    Param { key: "hidden", default: "12288", help: "hidden size of the model" },
    Param { key: "layers", default: "96", help: "transformer layers" },
    Param { key: "sequence", default: "2048", help: "tokens of a sequence" },
    Param { key: "batch", default: "1", help: "sequences of a micro batch" },
    Param { key: "micros", default: "8", help: "micro batches of a step" },
    Param { key: "precision", default: "2", help: "bytes of a number" },
    Param {
        key: "params",
        default: "auto",
        help: "parameters outside experts; auto: 12 layers hidden^2, with experts 4 layers hidden^2",
    },
    Param {
        key: "experts",
        default: "auto",
        help: "experts of a layer; auto: ep if it is above 1 or etp is not tp, else none",
    },
    Param { key: "topk", default: "2", help: "experts of a token" },
    Param { key: "tp_bytes", default: "auto", help: "bytes reduced in tensor parallel groups" },
    Param {
        key: "cp_bytes",
        default: "auto",
        help: "bytes sent to the next rank of the context parallel group",
    },
    Param { key: "dp_bytes", default: "auto", help: "bytes reduced in data parallel groups" },
    Param {
        key: "pp_bytes",
        default: "auto",
        help: "bytes sent to the next pipeline stage, and received from it",
    },
    Param {
        key: "ep_bytes",
        default: "auto",
        help: "bytes that a rank sends in an expert parallel group of n ranks, the sum over all n, of which 1/n stays on the rank",
    },
    Param { key: "etp_bytes", default: "auto", help: "bytes reduced in tensor parallel groups of experts" },
    Param { key: "edp_bytes", default: "auto", help: "bytes reduced in data parallel groups of experts" },
];

/// How an all-reduce sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Collective {
    Ring,
    Tree,
}

/// The groups of the job of a spec such as `parallel:tp=8,dp=4`; none if the spec is not of this generator or invalid.
pub fn layout_of(spec: &str) -> Option<Layout> {
    let text = spec.strip_prefix("parallel:")?;
    let read = |params: &mut Params| {
        let layout = layout(params)?;
        volumes(params, &layout)?;
        collective(params)?;
        Ok::<_, String>(layout)
    };
    Params::parse_with(GENERATOR.name, PARAMS, text, read).ok()
}

fn make(params: &mut Params) -> Result<Database, String> {
    let layout = layout(params)?;
    let volumes = volumes(params, &layout)?;
    let collective = collective(params)?;
    let roles = layout.roles();
    let edges_of = |role: &Role| match role.dimension {
        Dimension::Ep => layout.ranks().saturating_mul(role.size - 1),
        _ => layout.ranks().saturating_mul(4),
    };
    check_size(layout.ranks(), roles.iter().map(edges_of).fold(0, usize::saturating_add))?;
    let mut database = tasks(layout.ranks());
    database.arrays = vec!["rank".into()];
    for (rank, object) in database.objects.iter_mut().enumerate() {
        object.index = ObjectIndex::new(&layout.coordinates(rank).map(|coordinate| coordinate as i32));
    }
    let mut edges = Vec::new();
    for role in &roles {
        let bytes = volumes.of(role);
        for group in layout.groups(role) {
            send(role, &group, bytes, collective, &mut edges);
        }
    }
    database.edges = merge(edges)?;
    Ok(database)
}

fn layout(params: &mut Params) -> Result<Layout, String> {
    let mut size = |key| -> Result<usize, String> { Ok(params.take_count(key, super::MAX_VERTICES)?) };
    let [tp, cp, ep, dp, pp] = [size("tp")?, size("cp")?, size("ep")?, size("dp")?, size("pp")?];
    let etp = params.take_count_or_auto("etp", super::MAX_VERTICES)?.unwrap_or(tp);
    let experts = params.take_count_or_auto("experts", super::MAX_VERTICES)?;
    Layout::new(&params.take::<String>("order")?, [tp, cp, ep, dp, pp], etp, experts)
}

fn collective(params: &mut Params) -> Result<Collective, String> {
    match params.take::<String>("collective")?.as_str() {
        "ring" => Ok(Collective::Ring),
        "tree" => Ok(Collective::Tree),
        other => Err(params.bad("collective", other, "expected ring or tree").into()),
    }
}

fn volumes(params: &mut Params, layout: &Layout) -> Result<Volumes, String> {
    let volumes = Volumes::of_model(params, layout)?;
    volumes.given(params, layout)
}

/// Appends the messages of one group.
fn send(role: &Role, group: &Group, bytes: u64, collective: Collective, edges: &mut Vec<Edge>) {
    let n = group.len();
    let mut add = |from: usize, to: usize, bytes: u64| {
        if bytes > 0 {
            edges.push(edge(group[from], group[to], 1, bytes));
        }
    };
    match role.dimension {
        Dimension::Pp => (1..n).for_each(|stage| {
            add(stage - 1, stage, bytes);
            add(stage, stage - 1, bytes);
        }),
        Dimension::Cp if collective == Collective::Ring => {
            (0..n).for_each(|rank| add(rank, (rank + 1) % n, bytes));
        }
        Dimension::Cp => {
            for (parents, half) in [(tree(n), bytes - bytes / 2), (second_tree(n), bytes / 2)] {
                let below = ranks_below(&parents);
                // A rank sends n - 1 times its block round the ring.
                let blocks = |blocks: usize| divide(blocks as u128 * u128::from(half), n as u128 - 1);
                for (child, parent) in parents {
                    add(child, parent, blocks(below[child]));
                    add(parent, child, blocks(n - below[child]));
                }
            }
        }
        Dimension::Ep => {
            let share = divide(u128::from(bytes), n as u128);
            (0..n).for_each(|from| (0..n).filter(|&to| to != from).for_each(|to| add(from, to, share)));
        }
        Dimension::Tp | Dimension::Dp if collective == Collective::Ring => {
            let share = divide(2 * (n as u128 - 1) * u128::from(bytes), n as u128);
            (0..n).for_each(|rank| add(rank, (rank + 1) % n, share));
        }
        Dimension::Tp | Dimension::Dp => {
            for (parents, share) in [(tree(n), bytes - bytes / 2), (second_tree(n), bytes / 2)] {
                for (child, parent) in parents {
                    add(child, parent, share);
                    add(parent, child, share);
                }
            }
        }
    }
}

/// The child and the parent of every edge of NCCL's binary tree of n ranks. Ranks with an odd number are leaves.
fn tree(n: usize) -> Vec<(usize, usize)> {
    let parent = |rank: usize| {
        let lowest_bit = 1 << rank.trailing_zeros();
        let without = rank ^ lowest_bit;
        let parent = without | lowest_bit << 1;
        if parent < n { parent } else { without }
    };
    (1..n).map(|rank| (rank, parent(rank))).collect()
}

/// NCCL's second tree: the first one mirrored, or shifted by one if the number of ranks is odd.
fn second_tree(n: usize) -> Vec<(usize, usize)> {
    let renumber = |rank: usize| if n % 2 == 1 { (rank + 1) % n } else { n - 1 - rank };
    tree(n).into_iter().map(|(child, parent)| (renumber(child), renumber(parent))).collect()
}

/// For each rank, the number of ranks of its part of a tree, with itself.
fn ranks_below(parents: &[(usize, usize)]) -> Vec<usize> {
    let n = parents.len() + 1;
    let mut parent_of = vec![None; n];
    parents.iter().for_each(|&(child, parent)| parent_of[child] = Some(parent));
    let mut below = vec![0; n];
    for rank in 0..n {
        let up = std::iter::successors(Some(rank), |&at| parent_of[at]);
        up.for_each(|at| below[at] += 1);
    }
    below
}

/// The quotient, rounded to the nearest number; at most 2^64-1.
fn divide(dividend: u128, divisor: u128) -> u64 {
    u64::try_from((dividend + divisor / 2) / divisor).unwrap_or(u64::MAX)
}
