//! Which messages cross each link, kept while tasks change places.
//!
//! Who uses the busiest link is asked after every swap that is made; to look through all messages each time would take
//! far longer than the swap.

use crate::cost::commodities::Commodities;
use crate::cost::routes::Routes;

/// The messages over every link, as (sender, receiver).
#[derive(Clone, Default)]
pub(super) struct Crossing {
    messages: Vec<Vec<[u32; 2]>>,
    /// Whether they are kept: somebody has asked since the last restart.
    is_kept: bool,
    buffer: Vec<usize>,
}

impl Crossing {
    /// Keeps nothing until somebody asks.
    pub(super) fn forget(&mut self) {
        self.is_kept = false;
    }

    /// Looks at all messages, with vertex `i` on PE `places[i]`.
    fn fill(&mut self, commodities: &Commodities, routes: &Routes, places: &[u32]) {
        let Crossing { messages, buffer, is_kept } = self;
        *is_kept = true;
        messages.iter_mut().for_each(Vec::clear);
        messages.resize(routes.machine().links(), Vec::new());
        for (from, to, _) in commodities.sent() {
            routes.follow(places[from], places[to], buffer, |link| {
                messages[link].push([from as u32, to as u32]);
            });
        }
    }

    /// Takes the messages of tasks away, or puts them where the tasks are now; nothing if they are not kept.
    pub(super) fn change(
        &mut self,
        (commodities, routes): (&Commodities, &Routes),
        places: &[u32],
        tasks: [Option<usize>; 2],
        comes: bool,
    ) {
        let Crossing { messages, buffer, .. } = self;
        if !self.is_kept {
            return;
        }
        for (number, task) in tasks.into_iter().enumerate() {
            let Some(task) = task else { continue };
            for partner in commodities.partners(task) {
                let other = partner.vertex as usize;
                // What the two send each other is seen from both, and changes once.
                if number == 1 && tasks[0] == Some(other) {
                    continue;
                }
                for (from, to, bytes) in
                    [(task, other, partner.sent_bytes), (other, task, partner.received_bytes)]
                {
                    if bytes == 0 {
                        continue;
                    }
                    let message = [from as u32, to as u32];
                    routes.follow(places[from], places[to], buffer, |link| {
                        let here = &mut messages[link];
                        if comes {
                            here.push(message);
                        } else if let Some(at) = here.iter().position(|crossing| *crossing == message) {
                            here.swap_remove(at);
                        }
                    });
                }
            }
        }
    }

    /// The vertices that send over a link, or are sent to over it, in ascending order.
    pub(super) fn users(
        &mut self,
        (commodities, routes): (&Commodities, &Routes),
        places: &[u32],
        link: usize,
        users: &mut Vec<usize>,
    ) {
        if !self.is_kept {
            self.fill(commodities, routes, places);
        }
        users.clear();
        let messages = self.messages.get(link).into_iter().flatten();
        users.extend(messages.flatten().map(|&vertex| vertex as usize));
        users.sort_unstable();
        users.dedup();
    }
}
