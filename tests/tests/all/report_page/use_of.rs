//! How people use a page: keys, the mouse, paper.

use equipoise_tests::Sandbox;
use serde_json::json;

use super::chromium::{Chromium, bytes_of};
use super::{REPLAY, RUN, charm_dump};

/// A page of a replay, and its tab.
fn replay() -> Option<(Sandbox, Chromium)> {
    let sandbox = Sandbox::new();
    charm_dump(&sandbox);
    sandbox.run(&format!("{REPLAY} --report a.html")).result();
    let tab = Chromium::start()?;
    Some((sandbox, tab))
}

/// The element that has the focus: its `id`, else its label, else its text.
fn focused(tab: &mut Chromium) -> String {
    tab.text(
        "{ const it = document.activeElement; it.id || it.getAttribute('aria-label') || it.textContent; }",
    )
}

#[test]
fn tabs_and_tables_are_used_with_keys() {
    let Some((sandbox, mut tab)) = replay() else { return };
    tab.open(&sandbox.path().join("a.html"), "panel=summary");
    tab.press("Tab");
    assert_eq!(focused(&mut tab), "tab-summary", "only the open tab is a stop of the key Tab");
    tab.press("ArrowRight");
    assert_eq!(
        (focused(&mut tab), tab.value("location.hash.includes('panel=loads')")),
        ("tab-loads".into(), true.into())
    );
    tab.press("End");
    assert_eq!(focused(&mut tab), "tab-all");
    tab.press("ArrowRight");
    assert_eq!(focused(&mut tab), "tab-summary");
    tab.press("Tab");
    assert_eq!(focused(&mut tab), "Compared strategy");
    tab.press("ArrowUp");
    assert_eq!(tab.text("document.body.dataset.strategy"), "RefineLB");
    // The table itself scrolls, its first head sorts by the name of the strategy.
    tab.press("Tab");
    tab.press("Tab");
    assert_eq!(focused(&mut tab), "strategy");
    tab.press("Enter");
    let order = "[...document.querySelectorAll('main tbody button')].map((it) => it.textContent).join(' ')";
    assert_eq!(tab.text(order), "GreedyLB PoiseLB RefineLB before (in blocks)");
    assert_eq!(tab.text("document.querySelector('th').getAttribute('aria-sort')"), "ascending");
    tab.press("Enter");
    assert_eq!(tab.text(order), "before (in blocks) RefineLB PoiseLB GreedyLB");
    tab.value("document.querySelector('main tbody button').focus()");
    for _ in 0..5 {
        tab.press("ArrowDown");
    }
    assert_eq!(focused(&mut tab), "Show GreedyLB in all panels", "arrow keys end at the last row");
    tab.press("ArrowUp");
    tab.press("ArrowUp");
    tab.press("Enter");
    assert_eq!(tab.text("document.body.dataset.strategy"), "RefineLB");
    assert_eq!(focused(&mut tab), "Show RefineLB in all panels", "the focus stays where it was");
    tab.has_no_problem();
}

#[test]
#[ignore = "slow"]
fn pictures_say_what_is_under_the_cursor() {
    let Some((sandbox, mut tab)) = replay() else { return };
    let file = sandbox.path().join("a.html");
    tab.open(&file, "panel=loads&strategy=GreedyLB");
    tab.point("main canvas", 0.1, 0.5);
    let tip = tab.text("document.getElementById('tip').textContent");
    assert!(tip.starts_with("PE 0: ") && tip.contains("array 15#") && !tip.contains("#4222"), "{tip}");
    tab.value("document.querySelectorAll('main canvas')[1].focus()");
    let (tip, is_hidden) =
        ("document.getElementById('tip').textContent", "document.getElementById('tip').hidden");
    for pe in [13, 14, 15] {
        tab.press("ArrowRight");
        let tip = tab.text(tip);
        assert!(tip.starts_with(&format!("PE {pe}: ")), "the frame begins in the middle of 27 PEs: {tip}");
    }
    let framed = |tab: &mut Chromium| tab.colour(1, 44.0 + 15.5 / 27.0 * 516.0, 20.5)[3] > 0;
    assert!(framed(&mut tab), "PE 15 has a frame");
    tab.press("Escape");
    assert!(tab.value(is_hidden) == true && !framed(&mut tab), "Escape closes the tip");
    tab.press("ArrowLeft");
    assert_eq!(tab.value(is_hidden), false);
    tab.press("Tab");
    assert_eq!(tab.value(is_hidden), true);
    tab.open(&file, "panel=machine&strategy=GreedyLB");
    tab.point("main canvas", 0.061, 0.2);
    let tip = tab.text("document.getElementById('tip').textContent");
    assert!(tip.starts_with("node 0 (0, 0, 0)\n") && tip.lines().count() == 7, "six links: {tip}");
    tab.open(&file, "panel=moves&strategy=RefineLB");
    let rows = "document.querySelectorAll('.moving tbody tr').length";
    let all = tab.value(rows);
    tab.value("{ const it = document.querySelector('input[type=search]'); it.value = '#12'; it.dispatchEvent(new Event('input')); }");
    assert!(tab.value(rows).as_u64() < all.as_u64(), "the search leaves out objects");
    // Ids are found, too: of an object that moves, and of one that stays.
    for (is_moving, rows, expected) in [("!==", "1 ", " moves from PE "), ("===", "0 ", " stays on PE ")] {
        let found = tab.text(&format!(
            "{{ const [then, now] = [before(), after()].map((placement) => placement.pe_of); const it = document.querySelector('input[type=search]'); \
             it.value = data.objects.ids[then.findIndex((pe, i) => pe {is_moving} now[i])]; it.dispatchEvent(new Event('input')); \
             const list = document.querySelector('.moving'); `${{list.querySelectorAll('tbody tr').length}} ${{list.previousElementSibling.textContent}}` }}"
        ));
        assert!(found.starts_with(rows) && found.contains(expected), "{found}");
    }
    // An exact name is preferred to longer ones, also if its object stays; spaces and capitals do not matter.
    let said = tab.text(
        "{ const stays = after().pe_of.findIndex((pe, i) => pe === before().pe_of[i]); const it = document.querySelector('input[type=search]'); \
         it.value = objectName(stays).toUpperCase().replace(' ', ''); it.dispatchEvent(new Event('input')); \
         const said = document.querySelector('.moving').previousElementSibling.textContent; said.startsWith(`${objectName(stays)} stays on PE `) ? 'right' : said }",
    );
    assert_eq!(said, "right");
    tab.open(&file, "panel=loads&strategy=NoSuchLB");
    assert_eq!(tab.text("document.getElementById('wrong').textContent"), "There is no strategy NoSuchLB.");
    tab.has_no_problem();
}

#[test]
#[ignore = "slow"]
fn the_slider_follows_keys() {
    let sandbox = Sandbox::new();
    sandbox.run(&format!("{RUN} --report run.html")).result();
    let Some(mut tab) = Chromium::start() else { return };
    tab.open(&sandbox.path().join("run.html"), "panel=steps");
    tab.value("document.querySelector('input[type=range]').focus()");
    let first = tab.text("document.querySelector('output').textContent");
    // The frame is around the chosen step.
    let frame = tab.colour(0, 44.0 + 1.0, 60.0);
    for _ in 0..2 {
        tab.press("ArrowRight");
    }
    let third = tab.text("document.querySelector('output').textContent");
    assert!(
        first.starts_with(" 0: largest load ") && third.starts_with(" 2: largest load "),
        "{first}, {third}"
    );
    assert!(third.contains(" before, ") && third.ends_with(" after"), "{third}");
    assert_eq!(tab.colour(0, 44.0 + 2.0 * 516.0 / 5.0 + 1.0, 60.0), frame);
    assert_eq!(focused(&mut tab), "Step", "the slider is not replaced");
    // Relative to averages, the colours reach to the largest max/avg of a step.
    let scale = "document.querySelector('.legend').textContent";
    assert!(tab.text(scale).ends_with("s"), "{}", tab.text(scale));
    tab.value("document.querySelector('input[type=checkbox]').click()");
    let most = "Math.max(...[data.steps, after().steps].flatMap((heat) => heat.max_over_avg)).toFixed(3)";
    let most = tab.text(most);
    assert!(tab.text(scale).ends_with(&most), "{} is up to {most}", tab.text(scale));
    tab.has_no_problem();
}

#[test]
#[ignore = "slow"]
fn the_number_of_an_object_finds_it_though_indices_have_that_number() {
    let sandbox = Sandbox::new();
    sandbox.run(&format!("{RUN} --report run.html")).result();
    let Some(mut tab) = Chromium::start() else { return };
    tab.open(&sandbox.path().join("run.html"), "panel=moves&object=%237");
    let (name, said) =
        ("objectName(7)", "document.querySelector('.moving').previousElementSibling.textContent");
    let (name, said) = (tab.text(name), tab.text(said));
    assert!(said.starts_with(&format!("{name} ")), "{name} is not the first word of: {said}");
    tab.has_no_problem();
}

#[test]
#[ignore = "slow"]
fn pages_follow_the_light_of_the_system() {
    let Some((sandbox, mut tab)) = replay() else { return };
    let back = "getComputedStyle(document.body).backgroundColor";
    tab.prefer("dark");
    tab.open(&sandbox.path().join("a.html"), "panel=loads");
    assert_eq!(tab.text(back), "rgb(21, 24, 28)");
    let bar = tab.colour(1, 54.0, 295.0);
    tab.prefer("light");
    // The browser tells the page at a time of its own.
    tab.wait_for(&format!("{back} == 'rgb(255, 255, 255)'"));
    assert_ne!(tab.colour(1, 54.0, 295.0), bar, "pictures are drawn again");
    tab.has_no_problem();
}

#[test]
#[ignore = "slow"]
fn paper_has_all_panels_on_white() {
    let Some((sandbox, mut tab)) = replay() else { return };
    tab.open(&sandbox.path().join("a.html"), "panel=moves&theme=dark");
    tab.value("addEventListener('beforeprint', () => { window.printed = [document.querySelectorAll('main section').length, document.documentElement.dataset.theme]; })");
    let printed = tab.call("Page.printToPDF", json!({ "printBackground": true }));
    let paper = bytes_of(printed["data"].as_str().expect("a document"));
    assert!(paper.starts_with(b"%PDF"));
    std::fs::write(super::chromium::pictures().join("paper.pdf"), &paper).expect("a file");
    assert_eq!(tab.value("window.printed"), json!([6, "light"]));
    assert_eq!(tab.value("document.querySelectorAll('main section').length"), 1);
    assert_eq!(tab.text("document.documentElement.dataset.theme"), "dark");
    tab.call("Emulation.setEmulatedMedia", json!({ "media": "print" }));
    assert_eq!(tab.text("getComputedStyle(document.querySelector('nav')).display"), "none");
    // A bar of colours is on one page with its ends: here columns are pages.
    let places = "(() => { const page = make('div', { style: 'columns: 300px 2; column-fill: auto; width: 700px; height: 100px' }, \
         make('div', { style: 'height: 60px' }), legend('viridis', 'low', 'high', 'title')); document.body.append(page); \
         const places = [...page.querySelectorAll('.legend > :not(:last-child)')].map((it) => it.getBoundingClientRect().x); \
         page.remove(); return places.every((x) => x === places[0]); })()";
    assert_eq!(tab.value(places), true);
    tab.value("document.documentElement.dataset.theme = 'light', show('all')");
    tab.photograph("paper");
    tab.has_no_problem();
}

#[test]
#[ignore = "slow"]
fn a_panel_that_cannot_be_drawn_leaves_the_others() {
    let Some((sandbox, mut tab)) = replay() else { return };
    tab.open(&sandbox.path().join("a.html"), "panel=summary");
    tab.value("loads.draw = () => { throw new Error('no loads'); }, show('all')");
    assert_eq!(tab.value("document.querySelectorAll('main section').length"), 6);
    let said = tab.text("document.querySelector('#panel-loads').innerText");
    assert!(said.contains("This panel cannot be shown: Error: no loads."), "{said}");
    assert_eq!(tab.text("document.body.dataset.error"), "Error: no loads");
}
