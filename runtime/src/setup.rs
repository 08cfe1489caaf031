//! The setup of a PE creates the arrays, shared values and `main` of a program, before any message.

use crate::array::{self, Array, Chare, ChareSlot, Port};
use crate::elements::{Elements, Manager};
use crate::inbox::Mail;
use crate::index::{Group, Index, Pe, Process, show};
use crate::location::{Directory, NO_ELEMENT, Placement, place};
use crate::node::{Failure, SharedArray};
use crate::pe::{AnyPort, ArrayInfo, PeCx, Shared};
use crate::pulse::ArrayNames;
use crate::restoring;
use crate::saving;
use crate::scheduler::{Built, Task};
use crate::slot::Slot;
use equipoise_model::memory;
use equipoise_model::table::{self, count};
use parking_lot::Mutex;
use std::any::Any;
use std::cell::RefCell;
use std::marker::PhantomData;
use std::panic::resume_unwind;
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};

/// The setup of a PE, before any message. A program makes the same calls in the same order on every PE.
pub struct Setup {
    pe: PeCx,
    ports: RefCell<Vec<Rc<dyn AnyPort>>>,
    managers: RefCell<Vec<Box<dyn Manager>>>,
    infos: RefCell<Vec<ArrayInfo>>,
    shared: RefCell<Vec<Option<Arc<dyn Any + Send + Sync>>>>,
    main: RefCell<Option<Task>>,
}

impl Setup {
    /// Runs `setup` on a PE and returns the PE, ready to run.
    pub(crate) fn run(pe: PeCx, setup: impl FnOnce(&Setup)) -> Built {
        pe.collectives.steps.cost.begin(pe.clock.now());
        let setup_pe = Setup {
            pe,
            ports: RefCell::default(),
            managers: RefCell::default(),
            infos: RefCell::default(),
            shared: RefCell::default(),
            main: RefCell::default(),
        };
        setup(&setup_pe);
        let Setup { mut pe, ports, managers, infos, shared, main } = setup_pe;
        (pe.ports, pe.infos, pe.shared) = (ports.into_inner(), infos.into_inner(), shared.into_inner());
        pe.out.expedited = pe.expedited_bits();
        if let Placement::Listed(list) = &pe.settings().initial
            && !pe.infos.iter().any(|info| info.count as usize == list.len())
        {
            let sizes: Vec<String> =
                pe.infos.iter().map(|info| format!("{} has {}", info.name, info.count)).collect();
            pe.fail(format!(
                "--initial lists {}, and no array has {} elements ({}); write a line for each element of \
                 one array, in index order",
                count(list.len() as u64, "PE"),
                list.len(),
                sizes.join(", ")
            ));
        }
        if pe.out.rank == 0 && !pe.settings().schedule.is_empty() && !pe.infos.iter().any(|info| info.sync) {
            let warning = "the load balancer never runs, because no array of the program takes part in load balancing; \
                           write `#[chare(index = .., sync)]` and call `cx.at_sync()` in an entry";
            pe.out.node.outcome.lock().warnings.push(warning.into());
        }
        let mut managers = managers.into_inner();
        if let Some(checkpoint) = pe.settings().restart.clone()
            && let Err(sentence) = saving::restore(&pe, &checkpoint, &mut managers)
        {
            pe.fail(sentence);
        }
        Built::new(pe, managers, main.into_inner())
    }

    /// Creates an array with an element at every index below `shape`; `make` makes the elements of this PE.
    ///
    /// # Panics
    /// If the shape has a negative side or more than 2^32 - 1 indices, or the setup of another PE
    /// made another array at this point.
    #[track_caller]
    pub fn array<I: Index, T: Chare<Index = I>>(&self, shape: I, make: impl Fn(I) -> T) -> Array<T> {
        self.create(shape, Some(&make), None)
    }

    /// Creates an array like [`array`](Self::array), with the element of each index on the PE that `place` returns.
    ///
    /// # Panics
    /// As `array`, and if `place` names a PE that does not exist.
    #[track_caller]
    pub fn array_placed<I: Index, T: Chare<Index = I>>(
        &self,
        shape: I,
        place: impl Fn(I) -> Pe,
        make: impl Fn(I) -> T,
    ) -> Array<T> {
        refuse_group::<T>(" and cannot be placed");
        self.create(shape, Some(&make), Some(&place))
    }

    /// Creates an array without elements. [`Array::insert`] adds elements at indices below `bounds`.
    ///
    /// # Panics
    /// As `array`.
    #[track_caller]
    pub fn sparse<I: Index, T: Chare<Index = I>>(&self, bounds: I) -> Array<T> {
        refuse_group::<T>("");
        self.create(bounds, None::<&fn(I) -> T>, None)
    }

    /// Creates an array like [`sparse`](Self::sparse). An element that is inserted at an index begins on the PE that
    /// `place` returns.
    ///
    /// `place` is called for each index below `bounds`, possibly by several PEs at the same time. A process keeps 4 bytes for
    /// each index.
    ///
    /// # Panics
    /// As `array_placed`.
    #[track_caller]
    pub fn sparse_placed<I: Index, T: Chare<Index = I>>(
        &self,
        bounds: I,
        place: impl Fn(I) -> Pe,
    ) -> Array<T> {
        refuse_group::<T>(" and cannot be placed");
        self.create(bounds, None::<&fn(I) -> T>, Some(&place))
    }

    /// Creates a large value that all elements of a process can read; `make` runs once per process.
    ///
    /// Capture small read-only data in the closures that make the elements instead.
    pub fn shared<V: Send + Sync + 'static>(&self, make: impl FnOnce() -> V) -> Shared<V> {
        let id = self.shared.borrow().len();
        self.shared.borrow_mut().push(None);
        let value = {
            let mut all = self.pe.out.node.shared.lock();
            if all.len() == id {
                all.push(Arc::default());
            }
            Arc::clone(&all[id])
        };
        // Outside the lock, because `make` may read other shared values.
        let value = value.get_or_init(|| Arc::new(make()));
        self.shared.borrow_mut()[id] = Some(Arc::clone(value));
        Shared { id: id as u32, of: PhantomData }
    }

    /// Reads a shared value during setup.
    ///
    /// # Panics
    /// If the handle comes from another run.
    #[track_caller]
    pub fn read<V: Send + Sync + 'static>(&self, shared: Shared<V>) -> Arc<V> {
        let value = self.shared.borrow().get(shared.id as usize).cloned().flatten();
        value
            .and_then(|value| value.downcast().ok())
            .expect("read a shared value only in the run that created the value")
    }

    /// Runs `start` on PE 0, once every PE has finished its setup.
    ///
    /// # Panics
    /// If there is a `main` already.
    #[track_caller]
    pub fn main(&self, start: impl FnOnce(&PeCx) + 'static) {
        if self.pe.out.rank == 0 {
            let before = self.main.borrow_mut().replace(Box::new(start));
            assert!(before.is_none(), "`main` is already set; call `Setup::main` once");
        }
    }

    /// This PE.
    pub fn here(&self) -> Pe {
        self.pe.here()
    }

    /// How many PEs there are.
    pub fn pes(&self) -> usize {
        self.pe.pes()
    }

    /// The process of this PE.
    pub fn process(&self) -> Process {
        self.pe.process()
    }

    /// How many processes there are.
    pub fn processes(&self) -> usize {
        self.pe.processes()
    }

    /// The seed of the run.
    pub fn seed(&self) -> u64 {
        self.pe.seed()
    }

    #[track_caller]
    fn count<T: Chare>(&self, shape: T::Index) -> u32 {
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
    fn placement<T: Chare>(&self, shape: T::Index, place: Option<Place<'_, T::Index>>) -> Placement {
        if let Some(group) = T::Index::GROUP {
            return Placement::Every(match group {
                Group::Pe => 1,
                Group::Process => self.pe.settings().local_pes(),
            });
        }
        if let Some(place) = place {
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

    #[track_caller]
    fn create<I: Index, T: Chare<Index = I>>(
        &self,
        shape: I,
        make: Option<&impl Fn(I) -> T>,
        placed: Option<Place<'_, I>>,
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
        let shared = self.shared_array::<I, T>(id, shape, (direct, make.is_some()), placed);
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
            match restoring::add_elements(checkpoint, usize::from(id), &shared, on, &mut add) {
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
        let port = Rc::new(Port::new(id, shared, directory));
        let (name, sync, expedited) = (T::NAME, T::SYNC, T::EXPEDITED);
        self.infos.borrow_mut().push(ArrayInfo { name, sync, expedited, count });
        self.managers.borrow_mut().push(Box::new(Elements::new(Rc::clone(&port), slots)));
        self.ports.borrow_mut().push(port);
        Array { id, of: PhantomData }
    }

    /// The part of an array that the PEs of a process share; the first PE to call this creates it.
    #[track_caller]
    fn shared_array<I: Index, T: Chare<Index = I>>(
        &self,
        id: u16,
        shape: I,
        (direct, has_elements): (bool, bool),
        placed: Option<Place<'_, I>>,
    ) -> Arc<array::Shared<T>> {
        let (node, rank, pes) = (&self.pe.out.node, self.pe.out.rank, self.pe.out.pes);
        let (at, count) = (usize::from(id), self.count::<T>(shape));
        // Computed outside the lock, because a placement may run user code.
        let is_known = node.arrays.lock().len() > at;
        if !is_known {
            let parts = [
                (direct || has_elements, size_of::<AtomicU64>()),
                (has_elements, size_of::<ChareSlot<T>>()),
                (placed.is_some(), size_of::<u32>()),
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
        let placement = if is_known { None } else { Some(self.placement::<T>(shape, placed)) };
        let mut all = node.arrays.lock();
        if let Some(placement) = placement.filter(|_| all.len() == at) {
            let element = move |rank| format!("{}{}", T::NAME, show(I::unrank(rank, shape)));
            let element = Box::new(element);
            node.pulses.add_array(ArrayNames { array: T::NAME, entries: T::ENTRIES, element });
            let places = |rank| AtomicU64::new(place(placement.pe(rank, count, pes), NO_ELEMENT));
            let shared = Arc::new(array::Shared::<T> {
                shape,
                count,
                places: if direct { (0..count).map(places).collect() } else { Box::default() },
                placement,
                residents: OnceLock::new(),
                mail: Mail::new(u32::from(id) + 1, node.settings.mailboxes()),
                regrouped: Mutex::default(),
            });
            all.push(SharedArray { made_by: rank, name: described::<T>(shape), shared });
        }
        let SharedArray { made_by, name, shared } = all[at].clone();
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

/// Panics if an array has one element on every PE or in every process.
#[track_caller]
fn refuse_group<T: Chare>(why: &str) {
    if let Some(group) = T::Index::GROUP {
        panic!("{} has one element {group}{why}; use `array`", T::NAME);
    }
}

/// An array in messages to users: `Block of shape [4, 4]`.
fn described<T: Chare>(shape: T::Index) -> String {
    match show(shape).as_str() {
        "" => T::NAME.into(),
        shape => format!("{} of shape {shape}", T::NAME),
    }
}

/// The PE on which the element of an index begins.
type Place<'a, I> = &'a dyn Fn(I) -> Pe;

/// The most ranks, over all PEs on this computer, for which directories are tables.
const DENSE_DIRECTORIES: u64 = 1 << 22;

/// Sparse arrays with more indices than this use directories instead of a table of places.
const DENSE: u32 = 1 << 22;
