//! The state of a PE for load-balancing steps without a centre (`steps/decentral.rs`).

use crate::order::Account;
use equipoise_model::costs::EndCosts;
use equipoise_strategies::decentral::{Letters, Member, Outcome, Totals};
use rustc_hash::FxHashMap;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

/// The state of a PE for steps without a centre.
#[derive(Default)]
pub(crate) struct Meeting {
    pub(crate) current: RefCell<Option<Current>>,
    /// The letters that this PE has not read, by step and round. Some may be here before this PE has begun the step.
    pub(crate) letters: RefCell<BTreeMap<(u32, u32), Letters>>,
    /// What PEs of this subtree have told, also before this PE has begun the round.
    pub(crate) told: Cell<Told>,
}

/// What some PEs of a subtree have told in a round.
#[derive(Clone, Copy, Default)]
pub(crate) struct Told {
    pub(crate) pes: u32,
    pub(crate) totals: Totals,
    pub(crate) account: Account,
}

impl Meeting {
    /// Adds what PEs have told.
    pub(crate) fn add(&self, pes: u32, totals: &Totals, account: &Account) {
        let mut told = self.told.get();
        told.pes += pes;
        told.totals.add(totals);
        told.account.add(account);
        self.told.set(told);
    }
}

/// A step in progress.
pub(crate) struct Current {
    pub(crate) step: u32,
    /// What migrations cost, if it is known.
    pub(crate) migration: Option<EndCosts>,
    pub(crate) round: u32,
    pub(crate) member: Box<dyn Member>,
    /// The letters of this round that have not arrived.
    pub(crate) under_way: u64,
    /// What this PE adds to the account.
    pub(crate) account: Account,
    /// The bytes of the elements that could leave, by key.
    pub(crate) bytes_of: FxHashMap<u64, u64>,
    /// The decision of this PE, when it is made.
    pub(crate) outcome: Option<Outcome>,
    pub(crate) strategy_seconds: f64,
}

impl Current {
    /// A step before its first round.
    pub(crate) fn new(
        (step, migration): (u32, Option<EndCosts>),
        member: Box<dyn Member>,
        account: Account,
        bytes_of: FxHashMap<u64, u64>,
    ) -> Current {
        Current {
            step,
            migration,
            round: 0,
            member,
            under_way: 0,
            account,
            bytes_of,
            outcome: None,
            strategy_seconds: 0.0,
        }
    }
}
