//! Nested control flow with waits does what plain Rust does: the same code is compiled as a flow and as a method that takes what
//! it waits for from a list.

use crate::common::*;
use equipoise::prelude::*;

/// The number of messages that each element receives.
const VALUES: u32 = 240;

/// The value of a number, for the element with this seed.
fn value(seed: u64, number: u32) -> u64 {
    mixed(seed ^ mixed(u64::from(number))) >> 8
}

/// What plain methods use in place of the runtime.
mod plain {
    use std::marker::PhantomData;

    pub struct Cx<T>(pub PhantomData<T>);

    impl<T> Cx<T> {
        pub fn migrate(&self, _: equipoise::Pe) {}

        pub fn pes(&self) -> usize {
            1
        }
    }

    macro_rules! when {
        (value($number:ident, $value:ident) if $same:ident == $next:expr => $body:expr) => {{
            let $number: u32 = $next;
            let $value: u64 = super::super::value(super::SEED.get(), $number);
            $body
        }};
    }
    pub(super) use when;
}

/// Compiles a flow in two ways, and tests that the results agree.
macro_rules! programs {
    ($($name:ident: $chare:ident { $($life:tt)* })*) => { $(
        mod $name {
            mod plainly {
                use super::super::plain::{Cx, when};
                use equipoise::Pe;

                pub struct Plain {
                    pub log: u64,
                    pub next: u32,
                }

                #[allow(unused_labels)]
                impl Plain {
                    pub $($life)*

                    fn took(&mut self, value: u64) {
                        self.next += 1;
                        self.note(value);
                    }

                    fn note(&mut self, word: u64) {
                        self.log = crate::common::mixed(self.log ^ word);
                    }
                }
            }

            use super::*;

            thread_local! {
                static SEED: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
            }

            #[derive(Serialize, Deserialize)]
            struct $chare {
                log: u64,
                next: u32,
                done: Exit<Vec<u64>>,
            }

            #[chare(index = [i32; 1])]
            impl $chare {
                #[flow]
                $($life)*

                #[entry]
                fn value(number: u32, value: u64);

                #[entry]
                fn report(&mut self, cx: &Cx<Self>) {
                    cx.peer([0]).contribute().logs(vec![self.log]);
                }

                #[entry(reduce = equipoise::reduce::concat)]
                fn logs(&mut self, cx: &Cx<Self>, logs: Vec<u64>) {
                    self.done.exit(cx, logs);
                }
            }

            impl $chare {
                fn took(&mut self, value: u64) {
                    self.next += 1;
                    self.note(value);
                }

                fn note(&mut self, word: u64) {
                    self.log = mixed(self.log ^ word);
                }
            }

            #[test]
            pub fn does_what_plain_rust_does() {
                everywhere(64, 16, |config| {
                    let seed = config.seed;
                    let report = equipoise::run(config, move |pe, done| {
                        let array = pe.array([4], |_| $chare { log: 0, next: 0, done });
                        pe.main(move |pe| {
                            let mut rng = Rng::new(seed, 1);
                            for at in 0..4 {
                                let mut numbers: Vec<u32> = (0..VALUES).collect();
                                while !numbers.is_empty() {
                                    let number = numbers.swap_remove(rng.sample(numbers.len()));
                                    let value = value(seed * 4 + at as u64, number);
                                    array.at(pe, [at]).value(number, value);
                                }
                            }
                            array.all(pe).life(5);
                            array.all(pe).at_quiescence().report();
                        });
                    });
                    let expected: Vec<u64> = (0..4)
                        .map(|at| {
                            SEED.set(seed * 4 + at);
                            let mut plain = plainly::Plain { log: 0, next: 0 };
                            plain.life(&super::plain::Cx(std::marker::PhantomData), 5);
                            plain.log
                        })
                        .collect();
                    assert_eq!(report.result, expected);
                });
            }
        }
    )*

        #[test]
        #[ignore = "slow"]
        fn all_of_it_at_full_size() {
            at_full_size(&[$($name::does_what_plain_rust_does),*]);
        }
    };
}

programs! {
    loops_with_labels: Labels {
        fn life(&mut self, cx: &Cx<Self>, n: u32) {
            let mut total: u64 = u64::from(n);
            'outer: for i in 0u32..n {
                let mut j: u32 = 0;
                while j < 4 {
                    j += 1;
                    when!(value(k, v) if k == self.next => {
                        self.took(v);
                        total = total.wrapping_add(v);
                        if v % 17 == 0 {
                            continue;
                        }
                    });
                    if total % 5 == 0 {
                        continue 'outer;
                    }
                    if total % 7 == 1 {
                        break;
                    }
                }
                if total % 11 == 3 {
                    self.note(99);
                    break 'outer;
                } else if total % 2 == 0 {
                    let x: u64 = when!(value(k, v) if k == self.next => v % 9);
                    self.took(x);
                    'inner: for a in 1u64..=x {
                        if a == 7 {
                            continue;
                        }
                        for b in (0..a as i8).rev() {
                            if b == 6 {
                                break;
                            }
                            if b == 5 && total % 3 == 0 {
                                continue 'inner;
                            }
                            self.note(b as u64);
                        }
                        when!(value(k, v) if k == self.next => self.took(v ^ a));
                        if a > 5 {
                            break;
                        }
                    }
                }
                self.note(u64::from(i) ^ u64::from(j));
                cx.migrate(Pe(j % cx.pes() as u32));
            }
            self.note(total);
        }
    }

    matches_and_conditions: Matches {
        fn life(&mut self, cx: &Cx<Self>, n: u32) {
            let mut stack: Vec<u64> = vec![2, 1, u64::from(n)];
            while let Some(top) = stack.pop() {
                let top: u64 = top;
                if top == 0 {
                    continue;
                }
                loop {
                    if self.next > 200 {
                        return;
                    }
                    let (a, b) = (top % 3, top / 3);
                    self.note(a + b);
                    when!(value(k, v) if k == self.next => {
                        self.took(v);
                        if v % 3 == 0 {
                            break;
                        }
                        if stack.len() < 6 {
                            stack.push(top - 1);
                        }
                    });
                    if let Some(last) = stack.last() {
                        self.note(*last);
                        when!(value(k, v) if k == self.next => self.took(v));
                    } else {
                        self.note(7);
                    }
                    let kind: u64 = when!(value(k, v) if k == self.next => v % 5);
                    self.took(kind);
                    match kind {
                        0 => when!(value(k, v) if k == self.next => self.took(v)),
                        1 | 2 if top > 1 => {
                            {
                                let top: u64 = 5;
                                self.note(top);
                            }
                            cx.migrate(Pe(self.next % cx.pes() as u32));
                        }
                        3 => break,
                        other => {
                            let other: u64 = other;
                            for _ in 0u32..2 {
                                when!(value(k, v) if k == self.next => self.took(v ^ other));
                                if other == 4 {
                                    break;
                                }
                            }
                        }
                    }
                    self.note(stack.len() as u64);
                }
                match stack.first() {
                    Some(first) if first % 2 == 0 => self.note(*first),
                    Some(_) => {}
                    None => return,
                }
            }
            self.note(77);
        }
    }

    blocks_and_early_ends: Blocks {
        fn life(&mut self, cx: &Cx<Self>, n: u32) {
            const STEPS: u8 = 3;
            let mut text: String = format!("{n}");
            for step in 0u8..=STEPS {
                {
                    let mut words: Vec<u64> = Vec::new();
                    while words.len() < 3 {
                        when!(value(k, v) if k == self.next => {
                            self.took(v);
                            words.push(v);
                            if v % 4 == 0 {
                                when!(value(k, w) if k == self.next => {
                                    self.took(w);
                                    if w % 13 == 0 {
                                        return;
                                    }
                                    words.push(v ^ w);
                                });
                            }
                        });
                        let Some(first) = words.first() else { break };
                        if *first % 6 == 5 {
                            break;
                        }
                    }
                    words.sort();
                    for word in words {
                        self.note(word);
                        if word % 9 == 0 {
                            break;
                        }
                    }
                }
                text.push_str(&format!("/{step}"));
                cx.migrate(Pe(u32::from(step) % cx.pes() as u32));
            }
            text.bytes().for_each(|byte| self.note(byte.into()));
        }
    }
}
