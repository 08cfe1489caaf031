//! Generators of programs: those of the experiments of De Petris and Perego (1994, sections 4 to 6).
//!
//! A spec is the name of a generator, a colon, and `key=value` pairs separated by commas; missing keys have defaults.
//! Programs whose originals are not available (the traces of ParaGraph, the graphs of Lee and Aggarwal) are synthesised
//! from their descriptions in the papers. Flits are bytes.

use equipoise_model::descriptor::{Descriptor, find, split};
use equipoise_model::params::{Param, Params};
use equipoise_model::random::shuffle;

use super::{Instruction, MAX_AMOUNT, MAX_PROCESSES, Process, Program, Statement};

mod collective;
mod paragraph;
mod random;
mod regular;

/// A generator of programs; its item makes the program of the keys of a spec.
pub type Generator = Descriptor<fn(&mut Keys) -> Result<Program, String>>;

/// All generators, in the order of the help.
pub const ALL: &[&Generator] = &[
    &random::RANDOM,
    &random::PHASED,
    &regular::RING,
    &regular::MESH,
    &collective::BUTTERFLY,
    &collective::TREE,
    &collective::BROADCAST,
    &collective::ELIMINATION,
    &paragraph::CHOL,
    &paragraph::FFT,
    &paragraph::FLOPS,
    &paragraph::MATRIX,
    &paragraph::SORT,
    &paragraph::SPARSE,
];

const N: Param = Param { key: "n", default: "16", help: "processes" };
const FLITS: Param = Param { key: "flits", default: "64", help: "length of a message in flits" };
const ITERATIONS: Param = Param { key: "iterations", default: "10", help: "number of iterations" };
const WORK: Param = Param { key: "work", default: "512", help: "cycles of each computation" };
const SEED: Param = Param { key: "seed", default: "0", help: "seed of the random number generator" };

/// The keys of a spec, taken one by one.
pub struct Keys<'a>(&'a mut Params);

impl Keys<'_> {
    fn number(&mut self, key: &str, least: u64, most: u64) -> Result<u64, String> {
        let number: u64 = self.0.take(key)?;
        match (least..=most).contains(&number) {
            true => Ok(number),
            false => Err(format!("{key}={number}: expected {least} to {most}")),
        }
    }

    fn ratio(&mut self, key: &str, most: f64) -> Result<f64, String> {
        let number: f64 = self.0.take(key)?;
        match (0.0..=most).contains(&number) {
            true => Ok(number),
            false => Err(format!("{key}={number}: expected a number from 0 to {most}")),
        }
    }

    fn processes(&mut self, least: usize) -> Result<usize, String> {
        Ok(self.number("n", least as u64, MAX_PROCESSES as u64)? as usize)
    }

    /// The number of processes, and the dimension of the hypercube with this number of nodes.
    fn cube(&mut self) -> Result<(usize, u32), String> {
        let n = self.processes(2)?;
        match n.is_power_of_two() {
            true => Ok((n, n.ilog2())),
            false => Err(format!("n={n}: expected a power of two")),
        }
    }

    fn flits(&mut self) -> Result<u64, String> {
        self.number("flits", 1, 1 << 30)
    }

    fn work(&mut self) -> Result<u64, String> {
        self.number("work", 0, MAX_AMOUNT)
    }

    fn iterations(&mut self) -> Result<u64, String> {
        self.number("iterations", 1, 1 << 20)
    }

    fn seed(&mut self) -> Result<u64, String> {
        self.number("seed", 0, u64::MAX)
    }

    fn sizes(&mut self, key: &str) -> Result<Vec<usize>, String> {
        let text: String = self.0.take(key)?;
        let sizes: Option<Vec<usize>> = text.split('x').map(|size| size.parse().ok()).collect();
        let count = |sizes: &Vec<usize>| sizes.iter().try_fold(1usize, |n, &size| n.checked_mul(size));
        let fits = |sizes: &Vec<usize>| count(sizes).is_some_and(|n| (1..=MAX_PROCESSES).contains(&n));
        sizes.filter(fits).ok_or_else(|| {
            format!(
                "{key}={text}: expected sizes such as 16x16 with at most {MAX_PROCESSES} processes in all"
            )
        })
    }
}

/// The program of the generator `name` with the keys `rest`.
pub(super) fn make(name: &str, rest: &str) -> Result<Program, String> {
    let generator = find("generator and no file", name, ALL.iter().copied())?;
    let program: Program = Params::parse_with(generator.name, generator.params, rest, |params| {
        (generator.item)(&mut Keys(params))
    })?;
    if let Some(amount) = program.processes.iter().map(|process| largest(&process.body)).max()
        && amount > MAX_AMOUNT
    {
        return Err(format!(
            "an instruction would have {amount} cycles or flits, more than the maximum of {MAX_AMOUNT}; ask for less \
             work or shorter messages"
        ));
    }
    program.check().map_err(|error| error.to_string())?;
    Ok(program)
}

/// Whether there is a generator with this name.
pub fn exists(name: &str) -> bool {
    ALL.iter().any(|generator| generator.name == name)
}

/// The maximum of the cycles and flits of all instructions.
fn largest(body: &[Statement]) -> u64 {
    let of = |statement: &Statement| match &statement.instruction {
        Instruction::IntOp(amount)
        | Instruction::Send { flits: amount, .. }
        | Instruction::Receive { flits: amount, .. } => *amount,
        Instruction::Repeat { body, .. } => largest(body),
    };
    body.iter().map(of).max().unwrap_or(0)
}

/// The maximum number of instructions of a generated program, repetitions counted once.
const MAX_INSTRUCTIONS: f64 = (1u64 << 22) as f64;

/// Refuses a program of too many instructions; `keys` names the keys that determine their number.
fn check_instructions(instructions: f64, keys: &str) -> Result<(), String> {
    match instructions <= MAX_INSTRUCTIONS {
        true => Ok(()),
        false => Err(format!(
            "{keys}: the program would have {instructions:.0} instructions, more than the maximum of {MAX_INSTRUCTIONS}; \
             choose smaller values"
        )),
    }
}

/// The program of a spec such as `ring:n=16`, for specs that are fixed in code.
///
/// # Panics
/// When the spec is invalid.
pub fn known(spec: &str) -> Program {
    let (name, rest) = split(spec);
    make(name, rest).unwrap_or_else(|reason| panic!("`{spec}`: {reason}"))
}

/// Help for all generators.
pub fn help() -> String {
    ALL.iter().map(|generator| generator.entry(&format!("{}:key=value,key=value", generator.name))).collect()
}

/// The same program with its processes renumbered: process `i` becomes `number_of[i]`.
///
/// # Panics
/// When `number_of` is not a permutation of the processes.
pub fn renumbered(program: &Program, number_of: &[u32]) -> Program {
    assert_eq!(program.tasks(), number_of.len(), "one number per process");
    let mut processes = vec![None; program.tasks()];
    for (process, &number) in program.processes.iter().zip(number_of) {
        let mut process = process.clone();
        rename(&mut process.body, number_of);
        processes[number as usize] = Some(process);
    }
    Program::new(processes.into_iter().map(|process| process.expect("a permutation")).collect())
}

fn rename(body: &mut [Statement], number_of: &[u32]) {
    for statement in body {
        match &mut statement.instruction {
            Instruction::Send { to: other, .. } | Instruction::Receive { from: other, .. } => {
                *other = number_of[*other as usize];
            }
            Instruction::Repeat { body, .. } => rename(body, number_of),
            Instruction::IntOp(_) => {}
        }
    }
}

/// A random permutation of the numbers below `count`.
pub fn permutation(count: usize, seed: u64) -> Vec<u32> {
    let mut numbers: Vec<u32> = (0..count as u32).collect();
    shuffle(&mut equipoise_model::random::generator(seed, 0x7e47), &mut numbers);
    numbers
}

/// The bodies of all processes of a program under construction.
struct Bodies(Vec<Vec<Statement>>);

impl Bodies {
    fn new(count: usize) -> Self {
        Bodies(vec![Vec::new(); count])
    }

    fn work(&mut self, process: usize, cycles: u64) {
        if cycles > 0 {
            self.0[process].push(Instruction::IntOp(cycles).without_line());
        }
    }

    fn send(&mut self, from: usize, to: usize, flits: u64) {
        self.0[from].push(Instruction::Send { to: to as u32, flits }.without_line());
    }

    fn receive(&mut self, to: usize, from: usize, flits: u64) {
        self.0[to].push(Instruction::Receive { from: from as u32, flits }.without_line());
    }

    /// All sends of `pairs` (sender, receiver, flits), and then all receives, both in the order of `pairs`.
    fn exchange(&mut self, pairs: &[(usize, usize, u64)]) {
        for &(from, to, flits) in pairs {
            self.send(from, to, flits);
        }
        for &(from, to, flits) in pairs {
            self.receive(to, from, flits);
        }
    }

    /// The program in which every process executes its body `iterations` times.
    fn repeated(self, iterations: u64) -> Program {
        let body = |body: Vec<Statement>| match (iterations, body.is_empty()) {
            (1, _) | (_, true) => body,
            (times, false) => vec![Instruction::Repeat { times, body }.without_line()],
        };
        let process = |it| Process { memory_bytes: None, body: body(it), line: 0 };
        Program::new(self.0.into_iter().map(process).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::super::{load, parse};
    use super::*;

    #[test]
    fn every_generator_makes_a_program_that_terminates() {
        for generator in ALL {
            let program = make(generator.name, "").expect(generator.name);
            assert!(program.tasks() >= 2, "{}", generator.name);
            assert_eq!(load(generator.name).expect("with its defaults"), program, "{}", generator.name);
            assert_eq!(parse(&program.text()), Ok(program), "{}", generator.name);
            assert!(help().contains(&format!("{}:", generator.name)));
        }
    }

    #[test]
    fn errors_name_the_problem_of_a_spec() {
        for (name, rest, expected) in [
            ("rong", "n=4", "did you mean `ring`?"),
            ("ring", "n=1", "n=1: expected 2 to 4096"),
            ("ring", "n=x", "not understood"),
            ("ring", "size=4", "ring has no parameter `size`"),
            ("butterfly", "n=6", "expected a power of two"),
            ("mesh", "sizes=4y4", "expected sizes such as 16x16"),
            ("ring", "flits=0", "flits=0: expected 1 to"),
            ("phased", "n=4096,phases=1000,degree=64", "the program would have 528384000 instructions"),
            ("elimination", "n=4096", "the program would have 25165824 instructions"),
            (
                "random",
                "n=4096,degree=64,flits=1073741824,ratio=1e6",
                "ask for less work or shorter messages",
            ),
            ("flops", "work=1099511627776", "ask for less work or shorter messages"),
        ] {
            let error = make(name, rest).expect_err(expected);
            assert!(error.contains(expected), "{error}");
        }
    }

    #[test]
    fn renumbering_back_gives_the_original_program() {
        let program = known("random:n=9,degree=3,iterations=2");
        let order = permutation(9, 3);
        let mut back = vec![0; 9];
        order.iter().zip(0..).for_each(|(&number, i)| back[number as usize] = i);
        let there = renumbered(&program, &order);
        assert_ne!(there, program);
        assert_eq!(there.check(), Ok(()));
        assert_eq!(renumbered(&there, &back), program);
    }
}
