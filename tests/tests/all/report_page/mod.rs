//! Pages of `--report`, opened in Chromium and Firefox without a window. Pictures of them are in `tmp/reports` of the target folder.

mod chromium;
mod content;
mod firefox;
mod known;
mod large;
mod use_of;

use chromium::Chromium;
use equipoise_tests::{Sandbox, WORKSPACE};
use firefox::Firefox;
use serde_json::Value;
use std::fs;
use std::path::Path;

/// The document of a report, from the command `line` with another file of `--report`.
#[track_caller]
fn document(sandbox: &Sandbox, line: &str) -> Value {
    sandbox.run(&format!("{line} --report report.json")).result();
    serde_json::from_str(&sandbox.text("report.json")).expect("a document")
}

/// Runs the command `line` with the report `NAME.html`, and looks at all panels, which must be `panels`, in light and dark: each has a
/// picture or a table, no picture is blank, each text behind a picture has rows, and the console is empty. Returns the tab with the
/// first panel.
#[track_caller]
fn look(sandbox: &Sandbox, line: &str, name: &str, panels: &str) -> Option<Chromium> {
    sandbox.run(&format!("{line} --report {name}.html")).result();
    let file = sandbox.path().join(format!("{name}.html"));
    let mut tab = Chromium::start()?;
    for theme in ["dark", "light"] {
        tab.open(&file, &format!("panel=all&theme={theme}"));
        assert_eq!(tab.text("document.body.dataset.panels"), panels);
        assert_eq!(tab.value(BLANK), 0, "{name}, {theme}: a picture is blank");
        tab.photograph(&format!("{name}-{theme}"));
    }
    for panel in panels.split(' ') {
        tab.open(&file, &format!("panel={panel}&theme=light"));
        tab.open_texts();
        let texts = tab.value(
            "[...document.querySelectorAll('details')].map((it) => it.querySelectorAll('tbody tr').length)",
        );
        let pictures = tab.value("document.querySelectorAll('main canvas, main svg').length");
        let rows = tab.value("document.querySelectorAll('main tbody tr').length");
        let has_text = texts.as_array().is_some_and(|texts| texts.iter().all(|rows| rows.as_u64() > Some(0)));
        assert!(
            has_text && rows.as_u64() > Some(0),
            "{name}, {panel}: {texts} rows behind {pictures} pictures, {rows} in all"
        );
        let sentence = tab.text("document.querySelector('main').innerText");
        assert!(sentence.len() > 40, "{name}, {panel}: {sentence}");
        tab.photograph(&format!("{name}-{panel}"));
    }
    tab.open(&file, "theme=light");
    Some(tab)
}

/// The number of pictures of one colour on a page.
const BLANK: &str = "[...document.querySelectorAll('canvas')].filter((canvas) => { \
                     const pixels = new Uint32Array(canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data.buffer); \
                     return pixels.every((pixel) => pixel === pixels[0]); }).length";

/// Copies the dump of a Charm++ program into the sandbox.
fn charm_dump(sandbox: &Sandbox) {
    let dump = Path::new(WORKSPACE).join("strategies/model/tests/data/leanmd_333_1053.dat.0");
    sandbox.put("leanmd.dat.0", fs::read(dump).expect("a dump"));
}

/// The command that replays the dump on a larger machine.
const REPLAY: &str = "replay leanmd.dat.0 --pes 27 --topology torus:3x3x3 --balancer GreedyLB --balancer RefineLB --balancer PoiseLB";

/// A run with five load-balancing steps on the simulated machine.
const RUN: &str = "run stencil2d --pes 8 --cells 16 --iterations 120 --imbalance 4 --charge 1e-7 --lb-every 20 --lb-no-background \
                   --balancer GreedyRefineLB --transport simulated --topology torus:4x2 --network flow";

#[test]
fn a_replay_of_a_charm_dump_shows_all_panels() {
    let sandbox = Sandbox::new();
    charm_dump(&sandbox);
    let panels = "summary loads machine matrix moves distances";
    let Some(mut tab) = look(&sandbox, REPLAY, "replay", panels) else { return };
    let document = document(&sandbox, REPLAY);
    let placements = document["placements"].as_array().expect("a list");
    let names: Vec<&str> = placements.iter().filter_map(|it| it["name"].as_str()).collect();
    assert_eq!(names, ["in blocks", "GreedyLB", "RefineLB", "PoiseLB"]);
    let recommended = document["recommended"].as_u64().expect("a recommendation") as usize;
    assert_eq!(tab.text("document.body.dataset.strategy"), names[recommended]);
    let marked = "document.querySelector('.mark').closest('tr').querySelector('button').textContent";
    assert_eq!(tab.text(marked), names[recommended]);
    assert_eq!(tab.text("document.querySelector('.mark').textContent").trim(), "★ recommended");
    assert_eq!(tab.text("document.querySelector('tr[aria-current] button').textContent"), names[recommended]);
    tab.open(&sandbox.path().join("replay.html"), "panel=moves&strategy=GreedyLB");
    let moves = placements[1]["metrics"]["migrations"].as_u64().expect("a number");
    let expected = format!("GreedyLB moves {moves} of ");
    let sentence = tab.text("document.querySelector('main section > p').textContent");
    assert!(sentence.starts_with(&expected), "{sentence}");
    tab.has_no_problem();
}

#[test]
#[ignore = "slow"]
fn a_run_with_several_steps_shows_them() {
    let sandbox = Sandbox::new();
    let panels = "summary loads steps machine matrix moves distances";
    let Some(mut tab) = look(&sandbox, RUN, "run", panels) else { return };
    let document = document(&sandbox, RUN);
    let steps = document["steps"]["columns"].as_array().expect("a list").len();
    assert_eq!(steps, 5);
    let listed = document["run_steps"].as_array().expect("a list");
    assert_eq!(listed.len(), steps);
    for (step, next) in listed.iter().zip(&listed[1..]) {
        assert_eq!((&step["next_seconds"], &step["sync_points"]), (&next["period_seconds"], &1.into()));
        assert!(step["predicted_seconds"].as_f64() > Some(0.0), "{step}");
    }
    assert!(listed[4]["next_seconds"].is_null());
    let table = "[...document.querySelectorAll('main table')].at(-1).querySelectorAll('tbody tr').length";
    assert_eq!(tab.value(table), steps as u64);
    tab.open(&sandbox.path().join("run.html"), "panel=nosuch");
    let wrong = "document.getElementById('wrong').textContent";
    assert!(tab.text(wrong).starts_with("There is no panel nosuch. There are Overview, Loads, "));
    tab.open(&sandbox.path().join("run.html"), "panel=timeline");
    assert!(tab.text(wrong).contains("It needs a run with --record or --perfetto."));
    tab.value("show('loads')");
    assert_eq!(tab.text(wrong), "");
    tab.open(&sandbox.path().join("run.html"), "panel=steps");
    assert_eq!(tab.value("Number(document.querySelector('input[type=range]').max)"), steps as u64 - 1);
    // The frame is around another step than that with the largest load.
    tab.value(
        "{ const it = document.querySelector('input'); it.value = 4; it.dispatchEvent(new Event('input')); }",
    );
    known::brightest_cell_is_yellow(&mut tab, 0, (516.0, 120.0), &document["steps"]);
}

#[test]
#[ignore = "slow"]
fn a_simulated_trace_shows_a_timeline() {
    let sandbox = Sandbox::new();
    sandbox.run(&format!("{RUN} --record run.trace")).result();
    let line = "simulate --events run.trace --network packet";
    let Some(mut tab) = look(&sandbox, line, "timeline", "summary machine matrix distances timeline") else {
        return;
    };
    let document = document(&sandbox, line);
    tab.open(&sandbox.path().join("timeline.html"), "panel=timeline");
    known::brightest_cell_is_yellow(&mut tab, 1, (1076.0, 120.0), &document["timeline"]);
}

#[test]
#[ignore = "slow"]
fn pages_open_in_firefox() {
    let sandbox = Sandbox::new();
    charm_dump(&sandbox);
    sandbox.run(&format!("{REPLAY} --report replay.html")).result();
    let Some(mut tab) = Firefox::start() else { return };
    tab.open(&sandbox.path().join("replay.html"), "panel=all&theme=light");
    let state = tab.value("Object.assign({}, document.body.dataset)");
    assert_eq!((&state["ready"], state.get("error")), (&"yes".into(), None));
    assert_eq!(tab.value(BLANK), 0, "a picture is blank");
    assert_eq!(tab.value("document.querySelectorAll('main section').length"), 6);
    tab.photograph("firefox");
}

#[test]
fn names_without_a_format_are_bad_usage() {
    let sandbox = Sandbox::new();
    let map = "map --graph mesh:4x4 --topology torus:4x4 --report";
    sandbox.run(&format!("{map} map.svg")).failed(2, &["map.svg", "ends neither in .html nor in .json"]);
    sandbox.run(&format!("{map} map.json")).result();
    let document: Value = serde_json::from_str(&sandbox.text("map.json")).expect("JSON");
    assert_eq!((&document["version"], &document["topology"]), (&4.into(), &"torus:4x4".into()));
}

#[test]
fn a_report_that_cannot_be_written_is_refused_before_the_work() {
    let sandbox = Sandbox::new();
    sandbox.run("convert ring:4 tasks.db").result();
    sandbox.put("m.csv", "src,dst,bytes\n0,1,5\n");
    sandbox.put("places.txt", "0\n1\n2\n3\n");
    for line in [
        "map --graph ring:4 --topology torus:4 --output p.txt",
        "replay tasks.db --topology torus:4",
        "explain --graph ring:4 --topology torus:4 --mapping places.txt",
        "simulate --messages m.csv --topology torus:4 --network flow",
        "run stencil2d --pes 2",
    ] {
        let refused = sandbox.run(&format!("{line} --report nowhere/at/all.html"));
        refused.failed(2, &["nowhere/at/all.html", "choose another path"]);
    }
    assert!(!sandbox.path().join("p.txt").exists());
}
