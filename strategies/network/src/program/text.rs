//! The parser and the writer of the program language. Errors name the line.

use std::fmt::Write as _;
use std::str::SplitAsciiWhitespace;

use equipoise_model::files::AtLine;
use equipoise_model::spelling::{nearest, suggestion};

use super::{Instruction, MAX_AMOUNT, MAX_PROCESSES, Process, Program, Statement};

/// The first words of lines.
const KEYWORDS: [&str; 7] = ["PROCESS", "INT_OP", "SEND", "RECEIVE", "REPEAT", "END", "STOP"];

/// The maximum nesting depth of `REPEAT`.
const MAX_DEPTH: usize = 16;

/// Parses the text of a program. Empty lines and comments (from `#` to the end of the line) are ignored.
///
/// # Errors
/// The number of the first invalid line, from 1, and the problem.
pub fn parse(text: &str) -> Result<Program, AtLine> {
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

/// A line after its first word.
struct Line<'a> {
    number: usize,
    words: SplitAsciiWhitespace<'a>,
}

impl Line<'_> {
    fn number(&mut self, what: &str, most: u64) -> Result<u64, AtLine> {
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

    fn process(&mut self, what: &str) -> Result<u32, AtLine> {
        Ok(self.number(what, MAX_PROCESSES as u64 - 1)? as u32)
    }

    fn end(&mut self) -> Result<(), AtLine> {
        match self.words.next() {
            None => Ok(()),
            Some(word) => Err((self.number, format!("expected the end of the line, found `{word}`"))),
        }
    }
}

/// A `REPEAT` without its `END`: its line, the number of repetitions, and the body so far.
type OpenRepeat = (u32, u64, Vec<Statement>);

#[derive(Default)]
struct Parser {
    /// Completed processes, by number.
    processes: Vec<Option<Process>>,
    /// The open process and its number.
    current: Option<(u32, Process)>,
    open: Vec<OpenRepeat>,
    /// For every send and receive: the other process and the line.
    named: Vec<(u32, usize)>,
}

impl Parser {
    fn line(&mut self, word: &str, mut line: Line) -> Result<(), AtLine> {
        let number = line.number;
        let fault = |reason: String| Err((number, reason));
        let upper = word.to_ascii_uppercase();
        if !KEYWORDS.contains(&upper.as_str()) {
            let (meant, known) = (suggestion(&nearest(&upper, &KEYWORDS)), KEYWORDS.join(", "));
            return fault(format!("there is no instruction `{word}`{meant}; known are {known}"));
        }
        if upper == "PROCESS" {
            if let Some((open, _)) = &self.current {
                return fault(format!("process {open} has no STOP; add it before this line"));
            }
            return self.begin(line);
        }
        let Some((process, _)) = self.current else {
            return fault(format!(
                "{upper} is outside a process; begin a process with PROCESS and its number"
            ));
        };
        let instruction = match upper.as_str() {
            "INT_OP" => Instruction::IntOp(line.number("a number of cycles", MAX_AMOUNT)?),
            "SEND" | "RECEIVE" => {
                let other = line.process("the number of the other process")?;
                if other == process {
                    return fault(format!(
                        "{upper} names its own process {process}; name another process or remove the line"
                    ));
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
                let times = line.number("a number of repetitions", u64::from(u32::MAX))?;
                line.end()?;
                if self.open.len() == MAX_DEPTH {
                    return fault(format!("REPEAT is nested more than {MAX_DEPTH} deep; nest less"));
                }
                self.open.push((number as u32, times, Vec::new()));
                return Ok(());
            }
            "END" => {
                line.end()?;
                let Some((line, times, body)) = self.open.pop() else {
                    return fault("END has no REPEAT; remove it, or add the REPEAT".into());
                };
                self.body().push(Statement { line, instruction: Instruction::Repeat { times, body } });
                return Ok(());
            }
            _ => {
                line.end()?;
                if let Some((repeat, ..)) = self.open.last() {
                    return fault(format!("the REPEAT of line {repeat} has no END; add it before STOP"));
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

    /// The body to which instructions are appended.
    fn body(&mut self) -> &mut Vec<Statement> {
        match (self.open.last_mut(), &mut self.current) {
            (Some((.., body)), _) => body,
            (None, Some((_, process))) => &mut process.body,
            (None, None) => unreachable!("an instruction is in a process"),
        }
    }

    fn begin(&mut self, mut line: Line) -> Result<(), AtLine> {
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
            return Err((
                line.number,
                format!("process {id} is already defined in line {earlier}; use another number"),
            ));
        }
        self.current = Some((id, Process { memory_bytes, body: Vec::new(), line: line.number as u32 }));
        Ok(())
    }

    fn finish(self, last: usize) -> Result<Program, AtLine> {
        if let Some((repeat, ..)) = self.open.last() {
            return Err((last, format!("the REPEAT of line {repeat} has no END; add it")));
        }
        if let Some((open, _)) = self.current {
            return Err((last, format!("process {open} has no STOP; add it")));
        }
        let count = self.processes.len();
        if count == 0 {
            return Err((last, "there is no process; begin a process with PROCESS and its number".into()));
        }
        if let Some(gap) = self.processes.iter().position(Option::is_none) {
            return Err((
                last,
                format!("there is no process {gap}; number the processes from 0 without gaps"),
            ));
        }
        if let Some((other, line)) = self.named.into_iter().find(|&(other, _)| other as usize >= count) {
            return Err((line, format!("there is no process {other}; the last process is {}", count - 1)));
        }
        Ok(Program { processes: self.processes.into_iter().flatten().collect() })
    }
}

impl Program {
    /// The text of the program, which [`parse`] reads back.
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

/// Assigns to every statement its line in [`Program::text`].
pub(super) fn assign_lines(program: &mut Program) {
    let mut line = 1;
    for process in &mut program.processes {
        process.line = line;
        line += 1;
        assign_body_lines(&mut process.body, &mut line);
        line += 1;
    }
}

fn assign_body_lines(body: &mut [Statement], line: &mut u32) {
    for statement in body {
        statement.line = *line;
        *line += 1;
        if let Instruction::Repeat { body, .. } = &mut statement.instruction {
            assign_body_lines(body, line);
            *line += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use equipoise_model::testing::mutated;

    use super::*;

    const EXAMPLE: &str = "# An example.\nPROCESS 1 MEMORY 77\n REPEAT 3 # times\nreceive 0 4\nEND\nSTOP\n\nPROCESS 0\nINT_OP 5\nREPEAT 3\nSEND 1 4\nEND\nSTOP\n";

    #[test]
    fn statements_keep_their_line_numbers() {
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
    fn errors_name_the_line_and_the_problem() {
        for (text, line, expected) in [
            ("", 1, "there is no process"),
            ("\nINT_OP 1\n", 2, "INT_OP is outside a process"),
            (
                "PROCESS 0\nSEND 1 99999999999999999999999\nSTOP",
                2,
                "expected a number of flits of at most 1099511627776, found 99999999999999999999999",
            ),
            ("PROCESS 0\nINT_OPP 1\nSTOP", 2, "there is no instruction `INT_OPP` (did you mean `INT_OP`?)"),
            ("PROCESS 0\nPROCESS 1\n", 2, "process 0 has no STOP; add it before this line"),
            ("PROCESS 0\nINT_OP 1\n\n", 2, "process 0 has no STOP; add it"),
            ("PROCESS 0\nINT_OP\nSTOP", 2, "expected a number of cycles, found the end of the line"),
            ("PROCESS 0\nINT_OP 1 2\nSTOP", 2, "expected the end of the line, found `2`"),
            ("PROCESS 0\nINT_OP -1\nSTOP", 2, "a whole number, found `-1`"),
            ("PROCESS 0\nINT_OP 9999999999999\nSTOP", 2, "of at most 1099511627776"),
            ("PROCESS 0\nSEND 0 1\nSTOP", 2, "SEND names its own process 0"),
            ("PROCESS 0\nSEND 1 0\nSTOP", 2, "at least 1 flit"),
            ("PROCESS 0\nSEND 1 1\nSTOP", 2, "there is no process 1; the last process is 0"),
            ("PROCESS 0\nEND\nSTOP", 2, "END has no REPEAT"),
            ("PROCESS 0\nREPEAT 2\nSTOP", 3, "the REPEAT of line 2 has no END"),
            ("PROCESS 0\nSTOP\nPROCESS 0\nSTOP", 3, "process 0 is already defined in line 1"),
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
        prop::collection::vec(one.prop_map(Instruction::without_line), 0..5).boxed()
    }

    proptest! {
        #[test]
        fn a_written_program_reads_back_unchanged(
            bodies in prop::collection::vec((body(2), prop::option::of(any::<u64>())), 1..5),
        ) {
            let process = |(body, memory_bytes)| Process { memory_bytes, body, line: 0 };
            let mut processes: Vec<Process> = bodies.into_iter().map(process).collect();
            processes.resize_with(10, Process::default);
            let program = Program::new(processes);
            // The other processes send to the last process, which has no body.
            prop_assert_eq!(parse(&program.text()), Ok(program));
        }

        #[test]
        fn a_mutated_text_gives_a_program_or_an_error(at in any::<usize>(), by in "[A-Z0-9 \n#]{0,3}") {
            match parse(&mutated(EXAMPLE, at, &by)) {
                Ok(program) => prop_assert_eq!(parse(&program.text()).map(|it| it.text()), Ok(program.text())),
                Err((line, reason)) => prop_assert!(line >= 1 && !reason.is_empty()),
            }
        }
    }
}
