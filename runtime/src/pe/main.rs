//! `main` as a future, which waits for replies, of others or at quiescence.
//!
//! A reply is the only event for which `main` waits, and it runs on the PE of `main`. So the executor is a function: it polls
//! the future once at the begin, and again after each reply that wakes it.

use super::{PeCx, Reply};
use serde::{Serialize, de::DeserializeOwned};
use std::cell::RefCell;
use std::future::Future;
use std::ops::Deref;
use std::pin::Pin;
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::task::{Context, Poll, Wake, Waker};

/// PE 0 for an asynchronous `main`: dereferences to [`PeCx`], as the argument of a plain `main`, and waits for replies.
#[derive(Clone)]
pub struct Main {
    pe: Rc<PeCx>,
    /// Owned by the parked closures for which it waits; it owns this value.
    task: Weak<Task>,
}

impl Deref for Main {
    type Target = PeCx;

    fn deref(&self) -> &PeCx {
        &self.pe
    }
}

impl Main {
    /// Calls `request` with a [`Reply`], which `request` sends to an element, and waits for the value that is sent to it.
    ///
    /// `request` runs at once: `let (a, b) = (pe.ask(..), pe.ask(..));` asks for two values before `main` waits for one of them.
    ///
    /// While `main` waits, the run cannot save itself, as with every parked closure.
    pub fn ask<V>(&self, request: impl FnOnce(Reply<V>)) -> Asked<V>
    where
        V: Serialize + DeserializeOwned + Send + 'static,
    {
        let answer = Rc::new(RefCell::new(Answer { value: None, waker: None }));
        let (task, answered) = (self.task.upgrade(), Rc::clone(&answer));
        request(self.pe.reply(move |_, value| {
            let waker = {
                let mut answer = answered.borrow_mut();
                answer.value = Some(value);
                answer.waker.take()
            };
            if let Some(waker) = waker {
                waker.wake();
                task.iter().for_each(|task| task.run());
            }
        }));
        Asked(answer)
    }

    /// Waits until nothing is in flight, like a message of `at_quiescence`.
    pub fn quiescence(&self) -> Asked<()> {
        self.ask(|main| self.pe.answer_when_quiet(main))
    }
}

/// A value that `main` has asked for: a future.
#[must_use = "the value is there only after `.await`"]
pub struct Asked<V>(Rc<RefCell<Answer<V>>>);

impl<V> Future for Asked<V> {
    type Output = V;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<V> {
        let mut answer = self.0.borrow_mut();
        match answer.value.take() {
            Some(value) => Poll::Ready(value),
            None => {
                answer.waker = Some(context.waker().clone());
                Poll::Pending
            }
        }
    }
}

/// The value for which `main` waits, or the waker of the future that waits.
struct Answer<V> {
    value: Option<V>,
    waker: Option<Waker>,
}

/// The future of `main`, until it is over.
#[derive(Default)]
struct Task {
    future: RefCell<Option<Pin<Box<dyn Future<Output = ()>>>>>,
    woken: Arc<Woken>,
}

/// Whether the future is to be polled. Combinators of futures wake through it, too.
#[derive(Default)]
struct Woken(AtomicBool);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, SeqCst);
    }
}

impl Task {
    /// Polls the future as long as it is woken.
    fn run(&self) {
        let waker = Waker::from(Arc::clone(&self.woken));
        while self.woken.0.swap(false, SeqCst) {
            // Not borrowed while it runs.
            let Some(mut future) = self.future.take() else { return };
            if future.as_mut().poll(&mut Context::from_waker(&waker)).is_pending() {
                *self.future.borrow_mut() = Some(future);
            }
        }
    }
}

/// Begins an asynchronous `main`.
pub(crate) fn begin<F: Future<Output = ()> + 'static>(pe: &Rc<PeCx>, start: impl FnOnce(Main) -> F) {
    let task = Rc::new(Task::default());
    let future = start(Main { pe: Rc::clone(pe), task: Rc::downgrade(&task) });
    *task.future.borrow_mut() = Some(Box::pin(future));
    task.woken.0.store(true, SeqCst);
    task.run();
}
