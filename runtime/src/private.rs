//! What the code made by `#[chare]` needs and nobody else should use.

pub use serde;

/// An argument of a message that is to be cloned, if its type can be.
///
/// Method lookup prefers the inherent `copy`, which exists for `Clone` types only, and falls back to
/// [`ViaNothing`]: a choice by type that needs no specialisation, because a message's types are
/// concrete.
pub struct CopyArg<'a, T>(pub &'a T);

impl<T: Clone> CopyArg<'_, T> {
    /// Clones the argument.
    #[inline(always)]
    pub fn copy(self) -> T {
        self.0.clone()
    }
}

/// The copy of an argument that cannot be cloned, which is never asked for: a proxy to several
/// elements offers only entries whose arguments are all `Clone`.
pub trait ViaNothing<T> {
    /// Never called.
    fn copy(self) -> T;
}

impl<T> ViaNothing<T> for CopyArg<'_, T> {
    fn copy(self) -> T {
        unreachable!(
            "a `{}` is not `Clone`, so its message cannot go to several elements",
            std::any::type_name::<T>()
        )
    }
}

/// What a guard may look at: its arguments are handed to it as copies.
#[diagnostic::on_unimplemented(
    message = "a guard is handed copies of the arguments it looks at, and `{Self}` is not `Copy`",
    label = "not `Copy`",
    note = "let the guard compare something that is `Copy`, such as a number sent beside the `{Self}`"
)]
pub trait GuardArg: Copy {}

#[diagnostic::do_not_recommend]
impl<T: Copy> GuardArg for T {}

/// The copy of an argument that a guard looks at.
#[inline(always)]
pub fn guard_arg<T: GuardArg>(arg: &T) -> T {
    *arg
}
