//! Panics of user code: their messages with file, line and column.
//!
//! A panic that is caught has no place, so a panic hook stores it. Functions that a program calls wrongly are
//! `#[track_caller]` from the program to `panic!`: then the place is that of the wrong call.

use equipoise_strategies::strategy::panic_message;
use std::any::Any;
use std::cell::Cell;
use std::panic::{set_hook, take_hook};
use std::sync::Once;

thread_local! {
    /// The message and the place of the last panic of this thread.
    static LAST: Cell<Option<(String, String)>> = const { Cell::new(None) };
}

/// From now on the places of panics are stored. The program's own hook is called, too; a hook that the program sets later
/// replaces this one, and then the messages have no place.
pub(crate) fn store_places() {
    static INSTALLED: Once = Once::new();
    // A thread that panics cannot change the hook.
    if std::thread::panicking() {
        return;
    }
    INSTALLED.call_once(|| {
        let programs_hook = take_hook();
        set_hook(Box::new(move |info| {
            if let Some(place) = info.location() {
                let last = (panic_message(info.payload()), place.to_string());
                // Without effect in the destructor of a thread-local value.
                let _ = LAST.try_with(|stored| stored.set(Some(last)));
            }
            programs_hook(info);
        }));
    });
}

/// The message of a panic that this thread caught, as in `out of range (src/main.rs:12:9)`.
pub(crate) fn message_and_place(payload: &(dyn Any + Send)) -> String {
    let message = panic_message(payload);
    match LAST.take() {
        // `resume_unwind` calls no hook; then the stored panic is another one.
        Some((of, place)) if of == message => format!("{message} ({place})"),
        _ => message,
    }
}
