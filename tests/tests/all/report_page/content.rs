//! What pages say: of runs without steps or with an error, of several steps, and of objects that move.

use equipoise_tests::{Sandbox, WORKSPACE};
use serde_json::Value;

use super::chromium::Chromium;
use super::{RUN, document};

/// A run with four-dimensional and three-dimensional elements, the first strategy of which moves something.
const PAIRS: &str = "run leanmd --pes 4 --cells 3x3x3 --particles 30 --iterations 20 --lb-every 5 --balancer GreedyLB --transport simulated \
                     --topology torus:2x2 --network flow --forces charged";

fn texts(list: &Value) -> Vec<&str> {
    list.as_array().expect("a list").iter().filter_map(Value::as_str).collect()
}

#[test]
#[ignore = "slow"]
fn a_run_without_a_balancer_shows_its_loads() {
    let sandbox = Sandbox::new();
    let line = RUN.replace("--balancer GreedyRefineLB", "");
    let shown = document(&sandbox, &line);
    let sentences = texts(&shown["sentences"]);
    assert!(
        sentences[0].ends_with("No load balancer was given, so no element moved; --balancer NAME names one.")
    );
    assert!(sentences[1].ends_with("All panels but Steps show step 0; no step moved an element."));
    assert!(sentences[2].starts_with("Command: equipoise run stencil2d --pes 8 --cells 16"), "{sentences:?}");
    assert_eq!(shown["placements"].as_array().map(Vec::len), Some(1));
    assert_eq!((&shown["placements"][0]["name"], &shown["step"]), (&"before".into(), &0.into()));
    assert_eq!(shown["steps"]["columns"].as_array().map(Vec::len), Some(5));
    let off = sandbox.run(&format!("{line} --lb-off --report off.html"));
    assert!(
        off.stderr.contains("the run had no load-balancing step, so its report shows no placement"),
        "{}",
        off.stderr
    );
    let Some(mut tab) = Chromium::start() else { return };
    tab.open(&sandbox.path().join("off.html"), "");
    let lead = tab.text("document.getElementById('lead').textContent");
    assert!(lead.contains("with --balancer NAME it moves them"), "{lead}");
    sandbox.run(&format!("{line} --report a.html")).result();
    tab.open(&sandbox.path().join("a.html"), "panel=summary");
    assert_eq!(
        tab.value("document.querySelectorAll('main td button, select').length"),
        0,
        "there is no choice"
    );
}

#[test]
#[ignore = "slow"]
fn the_step_with_the_largest_gain_is_one_with_migrations() {
    let sandbox = Sandbox::new();
    let shown = document(&sandbox, &RUN.replace("GreedyRefineLB", "RotateLB"));
    let sentences = texts(&shown["sentences"]);
    assert!(shown["placements"][1]["metrics"]["migrations"].as_u64() > Some(0));
    assert!(sentences[0].starts_with("The time between sync points was "), "{sentences:?}");
    let of_step = format!("Step {}, RotateLB, by the loads before it: the largest load ", shown["step"]);
    assert!(sentences[1..].iter().any(|it| it.starts_with(&of_step)), "{sentences:?}");
    // Where the time of the strategy is not charged, the report says so.
    let says = |shown: &Value| {
        texts(&shown["sentences"]).iter().any(|it| it.contains("unless --strategy-seconds gives it"))
    };
    assert!(says(&shown) && shown["placements"][1]["strategy_seconds"].is_null());
    let charged = document(&sandbox, &format!("{RUN} --strategy-seconds 0.001"));
    assert!(!says(&charged) && charged["placements"][1]["strategy_seconds"] == 0.001, "{charged}");
}

#[test]
fn a_run_that_failed_says_so_first() {
    let sandbox = Sandbox::new();
    sandbox.run(&format!("{RUN} --time-limit 0.001 --report a.json")).failed(1, &["--time-limit"]);
    let shown: Value = serde_json::from_str(&sandbox.text("a.json")).expect("JSON");
    let lead = texts(&shown["sentences"])[0].to_string();
    assert!(
        lead.starts_with("The run failed: the run did not end within --time-limit 0.001 (seconds)"),
        "{lead}"
    );
}

#[test]
#[ignore = "slow"]
fn several_steps_are_added_up_where_they_are_compared() {
    let sandbox = Sandbox::new();
    let line = format!(
        "replay {WORKSPACE}/apps/databases/amr.db --balancer GreedyLB --balancer RefineLB --balancer DummyLB"
    );
    let sums = sandbox.run(&format!("{line} --format json")).document();
    let shown = document(&sandbox, &line);
    let lead = texts(&shown["sentences"])[0].to_string();
    assert!(lead.contains(" for 5 periods."), "{lead}");
    for (at, name) in ["GreedyLB", "RefineLB", "DummyLB"].iter().enumerate() {
        let placement = &shown["placements"][at + 1];
        assert_eq!(placement["name"], *name);
        assert_eq!(placement["totals"]["migrations"], sums["strategies"][at]["migrations"]);
        assert_eq!(placement["totals"]["step_seconds"], sums["strategies"][at]["after"]["step_seconds"]);
    }
    assert_eq!(shown["placements"][0]["totals"]["step_seconds"], sums["before"]["step_seconds"]);
    sandbox.run(&format!("{line} --report a.html")).result();
    let Some(mut tab) = Chromium::start() else { return };
    let file = sandbox.path().join("a.html");
    tab.open(&file, "panel=summary");
    assert_eq!(tab.text("document.querySelector('main h3').textContent"), "Sums over 5 steps");
    let step = shown["step"].as_u64().expect("a step");
    let choice = tab.text("document.getElementById('choice').textContent");
    assert!(choice.ends_with(&format!(" at step {step}")), "{choice}");
    // The order stays when another strategy is chosen.
    tab.value(
        "[...document.querySelectorAll('th button')].find((it) => it.textContent === 'migrations').click()",
    );
    let order = "[...document.querySelectorAll('main tbody tr')].map((it) => it.cells[0].innerText).join()";
    let sorted = tab.text(order);
    assert!(sorted.ends_with("DummyLB,before (as recorded)"), "{sorted}");
    tab.value("choose(1)");
    assert_eq!(tab.text(order), sorted);
    tab.open(&file, "panel=loads");
    assert_eq!(tab.text("document.querySelector('main h2').textContent"), format!("Loads at step {step}"));
    tab.open(&file, "panel=steps");
    let words = tab.text("document.querySelector('output').textContent");
    // The same max/avg as the text of the replay has for this step.
    let of_step = sandbox.run(&format!("{line} --step {step} --format json")).document();
    let imbalance = of_step["before"]["imbalance"].as_f64().expect("a number");
    assert!(words.contains(&format!(" (max/avg {:.3}) before", 1.0 + imbalance)), "{words}");
    assert!(
        words.starts_with(&format!(" {step}: ")) && words.ends_with("(the step of the other panels)"),
        "{words}"
    );
    tab.has_no_problem();
}

/// The page of [`PAIRS`] with the panel Migrations, and its document.
fn moves_page(sandbox: &Sandbox) -> Option<(Chromium, Value)> {
    sandbox.run(&format!("{PAIRS} --report a.html")).result();
    let shown = document(sandbox, PAIRS);
    let mut tab = Chromium::start()?;
    tab.open(&sandbox.path().join("a.html"), "panel=moves");
    Some((tab, shown))
}

/// A column of the objects that move.
fn column(tab: &mut Chromium, column: usize) -> Vec<String> {
    let cells = tab.value(&format!(
        "[...document.querySelectorAll('.moving tbody tr')].map((it) => it.cells[{column}].textContent)"
    ));
    texts(&cells).into_iter().map(String::from).collect()
}

/// By PE: the load with the placement.
fn loads(shown: &Value, placement: usize) -> Vec<f64> {
    let all = &shown["placements"][placement]["load_seconds"];
    all.as_array().expect("loads").iter().filter_map(Value::as_f64).collect()
}

/// The PE of a cell such as `3 (+45 %)`, whose load is compared with the percentage.
fn loaded_pe(cell: &str, loads: &[f64]) -> usize {
    let (pe, part) = cell.split_once(" (").expect("a PE and its load");
    let pe = pe.parse::<usize>().expect("a PE");
    let (sign, percent) = part.split_at(part.chars().next().map_or(0, char::len_utf8));
    let percent: f64 = percent.trim_end_matches(" %)").parse().expect("a percentage");
    let relative = loads[pe] * loads.len() as f64 / loads.iter().sum::<f64>() - 1.0;
    assert!((100.0 * relative.abs() - percent).abs() < 0.6, "{cell}: {relative}");
    assert!(percent == 0.0 || (sign == "+") == (relative > 0.0), "{cell}: {relative}");
    pe
}

#[test]
#[ignore = "slow"]
fn objects_that_move_have_their_names_and_facts() {
    let sandbox = Sandbox::new();
    let Some((mut tab, shown)) = moves_page(&sandbox) else { return };
    let names = column(&mut tab, 0);
    let dimensions = |name: &str| name.matches(',').count() + 1;
    assert!(
        names.iter().all(|name| dimensions(name) == if name.starts_with("Compute") { 4 } else { 3 }),
        "{names:?}"
    );
    // The first click on loads sorts the heaviest first.
    tab.value(
        "[...document.querySelectorAll('.moving th button')].find((it) => it.textContent === 'load').click()",
    );
    assert_eq!(tab.text("document.querySelector('.moving th[aria-sort=descending]').textContent"), "load");
    assert_eq!(column(&mut tab, 0), names, "the table begins in this order");
    for (placement, at) in [(0, 1), (1, 2)] {
        let loads = loads(&shown, placement);
        column(&mut tab, at).iter().for_each(|cell| _ = loaded_pe(cell, &loads));
    }
    tab.has_no_problem();
}

#[test]
fn an_object_is_searched_or_chosen() {
    let sandbox = Sandbox::new();
    let Some((mut tab, _)) = moves_page(&sandbox) else { return };
    let names = column(&mut tab, 0);
    let said = "document.querySelector('.moving').previousElementSibling.textContent";
    // An object whose name is contained in others comes first.
    let wanted = names.last().expect("an object").clone();
    tab.value(&format!(
        "{{ const it = document.querySelector('input[type=search]'); it.value = '{wanted}'; it.dispatchEvent(new Event('input')); }}"
    ));
    assert_eq!(column(&mut tab, 0)[0], wanted);
    let [from, to] = [1, 2].map(|at| column(&mut tab, at)[0].clone());
    let sentence = tab.text(said);
    assert!(sentence.starts_with(&format!("{wanted} (")), "{sentence}");
    let (to, after) = to.split_once(" (").expect("a PE and its load");
    let after = after.replace(')', " after)");
    for words in [
        format!(" moves from PE {}, ", from.replace(')', " before")),
        format!(" to PE {to} ("),
        format!(", {after}."),
    ] {
        assert!(sentence.contains(&words), "{words}: {sentence}");
    }
    // The address has what is searched, and a page opens with it.
    tab.value("document.querySelector('input[type=search]').dispatchEvent(new Event('change'))");
    let address = tab.text("new URLSearchParams(location.hash.slice(1)).get('object')");
    assert_eq!(address, wanted);
    tab.value("{ wanted = ''; location.hash = location.hash; readAddress(); redraw(); }");
    assert_eq!(tab.text("document.querySelector('input[type=search]').value"), wanted);
    // Another object is chosen by its name.
    tab.value("{ const it = document.querySelector('input[type=search]'); it.value = ''; it.dispatchEvent(new Event('input')); }");
    assert!(tab.text(said).starts_with(&format!("{} (", names[0])));
    tab.value("document.querySelectorAll('.moving td button')[1].click()");
    assert!(tab.text(said).starts_with(&format!("{} (", names[1])));
    let marked = "[...document.querySelectorAll('.moving [aria-current=true]')].map((it) => it.cells[0].textContent).join()";
    assert_eq!(tab.text(marked), names[1]);
    tab.value("document.querySelectorAll('.moving th button')[3].click()");
    assert_eq!(tab.text(marked), names[1], "the mark stays when the table is sorted");
    tab.has_no_problem();
}

#[test]
#[ignore = "slow"]
fn the_reasons_of_moves_follow_from_the_loads() {
    let sandbox = Sandbox::new();
    let Some((mut tab, shown)) = moves_page(&sandbox) else { return };
    let [before, after] = [0, 1].map(|placement| loads(&shown, placement));
    let average = before.iter().sum::<f64>() / before.len() as f64;
    let heaviest = after.iter().copied().fold(0.0, f64::max);
    let hops = &shown["placements"][1]["hop_bytes_by_move"];
    let all = tab.value(
        "movedObjects().map((i) => { \
         const it = document.querySelector('input[type=search]'); it.value = objectName(i); it.dispatchEvent(new Event('input')); \
         const list = document.querySelector('.moving'), cells = [...list.querySelector('tbody tr').cells].map((it) => it.textContent); \
         return [i, before().pe_of[i], list.previousElementSibling.textContent, cells[4], cells.at(-1)]; })",
    );
    let mut counts = [0; 5];
    for object in all.as_array().expect("a list") {
        let [index, from] = [0, 1].map(|at| object[at].as_u64().expect("a number") as usize);
        let [sentence, if_stayed, reason] = [2, 3, 4].map(|at| object[at].as_str().expect("a text"));
        // With the object in addition to what its PE has after the step.
        let stayed = after[from] + shown["objects"]["load_seconds"][index].as_f64().expect("a load");
        let percent: f64 = if_stayed
            .replace('−', "-")
            .trim_end_matches(" %")
            .trim_start_matches(['+', '±'])
            .parse()
            .expect("a number");
        assert!((stayed / average - 1.0 - percent / 100.0).abs() < 0.006, "{if_stayed}: {stayed}");
        let is_nearer = hops[index].as_i64() < Some(0);
        let is_above = |load: f64| load > 1.001 * heaviest;
        let of_load = match (is_above(before[from]), is_above(stayed)) {
            (true, true) => Some(0),
            (false, true) => Some(1),
            (true, false) if !is_nearer => Some(3),
            _ => None,
        };
        let kinds: Vec<usize> = of_load.into_iter().chain(is_nearer.then_some(2)).collect();
        let all_names = ["load", "room", "distance", "load with others"];
        let names: Vec<&str> = kinds.iter().map(|&kind| all_names[kind]).collect();
        let expected = if names.is_empty() { "unclear".to_string() } else { names.join(" and ") };
        assert!(
            reason == expected && sentence.ends_with(&format!(" Reason: {expected}.")),
            "{reason}: {sentence}"
        );
        kinds.iter().for_each(|&kind| counts[kind] += 1);
        counts[4] += u32::from(kinds.is_empty());
    }
    assert!(counts[0] > 0, "{counts:?}");
    let summary = tab.text("document.querySelector('main section > p').textContent");
    let words = [" load: ", "room for others: ", "distance: ", "load with others: ", "unclear: "];
    for (count, words) in counts.iter().zip(words) {
        assert_eq!(summary.contains(&format!("{words}{count}")), *count > 0, "{summary}");
    }
    tab.has_no_problem();
}

#[test]
fn equal_simulated_runs_have_equal_pages() {
    let sandbox = Sandbox::new();
    let page = || {
        sandbox.run(&format!("{PAIRS} --perfetto run.pftrace --report a.html")).result();
        sandbox.text("a.html")
    };
    assert!(page() == page(), "the pages differ");
}

#[test]
#[ignore = "slow"]
fn placements_with_fewer_migrations_are_a_curve() {
    let sandbox = Sandbox::new();
    let line = format!(
        "replay {WORKSPACE}/apps/databases/pic.db --step 3 --pes 16 --topology torus:4x4 --balancer GreedyLB --balancer PoiseLB"
    );
    let shown = document(&sandbox, &line);
    let placements = shown["placements"].as_array().expect("placements");
    let best = shown["recommended"].as_u64().expect("a recommendation") as usize;
    // Only those of the recommended placement are sought.
    for (at, placement) in placements.iter().enumerate() {
        let points = placement["between"].as_array().expect("a list");
        assert_eq!(points.len() > 3, at == best, "{}", placement["name"]);
    }
    let points = placements[best]["between"].as_array().expect("a list");
    let migrations: Vec<u64> = points.iter().filter_map(|it| it["migrations"].as_u64()).collect();
    assert!(migrations.is_sorted() && migrations.len() == points.len(), "{migrations:?}");
    assert_eq!(migrations.last().copied(), placements[best]["metrics"]["migrations"].as_u64());
    // With a limit, the strategy chooses the same placement.
    let most = migrations.last().expect("a placement") / 5;
    let name = placements[best]["name"].as_str().expect("a name");
    let limited = format!(
        "replay {WORKSPACE}/apps/databases/pic.db --step 3 --pes 16 --topology torus:4x4 --balancer {name} --max-moves {most} --format json"
    );
    let chosen = sandbox.run(&limited).document()["strategies"][0]["after"].clone();
    let shown = points.iter().rfind(|it| it["migrations"].as_u64() <= Some(most)).expect("a placement");
    assert_eq!(shown["migrations"], chosen["migrations"]);
    assert_eq!(shown["hop_bytes"], chosen["hop_bytes"]);
    sandbox.run(&format!("{line} --report a.html")).result();
    let Some(mut tab) = Chromium::start() else { return };
    // The address may have the name of the tab.
    tab.open(&sandbox.path().join("a.html"), "panel=migrations&theme=light");
    tab.photograph("fewer-migrations");
    let words =
        tab.text("[...document.querySelectorAll('main svg text')].map((it) => it.textContent).join(' ')");
    assert!(
        words.contains(&format!(" {} migrations (axis of square roots)", migrations.last().expect("one"))),
        "{words}"
    );
    // The sentence about few migrations: the first placement with the load of the last one moves few objects, none, or most.
    let enough = "[[[0, 2, 9], [1, 1.005, 5], [9, 1, 3]], [[0, 1, 9], [9, 1, 3]], [[0, 2, 9], [5, 1, 5], [9, 1, 3]]].map((points) => \
                  enoughMigrations(points.map(([migrations, max_over_avg, hop_bytes]) => ({ migrations, max_over_avg, hop_bytes })), bytesText))";
    let few = "With 1 of 9 migrations, max/avg is already 1.005; the others lower hop-bytes from 5 B to 3 B.";
    assert_eq!(tab.value(enough), serde_json::json!([few, "", ""]));
    // The placement before is a point of both curves, too.
    let circles = tab.value("document.querySelectorAll('polyline ~ circle').length").as_u64();
    assert_eq!(circles, Some(2 * (points.len() as u64 + 1)));
    let heights = tab.value(
        "[...document.querySelectorAll('polyline')].map((it) => it.getAttribute('points').trim().split(/[ ,]/).map(Number))",
    );
    for curve in heights.as_array().expect("curves") {
        let numbers: Vec<f64> = curve.as_array().expect("places").iter().filter_map(Value::as_f64).collect();
        let across: Vec<f64> = numbers.iter().copied().step_by(2).collect();
        assert!(across.is_sorted() && numbers.iter().all(|it| it.is_finite()), "{numbers:?}");
    }
    tab.has_no_problem();
}

#[test]
#[ignore = "slow"]
fn pages_fit_into_narrow_windows() {
    let sandbox = Sandbox::new();
    sandbox.run(&format!("{PAIRS} --report a.html")).result();
    let Some(mut tab) = Chromium::start() else { return };
    let size = serde_json::json!({ "width": 390, "height": 800, "deviceScaleFactor": 1, "mobile": false });
    tab.call("Emulation.setDeviceMetricsOverride", size);
    tab.prefer("dark");
    tab.open(&sandbox.path().join("a.html"), "panel=all&theme=light");
    assert!(tab.value("document.documentElement.scrollWidth").as_u64() <= Some(390));
    tab.photograph("narrow");
    let ids = "[...document.querySelectorAll('[id]')].map((it) => it.id)";
    assert_eq!(tab.value(&format!("new Set({ids}).size === {ids}.length")), true, "each id occurs once");
    // The address without a theme is that of the browser's preference.
    tab.value("new Promise((done) => { addEventListener('hashchange', done); location.hash = 'panel=loads'; }).then(() => 0)");
    assert_eq!(tab.text("getComputedStyle(document.body).backgroundColor"), "rgb(21, 24, 28)");
    tab.has_no_problem();
}
