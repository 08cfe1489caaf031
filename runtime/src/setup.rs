//! The setup of a PE creates the arrays, shared values and `main` of a program, before any message.

use crate::array::{Array, Chare, Port};
use crate::elements::Held;
use crate::index::{Index, Pe, Process};
use crate::location::Placement;
use crate::pe::{AnyPort, ArrayInfo, Main, Neighbors, PeCx, Shared, begin_main};
use crate::saving;
use crate::scheduler::{Built, Task};
use equipoise_model::table::count;
use std::any::Any;
use std::cell::RefCell;
use std::marker::PhantomData;
use std::rc::Rc;
use std::sync::Arc;

mod arrays;

/// The setup of a PE, before any message. A program makes the same calls in the same order on every PE.
pub struct Setup {
    pe: PeCx,
    ports: RefCell<Vec<Rc<dyn AnyPort>>>,
    managers: RefCell<Vec<Held>>,
    elements: RefCell<Vec<Neighbors>>,
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
            elements: RefCell::default(),
            infos: RefCell::default(),
            shared: RefCell::default(),
            main: RefCell::default(),
        };
        setup(&setup_pe);
        let Setup { mut pe, ports, managers, elements, infos, shared, main } = setup_pe;
        (pe.ports, pe.infos, pe.shared) = (ports.into_inner(), infos.into_inner(), shared.into_inner());
        pe.elements = elements.into_inner();
        pe.out.expedited = pe.bits_of(|info| info.expedited);
        if !pe.settings().samples_order() {
            pe.out.prioritized = pe.bits_of(|info| info.prioritized);
        }
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
        let managers = managers.into_inner();
        if let Some(checkpoint) = pe.settings().restart.clone()
            && let Err(sentence) = saving::restore(&pe, &checkpoint, &managers)
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
        self.create(shape, Some(&make), Begin::Default)
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
        self.create(shape, Some(&make), Begin::Chosen(&place))
    }

    /// Creates an array without elements. [`Array::insert`] adds elements at indices below `bounds`.
    ///
    /// # Panics
    /// As `array`.
    #[track_caller]
    pub fn sparse<I: Index, T: Chare<Index = I>>(&self, bounds: I) -> Array<T> {
        refuse_group::<T>("");
        self.create(bounds, None::<&fn(I) -> T>, Begin::Default)
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
        self.create(bounds, None::<&fn(I) -> T>, Begin::Chosen(&place))
    }

    /// Creates an array without elements, whose indices the runtime chooses: [`Array::create`] adds an element on the calling PE,
    /// without a message, and returns its index.
    ///
    /// [`Array::only`] asks every possible index, so it takes seconds here. Indices are not used again: an element that has ended leaves
    /// about 30 bytes at each PE where it was.
    ///
    /// # Panics
    /// As `array`.
    #[track_caller]
    pub fn chares<T: Chare<Index = [i32; 1]>>(&self) -> Array<T> {
        self.create([i32::MAX], None::<&fn([i32; 1]) -> T>, Begin::OnCreator)
    }

    /// Creates an array that is bound to `leader`: the element at an index begins on the PE of `leader`'s element at this
    /// index, and always migrates with it. [`Array::local`] reaches one from the other without a message.
    ///
    /// A load-balancing step sees the two as one object, with the sum of their loads and of their communication. The step can move
    /// the object if `leader` takes part in steps (`sync`) and neither element is pinned. `cx.migrate` in the element of `leader` moves
    /// both. If `leader` is bound itself, the new array is bound to the array to which `leader` is bound.
    ///
    /// Elements of bound arrays cannot call `cx.destroy`, and those of the new array cannot call `cx.migrate`.
    ///
    /// # Panics
    /// As `array`, and if `leader` has one element on every PE or in every process, or no elements yet, or another run made it,
    /// or if the new array is `pinned` and `leader` is not.
    #[track_caller]
    pub fn array_bound<I: Index, L: Chare<Index = I>, T: Chare<Index = I>>(
        &self,
        leader: &Array<L>,
        make: impl Fn(I) -> T,
    ) -> Array<T> {
        refuse_group::<T>(" and cannot be bound");
        let at = usize::from(leader.id);
        let port = self.ports.borrow().get(at).map(|port| -> Rc<dyn Any> { Rc::clone(port) as Rc<dyn Any> });
        let port = port.and_then(|port| port.downcast::<Port<L>>().ok());
        let port = port.expect("use an array handle only in the run that created the array");
        let ArrayInfo { has_elements, bound_to, .. } = self.infos.borrow()[at];
        assert!(
            has_elements,
            "{} cannot be bound to {}, whose elements are inserted; make {} with `array` or `array_placed`",
            T::NAME,
            L::NAME,
            L::NAME
        );
        assert!(
            !T::PINNED || L::PINNED,
            "{} is `pinned` and cannot be bound to {}, whose elements migrate; remove `pinned`",
            T::NAME,
            L::NAME
        );
        let with = bound_to.unwrap_or(leader.id);
        self.create(port.shared.shape, Some(&make), Begin::With(with, &port.shared.placement))
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
        self.set_main(move |pe| start(pe));
    }

    /// Runs `start` on PE 0 like [`main`](Self::main), as a future that can wait for replies: `main` then reads from top to bottom.
    ///
    /// [`Main::ask`] is the event for which the future waits. A future that waits for something else, such as a timer of another
    /// library, goes on when the next reply arrives.
    ///
    /// ```
    /// use equipoise::prelude::*;
    ///
    /// #[derive(Serialize, Deserialize)]
    /// struct Counter { count: u64 }
    ///
    /// #[chare(index = [i32; 1])]
    /// impl Counter {
    ///     #[entry]
    ///     fn add(&mut self, cx: &Cx<Self>, more: u64, sum: Reply<u64>) {
    ///         self.count += more;
    ///         sum.send(cx, self.count);
    ///     }
    /// }
    ///
    /// let report = equipoise::run(Config::threads(2), |pe, done| {
    ///     let counters = pe.array([4], |[i]| Counter { count: i as u64 });
    ///     pe.main_async(async move |pe| {
    ///         let two = pe.ask(|sum| counters.at(&pe, [1]).add(1, sum)).await;
    ///         let five = pe.ask(|sum| counters.at(&pe, [3]).add(two, sum)).await;
    ///         done.exit(&pe, five);
    ///     });
    /// });
    /// assert_eq!(report.result, 5);
    /// ```
    ///
    /// # Panics
    /// If there is a `main` already.
    #[track_caller]
    pub fn main_async<F>(&self, start: impl FnOnce(Main) -> F + 'static)
    where
        F: Future<Output = ()> + 'static,
    {
        self.set_main(move |pe| begin_main(pe, start));
    }

    #[track_caller]
    fn set_main(&self, start: impl FnOnce(&Rc<PeCx>) + 'static) {
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
}

/// Panics if an array has one element on every PE or in every process.
#[track_caller]
fn refuse_group<T: Chare>(why: &str) {
    if let Some(group) = T::Index::GROUP {
        panic!("{} has one element {group}{why}; use `array`", T::NAME);
    }
}

/// The PE on which the element of an index begins.
#[derive(Clone, Copy)]
enum Begin<'a, I> {
    /// Where the flags say.
    Default,
    /// Where the program says.
    Chosen(&'a dyn Fn(I) -> Pe),
    /// On the PE that creates it, which chooses the index.
    OnCreator,
    /// With the element of this array, which has this placement.
    With(u16, &'a Placement),
}

impl<I> Begin<'_, I> {
    /// The array to which the array is bound.
    fn leader(&self) -> Option<u16> {
        if let Begin::With(leader, _) = self { Some(*leader) } else { None }
    }
}
