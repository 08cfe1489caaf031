//! The ways of many messages in one place, so that a packet finds its next channel by one look.

/// The end of a way.
const END: u32 = u32::MAX;

/// Lists of channels, known by where they begin.
#[derive(Default)]
pub(super) struct Ways {
    channels: Vec<u32>,
    /// By length: where lists of that length may be written over.
    spare: Vec<Vec<u32>>,
}

impl Ways {
    /// Keeps a way that is not empty; returns the place of its first channel.
    pub(super) fn keep(&mut self, way: impl ExactSizeIterator<Item = usize>) -> u32 {
        let spare = self.spare.get_mut(way.len()).and_then(Vec::pop);
        let start = spare.unwrap_or_else(|| {
            let start = self.channels.len();
            self.channels.resize(start + way.len() + 1, END);
            start as u32
        });
        for (place, channel) in self.channels[start as usize..].iter_mut().zip(way) {
            *place = channel as u32;
        }
        start
    }

    /// The channel at a place, and whether it is the last of its way; if not, the next is at the next
    /// place.
    pub(super) fn at(&self, place: u32) -> (usize, bool) {
        let place = place as usize;
        (self.channels[place] as usize, self.channels[place + 1] == END)
    }

    /// Forgets the way that begins there.
    pub(super) fn forget(&mut self, start: u32) {
        let len = self.channels[start as usize..].iter().take_while(|&&channel| channel != END).count();
        if self.spare.len() <= len {
            self.spare.resize(len + 1, Vec::new());
        }
        self.spare[len].push(start);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_forgotten_is_written_over() {
        let mut ways = Ways::default();
        let starts = [&[7, 8, 9][..], &[1], &[4, 5, 6]].map(|way| ways.keep(way.iter().copied()));
        assert_eq!(starts, [0, 4, 6]);
        ways.forget(0);
        assert_eq!([ways.keep([3, 2].into_iter()), ways.keep([1, 2, 3].into_iter())], [10, 0]);
        assert_eq!(
            [0, 1, 2, 4, 6].map(|place| ways.at(place)),
            [(1, false), (2, false), (3, true), (1, true), (4, false)]
        );
    }
}
