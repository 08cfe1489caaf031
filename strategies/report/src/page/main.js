// The page: its panels as tabs, the choice of the strategy, the address, and what tests read.
const panels = [summary, loads, steps, machine, matrix, moves, distances, timeline];
/** The panels that show one of several steps. */
const ofStep = new Set([loads, machine, matrix, moves, distances]);
const stepName = () => data.step === null ? "" : ` at step ${data.step}`;
/** The panels that have something to show; known once the data is. */
let shown = [];

/** The section of a panel: a sentence that says what the panel shows, and its parts. */
function drawPanel(panel) {
  const title = panel.title + (ofStep.has(panel) ? stepName() : "");
  const section = (sentence, ...parts) => make("section",
    { id: `panel-${panel.id}`, role: "tabpanel", "aria-label": panel.title },
    make("h2", {}, title), make("p", {}, sentence), ...parts);
  try {
    return section(...panel.draw());
  } catch (error) {
    // The other panels can still be read.
    document.body.dataset.error = String(error);
    return section(`This panel cannot be shown: ${error}.`);
  }
}

/** A name by which a control is found again after its panel was drawn anew. */
const controlKey = (element) => `${element.tagName} ${element.getAttribute("aria-label") || element.textContent}`;

function redraw() {
  const begin = performance.now();
  tip();
  darkest = Number(variable("--darkest"));
  const holder = document.getElementById("panels"), active = document.activeElement;
  const focused = holder.contains(active) && controlKey(active);
  const chosen = shown.filter((panel) => ["all", panel.id].includes(state.panel));
  holder.replaceChildren(...chosen.map(drawPanel));
  const controls = focused ? [...holder.querySelectorAll("button, input, select, summary, canvas")] : [];
  controls.find((element) => controlKey(element) === focused)?.focus();
  document.querySelectorAll("nav button").forEach((button) => {
    const isOpen = button.id === `tab-${state.panel}`;
    button.setAttribute("aria-selected", isOpen);
    button.tabIndex = isOpen ? 0 : -1;
  });
  document.querySelectorAll("#choice select").forEach((select) => { select.value = state.after; });
  const body = document.body.dataset;
  body.milliseconds = (performance.now() - begin).toFixed(1);
  body.panels = shown.map((panel) => panel.id).join(" ");
  body.strategy = data.placements.length ? after().name : "";
  writeAddress();
}
/** Writes what is shown into the address, which can be sent to others. */
function writeAddress() {
  const values = { panel: state.panel, strategy: document.body.dataset.strategy, theme: state.theme, object: wanted };
  history.replaceState(null, "", `#${new URLSearchParams(Object.entries(values).filter(([, value]) => value))}`);
}
function choose(placement) { state.after = placement; redraw(); }
function show(panel) {
  state.panel = panel;
  document.getElementById("wrong").textContent = "";
  redraw();
}

const prefersDark = matchMedia("(prefers-color-scheme: dark)");
/** Reads the panel, the strategy, the theme and the object that is looked for from the address. */
function readAddress() {
  const address = new URLSearchParams(location.hash.slice(1));
  const strategy = address.get("strategy"), named = data.placements.findIndex((it) => it.name === strategy);
  state.after = named >= 0 ? named : data.recommended ?? Math.max(0, data.placements.length - 1);
  const panel = (address.get("panel") || "").toLowerCase();
  const known = panels.find((it) => [it.id, it.title.toLowerCase()].includes(panel)), wrong = [];
  state.panel = panel === "all" ? panel : (shown.includes(known) ? known : shown[0]).id;
  if (panel && panel !== "all" && !shown.includes(known)) {
    wrong.push(known ? `This report has nothing for the panel ${known.title}.` : `There is no panel ${panel}.`);
    wrong.push(known?.lacks, `There are ${shown.map((it) => it.title).join(", ")}.`);
  }
  if (strategy && named < 0) wrong.push(`There is no strategy ${strategy}.`);
  document.getElementById("wrong").textContent = wrong.filter(Boolean).join(" ");
  wanted = address.get("object") || "";
  state.theme = ["light", "dark"].includes(address.get("theme")) ? address.get("theme") : "";
  applyTheme();
}
/** The theme of the address, else that of the system. */
function applyTheme() {
  document.documentElement.dataset.theme = state.theme || (prefersDark.matches ? "dark" : "light");
}

async function start() {
  data = await decoded();
  document.getElementById("title").textContent = data.title;
  document.getElementById("lead").textContent = data.sentences[0] || "";
  shown = panels.filter((panel) => {
    try {
      return panel.exists();
    } catch {
      // Its place says why it cannot be shown.
      return true;
    }
  });
  readAddress();
  const tab = (id, title) =>
    make("button", { id: `tab-${id}`, role: "tab", "aria-controls": "panels", onclick: () => show(id) }, title);
  document.getElementById("tabs").append(...shown.map((panel) => tab(panel.id, panel.title)), tab("all", "All"));
  document.getElementById("tabs").addEventListener("keydown", (event) => {
    const all = [...event.currentTarget.children], at = all.indexOf(document.activeElement), n = all.length;
    const next = all[{ ArrowLeft: (at + n - 1) % n, ArrowRight: (at + 1) % n, Home: 0, End: n - 1 }[event.key]];
    focusNext(event, next);
    next?.click();
  });
  if (data.placements.length > 1) {
    const names = data.placements.map((it, i) => i ? it.name : "no other placement");
    const strategies = select("Compared strategy", names, state.after, choose);
    document.getElementById("choice").append(`Compared: ${nameBefore()} and `, strategies, stepName());
  }
  let usual = state.panel;
  // Paper is white, and has no tabs.
  addEventListener("beforeprint", () => {
    usual = state.panel;
    document.documentElement.dataset.theme = "light";
    show("all");
  });
  addEventListener("afterprint", () => {
    applyTheme();
    show(usual);
  });
  addEventListener("hashchange", () => { readAddress(); redraw(); });
  prefersDark.addEventListener("change", () => { applyTheme(); redraw(); });
  redraw();
  document.body.dataset.ready = "yes";
}
addEventListener("error", (event) => { document.body.dataset.error = event.message; });
start().catch((error) => {
  document.body.dataset.error = String(error);
  const text = `The report cannot be shown: ${error}. Open it in a browser of 2023 or later.`;
  document.getElementById("lead").textContent = text;
});
