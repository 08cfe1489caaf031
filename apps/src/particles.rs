//! The particles of a cell, and the forces between those of two cells.
//!
//! A truncated Lennard-Jones fluid in units of its well depth and of the mass of a particle; lengths are
//! in angstrom. Cells are as wide as in LeanMD, 30 A, and particles see each other up to 26 A
//! (Agarwal, Sharma, Kalé 2006, section 5.2.3). Positions are relative to the corner of their cell, so
//! that what crosses the edge of the periodic box needs no special case.

use serde::{Deserialize, Serialize};

/// How wide a cell is, in angstrom.
pub const CELL: f64 = 30.0;

/// How far particles see each other, in angstrom.
pub const CUTOFF: f64 = 26.0;

/// Seconds of a step, in units of the time that a particle takes for an angstrom at unit energy.
const STEP: f64 = 2e-3;

/// The particles of one cell.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Particles {
    /// Who they are; sorted.
    pub ids: Vec<u64>,
    /// Where: three coordinates each, from 0 to [`CELL`].
    #[serde(with = "equipoise::numbers")]
    pub positions: Vec<f64>,
    /// How fast: three components each.
    #[serde(with = "equipoise::numbers")]
    pub velocities: Vec<f64>,
}

/// What particles of two cells do to each other.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Forces {
    /// Three components for each particle of the first cell, and of the second.
    pub on: [Vec<f64>; 2],
    /// Their potential energy.
    pub potential: f64,
}

impl Particles {
    /// So many particles, evenly spread and nearly at rest; the first is number `first`.
    pub fn spread(count: usize, first: u64) -> Self {
        let side = (1..).find(|side: &usize| side.pow(3) >= count).unwrap_or(1);
        let space = CELL / side as f64;
        let mut particles = Particles::default();
        for at in 0..count {
            let id = first + at as u64;
            particles.ids.push(id);
            for (axis, place) in [at % side, at / side % side, at / side / side].into_iter().enumerate() {
                // A hundredth of the distance to the next, so that no two cells are alike.
                let jitter = 0.02 * (noise(id, axis as u64) - 0.5);
                particles.positions.push((place as f64 + 0.5 + jitter) * space);
                particles.velocities.push(0.2 * (noise(id, axis as u64 + 3) - 0.5));
            }
        }
        particles
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.ids.len()
    }

    /// Moves them under `forces`, three components each, for one step (velocity Verlet); returns their
    /// kinetic energy before.
    pub fn integrate(&mut self, forces: &[f64]) -> f64 {
        let mut kinetic = 0.0;
        for ((x, v), force) in self.positions.iter_mut().zip(&mut self.velocities).zip(forces) {
            // Positions and velocities are half a step apart but here.
            let now = *v + 0.5 * STEP * force;
            kinetic += 0.5 * now * now;
            *v = now + 0.5 * STEP * force;
            *x += STEP * *v;
        }
        kinetic
    }

    /// Takes out those who left the cell, by the neighbor they went to.
    pub fn leavers(&mut self) -> [Particles; 27] {
        let mut gone: [Particles; 27] = Default::default();
        let all = std::mem::take(self);
        for (at, &id) in all.ids.iter().enumerate() {
            let (mut position, mut number) = ([0.0; 3], 0);
            for (x, position) in all.positions[3 * at..3 * at + 3].iter().zip(&mut position) {
                // Nobody crosses a whole cell between two visits; who did would be lost to his neighbors.
                let over = (x / CELL).floor().clamp(-1.0, 1.0);
                *position = x - over * CELL;
                number = 3 * number + (over + 1.0) as usize;
            }
            let to = if number == HERE { &mut *self } else { &mut gone[number] };
            to.ids.push(id);
            to.positions.extend(position);
            to.velocities.extend(&all.velocities[3 * at..3 * at + 3]);
        }
        gone
    }

    /// Takes in others; all are sorted again, so that their order does not tell who came first.
    pub fn join(&mut self, others: Particles) {
        let mut all: Vec<(u64, [f64; 6])> = Vec::with_capacity(self.count() + others.count());
        for part in [&*self, &others] {
            for (at, &id) in part.ids.iter().enumerate() {
                let (x, v) = (&part.positions[3 * at..], &part.velocities[3 * at..]);
                all.push((id, [x[0], x[1], x[2], v[0], v[1], v[2]]));
            }
        }
        all.sort_unstable_by_key(|(id, _)| *id);
        *self = Particles::default();
        for (id, [x, y, z, u, v, w]) in all {
            self.ids.push(id);
            self.positions.extend([x, y, z]);
            self.velocities.extend([u, v, w]);
        }
    }
}

/// The neighbor that is no neighbor.
pub const HERE: usize = 13;

/// The offset of the neighbor of that number in each dimension, the last dimension fastest: those after
/// [`HERE`] are half of all, and neighbor `26 - n` lies opposite of `n`.
pub fn offset(number: usize) -> [i32; 3] {
    [number / 9, number / 3 % 3, number % 3].map(|digit| digit as i32 - 1)
}

/// Where the force between two particles is 0, as a part of the distance of neighbors at rest.
const TOUCH: f64 = 0.8;

/// What the particles at `here` do to those at `there`, in the cell at `offset`, and these to them; each
/// pair once. `sigma` is the distance at which they neither attract nor repel each other.
pub fn between(here: &[f64], there: &[f64], offset: [i32; 3], sigma: f64) -> Forces {
    let mut forces = Forces { on: [vec![0.0; here.len()], vec![0.0; there.len()]], potential: 0.0 };
    let shift = offset.map(|cells| f64::from(cells) * CELL);
    for (i, a) in here.chunks_exact(3).enumerate() {
        for (j, b) in there.chunks_exact(3).enumerate() {
            let d = [b[0] + shift[0] - a[0], b[1] + shift[1] - a[1], b[2] + shift[2] - a[2]];
            if let Some((pull, potential)) = lennard_jones(d, sigma) {
                forces.potential += potential;
                for (axis, d) in d.into_iter().enumerate() {
                    forces.on[0][3 * i + axis] += pull * d;
                    forces.on[1][3 * j + axis] -= pull * d;
                }
            }
        }
    }
    forces
}

/// What the particles at `here` do to each other, each pair once.
pub fn within(here: &[f64], sigma: f64) -> Forces {
    let mut forces = Forces { on: [vec![0.0; here.len()], Vec::new()], potential: 0.0 };
    for (i, a) in here.chunks_exact(3).enumerate() {
        for (j, b) in here.chunks_exact(3).enumerate().skip(i + 1) {
            let d = [b[0] - a[0], b[1] - a[1], b[2] - a[2]];
            if let Some((pull, potential)) = lennard_jones(d, sigma) {
                forces.potential += potential;
                for (axis, d) in d.into_iter().enumerate() {
                    forces.on[0][3 * i + axis] += pull * d;
                    forces.on[0][3 * j + axis] -= pull * d;
                }
            }
        }
    }
    forces
}

/// The pull of a particle at distance `d` over that distance, and the potential energy; none beyond the
/// cutoff.
#[inline]
fn lennard_jones(d: [f64; 3], sigma: f64) -> Option<(f64, f64)> {
    let squared = d[0] * d[0] + d[1] * d[1] + d[2] * d[2];
    if squared >= CUTOFF * CUTOFF || squared == 0.0 {
        return None;
    }
    let sixth = (sigma * sigma / squared).powi(3);
    let push = 24.0 * (2.0 * sixth * sixth - sixth) / squared;
    Some((-push, 4.0 * (sixth * sixth - sixth)))
}

/// The distance at which particles neither attract nor repel each other, for cells of at most `most`
/// particles: a part of the distance of neighbors when they are [`spread`](Particles::spread).
pub fn sigma(most: usize) -> f64 {
    TOUCH * CELL / (most.max(1) as f64).cbrt().ceil()
}

/// A number from 0 to 1 that looks drawn, the same for the same arguments (SplitMix64).
fn noise(id: u64, salt: u64) -> f64 {
    let mut z = id.wrapping_mul(6).wrapping_add(salt).wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forces_are_the_slope_of_the_potential_and_cancel() {
        let (here, there) = (Particles::spread(20, 0), Particles::spread(30, 20));
        let offset = [1, 0, -1];
        let sigma = sigma(30);
        let found = between(&here.positions, &there.positions, offset, sigma);
        for axis in 0..3 {
            let sum = |forces: &[f64]| forces.iter().skip(axis).step_by(3).sum::<f64>();
            assert!((sum(&found.on[0]) + sum(&found.on[1])).abs() < 1e-12, "axis {axis}");
        }
        for at in [0, 7, 31, 59] {
            let moved = |by: f64| {
                let mut positions = here.positions.clone();
                positions[at] += by;
                between(&positions, &there.positions, offset, sigma).potential
            };
            let slope = (moved(-1e-5) - moved(1e-5)) / 2e-5;
            assert!(
                (slope - found.on[0][at]).abs() <= 1e-6 * slope.abs() + 1e-9,
                "{slope}, {}",
                found.on[0][at]
            );
        }
    }

    #[test]
    fn a_pair_in_one_cell_is_counted_once() {
        let particles = Particles::spread(40, 0);
        let one = within(&particles.positions, sigma(40));
        let twice = between(&particles.positions, &particles.positions, [0; 3], sigma(40));
        assert!((2.0 * one.potential - twice.potential).abs() < 1e-9 * one.potential.abs());
        for (a, b) in one.on[0].iter().zip(&twice.on[0]) {
            assert!((a - b).abs() < 1e-9, "{a} {b}");
        }
    }

    #[test]
    fn who_leaves_joins_a_neighbor_and_nobody_is_lost() {
        let mut particles = Particles::spread(27, 100);
        // The one in the corner goes on over three faces, the one in the middle stays.
        for axis in 0..3 {
            particles.positions[axis] = -1.0;
            particles.positions[3 * 26 + axis] = CELL + 2.0;
        }
        let gone = particles.leavers();
        assert_eq!(particles.count(), 25);
        assert_eq!((gone[0].ids.as_slice(), gone[26].ids.as_slice()), (&[100u64][..], &[126u64][..]));
        assert_eq!((offset(0), offset(HERE), offset(26)), ([-1; 3], [0; 3], [1; 3]));
        assert_eq!(gone[0].positions, [CELL - 1.0; 3]);
        assert_eq!(gone[26].positions, [2.0; 3]);
        let [first, .., last] = gone;
        particles.join(last);
        particles.join(first);
        assert_eq!(particles.ids, (100..127).collect::<Vec<_>>());
    }
}
