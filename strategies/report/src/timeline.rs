//! The timeline of the PEs of a recorded run.

use equipoise_network::trace::{Step, Trace};

use crate::digits::rounded;
use crate::heat::{Heat, MAX_BINS};
use crate::windows::{WINDOWS, Windows};

/// Which part of each of 512 intervals every PE worked. Work at speeds other than 1 takes the time that it would take at speed 1.
/// The columns are times since the begin of the run, of which the trace may have only the end.
pub fn timeline(trace: &Trace) -> Option<Heat> {
    let pes = trace.pes as usize;
    let windows = Windows::new(trace.seconds).filter(|_| !trace.executions.is_empty())?;
    let pes_per_row = pes.div_ceil(MAX_BINS).max(1);
    let rows = pes.div_ceil(pes_per_row);
    let mut busy = vec![0.0; WINDOWS * rows];
    for execution in &trace.executions {
        let work: f64 = execution
            .steps
            .iter()
            .map(|step| match step {
                Step::Work(seconds) => *seconds,
                Step::Send(_) => 0.0,
            })
            .sum();
        let begin = execution.begin_seconds;
        for (column, seconds) in windows.parts(begin, begin + work) {
            let row = execution.pe as usize / pes_per_row;
            if let Some(cell) = busy.get_mut(column * rows + row) {
                *cell += seconds;
            }
        }
    }
    let mut heat = Heat::default();
    for (column, begin) in windows.begins().enumerate() {
        let parts: Vec<f64> = (0..pes)
            .map(|pe| {
                let row = pe / pes_per_row;
                let in_row = pes_per_row.min(pes - row * pes_per_row) as f64;
                (busy[column * rows + row] / (windows.seconds * in_row)).min(1.0)
            })
            .collect();
        heat.push(trace.details.begins_seconds + begin, &parts, None);
    }
    Some(heat.finished())
}

/// The load-balancing steps of a trace: (number, begin in seconds after that of the run).
pub fn steps(trace: &Trace) -> Vec<(u64, f64)> {
    let details = &trace.details;
    let begin = |seconds: f64| rounded(details.begins_seconds + seconds, 6);
    details.steps.iter().map(|step| (step.number, begin(step.begin_seconds))).collect()
}

#[cfg(test)]
mod tests {
    use equipoise_network::trace::{Details, Execution, LbStep};

    use super::*;

    #[test]
    fn an_execution_fills_the_columns_of_its_time() {
        let execution = Execution::new(1, 1, 2.0, None, vec![Step::Work(2.0)]);
        let trace = Trace { pes: 2, seconds: 8.0, executions: vec![execution], ..Trace::default() };
        let heat = timeline(&trace).expect("a timeline");
        let full =
            |pe: usize| heat.cells.iter().skip(pe).step_by(heat.rows).filter(|&&cell| cell == 1000).count();
        assert_eq!((full(0), full(1)), (0, 128));
        // PE 1 is busy in the third quarter.
        let scales = |range: std::ops::Range<usize>, scale| heat.scales[range].iter().all(|&it| it == scale);
        assert!(scales(0..128, 0.0) && scales(128..256, 1.0) && scales(256..512, 0.0), "{:?}", heat.scales);
        let short = Execution::new(0, 0, 0.0, None, vec![Step::Work(0.5 / 512.0)]);
        let half = Trace { pes: 1, seconds: 1.0, executions: vec![short], ..Trace::default() };
        assert_eq!(timeline(&half).expect("a timeline").scales[0], 0.5);
        assert_eq!(timeline(&Trace::default()), None);
    }

    #[test]
    fn a_trace_in_part_begins_where_its_recording_does() {
        // As the runtime writes it: the times are those since the begin of the recording.
        let execution = Execution::new(0, 0, 0.0, None, vec![Step::Work(1.0)]);
        let step = LbStep {
            number: 3,
            strategy: "Rotate".into(),
            begin_seconds: 1.5,
            end_seconds: 1.6,
            migrations: 1,
            max_over_avg: [1.0, 1.0],
        };
        let details = Details { begins_seconds: 6.0, steps: vec![step], ..Details::default() };
        let trace = Trace { pes: 1, seconds: 2.0, executions: vec![execution], details, ..Trace::default() };
        let heat = timeline(&trace).expect("a timeline");
        let full = heat.cells.iter().take_while(|&&cell| cell == 1000).count();
        assert_eq!((heat.columns[0], full, heat.cells[full]), (6.0, 256, 0));
        assert_eq!((heat.scales[0], heat.scales[full]), (1.0, 0.0));
        assert_eq!((heat.columns[256], steps(&trace)), (7.0, vec![(3, 7.5)]));
    }
}
