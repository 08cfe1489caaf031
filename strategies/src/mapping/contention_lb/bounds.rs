//! The box that holds the PEs that have tasks.

/// The smallest box of coordinates that holds some PEs of a grid; it has no dimensions where the machine is no grid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Bounds {
    /// By dimension: the first and the last coordinate.
    corners: Vec<(u32, u32)>,
}

impl Bounds {
    /// The box of nothing.
    pub(super) fn new(dimensions: usize) -> Self {
        Bounds { corners: vec![(u32::MAX, 0); dimensions] }
    }

    /// Makes room for a PE at that position.
    pub(super) fn widen(&mut self, position: &[u32]) {
        for (corner, &at) in self.corners.iter_mut().zip(position) {
            *corner = (corner.0.min(at), corner.1.max(at));
        }
    }

    /// How many PEs are in the box; 0 where there are no coordinates.
    pub(super) fn volume(&self) -> u64 {
        if self.corners.is_empty() {
            return 0;
        }
        self.corners.iter().map(|&(low, high)| u64::from(high.saturating_sub(low)) + 1).product()
    }

    /// How many would be in it with one more PE at that position.
    pub(super) fn volume_with(&self, position: &[u32]) -> u64 {
        if self.corners.is_empty() {
            return 0;
        }
        let sides = self.corners.iter().zip(position);
        sides.map(|(corner, &at)| u64::from(corner.1.max(at) - corner.0.min(at)) + 1).product()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_box_is_as_large_as_what_it_holds() {
        let mut bounds = Bounds::new(2);
        assert_eq!(bounds.volume_with(&[3, 5]), 1);
        bounds.widen(&[3, 5]);
        assert_eq!((bounds.volume(), bounds.volume_with(&[1, 6])), (1, 6));
        bounds.widen(&[1, 6]);
        assert_eq!((bounds.volume(), bounds.volume_with(&[2, 5])), (6, 6));
        let nowhere = Bounds::new(0);
        assert_eq!((nowhere.volume(), nowhere.volume_with(&[])), (0, 0));
    }
}
