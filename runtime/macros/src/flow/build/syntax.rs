//! What patterns and expressions of the user are.

use proc_macro2::Ident;
use quote::ToTokens;
use syn::ext::IdentExt;
use syn::visit::{self, Visit};
use syn::{Expr, Lit, Pat, PatIdent, Type};

/// Whether an expression is a statement without `;`.
pub fn is_statement(value: &Expr) -> bool {
    matches!(value, Expr::Verbatim(_) | Expr::Break(_) | Expr::Continue(_) | Expr::Return(_))
}

/// Whether a name in a pattern is that of a constant or of a variant, such as `None`.
pub fn is_constant(name: &Ident) -> bool {
    name.unraw().to_string().starts_with(char::is_uppercase)
}

/// Whether a pattern is a name or `_`.
pub fn is_name(pat: &Pat) -> bool {
    matches!(pat, Pat::Wild(_) | Pat::Ident(PatIdent { by_ref: None, subpat: None, .. }))
}

/// The type of a number with a suffix or a cast.
pub fn number_type(expression: &Expr) -> Option<Type> {
    match expression {
        Expr::Paren(inner) => number_type(&inner.expr),
        Expr::Unary(inner) => number_type(&inner.expr),
        Expr::Cast(cast) => Some((*cast.ty).clone()),
        Expr::Binary(both) => number_type(&both.left).or_else(|| number_type(&both.right)),
        Expr::Lit(literal) => match &literal.lit {
            Lit::Int(number) if !number.suffix().is_empty() => {
                let suffix = Ident::new(number.suffix(), number.span());
                syn::parse2(suffix.to_token_stream()).ok()
            }
            _ => None,
        },
        _ => None,
    }
}

/// The names that patterns declare.
#[derive(Default)]
pub struct Bound(pub Vec<Ident>);

impl<'a> Visit<'a> for Bound {
    fn visit_pat_ident(&mut self, pat: &'a PatIdent) {
        if !is_constant(&pat.ident) {
            self.0.push(pat.ident.clone());
        }
        visit::visit_pat_ident(self, pat);
    }
    // A pattern may have a guard, whose closures have patterns of their own.
    fn visit_expr_closure(&mut self, _: &'a syn::ExprClosure) {}
}
