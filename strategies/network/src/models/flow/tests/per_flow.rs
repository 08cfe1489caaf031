//! The rates and ends of flows without groups: every change of a level visits all flows that have it.
//!
//! This was the implementation before flows had groups. It is too slow for large machines, and shows in tests that groups
//! change no result.
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

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::super::tournament::Tournament;
use super::Case;

/// Flows end together if their ends differ by less than this fraction of their duration.
const TOGETHER: f64 = 1e-10;

/// The arrival times of the messages of a case.
pub fn arrivals(case: &Case) -> Vec<f64> {
    let mut rates = MaxMin::new(case.capacities.iter().copied());
    let mut order: Vec<usize> = (0..case.begin.len()).filter(|&id| case.bytes[id] > 0.0).collect();
    order.sort_by(|&a, &b| case.begin[b].total_cmp(&case.begin[a]));
    let (mut left, mut since, mut rate) =
        (case.bytes.clone(), case.begin.clone(), vec![0.0; case.begin.len()]);
    let (mut arrival, mut ending, mut changed) = (case.begin.clone(), Tournament::new(), Vec::new());
    loop {
        let start = order.last().map_or(f64::INFINITY, |&id| case.begin[id]);
        let now = start.min(ending.earliest());
        if now == f64::INFINITY {
            return arrival;
        }
        while ending.earliest() < f64::INFINITY {
            let id = ending.winner();
            if ending.earliest() > now + TOGETHER * (now - case.begin[id]) + 4.0 * f64::EPSILON * now {
                break;
            }
            ending.set(id, f64::INFINITY);
            rates.end(id);
            arrival[id] = now;
        }
        while let Some(id) = order.pop_if(|&mut id| case.begin[id] <= now) {
            rates.start(id, case.streams[id].0, case.streams[id].1.iter().copied());
        }
        rates.fill(&mut changed);
        for id in changed.drain(..).map(|id| id as usize) {
            left[id] = f64::max(0.0, left[id] - rate[id] * (now - since[id]));
            (since[id], rate[id]) = (now, rates.rate(id));
            ending.set(id, now + left[id] / rate[id]);
        }
    }
}

/// Levels with a smaller relative difference are equal, so that rounding does not count as a change.
const SLACK: f64 = 1e-10;

/// The fraction of its capacity above which the free capacity of a link is certain in spite of rounding.
const MARGIN: f64 = 1e-6;

/// No bottleneck.
const NONE: u32 = u32::MAX;

/// Flows on links, with max-min fair rates. The caller chooses the numbers of flows.
pub struct MaxMin {
    /// By link. The fields that every change of a flow needs are separate, for locality.
    rooms: Vec<Room>,
    links: Vec<Link>,
    flows: Vec<Flow>,
    /// By flow: its route.
    routes: Vec<Vec<Hop>>,
    /// The links to examine.
    stale: Vec<u32>,
    /// The next steps of links: level (as bits, which compare like numbers that are not negative), then link. Entries
    /// that differ from the link's `next` are obsolete.
    due: BinaryHeap<Reverse<(u64, u32)>>,
    /// Reused buffer: the flows of the link under examination.
    seen: Vec<SeenFlow>,
    /// The number of fillings so far.
    fillings: u64,
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
    /// The flows on it.
    members: Vec<Member>,
    /// The number of flows whose bottleneck it is, and their level.
    stopped: u32,
    level: f64,
    /// Its next step in this filling, and the level of the step.
    next: Option<(f64, Step)>,
    /// The last filling in which its flows rose to a level, and the last one in which they rose without limit.
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

/// A flow on a link; the link has index `hop` on the route of the flow.
#[derive(Clone, Copy)]
struct Member {
    flow: u32,
    hop: u32,
}

/// A flow from the view of a link.
struct SeenFlow {
    weight: f64,
    /// The level at which another link stops it; infinity if this link or no link stops it.
    level: f64,
}

/// A link on a route; the flow has index `place` in its members.
#[derive(Clone, Copy)]
struct Hop {
    link: u32,
    place: u32,
}

/// A flow.
#[derive(Clone)]
struct Flow {
    weight: f64,
    /// Infinity if no link stops it.
    level: f64,
    bottleneck: u32,
    /// The last filling that changed its level.
    changed: u64,
}

impl MaxMin {
    /// Links with these capacities (in bytes per second, above 0) and no flows.
    pub fn new(capacities: impl IntoIterator<Item = f64>) -> Self {
        let link = |capacity| Link {
            capacity,
            members: Vec::new(),
            stopped: 0,
            level: f64::INFINITY,
            next: None,
            raised: 0,
            released: 0,
        };
        let links: Vec<Link> = capacities.into_iter().map(link).collect();
        let room = |&Link { capacity, .. }: &Link| Room {
            left: capacity,
            margin: MARGIN * capacity,
            is_due: false,
            is_stale: false,
        };
        MaxMin {
            rooms: links.iter().map(room).collect(),
            links,
            flows: Vec::new(),
            routes: Vec::new(),
            stale: Vec::new(),
            due: BinaryHeap::new(),
            seen: Vec::new(),
            fillings: 0,
        }
    }

    /// Starts the flow `flow`, which must not exist, over the links of `route` (at least one).
    pub fn start(&mut self, flow: usize, weight: f64, route: impl IntoIterator<Item = u32>) {
        let fresh = Flow { weight, level: f64::INFINITY, bottleneck: NONE, changed: 0 };
        if flow >= self.flows.len() {
            self.flows.resize(flow + 1, fresh.clone());
            self.routes.resize_with(flow + 1, Vec::new);
        }
        self.flows[flow] = fresh;
        debug_assert!(self.routes[flow].is_empty(), "flow {flow} is started twice");
        for (link, hop) in route.into_iter().zip(0..) {
            let members = &mut self.links[link as usize].members;
            self.routes[flow].push(Hop { link, place: members.len() as u32 });
            members.push(Member { flow: flow as u32, hop });
            self.mark_stale(link);
        }
    }

    /// Ends a flow.
    pub fn end(&mut self, flow: usize) {
        // A flow of level 0 does not affect its links.
        self.set_level(flow as u32, 0.0, NONE);
        while let Some(Hop { link, place }) = self.routes[flow].pop() {
            let members = &mut self.links[link as usize].members;
            members.swap_remove(place as usize);
            if let Some(&Member { flow, hop }) = members.get(place as usize) {
                self.routes[flow as usize][hop as usize].place = place;
            }
        }
    }

    /// The rate of a flow in bytes per second, as of the last filling.
    pub fn rate(&self, flow: usize) -> f64 {
        self.flows[flow].weight * self.flows[flow].level
    }

    /// Recomputes the rates after flows have started or ended; appends the flows whose rates changed.
    pub fn fill(&mut self, changed: &mut Vec<u32>) {
        self.fillings += 1;
        self.examine_stale_links();
        while let Some(Reverse((due, link))) = self.due.pop() {
            let due = f64::from_bits(due);
            let Some((_, step)) = self.links[link as usize].next.take_if(|next| next.0 == due) else {
                continue;
            };
            match step {
                Step::Rise(level) => self.rise(link, level, changed),
                Step::Saturate => self.saturate(link, due, changed),
            }
            self.examine_stale_links();
        }
    }

    /// Marks a link for examination because its flows have changed.
    fn mark_stale(&mut self, link: u32) {
        if !std::mem::replace(&mut self.rooms[link as usize].is_stale, true) {
            self.stale.push(link);
        }
    }

    /// Finds the next step of every link in `stale`.
    fn examine_stale_links(&mut self) {
        while let Some(id) = self.stale.pop() {
            let (link, room) = (&mut self.links[id as usize], &mut self.rooms[id as usize]);
            let see = |member: &Member| self.flows[member.flow as usize].seen_by(id);
            self.seen.clear();
            self.seen.extend(link.members.iter().map(see));
            let load: f64 = self.seen.iter().map(|flow| flow.weight * flow.level).sum();
            let has_room = load <= link.capacity * (1.0 + SLACK);
            let next = if has_room { None } else { link.next(&self.seen, self.fillings) };
            if let Some((level, _)) = next.filter(|_| next != link.next) {
                self.due.push(Reverse((level.to_bits(), id)));
            }
            link.next = next;
            *room = Room { left: link.capacity - load, is_due: next.is_some(), is_stale: false, ..*room };
        }
    }

    /// Lets the flows that a link stopped rise to `level`, which may be infinity.
    fn rise(&mut self, id: u32, level: f64, changed: &mut Vec<u32>) {
        let link = &mut self.links[id as usize];
        let is_limited = level < f64::INFINITY;
        *(if is_limited { &mut link.raised } else { &mut link.released }) = self.fillings;
        link.level = level;
        for place in 0..link.members.len() {
            let flow = self.links[id as usize].members[place].flow;
            if self.flows[flow as usize].bottleneck == id {
                self.note_change(flow, changed);
                self.set_level(flow, level, if is_limited { id } else { NONE });
            }
        }
        self.mark_stale(id);
    }

    /// Stops the flows of a link that are above `level` at `level`.
    fn saturate(&mut self, id: u32, level: f64, changed: &mut Vec<u32>) {
        let link = &mut self.links[id as usize];
        link.level = level;
        for place in 0..link.members.len() {
            let flow = self.links[id as usize].members[place].flow;
            if self.flows[flow as usize].seen_by(id).level > level * (1.0 + SLACK) {
                self.note_change(flow, changed);
                self.set_level(flow, level, id);
            }
        }
    }

    /// Appends a flow to `changed`, once per filling.
    fn note_change(&mut self, id: u32, changed: &mut Vec<u32>) {
        if std::mem::replace(&mut self.flows[id as usize].changed, self.fillings) < self.fillings {
            changed.push(id);
        }
    }

    /// Sets the level and the bottleneck of a flow, and updates the other links on its route.
    fn set_level(&mut self, id: u32, level: f64, bottleneck: u32) {
        let flow = &mut self.flows[id as usize];
        let (weight, level_before) = (flow.weight, std::mem::replace(&mut flow.level, level));
        let before = std::mem::replace(&mut flow.bottleneck, bottleneck);
        if before != NONE {
            self.links[before as usize].stopped -= 1;
        }
        if bottleneck != NONE {
            self.links[bottleneck as usize].stopped += 1;
        }
        for &Hop { link, .. } in &self.routes[id as usize] {
            if link == bottleneck {
                continue;
            }
            let room = &mut self.rooms[link as usize];
            room.left -= weight * (level - if link == before { f64::INFINITY } else { level_before });
            let is_narrow = room.left.is_nan() || room.left <= room.margin;
            if (is_narrow || room.is_due) && !std::mem::replace(&mut room.is_stale, true) {
                self.stale.push(link);
            }
        }
        if bottleneck != NONE {
            self.rooms[bottleneck as usize].left = f64::NEG_INFINITY;
        }
    }
}

impl Flow {
    /// The flow from the view of a link.
    fn seen_by(&self, link: u32) -> SeenFlow {
        let level = if self.bottleneck == link { f64::INFINITY } else { self.level };
        SeenFlow { weight: self.weight, level }
    }
}

impl Link {
    /// The next step of a link whose capacity is less than the rates of its flows, given the present levels of its flows.
    fn next(&self, flows: &[SeenFlow], filling: u64) -> Option<(f64, Step)> {
        let (level, above) = saturation(self.capacity, flows);
        if self.stopped > 0 && level > self.level * (1.0 + SLACK) {
            // Of several links at one level, those with free capacity come first, so that the others see the flows
            // that rise.
            let due = self.level * (1.0 - 2.0 * SLACK);
            return match (self.raised < filling, self.released < filling) {
                (true, _) => Some((due, Step::Rise(level))),
                (false, true) => Some((due, Step::Rise(f64::INFINITY))),
                (false, false) => None,
            };
        }
        let is_lower = self.stopped > 0 && self.level > level * (1.0 + SLACK);
        (is_lower || above > self.stopped).then_some((level, Step::Saturate))
    }
}

/// The level at which a link saturates, and the number of its flows above this level. The level is the root x of
/// sum over its flows of w_f min(x, x_f) = C; the caller knows that this sum is above C for large x.
///
/// By bisection, because the implementation that this one checks uses Newton's method.
fn saturation(capacity: f64, flows: &[SeenFlow]) -> (f64, u32) {
    let load = |level| flows.iter().map(|flow| flow.weight * f64::min(level, flow.level)).sum::<f64>();
    let (mut low, mut high) = (0.0, 1.0);
    while load(high) < capacity {
        (low, high) = (high, 2.0 * high);
    }
    loop {
        let level = 0.5 * (low + high);
        if level <= low || level >= high {
            let above = flows.iter().filter(|flow| flow.level > level * (1.0 + SLACK)).count();
            return (level, above as u32);
        }
        *(if load(level) < capacity { &mut low } else { &mut high }) = level;
    }
}
