//! Callbacks: values that name the receiver of a value, for libraries that do not know their clients.

use super::chare::Chare;
use super::port::Port;
use super::proxy::{Target, Targets};
use crate::order::Receivers;
use crate::pe::{Exit, PeCx, Reply};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use std::any::Any;

/// Names the receiver of a value of type `V`: an entry of one or several elements, a parked closure, or the end of the run.
///
/// It is plain data: elements store it, and messages contain it. A library takes a callback as an argument, so that it need not know the
/// chares of its clients. A callback is made by `proxy.callback().f()`, by [`Reply::callback`] or by [`Exit::callback`]. The only
/// argument of the entry `f` is a `V`; if `V` is `()`, it has none.
///
/// ```
/// use equipoise::prelude::*;
///
/// #[derive(Serialize, Deserialize)]
/// struct Squares;
///
/// #[chare(index = ())]
/// impl Squares {
///     #[entry]
///     fn square(&mut self, cx: &Cx<Self>, number: u64, result: Callback<u64>) {
///         result.send(cx, number * number);
///     }
/// }
///
/// #[derive(Serialize, Deserialize)]
/// struct Client { done: Exit<u64> }
///
/// #[chare(index = [i32; 1])]
/// impl Client {
///     #[entry]
///     fn receive(&mut self, cx: &Cx<Self>, square: u64) {
///         self.done.exit(cx, square);
///     }
/// }
///
/// let report = equipoise::run(Config::threads(2), |pe, done| {
///     let squares = pe.array((), |()| Squares);
///     let clients = pe.array([4], |_| Client { done });
///     pe.main(move |pe| squares.at(pe, ()).square(7, clients.at(pe, [3]).callback().receive()));
/// });
/// assert_eq!(report.result, 49);
/// ```
#[derive(Serialize, Deserialize)]
#[serde(bound = "")]
pub struct Callback<V> {
    to: To<V>,
}

#[derive(Serialize, Deserialize)]
#[serde(bound = "")]
enum To<V> {
    Entry { array: u16, entry: u16, to: Receivers },
    Closure(Reply<V>),
    Exit(Exit<V>),
}

impl<V> Clone for Callback<V> {
    fn clone(&self) -> Self {
        let to = match &self.to {
            To::Entry { array, entry, to } => To::Entry { array: *array, entry: *entry, to: to.clone() },
            To::Closure(reply) => To::Closure(*reply),
            To::Exit(exit) => To::Exit(*exit),
        };
        Callback { to }
    }
}

impl<V> std::fmt::Debug for Callback<V> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.to {
            To::Entry { array, entry, to } => {
                write!(f, "Callback(entry {entry} of array {array}, {to:?})")
            }
            To::Closure(reply) => write!(f, "Callback({reply:?})"),
            To::Exit(exit) => write!(f, "Callback({exit:?})"),
        }
    }
}

impl<V> Callback<V> {
    /// An entry of one or several elements.
    pub(super) fn entry(array: u16, entry: usize, to: Receivers) -> Self {
        Callback { to: To::Entry { array, entry: entry as u16, to } }
    }
}

impl<V: Serialize + DeserializeOwned + Send + 'static> Callback<V> {
    /// Sends a value to the receiver. A parked closure and the end of the run accept one value; entries accept any number.
    ///
    /// # Panics
    /// If another run made the callback.
    #[track_caller]
    pub fn send(&self, pe: &PeCx, value: V) {
        match &self.to {
            To::Entry { array, entry, to } => call(pe, *array, *entry, to, value, false),
            To::Closure(reply) => reply.send(pe, value),
            To::Exit(exit) => exit.exit(pe, value),
        }
    }

    /// Contributes a value to a reduction over the caller's array, as `contribute` of a proxy does. The receiver gets the
    /// result.
    ///
    /// # Panics
    /// If the callback is not to an entry with `reduce`, if it is called outside an entry method, or if another run made the
    /// callback.
    #[track_caller]
    pub fn contribute(&self, pe: &PeCx, value: V) {
        match &self.to {
            To::Entry { array, entry, to } => call(pe, *array, *entry, to, value, true),
            To::Closure(_) | To::Exit(_) => panic!(
                "a parked closure and the end of the run cannot combine contributions; make the callback of an entry \
                 with `reduce`"
            ),
        }
    }
}

impl<V> Reply<V> {
    /// The parked closure as a callback.
    pub fn callback(self) -> Callback<V> {
        Callback { to: To::Closure(self) }
    }
}

impl<R> Exit<R> {
    /// The end of the run as a callback: the first value that it receives is the result of the run.
    pub fn callback(self) -> Callback<R> {
        Callback { to: To::Exit(self) }
    }
}

/// Sends or contributes a value to an entry of an array of unknown chares.
#[track_caller]
fn call<V: 'static>(pe: &PeCx, array: u16, entry: u16, to: &Receivers, value: V, contributes: bool) {
    let port = pe.ports.get(usize::from(array));
    let foreign = || "use a callback only in the run that made it".to_owned();
    let called = port
        .ok_or_else(foreign)
        .and_then(|port| port.call_back(pe, entry, to, &mut Some(value), contributes));
    if let Err(sentence) = called {
        panic!("{sentence}");
    }
}

/// Sends or contributes the argument of an entry, for [`AnyPort::call_back`](crate::pe::AnyPort::call_back).
///
/// # Errors
/// Why the entry does not receive it.
pub(super) fn receive<T: Chare>(
    port: &Port<T>,
    pe: &PeCx,
    entry: u16,
    to: &Receivers,
    argument: &mut dyn Any,
    contributes: bool,
) -> Result<(), String> {
    let msg = T::from_argument(entry.into(), argument)
        .filter(|_| to.outside(port.id, port.shared.count).is_none())
        .ok_or("use a callback only in the run that made it")?;
    if !contributes {
        match to {
            Receivers::One(rank) => Target::one(pe, port, *rank).send(msg),
            _ => Targets::these(pe, port, to.clone()).send(msg),
        }
        return Ok(());
    }
    if !T::REDUCES[usize::from(entry)] {
        let entry = T::ENTRIES[usize::from(entry)];
        return Err(format!(
            "the entry `{entry}` of {} has no `reduce`, so a callback to it cannot combine contributions; write \
             `#[entry(reduce = ..)]` on it, or call `send`",
            T::NAME
        ));
    }
    Targets::these(pe, port, to.clone()).contribute().send(msg);
    Ok(())
}
