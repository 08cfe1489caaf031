//! The points of a flow, and their code.

use proc_macro2::Span;
use std::rc::Rc;
use syn::{Attribute, Expr, Ident, Item, Pat, Stmt, Type};

/// The number of a point.
pub type Point = usize;

/// The point at which the flow does not run.
pub const IDLE: Point = 0;

/// The number of a variable.
pub type Var = usize;

/// A flow.
pub struct Graph {
    /// The points. The first is `IDLE`.
    pub nodes: Vec<Node>,
    /// Where the flow starts.
    pub start: Point,
    /// The variables.
    pub variables: Vec<Variable>,
    /// The items in the body.
    pub items: Vec<Item>,
    /// The arguments of the flow.
    pub arguments: Vec<Var>,
}

/// A variable.
pub struct Variable {
    /// Its name.
    pub name: Ident,
    /// Whether it is declared with `mut`.
    pub is_mutable: bool,
    /// Its type, if it is known.
    pub ty: Option<Type>,
    /// Its serde attributes, if it is the argument of an entry.
    pub serde: Vec<Attribute>,
    /// Whether a `let` with its name alone declares it.
    pub is_let: bool,
}

/// A point.
pub struct Node {
    /// What happens there.
    pub kind: Kind,
    /// The code from there to other points.
    pub code: Vec<Step>,
}

/// The kind of a point.
pub enum Kind {
    /// The flow does not run.
    Idle,
    /// The flow waits for one of these messages.
    Wait(Vec<Case>),
    /// Inside of the code.
    Inside,
}

/// A message for which the flow waits.
pub struct Case {
    /// The entry.
    pub entry: Ident,
    /// The variables of its fields.
    pub arguments: Vec<Option<Var>>,
    /// The guard.
    pub guard: Option<Guard>,
    /// In an `overlap!`, the variable of the cases that are left, and the bit of this one.
    pub left: Option<(Var, u32)>,
    /// Where the flow continues.
    pub then: Point,
    /// Where the message comes from.
    pub from: Source,
}

/// The source of a message.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// A proxy.
    Proxy,
    /// A callback of `ask!`.
    Answer,
    /// A reduction, which all elements receive, also those whose flow does not wait for it.
    Reduction,
    /// A load-balancing step.
    Sync,
}

/// The guard of a case.
pub struct Guard {
    /// The condition.
    pub condition: Expr,
    /// The variables that it mentions, flow variables and arguments, by the name as mentioned.
    pub mentions: Vec<(Ident, Var)>,
    /// The place of `if`.
    pub span: Span,
}

/// A part of the code of a point. The last part of a code leaves the point.
#[allow(clippy::large_enum_variant, reason = "a flow has few of them")]
pub enum Step {
    /// A statement without a wait, and the variables that it declares.
    Rust(Fragment<Stmt>, Vec<Var>),
    /// An `if`, whose first arm has no pattern, or a `match`.
    Choice {
        /// The condition, or the value.
        head: Fragment<Expr>,
        /// Whether it is an `if`.
        is_if: bool,
        /// The cases.
        arms: Vec<Arm>,
    },
    /// Continues at another point.
    Goto(Point, Scope),
}

/// A case of a choice.
pub struct Arm {
    /// The pattern, of a `match`.
    pub pattern: Option<Pat>,
    /// The variables that the guard of the pattern mentions.
    pub uses: Vec<Var>,
    /// The variables that the pattern, or the condition of the `if`, declares.
    pub declares: Vec<Var>,
    /// The code.
    pub code: Vec<Step>,
}

/// The variables in scope; a later one hides earlier ones with its name.
pub type Scope = Rc<Vec<Var>>;

/// The loops around a fragment that contain waits; the last is the innermost.
pub type Loops = Rc<Vec<Loop>>;

/// A loop that contains a wait.
pub struct Loop {
    /// Its label.
    pub label: Option<Ident>,
    /// Where `continue` continues.
    pub head: Point,
    /// Where `break` continues.
    pub after: Point,
}

/// Code without a wait.
pub struct Fragment<T> {
    /// The code as written.
    pub code: T,
    /// The variables in scope before the code.
    pub scope: Scope,
    /// The variables that it mentions.
    pub uses: Vec<Var>,
    /// Where each of its `break`, `continue` and `return` continues; none for one that stays inside.
    pub jumps: Vec<Option<Point>>,
    /// The names that patterns in it declare.
    pub bound: Vec<Ident>,
}

impl Graph {
    /// The variable of this name in a scope.
    pub fn lookup(&self, scope: &[Var], name: &Ident) -> Option<Var> {
        scope.iter().rev().copied().find(|&var| self.variables[var].name == *name)
    }
}
