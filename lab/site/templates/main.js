// Shows the view that the address names. What a view shows stands in the address, so that a link shows the same:
// #view/what?choice=value. Runs and sets of samples go by their names, which stay the same when the site is written again.
const VIEWS = {
  runs: [overview, "Overview", "Each run and what it scored; the seeds of a setting share a row."], run: [runPage, "", ""],
  performance: [performance, "Performance", "How well each model does each task, by the ranges S, M, L, XL or against length, with 95 % intervals."],
  samples: [samples, "Samples", "Every answer behind the figures. A wrong digit is underlined, a missing one is a dot, a surplus one is boxed."],
  compare: [compare, "Compare", "Two models that were asked the same problems, or one before and after training."], training: [training, "Training", "Losses by step, and exact match during training; of a group of seeds, the best seed at each step."],
};

function addressOf(view, what = "", chosen = {}) {
  const query = new URLSearchParams(chosen instanceof URLSearchParams ? chosen : Object.entries(chosen).flatMap(([key, value]) => [value].flat().map((one) => [key, one])));
  return `#${view}${what ? `/${encodeURIComponent(what)}` : ""}${query.size ? `?${query}` : ""}`;
}
function readAddress() {
  const [path, query] = location.hash.slice(1).split(/\?(.*)/s), [view, what] = path.split(/\/(.*)/s);
  let named = what;
  try { named = what && decodeURIComponent(what); } catch { /* an address that was typed by hand */ }
  return { view: view in VIEWS ? view : "runs", what: named, chosen: new URLSearchParams(query) };
}

/** Shows the view with other choices, which stand in the address without a step in the history. */
function go(change) {
  const { view, what, chosen } = readAddress();
  for (const [key, value] of Object.entries(change)) { chosen.delete(key); for (const one of [value].flat()) if (one !== "") chosen.append(key, one); }
  history.replaceState(null, "", addressOf(view, what, chosen));
  return show(false);
}

function draw() {
  const queued = drawings;
  drawings = [];
  return Promise.all(queued.map((one) => one()));
}

let latest = null;
async function show(moved = true) {
  const asked = location.hash, { view, what, chosen } = readAddress(), place = document.getElementById("view"), [make, title, lead] = VIEWS[view], call = (latest = {});
  place.setAttribute("aria-busy", "true");
  const content = await Promise.resolve().then(() => make(what, chosen)).catch((error) => [absent(String(error.message ?? error))]);
  if (latest !== call) return;
  const focused = document.activeElement?.id, heading = element("h1", {}, title || element("bdi", {}, visible(what ?? "")));
  for (const box of place.querySelectorAll(".js-plotly-plot")) Plotly.purge(box);
  place.replaceChildren(heading, lead ? element("p", { class: "lead" }, lead) : "", ...content.flat(Infinity).filter(Boolean));
  await draw();
  for (const link of document.querySelectorAll("nav a")) link.toggleAttribute("aria-current", link.hash === `#${view}` || (view === "run" && link.hash === "#runs"));
  document.title = `${heading.textContent} · The number lab`;
  if (focused) document.getElementById(focused)?.focus();
  else if (moved === "turned") { scrollTo({ top: 0, behavior: "instant" }); heading.tabIndex = -1; heading.focus({ preventScroll: true }); }
  place.dataset.address = asked;
  place.removeAttribute("aria-busy");
}

/** While a run is running, the page looks now and then whether the site has been written anew (lab report watch=30). */
async function lookForNewer() {
  let written = VERSION;
  waiting.set("written", (value) => { written = value; });
  await runScript(`written.js?${Date.now()}`).catch(() => {}); // while the site is being replaced
  if (written !== VERSION && !document.hidden && !document.activeElement?.matches("input, select, iframe")) location.reload();
}

loadIndex().then(() => {
  addEventListener("hashchange", () => show("turned"));
  if (DATA.running) setInterval(lookForNewer, 5000);
  return show();
}).catch((error) => document.getElementById("view").replaceChildren(absent(error.message)));
