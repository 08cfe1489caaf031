//! Values by number. A hash map would be compiled for each type of values, that is for each type of chares; here, one map serves
//! all, and a vector has the values.

use rustc_hash::FxHashMap;

/// Values by number, in no order.
pub(crate) struct Keyed<V> {
    index: Index,
    values: Vec<(u64, V)>,
}

impl<V> Default for Keyed<V> {
    fn default() -> Self {
        Keyed { index: Index::default(), values: Vec::new() }
    }
}

impl<V> Keyed<V> {
    pub(crate) fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// The numbers, sorted.
    pub(crate) fn sorted_keys(&self) -> Vec<u64> {
        let mut keys: Vec<u64> = self.values.iter().map(|(key, _)| *key).collect();
        keys.sort_unstable();
        keys
    }

    pub(crate) fn get(&self, key: u64) -> Option<&V> {
        let (_, value) = self.values.get(self.index.find(key)?)?;
        Some(value)
    }

    pub(crate) fn get_mut(&mut self, key: u64) -> Option<&mut V> {
        let (_, value) = self.values.get_mut(self.index.find(key)?)?;
        Some(value)
    }

    /// The value of a number, which is `value` if it had none.
    pub(crate) fn get_or_insert(&mut self, key: u64, value: V) -> &mut V {
        let at = self.index.find(key).unwrap_or_else(|| {
            self.values.push((key, value));
            self.index.add(key)
        });
        &mut self.values[at].1
    }

    /// Takes the value of a number.
    pub(crate) fn remove(&mut self, key: u64) -> Option<V> {
        let at = self.index.remove(key)?;
        let (_, value) = self.values.swap_remove(at);
        if let Some((moved, _)) = self.values.get(at) {
            self.index.moves(*moved, at);
        }
        Some(value)
    }

    pub(crate) fn values_mut(&mut self) -> impl Iterator<Item = &mut V> {
        self.values.iter_mut().map(|(_, value)| value)
    }
}

/// The places of values by number.
#[derive(Default)]
struct Index(FxHashMap<u64, usize>);

impl Index {
    fn find(&self, key: u64) -> Option<usize> {
        self.0.get(&key).copied()
    }

    /// Adds a number at the end; returns its place.
    fn add(&mut self, key: u64) -> usize {
        let at = self.0.len();
        self.0.insert(key, at);
        at
    }

    fn remove(&mut self, key: u64) -> Option<usize> {
        self.0.remove(&key)
    }

    fn moves(&mut self, key: u64, at: usize) {
        self.0.insert(key, at);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        #[test]
        fn values_are_those_of_a_map(steps in proptest::collection::vec((0u64..8, 0u8..4, any::<u16>()), 0..100)) {
            let (mut keyed, mut map) = (Keyed::default(), BTreeMap::new());
            for (key, kind, value) in steps {
                match kind {
                    0 => prop_assert_eq!(keyed.remove(key), map.remove(&key)),
                    1 => prop_assert_eq!(keyed.get_mut(key).map(|v: &mut u16| std::mem::replace(v, value)),
                        map.get_mut(&key).map(|v| std::mem::replace(v, value))),
                    _ => prop_assert_eq!(keyed.get_or_insert(key, value), map.entry(key).or_insert(value)),
                }
                prop_assert_eq!(keyed.get(key), map.get(&key));
                prop_assert_eq!(keyed.is_empty(), map.is_empty());
                prop_assert_eq!(keyed.sorted_keys(), map.keys().copied().collect::<Vec<_>>());
                prop_assert_eq!(keyed.values_mut().map(|v| u64::from(*v)).sum::<u64>(),
                    map.values().map(|v| u64::from(*v)).sum::<u64>());
            }
        }
    }
}
