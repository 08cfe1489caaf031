//! Arrays of numbers as one block of bytes: `#[serde(with = "equipoise::numbers")]`.
//!
//! serde visits a `Vec<f64>` element by element; this writes its length in bytes and then the bytes
//! themselves, which any serde codec copies at the speed of memory. `#[chare]` puts it on the entry
//! arguments that are plainly such arrays; put it on the fields of your own structs:
//!
//! ```
//! #[derive(serde::Serialize, serde::Deserialize)]
//! struct Grid {
//!     width: usize,
//!     #[serde(with = "equipoise::numbers")]
//!     cells: Vec<f64>,
//! }
//! ```
//!
//! The bytes are the machine's own; every process of a run is the same little-endian binary.

use bytemuck::{AnyBitPattern, NoUninit};
use serde::de::{Error, SeqAccess, Visitor};
use serde::{Deserializer, Serializer};
use std::fmt;
use std::marker::PhantomData;

#[cfg(target_endian = "big")]
compile_error!("the codec writes numbers as they lie in memory and promises little-endian bytes");

/// Writes the numbers as one block of bytes.
///
/// # Errors
/// Those of the serializer.
pub fn serialize<N: NoUninit, S: Serializer>(numbers: &[N], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_bytes(bytemuck::cast_slice(numbers))
}

/// Reads what [`serialize`] wrote.
///
/// # Errors
/// Those of the deserializer, and a number of bytes that is not a whole number of elements.
pub fn deserialize<'de, N: AnyBitPattern + NoUninit, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Vec<N>, D::Error> {
    deserializer.deserialize_bytes(Block(PhantomData))
}

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
        // Copies once, into memory aligned for `N`, whatever the alignment of the input.
        Ok(bytemuck::allocation::pod_collect_to_vec(bytes))
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
