//! Finds a second `#[chare]` block on a struct, which would define every generated item twice.
//!
//! A macro sees one item at a time and not the module around the item. So this module reads the source file again. Where it
//! finds no second block (blocks in two files, items from another macro), rustc reports the items that are defined twice.

use proc_macro2::TokenStream;
use quote::ToTokens;
use syn::visit::{self, Visit};
use syn::{Attribute, Block, File, Item, ItemImpl, ItemMod, Stmt};

/// Whether `item` follows another `#[chare]` block on the same type, in the same module or block of `source`.
pub fn is_second(item: &ItemImpl, source: &str) -> bool {
    // Most files have one chare, and need no parsing.
    if source.matches("chare").nth(1).is_none() {
        return false;
    }
    let Ok(file) = syn::parse_file(source) else { return false };
    let mut search = Search { item: parts(item), first: 0, later: 0 };
    search.visit_file(&file);
    // Equal blocks in two modules cannot be told apart. Where one of them is the first of its module, it is this one.
    search.first == 0 && search.later > 0
}

/// Counts the places of a block.
struct Search {
    item: [String; 2],
    /// The number of places where it is the first block on its type.
    first: usize,
    /// The number of places where it follows another one.
    later: usize,
}

/// The type and the items of a block. Attributes are left out: rustc has removed some of them already.
fn parts(item: &ItemImpl) -> [String; 2] {
    let items: TokenStream = item.items.iter().map(ToTokens::to_token_stream).collect();
    let text = |tokens: TokenStream| tokens.to_string().replace(char::is_whitespace, "");
    [text(item.self_ty.to_token_stream()), text(items)]
}

fn is_chare(attribute: &Attribute) -> bool {
    attribute.path().segments.last().is_some_and(|last| last.ident == "chare")
}

/// Whether an attribute may remove the item.
fn is_conditional(attribute: &Attribute) -> bool {
    attribute.path().is_ident("cfg") || attribute.path().is_ident("cfg_attr")
}

impl Search {
    /// Counts in the items of one module or block.
    fn scope<'a>(&mut self, items: impl Iterator<Item = &'a Item>) {
        let mut other = false;
        for item in items {
            let Item::Impl(block) = item else { continue };
            if !block.attrs.iter().any(is_chare) || block.attrs.iter().any(is_conditional) {
                continue;
            }
            let found = parts(block);
            if found == self.item {
                *(if other { &mut self.later } else { &mut self.first }) += 1;
            }
            other |= found[0] == self.item[0];
        }
    }
}

impl<'a> Visit<'a> for Search {
    fn visit_file(&mut self, file: &'a File) {
        self.scope(file.items.iter());
        visit::visit_file(self, file);
    }

    fn visit_item_mod(&mut self, module: &'a ItemMod) {
        self.scope(module.content.iter().flat_map(|(_, items)| items));
        visit::visit_item_mod(self, module);
    }

    fn visit_block(&mut self, block: &'a Block) {
        self.scope(block.stmts.iter().filter_map(|statement| match statement {
            Stmt::Item(item) => Some(item),
            _ => None,
        }));
        visit::visit_block(self, block);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: &str = "#[chare(index = ())] impl A { #[entry] fn f(&mut self, cx: &Cx<Self>) {} }";
    const SECOND: &str = "#[chare(index = ())] impl A { #[entry] fn g(&mut self, cx: &Cx<Self>) {} }";

    /// Whether `SECOND` is the second block in this source.
    fn check(source: &str) -> bool {
        let mut item: ItemImpl = syn::parse_str(SECOND).expect("a block");
        item.attrs.clear();
        is_second(&item, source)
    }

    #[test]
    fn finds_a_second_block_in_the_same_scope() {
        assert!(check(&format!("{FIRST} {SECOND}")));
        assert!(check(&format!("mod a {{ {FIRST} struct B; {SECOND} }}")));
        assert!(check(&format!("fn main() {{ {FIRST} {SECOND} }}")));
        assert!(check(&format!("{FIRST} {SECOND}").replace("#[chare", "/// A chare.\n#[equipoise::chare")));
    }

    #[test]
    fn one_block_per_type_and_scope_is_valid() {
        assert!(!check(&format!("{SECOND} {FIRST}")));
        assert!(!check(&format!("mod a {{ {FIRST} }} mod b {{ {SECOND} }}")));
        assert!(!check(&format!("{} {SECOND}", FIRST.replace("impl A", "impl B"))));
        assert!(!check(&format!("{} {SECOND}", FIRST.replace("#[chare(index = ())]", ""))));
        assert!(!check(&format!("#[cfg(unix)] {FIRST} #[cfg(not(unix))] {SECOND}")));
        // The item of a module that another one repeats, after a different first block.
        assert!(!check(&format!("mod a {{ {SECOND} }} mod b {{ {FIRST} {SECOND} }}")));
        assert!(!check("this is not Rust, chare chare"));
    }
}
