//! The names of the fields of a type.

use super::State;
use serde::de::value::Error;
use serde::de::{Deserializer, Error as _, Visitor};
use std::cell::Cell;

/// The names of the fields of a struct whose `Deserialize` is derived, in their order; none of other types.
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

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map enum identifier ignored_any
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn structs_have_names_and_other_types_have_none() {
        #[derive(serde::Serialize, serde::Deserialize)]
        struct Ball<T> {
            #[serde(rename = "place")]
            _at: [f64; 3],
            #[serde(skip)]
            _cache: Vec<u8>,
            _inner: T,
        }
        assert_eq!(fields::<Ball<String>>(), ["place", "_inner"]);
        for none in [fields::<u32>(), fields::<(u8, String)>(), fields::<Option<Vec<u8>>>()] {
            assert!(none.is_empty());
        }
    }
}
