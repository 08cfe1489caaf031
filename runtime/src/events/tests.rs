//! Tests of logs and of the traces made from them.

use super::join::{Names, ProcessEvents, join};
use super::*;
use equipoise_network::trace::{Step, Trace};

fn log(pe: u32, chunks: u64) -> EventLog {
    EventLog::new(pe, pe, 2, chunks * CHUNK_BYTES)
}

/// The trace of the logs of two PEs of a process, which began at `start`.
fn joined(logs: [EventLog; 2], start: quanta::Instant) -> Trace {
    let pes = logs.iter().map(|log| log.finish(start)).collect();
    let names = Names {
        arrays: vec!["Some".into()],
        expedited: vec![false],
        entries: vec![vec!["first".into(), "second".into()]],
        element: &|(_, rank)| format!("Some[{rank}, 7]"),
    };
    let head = Trace { pes: 2, ..Trace::default() };
    let trace = join(head, &names, &mut [ProcessEvents { process: 0, alignment: Alignment::default(), pes }]);
    assert_eq!(trace.check(), Ok(()));
    trace
}

#[test]
fn the_oldest_events_are_dropped_and_counted() {
    let start = quanta::Instant::now();
    let logs = [log(0, 3), log(1, 3)];
    for log in &logs {
        log.resumes();
    }
    let events = 5 * CHUNK;
    for nth in 0..events {
        logs[0].begins();
        logs[0].ends(0, 1, nth as u32, 0.0);
    }
    let trace = joined(logs, start);
    let kept = trace.executions.len();
    assert!((2 * CHUNK..3 * CHUNK).contains(&kept), "{kept}");
    // The first record is that the PE has resumed; the first execution that is left has no begin.
    assert_eq!(trace.details.dropped_events as usize, events + 1 - kept - 1);
    assert!(trace.details.begins_seconds > 0.0);
    let last = trace.objects.last().expect("an object");
    assert_eq!((last.rank as usize, trace.executions[0].begin_seconds), (events - 1, 0.0));
}

#[test]
fn messages_orders_and_guards_cause_executions() {
    let start = quanta::Instant::now();
    let [one, two] = [log(0, 2), log(1, 2)];
    // Element 0 on PE 0 sends to element 5 on PE 1 and to itself, and PE 0 broadcasts.
    one.resumes();
    one.begins();
    let to_five = one.sends(0, 5, 1, 100);
    let to_itself = one.sends(0, 0, 0, 8);
    one.posts(RUN, 1, 30);
    one.ends(0, 0, 0, 0.0);
    one.takes(to_itself);
    one.begins();
    one.ends(0, 1, 0, 2.5);
    // PE 1 keeps the message, executes the order with element 6, and then delivers what it has kept.
    two.resumes();
    two.takes(to_five);
    two.keeps_pending(0, 1, 5, 1);
    two.takes_order(RUN, 0, None);
    two.begins();
    two.ends(0, 0, 6, 0.0);
    two.ends_order();
    two.releases(0, 5, 0, 1);
    two.begins();
    two.exits();
    two.ends(0, 1, 5, 0.0);
    let trace = joined([one, two], start);
    let found: Vec<_> = trace
        .executions
        .iter()
        .zip(&trace.details.calls)
        .map(|(it, call)| {
            (it.pe, trace.details.indices[it.object as usize - 2].as_str(), it.cause, call.entry)
        })
        .collect();
    let of_pe = |pe| found.iter().filter(|it| it.0 == pe).copied().collect::<Vec<_>>();
    assert_eq!(of_pe(0), [(0, "[0, 7]", None, Some(0)), (0, "[0, 7]", Some(1), Some(1))]);
    assert_eq!(of_pe(1), [(1, "[6, 7]", Some(2), Some(0)), (1, "[5, 7]", Some(0), Some(1))]);
    let bytes: Vec<_> = trace.messages.iter().map(|it| (it.pe, it.bytes)).collect();
    assert_eq!(bytes, [(1, 100), (0, 8), (1, 30)]);
    assert_eq!(trace.details.calls.iter().map(|call| call.charged_seconds).sum::<f64>(), 2.5);
    let [wait] = trace.details.waits[..] else { panic!("{:?}", trace.details.waits) };
    assert!(wait.begin_seconds <= wait.end_seconds && (wait.entry, wait.pe) == (1, 1), "{wait:?}");
    assert_eq!(trace.exit, Some(3));
    let sends = trace.executions[0].steps.iter().filter(|step| matches!(step, Step::Send(_)));
    assert_eq!(sends.count(), 3);
}

#[test]
fn a_message_whose_send_was_dropped_waits_for_the_work_before() {
    let start = quanta::Instant::now();
    let [one, two] = [log(0, 2), log(1, 2)];
    one.resumes();
    one.begins();
    one.ends(0, 0, 0, 0.0);
    one.takes(FIRST_MESSAGE + 99);
    // Of two kept messages, only the second is in the log.
    one.keeps_pending(0, 1, 1, 2);
    one.releases(0, 1, 0, 2);
    one.begins();
    one.ends(0, 0, 1, 0.0);
    let trace = joined([one, two], start);
    let causes: Vec<_> = trace.executions.iter().map(|it| (it.cause, it.after.clone())).collect();
    assert_eq!(causes, [(None, vec![]), (None, vec![0])]);
    assert!(trace.details.waits.is_empty(), "no record says since when it waited");
}
