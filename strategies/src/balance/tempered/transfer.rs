//! The rules of transfers of `TemperedLB`: when one is made, and the order of the objects of a PE above the average.

use std::cmp::Reverse;
use std::str::FromStr;

use super::Word;
use crate::balance::load::order;
use crate::balance::members::Pile;
use crate::decentral::Item;

/// When a transfer is made (Lifflander et al. 2021, section V-B).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Criterion {
    /// The receiver stays at or below the average.
    Grapevine,
    /// The receiver stays below the previous load of the donor.
    ModifiedGrapevine,
}

impl Criterion {
    /// Whether a PE with `donor_seconds` may raise a receiver to `after_seconds`.
    pub(super) fn allows(self, donor_seconds: f64, after_seconds: f64, target_seconds: f64) -> bool {
        match self {
            Criterion::Grapevine => after_seconds <= target_seconds,
            Criterion::ModifiedGrapevine => after_seconds < donor_seconds,
        }
    }
}

impl FromStr for Criterion {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Word(text.into()).value_in(&[
            ("Grapevine", Criterion::Grapevine),
            ("ModifiedGrapevine", Criterion::ModifiedGrapevine),
        ])
    }
}

/// The order in which the objects of a PE are offered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ordering {
    /// The order of the database.
    Arbitrary,
    /// By id.
    ElmId,
    /// First the lightest object that alone brings the PE below the average, then the lighter objects, heaviest
    /// first, then the heavier objects, lightest first.
    FewestMigrations,
    /// As [`Self::FewestMigrations`], but first the lightest object that suffices together with all lighter objects.
    SmallObjects,
    /// Heaviest first.
    LargestObjects,
}

impl Ordering {
    /// The objects of a PE in the order in which they are offered.
    pub(super) fn of(self, pile: &Pile, target_seconds: f64) -> Vec<Item> {
        let mut items = pile.items.clone();
        let over = pile.seconds - target_seconds;
        match self {
            Ordering::Arbitrary => items.sort_unstable_by_key(|item| item.key),
            Ordering::ElmId => items.sort_unstable_by_key(|item| (item.id, item.key)),
            Ordering::LargestObjects => heaviest_first(&mut items),
            Ordering::FewestMigrations => {
                let enough = items.partition_point(|item| pile.seconds_of(item) <= over);
                heaviest_first_up_to(&mut items, enough);
            }
            Ordering::SmallObjects => {
                let mut sum = 0.0;
                let enough = items.iter().position(|item| {
                    sum += pile.seconds_of(item);
                    sum >= over
                });
                let last = items.len().saturating_sub(1);
                heaviest_first_up_to(&mut items, enough.unwrap_or(last));
            }
        }
        items
    }
}

fn heaviest_first(items: &mut [Item]) {
    items.sort_unstable_by_key(|item| (Reverse(order(item.load_seconds)), item.key));
}

/// Reorders objects that are sorted lightest first: the objects up to `last`, heaviest first, then the
/// others.
fn heaviest_first_up_to(items: &mut [Item], last: usize) {
    let end = (last + 1).min(items.len());
    heaviest_first(&mut items[..end]);
}

impl FromStr for Ordering {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Word(text.into()).value_in(&[
            ("Arbitrary", Ordering::Arbitrary),
            ("ElmID", Ordering::ElmId),
            ("FewestMigrations", Ordering::FewestMigrations),
            ("SmallObjects", Ordering::SmallObjects),
            ("LargestObjects", Ordering::LargestObjects),
        ])
    }
}

/// The unit of a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transfer {
    /// One object.
    Original,
    /// One object, or an exchange of two objects, with both PEs locked. vt exchanges clusters of objects that share
    /// memory. The database does not record shared memory, so each object is a cluster.
    SwapClusters,
}

impl FromStr for Transfer {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Word(text.into())
            .value_in(&[("Original", Transfer::Original), ("SwapClusters", Transfer::SwapClusters)])
    }
}
