//! The particles of a cell, and the forces between the particles of two cells.
//!
//! A truncated Lennard-Jones fluid in units of its well depth and of the mass of a particle; lengths are
//! in angstrom. As in LeanMD, cells are 30 A wide and the cutoff is 26 A (Agarwal, Sharma, Kalé 2006,
//! section 5.2.3). Positions are relative to the corner of their cell, so that particles that cross the boundary of
//! the periodic box need no special case.

use serde::{Deserialize, Serialize};

/// The width of a cell, in angstrom.
pub const CELL: f64 = 30.0;

/// The cutoff distance of forces, in angstrom.
pub const CUTOFF: f64 = 26.0;

/// The time of a step, in units of the time in which a particle of unit energy moves 1 angstrom.
const STEP: f64 = 2e-3;

/// The particles of one cell.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Particles {
    /// Their ids, sorted.
    pub ids: Vec<u64>,
    /// Their positions: three coordinates each, from 0 to [`CELL`].
    #[serde(with = "equipoise::numbers")]
    pub positions: Vec<f64>,
    /// Their velocities: three components each.
    #[serde(with = "equipoise::numbers")]
    pub velocities: Vec<f64>,
}

/// The forces between the particles of two cells.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Forces {
    /// Three components for each particle of the first cell, and of the second.
    pub on: [Vec<f64>; 2],
    /// The potential energy of the particles.
    pub potential: f64,
}

impl Particles {
    /// `count` particles, evenly spread and nearly at rest, with ids from `first` on.
    pub fn spread(count: usize, first: u64) -> Self {
        let side = (1..).find(|side: &usize| side.pow(3) >= count).unwrap_or(1);
        let space = CELL / side as f64;
        let mut particles = Particles::default();
        for at in 0..count {
            let id = first + at as u64;
            particles.ids.push(id);
            for (axis, place) in [at % side, at / side % side, at / side / side].into_iter().enumerate() {
                // At most a hundredth of the distance between neighbors, so that cells differ.
                let jitter = 0.02 * (noise(id, axis as u64) - 0.5);
                particles.positions.push((place as f64 + 0.5 + jitter) * space);
                particles.velocities.push(0.2 * (noise(id, axis as u64 + 3) - 0.5));
            }
        }
        particles
    }

    /// The number of particles.
    pub fn count(&self) -> usize {
        self.ids.len()
    }

    /// Moves the particles under `forces`, three components each, for one step (velocity Verlet); returns the
    /// kinetic energy at the beginning of the step.
    pub fn integrate(&mut self, forces: &[f64]) -> f64 {
        let mut kinetic = 0.0;
        for ((x, v), force) in self.positions.iter_mut().zip(&mut self.velocities).zip(forces) {
            // Velocities are stored half a step away from positions; this is the velocity at the time of the position.
            let now = *v + 0.5 * STEP * force;
            kinetic += 0.5 * now * now;
            *v = now + 0.5 * STEP * force;
            *x += STEP * *v;
        }
        kinetic
    }

    /// Removes the particles that left the cell, and returns them by their new cell.
    pub fn take_leaving(&mut self) -> [Particles; 27] {
        let mut leaving: [Particles; 27] = Default::default();
        let all = std::mem::take(self);
        for (at, &id) in all.ids.iter().enumerate() {
            let (mut position, mut number) = ([0.0; 3], 0);
            for (x, position) in all.positions[3 * at..3 * at + 3].iter().zip(&mut position) {
                // No particle crosses a whole cell between two exchanges; `clamp` would move such a particle.
                let over = (x / CELL).floor().clamp(-1.0, 1.0);
                *position = x - over * CELL;
                number = 3 * number + (over + 1.0) as usize;
            }
            let to = if number == HERE { &mut *self } else { &mut leaving[number] };
            to.ids.push(id);
            to.positions.extend(position);
            to.velocities.extend(&all.velocities[3 * at..3 * at + 3]);
        }
        leaving
    }

    /// Adds other particles and sorts all by id, so that the order of arrival does not matter.
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

/// The number of the cell itself among its 27 neighbors.
pub const HERE: usize = 13;

/// The offset of a neighbor in each dimension; numbers count with the last dimension fastest. Half of the neighbors are
/// after [`HERE`], and neighbor `26 - n` is opposite to `n`.
pub fn offset(number: usize) -> [i32; 3] {
    [number / 9, number / 3 % 3, number % 3].map(|digit| digit as i32 - 1)
}

/// The distance without a force between two particles, as a fraction of the distance of neighbors at rest.
const RELATIVE_SIGMA: f64 = 0.8;

/// The forces between the particles at `here` and those at `there`, in the cell at `offset`; each pair once. `sigma` is
/// the distance without a force.
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

/// The forces between the particles at `here`, each pair once.
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

/// The attraction of a particle at `d`, divided by its distance, and the potential energy; none beyond the cutoff.
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

/// The distance without a force between particles, for cells of at most `most` particles: a fraction of the distance of
/// neighbors that are [`spread`](Particles::spread).
pub fn sigma(most: usize) -> f64 {
    RELATIVE_SIGMA * CELL / (most.max(1) as f64).cbrt().ceil()
}

/// A pseudorandom number from 0 to 1 that depends only on the arguments (SplitMix64).
pub fn noise(id: u64, salt: u64) -> f64 {
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
    fn particles_that_leave_go_to_a_neighbor_and_none_is_lost() {
        let mut particles = Particles::spread(27, 100);
        // The particles in two opposite corners leave over three faces each.
        for axis in 0..3 {
            particles.positions[axis] = -1.0;
            particles.positions[3 * 26 + axis] = CELL + 2.0;
        }
        let leaving = particles.take_leaving();
        assert_eq!(particles.count(), 25);
        assert_eq!((leaving[0].ids.as_slice(), leaving[26].ids.as_slice()), (&[100u64][..], &[126u64][..]));
        assert_eq!((offset(0), offset(HERE), offset(26)), ([-1; 3], [0; 3], [1; 3]));
        assert_eq!(leaving[0].positions, [CELL - 1.0; 3]);
        assert_eq!(leaving[26].positions, [2.0; 3]);
        let [first, .., last] = leaving;
        particles.join(last);
        particles.join(first);
        assert_eq!(particles.ids, (100..127).collect::<Vec<_>>());
    }
}
