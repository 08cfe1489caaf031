//! `npb-mz`: the task graphs of the NAS multi-zone benchmarks SP-MZ, BT-MZ and LU-MZ.
//!
//! R. F. Van der Wijngaart, H. Jin, NAS Parallel Benchmarks, Multi-Zone Versions, NAS-03-010, 2003. A grid is cut into
//! zones in two dimensions. In every step, each zone is solved alone ([`zones`]), then sends the points next to its
//! faces to its neighbors, five numbers of 8 bytes per point. The zones form a torus. Processes have zones of about the
//! same total size, and among zones of similar size, neighbors are preferred (`assignment`).
//!
//! A task is a process. Its load is the time for the floating-point operations of its zones in a step at `gigaflops=`.
//! In a step, it sends another process a message per common face of their zones.

use std::collections::BTreeMap;

use super::making::{Generator, Make};
use super::{edge, tasks};
use crate::database::Database;
use crate::params::{Param, Params};

mod assignment;
pub mod zones;

pub use assignment::assign;
pub use zones::{Benchmark, Class, Zones};

/// The generator of the benchmarks' task graphs.
pub(super) const GENERATOR: Generator = Generator {
    name: "npb-mz",
    form: "npb-mz:benchmark=SP,class=D,processes=16",
    help: "A step of the NAS multi-zone benchmarks SP, BT or LU in class S, W, A, B, C or D; zones are \
           assigned to processes as in the benchmarks.",
    params: &[
        Param { key: "benchmark", default: "", help: "SP, BT or LU" },
        Param { key: "class", default: "", help: "S, W, A, B, C or D" },
        Param { key: "processes", default: "zones", help: "processes; `zones`: one for each zone" },
        Param { key: "gigaflops", default: "16", help: "speed of a process in 1e9 operations per second" },
    ],
    item: Make::Arguments(|arguments| Ok(make(arguments)?)),
};

fn make(arguments: &mut Params) -> Result<Database, String> {
    let name: String = arguments.take("benchmark")?;
    let (benchmark, class): (Benchmark, Class) = (name.parse()?, arguments.take("class")?);
    let zones = Zones::of(benchmark, class);
    let processes: String = arguments.take("processes")?;
    let processes = match processes.as_str() {
        "zones" => zones.count(),
        number => {
            number.parse().map_err(|_| format!("processes={number} is not understood: expected a number"))?
        }
    };
    if processes == 0 || processes > zones.count() {
        return Err(format!(
            "processes={processes} is not possible: {}-MZ class {class:?} has {} zones, and each process \
            needs at least one",
            name,
            zones.count()
        ));
    }
    let gigaflops = arguments.take::<f64>("gigaflops")?;
    if !(gigaflops.is_finite() && gigaflops > 0.0) {
        return Err(format!("gigaflops={gigaflops} is not understood: expected a number above 0"));
    }
    let process_of = assign(&zones, processes);
    let mut database = tasks(processes);
    database.arrays = vec!["process".into()];
    let mut flops = vec![0.0; processes];
    let mut sums = BTreeMap::<(u32, u32), [u64; 2]>::new();
    for (zone, &process) in process_of.iter().enumerate() {
        flops[process as usize] += zones.flops(zone);
        for (neighbor, bytes) in zones.faces(zone) {
            let other = process_of[neighbor];
            // A face without inner points sends nothing.
            if other != process && bytes > 0 {
                let [messages, sum] = sums.entry((process, other)).or_default();
                *messages += 1;
                *sum += bytes;
            }
        }
    }
    for (object, flops) in database.objects.iter_mut().zip(flops) {
        object.load_seconds = flops / (1e9 * gigaflops);
    }
    database.edges =
        sums.into_iter().map(|((from, to), [messages, bytes])| edge(from, to, messages, bytes)).collect();
    Ok(database)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::database::End;
    use crate::graph::load;
    use crate::testing::reference;

    /// Checks the total bytes of a step and the degrees of the processes.
    #[track_caller]
    fn check(spec: &str, total: std::ops::RangeInclusive<u64>, degrees: &[usize]) {
        let database = load(spec).expect(spec);
        assert_eq!(database.check(), Ok(()), "{spec}");
        let bytes: u64 = database.edges.iter().map(|edge| edge.bytes).sum();
        assert!(total.contains(&bytes), "{spec}: {bytes}");
        let mut found = vec![0; database.objects.len()];
        for edge in &database.edges {
            let End::Object(from) = edge.from else { panic!("processes send") };
            found[from as usize] += 1;
        }
        let expected = if let [all] = degrees { vec![*all; found.len()] } else { degrees.to_vec() };
        assert_eq!(found, expected, "{spec}");
    }

    #[test]
    fn volumes_and_degrees_equal_those_of_the_benchmarks() {
        let irregular = [7, 7, 7, 7, 7, 7, 6, 6, 3, 2, 2, 2, 2, 2, 8, 5];
        check("npb-mz:benchmark=SP,class=D,processes=16", 91_776_000..=91_776_000, &irregular);
        check("npb-mz:benchmark=SP,class=C,processes=16", 9_575_000..=9_585_000, &[2]);
        check("npb-mz:benchmark=SP,class=B,processes=16", 2_525_000..=2_535_000, &[3]);
        check("npb-mz:benchmark=BT,class=D,processes=16", 110_650_000..=110_750_000, &[15]);
        check("npb-mz:benchmark=LU,class=D,processes=16", 28_950_000..=29_050_000, &[4]);
        // The default is one process per zone; on a torus of 2x2, neighbors in both directions coincide.
        check("npb-mz:benchmark=SP,class=W", 16 * 4 * 3360..=16 * 4 * 3360, &[4]);
        check("npb-mz:benchmark=SP,class=S", 4 * 4 * 1600..=4 * 4 * 1600, &[2]);
        check("npb-mz:benchmark=BT,class=A,processes=1", 0..=0, &[0]);
    }

    #[test]
    fn matrices_equal_those_of_the_reference_data() {
        for (class, file) in [("D", "spmz_D16_comm"), ("C", "spmz_C16_comm"), ("B", "spmz_B16_comm")] {
            let Some(text) = reference(&format!("simgrid/{file}.json")) else { return };
            let written: serde_json::Value = serde_json::from_str(&text).expect("JSON");
            let database = load(&format!("npb-mz:benchmark=SP,class={class},processes=16,gigaflops=1"));
            let database = database.expect("SP-MZ");
            let mut found = vec![vec![[0, 0]; 16]; 16];
            for edge in &database.edges {
                let (End::Object(from), End::Object(to)) = (edge.from, edge.to) else { panic!("{edge:?}") };
                found[from as usize][to as usize] = [edge.bytes, edge.messages];
            }
            for (from, row) in found.iter().enumerate() {
                for (to, [bytes, messages]) in row.iter().enumerate() {
                    assert_eq!(written["comm_bytes_per_step"][from][to], *bytes, "{file}: {from} to {to}");
                    assert_eq!(written["msgs_per_step"][from][to], *messages, "{file}: {from} to {to}");
                }
                let flops = written["flops_per_task"][from].as_f64().expect("a number");
                let ours = 1e9 * database.objects[from].load_seconds;
                assert!((ours / flops - 1.0).abs() < 1e-12, "{file}: {ours} {flops}");
            }
            let zones = Zones::of(Benchmark::Sp, class.parse().expect("a class"));
            let owners: Vec<u64> = assign(&zones, 16).into_iter().map(u64::from).collect();
            assert_eq!(written["zone_owner"], serde_json::json!(owners), "{file}");
        }
    }

    #[test]
    fn errors_name_the_problem() {
        for (spec, expected) in [
            ("npb-mz:benchmark=FT,class=D", "there is no benchmark `FT`; known are SP, BT and LU"),
            ("npb-mz:benchmark=SP,class=G", "there is no class `G`; known are S, W, A, B, C and D"),
            ("npb-mz:benchmark=SP", "`class=` must be given"),
            ("npb-mz:class=D", "`benchmark=` must be given"),
            ("npb-mz:SP,class=D", "expected key=value, found `SP`"),
            ("npb-mz:benchmark=LU,class=D,processes=17", "LU-MZ class D has 16 zones"),
            ("npb-mz:benchmark=LU,class=D,processes=0", "processes=0 is not possible"),
            ("npb-mz:benchmark=LU,class=D,gigaflops=0", "expected a number above 0"),
            ("npb-mz:benchmark=LU,clas=D", "npb-mz has no parameter `clas` (did you mean `class`?)"),
        ] {
            let error = load(spec).map(|_| ()).expect_err(expected).to_string();
            assert!(error.contains(expected), "{spec}: `{error}` does not contain `{expected}`");
        }
    }
}
