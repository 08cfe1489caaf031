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

/// A build of a program with a flow.
macro_rules! flow_build {
    ($build:ident { $($flow:tt)* }) => {
        mod $build {
            use super::*;

            #[derive(Serialize, Deserialize)]
            struct Walker {
                total: u64,
                done: Exit<()>,
            }

            #[chare(index = [i32; 1])]
            impl Walker {
                #[flow]
                $($flow)*

                #[entry]
                fn one(a: u64);

                #[entry]
                fn two(b: u64);

                #[entry]
                fn finish(&mut self, cx: &Cx<Self>) {
                    self.done.exit(cx, ());
                }
            }

            /// Saves itself while the flow of one element waits, and exits.
            pub fn run(config: Config) -> Result<Report<()>, RunError> {
                try_run(config, move |pe, done| {
                    let walkers = pe.array([2], |_| Walker { total: 0, done });
                    pe.main(move |pe| {
                        walkers.at(pe, [1]).life();
                        walkers.at(pe, [0]).at_checkpoint().finish();
                    });
                })
            }
        }
    };
}

flow_build!(two_waits {
    fn life(&mut self, cx: &Cx<Self>) {
        let mut sum: u64 = cx.pes() as u64;
        when!(one(a) => sum += a);
        when!(two(b) => sum += b);
        self.total = sum;
    }
});
flow_build!(two_other_waits {
    fn life(&mut self, cx: &Cx<Self>) {
        // Between waits, all may change.
        let mut sum: u64 = 10;
        when!(one(a) => sum += 2 * a);
        sum += cx.pes() as u64;
        when!(two(b) => sum += b);
        self.total = sum;
    }
});
flow_build!(swapped_waits {
    fn life(&mut self, cx: &Cx<Self>) {
        let mut sum: u64 = cx.pes() as u64;
        when!(two(b) => sum += b);
        when!(one(a) => sum += a);
        self.total = sum;
    }
});
flow_build!(another_variable {
    fn life(&mut self, cx: &Cx<Self>) {
        let mut product: u64 = cx.pes() as u64;
        when!(one(a) => product *= a);
        when!(two(b) => product *= b);
        self.total = product;
    }
});
flow_build!(another_type {
    fn life(&mut self, cx: &Cx<Self>) {
        let mut sum: bool = cx.pes() > 9;
        when!(one(a) => sum |= a > 9);
        when!(two(b) => sum |= b > 9);
        self.total = u64::from(sum);
    }
});
flow_build!(two_reductions {
    fn life(&mut self, cx: &Cx<Self>) {
        let low: u64 = reduce!(cx, u64::min, 1);
        let high: u64 = reduce!(cx, u64::max, 1);
        self.total = low + high;
        select! { one(a) => self.total += a, two(b) => self.total += b }
    }
});
flow_build!(swapped_reductions {
    fn life(&mut self, cx: &Cx<Self>) {
        let high: u64 = reduce!(cx, u64::max, 1);
        let low: u64 = reduce!(cx, u64::min, 1);
        self.total = low + high;
        select! { one(a) => self.total += a, two(b) => self.total += b }
    }
});

/// Restarts what `saved` saved with another build; returns the error, or nothing.
fn restarted(
    saved: fn(Config) -> Result<Report<()>, RunError>,
    other: fn(Config) -> Result<Report<()>, RunError>,
) -> String {
    let dir = tempfile::tempdir().expect("a folder");
    saved(saves(Config::simulated(2, 7), dir.path(), None)).expect("the run exits");
    let restart = other(restarts_on(Config::simulated(1, 1), dir.path()));
    restart.map_or_else(|error| error.to_string(), |_| String::new())
}

#[test]
fn a_flow_with_other_waits_is_refused() {
    assert_eq!(restarted(two_waits::run, two_waits::run), "");
    assert_eq!(restarted(two_waits::run, two_other_waits::run), "");
    assert_eq!(restarted(two_reductions::run, two_reductions::run), "");
    for (saved, other, sentence) in [
        (
            two_waits::run as fn(Config) -> _,
            swapped_waits::run as fn(Config) -> _,
            "has elements of Walker whose flow has `wait 1 for one with a that keeps sum`, where this build has `wait 1 for two \
             with b that keeps sum`; give the flow the waits and variables that it had, or restart with the build that saved it",
        ),
        (two_waits::run, another_variable::run, "`wait 1 for one with a that keeps product`"),
        (
            two_waits::run,
            another_type::run,
            "does not fit Walker[1]: variable 1 of its flow in `wait 1 for one with a that keeps sum`: ",
        ),
        (two_reductions::run, swapped_reductions::run, "`wait 1 for life_reduction_2 with high`"),
    ] {
        let error = restarted(saved, other);
        assert!(error.contains(sentence), "{error}");
    }
}

/// A method of a solver.
trait Method: Send + 'static {}

#[derive(Serialize, Deserialize)]
struct Solver<M> {
    method: std::marker::PhantomData<M>,
    done: Exit<()>,
}

#[chare(index = [i32; 1])]
impl<M: Method> Solver<M> {
    #[entry]
    fn finish(&mut self, cx: &Cx<Self>) {
        self.done.exit(cx, ());
    }
}

struct Jacobi;
struct Seidel;
impl Method for Jacobi {}
impl Method for Seidel {}

fn solve<M: Method>(config: Config, is_bound: bool) -> Result<Report<()>, RunError> {
    try_run(config, move |pe, done| {
        let make = move |_| Solver::<M> { method: std::marker::PhantomData, done };
        let first = pe.array([2], make);
        let _ = if is_bound { pe.array_bound(&first, make) } else { pe.array([2], make) };
        pe.main(move |pe| first.at(pe, [0]).at_checkpoint().finish());
    })
}

#[test]
fn other_parameters_and_bindings_are_refused() {
    let plain = |config| solve::<Jacobi>(config, false);
    assert_eq!(restarted(plain, plain), "");
    assert!(restarted(plain, |config| solve::<Seidel>(config, false)).contains(
        "has Solver<Jacobi> of shape [2] with the entries finish as array 1, and the setup makes Solver<Seidel> of shape [2] with \
         the entries finish; "
    ));
    assert!(restarted(plain, |config| solve::<Jacobi>(config, true)).contains(
        "as array 2, and the setup makes Solver<Jacobi> of shape [2] bound to array 1 with the entries finish; "
    ));
}
