//! What a chare needs to migrate.

use serde::{Deserializer, Serialize, Serializer, de::DeserializeOwned};

/// A struct that serde can write and read: the state of a chare, which migrates as bytes. Implemented for every type that
/// derives `Serialize` and `Deserialize`.
///
/// `Chare` requires this trait and not serde's two: then rustc reports a struct that lacks them once, with the notes
/// below.
#[diagnostic::on_unimplemented(
    message = "the chare `{Self}` lacks serde's `Serialize` or `Deserialize`",
    label = "lacks `Serialize` or `Deserialize`",
    note = "an element migrates as bytes: write `#[derive(Serialize, Deserialize)]` on `{Self}`, with `use equipoise::prelude::*`",
    note = "the derives need a dependency in Cargo.toml: `serde = {{ version = \"1\", features = [\"derive\"] }}`"
)]
pub trait State: Sized {
    /// Writes the state.
    ///
    /// # Errors
    /// If the type's `Serialize` or the serializer fails.
    fn write<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error>;

    /// Reads what [`write`](Self::write) wrote.
    ///
    /// # Errors
    /// If the type's `Deserialize` or the deserializer fails.
    fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error>;
}

#[diagnostic::do_not_recommend]
impl<T: Serialize + DeserializeOwned> State for T {
    #[inline]
    fn write<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.serialize(serializer)
    }

    #[inline]
    fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        T::deserialize(deserializer)
    }
}
