//! `--metrics`: a thread, the exporter, writes what PEs publish at intervals, and once more at the end. Without this flag
//! there is no such thread.

use crate::node::Node;
use crate::process;
use parking_lot::{Condvar, Mutex};
use std::sync::Arc;
use std::thread::JoinHandle;

/// The exporter of a run; dropping it ends its thread, which then has written the file for the last time.
pub(super) struct Exporter {
    end: Arc<(Mutex<bool>, Condvar)>,
    thread: Option<JoinHandle<()>>,
}

impl Exporter {
    /// Starts the exporter, if a flag asks for metrics.
    pub(super) fn start(node: &Arc<Node>) -> Option<Self> {
        node.metrics.as_ref()?;
        let (end, node) = (Arc::new((Mutex::new(false), Condvar::new())), Arc::clone(node));
        let export = {
            let end = Arc::clone(&end);
            move || run(&node, &end)
        };
        match std::thread::Builder::new().name("exporter".into()).spawn(export) {
            Ok(thread) => Some(Exporter { end, thread: Some(thread) }),
            Err(error) => {
                process::warn(&format!("--metrics has no effect: cannot start a thread: {error}"));
                None
            }
        }
    }
}

impl Drop for Exporter {
    fn drop(&mut self) {
        *self.end.0.lock() = true;
        self.end.1.notify_one();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn run(node: &Node, (is_over, changed): &(Mutex<bool>, Condvar)) {
    let Some(metrics) = &node.metrics else { return };
    let mut has_warned = false;
    let mut over = is_over.lock();
    loop {
        let is_last = *over;
        if let Err(sentence) = metrics.write()
            && !std::mem::replace(&mut has_warned, true)
        {
            process::warn(&sentence);
        }
        if is_last {
            return;
        }
        changed.wait_for(&mut over, metrics.every);
    }
}
