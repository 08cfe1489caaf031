//! Panics that name the place of the wrong call in the program.

use std::fmt::Display;
use std::panic::Location;

/// Ends the run because the program made a wrong call. The message ends with file, line and column of the call, because
/// the error of a run holds the message but not the place of the panic.
///
/// The functions between the program and this one are `#[track_caller]`. The place of the call is a constant that only
/// this function reads, so correct calls do not load it.
#[cold]
#[inline(never)]
#[track_caller]
pub(crate) fn misuse(sentence: impl Display) -> ! {
    panic!("{sentence} ({})", Location::caller())
}
