//! All readers of files and parsers of specs. Formats come from the registries: a new one has golden inputs from its
//! writer, or the list cannot be made.

use std::fs;
use std::path::Path;

use equipoise::model::assignment::{MappingFile, mapping_file};
use equipoise::model::constraints::files::{self as constraint_files, ConstraintsError};
use equipoise::model::constraints::{Group, PerPe, Place};
use equipoise::model::database::{Dump, vt};
use equipoise::model::descriptor::{Descriptor, split};
use equipoise::model::graph::{self, Matrix};
use equipoise::model::launcher::{self, Job, Slots};
use equipoise::model::numbers::Numbers;
use equipoise::model::replica_plan::ReplicaPlan;
use equipoise::model::topology;
use equipoise::network::models::{self, batch};
use equipoise::network::program::{self, convert};
use equipoise::network::trace::{Call, Details, LbStep, Memory, Migration, Trace, Wait};
use equipoise::strategies::cost::catalogue;
use equipoise::strategies::schedule::Schedule;
use equipoise::strategies::{registry, workloads};

use super::checksums::correct_checksums;
use super::golden::{DATA, DATABASE, GRAPHS, MACHINES, MESSAGES, PICL, PICL_WORDS, PROGRAM, SCHEDULE, TRACE};
use super::{Read, Reader, is_small};

/// All readers of files and parsers of specs.
///
/// # Panics
/// If a format of a registry has no golden input, or a golden input is rejected.
pub fn readers() -> Vec<Reader> {
    let mut all = databases();
    all.extend(graphs());
    all.extend(machines());
    all.extend(launchers());
    all.extend(runs());
    all.extend(experts());
    all.extend(constraints());
    all.extend(super::checkpoint::readers());
    all.extend(specs());
    all
}

/// A reader of files that any command reads.
fn file<E: ToString>(
    name: &str,
    file: &'static str,
    golden: Vec<Vec<u8>>,
    command: &str,
    read: impl Fn(&str) -> Result<(), E> + 'static,
) -> Reader {
    let read: Read = Box::new(move |path| read(path).map_err(|error| error.to_string()));
    Reader { name: name.into(), file, golden, command: command.into(), repair: |_| (), read }
}

/// A reader of text; its error has the file and the line in front, as in commands.
fn text<T>(
    name: &str,
    named: &'static str,
    golden: &[&str],
    command: &str,
    read: impl Fn(&str) -> Result<T, (usize, String)> + 'static,
) -> Reader {
    let read = move |path: &str| {
        let text =
            equipoise::model::files::text(Path::new(path)).map_err(|unread| format!("{path}: {unread}"))?;
        let sentence =
            |(line, reason)| equipoise::model::quote::sentence(&format!("{path}:{line}: {reason}"));
        read(&text).map(|_| ()).map_err(sentence)
    };
    file(name, named, bytes(golden), command, read)
}

fn bytes(texts: &[&str]) -> Vec<Vec<u8>> {
    texts.iter().map(|text| text.as_bytes().to_vec()).collect()
}

/// The bytes that `write` writes to a file with this name.
fn written<E: ToString>(name: &str, write: impl FnOnce(&Path) -> Result<(), E>) -> Vec<u8> {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let path = folder.path().join(name);
    if let Err(error) = write(&path) {
        panic!("{name}: {}", error.to_string());
    }
    fs::read(&path).expect("a written file can be read")
}

/// Reads a database. Loads that are accepted have finite sums.
fn read_database(path: &str) -> Result<(), String> {
    for database in Dump::read(path).map_err(|error| error.to_string())?.steps {
        let loads = database.pe_loads(&database.placement());
        assert!(loads.iter().sum::<f64>().is_finite(), "the sum of loads is not finite");
    }
    Ok(())
}

/// A file of an older version.
fn golden_file(name: &str) -> Vec<u8> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("golden");
    fs::read(folder.join(name)).expect("a file of the workspace can be read")
}

fn databases() -> Vec<Reader> {
    let dump = {
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        fs::write(folder.path().join("lb.json"), DATABASE).expect("a file can be written");
        Dump::read(folder.path().join("lb.json")).expect("the golden database is valid")
    };
    let older = ["database.v1.db", "database.v2.db"].map(golden_file);
    let binary = [vec![written("lb.db", |path| dump.write(path))], older.to_vec()].concat();
    let json = [DATABASE.into(), written("lb.json", |path| dump.write(path))].to_vec();
    let data =
        |name: &str| fs::read(Path::new(DATA).join(name)).expect("a file of the workspace can be read");
    let vt_files = vec![data("vt/data.0.json"), data("vt/data.1.json")];
    let packed = vt_files.iter().map(|text| vt::pack(text).expect("it can be compressed")).collect();
    let inspect = "inspect {}";
    let mut binary = file("database_binary", "lb.db", binary, inspect, read_database);
    // The version follows the magic bytes.
    binary.repair = |input| {
        let has_sections = input.get(8).is_some_and(|&version| version > 2);
        correct_checksums(input, 12, has_sections);
    };
    vec![
        binary,
        file("database_json", "lb.json", json, inspect, read_database),
        file("database_charm", "lb.dat.0", vec![data("leanmd_333_1053.dat.0")], inspect, read_database),
        file("database_vt", "vt.json", vt_files, inspect, read_database),
        file("database_vt_brotli", "vt.json.br", packed, inspect, read_database),
    ]
}

fn graphs() -> Vec<Reader> {
    let tasks = graph::load("mesh:3x2,bytes=100").expect("a mesh");
    let format = |extension: &'static str| {
        let name: &'static str = String::leak(format!("tasks.{extension}"));
        let mut golden = vec![written(name, |path| graph::write(path, &tasks).map(|_| ()))];
        golden.extend(bytes(&by_key(GRAPHS, extension)));
        let read = |path: &str| graph::load(path).map(|_| ());
        file(&format!("graph_{extension}"), name, golden, "inspect {}", read)
    };
    let mut all: Vec<Reader> = graph::formats().map(|(extension, _)| format(extension)).collect();
    let golden = bytes(&by_key(GRAPHS, "mtx")[..1]);
    let numerical = b"%%MatrixMarket matrix coordinate real general\n2 2 2\n1 1 0.5\n1 2 -1e3\n".to_vec();
    let golden = [golden, vec![numerical]].concat();
    all.push(file("matrix", "matrix.mtx", golden, "inspect spmv:2,{}", |path| {
        Matrix::load(path).map(|_| ())
    }));
    all
}

fn by_key<'a>(all: &[(&str, &'a str)], key: &str) -> Vec<&'a str> {
    all.iter().filter(|entry| entry.0 == key).map(|entry| entry.1).collect()
}

fn machines() -> Vec<Reader> {
    let mut all: Vec<Reader> = Vec::new();
    for &(kind, name, golden) in MACHINES {
        let extension = name.rsplit('.').next().unwrap_or_default();
        let target = format!("machine_{kind}_{extension}");
        if let Some(known) = all.iter_mut().find(|known| known.name == target) {
            known.golden.push(golden.into());
            continue;
        }
        let read = move |path: &str| topology::parse(&format!("{kind}:{path}")).map(|_| ());
        all.push(file(&target, name, bytes(&[golden]), &format!("topology {kind}:{{}}"), read));
    }
    let nodes = bytes(&["# nodes\n3\n0\n\n15\n"]);
    let read = |path: &str| topology::parse(&format!("torus:4x4[@{path}]")).map(|_| ());
    all.push(file("allocation", "nodes.txt", nodes, "topology torus:4x4[@{}]", read));
    all
}

fn launchers() -> Vec<Reader> {
    let format = |format: &'static launcher::Format| {
        let cluster = || format!("(slurm:{DATA}/topology.conf*flat:2)[2-5,10-11]");
        let spec = if format.name == "fugaku" { "torus:3x1*flat:2".into() } else { cluster() };
        let slots = Slots::of(&*topology::parse(&spec).expect("a machine"), 1);
        let job = Job::new(&[3, 0, 2, 1, 5, 4], &slots).expect("a slot for each rank");
        let golden = launcher::text(format, &job).expect("the format can represent the placement");
        let command = format!("launcher {}={{}} --topology {spec}", format.name);
        let read = move |path: &str| launcher::read(Path::new(path), format, &slots).map(|_| ());
        file(&format!("launcher_{}", format.name), "ranks.txt", bytes(&[&golden]), &command, read)
    };
    launcher::ALL.iter().copied().map(format).collect()
}

/// The golden trace with all details.
fn detailed(trace: Trace) -> Trace {
    let step = LbStep {
        number: 1,
        strategy: "GreedyLB".into(),
        begin_seconds: 3.0,
        end_seconds: 4.0,
        migrations: 1,
        max_over_avg: [1.5, 1.25],
    };
    let details = Details {
        entries: vec![vec!["begin".into(), "edge".into()]],
        indices: trace.objects.iter().map(|object| format!("[{}]", object.rank)).collect(),
        calls: vec![Call { entry: Some(1), charged_seconds: 0.5 }; trace.executions.len()],
        waits: vec![Wait { object: trace.pes, entry: 1, pe: 0, begin_seconds: 1.0, end_seconds: 2.0 }],
        migrations: vec![Migration { object: trace.pes, from: 0, to: 1, seconds: 3.5 }],
        steps: vec![step],
        memory: vec![Memory { pe: 0, seconds: 1.0, bytes: 4096 }],
        dropped_events: 5,
        begins_seconds: 0.25,
        clock_error_seconds: 1e-6,
    };
    Trace { details, ..trace }
}

/// What is recorded of runs, or controls them.
fn runs() -> Vec<Reader> {
    let trace: Trace = serde_json::from_str(TRACE).expect("the golden trace is valid");
    let read_trace = |path: &str| Trace::read(path).map(|_| ());
    let events = "simulate --events {}";
    let detailed = detailed(trace.clone());
    let binary = vec![
        written("run.trace", |path| trace.write(path)),
        written("detailed.trace", |path| detailed.write(path)),
        golden_file("trace.v3"),
    ];
    let documents = vec![TRACE.into(), written("detailed.json", |path| detailed.write(path))];
    let mut binary = file("trace_binary", "run.trace", binary, events, read_trace);
    // The version is the second last of the magic bytes.
    binary.repair = |input| {
        let has_sections = input.get(6).is_some_and(|&version| version > 3);
        correct_checksums(input, 8, has_sections);
    };
    let mapping = vec![written("lb.map", |path| mapping_file::write(path, &[1, 0, 1, 0]))];
    let evaluate = "evaluate --graph ring:4 --topology flat:2 --mapping {}";
    let picl = |text: &str| {
        convert::picl(text, 1e-6).map_err(|error| match error {
            convert::ConvertError::Trace(Some(line), reason) => (line, reason),
            // The remedy is another `--cycle`, not another line.
            other => (1, other.to_string()),
        })
    };
    let schedule = |text: &str| Schedule::parse_file(text, &[]).map_err(|error| (error.line, error.reason));
    let messages = "simulate --topology torus:4x4 --network ideal --messages {}";
    vec![
        binary,
        file("trace_json", "run.json", documents, events, read_trace),
        file("program", "pair.tcg", bytes(&[PROGRAM]), "inspect --program {}", |path| {
            program::load(path).map(|_| ())
        }),
        file("mapping", "lb.map", mapping, evaluate, |path| MappingFile::read(Path::new(path)).map(|_| ())),
        text("picl", "run.trf", &[PICL, PICL_WORDS], "convert {} out.tcg", picl),
        text("messages", "messages.csv", &[MESSAGES], messages, |text| batch::read(text, 16)),
        text("schedule", "lb.schedule", &[SCHEDULE], "", schedule),
    ]
}

/// What `equipoise experts` reads.
fn experts() -> Vec<Reader> {
    let read = |path: &str| Numbers::read(Path::new(path)).map(|_| ());
    let numbers = |extension: &str, name: &'static str, golden: &[&str]| {
        let command = "experts --loads {} --replicas 4 --topology flat:2";
        file(&format!("numbers_{extension}"), name, bytes(golden), command, read)
    };
    let npy = "\u{1}\0\u{3c}\0{'descr': '|u1', 'fortran_order': False, 'shape': (2, 3), }\n\u{1}\u{2}\u{3}\u{4}\u{5}\u{6}";
    let mut array = numbers("npy", "loads.npy", &[]);
    array.golden = vec![[b"\x93NUMPY".as_slice(), npy.as_bytes()].concat()];
    let plan = ReplicaPlan {
        topology: "flat:2".into(),
        experts: 3,
        physical_to_logical: vec![vec![0, 1, 2, 0], vec![2, 1, 0, 1]],
    };
    let plan = written("plan.json", |path| plan.write(path));
    vec![
        array,
        numbers("csv", "loads.csv", &["# loads\n1,2.5,3\n4 5 6e2\n"]),
        numbers("json", "loads.json", &["[[1, 2.5, 3], [4, 5, 6e2]]"]),
        file("replica_plan", "plan.json", vec![plan], "", |path| {
            ReplicaPlan::read(Path::new(path)).map(|_| ())
        }),
    ]
}

/// The files of constraints. The commands that read them print times, so they are not compared.
fn constraints() -> Vec<Reader> {
    let reader = |name: &'static str, golden: &str, read: fn(&str) -> Result<(), ConstraintsError>| {
        file(name, name, bytes(&[golden]), "", read)
    };
    vec![
        reader("places", "0 1\n1 0-1\n2 !node:1\n3 0,1 0.5\n", |path| {
            Place::read(Path::new(path)).map(|_| ())
        }),
        reader("groups", "together node 0 1\napart pe 2-3\n", |path| {
            Group::read(Path::new(path)).map(|_| ())
        }),
        reader("numbers_by_pe", "2\n4k\n", |path| PerPe::read("numbers", path).map(|_| ())),
        reader("sizes", "0 1\n1 2k\n2,3\n3 4\n", |path| constraint_files::sizes(Path::new(path)).map(|_| ())),
        reader("phases", "0 1 2\n1 0.5 1e-3\n2 0 0\n3 1 1\n", |path| {
            constraint_files::phases(Path::new(path)).map(|_| ())
        }),
    ]
}

/// The parsers of specs. Golden specs are the forms in the help that are specs, and names with the default of each key.
fn specs() -> Vec<Reader> {
    let spec = |name: &str, command: &str, golden: Vec<String>, read: fn(&str) -> Result<(), String>| {
        let golden: Vec<String> =
            golden.into_iter().filter(|spec| is_small(spec) && read(spec).is_ok()).collect();
        assert!(!golden.is_empty(), "{name} has no golden spec");
        file(name, "", golden.into_iter().map(String::into_bytes).collect(), command, read)
    };
    let machine = |spec: &str| topology::parse(spec).map(|_| ()).map_err(|error| error.to_string());
    let mut machines = examples(topology::ALL.iter().copied());
    let more = "flat:4;torus:4x4*tree:2:4/2:1;torus:4x4[0-3,8];mesh:4[random:2,seed=1];(flat:2*flat:2)[3,0]";
    machines.extend(more.split(';').map(String::from));
    for kind in topology::ALL {
        let has_golden = MACHINES.iter().any(|golden| golden.0 == kind.name);
        let is_spec = |spec: &String| split(spec).0 == kind.name && machine(spec).is_ok();
        assert!(
            has_golden || machines.iter().any(is_spec),
            "{} has no golden input: add one to MACHINES",
            kind.name
        );
    }
    let strategies = examples(registry::ALL.iter().copied());
    let pipelines = strategies.windows(2).map(|pair| pair.join("+")).collect::<Vec<_>>();
    vec![
        spec("spec_machine", "topology {}", machines, machine),
        spec(
            "spec_strategy",
            "map --graph ring:8 --topology torus:4 --balancer {}",
            [strategies, pipelines].concat(),
            |spec| registry::parse(spec, &[]).map(|_| ()).map_err(|error| error.to_string()),
        ),
        spec(
            "spec_network",
            "simulate --graph ring:8 --topology torus:4 --network {}",
            examples(models::ALL.iter().copied()),
            |spec| models::parse(spec).map(|_| ()).map_err(|error| error.to_string()),
        ),
        spec("spec_graph", "inspect {}", examples(graph::generate::ALL.iter().copied()), |spec| {
            workloads::load(spec).map(|_| ()).map_err(|error| error.to_string())
        }),
        spec(
            "spec_program",
            "inspect --program {}",
            examples(program::generate::ALL.iter().copied()),
            |spec| program::load(spec).map(|_| ()).map_err(|error| error.to_string()),
        ),
        spec("spec_cost", "", catalogue::ALL.iter().map(|entry| entry.name.to_string()).collect(), |spec| {
            catalogue::parse(spec).map(|_| ()).map_err(|error| error.to_string())
        }),
    ]
}

/// The forms of the entries of a registry, and their names with each key and its default.
fn examples<T: 'static>(all: impl Iterator<Item = &'static Descriptor<T>>) -> Vec<String> {
    let of = |entry: &'static Descriptor<T>| {
        let keys: Vec<String> =
            entry.params.iter().map(|key| format!("{}={}", key.key, key.default)).collect();
        let mut forms: Vec<String> = entry.form.split(", ").map(String::from).collect();
        forms.extend([entry.name.to_string(), format!("{}:{}", entry.name, keys.join(","))]);
        // The forms in the help make large graphs.
        let small = forms
            .iter()
            .map(|form| form.replace(|letter: char| letter.is_ascii_digit(), "4").replace("44", "4"));
        forms.extend(small.collect::<Vec<_>>());
        forms
    };
    all.flat_map(of).collect()
}
