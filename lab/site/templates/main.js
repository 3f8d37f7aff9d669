// Shows the view that the address names after the hash, such as #run/NAME.
const VIEWS = { runs: openRuns, run: openRun, performance: openPerformance, heatmap: openHeatmap, errors: openErrors, samples: openSamples, compare: openCompare, training: openTraining, cost() {}, probing() {}, adders() {}, findings: openFinding };
let shownView = null;

function show() {
  const { view: asked, what, chosen } = readAddress();
  if (asked === "main") return;
  const view = asked in VIEWS ? asked : "runs";
  for (const section of document.querySelectorAll("main > section")) section.hidden = section.id !== view;
  for (const link of document.querySelectorAll("nav a")) {
    const current = link.hash === `#${view}` || (view === "run" && link.hash === "#runs");
    if (current) { link.setAttribute("aria-current", "page"); link.scrollIntoView({ block: "nearest", inline: "nearest" }); } else link.removeAttribute("aria-current");
  }
  const heading = document.querySelector(`#${view} h1`);
  VIEWS[view](what, chosen);
  document.title = `${heading.textContent} · The number lab`;
  tip.hidden = true;
  if (shownView !== null) {
    scrollTo({ top: 0, behavior: "instant" });
    heading.tabIndex = -1;
    heading.focus({ preventScroll: true });
  }
  shownView = view;
}

addEventListener("hashchange", show);
addEventListener("keydown", (event) => { if (event.key === "Escape") tip.hidden = true; });
show();
