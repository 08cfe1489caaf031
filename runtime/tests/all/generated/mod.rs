//! Forms that `#[chare]` accepts; the generated code compiles without warnings.

pub mod a_macro_can_write_chares;
pub mod an_instance_of_a_generic_struct_is_a_chare;
pub mod every_kind_of_entry;
pub mod generated_names_are_invisible;
pub mod the_runtime_delivers_what_proxies_send;
