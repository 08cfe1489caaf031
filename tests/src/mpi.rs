//! The programs of the workspace as processes that the launcher of an MPI library starts.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::sleep;
use std::time::{Duration, Instant};
use std::{env, iter};

use crate::{Executable, ProcessOutput, Sandbox, signal, skip};

/// The command `equipoise` with the feature `mpi`.
static EQUIPOISE: Executable = Executable::with_mpi("equipoise", ["--test", "command"]);

/// The program `examples/failing.rs` with the feature `mpi`.
static FAILING: Executable = Executable::with_mpi("examples/failing", ["--example", "failing"]);

/// The program `examples/phases.rs`.
static PHASES: Executable = Executable::with_mpi("examples/phases", ["--example", "phases"]);

/// The program `examples/traffic.rs` with the feature `mpi`.
static TRAFFIC: Executable = Executable::with_mpi("examples/traffic", ["--example", "traffic"]);

/// Programs of the book: a program of MPI, and those that take the flags of a run.
static BOOK_PHASES: Executable = Executable::with_mpi("examples/mpi_phases", ["--example", "mpi_phases"]);
static QUEENS: Executable = Executable::with_mpi("examples/queens", ["--example", "queens"]);
static FEATURES: Executable = Executable::with_mpi("examples/features", ["--example", "features"]);
static POOL: Executable = Executable::with_mpi("examples/pool", ["--example", "pool"]);
static PARTICLES: Executable = Executable::with_mpi("examples/particles", ["--example", "particles"]);
static MATMUL: Executable = Executable::with_mpi("examples/matmul", ["--example", "matmul"]);
static FLAGS: Executable = Executable::with_mpi("examples/ghost_4_flags", ["--example", "ghost_4_flags"]);
static BALANCE: Executable =
    Executable::with_mpi("examples/ghost_5_balance", ["--example", "ghost_5_balance"]);

/// Jobs share few processors, so that one runs at a time.
static ALONE: Mutex<()> = Mutex::new(());

/// The time after which a job counts as hung.
const HUNG: Duration = Duration::from_secs(100);

/// The launcher of an MPI library.
pub struct Launcher {
    program: String,
    is_open_mpi: bool,
    /// Whether the launcher ends jobs as fast as it can, in place of its own settings.
    is_fast: bool,
    /// Whether it is the leader of a group of processes.
    leads_group: bool,
}

/// What carries messages between processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carrier {
    /// Shared memory.
    SharedMemory,
    /// TCP on the loopback device, or with MPICH the network that its build has.
    Tcp,
}

impl Launcher {
    /// The launcher that the variable `MPIRUN` names, by default `mpirun`. None, with a note on stderr, if it does not
    /// start.
    pub fn find() -> Option<Launcher> {
        let program = env::var("MPIRUN").unwrap_or_else(|_| "mpirun".into());
        match Command::new(&program).arg("--version").output() {
            Ok(output) => {
                let is_open_mpi = String::from_utf8_lossy(&output.stdout).contains("Open");
                Some(Launcher { program, is_open_mpi, is_fast: true, leads_group: false })
            }
            Err(error) => {
                skip(&format!("there is no launcher {program} ({error}); set MPIRUN"));
                None
            }
        }
    }

    /// The launcher with the flags that let it start more processes than there are cores.
    pub fn words(&self) -> String {
        let flags = if self.is_open_mpi { " --oversubscribe" } else { "" };
        format!("{}{flags}", self.program)
    }

    /// Whether the launcher is that of Open MPI; else it is that of MPICH.
    pub fn is_open_mpi(&self) -> bool {
        self.is_open_mpi
    }

    /// The launcher with its own settings, as users have it.
    pub fn as_installed(self) -> Launcher {
        Launcher { is_fast: false, ..self }
    }

    /// The launcher as the leader of a group of processes, which [`Job::kill_group`] kills.
    pub fn in_group(self) -> Launcher {
        Launcher { leads_group: true, ..self }
    }

    /// Starts a job with shared memory. Each part is a number of processes and their program with its words.
    ///
    /// # Panics
    /// If the launcher does not start.
    pub fn start<'a>(&self, sandbox: &'a Sandbox, parts: &[(usize, &str)]) -> Job<'a> {
        self.start_on(Carrier::SharedMemory, sandbox, parts)
    }

    /// Starts a job. Each part is a number of processes and their program with its words.
    ///
    /// # Panics
    /// If the launcher does not start.
    pub fn start_on<'a>(&self, carrier: Carrier, sandbox: &'a Sandbox, parts: &[(usize, &str)]) -> Job<'a> {
        let mut command = Command::new(&self.program);
        if self.is_open_mpi {
            command.arg("--oversubscribe").envs(OPEN_MPI).envs(OPEN_MPI_FAST.filter(|_| self.is_fast));
        }
        if self.leads_group {
            command.process_group(0);
        }
        match carrier {
            Carrier::SharedMemory => &mut command,
            Carrier::Tcp if self.is_open_mpi => command.envs(OPEN_MPI_TCP),
            Carrier::Tcp => command.envs(MPICH_TCP),
        };
        for (at, (processes, line)) in parts.iter().enumerate() {
            command.args(iter::repeat_n(":", at.min(1))).args(["-n", &processes.to_string()]);
            let (program, words) = line.split_once(' ').unwrap_or((line, ""));
            command.arg(self::program(program)).args(words.split_whitespace());
        }
        Job::start(command, sandbox, &format!("{} {parts:?} {carrier:?}", self.program))
    }
}

/// Starts a program with its words without a launcher.
///
/// # Panics
/// If it does not start.
pub fn start_without_launcher<'a>(sandbox: &'a Sandbox, line: &str) -> Job<'a> {
    let (program, words) = line.split_once(' ').unwrap_or((line, ""));
    let mut command = Command::new(self::program(program));
    command.args(words.split_whitespace()).envs(OPEN_MPI);
    Job::start(command, sandbox, line)
}

/// Lets root start processes.
const OPEN_MPI: [(&str, &str); 2] =
    [("OMPI_ALLOW_RUN_AS_ROOT", "1"), ("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")];
/// After the failure of one process, the launcher signals the others, and by default it then waits for 1 s if one of them still
/// runs, twice at most.
const OPEN_MPI_FAST: Option<(&str, &str)> = Some(("OMPI_MCA_odls_base_sigkill_timeout", "0"));
const OPEN_MPI_TCP: [(&str, &str); 3] =
    [("OMPI_MCA_pml", "ob1"), ("OMPI_MCA_btl", "tcp,self"), ("OMPI_MCA_btl_tcp_if_include", "lo")];
/// Builds of MPICH use libfabric or UCX. With UCX on TCP, `MPI_Finalize` of MPICH 4.0 hangs, in programs of C too.
/// Therefore UCX uses what it finds, and only the shared memory of MPICH itself is off.
const MPICH_TCP: [(&str, &str); 2] = [("MPIR_CVAR_NOLOCAL", "1"), ("FI_PROVIDER", "tcp")];

/// The path of a program of the tests, with the feature `mpi`; or this path.
///
/// # Panics
/// If there is no such program.
pub fn program(name: &str) -> &Path {
    if name.contains('/') { Path::new(name) } else { executable(name).path() }
}

fn executable(program: &str) -> &'static Executable {
    match program {
        "failing" => &FAILING,
        "phases" => &PHASES,
        "mpi_phases" => &BOOK_PHASES,
        "traffic" => &TRAFFIC,
        "features" => &FEATURES,
        "queens" => &QUEENS,
        "pool" => &POOL,
        "particles" => &PARTICLES,
        "matmul" => &MATMUL,
        "ghost_4_flags" => &FLAGS,
        "ghost_5_balance" => &BALANCE,
        "equipoise" => &EQUIPOISE,
        other => panic!("there is no program {other}"),
    }
}

/// Processes of a launcher that run.
pub struct Job<'a> {
    child: Child,
    sandbox: &'a Sandbox,
    line: String,
    begin: Instant,
    _alone: MutexGuard<'static, ()>,
}

impl<'a> Job<'a> {
    fn start(mut command: Command, sandbox: &'a Sandbox, line: &str) -> Job<'a> {
        let file = |name| File::create(sandbox.path().join(name)).expect("a temporary file can be made");
        // Many tests panic on purpose.
        command.env("RUST_BACKTRACE", "0").current_dir(sandbox.path()).stdin(Stdio::null());
        command.stdout(file("stdout")).stderr(file("stderr"));
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let child = command.spawn().unwrap_or_else(|error| panic!("`{line}` does not start: {error}"));
        Job { child, sandbox, line: line.into(), begin: Instant::now(), _alone: alone }
    }

    /// The ids of the processes that run, by rank.
    pub fn processes(&self) -> BTreeMap<u32, u32> {
        let of = |id: u32| {
            let variables = fs::read(format!("/proc/{id}/environ")).ok()?;
            let rank = String::from_utf8_lossy(&variables).split('\0').find_map(|variable| {
                let (name, value) = variable.split_once('=')?;
                matches!(name, "OMPI_COMM_WORLD_RANK" | "PMI_RANK").then(|| value.parse().ok())?
            });
            Some((rank?, id))
        };
        self.all().into_iter().filter_map(of).collect()
    }

    /// The ids of all processes in the folder of the job, its launcher among them.
    fn all(&self) -> Vec<u32> {
        let folder = fs::canonicalize(self.sandbox.path()).expect("the folder is there");
        let ids = fs::read_dir("/proc").into_iter().flatten().flatten();
        ids.filter(|entry| fs::read_link(entry.path().join("cwd")).is_ok_and(|it| it == folder))
            .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
            .collect()
    }

    /// The id of the launcher.
    pub fn launcher(&self) -> u32 {
        self.child.id()
    }

    /// Kills all processes and their launcher.
    pub fn kill_all(&self) {
        self.all().into_iter().for_each(|id| _ = signal("KILL", id));
    }

    /// Kills the group of the launcher, as a batch system does. Returns whether there was one. Processes that a launcher starts
    /// in groups of their own lose their launcher.
    pub fn kill_group(&self) -> bool {
        let script = format!("kill -s KILL -- -{}", self.launcher());
        Command::new("sh").args(["-c", &script]).status().is_ok_and(|status| status.success())
    }

    /// Kills all processes of the job if its launcher still runs after this time. The launcher of Open MPI hangs when it
    /// loses a process that is about to connect to it.
    ///
    /// # Panics
    /// If the launcher cannot be waited for.
    pub fn kill_after(&mut self, patience: Duration) {
        let begin = Instant::now();
        while self.child.try_wait().expect("a child can be waited for").is_none() {
            if begin.elapsed() > patience {
                return self.kill_all();
            }
            sleep(Duration::from_millis(3));
        }
    }

    /// The output of the job, and the time from its start until all its processes were gone.
    ///
    /// # Panics
    /// If it hangs.
    pub fn end(mut self) -> (ProcessOutput, Duration) {
        let status = loop {
            if let Some(status) = self.child.try_wait().expect("a child can be waited for") {
                break status;
            }
            if self.begin.elapsed() > HUNG {
                self.kill_all();
                // Its id is free for others only then.
                _ = self.child.wait();
                panic!(
                    "`{}` hung: {}{}",
                    self.line,
                    self.sandbox.text("stdout"),
                    self.sandbox.text("stderr")
                );
            }
            sleep(Duration::from_millis(3));
        };
        while !self.all().is_empty() {
            assert!(self.begin.elapsed() < HUNG, "`{}` leaves the processes {:?}", self.line, self.all());
            sleep(Duration::from_millis(3));
        }
        let text = |name| String::from_utf8_lossy(&self.sandbox.bytes(name)).into_owned();
        let (line, stdout, stderr) = (self.line.clone(), text("stdout"), text("stderr"));
        (ProcessOutput { line, code: status.code(), stdout, stderr }, self.begin.elapsed())
    }
}

/// A run of a sample program: its words, its balancer, its processes and their PEs, its carrier, its seed and its initial
/// placement.
#[derive(Clone, Debug)]
pub struct Case {
    program: &'static str,
    balancer: &'static str,
    shape: (usize, usize),
    carrier: Carrier,
    seed: u64,
    initial: &'static str,
}

const PROGRAMS: [&str; 6] = [
    "stencil2d --blocks 4 --cells 16 --iterations 20",
    "stencil3d --blocks 3 --cells 6 --iterations 12",
    "kneighbor --elements 24 --iterations 15 --bytes 64",
    "leanmd --cells 3x3x3 --particles 4 --iterations 6",
    "pic --blocks 4 --cells 3 --particles 3 --iterations 20",
    "amr --blocks 3 --cells 4 --levels 3 --iterations 20",
];
const BALANCERS: [&str; 2] = ["RotateLB", "RandomLB"];
/// Numbers of processes, and of PEs in each.
pub const SHAPES: [(usize, usize); 5] = [(1, 1), (2, 1), (3, 1), (4, 1), (2, 2)];
/// All carriers.
pub const CARRIERS: [Carrier; 2] = [Carrier::SharedMemory, Carrier::Tcp];
const SEEDS: [u64; 2] = [1, 2];
const INITIALS: [&str; 3] = ["blocks", "roundrobin", "random"];

impl Case {
    /// The number of values in each dimension.
    pub const SIZES: [usize; 6] =
        [PROGRAMS.len(), BALANCERS.len(), SHAPES.len(), CARRIERS.len(), SEEDS.len(), INITIALS.len()];

    /// The same case with another seed.
    pub fn with_seed(self, seed: u64) -> Case {
        Case { seed, ..self }
    }

    /// The case with these values, one of each dimension.
    pub fn of(values: &[usize]) -> Case {
        Case {
            program: PROGRAMS[values[0]],
            balancer: BALANCERS[values[1]],
            shape: SHAPES[values[2]],
            carrier: CARRIERS[values[3]],
            seed: SEEDS[values[4]],
            initial: INITIALS[values[5]],
        }
    }

    /// Compares the result of the run with that on threads.
    ///
    /// # Panics
    /// If it is another one, there were other PEs than asked for, or no element migrated.
    pub fn check(&self, launcher: &Launcher) {
        let Case { program, balancer, shape: (processes, pes), seed, initial, .. } = self;
        let line = format!(
            "equipoise run {program} --lb-every 1 --balancer {balancer} --seed {seed} --initial {initial} \
             --time-limit 60 --format json"
        );
        let sandbox = Sandbox::new();
        let threads = start_without_launcher(&sandbox, &format!("{line} --pes 2")).end().0.document();
        let line = format!("{line} --transport mpi --pes-per-process {pes}");
        let document = launcher.start_on(self.carrier, &sandbox, &[(*processes, &line)]).end().0.document();
        let all = processes * pes;
        assert_eq!(
            document["pes"], all,
            "{self:?}; build the programs with the MPI of MPIRUN, as in MPICC=mpicc.mpich MPIRUN=mpirun.mpich"
        );
        assert!(all == 1 || document["migrations"].as_u64() > Some(0), "{self:?}: {document}");
        assert_eq!(crate::without_run(document), crate::without_run(threads), "{self:?}");
    }
}

/// Rows of values, one of each dimension, in which every value meets every value of every other dimension. The dimensions
/// have `sizes` values.
pub fn pairwise(sizes: &[usize]) -> Vec<Vec<usize>> {
    let values = |dimension: usize| (0..sizes[dimension]).map(move |value| (dimension, value));
    let later = |dimension: usize| (dimension + 1..sizes.len()).flat_map(values);
    let mut missing: Vec<_> = (0..sizes.len())
        .flat_map(|dimension| {
            values(dimension).flat_map(move |one| later(dimension).map(move |two| [one, two]))
        })
        .collect();
    let mut rows = Vec::new();
    while let Some(&pair) = missing.first() {
        let mut row = pair.to_vec();
        for dimension in (0..sizes.len()).filter(|dimension| pair.iter().all(|value| value.0 != *dimension)) {
            let gain = |value: &(usize, usize)| {
                let met = |pair: &&[(usize, usize); 2]| {
                    pair.contains(value) && pair.iter().all(|it| it == value || row.contains(it))
                };
                missing.iter().filter(met).count()
            };
            // The first of the best.
            let best = values(dimension).rev().max_by_key(gain).expect("a dimension has values");
            row.push(best);
        }
        missing.retain(|pair| !pair.iter().all(|value| row.contains(value)));
        row.sort_unstable();
        rows.push(row.into_iter().map(|(_, value)| value).collect());
    }
    rows
}
