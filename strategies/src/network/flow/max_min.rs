//! Max-min fair rates, kept up to date as flows come and go.
//!
//! Source: D. Bertsekas and R. Gallager, Data Networks (2nd edition 1992), section 6.5.2, here with weights.
//! Flow f of weight w_f has rate w_f x_f, where x_f is its *level*. An allocation is max-min fair if and
//! only if every flow has a *bottleneck*: a link l without room, sum over its flows of w_f x_f = C_l, on
//! which no flow has a higher level. Progressive filling finds it: all levels rise together from 0; when
//! a link has no room left, its flows stay where they are.
//!
//! What a start or an end changes is found by filling again, but only where it matters. Filling is a
//! sequence of saturations of links, in ascending order of level. A link whose flows are what they were
//! saturates when it did before, with the same outcome, so there is nothing to do. For the others two
//! things can happen, and the filling does whichever comes first:
//! - the level is reached at which the link saturated before, but now it has room: the flows it stopped
//!   *rise*, to where it will saturate as things stand; if that turns out too low, they rise once more, to
//!   wherever this or another link stops them;
//! - the link *saturates*: the flows that were thought to be above this level are stopped here.
//!
//! Either way these flows are no longer what they were to the other links on their routes, which have to
//! be looked at again. They can only saturate at this level or above, so nothing below changes.
//!
//! The flows of a link rise at most twice in a filling, and between that levels only fall, so it ends.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Levels closer than this, relatively, are the same: rounding must not pass for a change.
const SLACK: f64 = 1e-10;

/// A link with more room than this fraction of its capacity has some, whatever rounding did to the sum.
const MARGIN: f64 = 1e-6;

/// No bottleneck.
const NONE: u32 = u32::MAX;

/// Flows on links, with max-min fair rates. Flows are numbered by whoever starts them.
pub struct MaxMin {
    /// By link: what every change of a flow looks up, and the rest.
    rooms: Vec<Room>,
    links: Vec<Link>,
    flows: Vec<Flow>,
    /// By flow: its route.
    routes: Vec<Vec<Hop>>,
    /// The links to look at (again).
    stale: Vec<u32>,
    /// The links to which something happens, by level (its bits, which for numbers that are not negative
    /// compare as the numbers do), then by number; what is not as the link's `next` says is void.
    due: BinaryHeap<Reverse<(u64, u32)>>,
    /// The level the filling has reached.
    reached: f64,
    /// Room for the flows of a link that is looked at.
    seen: Vec<Seen>,
    /// How many fillings there were.
    fillings: u64,
}

/// What flows leave of a link.
struct Room {
    /// Its capacity less its flows' rates, where those that others stop have the levels they have; minus
    /// infinity, or not a number, where some are not stopped or stop here.
    left: f64,
    /// More than this is room for sure, in spite of rounding.
    margin: f64,
    /// Whether something happens to it next.
    is_due: bool,
    is_stale: bool,
}

/// A link.
struct Link {
    /// What its flows may have in all, in bytes per second.
    capacity: f64,
    /// The flows on it.
    members: Vec<Member>,
    /// How many of them have it as their bottleneck, and their level.
    stopped: u32,
    level: f64,
    /// What happens to it next in this filling, and at which level.
    next: Option<(f64, Step)>,
    /// The last filling in which its flows rose, and in which they did so without limit.
    raised: u64,
    released: u64,
}

/// What can happen to a link while levels rise.
#[derive(Clone, Copy, PartialEq)]
enum Step {
    /// It was thought to saturate here and does not: the flows it stopped rise to this level.
    Rise(f64),
    /// It saturates: flows above this level stop here.
    Saturate,
}

/// A flow on a link: the `hop`th link on its route.
#[derive(Clone, Copy)]
struct Member {
    flow: u32,
    hop: u32,
}

/// A flow as a link sees it.
struct Seen {
    weight: f64,
    /// Where others stop it; infinity if it is this link that does, or nobody.
    level: f64,
}

/// A link on a route: the flow is its member `place`.
#[derive(Clone, Copy)]
struct Hop {
    link: u32,
    place: u32,
}

/// A flow.
#[derive(Clone)]
struct Flow {
    weight: f64,
    /// Infinity before it was ever stopped.
    level: f64,
    bottleneck: u32,
    /// The last filling that changed it.
    changed: u64,
}

impl MaxMin {
    /// No flows on links with these capacities in bytes per second, which are positive.
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
            reached: 0.0,
            seen: Vec::new(),
            fillings: 0,
        }
    }

    /// Starts the flow `flow`, which is none at present, over the links of `route`, at least one.
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
            self.look_at(link);
        }
    }

    /// Ends a flow.
    pub fn end(&mut self, flow: usize) {
        // A flow that nobody notices.
        self.change(flow as u32, 0.0, NONE);
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

    /// Fills the links again after flows were started and ended; appends those whose rates changed.
    pub fn fill(&mut self, changed: &mut Vec<u32>) {
        self.fillings += 1;
        self.reached = 0.0;
        self.look();
        while let Some(Reverse((due, link))) = self.due.pop() {
            let due = f64::from_bits(due);
            let Some((_, step)) = self.links[link as usize].next.take_if(|next| next.0 == due) else {
                continue;
            };
            self.reached = due;
            match step {
                Step::Rise(level) => self.rise(link, level, changed),
                Step::Saturate => self.saturate(link, due, changed),
            }
            self.look();
        }
    }

    /// Notes that the flows of `link` are not what they were.
    fn look_at(&mut self, link: u32) {
        if !std::mem::replace(&mut self.rooms[link as usize].is_stale, true) {
            self.stale.push(link);
        }
    }

    /// Finds out what happens next to every link that is to be looked at.
    fn look(&mut self) {
        while let Some(id) = self.stale.pop() {
            let (link, room) = (&mut self.links[id as usize], &mut self.rooms[id as usize]);
            let see = |member: &Member| self.flows[member.flow as usize].seen_by(id);
            self.seen.clear();
            self.seen.extend(link.members.iter().map(see));
            let load: f64 = self.seen.iter().map(|flow| flow.weight * flow.level).sum();
            let has_room = load <= link.capacity * (1.0 + SLACK);
            let next = if has_room { None } else { link.next(&self.seen, self.reached, self.fillings) };
            if let Some((level, _)) = next.filter(|_| next != link.next) {
                self.due.push(Reverse((level.to_bits(), id)));
            }
            link.next = next;
            *room = Room { left: link.capacity - load, is_due: next.is_some(), is_stale: false, ..*room };
        }
    }

    /// Lets the flows that stopped at a link rise to `level`, or without limit.
    fn rise(&mut self, id: u32, level: f64, changed: &mut Vec<u32>) {
        let link = &mut self.links[id as usize];
        let is_limited = level < f64::INFINITY;
        *(if is_limited { &mut link.raised } else { &mut link.released }) = self.fillings;
        link.level = level;
        for place in 0..link.members.len() {
            let flow = self.links[id as usize].members[place].flow;
            if self.flows[flow as usize].bottleneck == id {
                self.note(flow, changed);
                self.change(flow, level, if is_limited { id } else { NONE });
            }
        }
        self.look_at(id);
    }

    /// Stops the flows of a link that are above `level`, there.
    fn saturate(&mut self, id: u32, level: f64, changed: &mut Vec<u32>) {
        let link = &mut self.links[id as usize];
        link.level = level;
        for place in 0..link.members.len() {
            let flow = self.links[id as usize].members[place].flow;
            if self.flows[flow as usize].seen_by(id).level > level * (1.0 + SLACK) {
                self.note(flow, changed);
                self.change(flow, level, id);
            }
        }
    }

    /// Appends a flow to those that changed in this filling.
    fn note(&mut self, id: u32, changed: &mut Vec<u32>) {
        if std::mem::replace(&mut self.flows[id as usize].changed, self.fillings) < self.fillings {
            changed.push(id);
        }
    }

    /// Gives a flow another level, of which the other links on its route have to know.
    fn change(&mut self, id: u32, level: f64, bottleneck: u32) {
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
    /// The flow as that link sees it.
    fn seen_by(&self, link: u32) -> Seen {
        let level = if self.bottleneck == link { f64::INFINITY } else { self.level };
        Seen { weight: self.weight, level }
    }
}

impl Link {
    /// What happens next to a link without room for all its flows, at `reached` or above, if others stop
    /// them where they are thought to.
    fn next(&self, flows: &[Seen], reached: f64, filling: u64) -> Option<(f64, Step)> {
        let guess = if self.stopped > 0 { self.level } else { reached };
        let (level, above) = saturation(self.capacity, flows, guess);
        if self.stopped > 0 && level > self.level * (1.0 + SLACK) {
            // Of several links that were saturated at one level, those with room now go first: the flows
            // that rise are then seen by the others.
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

/// The level at which a link saturates, and how many of its flows are above it: the root x of
/// sum over its flows of w_f min(x, x_f) = C, if there is one.
///
/// The left side is concave and piecewise linear. Newton's method goes from anywhere to the left of the
/// root, and from there to it, past another flow with each step; from a good `guess` it is there at once.
fn saturation(capacity: f64, flows: &[Seen], guess: f64) -> (f64, u32) {
    let (mut level, mut least) = (guess, 0.0);
    loop {
        let bound = level * (1.0 + SLACK);
        // Room for the flows above and their weight, and the levels next to the bound.
        let (mut room, mut weight, mut above) = (capacity, 0.0, 0);
        let (mut below_it, mut above_it) = (0.0, f64::INFINITY);
        for flow in flows {
            if flow.level <= bound {
                room -= flow.weight * flow.level;
                below_it = f64::max(below_it, flow.level);
            } else {
                weight += flow.weight;
                above += 1;
                above_it = f64::min(above_it, flow.level);
            }
        }
        if above == 0 && level == least {
            return (level, 0);
        }
        // Without room or any flow above, the guess was too far to the right.
        level = if room > 0.0 && above > 0 { f64::max(least, room / weight) } else { least };
        let bound = level * (1.0 + SLACK);
        if above > 0 && below_it <= bound && bound < above_it {
            return (level, above);
        }
        least = level;
    }
}
