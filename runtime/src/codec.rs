//! The one place where values become bytes: messages that cross PEs, migrating elements, statistics.
//!
//! The layout is bincode's legacy one (fixed-width little-endian integers, `u64` lengths, `u32` variant
//! numbers), which bincode 1, wincode and bincode-next share, so this module can be re-based on any
//! of them without changing a byte. A decoder reads borrowed slices: nothing is allocated on the
//! word of a length prefix alone beyond a small limit, and a value that leaves bytes over is refused.

use serde::{Deserialize, Serialize};

pub mod numbers;
mod size;

pub(crate) use size::size;

/// What a decoder may allocate on the word of a length prefix: for short inputs ..
const SHORT_BYTES: usize = 1 << 20;
/// .. for longer ones ..
const LONG_BYTES: usize = 1 << 26;
/// .. and for those beyond.
const HUGE_BYTES: usize = 1 << 36;

/// What was wrong with bytes that should have been a value, or with a value that should become bytes.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CodecError {
    /// The value's own `Serialize` refused, or asked for something bincode does not have.
    #[error("a value cannot be encoded: {0}")]
    Encode(#[from] bincode::error::EncodeError),
    /// The bytes are not a value of the expected type.
    #[error("{length} bytes do not decode: {source}")]
    Decode {
        /// How many bytes there were.
        length: usize,
        /// What bincode says.
        source: bincode::error::DecodeError,
    },
    /// The value ended before the bytes did: something was written that is not read back.
    #[error(
        "{left} of {length} bytes are left over; `Serialize` and `Deserialize` of the value do not agree"
    )]
    LeftOver {
        /// Bytes not consumed.
        left: usize,
        /// How many bytes there were.
        length: usize,
    },
}

/// Appends the encoding of `value` to `bytes`.
pub(crate) fn encode_into<T: Serialize>(value: &T, bytes: &mut Vec<u8>) -> Result<(), CodecError> {
    bincode::serde::encode_into_std_write(value, bytes, bincode::config::legacy())?;
    Ok(())
}

/// The encoding of `value`.
pub(crate) fn encode<T: Serialize>(value: &T) -> Result<Vec<u8>, CodecError> {
    let mut bytes = Vec::new();
    encode_into(value, &mut bytes)?;
    Ok(bytes)
}

/// The value that `bytes` encode, all of them.
pub(crate) fn decode<'de, T: Deserialize<'de>>(bytes: &'de [u8]) -> Result<T, CodecError> {
    let length = bytes.len();
    let layout = bincode::config::legacy();
    // bincode makes room for a string before it looks whether the bytes are there; its limit is the
    // remedy, and has to be a constant.
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
    fn values_come_back_and_their_size_is_counted_without_encoding_them() {
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
    fn a_hostile_length_is_refused_without_being_allocated() {
        let hostile = u64::MAX.to_le_bytes();
        assert!(decode::<Vec<u64>>(&hostile).is_err());
        assert!(decode::<String>(&hostile).is_err());
        let bulk = [&(1u64 << 39).to_le_bytes()[..], &[0; 64]].concat();
        assert!(decode::<Bulk>(&bulk).is_err());
    }

    proptest! {
        #[test]
        fn any_bulk_value_comes_back(wide: Vec<f64>, narrow: Vec<u8>) {
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
