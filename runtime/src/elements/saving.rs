//! What a checkpoint has of the elements on a PE.

use super::Elements;
use crate::array::{Chare, ChareSlot};
use crate::checkpoint::{ArrayIndex, ElementIndex, Part};
use crate::codec;
use crate::order::{Partial, Receivers};
use crate::pe::PeCx;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// What a PE has of an array beside elements. `E`, `Q` and `P` are owned lists when read, borrowed ones when written.
#[derive(Serialize, Deserialize)]
struct RestOf<E, Q, P> {
    /// Messages for elements that do not exist, by rank.
    early: E,
    /// Messages that wait for quiescence.
    quiet: Q,
    /// On PE 0: unfinished reductions with this array as target.
    totals: P,
}

/// What a PE has of an array beside elements.
pub(super) type Rest<M> = (Vec<(u32, Vec<M>)>, VecDeque<(Receivers, M)>);

type Owned<M> = RestOf<Vec<(u32, Vec<M>)>, VecDeque<(Receivers, M)>, Vec<Partial<M>>>;

impl<T: Chare> Elements<T> {
    pub(super) fn save_all(&mut self, pe: &PeCx, part: &mut Part) -> Result<ArrayIndex, String> {
        debug_assert!(
            self.batch.is_empty() && self.late.is_empty() && self.leaving.is_empty() && self.ahead.is_empty(),
            "nothing is in flight"
        );
        if let Some((_, slot)) = self.blocked_inserts.first() {
            let name = self.port.name(slot.rank);
            return Err(format!(
                "{name} was inserted while it exists, and the new one waits for the end of the old one and cannot be saved; \
                 end {name} before it is inserted again"
            ));
        }
        let mut early: Vec<(u32, &Vec<T::Msg>)> = self.early.iter().map(|(&rank, all)| (rank, all)).collect();
        early.sort_unstable_by_key(|(rank, _)| *rank);
        let rest = self.port.with_totals(|totals| {
            let rest = RestOf { early: &early, quiet: &*self.port.quiet.borrow(), totals };
            part.record(|bytes| codec::encode_into(&rest, bytes))
        });
        let failed = |what: String, error: codec::CodecError| {
            format!("{what} cannot be saved: {error}; correct its `Serialize`")
        };
        let rest = rest.map_err(|error| failed(format!("a message to {}", T::NAME), error))?;
        let mut elements = Vec::with_capacity(self.slots.len());
        for slot in &mut self.slots {
            // Ticks of another computer's clock may have another length.
            let load = std::mem::take(&mut slot.load);
            let encoded = part.record(|bytes| codec::encode_into(slot, bytes));
            slot.load = load;
            let record = encoded.map_err(|error| failed(self.port.name(slot.rank), error))?;
            let load_seconds = pe.recorder.clock.seconds(load) * pe.clock.speed();
            elements.push(ElementIndex { rank: slot.rank, load_seconds, record });
        }
        Ok(ArrayIndex { rest, elements })
    }

    pub(super) fn restore_rests(&mut self, rests: &[Vec<u8>], broadcasts: u32) -> Result<(), String> {
        self.broadcasts = broadcasts;
        self.port.broadcasts.set(broadcasts);
        for bytes in rests {
            let rest: Owned<T::Msg> =
                codec::decode(bytes).map_err(|error| format!("a message to {}: {error}", T::NAME))?;
            self.port.restore_totals(rest.totals);
            self.restored.push((rest.early, rest.quiet));
        }
        Ok(())
    }

    pub(super) fn resend_all(&mut self, pe: &PeCx) {
        for (early, quiet) in std::mem::take(&mut self.restored) {
            for (rank, messages) in early {
                messages.into_iter().for_each(|msg| self.port.send(&pe.out, rank, msg));
            }
            for (to, msg) in quiet {
                self.port.when_quiet(pe, to, msg);
            }
        }
    }
}

/// An element of a checkpoint, with the load that it had.
pub(crate) fn restored<T: Chare>(bytes: &[u8], load_seconds: f64) -> Result<ChareSlot<T>, codec::CodecError> {
    let mut slot: ChareSlot<T> = codec::decode(bytes)?;
    if load_seconds > 0.0 {
        slot.extra().charged += load_seconds;
    }
    Ok(slot)
}
