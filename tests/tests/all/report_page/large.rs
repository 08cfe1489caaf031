//! Reports of 100,000 objects on 4096 PEs: their sizes, and how long the page needs to show another panel.

use std::path::Path;

use equipoise_model::Database;
use equipoise_model::database::{Dump, Edge, End, Object, ObjectIndex, PeRecord};
use equipoise_tests::Sandbox;

use super::chromium::Chromium;

/// The largest page of one strategy, and what each further one may add.
const MOST_BYTES: usize = 3_000_000;
const MOST_BYTES_PER_STRATEGY: usize = 1_000_000;

/// The longest time until another panel is on the screen of a computer that takes [`SORT_MILLISECONDS`] for a sort. A computer that is
/// slower, or that other programs share, may take as many times longer as its sort does.
const MOST_MILLISECONDS: f64 = 200.0;

/// The least time to sort a million numbers in the browser on the computer for which the limit is.
const SORT_MILLISECONDS: f64 = 100.0;

/// Objects of a box of 50 x 50 x 40 with irregular loads, which send 0.5 to 64 kB to each of their neighbours.
fn dump() -> Dump {
    const SIZES: [usize; 3] = [50, 50, 40];
    let objects = SIZES.iter().product::<usize>();
    let mut state = 1u64;
    let mut random = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as f64 / f64::from(1u32 << 31)
    };
    let place = |i: usize| [i % SIZES[0], i / SIZES[0] % SIZES[1], i / SIZES[0] / SIZES[1]];
    let object = |i: usize, load: f64| Object {
        id: i as u64,
        array: 0,
        index: ObjectIndex::new(&place(i).map(|x| x as i32)),
        load_seconds: load,
        bytes: Some(8_000 + (load * 1e7) as u64),
        pe: (i * 4096 / objects) as u32,
        migratable: true,
    };
    let objects: Vec<Object> =
        (0..objects).map(|i| object(i, 1e-4 * (1.0 + 9.0 * random().powi(3)))).collect();
    let mut edges = Vec::new();
    for i in 0..objects.len() {
        for (dimension, step) in [1, SIZES[0], SIZES[0] * SIZES[1]].into_iter().enumerate() {
            if place(i)[dimension] + 1 < SIZES[dimension] {
                for (from, to) in [(i, i + step), (i + step, i)] {
                    let [from, to] = [from, to].map(|end| End::Object(end as u32));
                    edges.push(Edge { from, to, messages: 1, bytes: (500.0 * 128f64.powf(random())) as u64 });
                }
            }
        }
    }
    let pes = vec![PeRecord::default(); 4096];
    let database = Database { arrays: vec!["Cell".into()], pes, objects, edges, ..Database::default() };
    Dump {
        program: "test".into(),
        topology: "torus:16x16x16".into(),
        steps: vec![database],
        warnings: Vec::new(),
    }
}

/// Milliseconds to sort a million numbers in the browser, the least of five.
fn sort_milliseconds(tab: &mut Chromium) -> f64 {
    let script = "(() => { let least = Infinity; for (let i = 0; i < 5; i++) { \
         const numbers = Float64Array.from({ length: 1e6 }, (_, j) => (j * 0.6180339887498949) % 1); \
         const begin = performance.now(); numbers.sort(); least = Math.min(least, performance.now() - begin); } return least; })()";
    tab.value(script).as_f64().expect("a time")
}

/// Prints the sizes and the times. Each time is that of the script, the layout and the painting, the shortest of five.
#[test]
#[ignore = "slow"]
fn large_pages_are_small_and_fast() {
    let sandbox = Sandbox::new();
    dump().write(sandbox.path().join("large.db")).expect("a database");
    let strategies = ["GreedyRefineLB", "GreedyLB", "RefineLB"];
    let size = |count: usize| {
        let flags: String = strategies[..count].iter().map(|name| format!(" --balancer {name}")).collect();
        sandbox
            .run(&format!("replay large.db --topology torus:16x16x16{flags} --report large.html"))
            .result();
        sandbox.bytes("large.html").len()
    };
    let (one, three) = (size(1), size(3));
    println!("1 strategy: {one} bytes, 3 strategies: {three} bytes");
    assert!(one <= MOST_BYTES, "a page of one strategy has {one} bytes");
    assert!(three - one <= 2 * MOST_BYTES_PER_STRATEGY, "two further strategies add {} bytes", three - one);
    let Some(mut tab) = Chromium::start() else { return };
    let slow = times(&mut tab, &sandbox.path().join("large.html"));
    assert!(slow.is_empty(), "too long: {slow:?}");
}

/// The changes of the page that take too long.
fn times(tab: &mut Chromium, page: &Path) -> Vec<String> {
    tab.open(page, "panel=summary&strategy=GreedyLB");
    let panels = tab.text("document.body.dataset.panels");
    assert_eq!(panels, "summary loads machine matrix moves distances");
    let sort = sort_milliseconds(tab);
    let most = MOST_MILLISECONDS * (sort / SORT_MILLISECONDS).max(1.0);
    println!("a sort: {sort:.0} ms, so a panel: at most {most:.0} ms");
    let mut slow = Vec::new();
    let tabs =
        panels.split(' ').map(|panel| (panel, format!("document.getElementById('tab-{panel}').click()")));
    let sorted = ("loads, sorted", "document.querySelector('input[type=checkbox]').click()".to_string());
    let other = ("moves, of another strategy", "choose(state.after === 2 ? 3 : 2)".to_string());
    for (what, action) in tabs.chain([sorted, other]) {
        let start = what.split(',').next().filter(|panel| *panel != what).unwrap_or("summary");
        let script = format!(
            "(async () => {{ let least = Infinity; for (let i = 0; i < 5; i++) {{ \
             show('{}'); await new Promise((done) => requestAnimationFrame(() => setTimeout(done, 50))); \
             const begin = performance.now(); {action}; \
             await new Promise((done) => requestAnimationFrame(() => {{ const paint = new MessageChannel(); paint.port1.onmessage = done; paint.port2.postMessage(0); }})); \
             least = Math.min(least, performance.now() - begin); }} return least; }})()",
            if what == "summary" { "distances" } else { start },
        );
        let milliseconds = tab.value(&script).as_f64().expect("a time");
        println!("{what}: {milliseconds:.0} ms");
        if milliseconds > most {
            slow.push(format!("{what}: {milliseconds:.0} of {most:.0} ms"));
        }
    }
    tab.photograph("large-moves");
    slow
}
