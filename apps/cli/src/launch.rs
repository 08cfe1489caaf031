//! `equipoise launch`: starts a program again from its newest checkpoint when it dies.
//!
//! A job of MPI cannot go on without a process that died. So the whole command is started again; the program continues from
//! the checkpoint that it saved last, on as many processes as the command then starts.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, ExitStatus};

use equipoise::checkpoint::Checkpoint;
use equipoise_apps::Failure;
use equipoise_model::table::count;

/// The arguments of `equipoise launch`.
#[derive(clap::Args)]
pub struct Args {
    /// How often the program may die without a new checkpoint in between
    #[arg(long, value_name = "N", default_value_t = 3)]
    retries: u32,

    /// The number that replaces {processes} in the command. After a start without a new checkpoint there is one process fewer,
    /// as a computer may be lost
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    processes: Option<u32>,

    /// The command, as in `mpirun -n 4 PROGRAM --transport mpi --checkpoint DIR --checkpoint-seconds 60`
    #[arg(value_name = "COMMAND", trailing_var_arg = true, allow_hyphen_values = true, required = true)]
    command: Vec<String>,
}

/// What `--processes` replaces.
const PROCESSES: &str = "{processes}";

impl Args {
    pub(crate) fn run(self) -> Result<ExitCode, Failure> {
        let dir = value_of(&self.command, "--checkpoint").ok_or_else(|| {
            Failure::usage("the command has no --checkpoint DIR; without checkpoints it can only begin anew")
        })?;
        let has_place = self.command.iter().any(|word| word.contains(PROCESSES));
        match (self.processes, has_place) {
            (Some(_), false) => {
                let sentence = "--processes: write {processes} for the number of processes in the command, as in \
                                `mpirun -n {processes} ..`";
                return Err(Failure::usage(sentence));
            }
            (None, true) => return Err(Failure::usage("give the number for {processes} with --processes")),
            _ => {}
        }
        let mut processes = self.processes;
        let mut left = self.retries;
        let mut restart = None;
        loop {
            let before = newest(&dir).map(|(number, _)| number);
            let status = start(&self.command, processes, restart.as_deref())?;
            let saved = newest(&dir);
            if !may_retry(&status) {
                return Ok(exit_code(&status));
            }
            let has_progress = saved.as_ref().map(|(number, _)| *number) > before;
            if has_progress {
                left = self.retries;
            } else {
                processes = processes.map(|number| (number - 1).max(1));
            }
            let Some(fewer) = left.checked_sub(1) else {
                let retries = count(u64::from(self.retries), "restart");
                equipoise::warn(&format!(
                    "the program died again after {retries} without a new checkpoint; given up"
                ));
                return Ok(exit_code(&status));
            };
            left = fewer;
            let number = processes
                .map_or(String::new(), |number| format!(" on {}", count(u64::from(number), "process")));
            let from = match &saved {
                Some((_, folder)) => format!("from `{}`", folder.display()),
                None => "from the beginning, as there is no checkpoint yet".into(),
            };
            equipoise::warn(&format!("the program {}; it starts again{number} {from}", ended(&status)));
            restart = saved.map(|(_, folder)| folder);
        }
    }
}

/// The value of a flag in a command: of `--flag VALUE` or `--flag=VALUE`.
fn value_of(command: &[String], flag: &str) -> Option<PathBuf> {
    command.iter().enumerate().find_map(|(at, word)| {
        let rest = word.strip_prefix(flag)?;
        match rest.strip_prefix('=') {
            Some(value) => Some(value.into()),
            None if rest.is_empty() => command.get(at + 1).map(PathBuf::from),
            None => None,
        }
    })
}

/// The command without a flag that has a value.
fn without(command: &[String], flag: &str) -> Vec<String> {
    let mut skips = false;
    let is_kept = |word: &&String| {
        let is_value = std::mem::replace(&mut skips, *word == flag);
        !is_value && *word != flag && !word.starts_with(&format!("{flag}="))
    };
    command.iter().filter(is_kept).cloned().collect()
}

/// Number and folder of the newest checkpoint that can be read. The one before counts if the newest is damaged.
fn newest(dir: &Path) -> Option<(u64, PathBuf)> {
    let of =
        |path: &Path| Checkpoint::open(path).ok().map(|saved| (saved.number(), saved.folder().to_owned()));
    let folders = std::fs::read_dir(dir).ok()?.flatten().map(|entry| entry.path());
    folders.filter(|path| path.is_dir()).filter_map(|path| of(&path)).max()
}

/// Runs the command to its end.
fn start(command: &[String], processes: Option<u32>, restart: Option<&Path>) -> Result<ExitStatus, Failure> {
    let mut words = if restart.is_some() { without(command, "--restart") } else { command.to_vec() };
    if let Some(folder) = restart {
        words.extend(["--restart".into(), folder.display().to_string()]);
    }
    if let Some(processes) = processes {
        words.iter_mut().for_each(|word| *word = word.replace(PROCESSES, &processes.to_string()));
    }
    let (program, words) = words.split_first().ok_or_else(|| Failure::usage("give a command"))?;
    let status = Command::new(program).args(words).status();
    status.map_err(|error| {
        Failure::usage(format!("the command `{program}` cannot be started: {error}; check its name"))
    })
}

/// Whether the program may be started again: it neither succeeded, nor refused its flags, nor was it interrupted.
fn may_retry(status: &ExitStatus) -> bool {
    /// Of a shell, a launcher or a program of ours, after SIGINT and SIGTERM.
    const INTERRUPTED: [i32; 2] = [130, 143];
    status.code().is_none_or(|code| !matches!(code, 0 | 2) && !INTERRUPTED.contains(&code))
}

/// How the program ended, for messages.
fn ended(status: &ExitStatus) -> String {
    status.code().map_or("was ended by a signal".into(), |code| format!("ended with exit code {code}"))
}

/// The exit code of the program; 1 if a signal has ended it.
fn exit_code(status: &ExitStatus) -> ExitCode {
    status.code().and_then(|code| u8::try_from(code).ok()).map_or(ExitCode::FAILURE, ExitCode::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<String> {
        line.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn flags_are_found_and_replaced() {
        let line =
            words("mpirun -n 4 app --checkpoint-every 2 --checkpoint a/b --restart old --restart=x --seed 1");
        assert_eq!(value_of(&line, "--checkpoint"), Some("a/b".into()));
        assert_eq!(value_of(&words("app --checkpoint=c"), "--checkpoint"), Some("c".into()));
        assert_eq!(value_of(&words("app --checkpoint-every 3"), "--checkpoint"), None);
        let rest = words("mpirun -n 4 app --checkpoint-every 2 --checkpoint a/b --seed 1");
        assert_eq!(without(&line, "--restart"), rest);
    }
}
