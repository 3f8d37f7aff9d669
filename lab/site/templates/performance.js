// How well each model does each task: by range, against length, as a heat map, as the difference of two, or by kind of error.
const MOST = 8, PANELS = 12;
const KINDS = { range: "bars by range", length: "curves by length", heat: "heat map", difference: "heat map, second minus first", errors: "kinds of errors of the first" };
const READING_NAMES = { strict: "strict: the answer comes first", loose: "loose: the answer comes anywhere", final: "final: the message ends with the answer", released: "released: as the paper’s code reads it" };
/** A cell has one entry for all readings if they agree. */
const estimateIn = (cell, metric, reading) => cell?.[cell.length > 1 ? DATA.readings.indexOf(reading) : 0]?.[Object.keys(DATA.metrics).indexOf(metric)] ?? null;
/** The series to show first: undamaged runs with the most tasks by range, or else just the first series. */
function telling() {
  const rank = (one) => (one.run?.status === "damaged" ? -2 : one.breadth), best = [...SERIES.values()].sort((a, b) => rank(b) - rank(a));
  return best.filter((one, place) => !place || (place < 2 && rank(one) > 0)).map((one) => one.label);
}

async function performance(_, chosen) {
  const models = chosen.getAll("model").filter((name) => SERIES.has(name)).slice(0, MOST);
  const shown = models.length ? models : telling(), series = await Promise.all(shown.map((name) => loadSeries(SERIES.get(name))));
  const by = chosen.get("by") ?? (series.some((one) => Object.keys(one.ranges).length) ? "range" : "length");
  const known = [...new Set([...TASKS.keys(), ...series.flatMap((one) => [...Object.keys(one.lengths), ...Object.keys(one.ranges)])])].filter((key) => series.some((one) => one.ranges[key] || one.lengths[key]));
  const picked = chosen.getAll("task").filter((key) => known.includes(key)), tasks = picked.length ? picked : known;
  const made = DATA.readings.filter((name) => ["strict", "loose"].includes(name) || series.some((one) => one.readings.includes(name)));
  const metric = chosen.get("metric") ?? "exact_match", reading = chosen.get("reading") ?? "strict", page = Number(chosen.get("page") ?? 0);
  const choosers = element("div", { class: "choosers" }, picker("Models", "model", [...SERIES.keys()].map((name) => [name, name]), shown, MOST), picker("Tasks", "task", known.map((key) => [key, taskName(key)]), picked),
    choice("Show", "by", Object.entries(KINDS), by), choice("Metric", "metric", Object.entries(DATA.metrics), metric), choice("Reading", "reading", made.map((name) => [name, READING_NAMES[name] ?? name]), reading));
  const { panels, columns, rows, caption } = await { range: ranges, length: lengths, heat: heatMap, difference: differences, errors }[by](series, tasks, metric, reading);
  const turned = panels.length > PANELS ? pager(page, PANELS, panels.length) : null;
  return [choosers, panels.length ? null : absent("Not measured."), turned, by === "range" && metric === "exact_match" && series.length > 1 ? ranking(series, tasks, reading) : null,
    element("div", { class: panels.length > 2 ? "cards" : "cards few" }, panels.slice(page * PANELS, (page + 1) * PANELS).map((make) => make())),
    element("details", { ontoggle: (event) => { if (event.target.open && event.target.children.length === 1) { event.target.append(grid(caption ?? `${DATA.metrics[metric]}, ${reading} reading (95 % interval)`, columns, rows)); draw(); } } }, element("summary", {}, "The same as a table"))];
}

function ranges(series, tasks, metric, reading) {
  const some = tasks.filter((task) => Object.keys(TASKS.get(task)?.ranges ?? {}).length), found = (one, task) => DATA.ranges.map((name) => estimateIn(one.ranges[task]?.[name], metric, reading));
  const bounds = (task) => DATA.ranges.map((name) => `${name}<br>${TASKS.get(task).ranges[name].join("-")}`);
  return { columns: ["task", "model", ...DATA.ranges], rows: some.flatMap((task) => series.map((one) => [taskName(task), one.label, ...found(one, task).map((cell) => said(cell, metric) ?? "not measured")])),
    panels: some.map((task) => () => chart(taskName(task), series.map((one, place) => estimates("bar", one.label, place, bounds(task), found(one, task), metric)), { yaxis: yAxis(metric), xaxis: { type: "category", categoryorder: "array", categoryarray: bounds(task), range: [-0.5, DATA.ranges.length - 0.5] } })) };
}

function lengths(series, tasks, metric, reading) {
  const points = (one, task) => Object.entries(one.lengths[task] ?? {}).map(([length, cell]) => [Number(length), estimateIn(cell, metric, reading)]), some = tasks.filter((task) => series.some((one) => points(one, task).length));
  const trained = new Set(series.map((one) => JSON.stringify(one.trained))).size === 1 ? series[0].trained : null;
  const shapes = trained ? [{ type: "rect", xref: "x", yref: "paper", x0: trained[0], x1: trained[1], y0: 0, y1: 1, fillcolor: colour("line"), opacity: 0.35, line: { width: 0 } }] : [];
  return { columns: ["task", "model", "digits", DATA.metrics[metric]], rows: some.flatMap((task) => series.flatMap((one) => points(one, task).map(([length, cell]) => [taskName(task), one.label, length, said(cell, metric)]))),
    panels: some.map((task) => () => chart(`${taskName(task)}${trained ? "; grey: trained lengths" : ""}`, series.map((one, place) => estimates("line", one.label, place, points(one, task).map(([x]) => x), points(one, task).map(([, cell]) => cell), metric)), { shapes, yaxis: yAxis(metric), xaxis: { title: { text: "digits" } } })) };
}

/** The mean of cells that all models have, weighted by their problems; null if they have none. */
function pooled(one, task, series, metric, reading) {
  const cells = (model) => DATA.ranges.map((name) => estimateIn(model.ranges[task]?.[name], metric, reading)), all = series.map(cells);
  const shared = cells(one).filter((_, at) => all.every((found) => found[at])), weight = (cell) => cell[3] ?? 1, n = shared.reduce((sum, cell) => sum + weight(cell), 0);
  return n ? [shared.reduce((sum, cell) => sum + cell[0] * weight(cell), 0) / n, null, null, shared.every((cell) => cell[3]) ? n : null] : null;
}
const strength = (found, metric) => (found == null ? null : metric === "dlength" ? 1 / (1 + found[0]) : found[0]);

function heatMap(series, tasks, metric, reading) {
  const one = series.length === 1, columns = one ? DATA.ranges : series.map((model) => model.label);
  const cells = (task) => (one ? DATA.ranges.map((name) => estimateIn(series[0].ranges[task]?.[name], metric, reading)) : series.map((model) => pooled(model, task, series, metric, reading)));
  return heated(tasks, columns, cells, (found) => strength(found, metric), (found) => (found ? short(unit(metric) * found[0]) : ""), (found) => said(found, metric) ?? "not measured", `${DATA.metrics[metric]}, ${reading} reading${one ? `: ${series[0].label}` : ", over what all of them were asked"}`);
}

function differences(series, tasks, metric, reading) {
  const [first, second] = series, pair = (task, name) => [second, first].map((one) => estimateIn(one?.ranges[task]?.[name], metric, reading));
  const change = ([a, b]) => (a && b ? a[0] - b[0] : null), apart = ([a, b]) => a?.[1] != null && b?.[1] != null && (a[1] > b[2] || a[2] < b[1]);
  const text = (found) => (change(found) == null ? "" : `${change(found) > 0 ? "+" : ""}${short(unit(metric) * change(found))}${apart(found) ? "*" : ""}`);
  return heated(tasks, DATA.ranges, (task) => DATA.ranges.map((name) => pair(task, name)), (found) => (change(found) == null ? null : metric === "dlength" ? strength(found[0], metric) - strength(found[1], metric) : change(found)), text, (found) => found.map((one) => said(one, metric) ?? "not measured").join(" against "), `${DATA.metrics[metric]}, ${reading} reading: ${second?.label ?? "choose a second model"} minus ${first.label}; * intervals apart`, true);
}

function heated(tasks, columns, cells, value, text, hover, title, diverging = false) {
  const some = tasks.filter((task) => cells(task).some((found) => value(found) != null)), of = (make) => some.map((task) => cells(task).map(make));
  return { caption: title, columns: ["task", ...columns], rows: some.map((task) => [taskName(task), ...cells(task).map(hover)]), panels: some.length ? [() => heat(title, columns, some.map(taskName), of(value), of(text), of(hover), diverging)] : [] };
}

async function errors([first], tasks) {
  const counts = first.run ? Object.values((await load(`runs/${first.run.number}/run`)).outcomes).length ? (await load(`runs/${first.run.number}/run`)).outcomes : {} : {}, found = counts[first.label] ?? Object.values(counts)[0] ?? {};
  const some = tasks.filter((task) => found[task]), kinds = Object.keys(DATA.outcomes).filter((kind) => some.some((task) => Object.values(found[task]).some((cell) => cell[kind])));
  const share = (task, kind) => Object.values(found[task]).map((cell) => (100 * (cell[kind] ?? 0)) / Object.values(cell).reduce((a, b) => a + b));
  return { caption: "Number of answers by outcome", columns: ["task", "digits", ...kinds.map((kind) => DATA.outcomes[kind])], rows: some.flatMap((task) => Object.entries(found[task]).map(([length, cell]) => [taskName(task), length, ...kinds.map((kind) => cell[kind] ?? 0)])),
    panels: some.map((task) => () => chart(`${taskName(task)}, ${first.label}: answers, strict reading`, kinds.map((kind) => ({ type: "bar", name: DATA.outcomes[kind], x: Object.keys(found[task]), y: share(task, kind), marker: { color: colour(`s${Object.keys(DATA.outcomes).indexOf(kind)}`) } })), { barmode: "stack", yaxis: { range: [0, 100], ticksuffix: " %" }, xaxis: { type: "category", title: { text: "digits" } } })) };
}

/** The chosen models, best first: exact match over all problems of the tasks that all of them were asked. */
function ranking(series, tasks, reading) {
  const rows = series.map((one) => {
    const cells = tasks.map((task) => pooled(one, task, series, "exact_match", reading)).filter((cell) => cell?.[3]), n = cells.reduce((sum, cell) => sum + cell[3], 0);
    return [one.label, cells.reduce((sum, cell) => sum + cell[0] * cell[3], 0) / n, n];
  }).filter(([, , n]) => n).sort((a, b) => b[1] - a[1]);
  return rows.length ? grid(`Ranking: exact match (95 % interval), ${reading} reading, over what all of them were asked`, ["model", "exact match", "n"], rows.map(([label, value, n]) => [label, said([value, ...wilson(value, n), null], "exact_match"), n])) : null;
}

/** The 95 % interval of a share, as in lab/numbers/statistics.py. */
function wilson(p, n, z = 1.959964) {
  const centre = (p + (z * z) / (2 * n)) / (1 + (z * z) / n), half = (z / (1 + (z * z) / n)) * Math.sqrt((p * (1 - p)) / n + (z * z) / (4 * n * n));
  return [Math.min(p, Math.max(0, centre - half)), Math.max(p, Math.min(1, centre + half))];
}
