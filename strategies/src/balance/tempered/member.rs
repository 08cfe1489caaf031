//! `TemperedLB` on one PE.
//!
//! 1. The member says its load and speed. If no PE is above the average, the protocol is over.
//! 2. An iteration: rounds of gossip; PEs above the average give objects away; all sum up what they have, and send their seconds. The
//!    iteration with the least maximum is remembered.
//! 3. After the last iteration the member has again what it had in the best one, and tells the PEs that have its new objects in memory
//!    that it takes them.

use std::sync::Arc;

use rand_chacha::ChaCha8Rng;

use equipoise_model::assignment::Note;

use super::{Tempered, Transfer};
use crate::balance::gossip::{Gossip, Rumours, rank_rng, sample};
use crate::balance::members::{Pile, taken};
use crate::decentral::{Decentral, Item, Known, Letter, Member, Outcome, Own, Sends, Totals};

impl Decentral for Tempered {
    fn check(&self, ranks: u32) -> Result<(), String> {
        match ranks {
            0 | 1 => Ok(()),
            _ => self
                .gossip(ranks as usize)
                .check(ranks as usize, self.iters * self.trials)
                .map_err(|error| error.to_string()),
        }
    }

    fn member(&self, own: Own) -> Box<dyn Member> {
        debug_assert_eq!(self.transfer, Transfer::Original);
        let pile = Pile::new(&own);
        Box::new(OnPe {
            config: *self,
            gossip: self.gossip(own.ranks.max(2) as usize),
            ranks: own.ranks,
            rng: rank_rng(own.seed, own.step, own.rank),
            first: pile.items.clone(),
            best: pile.items.clone(),
            pile,
            rumours: Rumours::new(own.rank, None),
            target_seconds: 0.0,
            best_seconds: 0.0,
            iterations: 0,
            best_iteration: 0,
            messages: 0,
            next: Next::Begin,
            outcome: Outcome::default(),
        })
    }
}

/// What a member does in its next round.
#[derive(Clone, Copy)]
enum Next {
    /// Says its load and speed.
    Begin,
    /// Learns the average and begins with the gossip.
    Compare,
    /// Reads the gossip of the round with this number, from 1.
    Gossip(usize),
    /// Receives objects.
    Sum,
    /// Begins an iteration, or ends.
    Iterate,
    /// Learns which of its objects leave.
    End,
}

/// The member on one PE.
struct OnPe {
    config: Tempered,
    gossip: Gossip,
    ranks: u32,
    rng: ChaCha8Rng,
    pile: Pile,
    /// What it has at the begin of a trial.
    first: Vec<Item>,
    /// What it had after the best iteration.
    best: Vec<Item>,
    rumours: Rumours,
    target_seconds: f64,
    /// The heaviest PE after the best iteration.
    best_seconds: f64,
    iterations: usize,
    best_iteration: usize,
    messages: u64,
    next: Next,
    outcome: Outcome,
}

impl Member for OnPe {
    fn round(
        &mut self,
        totals: &Totals,
        received: &[(u32, Arc<Letter>)],
        sends: &mut Sends,
    ) -> Option<Totals> {
        self.messages += totals.counts[0];
        match self.next {
            Next::Begin => {
                self.next = Next::Compare;
                Some(Totals::with_work(self.pile.seconds, self.pile.speed))
            }
            Next::Compare => {
                self.target_seconds = totals.average_seconds();
                self.best_seconds = totals.max_seconds;
                if totals.max_seconds <= self.target_seconds || self.ranks < 2 {
                    return None;
                }
                Some(self.begin_iteration(sends))
            }
            Next::Gossip(round) => {
                self.rumours.read(self.gossip, received);
                if round < self.gossip.rounds {
                    return Some(self.whisper(round + 1, sends));
                }
                self.next = Next::Sum;
                self.give(sends);
                Some(Totals::default())
            }
            Next::Sum => {
                self.next = Next::Iterate;
                for (_, letter) in received {
                    if let Letter::Given(items) = &**letter {
                        self.pile.items.extend(items);
                    }
                }
                self.pile.sum_up();
                Some(Totals::of(self.pile.seconds, [0; 3]))
            }
            Next::Iterate => {
                self.iterations += 1;
                if totals.max_seconds < self.best_seconds {
                    self.best_seconds = totals.max_seconds;
                    self.best_iteration = self.iterations;
                    self.best.clone_from(&self.pile.items);
                }
                if self.iterations == self.config.iters * self.config.trials {
                    self.next = Next::End;
                    self.pile.items = std::mem::take(&mut self.best);
                    self.pile.sum_up();
                    self.outcome.coming = self.pile.take(sends);
                    return Some(Totals::default());
                }
                if self.iterations.is_multiple_of(self.config.iters) {
                    self.pile.items.clone_from(&self.first);
                    self.pile.sum_up();
                }
                Some(self.begin_iteration(sends))
            }
            Next::End => {
                self.outcome.leaving = taken(received);
                self.outcome.notes = vec![
                    Note::new("gossip messages", self.messages as f64),
                    Note::new("iterations", self.iterations as f64),
                    Note::new("best iteration", self.best_iteration as f64),
                ];
                None
            }
        }
    }

    fn outcome(&mut self) -> Outcome {
        Outcome { seconds: self.pile.seconds, ..std::mem::take(&mut self.outcome) }
    }
}

impl OnPe {
    fn begin_iteration(&mut self, sends: &mut Sends) -> Totals {
        let Pile { rank, speed, seconds, .. } = self.pile;
        let own = Known { rank, speed: speed as f32, seconds };
        self.rumours = Rumours::new(rank, (seconds < self.target_seconds).then_some(own));
        self.whisper(1, sends)
    }

    /// Sends the gossip of a round.
    fn whisper(&mut self, round: usize, sends: &mut Sends) -> Totals {
        self.next = Next::Gossip(round);
        let messages = self.rumours.send(self.gossip, self.ranks, &mut self.rng, sends);
        Totals::of(0.0, [messages, 0, 0])
    }

    /// Gives objects away if this PE is above the average.
    fn give(&mut self, sends: &mut Sends) {
        let known = self.rumours.known();
        let mut seconds = self.pile.seconds;
        if seconds <= self.target_seconds || known.is_empty() {
            return;
        }
        let mut expected: Vec<f64> = known.iter().map(|known| known.seconds).collect();
        let mut weights = Vec::new();
        let mut given: Vec<(usize, Item)> = Vec::new();
        for item in self.config.ordering.of(&self.pile, self.target_seconds) {
            let scale = expected.iter().copied().fold(self.target_seconds, f64::max);
            // A single known rank is chosen even if its weight is 0.
            weights.clear();
            weights.extend(expected.iter().map(|&expected| 1.0 - expected / scale));
            let sampled = if known.len() == 1 { Some(0) } else { sample(&mut self.rng, &weights) };
            let Some(position) = sampled else { break };
            let after = expected[position] + item.load_seconds / f64::from(known[position].speed);
            if self.config.criterion.allows(seconds, after, self.target_seconds) {
                expected[position] = after;
                seconds -= self.pile.seconds_of(&item);
                given.push((position, item));
            }
            if seconds <= self.target_seconds {
                break;
            }
        }
        given.sort_by_key(|of| of.0);
        for of_one in given.chunk_by(|a, b| a.0 == b.0) {
            let items = of_one.iter().map(|of| of.1).collect();
            sends.push((vec![known[of_one[0].0].rank], Arc::new(Letter::Given(items))));
        }
        self.pile.remove(given.into_iter().map(|(_, item)| item.key).collect());
    }
}
