//! Encodes values as bytes: messages between PEs, migrating elements, statistics. Only this module encodes.
//!
//! The layout is bincode's legacy one (fixed-width little-endian integers, `u64` lengths, `u32` variant
//! numbers). bincode 1, wincode and bincode-next share this layout, so this module can switch to any of them. Decoding
//! borrows from the input. Length prefixes are not trusted: the allocation for a prefix is limited by the length of the input,
//! or 1 MiB. Bytes left over after a value are an error.

use bincode::enc::write::Writer;
use bincode::error::EncodeError;
use equipoise_model::fault::{Classified, Fault};
use equipoise_model::table::count;
use serde::{Deserialize, Serialize};

mod fields;
mod located;
pub mod numbers;
mod size;
mod state;

pub(crate) use fields::{fields, parameters};
pub(crate) use size::{size, size_of};
pub use state::State;

/// The longest input that bincode reads without [`located`], and its limit of allocations by a length prefix.
const SHORT_BYTES: usize = 1 << 20;

/// The error of encoding or decoding a value.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CodecError {
    /// The value's `Serialize` failed, or uses a feature that bincode lacks.
    #[error("{}", not_encoded(.0))]
    Encode(#[from] EncodeError),
    /// The bytes are not a value of the expected type.
    #[error("{} cannot be decoded: {}{reason}", count(*.length as u64, "byte"), at(.place))]
    Decode {
        /// The number of bytes.
        length: usize,
        /// Where in the value the error is: empty, or fields, positions and arguments as in `cells[3].mass`.
        place: String,
        /// What is wrong there.
        reason: String,
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

/// The sentence for a value of the program that this run encoded and cannot decode.
pub(crate) fn not_decoded(what: &str, error: &CodecError) -> String {
    format!(
        "cannot decode {what}: {error}; where its type has serde attributes that need the names of fields (`flatten`, `tag`, `untagged`) \
         or that write only some fields (`skip_serializing_if`), leave them out: the bytes have no names"
    )
}

/// The program's `Serialize` or `Deserialize` is wrong.
impl Classified for CodecError {
    fn fault(&self) -> Fault {
        Fault::Bug
    }
}

/// Appends the encoding of `value` to `bytes`.
pub(crate) fn encode_into<T: Serialize>(value: &T, bytes: &mut Vec<u8>) -> Result<(), CodecError> {
    bincode::serde::encode_into_writer(value, Appender(bytes), bincode::config::legacy())?;
    Ok(())
}

/// Appends what is written.
struct Appender<'a>(&'a mut Vec<u8>);

/// glibc copies more than this with `rep movsb`.
const LONG_COPY_BYTES: usize = 2 << 10;
/// Such a copy is 16 times slower on some processors (measured: AMD Zen, glibc 2.36) if the target lies fewer bytes behind the
/// source than this, modulo [`PAGE_BYTES`].
const SLOW_COPY_DISTANCE: usize = 32;
const PAGE_BYTES: usize = 4096;

impl Writer for Appender<'_> {
    #[inline]
    fn write(&mut self, bytes: &[u8]) -> Result<(), EncodeError> {
        if bytes.len() <= LONG_COPY_BYTES {
            self.0.extend_from_slice(bytes);
        } else {
            self.write_long(bytes);
        }
        Ok(())
    }
}

impl Appender<'_> {
    #[inline(never)]
    fn write_long(&mut self, bytes: &[u8]) {
        self.0.reserve(bytes.len());
        let target = self.0.as_ptr().addr() + self.0.len();
        if target.wrapping_sub(bytes.as_ptr().addr()) % PAGE_BYTES < SLOW_COPY_DISTANCE {
            bytes.chunks(LONG_COPY_BYTES).for_each(|part| self.0.extend_from_slice(part));
        } else {
            self.0.extend_from_slice(bytes);
        }
    }
}

/// The encoding of `value`.
pub(crate) fn encode<T: Serialize>(value: &T) -> Result<Vec<u8>, CodecError> {
    // Counted first: a vector that grows is copied several times, and half of it may stay unused.
    let mut bytes = Vec::with_capacity(size_of(value) as usize);
    encode_into(value, &mut bytes)?;
    Ok(bytes)
}

/// The value that all of `bytes` encode.
pub(crate) fn decode<'de, T: Deserialize<'de>>(bytes: &'de [u8]) -> Result<T, CodecError> {
    let length = bytes.len();
    // bincode allocates a string before it checks that the bytes exist. Its limit prevents that, and must be a
    // constant. An error is found again with its place.
    if length <= SHORT_BYTES {
        let layout = bincode::config::legacy().with_limit::<SHORT_BYTES>();
        if let Ok((value, used)) = bincode::serde::borrow_decode_from_slice(bytes, layout)
            && used == length
        {
            return Ok(value);
        }
    }
    let (value, used) = located::decode(bytes).map_err(|(place, error)| CodecError::Decode {
        length,
        place,
        reason: located::reason(&error),
    })?;
    if used != length {
        return Err(CodecError::LeftOver { left: length - used, length });
    }
    Ok(value)
}

/// The place of an error, in front of the error.
fn at(place: &str) -> String {
    if place.is_empty() { String::new() } else { format!("`{place}`: ") }
}

/// Why a value cannot be encoded, without the names of bincode.
fn not_encoded(error: &EncodeError) -> String {
    match error {
        EncodeError::Other(text) => (*text).into(),
        EncodeError::OtherString(text) => text.clone(),
        EncodeError::RefCellAlreadyBorrowed { type_name, .. } => format!("a `{type_name}` is borrowed"),
        EncodeError::LockFailed { type_name } => format!("a `{type_name}` is poisoned"),
        EncodeError::InvalidPathCharacters => "a path is not UTF-8".into(),
        EncodeError::InvalidSystemTime { .. } => "a time is before 1970".into(),
        EncodeError::Serde(_) => "a sequence must know its length when its encoding begins".into(),
        _ => "its type cannot be encoded".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde::de::DeserializeOwned;
    use std::collections::BTreeMap;
    use std::fmt::Debug;
    use std::sync::Arc;

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
        #[serde(with = "numbers")]
        boxed: Box<[f32]>,
        #[serde(with = "numbers")]
        slice: Arc<[i16]>,
        #[serde(with = "numbers")]
        vector: Arc<Vec<f64>>,
        shape: Shape,
    }

    #[track_caller]
    fn check<T: Serialize + DeserializeOwned + PartialEq + Debug>(value: T) {
        let bytes = encode(&value).expect("encodes");
        assert_eq!(size(&value), bytes.len() as u64, "the counted size is the encoded size");
        assert_eq!(bytes.capacity(), bytes.len(), "the buffer is as long as the encoding");
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
        check(Bulk {
            wide: vec![1.0, -2.0],
            narrow: vec![1, 2, 3],
            boxed: [0.5, 1.5].into(),
            slice: [-1, 1].into(),
            vector: Arc::new(vec![2.5]),
            shape: Shape::Unit,
        });
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

    #[track_caller]
    fn fails<T: DeserializeOwned + Debug>(bytes: &[u8], sentence: &str) {
        assert_eq!(decode::<T>(bytes).expect_err("not such a value").to_string(), sentence);
    }

    #[test]
    fn an_error_names_the_place_and_what_is_wrong() {
        #[derive(Debug, Serialize, Deserialize)]
        struct Outer {
            first: u8,
            shapes: Vec<(u8, Shape)>,
        }
        let named = Shape::Named { text: "a".into(), map: [(1, true), (2, false)].into(), letter: 'x' };
        let shapes = vec![(1, Shape::Two(1, Some(2.0))), (2, named)];
        let bytes = encode(&Outer { first: 1, shapes }).expect("encodes");
        let length = bytes.len();
        fails::<Outer>(
            &bytes[..length - 1],
            &format!(
                "{} bytes cannot be decoded: `shapes[1][1].Named.letter`: the bytes end too early",
                length - 1
            ),
        );
        let with = |at: usize, byte: u8| {
            let mut bytes = bytes.clone();
            bytes[at] = byte;
            bytes
        };
        let last_bool = length - 2;
        fails::<Outer>(
            &with(last_bool, 7),
            &format!("{length} bytes cannot be decoded: `shapes[1][1].Named.map[1]`: 7 is not a `bool`"),
        );
        fails::<Outer>(
            &with(10, 9),
            &format!(
                "{length} bytes cannot be decoded: `shapes[0][1]`: invalid value: integer `9`, expected variant index 0 <= i < 4"
            ),
        );
        fails::<Outer>(
            &with(15, 2),
            &format!(
                "{length} bytes cannot be decoded: `shapes[0][1].Two(2)`: the bytes are not a value of this type"
            ),
        );
        fails::<String>(&u64::MAX.to_le_bytes(), "8 bytes cannot be decoded: the bytes end too early");
    }

    #[test]
    fn long_inputs_do_not_allocate_hostile_lengths() {
        let mut bytes = vec![0; SHORT_BYTES + 8];
        bytes[..8].copy_from_slice(&(1u64 << 35).to_le_bytes());
        fails::<String>(&bytes, "1048584 bytes cannot be decoded: the bytes end too early");
    }

    proptest! {
        #[test]
        fn decodes_any_bulk_value(wide: Vec<f64>, narrow: Vec<u8>) {
            let (boxed, slice, vector) = ([0.5].into(), [1].into(), Arc::new(vec![2.5]));
            let value = Bulk { wide, narrow, boxed, slice, vector, shape: Shape::Unit };
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
