//! Whose turn it is on a PE: the rule by which a simulated machine and the replay of a trace choose among the
//! messages that wait there.
//!
//! Messages of expedited arrays come first, but for one after many of them in a row; what a PE has for itself and
//! what came from others take turns, for neither may starve the other.

/// After so many expedited messages another one has its turn, or an array that talks to itself would keep all others
/// from theirs.
const EXPEDITED_IN_A_ROW: u32 = 64;

/// One of the four kinds of messages that wait on a PE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// 0 for messages of expedited arrays, 1 for all others.
    pub class: usize,
    /// Whether the PE sent it to itself.
    pub is_own: bool,
}

/// What a PE remembers from one turn to the next.
#[derive(Clone, Debug, Default)]
pub struct Turns {
    /// How many expedited messages it took in a row while others waited.
    expedited: u32,
    /// Whether its own come first next time, by class.
    own_next: [bool; 2],
}

impl Turns {
    /// The kind of message that is taken next, where `own[class]` and `others[class]` say of which there are some;
    /// none if there are none.
    pub fn next(&mut self, own: [bool; 2], others: [bool; 2]) -> Option<Waiting> {
        let waits = [0, 1].map(|class| own[class] || others[class]);
        let class = match waits {
            [false, false] => return None,
            [true, true] => usize::from(self.expedited >= EXPEDITED_IN_A_ROW),
            [expedited, _] => usize::from(!expedited),
        };
        self.expedited = if class == 0 && waits[1] { self.expedited + 1 } else { 0 };
        let is_own = own[class] && (self.own_next[class] || !others[class]);
        self.own_next[class] = !is_own;
        Some(Waiting { class, is_own })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_take_turns_and_expedited_ones_go_first_but_not_for_ever() {
        let mut turns = Turns::default();
        assert_eq!(turns.next([false; 2], [false; 2]), None);
        let mut kinds = |own, others, count| -> Vec<(usize, bool)> {
            let next = || turns.next(own, others).map(|it| (it.class, it.is_own)).expect("something waits");
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
