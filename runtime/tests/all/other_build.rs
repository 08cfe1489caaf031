//! State of another build that does not fit: the sentence names element and field.

#![allow(missing_docs)]

use crate::checkpoints::{restarts_on, saves};
use equipoise::prelude::*;
use equipoise::{Report, RunError, try_run};

/// A build of a program: its chare `Cell` and the parts of it have these fields, and its entry these arguments.
macro_rules! build {
    (
        $build:ident cell { $($own:ident),* } part { $($field:ident: $type:ty = $value:expr),* }
        entry($($argument:ident: $of:ty = $given:expr),*)
    ) => {
        mod $build {
            use super::*;

            #[derive(Clone, Serialize, Deserialize)]
            pub struct Part {
                pub word: u64,
                $(pub $field: $type),*
            }

            #[derive(Serialize, Deserialize)]
            struct Cell {
                iter: u32,
                $($own: f64,)*
                parts: Vec<Part>,
                done: Exit<()>,
            }

            #[chare(index = [i32; 1])]
            impl Cell {
                #[entry(when = self.iter > 7)]
                fn guarded(&mut self, _cx: &Cx<Self>, _first: u8, $($argument: $of),*) {
                    $(let _ = $argument;)*
                }

                #[entry]
                fn finish(&mut self, cx: &Cx<Self>) {
                    self.done.exit(cx, ());
                }
            }

            /// Saves itself and exits; with a message whose guard is false, or with one to an element that does not exist.
            pub fn run(config: Config, waits: bool, early: bool) -> Result<Report<()>, RunError> {
                try_run(config, move |pe, done| {
                    let part = Part { word: 7, $($field: $value),* };
                    let cells = pe.array([3], |_| Cell { iter: 0, $($own: 1.0,)* parts: vec![part.clone(); 2], done });
                    let missing = pe.sparse::<_, Cell>([3]);
                    pe.main(move |pe| {
                        if waits {
                            cells.at(pe, [1]).guarded(1, $($given),*);
                        }
                        if early {
                            missing.at(pe, [2]).guarded(1, $($given),*);
                        }
                        cells.at(pe, [0]).at_checkpoint().finish();
                    });
                })
            }
        }
    };
}

build!(saved cell { x, y } part { flag: bool = true } entry(more: u16 = u16::MAX));
build!(same cell { x, y } part { flag: bool = true } entry(more: u16 = u16::MAX));
build!(field_added cell { x, y, z } part { flag: bool = true } entry(more: u16 = u16::MAX));
build!(fields_removed cell {} part { flag: bool = true } entry(more: u16 = u16::MAX));
build!(field_renamed cell { x, mass } part { flag: bool = true } entry(more: u16 = u16::MAX));
build!(fields_swapped cell { y, x } part { flag: bool = true } entry(more: u16 = u16::MAX));
build!(inner_added cell { x, y } part { flag: bool = true, name: String = String::new() } entry(more: u16 = u16::MAX));
build!(inner_removed cell { x, y } part {} entry(more: u16 = u16::MAX));
build!(argument_changed cell { x, y } part { flag: bool = true } entry(more: String = String::new()));

type Run = fn(Config, bool, bool) -> Result<Report<()>, RunError>;

#[test]
fn state_that_does_not_fit_is_refused_with_the_element_and_the_field() {
    let remedy = ", or restart with the build that saved it";
    let cases: [(Run, bool, bool, &str); 10] = [
        (same::run, true, true, ""),
        (
            field_added::run,
            false,
            false,
            "has elements of Cell without the field `z`, which this build has; give Cell the fields that it had",
        ),
        (
            fields_removed::run,
            false,
            false,
            "has elements of Cell with the fields `x`, `y`, which this build does not have; ",
        ),
        (
            field_renamed::run,
            false,
            false,
            "with the field `y`, which this build does not have, and without the field `mass`, which this build has; ",
        ),
        (fields_swapped::run, false, false, "has elements of Cell with the same fields in another order; "),
        (
            inner_added::run,
            false,
            false,
            "does not fit Cell[0]: field `parts[0].name`: the bytes end too early; give Cell and its entries",
        ),
        (
            inner_removed::run,
            false,
            false,
            "does not fit Cell[0]: 2 bytes left over after its last field, so a type in it had more fields; ",
        ),
        (argument_changed::run, false, false, ""),
        (
            argument_changed::run,
            true,
            false,
            "does not fit Cell[1]: argument 2 of a message to `guarded`: the bytes end too early; ",
        ),
        (
            argument_changed::run,
            false,
            true,
            "does not fit Cell: argument 2 of a message to `guarded`: the bytes end too early; ",
        ),
    ];
    for (restart, waits, early, sentence) in cases {
        let dir = tempfile::tempdir().expect("a folder");
        saved::run(saves(Config::simulated(2, 7), dir.path(), None), waits, early).expect("the run exits");
        for config in [Config::simulated(2, 1), Config::threads(1)] {
            match restart(restarts_on(config, dir.path()), waits, early) {
                Ok(_) => assert_eq!(sentence, "", "it restarts"),
                Err(error) => {
                    let error = error.to_string();
                    assert!(
                        !sentence.is_empty() && error.contains(sentence) && error.contains(remedy),
                        "{sentence}: {error}"
                    );
                }
            }
        }
    }
}
