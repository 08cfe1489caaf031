//! The node of every group of experts.

use std::cmp::Reverse;

/// The node of every group, with the same number of groups on each: by descending load to the lightest node with room, then
/// by swaps of two groups while the heaviest node becomes lighter and has more load than `cap`. `start` replaces the first
/// step.
pub(super) fn nodes_of_groups(load: &[i64], nodes: usize, start: Option<Vec<u32>>, cap: i64) -> Vec<u32> {
    let mut node_of = start.unwrap_or_else(|| packed(load, nodes));
    let mut node_load = vec![0i64; nodes];
    node_of.iter().zip(load).for_each(|(&node, load)| node_load[node as usize] += load);
    loop {
        let heavy =
            (0..nodes).fold(0, |best, node| if node_load[node] > node_load[best] { node } else { best });
        if node_load[heavy] <= cap {
            return node_of;
        }
        let mut best: Option<(i64, usize, usize)> = None;
        for down in (0..load.len()).filter(|&group| node_of[group] as usize == heavy) {
            for up in (0..load.len()).filter(|&group| node_of[group] as usize != heavy) {
                let less = load[down] - load[up];
                let light = node_load[node_of[up] as usize];
                let peak = (node_load[heavy] - less).max(light + less);
                if peak < node_load[heavy] && best.is_none_or(|best| peak < best.0) {
                    best = Some((peak, down, up));
                }
            }
        }
        let Some((_, down, up)) = best else { return node_of };
        let (less, light) = (load[down] - load[up], node_of[up] as usize);
        node_load[heavy] -= less;
        node_load[light] += less;
        node_of.swap(down, up);
    }
}

fn packed(load: &[i64], nodes: usize) -> Vec<u32> {
    let room = load.len() / nodes;
    let mut order: Vec<usize> = (0..load.len()).collect();
    order.sort_by_key(|&group| (Reverse(load[group]), group));
    let (mut node_of, mut node_load, mut groups) = (vec![0; load.len()], vec![0i64; nodes], vec![0; nodes]);
    for group in order {
        let with_room = (0..nodes).filter(|&node| groups[node] < room);
        let node = with_room.min_by_key(|&node| (node_load[node], node)).unwrap_or(0);
        node_of[group] = node as u32;
        node_load[node] += load[group];
        groups[node] += 1;
    }
    node_of
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_swapped_until_no_swap_helps() {
        // By descending load: {8, 3, 3} and {7, 5, 2}; one swap makes both nodes equal.
        let load = [8, 7, 5, 3, 3, 2];
        let node_of = nodes_of_groups(&load, 2, None, 0);
        let on = |node| node_of.iter().zip(load).filter(|it| *it.0 == node).map(|it| it.1).sum::<i64>();
        assert_eq!((on(0), on(1)), (14, 14), "{node_of:?}");
        assert_eq!(node_of.iter().filter(|&&node| node == 0).count(), 3);
    }

    #[test]
    fn a_start_below_the_cap_is_kept() {
        let start = vec![0, 1, 0, 1];
        assert_eq!(nodes_of_groups(&[1, 2, 1, 2], 2, Some(start.clone()), 4), start);
        assert_eq!(nodes_of_groups(&[1, 2, 1, 2], 2, Some(start), 3), [1, 0, 0, 1]);
    }
}
