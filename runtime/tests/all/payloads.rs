//! Payloads that many elements receive: an `Arc` is not copied for each of them.

#![allow(missing_docs)]

use crate::common::*;
use equipoise::prelude::*;
use equipoise::{Transport, reduce};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

const READERS: i32 = 20;

/// Numbers that receivers share.
type Payload = (Arc<[f64]>, Arc<Vec<f64>>);

/// The PE of a reader, and the addresses of the slice and the vector that it has received.
type Received = (u32, [usize; 2]);

#[derive(Serialize, Deserialize)]
struct Reader {
    /// What it has received. It is kept, so that no two allocations follow each other at one address.
    kept: Option<Payload>,
    done: Exit<Vec<Received>>,
}

#[chare(index = [i32; 1])]
impl Reader {
    /// Sends two payloads to all readers, or to those with even numbers.
    #[entry]
    fn begin(&mut self, cx: &Cx<Self>, to_section: bool) {
        let (slice, vector) = (Arc::from(vec![0.5; 1000]), Arc::new(vec![0.25; 1000]));
        let section = to_section.then(|| cx.array().section(cx, |[index]| index % 2 == 0));
        match section {
            Some(section) => section.all(cx).read(slice, vector, Some(section.clone())),
            None => cx.peers().read(slice, vector, None),
        }
    }

    #[entry]
    fn read(
        &mut self,
        cx: &Cx<Self>,
        slice: Arc<[f64]>,
        vector: Arc<Vec<f64>>,
        section: Option<Section<Self>>,
    ) {
        assert_eq!((slice.len(), slice[999], vector.len(), vector[999]), (1000, 0.5, 1000, 0.25));
        let received = vec![(cx.here().0, [slice.as_ptr().addr(), vector.as_ptr().addr()])];
        self.kept = Some((slice, vector));
        match section {
            Some(section) => cx.peer([0]).contribute_in(&section).ends(received),
            None => cx.peer([0]).contribute().ends(received),
        }
    }

    #[entry(reduce = reduce::concat)]
    fn ends(&mut self, cx: &Cx<Self>, all: Vec<Received>) {
        self.done.exit(cx, all);
    }
}

/// All receivers in a process have the same allocations.
fn check(config: Config) {
    for to_section in [false, true] {
        let report = equipoise::run(config.clone(), move |pe, done| {
            let readers = pe.array([READERS], move |_| Reader { kept: None, done });
            pe.main(move |pe| readers.at(pe, [1]).begin(to_section));
        });
        let expected = if to_section { READERS / 2 } else { READERS };
        assert_eq!(report.result.len(), expected as usize);
        let pes_per_process = match config.transport {
            Transport::Threads => u32::MAX,
            _ => config.pes_per_process.unwrap_or(1) as u32,
        };
        let mut by_process: BTreeMap<u32, BTreeSet<[usize; 2]>> = BTreeMap::new();
        for (pe, addresses) in report.result {
            by_process.entry(pe / pes_per_process).or_default().insert(addresses);
        }
        assert!(by_process.values().all(|addresses| addresses.len() == 1), "{by_process:?}");
    }
}

#[test]
fn receivers_share_the_numbers_of_a_message() {
    everywhere(40, 8, check);
}

#[test]
#[ignore = "slow"]
fn all_of_it_at_full_size() {
    at_full_size(&[receivers_share_the_numbers_of_a_message]);
}
