//! The elements of a checkpoint, as the setup of a restarted run takes them.
//!
//! Arrays are those of the saved run. Only arrays with one element on every PE or in every process may have another number of
//! elements, if their chare says with `regroup` how: then each process reads all their elements.

use crate::array::{Chare, ChareSlot, Shared};
use crate::checkpoint::{ArrayHead, Checkpoint, SavedElement};
use crate::codec;
use crate::elements::restored;
use crate::index::{Group, Index, show};
use crate::slot::Slot;
use equipoise_model::table::count;

/// Calls `add` with the elements of an array that begin on a PE of `pes`. Returns the number of bytes that were read.
///
/// # Errors
/// A sentence, if the array of the checkpoint is another one, or an element does not fit.
pub(crate) fn add_elements<T: Chare>(
    checkpoint: &Checkpoint,
    (array, bound_to): (usize, Option<u16>),
    shared: &Shared<T>,
    (pe, pes): (u32, u32),
    add: &mut impl FnMut(ChareSlot<T>),
) -> Result<u64, String> {
    let mut bytes = 0;
    let here = shared.head(bound_to);
    let saved = checkpoint.heads().get(array);
    if let Some(saved) = saved.filter(|saved| saved.is_of_same_chare(&here)) {
        let difference = if saved.fields == here.fields {
            (saved.waits != here.waits).then(|| has_other_waits(saved, &here))
        } else {
            Some(has_other_fields(saved, &here))
        };
        if let Some(difference) = difference {
            return Err(checkpoint.unfit(&difference).to_string());
        }
    }
    if saved != Some(&here) {
        let saved = saved.filter(|saved| T::Index::GROUP.is_some() && saved.is_of_same_chare(&here));
        let Some(saved) = saved else { return Err(is_another_array(checkpoint, array, &here)) };
        let mut regrouped = shared.regrouped.lock();
        if regrouped.is_none() {
            *regrouped = Some(regroup(checkpoint, array, shared, saved.count)?);
            bytes = checkpoint.elements_of(array).iter().map(SavedElement::bytes).sum();
        }
        let all = regrouped.iter_mut().flatten().zip(0..);
        let mine = all.filter(|(_, rank)| shared.placement.pe(*rank, shared.count, pes) == pe);
        mine.filter_map(|(slot, _)| slot.take()).for_each(add);
        return Ok(bytes);
    }
    let place = |rank| shared.placement.pe(rank, shared.count, pes);
    for element in checkpoint.elements_on(array, (pe, pes), place) {
        add(read(checkpoint, &element, shared.shape)?);
        bytes += element.bytes();
    }
    Ok(bytes)
}

/// The error that an array of the program is not that of the checkpoint.
fn is_another_array(checkpoint: &Checkpoint, array: usize, here: &ArrayHead) -> String {
    let found = checkpoint.heads().get(array);
    // The number of indices is shown where the shape does not tell them apart.
    let shows_count = found.is_some_and(|saved| saved.shape == here.shape && saved.count != here.count);
    let described = |head: &ArrayHead| {
        let entries: Vec<String> = head.entries.iter().map(|entry| entry.to_string()).collect();
        let bound = head.bound_to.map_or(String::new(), |leader| format!(" bound to array {}", leader + 1));
        let indices = if shows_count { format!(" with {} indices", head.count) } else { String::new() };
        let ArrayHead { name, parameters, shape, .. } = head;
        format!("{name}{parameters} of shape {shape}{indices}{bound} with the entries {}", entries.join(", "))
    };
    let saved = found.map_or("nothing".into(), described);
    let sentence = format!(
        "has {saved} as array {}, and the setup makes {}; restart the program that was saved, with the same flags of its own",
        array + 1,
        described(here)
    );
    checkpoint.unfit(&sentence).to_string()
}

/// That the chare of an array has other fields than its saved elements.
fn has_other_fields(saved: &ArrayHead, here: &ArrayHead) -> String {
    let missing = |of: &ArrayHead, other: &ArrayHead| -> Vec<String> {
        let fields = of.fields.iter().filter(|field| !other.fields.contains(field));
        fields.map(|field| format!("`{field}`")).collect()
    };
    let named = |word: &str, fields: &[String], end: &str| {
        let noun = if fields.len() == 1 { "field" } else { "fields" };
        (!fields.is_empty())
            .then(|| format!("{word} the {noun} {}, which this build {end}", fields.join(", ")))
    };
    let removed = named("with", &missing(saved, here), "does not have");
    let added = named("without", &missing(here, saved), "has");
    let mut how = removed.into_iter().chain(added).collect::<Vec<_>>().join(", and ");
    if how.is_empty() {
        how = "with the same fields in another order".into();
    }
    format!(
        "has elements of {} {how}; give {} the fields that it had (`#[serde(rename)]` gives a field its old name), or restart \
         with the build that saved it",
        here.name, here.name
    )
}

/// That the flow of a chare has other waits than the flow that was saved.
fn has_other_waits(saved: &ArrayHead, here: &ArrayHead) -> String {
    let at = saved.waits.iter().zip(&here.waits).take_while(|(saved, here)| saved == here).count();
    let wait =
        |head: &ArrayHead| head.waits.get(at).map_or("no more waits".into(), |wait| format!("`{wait}`"));
    format!(
        "has elements of {} whose flow has {}, where this build has {}; give the flow the waits and variables that it had, or \
         restart with the build that saved it",
        here.name,
        wait(saved),
        wait(here)
    )
}

/// Reads an element.
fn read<T: Chare>(
    checkpoint: &Checkpoint,
    element: &SavedElement,
    shape: T::Index,
) -> Result<ChareSlot<T>, String> {
    let bytes = checkpoint.element(element).map_err(|error| error.to_string())?;
    let name = || format!("{}{}", T::NAME, show(T::Index::unrank(element.rank, shape)));
    let unfit = |reason: &str| checkpoint.unfit_element(element, reason).to_string();
    let slot = restored::<T>(&bytes, element.load_seconds, name).map_err(|reason| unfit(&reason))?;
    if slot.rank == element.rank {
        Ok(slot)
    } else {
        Err(unfit(&format!("has another element as {}", name())))
    }
}

/// What the runtime knows of an element that is regrouped: the numbers of its next reduction, load-balancing barrier and
/// broadcast, its encoded message of `at_sync`, and where its flow waits, encoded.
type Progress = ([u32; 3], Option<Vec<u8>>, Vec<u8>);

/// Makes the elements of an array of which there were `saved`. What the runtime knows of them must not depend on their number:
/// it is the same for all, and no message waits for one of them.
fn regroup<T: Chare>(
    checkpoint: &Checkpoint,
    array: usize,
    shared: &Shared<T>,
    saved: u32,
) -> Result<Vec<Option<ChareSlot<T>>>, String> {
    let (group, things) = match T::Index::GROUP {
        Some(Group::Process) => (Group::Process, "processes"),
        _ => (Group::Pe, "PEs"),
    };
    let refused = |reason: String| {
        let sentence = format!(
            "has {} of {}, which has one element {group}, and this run has {}{reason}; restart with as many {things} as there \
             were",
            count(saved, "element"),
            T::NAME,
            shared.count
        );
        checkpoint.unfit(&sentence).to_string()
    };
    let Some(regroup) = T::REGROUP else {
        return Err(refused(format!(
            " (its chare does not say with the key `regroup` how {saved} become {})",
            shared.count
        )));
    };
    let name = |rank: u32| format!("{}{}", T::NAME, show(T::Index::unrank(rank, shared.shape)));
    let elements = checkpoint.elements_of(array);
    if let Some((rank, _)) = (0..saved).zip(elements).find(|(rank, element)| *rank != element.rank) {
        return Err(refused(format!(", but {} has ended", name(rank))));
    }
    if elements.len() < saved as usize {
        return Err(refused(format!(", but {} has ended", name(elements.len() as u32))));
    }
    let (mut chares, mut common) = (Vec::new(), None::<Progress>);
    for element in elements {
        let slot = read(checkpoint, element, shared.shape)?;
        let found = progress(&slot).map_err(|waits| refused(format!(", but {} {waits}", name(slot.rank))))?;
        let first = common.get_or_insert_with(|| found.clone());
        if *first != found {
            return Err(refused(format!(", but {}", difference(first, &found, &name(0), &name(slot.rank)))));
        }
        chares.push(slot.chare);
    }
    let ([contributions, syncs, broadcasts], resume, flow) = common.unwrap_or_default();
    let made = regroup(chares, shared.count as usize);
    if made.len() != shared.count as usize {
        let made = count(made.len() as u64, "element");
        return Err(refused(format!(", but the function of the key `regroup` returned {made}")));
    }
    let slots = (0..).zip(made).map(|(rank, chare)| {
        let mut slot: ChareSlot<T> = Slot { contributions, syncs, broadcasts, ..Slot::new(rank, chare) };
        if !flow.is_empty() {
            let decoded = codec::decode(&flow);
            slot.flow = decoded.map_err(|error| {
                checkpoint.unfit(&format!("has a flow that does not fit: {error}")).to_string()
            })?;
        }
        if let Some(bytes) = &resume {
            let message = codec::decode(bytes);
            slot.extra().resume = Some(message.map_err(|error| {
                checkpoint
                    .unfit(&format!("has a message of `at_sync` that does not fit: {error}"))
                    .to_string()
            })?);
        }
        Ok(Some(slot))
    });
    slots.collect()
}

/// What the runtime knows of an element.
///
/// # Errors
/// What waits for the element, as a part of a sentence.
fn progress<T: Chare>(slot: &ChareSlot<T>) -> Result<Progress, String> {
    let numbers = [slot.contributions, slot.syncs, slot.broadcasts];
    let flow = codec::encode(&slot.flow).map_err(|error| format!("has a flow: {error}"))?;
    let Some(extra) = &slot.extra else { return Ok((numbers, None, flow)) };
    if let Some(msg) = extra.pending.front() {
        let messages = count(extra.pending.len() as u64, "message");
        return Err(format!(
            "has {messages} whose guard is false, the first for `{}`",
            T::ENTRIES[T::entry(msg)]
        ));
    }
    if !extra.sections.is_empty() {
        return Err("has contributed to a reduction over a section".into());
    }
    let resume = extra.resume.as_ref().map(codec::encode).transpose();
    Ok((numbers, resume.map_err(|error| format!("has a message of `at_sync`: {error}"))?, flow))
}

/// How the progress of two elements differs.
fn difference(first: &Progress, second: &Progress, name: &str, other: &str) -> String {
    let kinds = ["reductions", "load-balancing steps", "broadcasts"];
    let mut numbers = first.0.iter().zip(&second.0).zip(kinds);
    match numbers.find(|((first, second), _)| first != second) {
        Some(((first, second), kind)) => {
            format!("{name} has taken part in {first} {kind} and {other} in {second}")
        }
        None if first.2 != second.2 => {
            format!("the flows of {name} and {other} wait at different places or with different variables")
        }
        None => format!("{name} and {other} have called `at_sync` with different messages"),
    }
}
