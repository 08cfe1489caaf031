//! The names of the fields or variants of a type.

use super::State;
use serde::de::value::Error;
use serde::de::{Deserializer, Error as _, Visitor};
use std::cell::Cell;

/// The names of the fields of a struct, or of the variants of an enum, whose `Deserialize` is derived, in their order; none of other
/// types.
pub(crate) fn fields<T: State>() -> &'static [&'static str] {
    let names = Cell::new(&[][..]);
    // It fails, as there is no value.
    let _ = T::read(Names(&names));
    names.get()
}

/// Notes the names for which a `Deserialize` asks.
struct Names<'a>(&'a Cell<&'static [&'static str]>);

impl<'de> Deserializer<'de> for Names<'_> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Error> {
        Err(Error::custom("no value"))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.0.set(fields);
        self.deserialize_any(visitor)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.0.set(variants);
        self.deserialize_any(visitor)
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map identifier ignored_any
    }
}

/// The parameters of a generic type, as in `<f64, 3>`, without the modules of their types; empty for other types.
pub(crate) fn parameters<T>() -> String {
    let name = std::any::type_name::<T>();
    let begin = name.find('<').unwrap_or(name.len());
    let ends_path = |c: char| !(c.is_alphanumeric() || c == '_' || c == ':');
    name[begin..].split_inclusive(ends_path).map(|word| word.rsplit("::").next().unwrap_or(word)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn structs_and_enums_have_names_and_other_types_have_none() {
        #[derive(serde::Serialize, serde::Deserialize)]
        struct Ball<T> {
            #[serde(rename = "place")]
            _at: [f64; 3],
            #[serde(skip)]
            _cache: Vec<u8>,
            _inner: T,
        }
        assert_eq!(fields::<Ball<String>>(), ["place", "_inner"]);
        #[derive(serde::Serialize, serde::Deserialize)]
        enum Place {
            Here,
            #[serde(rename = "over there")]
            There(u8),
            #[serde(skip)]
            _Nowhere,
        }
        let _ = (Place::Here, Place::There(0));
        assert_eq!(fields::<Place>(), ["Here", "over there"]);
        for none in [fields::<()>(), fields::<u32>(), fields::<(u8, String)>(), fields::<Option<Vec<u8>>>()] {
            assert!(none.is_empty());
        }
    }

    #[test]
    fn parameters_have_no_modules() {
        struct Two<A, B>(A, B);
        let _ = Two(0, 0);
        assert_eq!(parameters::<Two<Vec<f64>, (u8, Option<String>)>>(), "<Vec<f64>, (u8, Option<String>)>");
        assert_eq!(parameters::<String>(), "");
    }
}
