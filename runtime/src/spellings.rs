//! The command line as a program gets it: Charm++'s spellings of flags are as good as ours.

/// Reads the command line, Charm++'s spellings included, with your own clap parser, into which you
/// have flattened a [`Config`](crate::Config). A bad flag ends the process with a sentence and exit code 2.
pub fn parse<C: clap::Parser>() -> C {
    C::parse_from(translated(std::env::args_os().map(|arg| arg.to_string_lossy().into_owned())))
}

/// The command line with Charm++'s spellings replaced by ours.
///
/// `+p4` is `--pes 4`, `+balancer X` is `--balancer X`, `+LBDump S` is `--lb-dump-start S`, and so on;
/// `+LBDumpFile` is `--lb-sim-file` where `+LBSim` stands beside it. A `+` flag that is not known is
/// left as it is, and clap refuses it by name.
pub fn translated(args: impl IntoIterator<Item = String>) -> Vec<String> {
    let args: Vec<String> = args.into_iter().collect();
    let simulates =
        args.iter().any(|arg| arg == "+LBSim" || arg == "--lb-sim" || arg.starts_with("--lb-sim="));
    let mut out = Vec::with_capacity(args.len());
    let mut dumps = None;
    let mut args = args.into_iter().peekable();
    while let Some(arg) = args.next() {
        let flag = match arg.as_str() {
            "+balancer" => "--balancer",
            "+LBOff" => "--lb-off",
            "+LBNoBackground" => "--lb-no-background",
            "+LBCommOn" => {
                out.push("--lb-comm=on".into());
                continue;
            }
            "+LBDebug" => {
                // Charm++'s level; there is one here, and 0 is silence.
                let level = args.next_if(|level| level.parse::<u32>().is_ok());
                if level.as_deref() != Some("0") {
                    out.push("--lb-report=text".into());
                }
                continue;
            }
            "+LBDump" => {
                dumps.get_or_insert(false);
                "--lb-dump-start"
            }
            "+LBDumpSteps" => "--lb-dump-steps",
            "+LBDumpFile" if simulates => "--lb-sim-file",
            "+LBDumpFile" => {
                dumps = Some(true);
                "--lb-dump"
            }
            "+LBSim" => "--lb-sim",
            "+LBSimSteps" => "--lb-sim-steps",
            "+LBSimProcs" => "--lb-sim-pes",
            "+setcpuaffinity" => "--bind",
            "+p" => "--pes",
            other => match other.strip_prefix("+p").filter(|n| n.parse::<usize>().is_ok()) {
                Some(n) => {
                    out.extend(["--pes".into(), n.into()]);
                    continue;
                }
                None => other,
            },
        };
        out.push(flag.to_owned());
    }
    if dumps == Some(false) && !out.iter().any(|arg| arg.starts_with("--lb-dump=") || arg == "--lb-dump") {
        // Charm++'s default name.
        out.extend(["--lb-dump".into(), "lbdata.dat".into()]);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(charm: &str, ours: &str) {
        let split = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(translated(split(charm)), split(ours));
    }

    #[test]
    fn charm_spellings_are_understood() {
        check("app +p4 10", "app --pes 4 10");
        check("app +p 4", "app --pes 4");
        check("app +balancer A +balancer B", "app --balancer A --balancer B");
        check("app +LBOff +LBNoBackground +LBCommOn", "app --lb-off --lb-no-background --lb-comm=on");
        check("app +LBDebug 1 +LBDebug", "app --lb-report=text --lb-report=text");
        check("app +LBDebug 0", "app");
        check(
            "app +LBDump 3 +LBDumpSteps 2 +LBDumpFile f",
            "app --lb-dump-start 3 --lb-dump-steps 2 --lb-dump f",
        );
        check("app +LBDump 3", "app --lb-dump-start 3 --lb-dump lbdata.dat");
        check(
            "app +LBSim 0 +LBSimSteps 2 +LBSimProcs 64 +LBDumpFile f",
            "app --lb-sim 0 --lb-sim-steps 2 --lb-sim-pes 64 --lb-sim-file f",
        );
        check("app +unknown", "app +unknown");
    }
}
