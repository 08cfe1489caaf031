//! The local time of a PE by equations (3) and (5): without distances and contention.

use equipoise_network::program::Waits;

/// Work and completion time of tasks, in ticks, if messages take one hop and meet no other message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct LocalTime {
    /// The sum of w.
    pub(super) work: i64,
    /// For one task: w + q less the saved wait. For several tasks: the sum or the maximum of these, depending on the waits.
    pub(super) end: i64,
}

impl LocalTime {
    /// The local time of two disjoint sets of tasks on one PE.
    pub(super) fn with(self, other: LocalTime, waits: Waits) -> LocalTime {
        let end = match waits {
            Waits::Added => self.end + other.end,
            Waits::Overlapped => self.end.max(other.end),
        };
        LocalTime { work: self.work + other.work, end }
    }

    /// The completion time of the PE; at least the total work.
    pub(super) fn ticks(self) -> i64 {
        self.work.max(self.end)
    }
}
