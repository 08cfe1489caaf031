//! The macros of the crate `equipoise`, which re-exports them: `#[chare]` with `#[entry]` and `#[flow]`, the waits of flows, and
//! `#[derive(Index)]`.
//!
//! Modules in order of use: `options` reads the keys of the attributes, `block` reads
//! the `impl` block (`types` inspects types and guards), `errors` collects the errors, each at the token at fault, `flow`
//! makes a state machine of a `#[flow]`, and `expand` generates the message enum, the proxies and the implementation of
//! `Chare`. `second` finds a second `#[chare]` block on a struct. `index` is the derive.
//!
//! One mistake gives one error: valid parts are generated even if other parts are invalid, and an
//! invalid entry still gets proxy methods, so that its callers compile.

mod block;
mod dispatch;
mod errors;
mod expand;
mod flow;
mod index;
mod names;
mod options;
mod proxies;
mod second;
#[cfg(test)]
mod tests;
mod types;

use proc_macro::TokenStream;

/// Makes a struct a chare: a migratable object that reacts to messages.
///
/// Write it on one `impl` block of a struct that derives `Serialize` and `Deserialize`, and
/// `#[entry]` on the methods that other objects may call by message. Other methods may be in this block or in others.
/// (`ignore`, because this crate is built before `equipoise`, whose front page has an example that runs.)
///
/// ```ignore
/// #[derive(Serialize, Deserialize)]
/// struct Block { shape: [i32; 2], iter: u32, missing: usize, cells: Grid }
///
/// #[chare(index = [i32; 2], sync)]
/// impl Block {
///     /// Receives an edge of this iteration; edges of the next iteration wait.
///     #[entry(when = iter == self.iter)]
///     fn ghost(&mut self, cx: &Cx<Self>, iter: u32, side: Side, row: Vec<f64>) { .. }
///
///     /// Receives the largest change of all blocks.
///     #[entry(reduce = f64::max)]
///     fn relaxed(&mut self, cx: &Cx<Self>, change: f64) { .. }
/// }
/// ```
///
/// # Keys
///
/// - `index = TYPE`: the type of the elements' index: `[i32; N]` with N from 1 to 6, a struct with `#[derive(Index)]`, `()` for a
///   singleton, `Pe` for one element on every PE, `Process` for one element in every process. The first
///   dimension is the fastest: see `equipoise::Index`.
/// - `sync`: the array takes part in load-balancing steps, and its elements may call `cx.at_sync()`.
/// - `pinned`: its elements never migrate. (With `sync` they wait for the step, but do not migrate.)
/// - `expedited`: on each PE, messages for its elements are delivered before messages for other arrays. Use it for
///   arrays with little work on which many elements wait. On the simulated machine such messages precede all others,
///   on threads they precede the next batch. The key has no effect where the order of messages is sampled with a seed.
/// - `regroup = FUNCTION`: for `index = Pe` and `index = Process`, how a run restarts with another number of PEs or processes
///   than the saved one had. The function, `fn(Vec<Self>, usize) -> Vec<Self>`, takes all saved elements in rank order and the
///   number of elements now, and returns as many elements: merged, split, or new. It runs once in each process, and returns
///   the same elements everywhere. Without the key, such a restart is refused.
///
/// # Generic chares
///
/// A block may have type and constant parameters, as in `impl<T: Value> Block<T>`; the generated items have the same, and
/// arguments of entries may contain them. A parameter in an argument is encoded, sent between threads and stored, so it needs
/// the bounds `T: Serialize + DeserializeOwned + Send + 'static`, and `Clone` where the block sends it to several elements.
/// Write no such bounds on the struct: its derives add those that they need. Each instance, such as `Block<f64>`, is a chare
/// with its own arrays.
///
/// # Generated items
///
/// The block without the attributes; `BlockMsg`, an enum with one variant per entry;
/// `BlockProxy` and `BlockProxies`, which send to one element and to several, with a method per entry;
/// `BlockReduction`, with a method per `reduce` entry; and the implementation of `Chare`. Proxy methods have
/// the visibility and documentation of their entry method.
///
/// A message to several elements is cloned, also as the result of a reduction: then its
/// arguments must be `Clone`. Cloning an argument of type `Arc` does not copy its content. Arguments of a type such as
/// `Vec<f64>` or `Arc<[f64]>` are encoded as one block of bytes
/// (`equipoise::numbers`), unless the argument has its own `#[serde(..)]` attribute. Arguments of other types derive
/// `Serialize` and `Deserialize`.
#[proc_macro_attribute]
pub fn chare(options: TokenStream, item: TokenStream) -> TokenStream {
    let source = || {
        let path = proc_macro::Span::call_site().local_file()?;
        std::fs::read_to_string(path).ok()
    };
    expand::chare(options.into(), item.into(), source).into()
}

/// Makes a struct an index of chare arrays, with a name for each dimension.
///
/// A field is a dimension; the first field is the fastest (see `equipoise::Index`). The shape of an array is a value of the
/// same struct. Fields have the types `i8` to `i64`, `u8` to `u64`, `isize`, `usize` or `bool`, at most six of them.
///
/// - In the shape, the field of a number is one more than the largest value of the dimension; the smallest is 0. It is at most
///   2^31 - 1, and there are at most 2^32 - 1 indices.
/// - In the shape, a `bool` says whether the dimension has the value `true`: with `true` it has both values, with `false` only `false`.
///
/// ```ignore
/// #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Index)]
/// struct Cell { x: i32, y: i32, level: u8 }
///
/// #[chare(index = Cell)]
/// impl Block { .. }
///
/// let blocks = pe.array(Cell { x: 8, y: 8, level: 3 }, |Cell { x, y, level }| Block::new(x, y, level));
/// ```
#[proc_macro_derive(Index)]
pub fn derive_index(item: TokenStream) -> TokenStream {
    index::derive(item.into()).into()
}

/// Marks an entry method, which runs when a message arrives. See [`macro@chare`].
///
/// An entry method takes `&mut self`, then `cx: &Cx<Self>`, then the fields of its message by value; it
/// returns nothing and runs to completion.
///
/// # Keys
///
/// - `when = CONDITION`: a guard. The message waits until the condition holds; the condition sees `self`
///   and copies of the arguments it names.
/// - `priority = NUMBER`: an integer expression whose type fits into `i64`. It sees copies of the arguments it names. Of the messages that wait
///   on a PE, also those for other elements and arrays, the ones with smaller numbers go first; equal ones of an array keep their order, and arrays with
///   equal ones take turns. Entries without the key have priority 0. The receiving PE evaluates the expression. Broadcasts and results of reductions for
///   all elements are delivered when they arrive. Messages behind a guard keep their order. On threads, an array without priorities may
///   deliver up to 16 messages before more urgent ones of other arrays. The key has no effect where the order of messages is sampled with a seed.
/// - `reduce = FUNCTION`: elements may contribute to this entry, as in `cx.peer(index).contribute().entry(value)`. The function,
///   `fn(T, T) -> T` or a closure that captures nothing, combines two contributions, in the order of the elements; it must be associative.
///
/// An entry without a body, `#[entry] fn halo(iter: u32, edge: Vec<f64>);`, is received by the flow: see [`macro@flow`].
#[proc_macro_attribute]
pub fn entry(_options: TokenStream, item: TokenStream) -> TokenStream {
    expand::stray("#[entry]", item.into()).into()
}

/// Marks a flow: a life cycle from top to bottom, which waits for messages. See [`macro@chare`].
///
/// The macro makes a state machine of the method. Its state is data that is kept with the element: the place at which the flow waits,
/// and the variables that are used after the wait. So an element may migrate, and a run may be saved, wherever a flow waits.
///
/// ```ignore
/// #[chare(index = [i32; 1], sync)]
/// impl Block {
///     #[flow]
///     fn life(&mut self, cx: &Cx<Self>) {
///         for iter in 0u32..self.iterations {
///             self.send_edges(cx, iter);
///             for _ in 0u32..self.neighbors {
///                 when!(halo(i, side, edge) if i == iter => self.set_halo(side, edge));
///             }
///             let change: f64 = reduce!(cx, f64::max, self.relax());
///             if change < self.tolerance {
///                 break;
///             }
///             if iter % 20 == 19 {
///                 at_sync!(cx);
///             }
///         }
///         self.done.exit(cx, self.heat());
///     }
///
///     /// Is received by the flow.
///     #[entry]
///     fn halo(iter: u32, side: Side, edge: Vec<f64>);
/// }
/// ```
///
/// The flow is an entry: `blocks.all(pe).life()` starts it. A message that would start it again waits until it has ended. A chare has one
/// flow, and may have other entries, which run while the flow waits.
///
/// # Waits
///
/// - `when!(entry(a, b) if CONDITION => BODY)` waits for a message, and runs the body. The message is of an entry without
///   a body; its fields get names here, or `_`. The guard is optional. It sees `self` and copies of the variables and fields that it names.
///   Messages that arrive early wait. `let x: f64 = when!(value(v) => v);` keeps the value of the body.
/// - `select! { a(x) => BODY, b() if CONDITION => BODY }` waits for one of several messages. If a message fits several cases, the first of
///   them runs.
/// - `overlap! { a(x) => BODY, b(y) => BODY }` waits for all of the messages, in any order.
/// - `let x: f64 = ask!(cx, |answer| server.at(cx, key).find(answer));` calls the closure with a `Callback<f64>` for the answer, and waits until
///   an element or `main` has sent to it. That must happen once: a second answer would be taken for that of the next time the flow comes to
///   this `ask!`. `ask!(cx, |done| ..);` waits for a `Callback<()>`.
/// - `let x: f64 = reduce!(cx, FUNCTION, VALUE);` contributes the value to a reduction over all elements of the array, and waits for its
///   result, which all elements receive. With `let _: f64`, the result is dropped. An element that is inserted while a reduction is in
///   progress receives its result, too, and cannot tell it from that of its own first `reduce!`: insert elements before or after.
/// - `at_sync!(cx)` joins the next load-balancing step, and waits for it. The chare must be `sync`.
///
/// # Control flow
///
/// A wait may be in blocks, `if`, `if let`, `match`, `loop`, `while`, `while let`, in `for` over a range of integers, and in the body of
/// `when!` and `select!`. `break`, `continue` (also with labels) and `return` may be anywhere. Code without a wait may be any Rust.
///
/// A variable that is used after a wait needs a written type, which derives `Serialize` and `Deserialize`. It cannot borrow, and inner
/// variables cannot hide it. In a `for` with a wait, a bound of the range has the type as a suffix, as in `0u32..n`.
#[proc_macro_attribute]
pub fn flow(_options: TokenStream, item: TokenStream) -> TokenStream {
    expand::stray("#[flow]", item.into()).into()
}

/// In a [`macro@flow`]: waits for a message.
#[proc_macro]
pub fn when(_tokens: TokenStream) -> TokenStream {
    expand::stray_wait("when").into()
}

/// In a [`macro@flow`]: waits for one of several messages.
#[proc_macro]
pub fn select(_tokens: TokenStream) -> TokenStream {
    expand::stray_wait("select").into()
}

/// In a [`macro@flow`]: waits for several messages, in any order.
#[proc_macro]
pub fn overlap(_tokens: TokenStream) -> TokenStream {
    expand::stray_wait("overlap").into()
}

/// In a [`macro@flow`]: asks for an answer with a callback, and waits for it.
#[proc_macro]
pub fn ask(_tokens: TokenStream) -> TokenStream {
    expand::stray_wait("ask").into()
}

/// In a [`macro@flow`]: contributes to a reduction, and waits for its result.
#[proc_macro]
pub fn reduce(_tokens: TokenStream) -> TokenStream {
    expand::stray_wait("reduce").into()
}

/// In a [`macro@flow`]: joins the next load-balancing step, and waits for it.
#[proc_macro]
pub fn at_sync(_tokens: TokenStream) -> TokenStream {
    expand::stray_wait("at_sync").into()
}
