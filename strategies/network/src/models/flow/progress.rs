//! When flows end, if groups of flows change their rates together.
//!
//! This is the virtual time of fair queueing (A. Demers, S. Keshav, S. Shenker, "Analysis and simulation of a fair
//! queueing algorithm", 1989; A. K. Parekh and R. G. Gallager, "A generalized processor sharing approach to flow control",
//! 1993). All flows of a group have the same level x, and flow f has the rate w_f x. The *clock* of the group is the
//! integral of x over time. A flow with b_f bytes left ends when the clock has advanced by b_f / w_f. So the flows of a group
//! end in the order of their ends on its clock, and a new level changes only one time: when the next flow of the group
//! ends.

use super::tournament::Tournament;

/// A flow in no group.
const NONE: u32 = u32::MAX;

/// The maximum reading of a clock, as a multiple of the clock time that a joining flow needs. A clock with a higher
/// reading is set back, because the sum of a large reading and a small need loses digits.
const MAX_READING: f64 = 65536.0;

/// Groups of flows, and the time when each flow ends. The caller chooses the numbers of flows.
pub struct Progress {
    groups: Vec<Group>,
    flows: Vec<Flow>,
    /// By group: when its next flow ends.
    ending: Tournament,
}

/// A group of flows.
struct Group {
    /// The reading of the clock at `since` seconds, and the level from then on.
    clock: f64,
    since: f64,
    level: f64,
    /// The flows by place, and by place: when the flow ends, on the clock.
    members: Vec<u32>,
    ends: Tournament,
}

/// A flow.
#[derive(Clone, Copy)]
struct Flow {
    group: u32,
    /// Its place in the group.
    place: u32,
    /// The reading of the clock at its end. For a flow in no group: the clock time that it needs.
    end: f64,
}

impl Progress {
    /// Groups without flows.
    pub fn new(groups: usize) -> Self {
        let group =
            || Group { clock: 0.0, since: 0.0, level: 0.0, members: Vec::new(), ends: Tournament::new() };
        Progress {
            groups: std::iter::repeat_with(group).take(groups).collect(),
            flows: Vec::new(),
            ending: Tournament::new(),
        }
    }

    /// Adds a flow, in no group, that ends after `need` of clock time: its bytes divided by its weight.
    pub fn start(&mut self, flow: u32, need: f64) {
        let fresh = Flow { group: NONE, place: 0, end: need };
        if flow as usize >= self.flows.len() {
            self.flows.resize(flow as usize + 1, fresh);
        }
        self.flows[flow as usize] = fresh;
    }

    /// Removes a flow from its group. The other flows of the group keep their level.
    pub fn end(&mut self, flow: u32) {
        let Flow { group, place, .. } = self.flows[flow as usize];
        let it = &mut self.groups[group as usize];
        it.members.swap_remove(place as usize);
        if let Some(&moved) = it.members.get(place as usize) {
            self.flows[moved as usize].place = place;
            it.ends.set(place as usize, self.flows[moved as usize].end);
        }
        it.ends.set(it.members.len(), f64::INFINITY);
        self.update_end(group);
    }

    /// Sets the level of a group from `now` on.
    pub fn set_level(&mut self, now: f64, group: u32, level: f64) {
        self.groups[group as usize].advance(now);
        self.groups[group as usize].level = level;
        self.update_end(group);
    }

    /// Moves a flow to a group, at `now`.
    pub fn move_to(&mut self, now: f64, flow: u32, group: u32) {
        let Flow { group: before, end, .. } = self.flows[flow as usize];
        if before == group {
            return;
        }
        let mut need = end;
        if before != NONE {
            self.groups[before as usize].advance(now);
            // Rounding may put the clock past the end of the flow.
            need = f64::max(0.0, end - self.groups[before as usize].clock);
            self.end(flow);
        }
        let it = &mut self.groups[group as usize];
        it.advance(now);
        if it.members.is_empty() || it.clock > MAX_READING * need {
            self.reset(group);
        }
        let it = &mut self.groups[group as usize];
        let (place, end) = (it.members.len() as u32, it.clock + need);
        it.members.push(flow);
        it.ends.set(place as usize, end);
        self.flows[flow as usize] = Flow { group, place, end };
        self.update_end(group);
    }

    /// When the next flow ends, in seconds; infinity without flows.
    pub fn next_end(&self) -> f64 {
        self.ending.earliest()
    }

    /// A flow that ends next. There must be one.
    pub fn next_flow(&self) -> u32 {
        let group = &self.groups[self.ending.winner()];
        group.members[group.ends.winner()]
    }

    /// Sets the clock of a group to 0.
    fn reset(&mut self, group: u32) {
        let Group { clock, members, ends, .. } = &mut self.groups[group as usize];
        let reading = std::mem::replace(clock, 0.0);
        for (place, &flow) in members.iter().enumerate() {
            let end = &mut self.flows[flow as usize].end;
            *end -= reading;
            ends.set(place, *end);
        }
    }

    /// Finds when the next flow of a group ends.
    fn update_end(&mut self, group: u32) {
        let Group { clock, since, level, ref members, ref ends } = self.groups[group as usize];
        let end = if members.is_empty() { f64::INFINITY } else { since + (ends.earliest() - clock) / level };
        self.ending.set(group as usize, end);
    }
}

impl Group {
    /// Advances the clock to `now`. During an update at `now` the level may be infinite, and no time passes.
    fn advance(&mut self, now: f64) {
        if now > self.since {
            self.clock += self.level * (now - self.since);
            self.since = now;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flows_end_in_the_order_of_the_clock_of_their_group() {
        let mut progress = Progress::new(2);
        for (flow, need) in [(0, 6.0), (1, 2.0), (2, 3.0)] {
            progress.start(flow, need);
            progress.set_level(0.0, 1, 2.0);
            progress.move_to(0.0, flow, 1);
        }
        assert_eq!((progress.next_end(), progress.next_flow()), (1.0, 1));
        progress.end(1);
        progress.set_level(1.0, 1, 1.0);
        assert_eq!((progress.next_end(), progress.next_flow()), (2.0, 2));
        // Flow 0 needs 4 more on the clock of its group, and flow 2 needs 1 more.
        progress.set_level(1.5, 0, 0.5);
        progress.move_to(1.5, 2, 0);
        assert_eq!((progress.next_end(), progress.next_flow()), (2.5, 2));
        progress.end(2);
        assert_eq!((progress.next_end(), progress.next_flow()), (5.0, 0));
        progress.end(0);
        assert_eq!(progress.next_end(), f64::INFINITY);
    }

    #[test]
    fn a_small_flow_that_joins_a_large_one_ends_exactly() {
        let mut progress = Progress::new(1);
        progress.start(0, 1e12);
        progress.set_level(0.0, 0, 1e9);
        progress.move_to(0.0, 0, 0);
        progress.start(1, 1e-3);
        progress.set_level(1.0, 0, 1e-3);
        progress.move_to(1.0, 1, 0);
        assert_eq!((progress.next_end(), progress.next_flow()), (2.0, 1));
        progress.end(1);
        progress.set_level(2.0, 0, 1e9);
        // In the second before, flow 0 needed 1e-3 less on the clock.
        assert!((progress.next_end() - (1001.0 - 1e-12)).abs() < 1e-12);
    }
}
