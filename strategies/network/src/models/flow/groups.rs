//! Flows on links, grouped by bottleneck.
//!
//! All flows with the same bottleneck have the same level, so a change of this level is one change of the *group*,
//! no matter how many flows the group has. The flows of a group that cross a link are a *share* of the link. A link needs
//! only the weight of each share, and the level of its group, to find its load.

/// The factor from a weight to the integer that stands for it. Sums of integers are exact, so they do not depend on the
/// order in which flows come and go, and rounding does not accumulate.
const UNIT: f64 = (1u128 << 80) as f64;

/// Flows on links, grouped. The caller chooses the numbers of flows.
pub struct Groups {
    /// By link: its shares, with their groups.
    on_link: Vec<Vec<Entry>>,
    /// By group: its shares, with their links.
    of_group: Vec<Vec<Entry>>,
    shares: Vec<Share>,
    /// Unused indices of `shares`. Their vectors are reused, so that events do not allocate.
    free: Vec<u32>,
    flows: Vec<Flow>,
    /// By flow: its route.
    routes: Vec<Vec<Hop>>,
}

/// A share in a list of a link or group.
#[derive(Clone, Copy)]
struct Entry {
    /// The group in lists of links, and the link in lists of groups.
    other: u32,
    share: u32,
}

/// The flows of a group that cross a link.
#[derive(Default)]
struct Share {
    link: u32,
    group: u32,
    /// The sum of the weights: exact, and as a float.
    exact: u128,
    weight: f64,
    /// Its places in the lists of its link and its group.
    at_link: u32,
    at_group: u32,
    /// A flow that crosses the link twice is here twice.
    members: Vec<Member>,
}

/// A flow on a link; the link has index `hop` on the route of the flow.
#[derive(Clone, Copy)]
struct Member {
    flow: u32,
    hop: u32,
}

/// A flow.
#[derive(Clone, Copy, Default)]
struct Flow {
    weight: f64,
    exact: u128,
    group: u32,
}

/// A link on a route; the flow has index `place` in the members of the share.
#[derive(Clone, Copy)]
struct Hop {
    link: u32,
    share: u32,
    place: u32,
}

impl Groups {
    /// No flows on `links` links, in `groups` groups.
    pub fn new(links: usize, groups: usize) -> Self {
        Groups {
            on_link: vec![Vec::new(); links],
            of_group: vec![Vec::new(); groups],
            shares: Vec::new(),
            free: Vec::new(),
            flows: Vec::new(),
            routes: Vec::new(),
        }
    }

    /// Adds the flow `flow`, which must not exist.
    pub fn start(&mut self, flow: usize, weight: f64, route: impl IntoIterator<Item = u32>, group: u32) {
        if flow >= self.flows.len() {
            self.flows.resize(flow + 1, Flow::default());
            self.routes.resize_with(flow + 1, Vec::new);
        }
        debug_assert!(self.routes[flow].is_empty(), "flow {flow} is started twice");
        self.flows[flow] = Flow { weight, exact: (weight * UNIT) as u128, group };
        for (link, hop) in route.into_iter().zip(0..) {
            self.routes[flow].push(Hop { link, share: 0, place: 0 });
            self.join(flow as u32, hop, group);
        }
    }

    /// Removes a flow.
    pub fn end(&mut self, flow: usize) {
        for hop in 0..self.routes[flow].len() {
            self.leave(flow as u32, hop);
        }
        self.routes[flow].clear();
    }

    /// Moves a flow to a group.
    pub fn move_to(&mut self, flow: u32, group: u32) {
        self.flows[flow as usize].group = group;
        for hop in 0..self.routes[flow as usize].len() {
            self.leave(flow, hop);
            self.join(flow, hop as u32, group);
        }
    }

    /// The group of a flow.
    pub fn group(&self, flow: u32) -> u32 {
        self.flows[flow as usize].group
    }

    /// The weight of a flow.
    pub fn weight(&self, flow: u32) -> f64 {
        self.flows[flow as usize].weight
    }

    /// The links of a flow.
    pub fn route(&self, flow: u32) -> impl Iterator<Item = u32> {
        self.routes[flow as usize].iter().map(|hop| hop.link)
    }

    /// The shares of a link: groups and weights.
    pub fn on_link(&self, link: u32) -> impl Iterator<Item = (u32, f64)> {
        self.on_link[link as usize]
            .iter()
            .map(|entry| (entry.other, self.shares[entry.share as usize].weight))
    }

    /// The group of the share with index `at` of a link, and one of the flows of the share; `None` behind the last share.
    pub fn flow_at(&self, link: u32, at: usize) -> Option<(u32, u32)> {
        let entry = self.on_link[link as usize].get(at)?;
        let member = self.shares[entry.share as usize].members.last()?;
        Some((entry.other, member.flow))
    }

    /// The shares of a group: links and weights.
    pub fn of_group(&self, group: u32) -> impl Iterator<Item = (u32, f64)> {
        self.of_group[group as usize]
            .iter()
            .map(|entry| (entry.other, self.shares[entry.share as usize].weight))
    }

    /// Whether a group has no flows.
    pub fn is_empty(&self, group: u32) -> bool {
        self.of_group[group as usize].is_empty()
    }

    /// Adds a flow to the share of `group` on a link of the flow.
    fn join(&mut self, flow: u32, hop: u32, group: u32) {
        let link = self.routes[flow as usize][hop as usize].link;
        let id = self.find(link, group).unwrap_or_else(|| self.add(link, group));
        let share = &mut self.shares[id as usize];
        share.exact += self.flows[flow as usize].exact;
        share.weight = share.exact as f64 / UNIT;
        let place = share.members.len() as u32;
        share.members.push(Member { flow, hop });
        self.routes[flow as usize][hop as usize] = Hop { link, share: id, place };
    }

    /// Removes a flow from its share on a link of the flow, and the share if it was the last flow.
    fn leave(&mut self, flow: u32, hop: usize) {
        let Hop { share: id, place, .. } = self.routes[flow as usize][hop];
        let share = &mut self.shares[id as usize];
        share.exact -= self.flows[flow as usize].exact;
        share.weight = share.exact as f64 / UNIT;
        share.members.swap_remove(place as usize);
        if let Some(&Member { flow, hop }) = share.members.get(place as usize) {
            self.routes[flow as usize][hop as usize].place = place;
        } else if share.members.is_empty() {
            self.remove(id);
        }
    }

    /// The share of `group` on `link`. Searches the shorter one of the two lists.
    fn find(&self, link: u32, group: u32) -> Option<u32> {
        let (on_link, of_group) = (&self.on_link[link as usize], &self.of_group[group as usize]);
        let (entries, other) =
            if on_link.len() < of_group.len() { (on_link, group) } else { (of_group, link) };
        entries.iter().find(|entry| entry.other == other).map(|entry| entry.share)
    }

    /// Adds an empty share.
    fn add(&mut self, link: u32, group: u32) -> u32 {
        let id = self.free.pop().unwrap_or_else(|| {
            self.shares.push(Share::default());
            self.shares.len() as u32 - 1
        });
        let (on_link, of_group) = (&mut self.on_link[link as usize], &mut self.of_group[group as usize]);
        let share = &mut self.shares[id as usize];
        (share.link, share.group) = (link, group);
        (share.at_link, share.at_group) = (on_link.len() as u32, of_group.len() as u32);
        on_link.push(Entry { other: group, share: id });
        of_group.push(Entry { other: link, share: id });
        id
    }

    /// Removes an empty share.
    fn remove(&mut self, id: u32) {
        let Share { link, group, at_link, at_group, .. } = self.shares[id as usize];
        let (on_link, of_group) = (&mut self.on_link[link as usize], &mut self.of_group[group as usize]);
        on_link.swap_remove(at_link as usize);
        if let Some(moved) = on_link.get(at_link as usize) {
            self.shares[moved.share as usize].at_link = at_link;
        }
        of_group.swap_remove(at_group as usize);
        if let Some(moved) = of_group.get(at_group as usize) {
            self.shares[moved.share as usize].at_group = at_group;
        }
        self.free.push(id);
    }
}
