//! The zones of the benchmarks: their sizes, messages and work.
//!
//! Grid sizes, the cut into zones and operation counts are those of NPB3.1-MZ. In SP and LU, zones have equal sizes up
//! to rounding. In BT, the widths in each dimension are a geometric series, so that the largest zone is about 20 times
//! as large as the smallest.

use std::str::FromStr;

/// Bytes sent per point: five numbers of 8 bytes.
const POINT_BYTES: u64 = 5 * 8;

/// A benchmark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Benchmark {
    /// Scalar pentadiagonal.
    Sp,
    /// Block tridiagonal.
    Bt,
    /// Lower-upper symmetric Gauss-Seidel.
    Lu,
}

/// A problem size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// For a quick test.
    S,
    /// For a workstation.
    W,
    /// Small.
    A,
    /// Medium.
    B,
    /// Large.
    C,
    /// Very large.
    D,
}

impl FromStr for Benchmark {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "SP" => Ok(Benchmark::Sp),
            "BT" => Ok(Benchmark::Bt),
            "LU" => Ok(Benchmark::Lu),
            _ => Err(format!("there is no benchmark `{text}`; known are SP, BT and LU")),
        }
    }
}

impl FromStr for Class {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "S" => Ok(Class::S),
            "W" => Ok(Class::W),
            "A" => Ok(Class::A),
            "B" => Ok(Class::B),
            "C" => Ok(Class::C),
            "D" => Ok(Class::D),
            _ => Err(format!("there is no class `{text}`; known are S, W, A, B, C and D")),
        }
    }
}

/// The zones of a benchmark, on a torus of two dimensions; zone `i + j * X` is at (i, j).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Zones {
    /// The benchmark.
    pub benchmark: Benchmark,
    /// The numbers of points in x, by column of zones.
    pub x: Vec<u64>,
    /// The numbers of points in y, by row of zones.
    pub y: Vec<u64>,
    /// The number of points in z, the same for all zones.
    pub z: u64,
}

impl Zones {
    /// The zones of a benchmark and class.
    pub fn of(benchmark: Benchmark, class: Class) -> Zones {
        let [x, y, z] = match class {
            Class::S => [24, 24, 6],
            Class::W => [64, 64, 8],
            Class::A => [128, 128, 16],
            Class::B => [304, 208, 17],
            Class::C => [480, 320, 28],
            Class::D => [1632, 1216, 34],
        };
        let side = match (benchmark, class) {
            (Benchmark::Lu, _) | (_, Class::W | Class::A) => 4,
            (_, Class::S) => 2,
            (_, Class::B) => 8,
            (_, Class::C) => 16,
            (_, Class::D) => 32,
        };
        let cut = |points: u64| match (benchmark, class) {
            (Benchmark::Bt, Class::S) => geometric(points, side, 3.0),
            (Benchmark::Bt, _) => geometric(points, side, 4.5),
            _ => widths((1..=side).map(|zone| zone * points / side)),
        };
        Zones { benchmark, x: cut(x), y: cut(y), z }
    }

    /// The number of zones.
    pub fn count(&self) -> usize {
        self.x.len() * self.y.len()
    }

    /// The number of points of a zone in each dimension.
    pub fn size(&self, zone: usize) -> [u64; 3] {
        [self.x[zone % self.x.len()], self.y[zone / self.x.len()], self.z]
    }

    /// The zones to the west, east, south and north.
    pub fn neighbors(&self, zone: usize) -> [usize; 4] {
        let (columns, rows) = (self.x.len(), self.y.len());
        let (i, j) = (zone % columns, zone / columns);
        let at = |i: usize, j: usize| i % columns + j % rows * columns;
        [at(i + columns - 1, j), at(i + 1, j), at(i, j + rows - 1), at(i, j + 1)]
    }

    /// The neighbors, with the bytes sent to each in a step: those of the inner points of the face.
    pub fn faces(&self, zone: usize) -> impl Iterator<Item = (usize, u64)> {
        let [x, y, z] = self.size(zone).map(|points| points.saturating_sub(2));
        let bytes = [y, y, x, x].map(|points| points * z * POINT_BYTES);
        self.neighbors(zone).into_iter().zip(bytes)
    }

    /// The floating-point operations of a zone in a step, as counted by the benchmarks.
    pub fn flops(&self, zone: usize) -> f64 {
        let [x, y, z] = self.size(zone).map(|points| points as f64);
        let (volume, face, edge) = (x * y * z, (x * y + x * z + y * z) / 3.0, (x + y + z) / 3.0);
        match self.benchmark {
            Benchmark::Sp => 881.174 * volume - 4683.91 * face + 11484.5 * edge - 19272.4,
            Benchmark::Bt => 3478.8 * volume - 17655.7 * face + 28023.7 * edge,
            Benchmark::Lu => 1984.77 * volume - 10923.3 * face + 27770.9 * edge - 144010.0,
        }
    }
}

/// Widths in a geometric series; the last width is `ratio` times the first.
fn geometric(points: u64, zones: u64, ratio: f64) -> Vec<u64> {
    let factor = ratio.powf(1.0 / (zones - 1) as f64);
    let first = points as f64 * (factor - 1.0) / (factor.powi(zones as i32) - 1.0);
    widths(
        (1..=zones as i32)
            .map(|zone| (first * (factor.powi(zone) - 1.0) / (factor - 1.0) + 0.45).trunc() as u64),
    )
}

/// The differences of consecutive ends.
fn widths(ends: impl Iterator<Item = u64>) -> Vec<u64> {
    let mut start = 0;
    ends.map(|end| end - std::mem::replace(&mut start, end)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks the ranges of zone sizes in x and y, and of the bytes of faces to the west and to the south.
    #[track_caller]
    fn check(benchmark: Benchmark, class: Class, zones: usize, sizes: [[u64; 2]; 2], faces: [[u64; 2]; 2]) {
        let all = Zones::of(benchmark, class);
        assert_eq!(all.count(), zones, "{benchmark:?} {class:?}");
        let range =
            |numbers: Vec<u64>| [*numbers.iter().min().expect("one"), *numbers.iter().max().expect("one")];
        assert_eq!([&all.x, &all.y].map(|sizes| range(sizes.clone())), sizes, "{benchmark:?} {class:?}");
        let face = |side: usize| {
            range((0..zones).map(|zone| all.faces(zone).nth(side).expect("a face").1).collect())
        };
        assert_eq!([face(0), face(2)], faces, "{benchmark:?} {class:?}");
        assert_eq!([face(1), face(3)], faces, "{benchmark:?} {class:?}");
    }

    #[test]
    fn sizes_and_faces_equal_those_of_the_benchmarks() {
        use Benchmark::{Bt, Lu, Sp};
        use Class::{A, B, C, D, S, W};
        let one = |number| [number, number];
        check(Sp, S, 4, [one(12), one(12)], [one(1600), one(1600)]);
        check(Sp, W, 16, [one(16), one(16)], [one(3360), one(3360)]);
        check(Sp, A, 16, [one(32), one(32)], [one(16_800), one(16_800)]);
        check(Sp, B, 64, [one(38), one(26)], [one(14_400), one(21_600)]);
        check(Sp, C, 256, [one(30), one(20)], [one(18_720), one(29_120)]);
        check(Sp, D, 1024, [one(51), one(38)], [one(46_080), one(62_720)]);
        check(Bt, S, 4, [[6, 18], [6, 18]], [[640, 2560], [640, 2560]]);
        check(Bt, W, 16, [[6, 29], [6, 29]], [[960, 6480], [960, 6480]]);
        check(Bt, A, 16, [[13, 58], [13, 58]], [[6160, 31_360], [6160, 31_360]]);
        check(Bt, B, 64, [[16, 72], [11, 49]], [[5400, 28_200], [8400, 42_000]]);
        check(Bt, C, 256, [[13, 57], [8, 38]], [[6240, 37_440], [11_440, 57_200]]);
        check(Bt, D, 1024, [[22, 98], [16, 73]], [[17_920, 90_880], [25_600, 122_880]]);
        check(Lu, S, 16, [one(6), one(6)], [one(640), one(640)]);
        check(Lu, W, 16, [one(16), one(16)], [one(3360), one(3360)]);
        check(Lu, A, 16, [one(32), one(32)], [one(16_800), one(16_800)]);
        check(Lu, B, 16, [one(76), one(52)], [one(30_000), one(44_400)]);
        check(Lu, C, 16, [one(120), one(80)], [one(81_120), one(122_720)]);
        check(Lu, D, 16, [one(408), one(304)], [one(386_560), one(519_680)]);
    }

    #[test]
    fn zones_cover_the_grid_and_area_ratios_are_as_published() {
        for (class, ratio) in [
            (Class::S, 9.0),
            (Class::W, 23.36),
            (Class::A, 19.91),
            (Class::B, 20.05),
            (Class::C, 20.83),
            (Class::D, 20.32),
        ] {
            let zones = Zones::of(Benchmark::Bt, class);
            let even = Zones::of(Benchmark::Sp, class);
            let sum = |widths: &[u64]| widths.iter().sum::<u64>();
            assert_eq!([sum(&zones.x), sum(&zones.y)], [sum(&even.x), sum(&even.y)]);
            let area = |zone| zones.size(zone)[0] * zones.size(zone)[1];
            let areas: Vec<u64> = (0..zones.count()).map(area).collect();
            let (least, most) = (*areas.iter().min().expect("one"), *areas.iter().max().expect("one"));
            assert!((most as f64 / least as f64 - ratio).abs() < 0.005, "{class:?}: {most} {least}");
        }
    }
}
