//! How the setup creates an array: the part that the PEs of a process share, and the part of each PE.

use super::{Begin, Setup};
use crate::array::{self, Array, Chare, ChareSlot, Port};
use crate::checkpoint::Checkpoint;
use crate::elements::Elements;
use crate::inbox::Mail;
use crate::index::{Group, Index, show};
use crate::location::{Directory, NO_ELEMENT, Placement, place};
use crate::node::{Failure, SharedArray};
use crate::pe::ArrayInfo;
use crate::pulse::ArrayNames;
use crate::restoring;
use crate::slot::Slot;
use equipoise_model::memory;
use equipoise_model::table;
use parking_lot::Mutex;
use std::cell::RefCell;
use std::marker::PhantomData;
use std::panic::resume_unwind;
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};

/// The most ranks, over all PEs on this computer, for which directories are tables.
const DENSE_DIRECTORIES: u64 = 1 << 22;

/// Sparse arrays with more indices than this use directories instead of a table of places.
const DENSE: u32 = 1 << 22;

impl Setup {
    #[track_caller]
    pub(super) fn count<T: Chare>(&self, shape: T::Index) -> u32 {
        match T::Index::count(shape) {
            Some(count) => count,
            None => panic!(
                "the shape {} of {} is negative or has more than 2^32 - 1 indices; give a smaller shape, from 0 on",
                show(shape),
                T::NAME
            ),
        }
    }

    #[track_caller]
    fn placement<T: Chare>(&self, shape: T::Index, begin: Begin<'_, T::Index>) -> Placement {
        if let Some(group) = T::Index::GROUP {
            return Placement::Every(match group {
                Group::Pe => 1,
                Group::Process => self.pe.settings().local_pes(),
            });
        }
        if let Begin::OnCreator = begin {
            return Placement::RoundRobin;
        }
        if let Begin::With(_, placement) = begin {
            return placement.clone();
        }
        if let Begin::Chosen(place) = begin {
            let count = self.count::<T>(shape);
            let list: Arc<[u32]> = (0..count).map(|rank| place(T::Index::unrank(rank, shape)).0).collect();
            if let Some(rank) = list.iter().position(|&pe| pe >= self.pe.out.pes) {
                let index = show(T::Index::unrank(rank as u32, shape));
                panic!(
                    "{}{index} is placed on PE {}, but PEs are 0 to {}; name one of these",
                    T::NAME,
                    list[rank],
                    self.pe.out.pes - 1
                );
            }
            return Placement::Listed(list);
        }
        match &self.pe.settings().initial {
            Placement::Random(seed) => {
                // Every array has its own random placement.
                Placement::Random(seed ^ (self.ports.borrow().len() as u64) << 48)
            }
            Placement::Listed(list) if T::Index::count(shape) != Some(list.len() as u32) => Placement::Blocks,
            placement => placement.clone(),
        }
    }

    /// Creates the next array, with an element at each index if `make` is given.
    #[track_caller]
    pub(super) fn create<I: Index, T: Chare<Index = I>>(
        &self,
        shape: I,
        make: Option<&impl Fn(I) -> T>,
        begin: Begin<'_, I>,
    ) -> Array<T> {
        let id = self.ports.borrow().len();
        assert!(id < usize::from(u16::MAX), "there are more than {} arrays", u16::MAX - 1);
        let id = id as u16;
        let (out, count) = (&self.pe.out, self.count::<T>(shape));
        if let Some(group) = I::GROUP {
            let groups = match group {
                Group::Pe => out.pes,
                Group::Process => out.node.settings.processes(),
            };
            assert!(
                count == groups,
                "{} has one element {group}; give it the shape {group:?}({groups})",
                T::NAME
            );
        }
        let direct = out.node.settings.has_places() && (make.is_some() || count <= DENSE);
        let shared = self.shared_array::<I, T>(id, shape, (direct, make.is_some()), begin);
        let dense = u64::from(count) * out.node.settings.directories() <= DENSE_DIRECTORIES;
        let mut directory = (!direct).then(|| Directory::new(out.rank, count, dense));
        let mut slots = Vec::new();
        let mut add = |slot: ChareSlot<T>| {
            let (rank, at) = (slot.rank, slots.len() as u32);
            match &mut directory {
                None => shared.places[rank as usize].store(place(out.rank, at), Relaxed),
                Some(directory) => directory.arrived(rank, at, 0),
            }
            slots.push(slot);
        };
        if let Some(checkpoint) = &out.node.settings.restart {
            let on = (out.rank, out.pes);
            match restoring::add_elements(
                checkpoint,
                (usize::from(id), begin.leader()),
                &shared,
                on,
                &mut add,
            ) {
                Ok(bytes) => {
                    let restored = &self.pe.collectives.steps.restored_bytes;
                    restored.set(restored.get() + bytes);
                }
                Err(sentence) => {
                    out.node.fail(Failure::Program(sentence));
                    // Ends the setup without the message of a panic.
                    resume_unwind(Box::new(()));
                }
            }
        } else if let Some(make) = make {
            let make = |rank| add(Slot::new(rank, make(I::unrank(rank, shape))));
            shared.placement.each(out.rank, count, out.pes, &shared.residents, make);
        }
        self.pe.collectives.add_array(if make.is_some() { count } else { 0 });
        let used = matches!(begin, Begin::OnCreator).then(|| {
            let used = |checkpoint: &Arc<Checkpoint>| checkpoint.used_of(usize::from(id)).div_ceil(out.pes);
            out.node.settings.restart.as_ref().map_or(0, used)
        });
        let port = Rc::new(Port::new(id, shared, directory, used));
        self.add_info::<T>(id, count, make.is_some(), begin);
        let elements = Rc::new(RefCell::new(Elements::new(Rc::clone(&port), slots)));
        self.managers.borrow_mut().push(elements.clone());
        self.elements.borrow_mut().push(elements);
        self.ports.borrow_mut().push(port);
        Array { id, of: PhantomData }
    }

    fn add_info<T: Chare>(&self, id: u16, count: u32, has_elements: bool, begin: Begin<'_, T::Index>) {
        let mut infos = self.infos.borrow_mut();
        let bound_to = begin.leader();
        if let Some(leader) = bound_to {
            infos[usize::from(leader)].followers.push(id);
        }
        infos.push(ArrayInfo {
            name: T::NAME,
            sync: T::SYNC,
            expedited: T::EXPEDITED,
            prioritized: T::PRIORITIZED,
            count,
            has_elements,
            bound_to,
            followers: Vec::new(),
        });
    }

    /// The part of an array that the PEs of a process share; the first PE to call this creates it.
    #[track_caller]
    fn shared_array<I: Index, T: Chare<Index = I>>(
        &self,
        id: u16,
        shape: I,
        (direct, has_elements): (bool, bool),
        begin: Begin<'_, I>,
    ) -> Arc<array::Shared<T>> {
        let (node, rank, pes) = (&self.pe.out.node, self.pe.out.rank, self.pe.out.pes);
        let (at, count) = (usize::from(id), self.count::<T>(shape));
        // Computed outside the lock, because a placement may run user code.
        let is_known = node.arrays.lock().len() > at;
        if !is_known {
            let parts = [
                (direct || has_elements, size_of::<AtomicU64>()),
                (has_elements, size_of::<ChareSlot<T>>()),
                (matches!(begin, Begin::Chosen(_)), size_of::<u32>()),
            ];
            let each: usize = parts.iter().filter(|(exists, _)| *exists).map(|(_, bytes)| bytes).sum();
            let elements = u64::from(count) * each as u64;
            let mailboxes = array::ChareMail::<T>::bytes(node.settings.mailboxes());
            let what = format!("the array {} of {}", T::NAME, table::count(count, "element"));
            let remedy = if mailboxes > elements { "use fewer PEs" } else { "use fewer elements" };
            if let Err(refusal) = memory::check(elements + mailboxes, &what, remedy) {
                node.fail(Failure::Program(refusal));
                // Ends the setup without the message of a panic. Only the first failure of a run is reported.
                resume_unwind(Box::new(()));
            }
        }
        let placement = if is_known { None } else { Some(self.placement::<T>(shape, begin)) };
        let mut all = node.arrays.lock();
        if let Some(placement) = placement.filter(|_| all.len() == at) {
            let element = move |rank| format!("{}{}", T::NAME, show(I::unrank(rank, shape)));
            let element = Box::new(element);
            node.pulses.add_array(ArrayNames {
                array: T::NAME,
                entries: T::ENTRIES,
                is_expedited: T::EXPEDITED,
                element,
            });
            let places = |rank| AtomicU64::new(place(placement.pe(rank, count, pes), NO_ELEMENT));
            let begin = match (begin, &placement) {
                (Begin::With(leader, _), _) => format!(", bound to array {}", leader + 1),
                (_, Placement::Listed(list)) => {
                    format!(", placed on PEs with the checksum {:08x}", checksum(list))
                }
                _ => String::new(),
            };
            let shared = Arc::new(array::Shared::<T> {
                shape,
                count,
                places: if direct { (0..count).map(places).collect() } else { Box::default() },
                placement,
                residents: OnceLock::new(),
                mail: Mail::new(u32::from(id) + 1, node.settings.mailboxes()),
                regrouped: Mutex::default(),
            });
            all.push(SharedArray { made_by: rank, name: described::<T>(shape), begin, shared });
        }
        let SharedArray { made_by, name, shared, .. } = all[at].clone();
        drop(all);
        match shared.downcast::<array::Shared<T>>() {
            Ok(shared) if shared.shape == shape => shared,
            _ => panic!(
                "array {} of the setup is {} on PE {rank} and {name} on PE {made_by}; make the same arrays on \
                 every PE",
                at + 1,
                described::<T>(shape)
            ),
        }
    }
}

/// A checksum of the PEs on which elements begin.
fn checksum(pes: &[u32]) -> u32 {
    let mut checksum = crc32fast::Hasher::new();
    pes.iter().for_each(|pe| checksum.update(&pe.to_le_bytes()));
    checksum.finalize()
}

/// An array in messages to users: `Block of shape [4, 4]`.
fn described<T: Chare>(shape: T::Index) -> String {
    match show(shape).as_str() {
        "" => T::NAME.into(),
        shape => format!("{} of shape {shape}", T::NAME),
    }
}
