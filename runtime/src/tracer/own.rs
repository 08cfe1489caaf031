//! What a trace keeps of the executions of the runtime on a PE.

use std::collections::VecDeque;

/// The own executions of a PE, by index. Those that no message or order refers to are forgotten, except for the last.
#[derive(Default)]
pub(super) struct OwnExecutions {
    /// The index of the first one in the list.
    first: usize,
    pub(super) list: VecDeque<u32>,
}

impl OwnExecutions {
    /// The index of the next own execution.
    pub(super) fn next_index(&self) -> usize {
        self.first + self.list.len()
    }

    pub(super) fn get(&self, index: usize) -> Option<u32> {
        self.list.get(index.checked_sub(self.first)?).copied()
    }

    pub(super) fn last(&self) -> Option<u32> {
        self.list.back().copied()
    }

    /// Forgets those before `index`, except for the last.
    pub(super) fn forget_before(&mut self, index: usize) {
        while self.first < index && self.list.len() > 1 {
            self.list.pop_front();
            self.first += 1;
        }
    }
}
