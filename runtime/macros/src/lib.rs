//! The attribute `#[chare]` of the crate `equipoise`, which re-exports and documents it.
//!
//! Its parts, in the order in which they work: `options` reads the keys of the attributes, `block` reads
//! the `impl` block (asking `types` about types and guards), `errors` keeps what is wrong with them, in
//! sentences at the token at fault, and `expand` writes the message enum, the proxies and the
//! implementation of `Chare`.
//!
//! One mistake gives one error: what is sound is generated even where something else is not, and a
//! mistaken entry still gets proxy methods, so that its callers are not blamed for it.

mod block;
mod dispatch;
mod errors;
mod expand;
mod options;
mod proxies;
#[cfg(test)]
mod tests;
mod types;

use proc_macro::TokenStream;

/// Makes a struct a chare: a migratable object that reacts to messages.
///
/// Write it on one `impl` block of a struct that derives `Serialize` and `Deserialize`, and
/// `#[entry]` on the methods that other objects may call by message:
///
/// ```ignore
/// #[derive(Serialize, Deserialize)]
/// struct Block { shape: [i32; 2], iter: u32, missing: usize, cells: Grid }
///
/// #[chare(index = [i32; 2], sync)]
/// impl Block {
///     /// Takes one edge of this iteration; edges of the next one wait.
///     #[entry(when = iter == self.iter)]
///     fn ghost(&mut self, cx: &Cx<Self>, iter: u32, side: Side, row: Vec<f64>) { .. }
///
///     /// Learns the largest change over all blocks.
///     #[entry(reduce = f64::max)]
///     fn relaxed(&mut self, cx: &Cx<Self>, change: f64) { .. }
/// }
/// ```
///
/// # Keys
///
/// - `index = TYPE`: how elements are numbered: `[i32; N]` with N from 1 to 6, `()` for a singleton,
///   `Pe` for one element on every PE.
/// - `sync`: the array takes part in load-balancing steps, and its elements may call `cx.at_sync()`.
/// - `pinned`: its elements never migrate. (With `sync` they wait for the step and stay.)
/// - `expedited`: what waits on a PE for its elements goes before what waits there for others. For those
///   whom many others wait for and who do little themselves. On the simulated machine it goes before all of it,
///   on threads before the next batch; where messages arrive in an order drawn from a seed, it means nothing.
///
/// # What it makes
///
/// Beside the block, unchanged but for the attributes: `BlockMsg`, an enum with one variant per entry;
/// `BlockProxy` and `BlockProxies`, which send to one element and to several, with a method per entry;
/// `BlockReduction`, with a method per `reduce` entry; and the implementation of `Chare`. An entry
/// method's visibility and documentation are its proxy methods' too.
///
/// A message to several elements is cloned, and a reduction's result may go to several: there the
/// arguments must be `Clone`. Arguments of a type such as `Vec<f64>` are encoded as one block of bytes
/// (`equipoise::numbers`), unless the argument has a `#[serde(..)]` attribute of its own.
#[proc_macro_attribute]
pub fn chare(options: TokenStream, item: TokenStream) -> TokenStream {
    expand::chare(options.into(), item.into()).into()
}

/// Marks an entry method: one that runs when a message arrives. See [`macro@chare`].
///
/// An entry method takes `&mut self`, then `cx: &Cx<Self>`, then the fields of its message by value; it
/// returns nothing and runs to completion.
///
/// # Keys
///
/// - `when = CONDITION`: a guard. The message waits until the condition holds; the condition sees `self`
///   and copies of the arguments it names.
/// - `reduce = FUNCTION`: other arrays may contribute to this entry. The function, `fn(T, T) -> T` or a
///   closure that captures nothing, combines two contributions; it must be associative and commutative.
#[proc_macro_attribute]
pub fn entry(_options: TokenStream, item: TokenStream) -> TokenStream {
    expand::stray_entry(item.into()).into()
}
