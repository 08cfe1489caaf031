//! `#[flow]`: a life cycle from top to bottom becomes a state machine that can migrate.
//!
//! # The transformation
//!
//! A flow may wait: for messages (`when!`, `select!`, `overlap!`), for an answer (`ask!`), for the result of a reduction (`reduce!`), for a
//! load-balancing step (`at_sync!`). Where it waits, it must be data, because the element may migrate and be saved there.
//!
//! 1. **Points.** The body is cut at every wait, and where control flow that contains a wait joins or repeats: after such an
//!    `if` or `match`, at the head of and after such a loop. A *point* is a place between two cuts. Statements
//!    without a wait stay as they are, whatever they contain, and belong to the point in which they stand.
//!    `graph` has the types, `build` makes the points.
//! 2. **Variables.** A point *needs* a variable if code that is reachable from it mentions the variable before it is declared.
//!    `live` computes this backward over all points until nothing changes. A variable that a point needs has a written type.
//! 3. **The state** is an enum, `BlockFlow`, with a variant per wait, which holds the variables that the wait needs:
//!
//!    ```text
//!    for i in 0u32..self.n {             enum BlockFlow {
//!        self.send(cx, i);                   Idle,                         // does not run
//!        when!(halo(j, edge) if j == i       Wait2(Range<u32>, u32) }      // at `when!`: range and i
//!            => self.set(edge));
//!    }
//!    ```
//!
//!    The runtime keeps the state of an element next to the element (`Slot::flow`); for other chares it is `()`.
//! 4. **The method** (`emit`) takes a message and continues up to the next wait. A point to which only one message leads stands where the
//!    message is matched. Any other point stands behind a block that contains the code that jumps to it (`layout`): a jump is a `break` out of
//!    that block, whose value is the variables. So the variables stay in registers, and each jump goes to one place:
//!
//!    ```text
//!    fn life(&mut self, cx: &Cx<Self>, flow: &mut BlockFlow, msg: BlockMsg) {
//!        let (mut range,) = 'head: {
//!            match msg {
//!                life() => match take(flow) {
//!                    Idle => { let range = 0..self.n; break 'head (range,) }
//!                    other => { *flow = other; return }
//!                }
//!                halo(j, edge) => match take(flow) {
//!                    Wait2(range, i) => { self.set(edge); break 'head (range,) }
//!                    ..
//!                }
//!            }
//!        };
//!        match range.next() {
//!            Some(i) => { self.send(cx, i); *flow = Wait2(range, i); return }
//!            None => { *flow = Idle; return }
//!        }
//!    }
//!    ```
//!
//!    Where the flow can go around without a wait, as in a loop that waits in an `if`, the points of this loop are the arms of a
//!    `match` in a `loop`, and a **step**, of an enum `BlockFlowStep`, says which one is next. A step exists only while the method runs.
//!
//!    A point binds its variables to their names in the source, so rustc checks the statements as they were written. All code of the user is
//!    written once, so each error is reported once. `break`, `continue` and `return` that leave a statement become such jumps (`jumps`).
//! 5. **Messages.** The flow is an entry: its message starts it. An entry without a body is received by the flow. Every
//!    `ask!` is an entry to which its callback leads, every `reduce!` is an entry with `reduce`, `at_sync!` is one entry. `deliver` calls the method. `ready` is true for a message for
//!    which the flow waits, with a true guard. Other messages stay with the element like those of a false guard: they wait in
//!    order, migrate, are saved and are reported. (`messages`)

mod build;
mod emit;
mod graph;
mod jumps;
mod layout;
mod live;
mod messages;
mod waits;

use crate::block::{Block, Receiver};
use crate::errors::Errors;
use emit::Emit;
use graph::{Graph, Kind};
use layout::Layout;
use proc_macro2::{Ident, Span, TokenStream};
use quote::{format_ident, quote};
use std::cell::RefCell;
use syn::FnArg;

/// The generated parts of a flow.
pub struct Flow {
    /// The type of its state.
    pub state: TokenStream,
    /// The definitions of the state and of the steps.
    pub items: TokenStream,
    /// The method, for the block.
    pub method: Option<syn::ImplItemFn>,
    /// By entry, for those that the flow receives: the arm of `ready`.
    pub arms: Vec<(Ident, TokenStream)>,
    /// The methods that name the messages for which the flow waits, and the flow if it does not run.
    pub waits: TokenStream,
    /// The token `self` of the flow: guards use it, also where another macro wrote the block.
    pub this: Ident,
}

impl Flow {
    /// A block without a valid flow.
    fn none() -> Self {
        Self {
            state: quote!(()),
            items: quote!(),
            method: None,
            arms: Vec::new(),
            waits: quote!(),
            this: this(None),
        }
    }

    /// Whether the method receives an entry.
    pub fn receives(&self, entry: &Ident) -> bool {
        self.arms.iter().any(|(name, _)| name == entry)
    }
}

/// Compiles the flow of the block, and adds its entries to the block.
pub fn compile(block: &mut Block, message: &Ident, errors: &mut Errors) -> Flow {
    let Some(method) = block.flow.take() else { return Flow::none() };
    let (state, name) = (format_ident!("{}Flow", block.name), method.sig.ident.clone());
    let before = errors.count();
    let graph = build::graph(&method, block, errors);
    for entry in block.entries.iter().filter(|entry| entry.receiver == Receiver::Flow) {
        if entry.name != name && errors.count() == before && !graph.receives(&entry.name) {
            let sentence = format!(
                "the flow never waits for `{}`, so its messages would not be received: wait for it with `when!`, or write a body",
                entry.name
            );
            errors.report(&entry.name, sentence);
        }
    }
    let live = live::needed(&graph);
    live::check(&graph, &live, errors);
    if errors.count() != before {
        return Flow::none();
    }
    let (_, type_generics, _) = block.generics.split_for_impl();
    let state_type = quote!(#state #type_generics);
    let step = format_ident!("{state}Step");
    let (step_type, message_type) = (quote!(#step #type_generics), quote!(#message #type_generics));
    let layout = Layout::of(&graph);
    let emit = Emit {
        graph: &graph,
        live: &live,
        layout: &layout,
        state: &state,
        step: &step,
        state_type: &state_type,
        step_type: &step_type,
        name: &name,
        message,
        message_type: &message_type,
        hidden: RefCell::default(),
    };
    let receives = messages::receive(&emit, block, errors);
    let written = emit.method(receives, &method, errors);
    if errors.count() != before {
        return Flow::none();
    }
    Flow {
        items: emit.items(block),
        method: Some(written),
        arms: messages::ready(&emit, block),
        waits: messages::waits(&emit, block),
        this: this(method.sig.inputs.first()),
        state: state_type,
    }
}

/// The token `self` of a method.
fn this(receiver: Option<&FnArg>) -> Ident {
    let span = match receiver {
        Some(FnArg::Receiver(receiver)) => receiver.self_token.span,
        _ => Span::call_site(),
    };
    Ident::new("self", span)
}

impl Graph {
    /// Whether a wait receives the entry.
    fn receives(&self, entry: &Ident) -> bool {
        self.nodes.iter().any(|node| match &node.kind {
            Kind::Wait(cases) => cases.iter().any(|case| case.entry == *entry),
            Kind::Idle | Kind::Inside => false,
        })
    }
}
