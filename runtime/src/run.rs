//! A run from beginning to end: the setup on every PE, the run itself, and what is left of it.

use crate::array::{AnyPort, Array, Port, Shared, Slot};
use crate::chare::Chare;
use crate::context::{ArrayInfo, PeCx, Roll, Task, array_bit};
use crate::databases::Written;
use crate::elements::{Elements, Manager};
use crate::index::{Index, Pe, show};
use crate::location::{Directory, NOBODY, Placement, place};
use crate::node::{Failure, Node};
use crate::options::{Config, Settings};
use crate::reduction::Ledger;
use crate::report::{Report, RunError};
use crate::transport::{Mail, simulated, threads};
use equipoise_strategies::strategy::panic_message;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use std::any::Any;
use std::cell::{Cell, RefCell};
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

/// What a PE is made of before any message: the same calls, in the same order, on every PE.
pub struct Setup {
    pe: PeCx,
    ports: RefCell<Vec<Rc<dyn AnyPort>>>,
    managers: RefCell<Vec<Box<dyn Manager>>>,
    infos: RefCell<Vec<ArrayInfo>>,
    shared: RefCell<Vec<Option<Arc<dyn Any + Send + Sync>>>>,
    main: RefCell<Option<Task>>,
}

impl Setup {
    /// Creates an array with an element at every index below `shape`; `make` makes those of this PE.
    ///
    /// # Panics
    /// If the shape has a negative side or more than 2^32 - 1 indices, or the setup of another PE
    /// made another array at this point.
    pub fn array<I: Index, T: Chare<Index = I>>(&self, shape: I, make: impl Fn(I) -> T) -> Array<T> {
        self.create(shape, Some(&make), || self.placement::<I>(shape))
    }

    /// Creates an array as [`array`](Self::array) does, with every element on the PE `place` says.
    ///
    /// # Panics
    /// As `array`, and if `place` names a PE that does not exist.
    pub fn array_placed<I: Index, T: Chare<Index = I>>(
        &self,
        shape: I,
        place: impl Fn(I) -> Pe,
        make: impl Fn(I) -> T,
    ) -> Array<T> {
        assert!(!I::PER_PE, "{} has one element on every PE, which cannot be placed elsewhere", T::NAME);
        let list = || {
            let count = self.count::<T>(shape);
            let list: Arc<[u32]> = (0..count).map(|rank| place(I::unrank(rank, shape)).0).collect();
            if let Some(rank) = list.iter().position(|&pe| pe >= self.pe.pes) {
                let index = show(I::unrank(rank as u32, shape));
                panic!("{}{index} is placed on PE {}, and there are {}", T::NAME, list[rank], self.pe.pes);
            }
            Placement::Listed(list)
        };
        self.create(shape, Some(&make), list)
    }

    /// Creates an array without elements, to be filled by [`Array::insert`] with indices below
    /// `bounds`.
    ///
    /// # Panics
    /// As `array`.
    pub fn sparse<I: Index, T: Chare<Index = I>>(&self, bounds: I) -> Array<T> {
        assert!(!I::PER_PE, "{} has one element on every PE; use `array`", T::NAME);
        self.create(bounds, None::<&fn(I) -> T>, || self.placement::<I>(bounds))
    }

    /// A big value that all elements of a process read: `make` runs once per process.
    ///
    /// Small read-only data is captured by the closures that make the elements.
    pub fn shared<V: Send + Sync + 'static>(&self, make: impl FnOnce() -> V) -> crate::Shared<V> {
        let id = self.shared.borrow().len();
        self.shared.borrow_mut().push(None);
        let value = {
            let mut all = self.pe.node.shared.lock();
            if all.len() == id {
                all.push(Arc::default());
            }
            Arc::clone(&all[id])
        };
        // Outside the lock: what is made may read other shared values.
        let value = value.get_or_init(|| Arc::new(make()));
        self.shared.borrow_mut()[id] = Some(Arc::clone(value));
        crate::Shared { id: id as u32, of: PhantomData }
    }

    /// Reads a shared value, to make elements from it.
    ///
    /// # Panics
    /// If the handle comes from another run.
    pub fn read<V: Send + Sync + 'static>(&self, shared: crate::Shared<V>) -> Arc<V> {
        let value = self.shared.borrow().get(shared.id as usize).cloned().flatten();
        value.and_then(|value| value.downcast().ok()).expect("a shared value is read in the run that made it")
    }

    /// Runs `start` on PE 0, once every PE has finished its setup.
    ///
    /// # Panics
    /// If there is a `main` already.
    pub fn main(&self, start: impl FnOnce(&PeCx) + 'static) {
        if self.pe.rank == 0 {
            let before = self.main.borrow_mut().replace(Box::new(start));
            assert!(before.is_none(), "a setup says once what `main` is");
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

    /// The seed of the run.
    pub fn seed(&self) -> u64 {
        self.pe.seed()
    }

    fn count<T: Chare>(&self, shape: T::Index) -> u32 {
        T::Index::count(shape).unwrap_or_else(|| {
            panic!("the shape {} of {} is negative or has more than 2^32 - 1 indices", show(shape), T::NAME)
        })
    }

    fn placement<I: Index>(&self, shape: I) -> Placement {
        if I::PER_PE {
            return Placement::PerPe;
        }
        match &self.pe.node.settings.initial {
            Placement::Random(seed) => {
                // Another draw for every array.
                Placement::Random(seed ^ (self.ports.borrow().len() as u64) << 48)
            }
            Placement::Listed(list) if I::count(shape) != Some(list.len() as u32) => Placement::Blocks,
            placement => placement.clone(),
        }
    }

    fn create<I: Index, T: Chare<Index = I>>(
        &self,
        shape: I,
        make: Option<&impl Fn(I) -> T>,
        placement: impl FnOnce() -> Placement,
    ) -> Array<T> {
        let id = self.ports.borrow().len();
        let (pe, node) = (&self.pe, &self.pe.node);
        let count = self.count::<T>(shape);
        assert!(id < usize::from(u16::MAX), "there are more than {} arrays", u16::MAX - 1);
        assert!(!I::PER_PE || count == pe.pes, "{} is one per PE; its shape is Pe({})", T::NAME, pe.pes);
        let direct = !node.settings.is_simulated() && (make.is_some() || count <= DENSE);
        // The first PE that comes here finds out for all, outside the lock: a placement may be the user's code.
        let is_known = node.arrays.lock().len() > id;
        let placement = if is_known { None } else { Some(placement()) };
        let shared = {
            let mut all = node.arrays.lock();
            if let Some(placement) = placement.filter(|_| all.len() == id) {
                let places = |rank| AtomicU64::new(place(placement.pe(rank, count, pe.pes), NOBODY));
                all.push(Arc::new(Shared::<T> {
                    shape,
                    count,
                    places: if direct { (0..count).map(places).collect() } else { Box::default() },
                    placement,
                    residents: OnceLock::new(),
                    mail: Mail::new(id as u32 + 1, if node.settings.is_simulated() { 0 } else { pe.pes }),
                }));
            }
            let shared = all.get(id).and_then(|shared| Arc::clone(shared).downcast::<Shared<T>>().ok());
            let shared = shared.filter(|shared| shared.shape == shape);
            shared.unwrap_or_else(|| {
                panic!("PE {} makes {} as its array {id}, another PE another one; a setup makes the same arrays on every PE", pe.rank, T::NAME)
            })
        };
        let mut directory = (!direct).then(|| Directory::new(pe.rank));
        let mut slots = Vec::new();
        if let Some(make) = make {
            slots.reserve_exact((count / pe.pes) as usize + 1);
            shared.placement.each(pe.rank, count, pe.pes, &shared.residents, |rank| {
                let at = slots.len() as u32;
                match &mut directory {
                    None => shared.places[rank as usize].store(place(pe.rank, at), Relaxed),
                    Some(directory) => directory.arrived(rank, at, 0),
                }
                slots.push(Slot::new(rank, make(I::unrank(rank, shape))));
            });
        }
        let population = if make.is_some() { count } else { 0 };
        pe.rolls
            .borrow_mut()
            .push(Roll { reductions: Ledger::new(population), syncs: Ledger::new(population) });
        let id = id as u16;
        let port = Rc::new(Port {
            id,
            bit: array_bit(id),
            shared,
            local: RefCell::default(),
            orders: RefCell::default(),
            directory: directory.map(RefCell::new),
            resume: Cell::new(None),
            created: RefCell::default(),
            contributions: Default::default(),
            broadcasts: Cell::new(0),
        });
        self.infos.borrow_mut().push(ArrayInfo {
            name: T::NAME,
            entries: T::ENTRIES,
            sync: T::SYNC,
            expedited: T::EXPEDITED,
            count,
            show: |port, rank| {
                let port: &dyn Any = port;
                port.downcast_ref::<Port<T>>().map_or_else(String::new, |port| port.name(rank))
            },
        });
        self.managers.borrow_mut().push(Box::new(Elements::new(Rc::clone(&port), slots)));
        self.ports.borrow_mut().push(port);
        Array { id, of: PhantomData }
    }
}

/// Sparse arrays with more indices than this have directories instead of a table of places.
const DENSE: u32 = 1 << 22;

/// Ends the run with a result; plain data, to be captured by elements.
#[derive(Serialize, Deserialize)]
#[serde(bound = "")]
pub struct Exit<R>(#[serde(skip)] PhantomData<fn(R)>);

impl<R> Clone for Exit<R> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<R> Copy for Exit<R> {}

impl<R> std::fmt::Debug for Exit<R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Exit")
    }
}

impl<R: Serialize + DeserializeOwned + Send + 'static> Exit<R> {
    /// Ends the run with this result; if several do, one of them counts. Messages in flight are
    /// dropped.
    pub fn exit(self, pe: &PeCx, result: R) {
        pe.node.exit(Box::new(result));
    }
}

/// A PE that is ready to run.
pub(crate) struct Built {
    pub(crate) pe: PeCx,
    pub(crate) managers: Vec<Box<dyn Manager>>,
    main: Option<Task>,
}

/// Runs the setup of one PE; none if it panicked, which ends the run.
pub(crate) fn build(node: &Arc<Node>, pe: PeCx, setup: &(dyn Fn(PeCx) -> Built + Sync)) -> Option<Built> {
    let rank = pe.rank;
    match catch_unwind(AssertUnwindSafe(|| setup(pe))) {
        Ok(built) => Some(built),
        Err(payload) => {
            let place = format!("the setup of PE {rank}");
            node.fail(Failure::Panic { place, message: panic_message(&*payload) });
            None
        }
    }
}

impl Built {
    fn new(pe: PeCx, setup: impl FnOnce(&Setup)) -> Self {
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
        pe.expedited = pe.expedited_bits();
        if let Placement::Listed(list) = &pe.node.settings.initial
            && !pe.infos.iter().any(|info| info.count as usize == list.len())
        {
            let sizes: Vec<String> =
                pe.infos.iter().map(|info| format!("{} has {}", info.name, info.count)).collect();
            pe.fail(format!(
                "--initial lists {} PEs, and no array has so many elements ({}); write a line for each \
                 element of one of them, in index order",
                list.len(),
                sizes.join(", ")
            ));
        }
        Built { pe, managers: managers.into_inner(), main: main.into_inner() }
    }

    /// Whether this PE made as many arrays as all PEs together; if not, that ends the run.
    pub(crate) fn agrees(&self) -> bool {
        let (mine, all) = (self.managers.len(), self.pe.node.arrays.lock().len());
        if mine != all {
            let rank = self.pe.rank;
            self.pe.fail(format!(
                "PE {rank} made {mine} arrays and another PE {all}; a setup makes the same arrays on every PE"
            ));
        }
        !self.pe.node.stopped()
    }

    /// Starts the clocks, and `main`.
    pub(crate) fn begin(&mut self) {
        self.pe.begin_steps();
        if let Some(main) = self.main.take() {
            main(&self.pe);
        }
    }

    /// Where a panic came from.
    pub(crate) fn blame(&self, payload: &(dyn Any + Send)) -> Failure {
        let place = match self.pe.running() {
            None => format!("code outside the elements of PE {}", self.pe.rank),
            Some(running) => {
                let array = usize::from(running.array);
                let info = &self.pe.infos[array];
                let element = (info.show)(&*self.pe.ports[array], running.rank);
                let entry = info.entries.get(usize::from(running.entry)).unwrap_or(&"?");
                format!("{element} in entry `{entry}` on PE {}", self.pe.rank)
            }
        };
        Failure::Panic { place, message: panic_message(payload) }
    }

    /// Leaves behind what is told of the run.
    pub(crate) fn leave(&mut self) {
        let mut outcome = self.pe.node.outcome.lock();
        outcome.executions += self.pe.counts.executions.get();
        outcome.remote_messages += self.pe.counts.remote.get();
        outcome.migrations += self.pe.counts.migrations.get();
        if !matches!(outcome.failure, Some(Failure::Quiet)) {
            return;
        }
        let mut waiting: Vec<String> = self.managers.iter().flat_map(|manager| manager.waiting()).collect();
        waiting.extend(self.pe.ports.iter().flat_map(|port| port.waiting()));
        let parked = self.pe.parked.borrow().count();
        if parked > 0 {
            waiting.push(format!("{parked} parked closures have had no answer"));
        }
        let rank = self.pe.rank;
        outcome.waiting.extend(waiting.into_iter().map(|told| format!("PE {rank}: {told}")));
    }
}

/// Runs `setup` on every PE, then messages until somebody exits.
///
/// What became of `--lb-dump` and `--record`, if it is not what was asked for, is told on stderr.
///
/// A run that fails ends a program that has a command line ([`Config::program`]) with a sentence on
/// stderr and exit code 1 (2 for a bad flag).
///
/// # Panics
/// If the run fails and the configuration was made in code, with the same sentence. [`try_run`]
/// returns it instead.
pub fn run<R>(config: Config, setup: impl Fn(&Setup, Exit<R>) + Sync) -> Report<R>
where
    R: Serialize + DeserializeOwned + Send + 'static,
{
    let program = config.program;
    let (result, written) = attempt(config, setup);
    written.show();
    match result {
        Ok(report) => Report { dump_error: written.error, dump_warning: written.warning, ..report },
        Err(error) if program => {
            match &error {
                RunError::Answer(text) => crate::databases::show(text),
                error => eprintln!("error: {error}"),
            }
            std::process::exit(error.exit_code())
        }
        Err(error) => panic!("{error}"),
    }
}

/// Runs `setup` on every PE, then messages until somebody exits.
///
/// # Errors
/// If the configuration cannot be followed, user code panics, or the program comes to rest without
/// an exit.
pub fn try_run<R>(config: Config, setup: impl Fn(&Setup, Exit<R>) + Sync) -> Result<Report<R>, RunError>
where
    R: Serialize + DeserializeOwned + Send + 'static,
{
    let (result, Written { error, warning }) = attempt(config, setup);
    Ok(Report { dump_error: error, dump_warning: warning, ..result? })
}

/// What the flags mean, if they ask for a run.
fn settings(config: &Config) -> Result<Settings, RunError> {
    match crate::databases::answer(config)? {
        Some(answer) => Err(RunError::Answer(answer)),
        None => Ok(config.resolve()?),
    }
}

/// A run, and what became of its databases and its trace, which are wanted of one that failed, too.
fn attempt<R>(
    config: Config,
    setup: impl Fn(&Setup, Exit<R>) + Sync,
) -> (Result<Report<R>, RunError>, Written)
where
    R: Serialize + DeserializeOwned + Send + 'static,
{
    let settings = match settings(&config) {
        Ok(settings) => Arc::new(settings),
        Err(error) => return (Err(error), Written::default()),
    };
    let start = Instant::now();
    let node = Arc::new(Node::new(Arc::clone(&settings)));
    let build = |pe: PeCx| Built::new(pe, |pe| setup(pe, Exit(PhantomData)));
    if settings.is_simulated() {
        simulated::run(&node, &build);
    } else {
        threads::run(&node, &build);
    }
    let seconds = start.elapsed().as_secs_f64();
    let mut outcome = std::mem::take(&mut *node.outcome.lock());
    let databases = std::mem::take(&mut outcome.databases);
    let written = crate::databases::write(&settings, databases, outcome.trace.take());
    let seed = settings.is_simulated().then_some(settings.seed);
    let result = match outcome.failure {
        Some(Failure::Panic { place, message }) => Err(RunError::Panic { place, message, seed }),
        Some(Failure::Program(sentence)) => Err(RunError::Program { sentence, seed }),
        Some(Failure::Quiet) => Err(RunError::Quiet { waiting: outcome.waiting, seed }),
        None => outcome.result.and_then(|result| result.downcast().ok()).ok_or_else(|| {
            let sentence = "the run ended without a result".into();
            RunError::Program { sentence, seed }
        }),
    };
    let report = result.map(|result: Box<R>| Report {
        result: *result,
        seconds,
        pes: settings.pes,
        seed: settings.seed,
        machine: outcome.machine,
        lb_steps: outcome.lb_steps,
        executions: outcome.executions,
        remote_messages: outcome.remote_messages,
        migrations: outcome.migrations,
        dump_error: None,
        dump_warning: None,
    });
    (report, written)
}
