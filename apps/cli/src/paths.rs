//! The files of a command line: an output replaces neither an input nor another output.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use equipoise_apps::Failure;
use equipoise_model::files::file_at;

/// The files that a command reads and writes.
#[derive(Default)]
pub(crate) struct Files {
    inputs: BTreeSet<PathBuf>,
    /// Whether an input has the name `-`.
    has_dash: bool,
    outputs: Vec<PathBuf>,
}

impl Files {
    /// Adds inputs. Each is a path, or a spec that may name files, such as `graph:machine.csv`.
    pub(crate) fn reads<T: AsRef<OsStr>>(mut self, inputs: impl IntoIterator<Item = T>) -> Files {
        for input in inputs {
            let input = input.as_ref();
            self.has_dash |= input == "-";
            self.inputs.extend(file_at(Path::new(input)));
            let files: Vec<&Path> = files_in(input.to_str().unwrap_or_default()).collect();
            self.inputs.extend(files.iter().filter_map(|path| file_at(path)));
            if input.to_str().is_some_and(|spec| spec.contains("degraded:")) {
                let machines: Vec<String> = files.into_iter().filter_map(machine_in).collect();
                // A degraded machine is no part of another one.
                self.inputs.extend(machines.iter().flat_map(|spec| files_in(spec)).filter_map(file_at));
            }
        }
        self
    }

    /// Adds outputs.
    pub(crate) fn writes<T: AsRef<Path>>(mut self, outputs: impl IntoIterator<Item = T>) -> Files {
        self.outputs.extend(outputs.into_iter().map(|output| output.as_ref().to_path_buf()));
        self
    }

    /// Refuses outputs that would replace an input or another output, and `-`, which is a stream in other commands.
    pub(crate) fn check(self) -> Result<(), Failure> {
        let is_dash = |path: &PathBuf| path.as_os_str() == "-";
        if self.outputs.iter().any(is_dash) {
            return Err(Failure::usage(
                "`-` is not a stream here; write to /dev/stdout, or to a file such as ./-",
            ));
        }
        if self.has_dash {
            return Err(Failure::usage("`-` is not a stream here; read /dev/stdin, or a file such as ./-"));
        }
        let mut seen = BTreeSet::new();
        let files = self.outputs.iter().filter_map(|output| Some((output.display(), file_at(output)?)));
        for (name, path) in files {
            let is_read =
                |input: &PathBuf| *input == path || is_of_rank(input, &path) || is_of_recording(input, &path);
            if self.inputs.iter().any(is_read) {
                return Err(Failure::usage(format!(
                    "the output `{name}` would replace an input; give it another path"
                )));
            }
            if !seen.insert(path) {
                return Err(Failure::usage(format!(
                    "two outputs have the same path `{name}`; give each its own path"
                )));
            }
        }
        Ok(())
    }
}

/// The files that a spec names.
fn files_in(spec: &str) -> impl Iterator<Item = &Path> {
    // The first word of a spec is its kind.
    spec.split(|c| ":,=()[]@*".contains(c)).skip(1).map(Path::new).filter(|path| path.is_file())
}

/// The spec of the machine in a file of `degraded:`.
fn machine_in(file: &Path) -> Option<String> {
    let text = std::fs::read_to_string(file).ok()?;
    let lines = text.lines().filter_map(|line| line.trim().split_once(char::is_whitespace));
    lines.filter(|(word, _)| *word == "machine").map(|(_, spec)| spec.trim().to_string()).next()
}

/// Whether both are files of one recording of Open MPI, `NAME.0.prof`, `NAME.1.prof` .., which are read together.
fn is_of_recording(input: &Path, output: &Path) -> bool {
    let recording = |path: &Path| {
        let (name, rank) = path.to_str()?.strip_suffix(".prof")?.rsplit_once('.')?;
        (!rank.is_empty() && rank.bytes().all(|byte| byte.is_ascii_digit())).then(|| name.to_string())
    };
    recording(input).is_some_and(|name| recording(output) == Some(name))
}

/// Whether `input` is the file of a rank of `output`, whose name has `%p` for the rank.
fn is_of_rank(input: &Path, output: &Path) -> bool {
    let [input, output] = [input, output].map(|path| path.to_str().unwrap_or_default());
    let rank =
        output.split_once("%p").and_then(|(before, after)| input.strip_prefix(before)?.strip_suffix(after));
    rank.is_some_and(|rank| !rank.is_empty() && rank.bytes().all(|byte| byte.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outputs_replace_neither_inputs_nor_each_other() {
        let folder = std::env::temp_dir();
        let there = folder.join(format!("equipoise-paths-{}.json", std::process::id()));
        std::fs::write(&there, "{}").expect("a file");
        let there = there.to_str().expect("a name");
        let check = |inputs: &[&str], outputs: &[&str], expected: &str| {
            let found = Files::default().reads(inputs).writes(outputs).check();
            let found = found.map_or_else(|error| error.to_string(), |()| String::new());
            assert!(
                found.contains(expected) && found.is_empty() == expected.is_empty(),
                "{outputs:?}: {found}"
            );
        };
        let replaces = "would replace an input";
        check(&["a.db"], &["b.db", "c.html"], "");
        check(&["a.db", "b.db"], &["c.html", "./b.db"], replaces);
        check(&["a.db"], &["c.html", "./c.html"], "two outputs have the same path `./c.html`");
        check(&["a.db"], &["/dev/stdout", "/dev/stdout"], "");
        // A word of a spec is only an input if it is a file.
        check(&["torus:4x4", "PoiseLB:quality=fast"], &["4x4", "fast"], "");
        check(&[&format!("platform:{there}")], &[there], replaces);
        check(&[&format!("mesh:2x2[@{there}]")], &[there], replaces);
        let machine = format!("{there}.degraded");
        std::fs::write(&machine, format!("machine platform:{there}\n0.5 0 -> 1\n")).expect("a file");
        check(&[&format!("degraded:{machine}")], &[there], replaces);
        std::fs::remove_file(machine).expect("the file");
        check(&["run.0.prof"], &["run.1.prof"], replaces);
        check(&["run.0.prof"], &["run.map.prof", "other.1.prof"], "");
        check(&["data.0.json"], &["data.%p.json"], replaces);
        check(&["data.x.json"], &["data.%p.json"], "");
        std::fs::remove_file(there).expect("the file");
    }
}
