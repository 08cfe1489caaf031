//! The maximum of the links' times while a few of them change at once: a winner tree (D. E. Knuth, The Art of Computer
//! Programming 3, section 5.4.1).

/// The time of every link, and the longest.
#[derive(Clone)]
pub(super) struct Busiest {
    links: usize,
    /// Node `i` has the larger time of its children `2i` and `2i + 1`; the links are the second half.
    nodes: Vec<f64>,
}

impl Busiest {
    /// Links with time 0.
    pub(super) fn new(links: usize) -> Self {
        Busiest { links, nodes: vec![0.0; 2 * links.next_power_of_two().max(1)] }
    }

    fn half(&self) -> usize {
        self.nodes.len() / 2
    }

    /// Sets the times of all links.
    pub(super) fn fill(&mut self, seconds: impl Iterator<Item = f64>) {
        let half = self.half();
        self.nodes[half..half + self.links]
            .iter_mut()
            .zip(seconds)
            .for_each(|(node, seconds)| *node = seconds);
        for node in (1..half).rev() {
            self.nodes[node] = self.nodes[2 * node].max(self.nodes[2 * node + 1]);
        }
    }

    /// Sets the time of one link.
    pub(super) fn set(&mut self, link: usize, seconds: f64) {
        let mut node = self.half() + link;
        self.nodes[node] = seconds;
        while node > 1 {
            let winner = self.nodes[node].max(self.nodes[node ^ 1]);
            node /= 2;
            if self.nodes[node] == winner {
                return;
            }
            self.nodes[node] = winner;
        }
    }

    /// The longest time; 0 without links.
    pub(super) fn seconds(&self) -> f64 {
        self.nodes[1]
    }

    /// The lowest-numbered link with the longest time.
    pub(super) fn winner(&self) -> usize {
        let mut node = 1;
        while node < self.half() {
            node *= 2;
            node += usize::from(self.nodes[node] != self.seconds());
        }
        node - self.half()
    }

    /// The larger of `least` and the longest time of an unmarked link.
    pub(super) fn except(&self, is_marked: &[bool], least: f64) -> f64 {
        self.descend(1, is_marked, least)
    }

    fn descend(&self, node: usize, is_marked: &[bool], least: f64) -> f64 {
        if self.nodes[node] <= least {
            return least;
        }
        if node >= self.half() {
            let link = node - self.half();
            let counts = link < self.links && !is_marked[link];
            return if counts { self.nodes[node] } else { least };
        }
        // The larger child first, so that the other child can usually be skipped.
        let first = 2 * node + usize::from(self.nodes[2 * node] < self.nodes[2 * node + 1]);
        let least = self.descend(first, is_marked, least);
        self.descend(first ^ 1, is_marked, least)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_busiest_link_has_the_longest_time_of_all_unmarked_links(
            links in 1..40usize,
            changes in prop::collection::vec((0..40usize, 0..9u32), 1..60),
            marks in prop::collection::vec(any::<bool>(), 40),
        ) {
            let (mut busiest, mut times) = (Busiest::new(links), vec![0.0; links]);
            for (link, seconds) in changes {
                let link = link % links;
                times[link] = f64::from(seconds);
                busiest.set(link, times[link]);
                let longest = times.iter().copied().fold(0.0, f64::max);
                prop_assert_eq!(busiest.seconds(), longest);
                prop_assert_eq!(Some(busiest.winner()), times.iter().position(|&time| time == longest));
                let unmarked = (0..links).filter(|&link| !marks[link]).map(|link| times[link]);
                prop_assert_eq!(busiest.except(&marks, 0.5), unmarked.fold(0.5, f64::max));
            }
            let mut filled = Busiest::new(links);
            filled.fill(times.iter().copied());
            prop_assert_eq!(filled.nodes, busiest.nodes);
        }
    }
}
