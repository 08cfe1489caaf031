//! The command line of a program: it is read, or refused with an error that ends the process.

use crate::options::{translated, unknown, unsupported};
use crate::process;
use crate::transport;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use equipoise_model::fault::Fault;
use equipoise_model::quote::sentences;
use std::error::Error as _;
use std::io::{self, Write as _};
use std::num::{IntErrorKind, ParseFloatError, ParseIntError};
use std::path::Path;

/// Reads the command line, including Charm++'s spellings: as a [`Config`](crate::Config) if the program has no flags of its
/// own, else as the program's clap parser, which flattens a `Config`. An invalid flag ends the process with an error message and exit code 2. `--help` ends
/// the process with exit code 0, or with 1 if the help cannot be written.
///
/// Of several processes that a launcher has started together, one prints the error, and the first prints the help. With `--transport mpi`
/// an invalid flag ends all processes, even if only one of them has it; then this function initialises MPI.
pub fn parse<C: clap::Parser>() -> C {
    process::exit_on_abort();
    let args: Vec<String> = std::env::args_os().map(|arg| arg.to_string_lossy().into_owned()).collect();
    if let Some(sentence) = unsupported(&args) {
        end(&args, refusal::<C>(&args, sentence));
    }
    C::try_parse_from(translated(args.clone())).unwrap_or_else(|error| match unknown(&error) {
        Some(sentence) => end(&args, refusal::<C>(&args, sentence)),
        None => end(
            &args,
            expected_number(&error)
                .or_else(|| expected_command(&C::command(), &args, &error))
                .unwrap_or(error),
        ),
    })
}

/// The error about a value that is no number of the flag's type. The standard library's sentences say what was wrong with the
/// text, but not what to give instead.
fn expected_number(error: &clap::Error) -> Option<clap::Error> {
    let source = error.source()?;
    let text = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.as_str()),
        _ => None,
    };
    let value = text(ContextKind::InvalidValue)?;
    let expected = match source.downcast_ref::<ParseIntError>().map(ParseIntError::kind) {
        Some(IntErrorKind::PosOverflow | IntErrorKind::NegOverflow) => "the number is too large",
        Some(_) if value.parse::<i64>().is_ok() => "expected a whole number of at least 0, such as 4",
        Some(_) => "expected a whole number, such as 4",
        None if source.is::<ParseFloatError>() => "expected a number, such as 4 or 0.5",
        None => return None,
    };
    let flag = text(ContextKind::InvalidArg)?;
    let sentence =
        format!("invalid value '{value}' for '{flag}': {expected}\n\nFor more information, try '--help'.\n");
    Some(clap::Error::raw(ErrorKind::ValueValidation, sentence))
}

/// The error about a word in the place of a command that is like none of them: it lists the commands.
fn expected_command(program: &clap::Command, args: &[String], error: &clap::Error) -> Option<clap::Error> {
    if error.kind() != ErrorKind::InvalidSubcommand || error.get(ContextKind::SuggestedSubcommand).is_some() {
        return None;
    }
    let Some(ContextValue::String(wrong)) = error.get(ContextKind::InvalidSubcommand) else { return None };
    let before = args.iter().skip(1).take_while(|word| *word != wrong);
    let parent = before.fold(program, |parent, word| parent.find_subcommand(word).unwrap_or(parent));
    let commands = parent.get_subcommands().filter(|it| !it.is_hide_set());
    let names: Vec<&str> = commands.map(clap::Command::get_name).collect();
    let sentence = format!(
        "there is no command '{wrong}'; choose one of {}\n\nFor more information, try '--help'.\n",
        names.join(", ")
    );
    Some(clap::Error::raw(ErrorKind::InvalidSubcommand, sentence))
}

/// The error about a flag of Charm++, with the usage of the program that runs.
fn refusal<C: clap::Parser>(args: &[String], sentence: String) -> clap::Error {
    let name = args.first().and_then(|path| Path::new(path).file_name()?.to_str()).unwrap_or_default();
    C::command().bin_name(name).error(ErrorKind::UnknownArgument, sentence)
}

/// Prints an error, the help or the version, and ends the process.
fn end(args: &[String], error: clap::Error) -> ! {
    let exit_code = error.exit_code();
    if error.use_stderr() {
        transport::refuse(args, exit_code, move || print_error(&error))
    }
    // All processes of a job have the same help.
    if process::launched_as() == 0
        && let Err(reason) = error.print().and_then(|()| io::stdout().flush())
        // clap ignores this error, and a script that stores the help would lose it. A reader that has closed the
        // output, as `head` does, is no error.
        && reason.kind() != io::ErrorKind::BrokenPipe
    {
        process::print_error(&format!("cannot write the help: {reason}"));
        std::process::exit(Fault::Input.exit_code().into())
    }
    std::process::exit(exit_code)
}

/// Prints an error. One that echoes control characters or a very long argument is printed without them, and without colours.
fn print_error(error: &clap::Error) {
    let plain = error.render().to_string();
    let harmless = sentences(&plain);
    if harmless == plain {
        // There is no other place to report an error of stderr.
        let _ = error.print();
    } else {
        process::write_stderr(&harmless);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Config;
    use clap::Parser as _;

    #[test]
    fn a_word_that_is_no_command_is_refused_with_the_commands() {
        let run = clap::Command::new("run").subcommand(clap::Command::new("heat").arg(clap::arg!([size])));
        let hidden = clap::Command::new("old").hide(true);
        let program = clap::Command::new("app").subcommands([run, clap::Command::new("show"), hidden]);
        let sentence = |words: &[&str]| {
            let words: Vec<String> = words.iter().map(|word| word.to_string()).collect();
            let error = program.clone().try_get_matches_from(&words).expect_err("no command");
            expected_command(&program, &words, &error).map(|error| error.to_string())
        };
        let refused = sentence(&["app", "nosuch"]).expect("a sentence");
        assert!(refused.contains("there is no command 'nosuch'; choose one of run, show\n"), "{refused}");
        let refused = sentence(&["app", "run", "xyz"]).expect("a sentence");
        assert!(refused.contains("there is no command 'xyz'; choose one of heat\n"), "{refused}");
        let refused = sentence(&["app", "help", "nosuch"]).expect("a sentence");
        assert!(refused.contains("there is no command 'nosuch'; choose one of run, show\n"), "{refused}");
        assert_eq!((sentence(&["app", "shows"]), sentence(&["app", "show", "--bogus"])), (None, None));
    }

    #[test]
    fn a_value_that_is_no_number_is_refused_with_what_to_give() {
        let sentence = |words: [&str; 2]| {
            let error = Config::try_parse_from([&["app"], &words[..]].concat()).expect_err("no number");
            expected_number(&error).unwrap_or(error).to_string()
        };
        for (words, expected) in [
            (
                ["--pes", "abc"],
                "error: invalid value 'abc' for '--pes <N>': expected a whole number, such as 4",
            ),
            (
                ["--pes=-5", "--seed=1"],
                "'-5' for '--pes <N>': expected a whole number of at least 0, such as 4",
            ),
            (["--seed", "99999999999999999999999"], "for '--seed <N>': the number is too large"),
            (
                ["--watchdog", "soon"],
                "'soon' for '--watchdog <SECONDS>': expected a number, such as 4 or 0.5",
            ),
            (["--record-limit", "-5"], "'-5' for '--record-limit <SIZE>': expected bytes such as 4096"),
        ] {
            let sentence = sentence(words);
            assert!(sentence.contains(expected) && sentence.ends_with("try '--help'.\n"), "{sentence}");
        }
    }

    #[test]
    fn the_usage_names_the_program() {
        let refusal = refusal::<Config>(&["target/app".to_owned()], "no such flag".into()).to_string();
        assert!(refusal.contains("no such flag") && refusal.contains("Usage: app [OPTIONS]"), "{refusal}");
    }
}
