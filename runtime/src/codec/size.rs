//! The encoded size of a value, counted without encoding it.
//!
//! A `Serializer` whose output is a number. For types of fixed width the compiler folds it to a
//! constant, and a `Vec` of them to one multiplication, so it is cheap enough for every send.

use super::State;
use serde::ser::{self, Serialize};
use std::fmt;

/// The number of bytes that [`encode`](super::encode) writes for `value`.
///
/// A value that fails to serialize counts up to the failure; sending the value fails with its own error.
#[inline]
pub(crate) fn size<T: State>(value: &T) -> u64 {
    let mut count = Count(0);
    let _ = value.write(&mut count);
    count.0
}

/// Like [`size`], of a value of the runtime.
pub(crate) fn size_of(value: &impl Serialize) -> u64 {
    let mut count = Count(0);
    let _ = value.serialize(&mut count);
    count.0
}

struct Count(u64);

/// The `Serialize` of a value failed; counting itself cannot fail.
#[derive(Debug)]
struct Refused;

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("the value cannot be serialized")
    }
}

impl std::error::Error for Refused {}

impl ser::Error for Refused {
    fn custom<T: fmt::Display>(_: T) -> Self {
        Refused
    }
}

type Counted = Result<(), Refused>;

/// Methods that add the width of the type of a value.
macro_rules! fixed {
    ($($method:ident: $type:ty = $bytes:expr),* $(,)?) => {
        $(#[inline(always)]
        fn $method(self, _: $type) -> Counted {
            self.0 += $bytes;
            Ok(())
        })*
    };
}

/// The sizes of a variant number and of a length, in bytes.
const VARIANT: u64 = 4;
const LENGTH: u64 = 8;

impl ser::Serializer for &mut Count {
    type Ok = ();
    type Error = Refused;
    type SerializeSeq = Self;
    type SerializeTuple = Self;
    type SerializeTupleStruct = Self;
    type SerializeTupleVariant = Self;
    type SerializeMap = Self;
    type SerializeStruct = Self;
    type SerializeStructVariant = Self;

    fixed! {
        serialize_bool: bool = 1,
        serialize_i8: i8 = 1, serialize_i16: i16 = 2, serialize_i32: i32 = 4,
        serialize_i64: i64 = 8, serialize_i128: i128 = 16,
        serialize_u8: u8 = 1, serialize_u16: u16 = 2, serialize_u32: u32 = 4,
        serialize_u64: u64 = 8, serialize_u128: u128 = 16,
        serialize_f32: f32 = 4, serialize_f64: f64 = 8,
        serialize_unit_struct: &'static str = 0,
    }

    /// A `char` is encoded as UTF-8, so its width varies.
    #[inline(always)]
    fn serialize_char(self, letter: char) -> Counted {
        self.0 += letter.len_utf8() as u64;
        Ok(())
    }
    #[inline(always)]
    fn serialize_str(self, text: &str) -> Counted {
        self.0 += LENGTH + text.len() as u64;
        Ok(())
    }
    #[inline(always)]
    fn serialize_bytes(self, bytes: &[u8]) -> Counted {
        self.0 += LENGTH + bytes.len() as u64;
        Ok(())
    }
    #[inline(always)]
    fn serialize_none(self) -> Counted {
        self.0 += 1;
        Ok(())
    }
    #[inline(always)]
    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Counted {
        self.0 += 1;
        value.serialize(self)
    }
    #[inline(always)]
    fn serialize_unit(self) -> Counted {
        Ok(())
    }
    #[inline(always)]
    fn serialize_unit_variant(self, _: &'static str, _: u32, _: &'static str) -> Counted {
        self.0 += VARIANT;
        Ok(())
    }
    #[inline(always)]
    fn serialize_newtype_struct<T: Serialize + ?Sized>(self, _: &'static str, value: &T) -> Counted {
        value.serialize(self)
    }
    #[inline(always)]
    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        value: &T,
    ) -> Counted {
        self.0 += VARIANT;
        value.serialize(self)
    }
    #[inline(always)]
    fn serialize_seq(self, _: Option<usize>) -> Result<Self, Refused> {
        self.0 += LENGTH;
        Ok(self)
    }
    #[inline(always)]
    fn serialize_tuple(self, _: usize) -> Result<Self, Refused> {
        Ok(self)
    }
    #[inline(always)]
    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<Self, Refused> {
        Ok(self)
    }
    #[inline(always)]
    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Self, Refused> {
        self.0 += VARIANT;
        Ok(self)
    }
    #[inline(always)]
    fn serialize_map(self, _: Option<usize>) -> Result<Self, Refused> {
        self.0 += LENGTH;
        Ok(self)
    }
    #[inline(always)]
    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Self, Refused> {
        Ok(self)
    }
    #[inline(always)]
    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Self, Refused> {
        self.0 += VARIANT;
        Ok(self)
    }
    fn is_human_readable(&self) -> bool {
        false
    }
}

/// The parts of compound values: each counts itself, and the end adds nothing.
macro_rules! compound {
    ($($trait:ident { $($method:ident($($name:ident: $type:ty),*)),+ })*) => {
        $(impl ser::$trait for &mut Count {
            type Ok = ();
            type Error = Refused;
            $(#[inline(always)]
            fn $method<T: Serialize + ?Sized>(&mut self, $($name: $type,)* value: &T) -> Counted {
                $(let _ = $name;)*
                value.serialize(&mut **self)
            })+
            #[inline(always)]
            fn end(self) -> Counted {
                Ok(())
            }
        })*
    };
}

compound! {
    SerializeSeq { serialize_element() }
    SerializeTuple { serialize_element() }
    SerializeTupleStruct { serialize_field() }
    SerializeTupleVariant { serialize_field() }
    SerializeMap { serialize_key(), serialize_value() }
    SerializeStruct { serialize_field(name: &'static str) }
    SerializeStructVariant { serialize_field(name: &'static str) }
}
