//! Pages of `--report`, opened in Chromium without a window.

use equipoise_tests::{Sandbox, skip};
use std::path::Path;
use std::process::Command;

/// The browser, if the computer has one.
fn browser() -> Option<&'static str> {
    let found = ["chromium", "google-chrome"].into_iter().find(|name| {
        std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default())
            .any(|folder| folder.join(name).exists())
    });
    if found.is_none() {
        skip("pages of reports: neither chromium nor google-chrome is on the PATH");
    }
    found
}

/// The page `file` after its scripts have run.
fn opened(browser: &str, folder: &Path, file: &str, address: &str) -> String {
    let page = format!("file://{}#{address}", folder.join(file).display());
    let output = Command::new(browser)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=20000", "--dump-dom"])
        .arg(format!("--user-data-dir={}", folder.join("browser").display()))
        .arg(page)
        .output()
        .expect("the browser runs");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[track_caller]
fn check_page(page: &str, expected: &[&str]) {
    assert!(page.contains("data-ready=\"yes\""), "the page was not drawn: {}", &page[..page.len().min(2000)]);
    assert!(!page.contains("data-error"), "a script failed");
    assert!(page.contains("data-blank=\"0\""), "a picture is blank");
    for phrase in expected {
        assert!(page.contains(phrase), "the page does not contain {phrase}");
    }
}

#[test]
fn every_panel_of_a_replay_is_drawn() {
    let Some(browser) = browser() else { return };
    let sandbox = Sandbox::new();
    let record = "run stencil2d --pes 4 --cells 16 --iterations 60 --imbalance 4 --charge 1e-7 --lb-every 20 --lb-no-background \
                  --lb-dump s.db --lb-dump-steps 2";
    sandbox.run(record).ended_well();
    sandbox
        .run("replay s.db --topology torus:2x2 --balancer GreedyLB --balancer PoiseLB --report a.html")
        .ended_well();
    let panels = "data-panels=\"summary loads steps machine matrix moves distances\"";
    let page = opened(browser, sandbox.path(), "a.html", "panel=all&strategy=GreedyLB&theme=dark");
    let sentences = [
        "as recorded",
        "★ recommended",
        "Load of 4 PEs GreedyLB",
        "Links of the grid, GreedyLB",
        "GreedyLB moves ",
    ];
    check_page(
        &page,
        &[&[panels, "data-strategy=\"GreedyLB\"", "data-theme=\"dark\""], &sentences[..]].concat(),
    );
}

#[test]
fn names_without_a_format_are_bad_usage() {
    let sandbox = Sandbox::new();
    let map = "map --graph mesh:4x4 --topology torus:4x4 --report";
    sandbox.run(&format!("{map} map.svg")).failed(2, &["map.svg", "ends neither in .html nor in .json"]);
    sandbox.run(&format!("{map} map.json")).ended_well();
    let document: serde_json::Value = serde_json::from_str(&sandbox.text("map.json")).expect("JSON");
    assert_eq!((&document["version"], &document["topology"]), (&1.into(), &"torus:4x4".into()));
}

#[test]
fn a_report_that_cannot_be_written_is_refused_before_the_work() {
    let sandbox = Sandbox::new();
    let map = "map --graph mesh:4x4 --topology torus:4x4 --output p.txt --report nowhere/map.html";
    sandbox.run(map).failed(2, &["nowhere/map.html", "choose another path"]);
    assert!(!sandbox.path().join("p.txt").exists());
}
