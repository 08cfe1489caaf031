//! What the tasks of a PE have to do by themselves: equations (3) and (5), with the waits of several together.

use crate::program::Waits;

/// What tasks work, and when they are done, in ticks, if no message travels far or meets another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Own {
    /// The sum of w.
    pub(super) work: i64,
    /// Of one task, w + q less what it saves; of several, the sum or the largest of these.
    pub(super) end: i64,
}

impl Own {
    /// That of two lots of tasks on one PE.
    pub(super) fn with(self, other: Own, waits: Waits) -> Own {
        let end = match waits {
            Waits::Added => self.end + other.end,
            Waits::Overlapped => self.end.max(other.end),
        };
        Own { work: self.work + other.work, end }
    }

    /// When the PE is done: never before all have worked.
    pub(super) fn ticks(self) -> i64 {
        self.work.max(self.end)
    }
}
