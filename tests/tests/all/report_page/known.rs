//! Pages whose pixels are known: small machines with one heavy edge.

use equipoise_tests::Sandbox;
use serde_json::Value;

use super::chromium::Chromium;
use super::{BLANK, document, look};

/// The ends of the colour maps, and the colours of the light style.
const VIRIDIS: [u64; 3] = [253, 231, 37];
const FEWEST: [u64; 3] = [68, 1, 84];
const CIVIDIS: [u64; 3] = [254, 232, 56];
const NO_BYTES: [u64; 3] = [213, 218, 224];
const NODE: [u64; 3] = [163, 172, 183];
const BEFORE: [u64; 3] = [138, 147, 160];
const AFTER: [u64; 3] = [11, 99, 206];

#[track_caller]
fn check(tab: &mut Chromium, canvas: usize, (x, y): (f64, f64), expected: [u64; 3]) {
    let [red, green, blue, opacity] = tab.colour(canvas, x, y);
    assert_eq!(([red, green, blue], opacity), (expected, 255), "canvas {canvas} at {x}, {y}");
}

/// Checks the cell with the largest value of a heat map, which fills `size` pixels below and to the right of labels.
#[track_caller]
pub(super) fn brightest_cell_is_yellow(tab: &mut Chromium, canvas: usize, size: (f64, f64), heat: &Value) {
    let cells: Vec<u64> = heat["cells"].as_array().expect("cells").iter().filter_map(Value::as_u64).collect();
    let rows = heat["rows"].as_u64().expect("rows") as usize;
    let columns = heat["columns"].as_array().expect("columns").len();
    let scales: Vec<f64> =
        heat["scales"].as_array().expect("scales").iter().filter_map(Value::as_f64).collect();
    let is_largest = |column: usize| scales[column] == heat["largest"].as_f64().expect("a value");
    let brightest = (0..cells.len()).find(|&at| cells[at] == 1000 && is_largest(at / rows));
    let brightest = brightest.expect("a cell with the largest value");
    let place = |at: usize, of: usize, size: f64| (at as f64 + 0.5) / of as f64 * size;
    check(
        tab,
        canvas,
        (44.0 + place(brightest / rows, columns, size.0), 20.0 + place(brightest % rows, rows, size.1)),
        CIVIDIS,
    );
}

/// The PEs of two tasks after the strategy.
fn places(document: &Value, tasks: [usize; 2]) -> [u64; 2] {
    tasks.map(|task| document["placements"][1]["pe_of"][task].as_u64().expect("a PE"))
}

#[test]
#[ignore = "slow"]
fn a_map_on_a_tree_is_an_icicle() {
    let sandbox = Sandbox::new();
    sandbox.put("g.csv", "src,dst,bytes\n0,3,1000000\n1,2,1\n");
    let line = "map --graph g.csv --topology tree:2:2";
    let Some(mut tab) = look(&sandbox, line, "tree", "summary machine matrix moves distances") else {
        return;
    };
    let document = document(&sandbox, line);
    tab.open(&sandbox.path().join("tree.html"), "panel=machine&theme=light");
    // 104 pixels for the names of levels, then the leaves; a level is 44 pixels high, its links up are in the upper half.
    let place = |level: usize, vertex: f64, width: f64, is_down: bool| {
        (104.0 + 456.0 * (vertex + 0.5) * width, 44.0 * level as f64 + if is_down { 33.0 } else { 11.0 })
    };
    // Before, task i is on PE i: the bytes go up from PE 0 to the root, and down to PE 3.
    for (level, vertex, width, is_down) in
        [(1, 0.0, 0.25, false), (0, 0.0, 0.5, false), (0, 1.0, 0.5, true), (1, 3.0, 0.25, true)]
    {
        check(&mut tab, 0, place(level, vertex, width, is_down), VIRIDIS);
        check(&mut tab, 0, place(level, vertex, width, !is_down), NO_BYTES);
    }
    let heads = tab.text("[...document.querySelectorAll('main h3')].map((it) => it.textContent).join('|')");
    // Two links carry one more byte than the other two.
    let ends = [", 1.00 ms each; 2 more within 5 %", ", 1.00 ms each"];
    for (head, end) in heads.split('|').zip(ends) {
        assert!(head.contains(": busiest: ") && head.ends_with(end), "{heads}");
        assert_eq!((head.matches(" -> ").count(), head.matches(" and ").count()), (2, 1), "{heads}");
    }
    assert_eq!(document["heaviest_edges"], serde_json::json!([[0, 3, 1_000_000], [1, 2, 1]]));
    assert_eq!(
        (&document["half_senders"], &document["matrix"]["ends"]),
        (&1.into(), &serde_json::json!([1, 1_000_000]))
    );
    let [a, b] = places(&document, [0, 3]);
    assert_eq!(a / 2, b / 2, "the tasks are below one switch");
    for switch in [0.0, 1.0] {
        check(&mut tab, 1, place(0, switch, 0.5, false), NO_BYTES);
    }
    check(&mut tab, 1, place(1, a as f64, 0.25, false), VIRIDIS);
    check(&mut tab, 1, place(1, b as f64, 0.25, true), VIRIDIS);
    tab.open_texts();
    let text = tab.text("[...document.querySelectorAll('details')].at(-1).innerText");
    for row in
        ["height 1, up\t2\t1.00 ms\t500 us\t0 s\t0 s", "PEs, down\t4\t1.00 ms\t250 us\t1.00 ms\t250 us"]
    {
        assert!(text.contains(row), "{text}");
    }
    tab.open(&sandbox.path().join("tree.html"), "panel=matrix&theme=light");
    assert_eq!(
        tab.text("document.querySelector('.legend').innerText.trim().split('\\n').join(' to ')"),
        "bytes, logarithmic to 1 B to 1.00 MB"
    );
    // 44 pixels for the numbers of tasks and PEs.
    let middle = |task: u64| 44.0 + (task as f64 + 0.5) / 4.0 * 380.0;
    check(&mut tab, 0, (middle(3), middle(0)), VIRIDIS);
    check(&mut tab, 0, (middle(2), middle(1)), FEWEST);
    assert_eq!(tab.colour(0, middle(1), middle(0))[3], 0, "tasks 0 and 1 exchange nothing");
    check(&mut tab, 2, (middle(b), middle(a)), VIRIDIS);
}

#[test]
#[ignore = "slow"]
fn a_map_on_a_dragonfly_is_a_matrix_of_groups() {
    let sandbox = Sandbox::new();
    sandbox.put("g.csv", "src,dst,bytes\n0,11,1000000\n4,5,1\n");
    let line = "map --graph g.csv --topology dragonfly:groups=3,routers=2,hosts=2";
    let Some(mut tab) = look(&sandbox, line, "dragonfly", "summary machine matrix moves distances") else {
        return;
    };
    let document = document(&sandbox, line);
    tab.open(&sandbox.path().join("dragonfly.html"), "panel=machine&theme=light");
    // 44 pixels for the numbers of groups, then cells of 28 pixels; row and column 3 are PEs.
    let middle = |at: usize| 44.0 + 28.0 * at as f64 + 14.0;
    let place = |from: usize, to: usize| (middle(to), middle(from));
    for (from, to) in [(0, 2), (3, 0), (2, 3)] {
        check(&mut tab, 0, place(from, to), VIRIDIS);
    }
    for (from, to) in [(0, 1), (1, 2), (2, 0), (0, 3), (3, 2)] {
        check(&mut tab, 0, place(from, to), NO_BYTES);
    }
    // The way of the heavy edge: from a PE, inside of a group, between groups, inside of a group, to a PE; links inside of a group share a cell.
    let head = tab.text("document.querySelector('main h3').textContent");
    let busiest = document["placements"][0]["busiest_links"][0].as_u64().expect("a number");
    assert!(busiest > 3 && head.starts_with(&format!("before: {busiest} busiest links, such as ")), "{head}");
    let [a, b] = places(&document, [0, 11]).map(|pe| (pe / 4) as usize);
    assert_eq!(a, b, "the tasks are in one group");
    check(&mut tab, 1, place(3, a), VIRIDIS);
    check(&mut tab, 1, place(0, 2), NO_BYTES);
}

#[test]
#[ignore = "slow"]
fn a_torus_of_four_dimensions_is_shown_in_slices() {
    let sandbox = Sandbox::new();
    // A heavy edge in dimension 4 between slices 0 and 1, half of it in dimension 1 of slice 0, and a light one.
    sandbox.put("g.csv", "src,dst,bytes\n0,27,1000000\n27,0,1000000\n0,1,500000\n79,80,1\n");
    sandbox.put("places.txt", (0..81).map(|pe| format!("{pe}\n")).collect::<String>());
    let line = "explain --graph g.csv --topology torus:3x3x3x3 --mapping places.txt";
    let Some(mut tab) = look(&sandbox, line, "torus4", "summary machine matrix distances") else { return };
    tab.open(&sandbox.path().join("torus4.html"), "panel=machine&theme=light");
    // Three slices of 4 x 4 cells of 46 pixels; node 0 is at 0.7 cells.
    let node = (32.0, 32.0);
    assert_eq!(
        tab.text("document.querySelector('main select').value"),
        "0",
        "the slice where the busiest link begins"
    );
    check(&mut tab, 0, node, VIRIDIS);
    check(&mut tab, 0, (32.0 + 46.0, 32.0), NODE);
    // Half of the largest time is the middle of the colour map; the link to the right lies below the one to the left.
    let [red, green, blue, _] = tab.colour(0, 32.0 + 23.0, 32.0 + 5.0);
    assert!(red < 50 && green > 130 && blue > 125, "the middle of viridis is green: {red} {green} {blue}");
    let choose = |slice: usize| {
        format!(
            "{{ const it = document.querySelector('main select'); it.value = {slice}; it.dispatchEvent(new Event('change')); it.value }}"
        )
    };
    tab.value(&choose(1));
    check(&mut tab, 0, node, VIRIDIS);
    assert_eq!(tab.colour(0, 32.0 + 23.0, 32.0 + 5.0)[..3], NO_BYTES, "dimension 1 of slice 1");
    tab.value(&choose(2));
    check(&mut tab, 1, node, NODE);
    tab.photograph("torus4-slice");
    tab.value("document.querySelector('button.plain').click()");
    assert_eq!(tab.text("document.querySelector('main select').value"), "0");
    tab.has_no_problem();
}

#[test]
fn loads_are_as_high_as_they_are_large() {
    let sandbox = Sandbox::new();
    super::charm_dump(&sandbox);
    let document = document(&sandbox, super::REPLAY);
    sandbox.run(&format!("{} --report a.html", super::REPLAY)).result();
    let Some(mut tab) = Chromium::start() else { return };
    let file = sandbox.path().join("a.html");
    tab.open(&file, "panel=loads&strategy=RefineLB&theme=light");
    let loads = |placement: usize| -> Vec<f64> {
        let loads = document["placements"][placement]["load_seconds"].as_array().expect("loads");
        loads.iter().filter_map(Value::as_f64).collect()
    };
    let top = loads(0).into_iter().fold(0.0, f64::max);
    for (canvas, placement, ink) in [(0, 0, BEFORE), (1, 2, AFTER)] {
        let loads = loads(placement);
        let heaviest = (0..loads.len()).max_by(|&a, &b| loads[a].total_cmp(&loads[b])).expect("a PE");
        let (x, y) = (
            44.0 + (heaviest as f64 + 0.4) / loads.len() as f64 * 516.0,
            300.0 - 270.0 * loads[heaviest] / top,
        );
        check(&mut tab, canvas, (x, y + 1.5), ink);
        assert_eq!(tab.colour(canvas, x, y - 1.5)[3], 0, "nothing is above the bar");
    }
    tab.has_no_problem();
}

#[test]
#[ignore = "slow"]
fn lists_of_messages_and_programs_show_the_machine() {
    let sandbox = Sandbox::new();
    sandbox.put("m.csv", "src,dst,bytes\n0,3,3000000\n1,2,1000\n");
    let line = "simulate --messages m.csv --topology tree:2:2 --network flow";
    let Some(mut tab) = look(&sandbox, line, "messages", "summary machine matrix distances") else { return };
    tab.open(&sandbox.path().join("messages.html"), "panel=machine&theme=light");
    let sentence = tab.text("document.querySelector('main section > p').textContent");
    assert_eq!(
        sentence,
        "The busiest link of tree:2:2/4:2 needs 3.00 ms (assumed: 1.00 GB/s for each link)."
    );
    let program = "simulate --program ring:n=8 --topology torus:4x2 --network flow";
    let document = document(&sandbox, program);
    assert_eq!(document["machine"]["layout"], "grid");
    assert_eq!(document["placements"][0]["pe_of"].as_array().map(Vec::len), Some(8));
    assert_eq!(document["placements"][0]["name"], "mapping");
}

#[test]
#[ignore = "slow"]
fn where_few_objects_send_rows_are_only_these() {
    let sandbox = Sandbox::new();
    // Task 0 sends to all others, most to task 2, and nothing to itself.
    sandbox.put("g.csv", "src,dst,bytes\n0,1,1\n0,2,1000000\n0,3,1\n0,4,1\n0,5,1\n0,6,1\n0,7,1\n");
    sandbox.put("places.txt", "0\n0\n1\n1\n3\n3\n2\n2\n");
    let line = "explain --graph g.csv --topology flat:2*torus:2 --mapping places.txt";
    let panels = "summary loads machine matrix moves distances";
    let Some(mut tab) = look(&sandbox, line, "star", panels) else { return };
    let document = document(&sandbox, line);
    assert_eq!(
        (&document["senders"], &document["receivers"]),
        (&serde_json::json!([0]), &serde_json::json!([]))
    );
    let matrix = &document["matrix"];
    assert_eq!((&matrix["rows"], &matrix["columns"]), (&1.into(), &8.into()));
    tab.open(&sandbox.path().join("star.html"), "panel=matrix&theme=light");
    // One row of 380 pixels below 44 pixels of numbers, and a column for each task.
    let at = |task: f64, y: f64| (44.0 + (task + 0.5) / 8.0 * 380.0, 44.0 + y);
    for y in [10.0, 190.0, 370.0] {
        check(&mut tab, 0, at(2.0, y), VIRIDIS);
        check(&mut tab, 0, at(3.0, y), FEWEST);
    }
    let (x, y) = at(0.0, 190.0);
    assert_eq!(tab.colour(0, x, y)[3], 0, "task 0 sends nothing to itself");
    let text = tab.text("document.querySelector('main').innerText");
    for words in [
        "Rows are only the objects that send (1 of 8).",
        "The diagonal of a matrix between PEs has the bytes that stay on a PE.",
        "borders of nodes.",
    ] {
        assert!(text.contains(words), "{text}");
    }
    // PE 0 has tasks 0 and 1, and sends most to PE 1, which has task 2; the mapping has four rows of PEs.
    let cell = |row: f64, column: f64| (44.0 + (column + 0.5) * 95.0, 44.0 + (row + 0.5) * 95.0);
    check(&mut tab, 2, cell(0.0, 1.0), VIRIDIS);
    check(&mut tab, 2, cell(0.0, 0.0), FEWEST);
    let (x, y) = cell(1.0, 0.0);
    assert_eq!(tab.colour(2, x, y)[3], 0, "PE 1 sends nothing");
    tab.has_no_problem();
}

#[test]
#[ignore = "slow"]
fn long_grids_are_rows_or_lists() {
    let sandbox = Sandbox::new();
    let Some(mut tab) = Chromium::start() else { return };
    for (machine, canvases, words) in
        [("mesh:1x3000", 2, "A row has 64 nodes of the line."), ("mesh:2x3000", 0, "The 24 busiest links")]
    {
        sandbox
            .run(&format!("map --graph random:n=200,degree=4 --topology {machine} --report a.html"))
            .result();
        tab.open(&sandbox.path().join("a.html"), "panel=machine");
        assert_eq!(tab.value("document.querySelectorAll('main canvas').length"), canvases, "{machine}");
        assert_eq!(tab.value(BLANK), 0, "{machine}");
        let text = tab.text("document.querySelector('main').innerText");
        assert!(text.contains(words), "{machine}: {text}");
    }
}
