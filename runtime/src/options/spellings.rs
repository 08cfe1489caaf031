//! Translates Charm++'s spellings of flags.

use clap::error::{ContextKind, ContextValue, ErrorKind};

/// Flags of Charm++ without an equivalent, and what to do instead.
const UNSUPPORTED: &[(&str, &str)] = &[
    ("+LBPeriod", "load-balancing steps begin where elements call at_sync; count iterations there"),
    ("+MetaLB", "load-balancing steps begin where elements call at_sync; choose the iterations there"),
    ("+TreeLBFile", "there is no TreeLB; choose a strategy with --balancer"),
    ("+LBTopo", "name the machine with --topology"),
    ("+LBPredictor", "strategies use the loads that were measured since the last step"),
    ("+LBObjOnly", "use --lb-no-background, which ignores the load outside of elements"),
    ("+LBTestPESpeed", "give the speeds of a simulated machine with --speed"),
    ("+LBSyncResume", "elements always continue after all migrations of a step"),
    ("+pemap", "bind PEs to cores with --bind"),
    ("+commap", "there are no communication threads; bind PEs to cores with --bind"),
    ("+restart", "begin with a checkpoint with --restart"),
];

/// The error for the first flag of Charm++ that has no equivalent.
pub(crate) fn unsupported(args: &[String]) -> Option<String> {
    let (flag, remedy) = args.iter().find_map(|arg| UNSUPPORTED.iter().find(|(flag, _)| flag == arg))?;
    Some(format!("the flag {flag} of Charm++ is not supported; {remedy}"))
}

/// The spellings of Charm++ that [`translated`] replaces.
const SPELLINGS: &[&str] = &[
    "+pN",
    "+balancer",
    "+LBOff",
    "+LBNoBackground",
    "+LBCommOn",
    "+LBDebug",
    "+LBDump",
    "+LBDumpSteps",
    "+LBDumpFile",
    "+LBSim",
    "+LBSimSteps",
    "+LBSimProcs",
    "+setcpuaffinity",
    "+ppn",
];

/// The error for a flag that begins with `+`, as those of Charm++, and that neither the program nor this module knows.
pub(crate) fn unknown(error: &clap::Error) -> Option<String> {
    match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::String(flag))
            if error.kind() == ErrorKind::UnknownArgument && flag.starts_with('+') =>
        {
            Some(format!(
                "unknown flag {flag}; the flags of Charm++ that are translated are {}",
                SPELLINGS.join(", ")
            ))
        }
        _ => None,
    }
}

/// The command line with Charm++'s spellings replaced by ours.
///
/// `+p4` is `--pes 4`, `+balancer X` is `--balancer X`, `+LBDump S` is `--lb-dump-start S`, and so on;
/// `+LBDumpFile` is `--lb-sim-file` if `+LBSim` is given, too. An unknown `+` flag is left unchanged, and
/// clap rejects it by name.
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
                // Charm++ has several levels; any level but 0 prints the report.
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
            "+ppn" => "--pes-per-process",
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
    use crate::Config;
    use clap::Parser as _;

    #[track_caller]
    fn check(charm: &str, ours: &str) {
        let split = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(translated(split(charm)), split(ours));
    }

    #[test]
    fn translates_the_spellings_of_charm() {
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

    #[test]
    fn an_unknown_flag_lists_all_spellings() {
        let parsed =
            |args: &[&str]| Config::try_parse_from(translated(args.iter().map(|&arg| arg.to_owned())));
        let error = parsed(&["app", "+p4", "+LBdebug", "1"]).expect_err("no such flag");
        let sentence = unknown(&error).expect("a flag as Charm++ has them");
        assert_eq!(
            sentence,
            format!(
                "unknown flag +LBdebug; the flags of Charm++ that are translated are {}",
                SPELLINGS.join(", ")
            )
        );
        assert!(unknown(&parsed(&["app", "--lbdebug"]).expect_err("no such flag")).is_none());
        for flag in SPELLINGS {
            let flag = flag.replace("+pN", "+p4");
            assert_ne!(
                translated(["app".into(), flag.clone()])[1..],
                [flag],
                "all listed flags are replaced"
            );
        }
    }

    #[test]
    fn names_flags_of_charm_without_equivalent() {
        let args = ["app", "+p4", "+LBPeriod", "0.5"].map(str::to_owned);
        let sentence = unsupported(&args).expect("no such flag here");
        assert!(sentence.starts_with("the flag +LBPeriod of Charm++ is not supported; "), "{sentence}");
        assert_eq!(unsupported(&args[..2]), None);
    }
}
