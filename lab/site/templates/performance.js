// Bars by range and curves by length, for the chosen models, tasks, representations, ranges and metric.
const MOST = 8;
const TASKS = new Map(DATA.tasks.map((task) => [task.key, task]));
const taskName = (key) => (TASKS.has(key) ? (TASKS.get(key).name === key ? key : `${TASKS.get(key).name.replaceAll("_", " ")}${Object.keys(TASKS.get(key).ranges).length ? `, ${TASKS.get(key).representation}` : ""}`) : key.replaceAll("_", " "));
const METRICS = DATA.metrics.map(({ key }) => key);
const metricName = (key) => DATA.metrics.find((metric) => metric.key === key).name;
/** A cell has one entry for all readings if they agree. */
const readingPlace = (cell, reading) => (cell.length > 1 ? DATA.readings.indexOf(reading) : 0);
const estimateIn = (cell, metric, reading) => cell?.[readingPlace(cell, reading)]?.[METRICS.indexOf(metric)] ?? null;
const withScores = DATA.series.filter((one) => one.tasks.length);
/** Strict and loose, and what else some model was read by. */
const READINGS = DATA.readings.filter((name) => ["strict", "loose"].includes(name) || withScores.some((one) => one.readings.includes(name)));
const READING_NAMES = { strict: "strict: the answer comes first", loose: "loose: the answer comes anywhere", final: "final: the message ends with the answer", released: "released: as the paper’s code reads it" };
const MODELS = distinct(withScores.map((one) => one.label));
const seriesOptions = () => withScores.map((one, place) => [place, one.label]);
/** Indices of the series to show first: undamaged runs with the most tasks by range, or else just the first series. */
const telling = (count) => {
  const damaged = (one) => DATA.runs[one.run].status === "damaged";
  const breadth = (one) => (one.run == null ? -1 : damaged(one) ? -2 : Object.keys(one.ranges).length);
  const places = withScores.map((_, place) => place).sort((a, b) => breadth(withScores[b]) - breadth(withScores[a]) || a - b);
  return places.slice(0, breadth(withScores[places[0]] ?? {}) > 0 ? count : 1);
};

const PERFORMANCE = { series: new Set(telling(2)), tasks: new Set(), representations: new Set(), ranges: new Set(DATA.ranges), metric: "exact_match", reading: "strict", by: "range", colours: new Map() };

function openPerformance(_, chosen) {
  const state = PERFORMANCE, draw = () => fill("performance-view", drawPerformance);
  const choosers = document.getElementById("performance-choosers");
  if (!withScores.length) { choosers.replaceChildren(absent()); return; }
  if (!choosers.children.length || chosen.size) {
    const recalled = placesIn(chosen, "model", MODELS);
    if (recalled?.length) state.series = new Set(recalled.slice(0, MOST));
    if (![...state.series].some((place) => Object.keys(withScores[place].ranges).length)) state.by = "length";
    const known = new Set(withScores.flatMap((one) => one.tasks));
    const tasks = [...TASKS.keys()].filter((key) => known.has(key)), forms = [...new Set(tasks.map((key) => TASKS.get(key).representation))];
    const all = { tasks, representations: forms, ranges: DATA.ranges };
    for (const [key, known] of Object.entries(all)) {
      const said = placesIn(chosen, key, known);
      state[key].clear();
      (said?.map((place) => known[place]) ?? known).forEach((one) => state[key].add(one));
    }
    state.metric = METRICS.find((key) => key === chosen.get("metric")) ?? state.metric;
    for (const [key, known] of [["reading", READINGS], ["by", ["range", "length"]]]) state[key] = known.find((one) => one === chosen.get(key)) ?? state[key];
    const changed = () => {
      const some = Object.entries(all).map(([key, known]) => [key, state[key].size === known.length ? "" : [...state[key]]]);
      keepInAddress("performance", "", { model: [...state.series].map((place) => MODELS[place]), ...Object.fromEntries(some), metric: state.metric, reading: state.reading, by: state.by });
      draw();
    };
    choosers.replaceChildren(
      manyChecks("Models", seriesOptions(), state.series, changed, MOST),
      manyChecks("Tasks", tasks.map((key) => [key, taskName(key)]), state.tasks, changed),
      checks("Representations", forms.map((form) => [form, form]), state.representations, changed),
      checks("Ranges", DATA.ranges.map((name) => [name, name]), state.ranges, changed),
      choice("Metric", DATA.metrics.map(({ key, name }) => [key, name]), state.metric, (value) => { state.metric = value; changed(); }),
      choice("Reading", READINGS.map((name) => [name, READING_NAMES[name]]), state.reading, (value) => { state.reading = value; changed(); }),
      choice("Against", [["range", "range"], ["length", "length"]], state.by, (value) => { state.by = value; changed(); }));
  }
  draw();
}

async function drawPerformance() {
  const { by, metric, reading } = PERFORMANCE;
  const chosen = coloured([...PERFORMANCE.series].map((place) => withScores[place]), PERFORMANCE.colours);
  const tasks = [...TASKS.keys()].filter((key) => PERFORMANCE.tasks.has(key) && PERFORMANCE.representations.has(TASKS.get(key).representation) && chosen.some((one) => one.of.tasks.includes(key)));
  if (!chosen.length || !tasks.length) return [element("p", { class: "absent" }, "Nothing to show: choose a model, and tasks that it was tested on.")];
  const figures = by === "range" ? rangeCharts(chosen, tasks, metric, reading) : await lengthCharts(chosen, tasks, metric, reading);
  const shaded = chosen.some((one) => one.of.trained) ? "Grey: trained lengths, if all models shown share them." : "";
  return [
    legend(chosen, by === "length"),
    element("p", { class: "note" }, `${metricName(metric)}, ${reading} reading. ${by === "range" ? "–: not measured." : `Against digits. ${shaded}`}`),
    chosen.length > 1 && by === "range" && metric === "exact_match" ? ranking(chosen, tasks, reading) : null,
    by === "range" && tasks.length > 1 ? glance(chosen, tasks, metric, reading) : null,
    grid(figures.cards),
    tableOnDemand("The same as a table", () => table(`${metricName(metric)}, ${reading} reading (95 % interval)`, figures.columns, figures.rows(), 2)),
  ].filter(Boolean);
}

/** The chosen models, best first: exact match over all problems of the tasks and ranges that all of them were asked. */
function ranking(chosen, tasks, reading) {
  const ranges = DATA.ranges.filter((name) => PERFORMANCE.ranges.has(name));
  const cells = tasks.flatMap((task) => ranges.map((range) => chosen.map((one) => estimateIn(one.of.ranges[task]?.[range], "exact_match", reading)))).filter((found) => found.every(Boolean));
  if (!cells.length) return null;
  const rows = chosen.map((one, place) => {
    const n = cells.reduce((sum, found) => sum + found[place][3], 0);
    return [one.label, cells.reduce((sum, found) => sum + found[place][0] * found[place][3], 0) / n, n];
  }).sort((a, b) => b[1] - a[1]);
  const percent = (value) => (100 * value).toFixed(0);
  const shown = rows.map(([label, value, n]) => [label, `${percent(value)} (${wilson(value, n).map(percent).join("-")})`, n.toLocaleString("en")]);
  return table(`Ranking: exact match in percent (95 % interval), ${reading} reading, over what all of them were asked`, ["model", "exact match", "n"], shown);
}

/** One heat map: a row for each task, a column for each model, over the chosen ranges that all of them were asked. */
function glance(chosen, tasks, metric, reading) {
  const ranges = DATA.ranges.filter((name) => PERFORMANCE.ranges.has(name));
  const found = (one, task) => ranges.map((range) => estimateIn(one.of.ranges[task]?.[range], metric, reading));
  const asked = (task) => ranges.map((_, place) => chosen.every((one) => found(one, task)[place]));
  const pooled = (one, task) => {
    const cells = found(one, task).filter((_, place) => asked(task)[place]), n = cells.reduce((sum, cell) => sum + cell[3], 0);
    return [cells.reduce((sum, cell) => sum + cell[0] * cell[3], 0) / n, null, null, n];
  };
  const shown = tasks.filter((task) => asked(task).some(Boolean));
  if (!shown.length) return null;
  const scale = scaleOf(metric, shown.flatMap((task) => chosen.map((one) => pooled(one, task))));
  return element("div", { class: "heat wide", tabindex: 0, role: "region", "aria-label": "All tasks" }, element("table", {},
    element("caption", {}, `All tasks: ${metricName(metric)}${metric === "dlength" ? "" : ", %"}, over the ranges that all of these models were asked`),
    element("thead", {}, element("tr", {}, element("th", { scope: "col" }, "task"), chosen.map((one) => element("th", { scope: "col" }, one.label)))),
    element("tbody", {}, shown.map((task) => element("tr", {}, element("th", { scope: "row" }, taskName(task)), chosen.map((one) => single(pooled(one, task), metric, scale)))))));
}

/** The 95 % interval of a share, as in lab/numbers/statistics.py. */
function wilson(p, n, z = 1.959964) {
  const centre = (p + (z * z) / (2 * n)) / (1 + (z * z) / n), half = (z / (1 + (z * z) / n)) * Math.sqrt((p * (1 - p)) / n + (z * z) / (4 * n * n));
  return [Math.min(p, Math.max(0, centre - half)), Math.max(p, Math.min(1, centre + half))];
}

const sizeFor = (list) => (list.length < 4 ? LARGE : SMALL);
const grid = (cards) => element("div", { class: cards.length < 4 ? "cards few" : "cards" }, cards);

/** A series keeps its colour as long as it is chosen, whatever else is chosen. */
function coloured(list, colours) {
  for (const one of colours.keys()) if (!list.includes(one)) colours.delete(one);
  for (const one of list) {
    if (colours.has(one)) continue;
    const used = new Set(colours.values());
    colours.set(one, [0, 1, 2, 3, 4, 5, 6, 7].find((colour) => !used.has(colour)) ?? 0);
  }
  return list.map((one) => ({ of: one, label: one.label, colour: colours.get(one) }));
}

function rangeCharts(chosen, tasks, metric, reading) {
  const ranges = DATA.ranges.filter((name) => PERFORMANCE.ranges.has(name));
  const found = (one, task, range) => estimateIn(one.of.ranges[task]?.[range], metric, reading);
  const scale = scaleOf(metric, chosen.flatMap((one) => tasks.flatMap((task) => ranges.map((range) => found(one, task, range)))));
  const bounds = (task, range) => TASKS.get(task).ranges[range];
  const shown = tasks.filter((task) => Object.keys(TASKS.get(task).ranges).length);
  const cards = shown.map((task) => bars({
    title: taskName(task), scale, size: sizeFor(shown),
    groups: ranges.map((name) => ({ name: `${name} (${bounds(task, name).join("-")} digits)`, text: name })),
    series: chosen.map((one) => ({ ...one, cells: ranges.map((range) => found(one, task, range)) })),
  }));
  const rows = () => shown.flatMap((task) => chosen.map((one) => [taskName(task), one.label, ...ranges.map((range) => scale.write(found(one, task, range)))]));
  return { cards, rows, columns: ["task", "model", ...ranges] };
}

async function lengthCharts(chosen, tasks, metric, reading) {
  const curves = await Promise.all(chosen.map((one) => (one.of.file ? load(one.of.file) : {})));
  const points = (place, task) => Object.entries(curves[place][task] ?? {}).map(([length, cell]) => [Number(length), estimateIn(cell, metric, reading)]);
  const shared = new Set(chosen.map((one) => JSON.stringify(one.of.trained)));
  const shade = shared.size === 1 ? chosen[0].of.trained : null;
  const cards = tasks.map((task) => {
    const series = chosen.map((one, place) => ({ ...one, points: points(place, task) }));
    const scale = scaleOf(metric, series.flatMap((one) => one.points.map(([, found]) => found)));
    return lines({ title: taskName(task), series, scale, across: "digits", shade, size: sizeFor(tasks) });
  });
  const scale = scaleOf(metric, []);
  const rows = () => tasks.flatMap((task) => chosen.flatMap((one, place) => {
    const found = points(place, task);
    return found.length ? found.map(([length, cell]) => [taskName(task), one.label, `${length}`, scale.write(cell)]) : [[taskName(task), one.label, null, null]];
  }));
  return { cards, rows, columns: ["task", "model", "digits", metricName(metric)] };
}
