// The files of the site: a page opened from disk may not fetch files, but it may add scripts.
const waiting = new Map(), loaded = new Map();
const KEPT = 400; // files that stay in memory
window.receive = (name, value) => waiting.get(name)?.(value);

/** The address of a file of the version of the site to which this page belongs. */
const fileOf = (name) => `${VERSION}/${name}`;

function runScript(src) {
  const script = Object.assign(document.createElement("script"), { src });
  return new Promise((resolve, reject) => {
    Object.assign(script, { onload: resolve, onerror: reject });
    document.head.append(script);
  }).finally(() => script.remove());
}

/** The value of a side file. Rejects if there is no such file. */
function load(name) {
  if (!loaded.has(name)) {
    loaded.set(name, new Promise((resolve, reject) => {
      waiting.set(name, resolve);
      const why = "is missing: reload the page if the site was written again, or copy the whole folder of the site";
      runScript(fileOf(`${name}.js`)).then(() => reject(new Error(`${name}.js contains something else`)), () => reject(new Error(`${name}.js ${why}`)));
    }).finally(() => waiting.delete(name)));
    if (loaded.size > KEPT) loaded.delete([...loaded.keys()].find((one) => /\/\d+$/.test(one)));
  }
  return loaded.get(name);
}

/** What the page knows of all runs: DATA as index.js has it, and the rows of the overview from its parts. */
let DATA, FOLDS, RUNS, SETS, SERIES, TASKS;
async function loadIndex() {
  DATA = await load("index");
  FOLDS = (await Promise.all(Array.from({ length: DATA.parts }, (_, part) => load(`index/${part}`)))).flat();
  RUNS = new Map(FOLDS.flatMap((fold) => fold.runs).sort((a, b) => a.number - b.number).map((run) => [run.name, run]));
  SETS = new Map([...RUNS.values()].flatMap((run) => run.sets.map(([label, file, n, problems]) => [label, { label, file, n, problems, run }])));
  const own = [...RUNS.values()].flatMap((run) => run.series.map(([label, breadth], place) => [label, { label, breadth, place, run }]));
  SERIES = new Map([...own, ...DATA.published.map((one) => [one.label, { label: one.label, breadth: -1, whole: one }])]);
  TASKS = new Map(DATA.tasks.map((task) => [task.key, task]));
}
const taskName = (key) => TASKS.get(key)?.name ?? key.replaceAll("_", " ");
const loadSeries = async ({ run, place, whole, label }) => ({ ...(whole ?? (await load(`runs/${run.number}/run`)).series[place]), label, run });
