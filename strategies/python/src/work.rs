//! Computations in a thread of their own, so that Python can run other threads and handle signals.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use equipoise_model::fault::Fault;
use equipoise_strategies::strategy::panic_message;
use pyo3::prelude::*;

use crate::errors::raise_as;

/// How often a waiting thread looks for signals.
const SIGNALS: Duration = Duration::from_millis(50);

/// What a computation and the thread that waits for it share.
#[derive(Clone, Default)]
pub(crate) struct Run {
    is_stopped: Arc<AtomicBool>,
    raised: Arc<Mutex<Option<PyErr>>>,
}

impl Run {
    /// Whether the result is no longer wanted. A running strategy cannot be stopped; no further one begins.
    pub(crate) fn is_stopped(&self) -> bool {
        self.is_stopped.load(Ordering::Relaxed)
    }

    /// Keeps the exception of a Python strategy, which is raised in the place of the result.
    pub(crate) fn fail(&self, exception: PyErr) {
        self.is_stopped.store(true, Ordering::Relaxed);
        self.raised.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(exception);
    }

    /// The result of `work`, which runs in another thread while this one lets other threads of Python run. An exception of a
    /// signal handler, such as `KeyboardInterrupt`, is raised at once; `work` then ends in the background without effect.
    pub(crate) fn wait<T: Send + 'static>(
        &self,
        py: Python<'_>,
        work: impl FnOnce() -> PyResult<T> + Send + 'static,
    ) -> PyResult<T> {
        let (sender, receiver) = sync_channel(1);
        let begin = move || {
            let result = catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| Err(bug(&*panic)));
            // Nothing receives the result after a signal.
            let _ = sender.send(result);
        };
        thread::Builder::new()
            .name("equipoise".into())
            .spawn(begin)
            .map_err(|error| raise_as(Fault::Input, format!("cannot start a thread: {error}")))?;
        let result = py.detach(move || {
            loop {
                match receiver.recv_timeout(SIGNALS) {
                    Ok(result) => return result,
                    Err(RecvTimeoutError::Timeout) => Python::attach(|py| py.check_signals())?,
                    Err(RecvTimeoutError::Disconnected) => return Err(bug(&"no result")),
                }
            }
        });
        let raised = self.raised.lock().unwrap_or_else(PoisonError::into_inner).take();
        if result.is_err() {
            self.is_stopped.store(true, Ordering::Relaxed);
        }
        raised.map_or(result, Err)
    }
}

fn bug(panic: &(dyn Any + Send)) -> PyErr {
    let message = panic_message(panic);
    raise_as(Fault::Bug, format!("the computation panicked: {message} (please report this bug)"))
}
