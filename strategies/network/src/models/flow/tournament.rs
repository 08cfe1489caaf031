//! The earliest of many times, with updates of single times: a tree of winners (D. E. Knuth, The Art of
//! Computer Programming 3, section 5.4.1).

/// A time in seconds per place, with fast access to the earliest time.
pub struct Tournament {
    /// Node `i` has the earlier time of its children `2i` and `2i + 1`; the second half are the places.
    nodes: Vec<f64>,
}

impl Tournament {
    /// A tournament without times.
    pub fn new() -> Self {
        Tournament { nodes: vec![f64::INFINITY; 2] }
    }

    /// Sets the time of `place`; infinity removes it.
    pub fn set(&mut self, place: usize, seconds: f64) {
        while place >= self.nodes.len() / 2 {
            self.double();
        }
        let mut node = self.nodes.len() / 2 + place;
        self.nodes[node] = seconds;
        while node > 1 {
            let winner = self.nodes[node].min(self.nodes[node ^ 1]);
            node /= 2;
            if self.nodes[node] == winner {
                return;
            }
            self.nodes[node] = winner;
        }
    }

    /// The earliest time; infinity if no place has a time.
    pub fn earliest(&self) -> f64 {
        self.nodes[1]
    }

    /// The lowest place with the earliest time.
    pub fn winner(&self) -> usize {
        let places = self.nodes.len() / 2;
        let mut node = 1;
        while node < places {
            node *= 2;
            node += usize::from(self.nodes[node] != self.earliest());
        }
        node - places
    }

    /// Makes room for twice as many places.
    fn double(&mut self) {
        let places = self.nodes.len() / 2;
        let mut nodes = vec![f64::INFINITY; 2 * self.nodes.len()];
        nodes[2 * places..3 * places].copy_from_slice(&self.nodes[places..]);
        for node in (1..2 * places).rev() {
            nodes[node] = nodes[2 * node].min(nodes[2 * node + 1]);
        }
        self.nodes = nodes;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_winner_is_the_lowest_of_the_earliest(changes in prop::collection::vec((0..40usize, 0..9u32), 1..80)) {
            let (mut tournament, mut times) = (Tournament::new(), [f64::INFINITY; 40]);
            for (place, seconds) in changes {
                let seconds = if seconds == 8 { f64::INFINITY } else { f64::from(seconds) };
                tournament.set(place, seconds);
                times[place] = seconds;
                let earliest = times.iter().copied().fold(f64::INFINITY, f64::min);
                prop_assert_eq!(tournament.earliest(), earliest);
                if earliest < f64::INFINITY {
                    prop_assert_eq!(Some(tournament.winner()), times.iter().position(|&time| time == earliest));
                }
            }
        }
    }
}
