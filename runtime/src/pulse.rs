//! What each PE runs at the moment, readable by the watcher of the run (`transport/watcher.rs`).
//!
//! A PE overwrites one word with every delivery. The watcher sets a bit of this word: as long as the bit stays set, the
//! same delivery runs. So a PE counts nothing and reads no clock, and a delivery costs the same with a watcher and
//! without.

use crate::load::element_key;
use crate::options::Settings;
use crossbeam_utils::CachePadded;
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

/// The running element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Running {
    pub(crate) array: u16,
    pub(crate) entry: u16,
    pub(crate) rank: u32,
}

/// What a PE runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Activity {
    /// No user code.
    Nothing,
    Element(Running),
    Setup,
    Main,
    ParkedClosure,
    /// The reducer of an entry.
    Reducer {
        array: u16,
        entry: u16,
    },
    /// The strategy of a load-balancing step.
    Strategy {
        step: u32,
    },
}

/// The bit that the watcher sets; an array has at most 2^15 entries, so the word has room for it.
const MARK: u64 = 1 << 47;
/// In the place of the array's number: no element runs. No array has this number.
const OUTSIDE: u64 = (u16::MAX as u64) << 48;

impl Activity {
    /// The activity in one word.
    fn packed(self) -> u64 {
        let outside = |kind: u64, detail: u32| OUTSIDE | kind << 32 | u64::from(detail);
        match self {
            Activity::Nothing => outside(0, 0),
            Activity::Element(Running { array, entry, rank }) => packed(array, entry, rank),
            Activity::Setup => outside(1, 0),
            Activity::Main => outside(2, 0),
            Activity::ParkedClosure => outside(3, 0),
            Activity::Reducer { array, entry } => outside(4, u32::from(array) << 16 | u32::from(entry)),
            Activity::Strategy { step } => outside(5, step),
        }
    }

    /// The activity of a word, with or without the mark.
    fn unpacked(word: u64) -> Self {
        let word = word & !MARK;
        let (array, entry, rank) = ((word >> 48) as u16, (word >> 32) as u16, word as u32);
        if u64::from(array) << 48 != OUTSIDE {
            return Activity::Element(Running { array, entry, rank });
        }
        match entry {
            1 => Activity::Setup,
            2 => Activity::Main,
            3 => Activity::ParkedClosure,
            4 => Activity::Reducer { array: (rank >> 16) as u16, entry: rank as u16 },
            5 => Activity::Strategy { step: rank },
            _ => Activity::Nothing,
        }
    }
}

#[inline(always)]
fn packed(array: u16, entry: u16, rank: u32) -> u64 {
    u64::from(array) << 48 | u64::from(entry) << 32 | u64::from(rank)
}

/// The activity of one PE; of all PEs, where they share one thread. Only this thread changes it, apart from the mark.
#[derive(Clone)]
pub(crate) struct Pulse(Arc<CachePadded<AtomicU64>>);

impl Pulse {
    fn new() -> Self {
        Pulse(Arc::new(CachePadded::new(AtomicU64::new(Activity::Nothing.packed()))))
    }

    /// An element begins a delivery.
    #[inline(always)]
    pub(crate) fn set(&self, array: u16, entry: u16, rank: u32) {
        self.0.store(packed(array, entry, rank), Relaxed);
    }

    /// No user code runs.
    pub(crate) fn clear(&self) {
        self.0.store(Activity::Nothing.packed(), Relaxed);
    }

    /// The running element.
    pub(crate) fn get(&self) -> Option<Running> {
        match self.activity() {
            Activity::Element(running) => Some(running),
            _ => None,
        }
    }

    /// The running element, as [`element_key`].
    #[inline(always)]
    pub(crate) fn element(&self) -> Option<u64> {
        let word = self.0.load(Relaxed);
        (word & OUTSIDE != OUTSIDE).then(|| element_key((word >> 48) as u16, word as u32))
    }

    /// Runs user code outside elements. What an element runs during its delivery remains the element's.
    pub(crate) fn during<R>(&self, activity: Activity, run: impl FnOnce() -> R) -> R {
        if self.activity() != Activity::Nothing {
            return run();
        }
        self.0.store(activity.packed(), Relaxed);
        let result = run();
        self.clear();
        result
    }

    /// What is running.
    pub(crate) fn activity(&self) -> Activity {
        Activity::unpacked(self.0.load(Relaxed))
    }

    /// For the watcher: the activity, and whether it is the one of the last look.
    pub(crate) fn look(&self) -> (Activity, bool) {
        let word = self.0.load(Relaxed);
        let activity = Activity::unpacked(word);
        if word & MARK != 0 {
            return (activity, true);
        }
        if activity != Activity::Nothing {
            // If the PE has changed the word meanwhile, it is not the word to mark.
            let _ = self.0.compare_exchange(word, word | MARK, Relaxed, Relaxed);
        }
        (activity, false)
    }
}

/// The names of an array, for messages to users.
pub(crate) struct ArrayNames {
    pub(crate) array: &'static str,
    pub(crate) entries: &'static [&'static str],
    /// Whether its messages are taken first.
    pub(crate) is_expedited: bool,
    /// The name of the element of a rank.
    pub(crate) element: Box<dyn Fn(u32) -> String + Send + Sync>,
}

/// The activities of the PEs of a process, and the names of what they run.
pub(crate) struct Pulses {
    /// One for each thread.
    threads: Box<[Pulse]>,
    /// The first PE of the process.
    first: usize,
    /// The running PE, where all PEs share one thread.
    pub(crate) running: RunningPe,
    arrays: Mutex<Vec<ArrayNames>>,
}

/// The running PE.
#[derive(Default)]
pub(crate) struct RunningPe(AtomicUsize);

impl RunningPe {
    pub(crate) fn set(&self, pe: usize) {
        self.0.store(pe, Relaxed);
    }

    pub(crate) fn get(&self) -> usize {
        self.0.load(Relaxed)
    }
}

impl Pulses {
    /// The activities of a process whose first PE is `first`.
    pub(crate) fn new(settings: &Settings, first: u32) -> Self {
        let threads = if settings.is_simulated() { 1 } else { settings.local_pes() };
        Pulses {
            threads: (0..threads).map(|_| Pulse::new()).collect(),
            first: first as usize,
            running: RunningPe::default(),
            arrays: Mutex::default(),
        }
    }

    /// The activity of a PE.
    pub(crate) fn of(&self, pe: u32) -> Pulse {
        self.threads[(pe as usize - self.first) % self.threads.len()].clone()
    }

    /// The activities, each with its PE.
    pub(crate) fn all(&self) -> impl Iterator<Item = (usize, &Pulse)> {
        let shared = (self.threads.len() == 1).then(|| self.running.get());
        self.threads.iter().zip(self.first..).map(move |(pulse, pe)| (shared.unwrap_or(pe), pulse))
    }

    /// Adds the names of the next array.
    pub(crate) fn add_array(&self, names: ArrayNames) {
        self.arrays.lock().push(names);
    }

    /// The names of the entries of an array.
    pub(crate) fn entries(&self, array: usize) -> &'static [&'static str] {
        self.arrays.lock().get(array).map_or(&[], |names| names.entries)
    }

    /// The names of the arrays.
    pub(crate) fn array_names(&self) -> Vec<String> {
        self.arrays.lock().iter().map(|names| names.array.to_owned()).collect()
    }

    /// Of each array, whether its messages are taken first.
    pub(crate) fn expedited(&self) -> Vec<bool> {
        self.arrays.lock().iter().map(|names| names.is_expedited).collect()
    }

    /// The names of the entries of all arrays.
    pub(crate) fn all_entries(&self) -> Vec<Vec<String>> {
        let owned = |names: &ArrayNames| names.entries.iter().map(|&entry| entry.to_owned()).collect();
        self.arrays.lock().iter().map(owned).collect()
    }

    /// The name of an element, as in `Block[3]`.
    pub(crate) fn element(&self, array: u16, rank: u32) -> String {
        self.arrays.lock().get(usize::from(array)).map_or("?".into(), |names| (names.element)(rank))
    }

    /// An activity of a PE in words; none if the PE runs no user code.
    pub(crate) fn describe(&self, pe: u32, activity: Activity, settings: &Settings) -> Option<String> {
        let entry = |array: u16, entry: u16| {
            let arrays = self.arrays.lock();
            let names = arrays.get(usize::from(array));
            let entry = names.and_then(|names| names.entries.get(usize::from(entry)).copied());
            (names.map_or("?", |names| names.array), entry.unwrap_or("?"))
        };
        let what = match activity {
            Activity::Nothing => return None,
            Activity::Element(Running { array, entry: at, rank }) => {
                format!("{} in entry `{}`", self.element(array, rank), entry(array, at).1)
            }
            Activity::Setup => return Some(format!("the setup of {}", settings.pe_name(pe))),
            Activity::Main => "`main`".into(),
            Activity::ParkedClosure => "a parked closure".into(),
            Activity::Reducer { array, entry: at } => {
                let (array, entry) = entry(array, at);
                format!("the reducer of entry `{entry}` of {array}")
            }
            Activity::Strategy { step } => {
                let choice = settings.schedule.at(u64::from(step));
                let name = choice.map_or("?", |choice| &choice.spec);
                format!("the load balancer {name} at step {step}")
            }
        };
        Some(format!("{what} on {}", settings.pe_name(pe)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn activities_are_words() {
        let running = Running { array: 3, entry: 7, rank: u32::MAX };
        for activity in [
            Activity::Nothing,
            Activity::Element(running),
            Activity::Element(Running { array: u16::MAX - 1, entry: (1 << 15) - 1, rank: 0 }),
            Activity::Setup,
            Activity::Main,
            Activity::ParkedClosure,
            Activity::Reducer { array: u16::MAX - 1, entry: 12 },
            Activity::Strategy { step: u32::MAX },
        ] {
            assert_eq!(Activity::unpacked(activity.packed()), activity);
            assert_eq!(Activity::unpacked(activity.packed() | MARK), activity);
        }
    }

    #[test]
    fn a_mark_stays_until_the_next_delivery() {
        let pulse = Pulse::new();
        assert_eq!((pulse.look(), pulse.look()), ((Activity::Nothing, false), (Activity::Nothing, false)));
        pulse.set(1, 2, 3);
        let element = Activity::Element(Running { array: 1, entry: 2, rank: 3 });
        assert_eq!((pulse.look(), pulse.look()), ((element, false), (element, true)));
        assert_eq!(
            pulse.get(),
            Some(Running { array: 1, entry: 2, rank: 3 }),
            "the PE does not see the mark"
        );
        assert_eq!(pulse.element(), Some(element_key(1, 3)));
        pulse.set(1, 2, 3);
        assert_eq!(pulse.look(), (element, false), "the next delivery of the same entry is another one");
        pulse.clear();
        assert_eq!(pulse.element(), None);
        pulse.during(Activity::Main, || {
            assert_eq!(pulse.element(), None);
            assert_eq!((pulse.look(), pulse.look()), ((Activity::Main, false), (Activity::Main, true)));
        });
        assert_eq!(pulse.look(), (Activity::Nothing, false));
    }
}
