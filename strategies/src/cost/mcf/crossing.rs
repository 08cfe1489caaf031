//! The messages that cross each link, updated when tasks swap.
//!
//! The senders and receivers of messages over the busiest link are needed after every applied swap. Scanning all
//! messages each time would take much longer than the swap.

use crate::cost::commodities::Commodities;
use crate::cost::routes::Routes;

/// The messages over every link, as (sender, receiver).
#[derive(Clone, Default)]
pub(super) struct Crossing {
    messages: Vec<Vec<[u32; 2]>>,
    /// Whether `messages` is up to date; it is filled on the first use after a restart.
    is_current: bool,
    buffer: Vec<usize>,
}

impl Crossing {
    /// Discards all messages until the next call of [`Self::users`].
    pub(super) fn invalidate(&mut self) {
        self.is_current = false;
    }

    /// Lists all messages, with vertex `i` on PE `places[i]`.
    fn fill(&mut self, commodities: &Commodities, routes: &Routes, places: &[u32]) {
        let Crossing { messages, buffer, is_current } = self;
        *is_current = true;
        messages.iter_mut().for_each(Vec::clear);
        messages.resize(routes.links().len(), Vec::new());
        for (from, to, _) in commodities.sent() {
            routes.follow(places[from], places[to], buffer, |link| {
                messages[link].push([from as u32, to as u32]);
            });
        }
    }

    /// Adds (`is_added`) or removes the messages of `tasks` along their current routes; does nothing before the first use.
    pub(super) fn change(
        &mut self,
        (commodities, routes): (&Commodities, &Routes),
        places: &[u32],
        tasks: [Option<usize>; 2],
        is_added: bool,
    ) {
        let Crossing { messages, buffer, .. } = self;
        if !self.is_current {
            return;
        }
        for (number, task) in tasks.into_iter().enumerate() {
            let Some(task) = task else { continue };
            for partner in commodities.partners(task) {
                let other = partner.vertex as usize;
                // Messages between both tasks are listed at both, and must change only once.
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
                        if is_added {
                            here.push(message);
                        } else if let Some(at) = here.iter().position(|crossing| *crossing == message) {
                            here.swap_remove(at);
                        }
                    });
                }
            }
        }
    }

    /// The vertices that send or receive over a link, in ascending order.
    pub(super) fn users(
        &mut self,
        (commodities, routes): (&Commodities, &Routes),
        places: &[u32],
        link: usize,
        users: &mut Vec<usize>,
    ) {
        if !self.is_current {
            self.fill(commodities, routes, places);
        }
        users.clear();
        let messages = self.messages.get(link).into_iter().flatten();
        users.extend(messages.flatten().map(|&vertex| vertex as usize));
        users.sort_unstable();
        users.dedup();
    }
}
