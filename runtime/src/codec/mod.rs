//! Encodes values as bytes: messages between PEs, migrating elements, statistics. Only this module encodes.
//!
//! The layout is bincode's legacy one (fixed-width little-endian integers, `u64` lengths, `u32` variant
//! numbers). bincode 1, wincode and bincode-next share this layout, so this module can switch to any of them. Decoding
//! borrows from the input. Length prefixes are not trusted: the allocation for a prefix is limited until its bytes have
//! been checked. Bytes left over after a value are an error.

use bincode::enc::write::Writer;
use bincode::error::EncodeError;
use equipoise_model::fault::{Classified, Fault};
use equipoise_model::table::count;
use serde::{Deserialize, Serialize};

pub mod numbers;
mod size;
mod state;

pub(crate) use size::size;
pub use state::State;

/// The limit of allocations by a length prefix, for short inputs.
const SHORT_BYTES: usize = 1 << 20;
/// The limit for longer inputs.
const LONG_BYTES: usize = 1 << 26;
/// The limit for all other inputs.
const HUGE_BYTES: usize = 1 << 36;

/// The error of encoding or decoding a value.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CodecError {
    /// The value's `Serialize` failed, or uses a feature that bincode lacks.
    #[error("a value cannot be encoded: {0}")]
    Encode(#[from] EncodeError),
    /// The bytes are not a value of the expected type.
    #[error("{} cannot be decoded: {source}", count(*.length as u64, "byte"))]
    Decode {
        /// The number of bytes.
        length: usize,
        /// The error of bincode.
        source: bincode::error::DecodeError,
    },
    /// Bytes remain after the value: `Serialize` wrote more than `Deserialize` reads.
    #[error(
        "decoding left {} of {length} unread; `Serialize` and `Deserialize` of the value do not agree",
        count(*.left as u64, "byte")
    )]
    LeftOver {
        /// Bytes not consumed.
        left: usize,
        /// The number of bytes.
        length: usize,
    },
}

/// The program's `Serialize` or `Deserialize` is wrong.
impl Classified for CodecError {
    fn fault(&self) -> Fault {
        Fault::Bug
    }
}

/// Long blocks of bytes are copied in parts of this length. glibc copies longer parts with `rep movsb`, which is 16 times
/// slower on some processors (measured: AMD Zen, glibc 2.36) if the target lies up to 16 bytes behind the source, modulo
/// 4096.
const BLOCK_BYTES: usize = 2 << 10;

/// Appends the encoding of `value` to `bytes`.
pub(crate) fn encode_into<T: Serialize>(value: &T, bytes: &mut Vec<u8>) -> Result<(), CodecError> {
    bincode::serde::encode_into_writer(value, Appender(bytes), bincode::config::legacy())?;
    Ok(())
}

/// Appends what is written.
struct Appender<'a>(&'a mut Vec<u8>);

impl Writer for Appender<'_> {
    #[inline]
    fn write(&mut self, bytes: &[u8]) -> Result<(), EncodeError> {
        if bytes.len() <= BLOCK_BYTES {
            self.0.extend_from_slice(bytes);
        } else {
            self.0.reserve(bytes.len());
            bytes.chunks(BLOCK_BYTES).for_each(|block| self.0.extend_from_slice(block));
        }
        Ok(())
    }
}

/// The encoding of `value`.
pub(crate) fn encode<T: Serialize>(value: &T) -> Result<Vec<u8>, CodecError> {
    let mut bytes = Vec::new();
    encode_into(value, &mut bytes)?;
    Ok(bytes)
}

/// The value that all of `bytes` encode.
pub(crate) fn decode<'de, T: Deserialize<'de>>(bytes: &'de [u8]) -> Result<T, CodecError> {
    let length = bytes.len();
    let layout = bincode::config::legacy();
    // bincode allocates a string before it checks that the bytes exist. Its limit prevents that, and must be a
    // constant.
    let decoded = if length <= SHORT_BYTES {
        bincode::serde::borrow_decode_from_slice(bytes, layout.with_limit::<SHORT_BYTES>())
    } else if length <= LONG_BYTES {
        bincode::serde::borrow_decode_from_slice(bytes, layout.with_limit::<LONG_BYTES>())
    } else {
        bincode::serde::borrow_decode_from_slice(bytes, layout.with_limit::<HUGE_BYTES>())
    };
    let (value, used) = decoded.map_err(|source| CodecError::Decode { length, source })?;
    if used != length {
        return Err(CodecError::LeftOver { left: length - used, length });
    }
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde::de::DeserializeOwned;
    use std::collections::BTreeMap;
    use std::fmt::Debug;

    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    enum Shape {
        Unit,
        One(i16),
        Two(u8, Option<f32>),
        Named { text: String, map: BTreeMap<u16, bool>, letter: char },
    }

    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    struct Bulk {
        #[serde(with = "numbers")]
        wide: Vec<f64>,
        #[serde(with = "numbers")]
        narrow: Vec<u8>,
        shape: Shape,
    }

    #[track_caller]
    fn check<T: Serialize + DeserializeOwned + PartialEq + Debug>(value: T) {
        let bytes = encode(&value).expect("encodes");
        assert_eq!(size(&value), bytes.len() as u64, "the counted size is the encoded size");
        assert_eq!(decode::<T>(&bytes).expect("decodes"), value);
        for cut in 0..bytes.len() {
            assert!(decode::<T>(&bytes[..cut]).is_err(), "{cut} of {} bytes are not a value", bytes.len());
        }
        let mut longer = bytes;
        longer.push(0);
        assert!(matches!(decode::<T>(&longer), Err(CodecError::LeftOver { left: 1, .. })));
    }

    #[test]
    fn decodes_what_it_encodes_and_counts_the_size_without_encoding() {
        check(7u8);
        check((1u16, -2i64, 3.5f32, true, 'é', u128::MAX));
        check(vec![String::from("a"), String::new()]);
        check(Shape::Unit);
        check(Shape::One(-3));
        check(Shape::Two(1, Some(2.0)));
        check(Shape::Named { text: "täxt".into(), map: [(1, true), (2, false)].into(), letter: 'x' });
        check(Bulk { wide: vec![1.0, -2.0], narrow: vec![1, 2, 3], shape: Shape::Unit });
        check(Some([1i32, 2, 3]));
    }

    #[test]
    fn refuses_a_hostile_length_without_allocating_it() {
        let hostile = u64::MAX.to_le_bytes();
        assert!(decode::<Vec<u64>>(&hostile).is_err());
        assert!(decode::<String>(&hostile).is_err());
        let bulk = [&(1u64 << 39).to_le_bytes()[..], &[0; 64]].concat();
        assert!(decode::<Bulk>(&bulk).is_err());
    }

    proptest! {
        #[test]
        fn decodes_any_bulk_value(wide: Vec<f64>, narrow: Vec<u8>) {
            let value = Bulk { wide, narrow, shape: Shape::Unit };
            let bytes = encode(&value).expect("encodes");
            prop_assert_eq!(size(&value), bytes.len() as u64);
            let back: Bulk = decode(&bytes).expect("decodes");
            prop_assert_eq!(encode(&back).expect("encodes"), bytes);
        }

        #[test]
        fn no_bytes_make_the_decoder_panic(bytes: Vec<u8>) {
            let _ = decode::<Bulk>(&bytes);
            let _ = decode::<Vec<Shape>>(&bytes);
        }
    }
}
