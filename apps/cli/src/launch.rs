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
    #[arg(long, value_name = "N", default_value_t = 3, allow_negative_numbers = true)]
    retries: u32,

    /// Number of processes, which replaces {processes} in the command. Each start that ends without a new checkpoint decreases
    /// it by 1, because a computer may be lost; the least is 1
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), allow_negative_numbers = true)]
    processes: Option<u32>,

    /// The command, as in `mpirun -n 4 PROGRAM --transport mpi --checkpoint DIR --checkpoint-seconds 60`
    #[arg(value_name = "COMMAND", trailing_var_arg = true, required = true)]
    command: Vec<String>,
}

/// What `--processes` replaces.
const PROCESSES: &str = "{processes}";

impl Args {
    pub(crate) fn run(self) -> Result<ExitCode, Failure> {
        let dir = value_of(&self.command, "--checkpoint").ok_or_else(|| {
            Failure::usage("the command has no --checkpoint DIR, so it could only begin anew; add `--checkpoint DIR` to the flags of the \
                 program in the command")
        })?;
        let has_place = self.command.iter().any(|word| word.contains(PROCESSES));
        match (self.processes, has_place) {
            (Some(_), false) => {
                let sentence = "--processes: write {processes} for the number of processes in the command, as in \
                                `mpirun -n {processes} ..`";
                return Err(Failure::usage(sentence));
            }
            (None, true) => {
                return Err(Failure::usage(
                    "the command contains {processes}; add `--processes N` before `--`",
                ));
            }
            _ => {}
        }
        // The folder may have checkpoints of other runs. If the command restarts from one of them, it does so until there is
        // a new one, even if --restart names the folder, where a newer one may be damaged.
        let earlier = Checkpoint::all(&dir).unwrap_or_default();
        let given = value_of(&self.command, "--restart").and_then(|path| Checkpoint::open(&path).ok());
        let given = given.map(|checkpoint| checkpoint.folder().to_owned());
        let mut processes = self.processes;
        let mut left = self.retries;
        let mut saved: Option<(u64, PathBuf)> = None;
        let mut restart = None;
        loop {
            let status = start(&self.command, processes, restart.as_deref())?;
            if !may_retry(&status) {
                return Ok(exit_code(&status));
            }
            let before = std::mem::replace(&mut saved, newest_whole(&dir, &earlier));
            if saved.as_ref().map(|(number, _)| *number) > before.map(|(number, _)| number) {
                left = self.retries;
            } else {
                processes = processes.map(|number| (number - 1).max(1));
            }
            let Some(fewer) = left.checked_sub(1) else {
                let retries = count(u64::from(self.retries), "restart");
                equipoise::warn(&match self.retries {
                    0 => {
                        format!("the program {}; it does not start again, as --retries is 0", ended(&status))
                    }
                    _ => format!("the program died again after {retries} without a new checkpoint; given up"),
                });
                return Ok(exit_code(&status));
            };
            left = fewer;
            restart = saved.as_ref().map(|(_, folder)| folder.clone()).or_else(|| given.clone());
            let number = processes
                .map_or(String::new(), |number| format!(" on {}", count(u64::from(number), "process")));
            let from = match &restart {
                Some(folder) => format!("from `{}`", folder.display()),
                None => "from the beginning, as there is no whole checkpoint of this program yet".into(),
            };
            equipoise::warn(&format!("the program {}; it starts again{number} {from}", ended(&status)));
        }
    }
}

/// The command without a flag that has a value, `--flag VALUE` or `--flag=VALUE`; and its last value. The flags of the
/// program are not known here, so clap cannot parse the command.
fn split(command: &[String], flag: &str) -> (Vec<String>, Option<PathBuf>) {
    let (mut rest, mut value) = (Vec::new(), None);
    let mut words = command.iter();
    while let Some(word) = words.next() {
        match word.strip_prefix(flag) {
            Some("") => value = words.next().map(PathBuf::from),
            Some(end) if end.starts_with('=') => value = Some(end[1..].into()),
            _ => rest.push(word.clone()),
        }
    }
    (rest, value)
}

fn without(command: &[String], flag: &str) -> Vec<String> {
    split(command, flag).0
}

fn value_of(command: &[String], flag: &str) -> Option<PathBuf> {
    split(command, flag).1
}

/// Number and folder of the newest checkpoint that is not one of the `earlier` ones and is whole: all its checksums are right.
fn newest_whole(dir: &Path, earlier: &[PathBuf]) -> Option<(u64, PathBuf)> {
    let whole = |folder: PathBuf| match Checkpoint::open(&folder) {
        Ok(saved) => saved.check().map(|()| (saved.number(), folder)),
        Err(error) => Err(error),
    };
    let folders = Checkpoint::all(dir).unwrap_or_default().into_iter().rev();
    folders.filter(|folder| !earlier.contains(folder)).find_map(|folder| match whole(folder) {
        Ok(saved) => Some(saved),
        Err(error) => {
            equipoise::warn(&format!("{error}; this checkpoint is not used"));
            None
        }
    })
}

/// The command with this restart in place of its own. The flag is next to each `--checkpoint`: words after `--` are no flags, and
/// `mpirun` separates several programs by `:`.
fn restarting(command: &[String], folder: &Path) -> Vec<String> {
    let mut words = Vec::new();
    let mut rest = without(command, "--restart").into_iter();
    while let Some(word) = rest.next() {
        let value = if word == "--checkpoint" { rest.next() } else { None };
        let names_folder = value.is_some() || word.starts_with("--checkpoint=");
        words.push(word);
        words.extend(value);
        if names_folder {
            words.extend(["--restart".into(), folder.display().to_string()]);
        }
    }
    words
}

/// Runs the command to its end.
fn start(command: &[String], processes: Option<u32>, restart: Option<&Path>) -> Result<ExitStatus, Failure> {
    let mut words = restart.map_or_else(|| command.to_vec(), |folder| restarting(command, folder));
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
    let is_final = |code: i32| matches!(code, 0 | 2) || INTERRUPTED.contains(&code);
    status.code().or_else(|| signal(status).map(|signal| 128 + signal)).is_none_or(|code| !is_final(code))
}

/// The signal that has ended a program.
#[cfg(unix)]
fn signal(status: &ExitStatus) -> Option<i32> {
    std::os::unix::process::ExitStatusExt::signal(status)
}

/// The signal that has ended a program: there are none.
#[cfg(not(unix))]
fn signal(_: &ExitStatus) -> Option<i32> {
    None
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
        assert_eq!((without(&line, "--restart"), value_of(&line, "--restart")), (rest, Some("x".into())));
    }

    #[test]
    fn each_program_of_a_command_is_restarted() {
        for (line, restarted) in [
            ("app --checkpoint d", "app --checkpoint d --restart c"),
            ("app --checkpoint=d -- word", "app --checkpoint=d --restart c -- word"),
            (
                "app --restart=a --checkpoint d --checkpoint-every 2 --restart b",
                "app --checkpoint d --restart c --checkpoint-every 2",
            ),
            (
                "mpirun -n 1 app --checkpoint d : -n 2 app --checkpoint d",
                "mpirun -n 1 app --checkpoint d --restart c : -n 2 app --checkpoint d --restart c",
            ),
        ] {
            assert_eq!(restarting(&words(line), Path::new("c")), words(restarted));
        }
    }
}
