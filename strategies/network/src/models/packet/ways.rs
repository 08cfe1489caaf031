//! The ways of many messages in one array, so that a packet finds its next channel in one access.

/// Marks the end of a way.
const END: u32 = u32::MAX;

/// Lists of channels; a list is identified by its start in the array.
#[derive(Default)]
pub(super) struct Ways {
    channels: Vec<u32>,
    /// By length: the starts of removed lists of that length.
    free: Vec<Vec<u32>>,
}

impl Ways {
    /// Adds a nonempty way; returns the position of its first channel.
    pub(super) fn add(&mut self, way: impl ExactSizeIterator<Item = usize>) -> u32 {
        let free = self.free.get_mut(way.len()).and_then(Vec::pop);
        let start = free.unwrap_or_else(|| {
            let start = self.channels.len();
            self.channels.resize(start + way.len() + 1, END);
            start as u32
        });
        for (slot, channel) in self.channels[start as usize..].iter_mut().zip(way) {
            *slot = channel as u32;
        }
        start
    }

    /// The channel at a position, and whether it is the last of its way. The channels of a way are consecutive.
    pub(super) fn at(&self, position: u32) -> (usize, bool) {
        let position = position as usize;
        (self.channels[position] as usize, self.channels[position + 1] == END)
    }

    /// Removes the way that begins at `start`.
    pub(super) fn remove(&mut self, start: u32) {
        let len = self.channels[start as usize..].iter().take_while(|&&channel| channel != END).count();
        if self.free.len() <= len {
            self.free.resize(len + 1, Vec::new());
        }
        self.free[len].push(start);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn space_of_removed_ways_is_reused() {
        let mut ways = Ways::default();
        let starts = [&[7, 8, 9][..], &[1], &[4, 5, 6]].map(|way| ways.add(way.iter().copied()));
        assert_eq!(starts, [0, 4, 6]);
        ways.remove(0);
        assert_eq!([ways.add([3, 2].into_iter()), ways.add([1, 2, 3].into_iter())], [10, 0]);
        assert_eq!(
            [0, 1, 2, 4, 6].map(|position| ways.at(position)),
            [(1, false), (2, false), (3, true), (1, true), (4, false)]
        );
    }
}
