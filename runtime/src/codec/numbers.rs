//! Arrays of numbers as one block of bytes: `#[serde(with = "equipoise::numbers")]`.
//!
//! # When it matters
//!
//! serde visits a `Vec<f64>` element by element. This module writes the length in bytes and then the bytes themselves,
//! which is one copy at the speed of memory. The difference matters for long arrays that are encoded often:
//!
//! - in the state of elements that **migrate** (with `--migration move`, threads of one process move it in memory
//!   instead);
//! - in messages between PEs of a **simulated** machine. Messages between threads of one process are moved in memory, and
//!   not encoded.
//!
//! `#[chare]` adds the attribute to arguments of entries that are written as `Vec<N>`, `Box<[N]>`, `Arc<[N]>` or `Arc<Vec<N>>`, where
//! N is `f32`, `f64`, or an integer type of fixed width (not `usize` and `isize`). Write it yourself
//!
//! - on fields of your structs: serde's derives cannot know it;
//! - on arguments with other names of the type, or with types of your own.
//!
//! ```
//! #[derive(serde::Serialize, serde::Deserialize)]
//! struct Grid {
//!     width: usize,
//!     #[serde(with = "equipoise::numbers")]
//!     cells: Vec<f64>,
//!     #[serde(with = "equipoise::numbers")]
//!     corners: Vec<[f32; 3]>,
//! }
//! ```
//!
//! # Numbers for several receivers
//!
//! A message to several elements is cloned for each of them. Where they only read its numbers, let the argument be an `Arc<Vec<f64>>`: its
//! clones share the numbers. All receivers in a process have the same allocation; on a simulated machine without
//! `--pes-per-process`, all receivers on a PE. A receiver that changes numbers calls `Arc::make_mut`, which copies them if others hold
//! them. An `Arc<[f64]>` is copied once more when it is decoded.
//!
//! ```
//! use equipoise::prelude::*;
//! use std::sync::Arc;
//!
//! #[derive(Serialize, Deserialize)]
//! struct Reader {
//!     done: Exit<f64>,
//! }
//!
//! #[chare(index = [i32; 1])]
//! impl Reader {
//!     /// Reads what all elements receive.
//!     #[entry]
//!     fn read(&mut self, cx: &Cx<Self>, weights: Arc<Vec<f64>>) {
//!         cx.peer([0]).contribute().total(weights[cx.index()[0] as usize]);
//!     }
//!
//!     /// Receives the sum.
//!     #[entry(reduce = equipoise::reduce::sum)]
//!     fn total(&mut self, cx: &Cx<Self>, total: f64) {
//!         self.done.exit(cx, total);
//!     }
//! }
//!
//! let report = equipoise::run(Config::threads(2), |pe, done| {
//!     let readers = pe.array([100], move |_| Reader { done });
//!     pe.main(move |pe| readers.all(pe).read(Arc::new(vec![0.5; 100])));
//! });
//! assert_eq!(report.result, 50.0);
//! ```
//!
//! # Types of your own
//!
//! The elements may be of any type that the crate bytemuck knows as plain numbers: without padding, and valid for all
//! bit patterns. Derive its traits on a `#[repr(C)]` struct of numbers, with this dependency in Cargo.toml:
//! `bytemuck = { version = "1", features = ["derive"] }`. rustc refuses a struct with padding or with fields such as
//! `bool`.
//!
//! ```
//! use bytemuck::{Pod, Zeroable};
//! use equipoise::prelude::*;
//!
//! #[derive(Clone, Copy, Pod, Zeroable)]
//! #[repr(C)]
//! struct Particle {
//!     position: [f64; 3],
//!     mass: f64,
//! }
//!
//! #[derive(Serialize, Deserialize)]
//! struct Cell {
//!     #[serde(with = "equipoise::numbers")]
//!     particles: Vec<Particle>,
//!     done: Exit<f64>,
//! }
//!
//! #[chare(index = [i32; 1])]
//! impl Cell {
//!     /// Sends all particles to the other cell.
//!     #[entry]
//!     fn leave(&mut self, cx: &Cx<Self>) {
//!         cx.peer([1 - cx.index()[0]]).arrive(std::mem::take(&mut self.particles));
//!     }
//!
//!     /// Receives particles.
//!     #[entry]
//!     fn arrive(
//!         &mut self,
//!         cx: &Cx<Self>,
//!         #[serde(with = "equipoise::numbers")] particles: Vec<Particle>,
//!     ) {
//!         self.particles.extend(particles);
//!         let mass = |particle: &Particle| particle.mass * particle.position[0];
//!         self.done.exit(cx, self.particles.iter().map(mass).sum());
//!     }
//! }
//!
//! let report = equipoise::run(Config::simulated(2, 0), |pe, done| {
//!     let particle = Particle { position: [2.0, 0.0, 0.0], mass: 1.5 };
//!     let cells = pe.array([2], move |_| Cell { particles: vec![particle], done });
//!     pe.main(move |pe| cells.at(pe, [0]).leave());
//! });
//! assert_eq!(report.result, 6.0);
//! ```
//!
//! # Layout
//!
//! The bytes are the machine's own; every process of a run is the same little-endian binary. A length that is not a
//! multiple of the size of an element is an error.

use bytemuck::{AnyBitPattern, NoUninit};
use serde::de::{Error, SeqAccess, Visitor};
use serde::{Deserializer, Serializer};
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

#[cfg(target_endian = "big")]
compile_error!("the codec writes numbers as they lie in memory and promises little-endian bytes");

/// Writes the numbers as one block of bytes.
///
/// # Errors
/// If the serializer fails.
pub fn serialize<N: NoUninit, S: Serializer>(numbers: &[N], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_bytes(bytemuck::cast_slice(numbers))
}

/// Reads what [`serialize`] wrote.
///
/// # Errors
/// If the deserializer fails, or the number of bytes is not a multiple of the size of a number.
pub fn deserialize<'de, C: Container, D: Deserializer<'de>>(deserializer: D) -> Result<C, D::Error> {
    deserializer.deserialize_bytes(Block(PhantomData)).map(C::from_vec)
}

/// A container of numbers that [`deserialize`] can make.
#[diagnostic::on_unimplemented(
    message = "`equipoise::numbers` cannot read numbers into a `{Self}`",
    label = "not a container of numbers",
    note = "it reads `Vec<N>`, `Box<[N]>`, `Arc<[N]>` and `Arc<Vec<N>>` with plain numbers N; write another `#[serde(with = ..)]` for other types"
)]
pub trait Container: Sized {
    /// The numbers.
    type Number: AnyBitPattern + NoUninit;

    /// Makes the container of these numbers.
    fn from_vec(numbers: Vec<Self::Number>) -> Self;
}

macro_rules! containers {
    ($($container:ty),*) => {$(
        impl<N: AnyBitPattern + NoUninit> Container for $container {
            type Number = N;

            fn from_vec(numbers: Vec<N>) -> Self {
                numbers.into()
            }
        }
    )*};
}

containers!(Vec<N>, Box<[N]>, Arc<[N]>, Arc<Vec<N>>);

struct Block<N>(PhantomData<N>);

impl<'de, N: AnyBitPattern + NoUninit> Visitor<'de> for Block<N> {
    type Value = Vec<N>;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "a block of {}-byte numbers", size_of::<N>())
    }

    fn visit_bytes<E: Error>(self, bytes: &[u8]) -> Result<Vec<N>, E> {
        let width = size_of::<N>();
        if width == 0 || !bytes.len().is_multiple_of(width) {
            return Err(E::invalid_length(bytes.len(), &self));
        }
        // Without optimisation the loop below takes 30 ns per number; a whole copy needs an input that is aligned.
        if cfg!(debug_assertions)
            && let Ok(numbers) = bytemuck::try_cast_slice::<u8, N>(bytes)
        {
            return Ok(numbers.to_vec());
        }
        // The input may be unaligned. The new vector is not zeroed first, which would write it twice.
        Ok(bytes.chunks_exact(width).map(bytemuck::pod_read_unaligned).collect())
    }

    /// Text formats show bytes as a sequence.
    fn visit_seq<A: SeqAccess<'de>>(self, mut sequence: A) -> Result<Vec<N>, A::Error> {
        let mut bytes = Vec::new();
        while let Some(byte) = sequence.next_element::<u8>()? {
            bytes.push(byte);
        }
        self.visit_bytes(&bytes)
    }
}
