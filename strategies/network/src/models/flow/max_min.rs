//! Max-min fair rates, updated incrementally when flows start and end.
//!
//! Source: D. Bertsekas and R. Gallager, Data Networks (2nd edition 1992), section 6.5.2, here with weights.
//! Flow f of weight w_f has rate w_f x_f, where x_f is its *level*. An allocation is max-min fair if and
//! only if every flow has a *bottleneck*: a link l without free capacity (sum over its flows of w_f x_f = C_l), on
//! which no flow has a higher level. Progressive filling finds this allocation: all levels rise together from 0; when
//! a link has no free capacity left, its flows stop at this level.
//!
//! When flows start or end, the filling is repeated, but only for the affected links. Filling is a sequence of
//! saturations of links, in ascending order of level. A link with unchanged flows saturates at the same level as
//! before, so it needs no work. For other links, one of two steps comes first:
//! - The filling reaches the level at which the link saturated before, but the link now has free capacity. The flows
//!   that it stopped *rise* to the level at which it saturates given the present levels of its other flows. If that
//!   level turns out too low, they rise once more, without limit, until this or another link stops them.
//! - The link *saturates*: its flows with higher levels stop here.
//!
//! Both steps change flows, so the other links on their routes are examined again. These links can only saturate at
//! this level or above, so nothing changes at lower levels.
//!
//! In one filling, the flows of a link rise at most twice, and otherwise levels only fall, so the filling terminates.
//!
//! All flows with the same bottleneck have the same level. So both steps change a whole group of flows at once (see
//! [`Groups`]): a step costs time for the links that the group crosses and for the flows whose bottleneck changes, not for
//! the other flows of the group.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::groups::Groups;

/// Levels with a smaller relative difference are equal, so that rounding does not count as a change.
const SLACK: f64 = 1e-10;

/// The fraction of its capacity above which the free capacity of a link is certain in spite of rounding.
const MARGIN: f64 = 1e-6;

/// Flows on links, with max-min fair rates. The caller chooses the numbers of flows.
pub struct MaxMin {
    /// The flows. The group of a flow is its bottleneck, or one behind the last link without bottleneck.
    groups: Groups,
    /// By group: the level of its flows; infinity if no link stops them.
    levels: Vec<f64>,
    /// By link. The fields that every change needs are separate, for locality.
    rooms: Vec<Room>,
    links: Vec<Link>,
    /// The links to examine.
    stale: Vec<u32>,
    /// The next steps of links: level (as bits, which compare like numbers that are not negative), then link. Entries
    /// that differ from the link's `next` are obsolete.
    due: BinaryHeap<Reverse<(u64, u32)>>,
    /// The present level of the filling.
    reached: f64,
    /// Reused buffer: the shares of the link under examination.
    seen: Vec<SeenShare>,
    /// The number of fillings so far.
    fillings: u64,
    /// By flow: the last filling that changed its bottleneck.
    moved: Vec<u64>,
}

/// What a filling has changed.
#[derive(Default)]
pub struct Changes {
    /// The links with a new level, which is that of all flows they stop.
    pub links: Vec<u32>,
    /// The flows that started, and those whose bottleneck changed. It may be the same as before again.
    pub flows: Vec<u32>,
}

/// The free capacity of a link.
struct Room {
    /// The capacity minus the rates of its flows, if other links stop all of them. If a flow is not stopped or stops
    /// here: minus infinity or NaN.
    left: f64,
    /// Free capacity above this is certain in spite of rounding.
    margin: f64,
    /// Whether the link has a next step in this filling.
    is_due: bool,
    /// Whether the link is in `stale`.
    is_stale: bool,
}

/// A link.
struct Link {
    /// The maximum sum of the rates of its flows, in bytes per second.
    capacity: f64,
    /// Its next step in this filling, and the level of the step.
    next: Option<(f64, Step)>,
    /// The last fillings in which its level changed, in which its flows rose to a level, and in which they rose without
    /// limit.
    changed: u64,
    raised: u64,
    released: u64,
}

/// A step of a link during a filling.
#[derive(Clone, Copy, PartialEq)]
enum Step {
    /// The link does not saturate at its previous level: the flows that it stopped rise to this level.
    Rise(f64),
    /// The link saturates: its flows above this level stop here.
    Saturate,
}

/// A group of flows from the view of a link that they cross.
struct SeenShare {
    weight: f64,
    /// The level at which another link stops them; infinity if this link or no link stops them.
    level: f64,
}

impl MaxMin {
    /// Links with these capacities (in bytes per second, above 0) and no flows.
    pub fn new(capacities: impl IntoIterator<Item = f64>) -> Self {
        let link = |capacity| Link { capacity, next: None, changed: 0, raised: 0, released: 0 };
        let links: Vec<Link> = capacities.into_iter().map(link).collect();
        let room = |&Link { capacity, .. }: &Link| Room {
            left: capacity,
            margin: MARGIN * capacity,
            is_due: false,
            is_stale: false,
        };
        MaxMin {
            groups: Groups::new(links.len(), links.len() + 1),
            levels: vec![f64::INFINITY; links.len() + 1],
            rooms: links.iter().map(room).collect(),
            links,
            stale: Vec::new(),
            due: BinaryHeap::new(),
            reached: 0.0,
            seen: Vec::new(),
            fillings: 0,
            moved: Vec::new(),
        }
    }

    /// The number of links.
    pub fn links(&self) -> usize {
        self.links.len()
    }

    /// Starts the flow `flow`, which must not exist, over the links of `route` (at least one).
    pub fn start(&mut self, flow: u32, weight: f64, route: impl Iterator<Item = u32> + Clone) {
        if flow as usize >= self.moved.len() {
            self.moved.resize(flow as usize + 1, 0);
        }
        self.groups.start(flow as usize, weight, route.clone(), self.links.len() as u32);
        route.for_each(|link| mark_stale(&mut self.rooms, &mut self.stale, link));
    }

    /// Ends a flow.
    pub fn end(&mut self, flow: u32) {
        let (weight, group) = (self.groups.weight(flow), self.groups.group(flow));
        let rate = weight * self.levels[group as usize];
        for link in self.groups.route(flow) {
            if link == group {
                mark_stale(&mut self.rooms, &mut self.stale, link);
            } else {
                load(&mut self.rooms, &mut self.stale, link, -rate);
            }
        }
        self.groups.end(flow as usize);
    }

    /// The rate of a flow in bytes per second, as of the last filling.
    #[cfg(test)]
    pub fn rate(&self, flow: u32) -> f64 {
        self.groups.weight(flow) * self.level(self.bottleneck(flow))
    }

    /// The link that stops a flow, as of the last filling.
    pub fn bottleneck(&self, flow: u32) -> u32 {
        self.groups.group(flow)
    }

    /// The level of the flows that a link stops: their rates divided by their weights.
    pub fn level(&self, link: u32) -> f64 {
        self.levels[link as usize]
    }

    /// Recomputes the rates after flows have started or ended; appends the changes.
    pub fn fill(&mut self, changes: &mut Changes) {
        self.fillings += 1;
        self.reached = 0.0;
        self.examine_stale_links();
        while let Some(Reverse((due, link))) = self.due.pop() {
            let due = f64::from_bits(due);
            let Some((_, step)) = self.links[link as usize].next.take_if(|next| next.0 == due) else {
                continue;
            };
            self.reached = due;
            match step {
                Step::Rise(level) => self.rise(link, level, changes),
                Step::Saturate => self.saturate(link, due, changes),
            }
            self.examine_stale_links();
        }
    }

    /// Finds the next step of every link in `stale`.
    fn examine_stale_links(&mut self) {
        while let Some(id) = self.stale.pop() {
            let see = |(group, weight)| {
                let level = if group == id { f64::INFINITY } else { self.levels[group as usize] };
                SeenShare { weight, level }
            };
            self.seen.clear();
            self.seen.extend(self.groups.on_link(id).map(see));
            let (link, room) = (&mut self.links[id as usize], &mut self.rooms[id as usize]);
            let load: f64 = self.seen.iter().map(|share| share.weight * share.level).sum();
            let has_room = load <= link.capacity * (1.0 + SLACK);
            let level = Some(self.levels[id as usize])
                .filter(|&level| level < f64::INFINITY && !self.groups.is_empty(id));
            let next =
                if has_room { None } else { link.next(&self.seen, level, self.reached, self.fillings) };
            if let Some((level, _)) = next.filter(|_| next != link.next) {
                self.due.push(Reverse((level.to_bits(), id)));
            }
            link.next = next;
            *room = Room { left: link.capacity - load, is_due: next.is_some(), is_stale: false, ..*room };
        }
    }

    /// Lets the flows that a link stopped rise to `level`, which may be infinity.
    fn rise(&mut self, id: u32, level: f64, changes: &mut Changes) {
        let link = &mut self.links[id as usize];
        *(if level < f64::INFINITY { &mut link.raised } else { &mut link.released }) = self.fillings;
        self.set_level(id, level, changes);
        mark_stale(&mut self.rooms, &mut self.stale, id);
    }

    /// Stops the flows of a link that are above `level` at `level`.
    fn saturate(&mut self, id: u32, level: f64, changes: &mut Changes) {
        self.set_level(id, level, changes);
        let mut at = 0;
        while let Some((group, flow)) = self.groups.flow_at(id, at) {
            if group == id || self.levels[group as usize] <= level * (1.0 + SLACK) {
                at += 1;
                continue;
            }
            // The share disappears with its last flow; then another share is at this index.
            self.stop(flow, id, changes);
        }
    }

    /// Sets the level of the flows that a link stops, and updates the other links that they cross.
    fn set_level(&mut self, id: u32, level: f64, changes: &mut Changes) {
        let before = std::mem::replace(&mut self.levels[id as usize], level);
        let link = &mut self.links[id as usize];
        if std::mem::replace(&mut link.changed, self.fillings) < self.fillings {
            changes.links.push(id);
        }
        for (link, weight) in self.groups.of_group(id) {
            if link == id {
                self.rooms[link as usize].left = f64::NEG_INFINITY;
            } else {
                load(&mut self.rooms, &mut self.stale, link, weight * (level - before));
            }
        }
    }

    /// Stops a flow at another link than before, and updates the other links on its route.
    fn stop(&mut self, flow: u32, id: u32, changes: &mut Changes) {
        if std::mem::replace(&mut self.moved[flow as usize], self.fillings) < self.fillings {
            changes.flows.push(flow);
        }
        let (weight, before) = (self.groups.weight(flow), self.groups.group(flow));
        let change = weight * (self.levels[id as usize] - self.levels[before as usize]);
        for link in self.groups.route(flow) {
            if link == id {
                self.rooms[link as usize].left = f64::NEG_INFINITY;
            } else if link == before {
                mark_stale(&mut self.rooms, &mut self.stale, link);
            } else {
                load(&mut self.rooms, &mut self.stale, link, change);
            }
        }
        self.groups.move_to(flow, id);
    }
}

/// Adds to the load of a link, and marks the link for examination if it may have too little room or has a next step.
fn load(rooms: &mut [Room], stale: &mut Vec<u32>, link: u32, rate: f64) {
    let room = &mut rooms[link as usize];
    room.left -= rate;
    if room.left.is_nan() || room.left <= room.margin || room.is_due {
        mark_stale(rooms, stale, link);
    }
}

/// Marks a link for examination.
fn mark_stale(rooms: &mut [Room], stale: &mut Vec<u32>, link: u32) {
    if !std::mem::replace(&mut rooms[link as usize].is_stale, true) {
        stale.push(link);
    }
}

impl Link {
    /// The next step, at level `reached` or above, of a link whose capacity is less than the rates of its flows, given
    /// the present levels of its flows. `level` is the level of the flows that it stops, if there are any.
    fn next(
        &self,
        shares: &[SeenShare],
        level: Option<f64>,
        reached: f64,
        filling: u64,
    ) -> Option<(f64, Step)> {
        let (saturated, above) = saturation(self.capacity, shares, level.unwrap_or(reached));
        let before = level.unwrap_or(f64::INFINITY);
        if saturated > before * (1.0 + SLACK) {
            // Of several links at one level, those with free capacity come first, so that the others see the flows
            // that rise.
            let due = before * (1.0 - 2.0 * SLACK);
            return match (self.raised < filling, self.released < filling) {
                (true, _) => Some((due, Step::Rise(saturated))),
                (false, true) => Some((due, Step::Rise(f64::INFINITY))),
                (false, false) => None,
            };
        }
        // The flows that it stops are one share.
        let is_lower = level.is_some_and(|level| level > saturated * (1.0 + SLACK));
        (is_lower || above > u32::from(level.is_some())).then_some((saturated, Step::Saturate))
    }
}

/// The level at which a link saturates, and the number of its shares above this level. The level is the root x of
/// sum over its shares of w_s min(x, x_s) = C, if there is one.
///
/// The left side is concave and piecewise linear. From any start, the first step of Newton's method leads to the left of
/// the root; from there, each step passes at least one share and approaches the root. With a good `guess` one step
/// suffices.
fn saturation(capacity: f64, shares: &[SeenShare], guess: f64) -> (f64, u32) {
    let (mut level, mut least) = (guess, 0.0);
    loop {
        let bound = level * (1.0 + SLACK);
        // The capacity left for the shares above the bound, their weight, and the levels next to the bound.
        let (mut room, mut weight, mut above) = (capacity, 0.0, 0);
        let (mut below_it, mut above_it) = (0.0, f64::INFINITY);
        for share in shares {
            if share.level <= bound {
                room -= share.weight * share.level;
                below_it = f64::max(below_it, share.level);
            } else {
                weight += share.weight;
                above += 1;
                above_it = f64::min(above_it, share.level);
            }
        }
        if above == 0 && level == least {
            return (level, 0);
        }
        // Without capacity or shares above the bound, the guess was too far to the right.
        level = if room > 0.0 && above > 0 { f64::max(least, room / weight) } else { least };
        let bound = level * (1.0 + SLACK);
        if above > 0 && below_it <= bound && bound < above_it {
            return (level, above);
        }
        least = level;
    }
}
