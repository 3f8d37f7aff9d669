// What a view shows stands in its address, so that a link shows the same: #view/what?choice=value. Runs and sets of samples
// go by their names, which stay the same when the page is written again with more runs.
const distinct = (names) => names.map((name, place) => {
  const before = names.slice(0, place).filter((one) => one === name).length;
  return before ? `${name}~${before + 1}` : name;
});
const RUNS = distinct(DATA.runs.map((run) => run.name)), SETS = distinct(DATA.sets.map((one) => one.label));

/** `chosen`: {choice: value or list of values}; what is empty is left out. */
function addressOf(view, what = "", chosen = {}) {
  const said = new URLSearchParams(Object.entries(chosen).flatMap(([key, value]) => [value].flat().filter((one) => one !== "" && one != null).map((one) => [key, one])));
  return `#${view}${what ? `/${encodeURIComponent(what)}` : ""}${said.size ? `?${said}` : ""}`;
}

function readAddress() {
  const [path, query] = location.hash.slice(1).split(/\?(.*)/s), [view, what] = path.split(/\/(.*)/s);
  let named = what;
  try { named = what && decodeURIComponent(what); } catch { /* an address that was typed by hand */ }
  return { view, what: named, chosen: new URLSearchParams(query) };
}

/** Puts what a reader has chosen into the address, without a step in the history for each choice. */
const keepInAddress = (view, what, chosen) => history.replaceState(null, "", addressOf(view, what, chosen));

/** The values of a choice in the address, as places in a list of names; null if the address says nothing of it. */
function placesIn(chosen, key, names) {
  return chosen.has(key) ? chosen.getAll(key).map((name) => names.indexOf(name)).filter((place) => place >= 0) : null;
}

for (const link of document.querySelectorAll('a[href^="#run/"]')) link.href = addressOf("run", RUNS[Number(link.hash.slice("#run/".length))]);
