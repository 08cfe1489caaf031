//! Computations in threads of their own, so that Python can run other threads and handle signals.
//!
//! None of these threads ever holds Python: functions of Python run in the thread that waits.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use std::{mem, process};

use equipoise_model::fault::Fault;
use equipoise_strategies::strategy::panic_message;
use pyo3::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};

use crate::errors::raise_as;

/// How often a waiting thread looks for signals.
const SIGNALS: Duration = Duration::from_millis(50);

/// What a computation sends to the thread that waits for it.
enum Event {
    /// A function of Python is to be called.
    Call(Box<dyn FnOnce(Python<'_>) -> PyResult<()> + Send>),
    /// The result is there.
    End,
}

/// A computation that is to begin.
pub(crate) struct Run {
    caller: Caller,
    events: Receiver<Event>,
}

/// The thread that waits for a computation, as the computation sees it.
#[derive(Clone)]
pub(crate) struct Caller {
    has_left: Arc<AtomicBool>,
    events: Sender<Event>,
}

impl Caller {
    /// Whether the result is no longer wanted. A running strategy cannot be stopped; no further one begins.
    pub(crate) fn has_left(&self) -> bool {
        self.has_left.load(Ordering::Relaxed)
    }

    fn leave(&self) {
        self.has_left.store(true, Ordering::Relaxed);
    }

    /// What `function` returns, which runs in the thread of the caller. None if the caller has left, or leaves because the function raises
    /// an exception.
    pub(crate) fn call<T: Send + 'static>(
        &self,
        function: impl FnOnce(Python<'_>) -> PyResult<T> + Send + 'static,
    ) -> Option<T> {
        let (sender, receiver) = sync_channel(1);
        let caller = self.clone();
        let call = move |py: Python<'_>| {
            // Before the strategy learns that there is no value, and ends.
            let value = function(py).inspect_err(|_| caller.leave())?;
            // The strategy waits for it below.
            let _ = sender.send(value);
            Ok(())
        };
        self.events.send(Event::Call(Box::new(call))).ok()?;
        receiver.recv().ok()
    }
}

impl Run {
    pub(crate) fn new() -> Run {
        let (sender, events) = channel();
        Run { caller: Caller { has_left: Arc::default(), events: sender }, events }
    }

    /// The thread that will wait.
    pub(crate) fn caller(&self) -> Caller {
        self.caller.clone()
    }

    /// The result of `work`, which runs in other threads while this one lets other threads of Python run, and runs the functions of Python
    /// that `work` needs. An exception of such a function or of a signal handler, such as `KeyboardInterrupt`, is raised at once; `work` then
    /// ends in the background without effect.
    pub(crate) fn wait<T: Send + 'static>(
        self,
        py: Python<'_>,
        work: impl FnOnce() -> PyResult<T> + Send + 'static,
    ) -> PyResult<T> {
        let Run { caller, events } = self;
        let sender = caller.events.clone();
        let (result_sender, result) = sync_channel(1);
        let pool = take_pool(py)?;
        pool.spawn(move || {
            let result = catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| Err(bug(&*panic)));
            // Nothing receives them after a signal.
            let _ = result_sender.send(result);
            let _ = sender.send(Event::End);
        });
        let result = py.detach(move || -> PyResult<_> {
            // The channel closes after the caller has left, so no strategy begins in between.
            listen(&events).inspect_err(|_| caller.leave())?;
            Ok(result.recv().unwrap_or_else(|_| Err(bug(&"no result"))))
        });
        // After an exception they still work, and end after it.
        let result = result?;
        keep_pool(py, pool);
        result
    }
}

/// Runs the functions of Python that a computation needs, until it ends.
fn listen(events: &Receiver<Event>) -> PyResult<()> {
    loop {
        match events.recv_timeout(SIGNALS) {
            Ok(Event::Call(call)) => Python::attach(call)?,
            Ok(Event::End) => return Ok(()),
            Err(RecvTimeoutError::Timeout) => Python::attach(|py| py.check_signals())?,
            Err(RecvTimeoutError::Disconnected) => return Err(bug(&"no result")),
        }
    }
}

/// The idle threads of the process with this number. Each computation has a pool of its own, because a pool whose threads all wait for
/// functions of Python could not run the computations that these functions begin.
static IDLE: Mutex<Option<(u32, ThreadPool)>> = Mutex::new(None);

/// The slot for idle threads. Only threads that hold Python lock it, and a thread that forks holds Python, so no child finds it locked.
fn idle(_: Python<'_>, new: Option<(u32, ThreadPool)>) -> Option<(u32, ThreadPool)> {
    mem::replace(&mut *IDLE.lock().unwrap_or_else(PoisonError::into_inner), new)
}

/// A pool of threads that has nothing else to do.
fn take_pool(py: Python<'_>) -> PyResult<ThreadPool> {
    match idle(py, None) {
        Some((process, pool)) if process == process::id() => return Ok(pool),
        // In a child of `fork`, which does not have the threads of its parent: ending them would wait for their locks.
        other => mem::forget(other),
    }
    let builder = ThreadPoolBuilder::new().thread_name(|at| format!("equipoise-{at}"));
    builder.build().map_err(|error| raise_as(Fault::Input, format!("cannot start threads: {error}")))
}

/// Keeps the threads for the next computation; those of another computation that were kept end.
fn keep_pool(py: Python<'_>, pool: ThreadPool) {
    drop(idle(py, Some((process::id(), pool))));
}

fn bug(panic: &(dyn Any + Send)) -> PyErr {
    let message = panic_message(panic);
    raise_as(Fault::Bug, format!("the computation panicked: {message} (please report this bug)"))
}
