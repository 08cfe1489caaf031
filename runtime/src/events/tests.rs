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
    // No record says since when the first one waited. The second one waits until the end.
    let [wait] = trace.details.waits[..] else { panic!("{:?}", trace.details.waits) };
    assert_eq!((wait.entry, wait.pe, wait.end_seconds), (1, 0, trace.seconds));
}

/// By execution of a PE: its cause, and its entry if it is one of an element.
fn causes(trace: &Trace, pe: u32) -> Vec<(Option<u32>, Option<u16>)> {
    let all = trace.executions.iter().zip(&trace.details.calls);
    all.filter(|(it, _)| it.pe == pe).map(|(it, call)| (it.cause, call.entry)).collect()
}

#[test]
fn work_before_a_guarded_message_has_its_own_cause() {
    let start = quanta::Instant::now();
    let [one, two] = [log(0, 2), log(1, 2)];
    one.resumes();
    one.begins();
    let to_five = one.sends(0, 5, 1, 100);
    one.posts(RUN, 1, 30);
    one.ends(0, 0, 0, 0.0);
    two.resumes();
    two.takes(to_five);
    two.keeps_pending(0, 1, 5, 1);
    two.takes_order(RUN, 0, None);
    two.posts(RUN, 0, 10);
    two.releases(0, 5, 0, 1);
    two.begins();
    two.ends(0, 1, 5, 0.0);
    two.ends_order();
    let trace = joined([one, two], start);
    assert_eq!(causes(&trace, 1), [(Some(1), None), (Some(0), Some(1))]);
}

#[test]
fn messages_have_causes_when_their_numbers_begin_anew() {
    let start = quanta::Instant::now();
    let logs = [log(0, 2), log(1, 2)];
    let mut numbers = Vec::new();
    for (log, to) in logs.iter().zip([1, 0]) {
        log.resumes();
        log.messages.set(MESSAGES / 2 - 1);
        log.begins();
        numbers.push([log.sends(0, to, to, 8), log.sends(0, to, to, 8)]);
        log.ends(0, 0, log.pe, 0.0);
    }
    let all: std::collections::BTreeSet<_> = numbers.iter().flatten().collect();
    assert!(all.len() == 4 && all.iter().all(|number| EventLog::is_number(**number)), "{numbers:?}");
    for (log, numbers) in logs.iter().zip([numbers[1], numbers[0]]) {
        for number in numbers {
            log.takes(number);
            log.begins();
            log.ends(0, 1, log.pe, 0.0);
        }
    }
    let trace = joined(logs, start);
    let mut found = Vec::new();
    for pe in 0..2 {
        let causes: Vec<_> = causes(&trace, pe).into_iter().filter_map(|(cause, _)| cause).collect();
        assert_eq!(causes.len(), 2);
        assert!(causes.iter().all(|&cause| trace.messages[cause as usize].pe == pe), "{causes:?}");
        found.extend(causes);
    }
    found.sort_unstable();
    assert_eq!(found, [0, 1, 2, 3]);
}

#[test]
fn work_before_the_begin_receives_no_later_message_with_the_same_number() {
    let start = quanta::Instant::now();
    let [one, two] = [log(0, 2), log(1, 2)];
    one.resumes();
    one.begins();
    let number = one.sends(0, 1, 1, 8);
    one.ends(0, 0, 0, 0.0);
    two.resumes();
    two.takes(number);
    two.begins();
    two.ends(0, 1, 1, 0.0);
    two.rests();
    for _ in 0..3 * CHUNK {
        one.begins();
        one.ends(0, 1, 0, 0.0);
    }
    one.messages.set(0);
    one.begins();
    std::thread::sleep(std::time::Duration::from_millis(1));
    assert_eq!(one.sends(0, 1, 1, 8), number);
    one.ends(0, 0, 0, 0.0);
    two.resumes();
    two.takes(number);
    two.begins();
    two.ends(0, 1, 1, 0.0);
    let trace = joined([one, two], start);
    assert_eq!(causes(&trace, 1), [(Some(0), Some(1))]);
    let sends = trace.executions.iter().rev().find(|it| it.pe == 0).expect("PE 0 sends");
    let [Step::Work(seconds), Step::Send(0)] = sends.steps[..] else { panic!("{:?}", sends.steps) };
    assert!(seconds >= 1e-3, "{seconds}");
}

#[test]
fn the_work_that_a_message_causes_begins_after_that_of_the_sender() {
    let start = quanta::Instant::now();
    let [one, two] = [log(0, 2), log(1, 2)];
    one.resumes();
    two.resumes();
    // PE 1 looks for messages, which is no work, until PE 0 sends some: a message, and an order whose message is queued.
    std::thread::sleep(std::time::Duration::from_millis(1));
    one.begins();
    one.ends(0, 0, 0, 0.0);
    one.begins();
    let number = one.sends(0, 1, 1, 8);
    one.posts(0, 1, 8);
    one.ends(0, 0, 0, 0.0);
    two.takes_order(0, 0, None);
    let deferred = two.defers();
    two.ends_order();
    for number in [deferred, number] {
        two.takes(number);
        two.begins();
        two.ends(0, 1, 1, 0.0);
    }
    let trace = joined([one, two], start);
    assert_eq!(causes(&trace, 1), [(Some(1), Some(1)), (Some(0), Some(1))]);
    assert_eq!(trace.details.clock_error_seconds, 0.0);
    let begin = |pe| trace.executions.iter().filter(move |it| it.pe == pe).map(|it| it.begin_seconds);
    let sends = begin(0).nth(1).expect("the second execution sends");
    assert!(sends >= 1e-3 && begin(1).all(|begin| begin >= sends), "{sends}, {:?}", trace.executions);
}

#[test]
fn a_log_without_whole_work_begins_after_its_last_work() {
    let start = quanta::Instant::now();
    let [one, two] = [log(0, 2), log(1, 2)];
    two.resumes();
    two.begins();
    two.ends(0, 0, 1, 0.0);
    // PE 0 sends so much that only the end of the first execution is left.
    one.resumes();
    one.begins();
    for _ in 0..CHUNK {
        one.sends(0, 0, 0, 8);
    }
    one.ends(0, 0, 0, 0.0);
    one.begins();
    for _ in 0..CHUNK {
        one.sends(0, 0, 0, 8);
    }
    two.rests();
    two.resumes();
    two.begins();
    two.ends(0, 1, 1, 0.0);
    let trace = joined([one, two], start);
    assert!(trace.details.dropped_events > 0 && trace.details.begins_seconds > 0.0);
    assert_eq!(causes(&trace, 1), [(None, Some(1))]);
    assert_eq!(trace.executions.len(), 1);
}

#[test]
fn pieces_of_work_come_by_begin() {
    let start = quanta::Instant::now();
    let logs = [log(0, 2), log(1, 2)];
    logs.iter().for_each(EventLog::resumes);
    for nth in 0..50 {
        let log = &logs[nth * nth / 3 % 2];
        log.begins();
        log.ends(0, 0, 0, 0.0);
        log.rests();
        log.resumes();
    }
    let trace = joined(logs, start);
    assert_eq!(trace.executions.len(), 50);
    assert!(trace.executions.is_sorted_by_key(|it| it.begin_seconds));
}
