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

use crate::network::Events;

/// Levels closer than this, relatively, are the same: rounding must not pass for a change.
const SLACK: f64 = 1e-10;

/// A link with more room than this fraction of its capacity has some, whatever rounding did to the sum.
const MARGIN: f64 = 1e-6;

/// No bottleneck.
const NONE: u32 = u32::MAX;

/// Flows on links, with max-min fair rates. Flows are numbered by whoever starts them.
pub struct MaxMin {
    links: Vec<Link>,
    flows: Vec<Flow>,
    /// By flow: its route.
    routes: Vec<Vec<Hop>>,
    /// The links to look at (again).
    stale: Vec<u32>,
    /// The links to which something happens, by level; what is not as the link's `next` says is void.
    due: Events<u32>,
    /// The level the filling has reached.
    reached: f64,
    /// How many fillings there were.
    fillings: u64,
}

/// A link.
struct Link {
    /// What its flows may have in all, in bytes per second.
    capacity: f64,
    /// What they leave of it, when those that others stop have the levels they have; infinitely less than
    /// nothing, or not a number, where some are not stopped or stop here.
    room: f64,
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
    is_stale: bool,
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
    weight: f64,
    /// Where others stop it; infinity if it is this link that does, or nobody.
    level: f64,
}

/// The level at which a link saturates, and how many of its flows are above it.
struct Saturation {
    level: f64,
    above: u32,
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
            room: capacity,
            members: Vec::new(),
            stopped: 0,
            level: f64::INFINITY,
            next: None,
            raised: 0,
            released: 0,
            is_stale: false,
        };
        MaxMin {
            links: capacities.into_iter().map(link).collect(),
            flows: Vec::new(),
            routes: Vec::new(),
            stale: Vec::new(),
            due: Events::new(),
            reached: 0.0,
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
            members.push(Member { flow: flow as u32, hop, weight, level: f64::INFINITY });
            self.look_at(link);
        }
    }

    /// Ends a flow.
    pub fn end(&mut self, flow: usize) {
        let bottleneck = std::mem::replace(&mut self.flows[flow].bottleneck, NONE);
        if bottleneck != NONE {
            self.links[bottleneck as usize].stopped -= 1;
        }
        while let Some(Hop { link, place }) = self.routes[flow].pop() {
            let state = &mut self.links[link as usize];
            let is_narrow = state.set(place, 0.0);
            state.members.swap_remove(place as usize);
            if let Some(&Member { flow, hop, .. }) = state.members.get(place as usize) {
                self.routes[flow as usize][hop as usize].place = place;
            }
            if is_narrow {
                self.look_at(link);
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
        while let Some((due, link)) = self.due.pop(f64::INFINITY) {
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
        if !std::mem::replace(&mut self.links[link as usize].is_stale, true) {
            self.stale.push(link);
        }
    }

    /// Finds out what happens next to every link that is to be looked at.
    fn look(&mut self) {
        while let Some(id) = self.stale.pop() {
            let link = &mut self.links[id as usize];
            link.is_stale = false;
            let next = link.next(self.reached, self.fillings);
            if let Some((level, _)) = next.filter(|_| next != link.next) {
                self.due.add(level, id);
            }
            link.next = next;
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
                self.change(flow, level, if is_limited { id } else { NONE }, changed);
            }
        }
        self.look_at(id);
    }

    /// Stops the flows of a link that are above `level`, there.
    fn saturate(&mut self, id: u32, level: f64, changed: &mut Vec<u32>) {
        let link = &mut self.links[id as usize];
        link.level = level;
        for place in 0..link.members.len() {
            // Of its own flows it does not know the level, so they are above as well.
            let Member { flow, level: elsewhere, .. } = self.links[id as usize].members[place];
            if elsewhere > level * (1.0 + SLACK) {
                self.change(flow, level, id, changed);
            }
        }
    }

    /// Changes a flow, of which the other links on its route have to know.
    fn change(&mut self, id: u32, level: f64, bottleneck: u32, changed: &mut Vec<u32>) {
        let flow = &mut self.flows[id as usize];
        flow.level = level;
        let before = std::mem::replace(&mut flow.bottleneck, bottleneck);
        if std::mem::replace(&mut flow.changed, self.fillings) < self.fillings {
            changed.push(id);
        }
        if before != NONE {
            self.links[before as usize].stopped -= 1;
        }
        if bottleneck != NONE {
            self.links[bottleneck as usize].stopped += 1;
        }
        for hop in 0..self.routes[id as usize].len() {
            let Hop { link, place } = self.routes[id as usize][hop];
            let is_here = link == bottleneck;
            let is_narrow = self.links[link as usize].set(place, if is_here { f64::INFINITY } else { level });
            if is_narrow && !is_here {
                self.look_at(link);
            }
        }
    }
}

impl Link {
    /// Gives a member another level; whether something may happen to the link because of it.
    fn set(&mut self, place: u32, level: f64) -> bool {
        let member = &mut self.members[place as usize];
        let before = std::mem::replace(&mut member.level, level);
        self.room -= member.weight * (level - before);
        self.next.is_some() || self.room.is_nan() || self.room <= MARGIN * self.capacity
    }

    /// What happens to it next, at `reached` or above, with flows that others stop where they are thought
    /// to.
    fn next(&mut self, reached: f64, filling: u64) -> Option<(f64, Step)> {
        let Saturation { level, above } = self.saturation(reached)?;
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

    /// The level at which it saturates when flows that others stop have the levels they have: the root x of
    /// sum over its flows of w_f min(x, x_f) = C, where x_f is infinite for those that it stops. None if
    /// there is room for all.
    ///
    /// The left side is concave and piecewise linear. Newton's method goes from anywhere to the left of the
    /// root, and from there to it, past another flow with each step.
    fn saturation(&mut self, reached: f64) -> Option<Saturation> {
        let load: f64 = self.members.iter().map(|member| member.weight * member.level).sum();
        self.room = self.capacity - load;
        if self.room >= -SLACK * self.capacity {
            return None;
        }
        let mut level = if self.stopped > 0 { self.level } else { reached };
        let mut least = 0.0;
        loop {
            let bound = level * (1.0 + SLACK);
            // Room for those above and their weight, and the levels next to the bound.
            let (mut room, mut weight, mut above) = (self.capacity, 0.0, 0);
            let (mut below_it, mut above_it) = (0.0, f64::INFINITY);
            for member in &self.members {
                if member.level <= bound {
                    room -= member.weight * member.level;
                    below_it = f64::max(below_it, member.level);
                } else {
                    weight += member.weight;
                    above += 1;
                    above_it = f64::min(above_it, member.level);
                }
            }
            // Without room or any flow above, this was to the right of the root by far.
            level = if room > 0.0 && above > 0 { f64::max(least, room / weight) } else { least };
            let bound = level * (1.0 + SLACK);
            if above > 0 && below_it <= bound && bound < above_it {
                return Some(Saturation { level, above });
            }
            least = level;
        }
    }
}
