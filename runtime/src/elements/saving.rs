//! What a checkpoint has of the elements on a PE.

use super::Elements;
use crate::array::{Chare, ChareSlot};
use crate::checkpoint::{ArrayIndex, ElementIndex, Part};
use crate::codec::{self, CodecError};
use crate::order::{Partial, Receivers};
use crate::pe::PeCx;
use crate::slot::NextRounds;
use equipoise_model::table;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// What a PE has of an array in addition to elements. `E`, `Q` and `P` are owned lists when read, borrowed ones when written.
#[derive(Serialize, Deserialize)]
struct RestOf<E, Q, P> {
    /// Messages for elements that do not exist, by rank.
    early: E,
    /// Messages that wait for quiescence.
    quiet: Q,
    /// On PE 0: unfinished reductions with this array as target.
    totals: P,
}

/// What a PE has of an array in addition to elements.
pub(super) type Rest<M> = (Vec<(u32, Vec<M>)>, VecDeque<(Receivers, M)>);

type Owned<M> = RestOf<Vec<(u32, Vec<M>)>, VecDeque<(Receivers, M)>, Vec<Partial<M>>>;

impl<T: Chare> Elements<T> {
    pub(super) fn save_all(&mut self, pe: &PeCx, part: &mut Part) -> Result<ArrayIndex, String> {
        let is_at_rest = self.batch.is_empty()
            && self.by_priority.len() == 0
            && self.late.is_empty()
            && self.leaving.is_empty()
            && self.ahead.is_empty();
        if !is_at_rest {
            // Saved, it would be lost without a word.
            return Err(format!(
                "an element of {} or a message to one is still in flight (please report this bug)",
                T::NAME
            ));
        }
        if let Some(&rank) = self.blocked_inserts.sorted_keys().first() {
            let name = self.port.name(rank as u32);
            return Err(format!(
                "{name} was inserted while it exists, and the new one waits for the end of the old one and cannot be saved; \
                 end {name} before it is inserted again"
            ));
        }
        let of_key = |key| self.early.get(key).map(|all| (key as u32, all));
        let early: Vec<(u32, &Vec<T::Msg>)> =
            self.early.sorted_keys().into_iter().filter_map(of_key).collect();
        let rest = self.port.with_totals(|totals| {
            let rest = RestOf { early: &early, quiet: &*self.port.quiet.borrow(), totals };
            part.record(|bytes| codec::encode_into(&rest, bytes))
        });
        let failed = |what: String, error: CodecError| {
            format!(
                "{what} cannot be saved: {error}; correct its `Serialize`, or leave the field out with `#[serde(skip)]`"
            )
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
        let used = self.port.used.as_ref().map_or(0, |used| used.get().saturating_mul(pe.out.pes));
        Ok(ArrayIndex { rest, used, elements })
    }

    pub(super) fn restore_rests(
        &mut self,
        rests: &[Vec<u8>],
        next: NextRounds,
        arrays: usize,
    ) -> Result<(), String> {
        if let Some(slot) = self.slots.iter().find(|slot| !slot.is_after(next)) {
            return Err(impossible(&self.port.name(slot.rank)));
        }
        self.broadcasts = next.broadcast;
        self.port.broadcasts.set(next.broadcast);
        for bytes in rests {
            let rest: Owned<T::Msg> = codec::decode(bytes).map_err(|error| misfit::<T>(&error, T::NAME))?;
            self.check_receivers(&rest)?;
            let is_reduction = |total: &Partial<T::Msg>| {
                let mut entries = total.pieces.messages().map(T::entry);
                usize::from(total.of.source.array()) < arrays
                    && usize::from(total.of.entry) < T::ENTRIES.len()
                    && entries.all(|entry| entry == usize::from(total.of.entry))
            };
            if !rest.totals.iter().all(is_reduction) {
                return Err(format!(
                    "has an impossible reduction to {}; restart the program that was saved",
                    T::NAME
                ));
            }
            self.port.restore_totals(rest.totals);
            self.restored.push((rest.early, rest.quiet));
        }
        Ok(())
    }

    /// Checks that the receivers of waiting messages and of reductions have an index in the array.
    fn check_receivers(&self, rest: &Owned<T::Msg>) -> Result<(), String> {
        let (id, count) = (self.port.id, self.port.shared.count);
        let early = rest.early.iter().map(|(rank, _)| *rank).filter(|rank| *rank >= count);
        let receivers =
            rest.quiet.iter().map(|(to, _)| to).chain(rest.totals.iter().map(|total| &total.of.to));
        match early.chain(receivers.filter_map(|to| to.outside(id, count))).next() {
            Some(rank) => Err(format!(
                "has a message that waits for element {rank} of {}, which has {} in this run; restart with as many as there were",
                T::NAME,
                table::count(count, "element"),
            )),
            None => Ok(()),
        }
    }

    pub(super) fn resend_all(&mut self, pe: &PeCx) {
        for (early, quiet) in std::mem::take(&mut self.restored) {
            for (rank, messages) in early {
                messages.into_iter().for_each(|msg| self.port.send_any(&pe.out, rank, msg));
            }
            for (to, msg) in quiet {
                self.port.when_quiet(pe, to, msg);
            }
        }
    }
}

/// An element of a checkpoint, with the load that it had.
///
/// # Errors
/// A sentence about the element `name`.
pub(crate) fn restored<T: Chare>(
    bytes: &[u8],
    load_seconds: f64,
    name: impl Fn() -> String,
) -> Result<ChareSlot<T>, String> {
    let mut slot: ChareSlot<T> = codec::decode(bytes).map_err(|error| misfit::<T>(&error, &name()))?;
    if !slot.is_plausible() {
        return Err(impossible(&name()));
    }
    if load_seconds > 0.0 {
        slot.extra().charged += load_seconds;
    }
    Ok(slot)
}

/// The sentence that no run has saved such an element.
fn impossible(name: &str) -> String {
    format!("has {name} in a state that no run saves; restart from another checkpoint")
}

/// The sentence that saved bytes do not fit the types of a chare: probably they have other fields than in the saved run.
fn misfit<T: Chare>(error: &CodecError, name: &str) -> String {
    let what = match error {
        CodecError::Decode { place, reason, .. } => format!("{}{reason}", part(place)),
        CodecError::LeftOver { left, .. } => {
            let bytes = table::count(*left as u64, "byte");
            format!("{bytes} left over after its last field, so a type in it had more fields")
        }
        CodecError::Encode(_) => error.to_string(),
    };
    format!(
        "does not fit {name}: {what}; give {} and its entries the fields and arguments that they had, or restart with the \
         build that saved it",
        T::NAME
    )
}

/// A place in a [`Slot`](crate::slot::Slot) or [`RestOf`], in front of an error: a field of the element, or the argument of a
/// message.
fn part(place: &str) -> String {
    if let Some(field) = place.strip_prefix("chare.") {
        return format!("field `{field}`: ");
    }
    if let Some((wait, number)) =
        place.strip_prefix("flow.").and_then(|flow| flow.trim_end_matches(')').split_once('('))
    {
        return format!("variable {number} of its flow in `{wait}`: ");
    }
    let message =
        place.split_once(".msg.").or_else(|| place.strip_prefix("extra.").unwrap_or(place).split_once('.'));
    let argument = message.and_then(|(_, message)| {
        let (entry, rest) = message.split_once('(')?;
        let (number, rest) = rest.split_once(')')?;
        let inside =
            if rest.is_empty() { String::new() } else { format!(" at `{}`", rest.trim_start_matches('.')) };
        Some(format!("argument {number} of a message to `{entry}`{inside}: "))
    });
    argument.unwrap_or_default()
}
