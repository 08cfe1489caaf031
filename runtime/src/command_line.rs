//! The command line of a program: it is read, or refused with an error that ends the process.

use crate::options::{translated, unknown, unsupported};
use crate::process;
use crate::transport;
use clap::error::ErrorKind;
use equipoise_model::fault::Fault;
use equipoise_model::quote::sentences;
use std::io::{self, Write as _};
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
        None => end(&args, error),
    })
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

    #[test]
    fn the_usage_names_the_program() {
        let refusal = refusal::<Config>(&["target/app".to_owned()], "no such flag".into()).to_string();
        assert!(refusal.contains("no such flag") && refusal.contains("Usage: app [OPTIONS]"), "{refusal}");
    }
}
