//! Chains of swaps: each makes one PE light enough and another one too heavy, which the next swap relieves. They help where
//! no single exchange does, as with two or three slots per PE.

use super::layout::Layout;

/// The largest number of swaps in a chain.
const LENGTH: usize = 4;

/// The most swaps that are tried at each step of a chain.
const TRIED: usize = 6;

/// A swap and the load of the PE that becomes heavier.
type Link = (i64, usize, usize);

impl Layout<'_> {
    /// Makes `heavy` lighter by a chain of swaps, if there is one after which all its PEs have at most the load `most`.
    pub(super) fn chain(&mut self, heavy: usize, most: i64) -> bool {
        (2..=LENGTH).any(|length| self.chain_from(heavy, most, length))
    }

    fn chain_from(&mut self, heavy: usize, most: i64, length: usize) -> bool {
        for (load, a, b) in self.links(heavy, most, if length == 1 { 1 } else { TRIED }) {
            if length == 1 && load > most {
                return false;
            }
            self.swap(a, b);
            let light = self.pe(b);
            if self.pe_load[light] <= most || length > 1 && self.chain_from(light, most, length - 1) {
                return true;
            }
            self.swap(a, b);
        }
        false
    }

    /// The swaps that make `heavy` light enough, those first that make the other PE the least heavy.
    fn links(&self, heavy: usize, most: i64, number: usize) -> Vec<Link> {
        let (given, load) = (self.given, self.pe_load[heavy]);
        let mut links: Vec<Link> = Vec::with_capacity(number + 1);
        for light in
            (0..given.pes).filter(|&pe| pe != heavy && given.zone_of_pe[pe] == given.zone_of_pe[heavy])
        {
            for a in self.slots_of(heavy) {
                let down = self.slot[a];
                if self.holds(down, light) {
                    continue;
                }
                for b in self.slots_of(light) {
                    let less = self.share[down as usize] - self.share[self.slot[b] as usize];
                    if load - less > most || self.holds(self.slot[b], heavy) {
                        continue;
                    }
                    let link = (self.pe_load[light] + less, a, b);
                    if links.len() < number || link < links[number - 1] {
                        let at = links.partition_point(|other| *other < link);
                        links.insert(at, link);
                        links.truncate(number);
                    }
                }
            }
        }
        links
    }
}
