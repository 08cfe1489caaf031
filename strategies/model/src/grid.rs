//! Arithmetic of grids with any number of dimensions: PE numbers, coordinates and links. The first dimension varies
//! fastest.

/// The largest number of PEs of a machine.
pub const MAX_PES: usize = 1 << 24;

/// The largest number of dimensions. 24 dimensions of size 2 already have [`MAX_PES`] PEs.
const MAX_DIMENSIONS: usize = 32;

/// A grid of PEs: a torus, a mesh, or a grid that wraps in some dimensions only.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grid {
    pub(crate) dimensions: Vec<Dimension>,
    pes: usize,
    links: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Dimension {
    /// The number of PEs along this dimension.
    pub(crate) size: usize,
    /// Whether wrapping was requested; a dimension of size 2 never wraps.
    pub(crate) wraps: bool,
    /// The difference of PE numbers between neighbours in this dimension.
    pub(crate) stride: usize,
    /// The number of the first link of this dimension. Links are grouped by line (PEs that differ in this coordinate
    /// only); within a line, positive links come first, then negative ones, both by coordinate.
    first_link: usize,
}

impl Grid {
    /// The grid with these (size, whether it wraps) pairs, first dimension fastest.
    ///
    /// # Errors
    /// If there is no dimension or more than 32, a size is 0, or there are too many PEs.
    pub fn new(sizes: &[(usize, bool)]) -> Result<Self, String> {
        if sizes.is_empty() || sizes.len() > MAX_DIMENSIONS {
            return Err(format!("a grid has 1 to {MAX_DIMENSIONS} dimensions, this one has {}", sizes.len()));
        }
        let pes = count_pes(sizes.iter().map(|&(size, _)| size))?;
        let (mut dimensions, mut stride, mut links) = (Vec::with_capacity(sizes.len()), 1, 0);
        for &(size, wraps) in sizes {
            let dimension = Dimension { size, wraps, stride, first_link: links };
            links += pes / size * dimension.links_per_line();
            stride *= size;
            dimensions.push(dimension);
        }
        Ok(Grid { dimensions, pes, links })
    }

    /// Parses sizes such as `8x8x4m`; `m` marks a dimension that does not wrap although `wraps` is set.
    pub fn parse(text: &str, wraps: bool) -> Result<Self, String> {
        let mut sizes = Vec::new();
        for part in text.split('x') {
            let (digits, marked) = part.strip_suffix('m').map_or((part, false), |digits| (digits, true));
            let size = digits
                .parse()
                .map_err(|_| format!("expected sizes such as 8x8x4m (m: does not wrap), found `{text}`"))?;
            sizes.push((size, wraps && !marked));
        }
        Grid::new(&sizes)
    }

    /// The number of PEs.
    pub fn pes(&self) -> usize {
        self.pes
    }

    /// The number of links; each link has one direction.
    pub fn links(&self) -> usize {
        self.links
    }

    /// The coordinates of a PE.
    pub fn coordinates(&self, pe: usize) -> impl Iterator<Item = usize> {
        self.dimensions.iter().map(move |d| d.coordinate(pe))
    }

    /// The dimension along which a link leads.
    pub(crate) fn dimension_of(&self, link: usize) -> usize {
        // Several dimensions without links share one `first_link`; the last dimension that starts there has the link.
        self.dimensions.partition_point(|d| d.first_link <= link) - 1
    }

    /// The source and target PE of a link.
    pub fn ends(&self, link: usize) -> (usize, usize) {
        let d = &self.dimensions[self.dimension_of(link)];
        let (line, offset) =
            ((link - d.first_link) / d.links_per_line(), (link - d.first_link) % d.links_per_line());
        let start = line / d.stride * d.stride * d.size + line % d.stride;
        let positive = d.links_per_line() / 2;
        let (from, to) = if offset < positive {
            (offset, (offset + 1) % d.size)
        } else if d.is_ring() {
            (offset - positive, (offset - positive + d.size - 1) % d.size)
        } else {
            (offset - positive + 1, offset - positive)
        };
        (start + from * d.stride, start + to * d.stride)
    }
}

impl Dimension {
    pub(crate) fn is_ring(&self) -> bool {
        self.wraps && self.size > 2
    }

    pub(crate) fn links_per_line(&self) -> usize {
        if self.is_ring() { 2 * self.size } else { 2 * (self.size - 1) }
    }

    /// The first link of the PE's line, and the number of positive links of a line.
    pub(crate) fn line_of(&self, pe: usize) -> (usize, usize) {
        let line = pe / (self.stride * self.size) * self.stride + pe % self.stride;
        (self.first_link + line * self.links_per_line(), self.links_per_line() / 2)
    }

    pub(crate) fn coordinate(&self, pe: usize) -> usize {
        pe / self.stride % self.size
    }

    pub(crate) fn distance(&self, from: usize, to: usize) -> usize {
        let direct = from.abs_diff(to);
        if self.is_ring() { direct.min(self.size - direct) } else { direct }
    }
}

/// The number of PEs of a machine with these sizes, at most [`MAX_PES`].
pub(crate) fn count_pes(sizes: impl IntoIterator<Item = usize>) -> Result<usize, String> {
    let mut pes: usize = 1;
    for size in sizes {
        if size == 0 {
            return Err("a size is at least 1".into());
        }
        pes = pes
            .checked_mul(size)
            .filter(|&pes| pes <= MAX_PES)
            .ok_or_else(|| format!("sizes multiply to at most {MAX_PES}"))?;
    }
    Ok(pes)
}
