//! The language as text: reading it, with the line of what is wrong, and writing it.

use std::fmt::Write as _;
use std::str::SplitAsciiWhitespace;

use super::{Instruction, MAX_AMOUNT, MAX_PROCESSES, Process, Program, Statement};
use crate::spelling::{nearest, suggestion};

/// What is wrong with a line, counted from 1, and a sentence.
type Fault = (usize, String);

/// The words that lines begin with.
const WORDS: [&str; 7] = ["PROCESS", "INT_OP", "SEND", "RECEIVE", "REPEAT", "END", "STOP"];

/// How deep repetitions may lie in each other.
const MAX_DEPTH: usize = 16;

/// The program with this text. Empty lines and what follows a `#` do not count.
///
/// # Errors
/// The number of the first line that is wrong, from 1, and a sentence that says what.
pub fn parse(text: &str) -> Result<Program, (usize, String)> {
    let mut parser = Parser::default();
    let mut last = 1;
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.split('#').next().unwrap_or_default();
        let mut words = line.split_ascii_whitespace();
        if let Some(word) = words.next() {
            last = number;
            parser.line(word, Line { number, words })?;
        }
    }
    parser.finish(last)
}

/// What follows the first word of a line.
struct Line<'a> {
    number: usize,
    words: SplitAsciiWhitespace<'a>,
}

impl Line<'_> {
    fn number(&mut self, what: &str, most: u64) -> Result<u64, Fault> {
        let Some(word) = self.words.next() else {
            return Err((self.number, format!("expected {what}, found the end of the line")));
        };
        match word.parse() {
            Ok(number) if number <= most => Ok(number),
            Ok(number) => Err((self.number, format!("expected {what} of at most {most}, found {number}"))),
            Err(_) if word.bytes().all(|byte| byte.is_ascii_digit()) => {
                Err((self.number, format!("expected {what} of at most {most}, found {word}")))
            }
            Err(_) => Err((self.number, format!("expected {what}, a whole number, found `{word}`"))),
        }
    }

    fn process(&mut self, what: &str) -> Result<u32, Fault> {
        Ok(self.number(what, MAX_PROCESSES as u64 - 1)? as u32)
    }

    fn end(&mut self) -> Result<(), Fault> {
        match self.words.next() {
            None => Ok(()),
            Some(word) => Err((self.number, format!("expected the end of the line, found `{word}`"))),
        }
    }
}

/// A repetition that is not over: its line, how often, and what so far.
type Open = (u32, u64, Vec<Statement>);

#[derive(Default)]
struct Parser {
    /// The processes that are described, by number.
    processes: Vec<Option<Process>>,
    /// The process that is being described, and its number.
    current: Option<(u32, Process)>,
    open: Vec<Open>,
    /// Every send and receive: the process it names, and its line.
    named: Vec<(u32, usize)>,
}

impl Parser {
    fn line(&mut self, word: &str, mut line: Line) -> Result<(), Fault> {
        let number = line.number;
        let fault = |reason: String| Err((number, reason));
        let upper = word.to_ascii_uppercase();
        if !WORDS.contains(&upper.as_str()) {
            let (meant, known) = (suggestion(&nearest(&upper, &WORDS)), WORDS.join(", "));
            return fault(format!("there is no instruction `{word}`{meant}; known are {known}"));
        }
        if upper == "PROCESS" {
            if let Some((open, _)) = &self.current {
                return fault(format!("process {open} is not over; end it with STOP"));
            }
            return self.begin(line);
        }
        let Some((process, _)) = self.current else {
            return fault(format!("{upper} is in no process; begin one with PROCESS and its number"));
        };
        let instruction = match upper.as_str() {
            "INT_OP" => Instruction::IntOp(line.number("a number of cycles", MAX_AMOUNT)?),
            "SEND" | "RECEIVE" => {
                let other = line.process("the number of the other process")?;
                if other == process {
                    return fault(format!("process {process} names itself; it needs no message for that"));
                }
                let flits = line.number("a number of flits", MAX_AMOUNT)?;
                if flits == 0 {
                    return fault("a message has at least 1 flit".into());
                }
                self.named.push((other, number));
                match upper.as_str() {
                    "SEND" => Instruction::Send { to: other, flits },
                    _ => Instruction::Receive { from: other, flits },
                }
            }
            "REPEAT" => {
                let times = line.number("how often", u64::from(u32::MAX))?;
                line.end()?;
                if self.open.len() == MAX_DEPTH {
                    return fault(format!("at most {MAX_DEPTH} repetitions lie in each other"));
                }
                self.open.push((number as u32, times, Vec::new()));
                return Ok(());
            }
            "END" => {
                line.end()?;
                let Some((begun, times, body)) = self.open.pop() else {
                    return fault("END ends nothing; take it out, or begin with REPEAT".into());
                };
                self.body().push(Statement { line: begun, instruction: Instruction::Repeat { times, body } });
                return Ok(());
            }
            _ => {
                line.end()?;
                if let Some((begun, ..)) = self.open.last() {
                    return fault(format!("the REPEAT of line {begun} is not over; end it with END"));
                }
                if let Some((id, process)) = self.current.take() {
                    self.processes[id as usize] = Some(process);
                }
                return Ok(());
            }
        };
        line.end()?;
        self.body().push(Statement { line: number as u32, instruction });
        Ok(())
    }

    /// What instructions are appended to.
    fn body(&mut self) -> &mut Vec<Statement> {
        match (self.open.last_mut(), &mut self.current) {
            (Some((.., body)), _) => body,
            (None, Some((_, process))) => &mut process.body,
            (None, None) => unreachable!("an instruction is in a process"),
        }
    }

    fn begin(&mut self, mut line: Line) -> Result<(), Fault> {
        let id = line.process("the number of the process")?;
        let mut memory_bytes = None;
        if let Some(word) = line.words.next() {
            if !word.eq_ignore_ascii_case("MEMORY") {
                let reason = format!("expected MEMORY and a number of bytes, or nothing, found `{word}`");
                return Err((line.number, reason));
            }
            memory_bytes = Some(line.number("a number of bytes", u64::MAX)?);
        }
        line.end()?;
        let at = id as usize;
        if self.processes.len() <= at {
            self.processes.resize(at + 1, None);
        }
        if let Some(Process { line: earlier, .. }) = self.processes[at] {
            return Err((line.number, format!("process {id} is described in line {earlier} already")));
        }
        self.current = Some((id, Process { memory_bytes, body: Vec::new(), line: line.number as u32 }));
        Ok(())
    }

    fn finish(self, last: usize) -> Result<Program, Fault> {
        if let Some((begun, ..)) = self.open.last() {
            return Err((last, format!("the REPEAT of line {begun} is not over; end it with END")));
        }
        if let Some((open, _)) = self.current {
            return Err((last, format!("process {open} is not over; end it with STOP")));
        }
        let count = self.processes.len();
        if count == 0 {
            return Err((last, "there is no process; begin one with PROCESS and its number".into()));
        }
        if let Some(gap) = self.processes.iter().position(Option::is_none) {
            return Err((last, format!("there is no process {gap}; number them from 0 without gaps")));
        }
        if let Some((other, line)) = self.named.into_iter().find(|&(other, _)| other as usize >= count) {
            return Err((line, format!("there is no process {other}; the last is {}", count - 1)));
        }
        Ok(Program { processes: self.processes.into_iter().flatten().collect() })
    }
}

impl Program {
    /// Its text, as [`parse`] reads it.
    pub fn text(&self) -> String {
        let mut text = String::new();
        for (id, process) in self.processes.iter().enumerate() {
            let memory = process.memory_bytes.map_or_else(String::new, |bytes| format!(" MEMORY {bytes}"));
            let _ = writeln!(text, "PROCESS {id}{memory}");
            write(&process.body, 1, &mut text);
            text.push_str("STOP\n");
        }
        text
    }
}

fn write(body: &[Statement], depth: usize, text: &mut String) {
    let indent = 2 * depth;
    for statement in body {
        let _ = match &statement.instruction {
            Instruction::IntOp(cycles) => writeln!(text, "{:indent$}INT_OP {cycles}", ""),
            Instruction::Send { to, flits } => writeln!(text, "{:indent$}SEND {to} {flits}", ""),
            Instruction::Receive { from, flits } => writeln!(text, "{:indent$}RECEIVE {from} {flits}", ""),
            Instruction::Repeat { times, body } => {
                let _ = writeln!(text, "{:indent$}REPEAT {times}", "");
                write(body, depth + 1, text);
                writeln!(text, "{:indent$}END", "")
            }
        };
    }
}

/// Gives every statement the line it has in [`Program::text`].
pub(super) fn number(program: &mut Program) {
    let mut line = 1;
    for process in &mut program.processes {
        process.line = line;
        line += 1;
        number_body(&mut process.body, &mut line);
        line += 1;
    }
}

fn number_body(body: &mut [Statement], line: &mut u32) {
    for statement in body {
        statement.line = *line;
        *line += 1;
        if let Instruction::Repeat { body, .. } = &mut statement.instruction {
            number_body(body, line);
            *line += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::testing::mutated;

    const EXAMPLE: &str = "# An example.\nPROCESS 1 MEMORY 77\n REPEAT 3 # times\nreceive 0 4\nEND\nSTOP\n\nPROCESS 0\nINT_OP 5\nREPEAT 3\nSEND 1 4\nEND\nSTOP\n";

    #[test]
    fn a_text_is_read_with_the_lines_of_its_instructions() {
        let program = parse(EXAMPLE).expect("a program");
        let [first, second] = program.processes.as_slice() else { panic!("two processes") };
        assert_eq!((first.line, first.memory_bytes, second.memory_bytes), (8, None, Some(77)));
        let send = Statement { line: 11, instruction: Instruction::Send { to: 1, flits: 4 } };
        let repeat = Instruction::Repeat { times: 3, body: vec![send] };
        let expected = [
            Statement { line: 9, instruction: Instruction::IntOp(5) },
            Statement { line: 10, instruction: repeat },
        ];
        assert_eq!(first.body, expected);
        let text = "PROCESS 0\n  INT_OP 5\n  REPEAT 3\n    SEND 1 4\n  END\nSTOP\n\
                    PROCESS 1 MEMORY 77\n  REPEAT 3\n    RECEIVE 0 4\n  END\nSTOP\n";
        assert_eq!(program.text(), text);
    }

    #[test]
    fn what_is_wrong_with_a_text_is_said_with_its_line() {
        for (text, line, expected) in [
            ("", 1, "there is no process"),
            ("\nINT_OP 1\n", 2, "INT_OP is in no process"),
            (
                "PROCESS 0\nSEND 1 99999999999999999999999\nSTOP",
                2,
                "expected a number of flits of at most 1099511627776, found 99999999999999999999999",
            ),
            ("PROCESS 0\nINT_OPP 1\nSTOP", 2, "there is no instruction `INT_OPP` (did you mean `INT_OP`?)"),
            ("PROCESS 0\nPROCESS 1\n", 2, "process 0 is not over"),
            ("PROCESS 0\nINT_OP 1\n\n", 2, "process 0 is not over; end it with STOP"),
            ("PROCESS 0\nINT_OP\nSTOP", 2, "expected a number of cycles, found the end of the line"),
            ("PROCESS 0\nINT_OP 1 2\nSTOP", 2, "expected the end of the line, found `2`"),
            ("PROCESS 0\nINT_OP -1\nSTOP", 2, "a whole number, found `-1`"),
            ("PROCESS 0\nINT_OP 9999999999999\nSTOP", 2, "of at most 1099511627776"),
            ("PROCESS 0\nSEND 0 1\nSTOP", 2, "process 0 names itself"),
            ("PROCESS 0\nSEND 1 0\nSTOP", 2, "at least 1 flit"),
            ("PROCESS 0\nSEND 1 1\nSTOP", 2, "there is no process 1; the last is 0"),
            ("PROCESS 0\nEND\nSTOP", 2, "END ends nothing"),
            ("PROCESS 0\nREPEAT 2\nSTOP", 3, "the REPEAT of line 2 is not over"),
            ("PROCESS 0\nSTOP\nPROCESS 0\nSTOP", 3, "process 0 is described in line 1 already"),
            ("PROCESS 1\nSTOP\n", 2, "there is no process 0"),
            ("PROCESS 0 MEM 1\nSTOP\n", 1, "expected MEMORY"),
            ("PROCESS 99999999\nSTOP\n", 1, "of at most 4095"),
        ] {
            let (at, reason) = parse(text).expect_err(expected);
            assert!(at == line && reason.contains(expected), "line {at}: {reason}");
        }
    }

    fn body(depth: u32) -> BoxedStrategy<Vec<Statement>> {
        let plain = prop_oneof![
            (0..99u64).prop_map(Instruction::IntOp),
            (1..5u64).prop_map(|flits| Instruction::Send { to: 9, flits }),
            (1..5u64).prop_map(|flits| Instruction::Receive { from: 9, flits }),
        ]
        .boxed();
        let one = if depth == 0 {
            plain
        } else {
            let repeat = (0..4u64, body(depth - 1));
            prop_oneof![plain, repeat.prop_map(|(times, body)| Instruction::Repeat { times, body })].boxed()
        };
        prop::collection::vec(one.prop_map(Instruction::anywhere), 0..5).boxed()
    }

    proptest! {
        #[test]
        fn what_is_written_reads_back_as_the_same_program(
            bodies in prop::collection::vec((body(2), prop::option::of(any::<u64>())), 1..5),
        ) {
            let process = |(body, memory_bytes)| Process { memory_bytes, body, line: 0 };
            let mut processes: Vec<Process> = bodies.into_iter().map(process).collect();
            processes.resize_with(10, Process::default);
            let program = Program::new(processes);
            // The last one is named by the others, and does not name itself.
            prop_assert_eq!(parse(&program.text()), Ok(program));
        }

        #[test]
        fn a_broken_text_is_a_program_or_a_sentence(at in any::<usize>(), by in "[A-Z0-9 \n#]{0,3}") {
            match parse(&mutated(EXAMPLE, at, &by)) {
                Ok(program) => prop_assert_eq!(parse(&program.text()).map(|it| it.text()), Ok(program.text())),
                Err((line, reason)) => prop_assert!(line >= 1 && !reason.is_empty()),
            }
        }
    }
}
