//! Decodes values and says where in a value an error is: in which field, argument or position.
//!
//! A layer between serde's derives and bincode. It also reads text without allocating a stated length, which bincode
//! allocates unchecked. The place of a value is a list on the stack, so that decoding without an error costs nothing more.

use bincode::error::DecodeError;
use serde::de::{
    Deserialize, DeserializeSeed, Deserializer, EnumAccess, Error, MapAccess, SeqAccess, VariantAccess,
    Visitor,
};
use std::cell::{Cell, OnceCell};
use std::fmt;

/// The value that the beginning of `bytes` encodes, and the number of bytes that were read.
///
/// # Errors
/// The place of the error, which is empty if it is the whole value, and the error.
pub(super) fn decode<'de, T: Deserialize<'de>>(
    bytes: &'de [u8],
) -> Result<(T, usize), (String, DecodeError)> {
    let place = OnceCell::new();
    let at = At { step: Step::Whole, outer: None, place: &place };
    let seed = Seed { seed: std::marker::PhantomData::<T>, at: &at, chosen: None };
    bincode::serde::seed_decode_from_slice(seed, bytes, bincode::config::legacy())
        .map_err(|error| (place.into_inner().unwrap_or_default(), error))
}

/// A place in a value.
struct At<'a> {
    step: Step,
    /// The place of the value that this one is part of.
    outer: Option<&'a At<'a>>,
    /// The place of the first error.
    place: &'a OnceCell<String>,
}

/// From a value to one of its parts.
#[derive(Clone, Copy)]
enum Step {
    Whole,
    /// A field, or the variant of an enum.
    Name(&'static str),
    /// An element of a sequence or an entry of a map.
    Position(usize),
    /// The field of a variant without names, from 0.
    Argument(usize),
}

impl<'a> At<'a> {
    fn inner(&'a self, step: Step) -> At<'a> {
        At { step, outer: Some(self), place: self.place }
    }

    /// An error is here, unless it was found further inside.
    fn failed<E>(&self, error: E) -> E {
        self.place.get_or_init(|| {
            let mut place = String::new();
            self.write(&mut place);
            place
        });
        error
    }

    fn write(&self, place: &mut String) {
        if let Some(outer) = self.outer {
            outer.write(place);
        }
        match self.step {
            Step::Whole => {}
            Step::Name(name) if place.is_empty() => place.push_str(name),
            Step::Name(name) => *place += &format!(".{name}"),
            Step::Position(at) => *place += &format!("[{at}]"),
            Step::Argument(at) => *place += &format!("({})", at + 1),
        }
    }
}

/// What a sequence in bincode stands for.
#[derive(Clone, Copy)]
enum Parts {
    Positions,
    Fields(&'static [&'static str]),
    Arguments,
}

impl Parts {
    fn step(self, at: usize) -> Step {
        match self {
            Parts::Positions => Step::Position(at),
            Parts::Fields(names) => names.get(at).map_or(Step::Position(at), |name| Step::Name(name)),
            Parts::Arguments => Step::Argument(at),
        }
    }
}

/// A seed, a deserializer or a visitor, with the place of its value. `chosen` receives the number of a variant.
struct Seed<'a, S> {
    seed: S,
    at: &'a At<'a>,
    chosen: Option<&'a Cell<usize>>,
}

impl<'de, S: DeserializeSeed<'de>> DeserializeSeed<'de> for Seed<'_, S> {
    type Value = S::Value;

    #[inline]
    fn deserialize<D: Deserializer<'de>>(self, de: D) -> Result<S::Value, D::Error> {
        self.seed.deserialize(Located { de, at: self.at, chosen: self.chosen })
    }
}

struct Located<'a, D> {
    de: D,
    at: &'a At<'a>,
    chosen: Option<&'a Cell<usize>>,
}

impl<'a, D> Located<'a, D> {
    fn visit<V>(&self, visitor: V, parts: Parts, variants: &'static [&'static str]) -> Visit<'a, V> {
        Visit { visitor, at: self.at, parts, variants, chosen: self.chosen }
    }
}

/// Methods that call the method of the deserializer below with the same arguments, or the method after `as`.
macro_rules! forwarded {
    ($($method:ident($($argument:ident: $type:ty),*) as $below:ident, $parts:expr, $variants:expr;)*) => {$(
        #[inline]
        fn $method<V: Visitor<'de>>(self, $($argument: $type,)* visitor: V) -> Result<V::Value, D::Error> {
            let visit = self.visit(visitor, $parts, $variants);
            self.de.$below($($argument,)* visit).map_err(|error| self.at.failed(error))
        }
    )*};
    ($($method:ident)*) => { forwarded! {$($method() as $method, Parts::Positions, &[];)*} };
}

impl<'de, D: Deserializer<'de>> Deserializer<'de> for Located<'_, D> {
    type Error = D::Error;

    forwarded! {
        deserialize_any deserialize_bool deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64 deserialize_i128
        deserialize_u8 deserialize_u16 deserialize_u32 deserialize_u64 deserialize_u128 deserialize_f32 deserialize_f64
        deserialize_char deserialize_str deserialize_bytes deserialize_option deserialize_unit deserialize_seq
        deserialize_map deserialize_identifier deserialize_ignored_any
    }
    forwarded! {
        deserialize_string() as deserialize_str, Parts::Positions, &[];
        deserialize_byte_buf() as deserialize_bytes, Parts::Positions, &[];
        deserialize_unit_struct(name: &'static str) as deserialize_unit_struct, Parts::Positions, &[];
        deserialize_newtype_struct(name: &'static str) as deserialize_newtype_struct, Parts::Positions, &[];
        deserialize_tuple(len: usize) as deserialize_tuple, Parts::Positions, &[];
        deserialize_tuple_struct(name: &'static str, len: usize) as deserialize_tuple_struct, Parts::Positions, &[];
        deserialize_struct(name: &'static str, fields: &'static [&'static str]) as deserialize_struct,
            Parts::Fields(fields), &[];
        deserialize_enum(name: &'static str, variants: &'static [&'static str]) as deserialize_enum,
            Parts::Arguments, variants;
    }

    fn is_human_readable(&self) -> bool {
        self.de.is_human_readable()
    }
}

struct Visit<'a, V> {
    visitor: V,
    at: &'a At<'a>,
    parts: Parts,
    variants: &'static [&'static str],
    chosen: Option<&'a Cell<usize>>,
}

/// Methods that pass a value on.
macro_rules! visited {
    ($($method:ident: $type:ty),* $(,)?) => {$(
        #[inline]
        fn $method<E: Error>(self, value: $type) -> Result<V::Value, E> {
            self.visitor.$method(value)
        }
    )*};
}

impl<'de, V: Visitor<'de>> Visitor<'de> for Visit<'_, V> {
    type Value = V::Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.visitor.expecting(f)
    }

    visited! {
        visit_bool: bool, visit_i8: i8, visit_i16: i16, visit_i32: i32, visit_i64: i64, visit_i128: i128, visit_u8: u8,
        visit_u16: u16, visit_u64: u64, visit_u128: u128, visit_f32: f32, visit_f64: f64, visit_char: char, visit_str: &str,
        visit_borrowed_str: &'de str, visit_bytes: &[u8], visit_borrowed_bytes: &'de [u8],
    }

    #[inline]
    fn visit_u32<E: Error>(self, value: u32) -> Result<V::Value, E> {
        if let Some(chosen) = self.chosen {
            chosen.set(value as usize);
        }
        self.visitor.visit_u32(value)
    }

    fn visit_none<E: Error>(self) -> Result<V::Value, E> {
        self.visitor.visit_none()
    }

    fn visit_unit<E: Error>(self) -> Result<V::Value, E> {
        self.visitor.visit_unit()
    }

    fn visit_some<D: Deserializer<'de>>(self, de: D) -> Result<V::Value, D::Error> {
        self.visitor.visit_some(Located { de, at: self.at, chosen: None })
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, de: D) -> Result<V::Value, D::Error> {
        self.visitor.visit_newtype_struct(Located { de, at: self.at, chosen: None })
    }

    fn visit_seq<A: SeqAccess<'de>>(self, access: A) -> Result<V::Value, A::Error> {
        self.visitor.visit_seq(Access { access, at: self.at, parts: self.parts, next: 0 })
    }

    fn visit_map<A: MapAccess<'de>>(self, access: A) -> Result<V::Value, A::Error> {
        self.visitor.visit_map(Access { access, at: self.at, parts: Parts::Positions, next: 0 })
    }

    fn visit_enum<A: EnumAccess<'de>>(self, data: A) -> Result<V::Value, A::Error> {
        self.visitor.visit_enum(Enum { data, at: self.at, variants: self.variants })
    }
}

/// The parts of a sequence or map.
struct Access<'a, A> {
    access: A,
    at: &'a At<'a>,
    parts: Parts,
    next: usize,
}

impl<'de, A: SeqAccess<'de>> SeqAccess<'de> for Access<'_, A> {
    type Error = A::Error;

    #[inline]
    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, A::Error> {
        let at = self.at.inner(self.parts.step(self.next));
        self.next += 1;
        self.access.next_element_seed(Seed { seed, at: &at, chosen: None })
    }

    fn size_hint(&self) -> Option<usize> {
        self.access.size_hint()
    }
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for Access<'_, A> {
    type Error = A::Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, A::Error> {
        let at = self.at.inner(Step::Position(self.next));
        self.access.next_key_seed(Seed { seed, at: &at, chosen: None })
    }

    fn next_value_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<T::Value, A::Error> {
        let at = self.at.inner(Step::Position(self.next));
        self.next += 1;
        self.access.next_value_seed(Seed { seed, at: &at, chosen: None })
    }

    fn size_hint(&self) -> Option<usize> {
        self.access.size_hint()
    }
}

struct Enum<'a, A> {
    data: A,
    at: &'a At<'a>,
    variants: &'static [&'static str],
}

impl<'de, 'a, A: EnumAccess<'de>> EnumAccess<'de> for Enum<'a, A> {
    type Error = A::Error;
    type Variant = Variant<'a, A::Variant>;

    fn variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<(T::Value, Self::Variant), A::Error> {
        let chosen = Cell::new(usize::MAX);
        let (value, access) = self.data.variant_seed(Seed { seed, at: self.at, chosen: Some(&chosen) })?;
        let step = self.variants.get(chosen.get()).map_or(Step::Whole, |name| Step::Name(name));
        Ok((value, Variant { access, at: self.at.inner(step) }))
    }
}

struct Variant<'a, A> {
    access: A,
    at: At<'a>,
}

impl<'de, A: VariantAccess<'de>> VariantAccess<'de> for Variant<'_, A> {
    type Error = A::Error;

    fn unit_variant(self) -> Result<(), A::Error> {
        self.access.unit_variant()
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, A::Error> {
        let at = self.at.inner(Step::Argument(0));
        self.access.newtype_variant_seed(Seed { seed, at: &at, chosen: None })
    }

    fn tuple_variant<V: Visitor<'de>>(self, len: usize, visitor: V) -> Result<V::Value, A::Error> {
        let at = &self.at;
        self.access
            .tuple_variant(len, Visit { visitor, at, parts: Parts::Arguments, variants: &[], chosen: None })
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, A::Error> {
        let at = &self.at;
        let visit = Visit { visitor, at, parts: Parts::Fields(fields), variants: &[], chosen: None };
        self.access.struct_variant(fields, visit)
    }
}

/// What is wrong, without the names of bincode.
pub(super) fn reason(error: &DecodeError) -> String {
    match error {
        DecodeError::UnexpectedEnd { .. } => "the bytes end too early".into(),
        DecodeError::LimitExceeded => "a length is greater than the number of bytes".into(),
        DecodeError::InvalidBooleanValue(value) => format!("{value} is not a `bool`"),
        DecodeError::InvalidCharEncoding(_) => "the bytes are not a character".into(),
        DecodeError::Utf8 { .. } => "the bytes are not text".into(),
        DecodeError::OutsideUsizeRange(value) => format!("{value} is too large for a `usize`"),
        DecodeError::OtherString(text) => text.clone(),
        DecodeError::Other(text) => (*text).into(),
        DecodeError::Serde(_) => {
            "its type must be in the bytes, and they have values only (serde's `deserialize_any`)".into()
        }
        _ => "the bytes are not a value of this type".into(),
    }
}
