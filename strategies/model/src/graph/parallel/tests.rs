//! Groups and volumes compared with definitions that are written out for every pair of ranks.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::graph::load;

/// The ranks of all groups with this name.
fn groups(spec: &str, name: &str) -> Vec<Group> {
    let layout = layout_of(spec).expect(spec);
    layout.roles().iter().filter(|role| role.name == name).flat_map(|role| layout.groups(role)).collect()
}

/// The bytes of every pair that sends.
fn sent(spec: &str) -> BTreeMap<(u32, u32), u64> {
    let pair = |edge: &Edge| match (edge.from, edge.to) {
        (crate::database::End::Object(from), crate::database::End::Object(to)) => ((from, to), edge.bytes),
        _ => unreachable!("ranks are objects"),
    };
    load(spec).expect(spec).edges.iter().map(pair).collect()
}

/// The example in the documentation of `initialize_model_parallel` of Megatron-LM: 16 ranks, tp=2, pp=4.
#[test]
fn groups_are_those_of_the_example_of_megatron() {
    let spec = "parallel:tp=2,pp=4,dp=2";
    assert_eq!(groups(spec, "dp"), [[0, 2], [1, 3], [4, 6], [5, 7], [8, 10], [9, 11], [12, 14], [13, 15]]);
    assert_eq!(groups(spec, "tp"), [[0, 1], [2, 3], [4, 5], [6, 7], [8, 9], [10, 11], [12, 13], [14, 15]]);
    assert_eq!(groups(spec, "pp"), [[0, 4, 8, 12], [1, 5, 9, 13], [2, 6, 10, 14], [3, 7, 11, 15]]);
    // Its example of context parallelism: 8 ranks, tp=4, cp=2.
    assert_eq!(groups("parallel:tp=4,cp=2", "cp"), [[0, 4], [1, 5], [2, 6], [3, 7]]);
    // Its example of orders: 8 ranks in the order tp-pp-dp.
    assert_eq!(groups("parallel:tp=2,pp=2,dp=2,order=tp-pp-dp", "dp"), [[0, 4], [1, 5], [2, 6], [3, 7]]);
}

#[test]
fn experts_have_a_grid_of_their_own() {
    let spec = "parallel:tp=2,dp=4,ep=4,etp=1";
    assert_eq!(groups(spec, "ep"), [[0, 1, 2, 3], [4, 5, 6, 7]]);
    assert_eq!(groups(spec, "edp"), [[0, 4], [1, 5], [2, 6], [3, 7]]);
    let same = "parallel:tp=2,dp=4,ep=2";
    assert_eq!(groups(same, "etp"), groups(same, "tp"));
    assert_eq!(groups(same, "ep"), [[0, 2], [1, 3], [4, 6], [5, 7]]);
    assert_eq!(load("parallel:tp=8,pp=4,dp=16,ep=8,cp=1").expect("a job").objects.len(), 512);
}

/// The trees in the comments of `src/graph/trees.cc` of NCCL.
#[test]
fn trees_have_the_shape_of_those_of_nccl() {
    let sorted = |mut edges: Vec<(usize, usize)>| {
        edges.sort_unstable();
        edges
    };
    let first = [
        (1, 2),
        (2, 4),
        (3, 2),
        (4, 8),
        (5, 6),
        (6, 4),
        (7, 6),
        (8, 0),
        (9, 10),
        (10, 12),
        (11, 10),
        (12, 8),
    ];
    assert_eq!(tree(14), [&first[..], &[(13, 12)]].concat());
    let mirrored = [(0, 1), (1, 3), (2, 1), (4, 5), (5, 7), (6, 5), (7, 3), (8, 9), (9, 7), (10, 9), (3, 11)];
    assert_eq!(sorted(second_tree(12)), sorted(mirrored.to_vec()));
    let shifted =
        [(0, 9), (2, 3), (3, 5), (4, 3), (5, 9), (6, 7), (7, 5), (8, 7), (9, 1), (10, 11), (11, 0), (12, 11)];
    assert_eq!(sorted(second_tree(13)), sorted(shifted.to_vec()));
}

#[test]
fn a_model_has_the_volumes_of_the_published_formulas() {
    let bytes = |spec: &str, from: u32, to: u32| sent(spec).get(&(from, to)).copied().unwrap_or(0);
    // One layer, activations of 4 * 8 * 2 bytes.
    let tiny = "hidden=8,layers=2,sequence=4,batch=1,micros=3";
    // Narayanan et al.: 8 b s h (t-1)/t elements per layer, micro batch and rank.
    assert_eq!(bytes(&format!("parallel:tp=4,{tiny}"), 0, 1), 8 * 4 * 8 * 3 / 4 * 2 * 2 * 3);
    // Two stages with one layer each; activations are divided among the tensor parallel ranks.
    assert_eq!(bytes(&format!("parallel:tp=2,pp=2,{tiny}"), 0, 2), 3 * (4 * 8 * 2) / 2);
    assert_eq!(bytes(&format!("parallel:tp=2,pp=2,{tiny}"), 2, 0), 3 * (4 * 8 * 2) / 2);
    // 12 layers hidden^2 weights of two bytes, all-reduced by a ring of 4.
    assert_eq!(bytes(&format!("parallel:dp=4,{tiny}"), 3, 0), 2 * 12 * 2 * 64 * 2 * 3 / 4);
    // Six blocks of half of the sequence per layer and micro batch; gradients, too, since cp shares the weights.
    let kv = 6 * 2 * 3 * (2 * 8 * 2);
    assert_eq!(bytes(&format!("parallel:cp=2,{tiny}"), 0, 1), kv + 12 * 2 * 64 * 2);
    assert_eq!(bytes(&format!("parallel:cp=2,dp_bytes=0,{tiny}"), 0, 1), kv);
    assert_eq!(bytes("parallel:pp=2,pp_bytes=1e9", 0, 1), 1_000_000_000);
    assert_eq!(bytes("parallel:pp=2,pp_bytes=44M", 1, 0), 44 << 20);
    // Tokens of a rank go to two experts each and back, forward and backward; half of them stay.
    let routed = 4 * 2 * 2 * 3 * (4 * 8 * 2) / 2;
    assert_eq!(bytes(&format!("parallel:dp=2,ep=2,dp_bytes=0,{tiny}"), 0, 1), routed);
    // Without expert parallelism every rank has all 4 experts of 8 hidden^2 weights.
    let dense = 2 * 4 * 2 * 64;
    assert_eq!(bytes(&format!("parallel:dp=2,experts=4,{tiny}"), 0, 1), dense + 2 * 4 * 8 * 2 * 64);
}

#[test]
fn errors_describe_impossible_jobs() {
    let check = |arguments: &str, expected: &str| {
        let error = load(&format!("parallel:{arguments}")).expect_err(expected).to_string();
        assert!(error.contains(expected), "`{error}` does not contain `{expected}`");
        assert_eq!(layout_of(&format!("parallel:{arguments}")), None);
    };
    check("tp=0", "parallel:tp=0 is not understood: expected a number from 1 to");
    check("tp=4096,dp=4097", "sizes multiply to at most 16777216");
    check(
        "dp=6,ep=4",
        "the 6 ranks of a pipeline stage (tp * cp * dp) cannot be divided among experts with etp=1 and ep=4",
    );
    check("dp=4,ep=4,experts=6", "6 experts cannot be divided among ep=4 ranks");
    check("order=tp-xp", "order=tp-xp is not understood");
    check("order=tp-tp", "at most once");
    check("dp=2,order=tp-pp", "order=tp-pp lacks dp, which is 2; add dp to the order");
    check("dp=4,ep=2,pp=2,order=ep-pp-dp", "put pp first or last");
    check("dp=2,collective=star", "parallel:collective=star is not understood: expected ring or tree");
    check(
        "dp=2,dp_bytes=x",
        "expected bytes such as 4096, 44M or 1e9 (k, M, G and T are powers of 1024), or auto",
    );
    check("dp=2,ep_bytes=5", "ep_bytes=5 has no effect: every group of ep has one rank; leave it out");
    check("tp=2,etp_bytes=5", "etp_bytes=5 has no effect");
    check("dp=2,hidden=99999999999,layers=99999999999", "the model is too large");
    let error = load("parallel:dp=2,dp_bytes=18446744073709551615").expect_err("many bytes").to_string();
    assert!(error.contains("more than 2^64 bytes"), "{error}");
    check("tp=2,dpp=2", "parallel has no parameter `dpp` (did you mean `dp`?)");
}

/// The bytes of the blocks that cross an edge of a tree: those of the ranks that reach the sender without it. A rank sends
/// its block to all others for `bytes`.
fn gathered((from, to): (usize, usize), n: usize, edges: &[(usize, usize)], bytes: u64) -> u64 {
    let is_edge = |&(a, b): &(usize, usize)| (a, b) == (from, to) || (b, a) == (from, to);
    if !edges.iter().any(is_edge) {
        return 0;
    }
    let rest: Vec<_> = edges.iter().filter(|edge| !is_edge(edge)).collect();
    let mut is_reached = vec![false; n];
    is_reached[from] = true;
    for _ in 0..n {
        for &&(a, b) in &rest {
            let either = is_reached[a] || is_reached[b];
            (is_reached[a], is_reached[b]) = (either, either);
        }
    }
    let ranks = is_reached.into_iter().filter(|&reached| reached).count();
    ((ranks as u64 * bytes) as f64 / (n as f64 - 1.0)).round() as u64
}

/// The bytes of every pair by definition, for the default order: with explicit formulas for the rank of coordinates.
fn by_definition(
    [tp, cp, ep, dp, pp]: [usize; 5],
    etp: usize,
    is_tree: bool,
    bytes: u64,
) -> BTreeMap<(u32, u32), u64> {
    let ranks = tp * cp * dp * pp;
    let edp = ranks / (etp * ep * pp);
    let mut sent = BTreeMap::new();
    for a in 0..ranks {
        for b in (0..ranks).filter(|&b| b != a) {
            let dense = |r: usize| [r % tp, r / tp % cp, r / (tp * cp) % dp, r / (tp * cp * dp)];
            let expert = |r: usize| [r % etp, r / etp % ep, r / (etp * ep) % edp, r / (etp * ep * edp)];
            let (x, y, u, v) = (dense(a), dense(b), expert(a), expert(b));
            let same = |p: [usize; 4], q: [usize; 4], free: &[usize]| {
                (0..4).all(|at| free.contains(&at) || p[at] == q[at])
            };
            let reduce = |from: usize, to: usize, n: usize| match is_tree {
                false if to == (from + 1) % n => {
                    (2.0 * (n as f64 - 1.0) * bytes as f64 / n as f64).round() as u64
                }
                false => 0,
                true => {
                    let joined =
                        |a, b, edges: Vec<(usize, usize)>| edges.contains(&(a, b)) || edges.contains(&(b, a));
                    u64::from(joined(from, to, tree(n))) * (bytes - bytes / 2)
                        + u64::from(joined(from, to, second_tree(n))) * (bytes / 2)
                }
            };
            let mut sum = 0;
            if same(x, y, &[0]) {
                sum += reduce(x[0], y[0], tp);
            }
            if same(x, y, &[1]) {
                sum += match is_tree {
                    true => {
                        gathered((x[1], y[1]), cp, &tree(cp), bytes - bytes / 2)
                            + gathered((x[1], y[1]), cp, &second_tree(cp), bytes / 2)
                    }
                    false if y[1] == (x[1] + 1) % cp => bytes,
                    false => 0,
                };
            }
            if same(x, y, &[1, 2]) {
                sum += reduce(x[1] + cp * x[2], y[1] + cp * y[2], cp * dp);
            }
            if same(x, y, &[3]) && x[3].abs_diff(y[3]) == 1 {
                sum += bytes;
            }
            if ep > 1 || etp != tp {
                if same(u, v, &[0]) {
                    sum += reduce(u[0], v[0], etp);
                }
                if same(u, v, &[1]) {
                    sum += (bytes as f64 / ep as f64).round() as u64;
                }
                if same(u, v, &[2]) {
                    sum += reduce(u[2], v[2], edp);
                }
            }
            if sum > 0 {
                sent.insert((a as u32, b as u32), sum);
            }
        }
    }
    sent
}

proptest! {
    #[test]
    fn messages_are_those_of_the_definitions(
        [tp, cp, ep, dp, pp] in [1..4usize, 1..7usize, 1..5usize, 1..5usize, 1..4usize],
        etp in 1..3usize, is_tree in any::<bool>(), bytes in 1..2000u64,
    ) {
        prop_assume!((tp * cp * dp) % (etp * ep) == 0);
        let collective = if is_tree { "tree" } else { "ring" };
        let has_experts = ep > 1 || etp != tp;
        let edp = tp * cp * dp / (etp * ep);
        // Groups of one rank have no bytes.
        let sizes = [("tp", tp), ("cp", cp), ("dp", dp * cp), ("pp", pp)].into_iter();
        let of_experts = [("ep", ep), ("etp", etp), ("edp", edp)].into_iter().filter(|_| has_experts);
        let given: Vec<String> = sizes
            .chain(of_experts)
            .filter(|(_, size)| *size > 1)
            .map(|(kind, _)| format!(",{kind}_bytes={bytes}"))
            .collect();
        let spec = format!(
            "parallel:tp={tp},cp={cp},ep={ep},dp={dp},pp={pp},etp={etp},collective={collective}{}",
            given.concat()
        );
        prop_assert_eq!(sent(&spec), by_definition([tp, cp, ep, dp, pp], etp, is_tree, bytes), "{}", spec);
    }

    #[test]
    fn groups_of_a_kind_have_every_rank_once(
        [tp, cp, ep, dp, pp] in [1..4usize, 1..4usize, 1..5usize, 1..5usize, 1..4usize],
        order in prop::sample::select(vec!["tp-cp-ep-dp-pp", "pp-dp-tp-cp-ep", "tp-cp-dp-ep-pp", "dp-ep-cp-tp-pp"]),
    ) {
        prop_assume!((cp * dp) % ep == 0);
        let layout = Layout::new(order, [tp, cp, ep, dp, pp], tp, None).expect("divisible sizes");
        for role in layout.roles() {
            let groups = layout.groups(&role);
            prop_assert!(groups.iter().all(|group| group.len() == role.size && group.is_sorted()), "{}", role.name);
            let mut all = groups.concat();
            all.sort_unstable();
            prop_assert!(all.into_iter().eq(0..layout.ranks() as u32), "{}", role.name);
            // Only the coordinates of the role differ.
            for group in groups.iter().filter(|_| !role.is_of_experts) {
                let first = layout.coordinates(group[0] as usize);
                for &rank in group {
                    let here = layout.coordinates(rank as usize);
                    let differ: Vec<usize> = (0..4).filter(|&at| here[at] != first[at]).collect();
                    let allowed: &[usize] = match role.name {
                        "tp" => &[0],
                        "cp" => &[1],
                        "dp" | "dp-cp" => &[1, 2],
                        _ => &[3],
                    };
                    prop_assert!(differ.iter().all(|at| allowed.contains(at)), "{}", role.name);
                }
            }
        }
    }
}
