//! The bounding box of the PEs that have tasks.

/// The smallest box of coordinates that holds some PEs of a grid; it has no dimensions if the machine is not a grid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Bounds {
    /// By dimension: the first and the last coordinate.
    corners: Vec<(u32, u32)>,
}

impl Bounds {
    /// The empty box.
    pub(crate) fn new(dimensions: usize) -> Self {
        Bounds { corners: vec![(u32::MAX, 0); dimensions] }
    }

    /// Extends the box to the PE at `position`.
    pub(crate) fn widen(&mut self, position: &[u32]) {
        for (corner, &at) in self.corners.iter_mut().zip(position) {
            *corner = (corner.0.min(at), corner.1.max(at));
        }
    }

    /// The number of PEs in the box; 0 if there are no coordinates.
    pub(crate) fn volume(&self) -> u64 {
        if self.corners.is_empty() {
            return 0;
        }
        self.corners.iter().map(|&(low, high)| u64::from(high.saturating_sub(low)) + 1).product()
    }

    /// The number of PEs in the box extended to `position`.
    pub(crate) fn volume_with(&self, position: &[u32]) -> u64 {
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
    fn the_volume_is_that_of_the_smallest_box_around_the_positions() {
        let mut bounds = Bounds::new(2);
        assert_eq!(bounds.volume_with(&[3, 5]), 1);
        bounds.widen(&[3, 5]);
        assert_eq!((bounds.volume(), bounds.volume_with(&[1, 6])), (1, 6));
        bounds.widen(&[1, 6]);
        assert_eq!((bounds.volume(), bounds.volume_with(&[2, 5])), (6, 6));
        let no_grid = Bounds::new(0);
        assert_eq!((no_grid.volume(), no_grid.volume_with(&[])), (0, 0));
    }
}
