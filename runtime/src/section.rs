//! Sections: fixed sets of elements of one or several arrays. A section is its members, so two sections with the same
//! members are the same section, wherever and by whichever element they were made.

use crate::load::{array_and_rank, element_key};
use equipoise_model::random::splitmix;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::sync::Arc;

/// The members of a section: [`element_key`]s in ascending order, shared by all copies in a process.
#[derive(Clone, Debug)]
pub(crate) struct Members(Arc<List>);

#[derive(Debug)]
struct List {
    id: SectionId,
    keys: Box<[u64]>,
}

/// What stands for the members of a section where the list would be too long. It follows from the members.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(crate) struct SectionId {
    /// The array of the first member; of an empty section, any array.
    pub(crate) array: u16,
    /// The number of members.
    pub(crate) len: u32,
    /// Two hashes of the members. With 128 bits, two sections of a run practically never have the same.
    hash: [u64; 2],
}

/// The elements that contribute to a reduction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) enum Source {
    /// All elements of an array.
    Array(u16),
    /// The members of a section.
    Section(SectionId),
}

impl Source {
    /// The array that contributes, or the array of the first member.
    pub(crate) fn array(self) -> u16 {
        match self {
            Source::Array(array) | Source::Section(SectionId { array, .. }) => array,
        }
    }
}

/// The start values of the two hashes.
const SEEDS: [u64; 2] = [0x243f_6a88_85a3_08d3, 0x1319_8a2e_0370_7344];

impl Members {
    /// The elements with these keys. An empty section belongs to `array`.
    ///
    /// # Panics
    /// If there are 2^32 members or more.
    pub(crate) fn new(array: u16, mut keys: Vec<u64>) -> Self {
        keys.sort_unstable();
        keys.dedup();
        let Ok(len) = u32::try_from(keys.len()) else {
            panic!(
                "a section of {} members is too large; a section has at most 2^32 - 1 members",
                keys.len()
            );
        };
        let array = keys.first().map_or(array, |&key| array_and_rank(key).0);
        let hash = |seed: u64| keys.iter().fold(seed, |hash, &key| splitmix(hash ^ key));
        let id = SectionId { array, len, hash: SEEDS.map(hash) };
        Members(Arc::new(List { id, keys: keys.into() }))
    }

    /// Elements of one array, by rank.
    pub(crate) fn of(array: u16, ranks: impl Iterator<Item = u32>) -> Self {
        Self::new(array, ranks.map(|rank| element_key(array, rank)).collect())
    }

    /// The members of both.
    pub(crate) fn and(&self, other: &Members) -> Members {
        let array = self.id().array.min(other.id().array);
        Self::new(array, [self.keys(), other.keys()].concat())
    }

    pub(crate) fn id(&self) -> SectionId {
        self.0.id
    }

    pub(crate) fn keys(&self) -> &[u64] {
        &self.0.keys
    }

    /// The position of an element among the members.
    pub(crate) fn position(&self, key: u64) -> Option<u32> {
        self.keys().binary_search(&key).ok().map(|at| at as u32)
    }

    /// The members of each array.
    pub(crate) fn by_array(&self) -> impl Iterator<Item = (u16, &[u64])> {
        let same_array = |a: &u64, b: &u64| array_and_rank(*a).0 == array_and_rank(*b).0;
        self.keys().chunk_by(same_array).map(|keys| (array_and_rank(keys[0]).0, keys))
    }
}

impl PartialEq for Members {
    fn eq(&self, other: &Self) -> bool {
        self.id() == other.id()
    }
}

/// Encoded members: an array of the section, and the ranks of each array.
type Encoded<R> = (u16, Vec<(u16, R)>);

#[derive(Serialize, Deserialize)]
struct Ranks(#[serde(with = "crate::codec::numbers")] Vec<u32>);

impl Serialize for Members {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let ranks = |keys: &[u64]| Ranks(keys.iter().map(|&key| array_and_rank(key).1).collect());
        let arrays = self.by_array().map(|(array, keys)| (array, ranks(keys))).collect();
        let encoded: Encoded<Ranks> = (self.id().array, arrays);
        encoded.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Members {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let (array, arrays) = Encoded::<Ranks>::deserialize(deserializer)?;
        let keys = |(array, Ranks(ranks)): (u16, Ranks)| {
            ranks.into_iter().map(move |rank| element_key(array, rank)).collect::<Vec<u64>>()
        };
        Ok(Self::new(array, arrays.into_iter().flat_map(keys).collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec;

    #[test]
    fn a_section_is_its_members() {
        let section = Members::of(1, [7, 3, 3, 5].into_iter());
        assert_eq!(section, Members::of(1, [3, 5, 7].into_iter()));
        assert_ne!(section, Members::of(1, [3, 5, 8].into_iter()));
        assert_ne!(section, Members::of(2, [3, 5, 7].into_iter()));
        assert_eq!(
            (section.position(element_key(1, 5)), section.position(element_key(0, 5))),
            (Some(1), None)
        );
        let both = section.and(&Members::of(0, [9].into_iter()));
        assert_eq!(both, Members::of(0, [9].into_iter()).and(&section));
        let arrays: Vec<(u16, usize)> = both.by_array().map(|(array, keys)| (array, keys.len())).collect();
        assert_eq!(arrays, [(0, 1), (1, 3)]);
    }

    #[test]
    fn members_are_encoded_and_decoded() {
        for members in [
            Members::of(3, [].into_iter()),
            Members::of(3, [1, 2].into_iter()).and(&Members::of(1, [u32::MAX].into_iter())),
        ] {
            let decoded: Members = codec::decode(&codec::encode(&members).unwrap()).unwrap();
            assert_eq!(decoded, members);
            assert_eq!(decoded.keys(), members.keys());
        }
    }
}
