//! The scheduling rule of a PE: which of its waiting messages it takes next. The simulated machine and the simulation
//! of a trace share this rule.
//!
//! Messages of expedited arrays come first, except that an ordinary message is taken after 64 of them in a row.
//! Messages of the PE to itself and messages of other PEs alternate, so that neither starves the other.

/// After this number of expedited messages in a row, an ordinary message is taken. Otherwise an expedited array that
/// sends messages to itself would starve all other arrays.
const EXPEDITED_IN_A_ROW: u32 = 64;

/// One of the four kinds of waiting messages of a PE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// 0 for messages of expedited arrays, 1 for all others.
    pub class: usize,
    /// Whether the PE sent the message to itself.
    pub is_own: bool,
}

/// Chooses the kind of message that a PE takes next.
#[derive(Clone, Debug, Default)]
pub struct MessageScheduler {
    /// Expedited messages taken in a row while ordinary messages waited.
    expedited_in_a_row: u32,
    /// By class: whether the next message is one of the PE to itself, if there is one.
    own_first: [bool; 2],
}

impl MessageScheduler {
    /// The kind of message that is taken next, or `None` if no message waits. `own[class]` and `others[class]` state
    /// which kinds of messages wait.
    pub fn next(&mut self, own: [bool; 2], others: [bool; 2]) -> Option<Waiting> {
        let waits = [0, 1].map(|class| own[class] || others[class]);
        let class = match waits {
            [false, false] => return None,
            [true, true] => usize::from(self.expedited_in_a_row >= EXPEDITED_IN_A_ROW),
            [expedited, _] => usize::from(!expedited),
        };
        self.expedited_in_a_row = if class == 0 && waits[1] { self.expedited_in_a_row + 1 } else { 0 };
        let is_own = own[class] && (self.own_first[class] || !others[class]);
        self.own_first[class] = !is_own;
        Some(Waiting { class, is_own })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_and_other_messages_alternate_and_expedited_messages_do_not_starve_others() {
        let mut scheduler = MessageScheduler::default();
        assert_eq!(scheduler.next([false; 2], [false; 2]), None);
        let mut kinds = |own, others, count| -> Vec<(usize, bool)> {
            let next =
                || scheduler.next(own, others).map(|it| (it.class, it.is_own)).expect("a message waits");
            std::iter::repeat_with(next).take(count).collect()
        };
        assert_eq!(kinds([false, true], [false, true], 4), [(1, false), (1, true), (1, false), (1, true)]);
        assert_eq!(kinds([false, true], [false, false], 2), [(1, true); 2]);
        assert_eq!(kinds([true, true], [true, true], 2), [(0, false), (0, true)]);
        let long = kinds([true, true], [false, false], 130);
        let others: Vec<usize> = (0..130).filter(|&at| long[at].0 == 1).collect();
        assert_eq!(others, [62, 127]);
    }
}
