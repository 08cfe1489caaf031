//! `npb-mz`: the task graphs of the multi-zone benchmarks of NAS, SP-MZ, BT-MZ and LU-MZ.
//!
//! R. F. Van der Wijngaart, H. Jin, NAS Parallel Benchmarks, Multi-Zone Versions, NAS-03-010, 2003. A grid is cut
//! into zones in two of its dimensions; in every step each zone is solved alone ([`zones`]), then sends the points
//! beside its faces to its neighbors, five numbers of 8 bytes each. The zones lie on a torus. Each process has
//! zones of about the same size together, and of zones of about the same size those that are neighbors
//! (`assignment`).
//!
//! A task is a process: its load are the floating-point operations of its zones in a step at `gigaflops=`, and what
//! it sends another one in a step is a message for each face between their zones.

use std::collections::BTreeMap;
use std::str::FromStr;

use super::generate::{Arguments, Generator, Make};
use super::{edge, tasks};
use crate::database::Database;

mod assignment;
pub mod zones;

pub use assignment::assign;
pub use zones::{Benchmark, Class, Zones};

/// The generator of the benchmarks' task graphs.
pub(super) const GENERATOR: Generator = Generator {
    name: "npb-mz",
    form: "npb-mz:benchmark=SP,class=D,processes=16",
    help: "A step of NAS's multi-zone benchmarks SP, BT or LU in class S, W, A, B, C or D, zones assigned to processes \
           as the benchmarks do (processes=: one for each zone if left out). gigaflops=16: how fast a process is.",
    keys: &["benchmark", "class", "processes", "gigaflops"],
    make: Make::Arguments(|arguments| Ok(make(arguments)?)),
};

fn make(arguments: &Arguments) -> Result<Database, String> {
    if arguments.positional([""]).is_ok_and(|[text]| !text.is_empty())
        || arguments.positional(["", ""]).is_ok()
    {
        return Err("it takes named arguments only, as in npb-mz:benchmark=SP,class=D,processes=16".into());
    }
    let benchmark: Benchmark = named(arguments, "benchmark")?;
    let class: Class = named(arguments, "class")?;
    let zones = Zones::of(benchmark, class);
    let processes = arguments.take("processes", Some(zones.count()))?;
    if processes == 0 || processes > zones.count() {
        return Err(format!(
            "processes={processes} is not possible: {}-MZ class {class:?} has {} zones, and each process has one at \
             least",
            arguments.take::<String>("benchmark", None)?,
            zones.count()
        ));
    }
    let gigaflops = arguments.take("gigaflops", Some(16.0f64))?;
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
            // A face without inner points has nothing to send.
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

/// The value of a key that must be given.
fn named<T: FromStr<Err = String>>(arguments: &Arguments, key: &str) -> Result<T, String> {
    arguments.take::<String>(key, None)?.parse()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::database::End;
    use crate::graph::load;
    use crate::testing::reference;

    /// (bytes of a step, degrees of the processes).
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
    fn volumes_and_degrees_are_those_of_the_benchmarks() {
        let irregular = [7, 7, 7, 7, 7, 7, 6, 6, 3, 2, 2, 2, 2, 2, 8, 5];
        check("npb-mz:benchmark=SP,class=D,processes=16", 91_776_000..=91_776_000, &irregular);
        check("npb-mz:benchmark=SP,class=C,processes=16", 9_575_000..=9_585_000, &[2]);
        check("npb-mz:benchmark=SP,class=B,processes=16", 2_525_000..=2_535_000, &[3]);
        check("npb-mz:benchmark=BT,class=D,processes=16", 110_650_000..=110_750_000, &[15]);
        check("npb-mz:benchmark=LU,class=D,processes=16", 28_950_000..=29_050_000, &[4]);
        // A zone is a process unless something else is said; on a torus of 2x2 both neighbors are the same.
        check("npb-mz:benchmark=SP,class=W", 16 * 4 * 3360..=16 * 4 * 3360, &[4]);
        check("npb-mz:benchmark=SP,class=S", 4 * 4 * 1600..=4 * 4 * 1600, &[2]);
        check("npb-mz:benchmark=BT,class=A,processes=1", 0..=0, &[0]);
    }

    #[test]
    fn the_matrices_of_the_reference_are_met_exactly() {
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
    fn what_no_benchmark_is_is_said() {
        for (spec, expected) in [
            ("npb-mz:benchmark=FT,class=D", "there is no benchmark `FT`; known are SP, BT and LU"),
            ("npb-mz:benchmark=SP,class=G", "there is no class `G`; known are S, W, A, B, C and D"),
            ("npb-mz:benchmark=SP", "`class=` must be given"),
            ("npb-mz:class=D", "`benchmark=` must be given"),
            ("npb-mz:SP,class=D", "it takes named arguments only"),
            ("npb-mz:benchmark=LU,class=D,processes=17", "LU-MZ class D has 16 zones"),
            ("npb-mz:benchmark=LU,class=D,processes=0", "processes=0 is not possible"),
            ("npb-mz:benchmark=LU,class=D,gigaflops=0", "expected a number above 0"),
            ("npb-mz:benchmark=LU,clas=D", "it takes no `clas` (did you mean `class`?)"),
        ] {
            let error = load(spec).map(|_| ()).expect_err(expected).to_string();
            assert!(error.contains(expected), "{spec}: `{error}` does not contain `{expected}`");
        }
    }
}
