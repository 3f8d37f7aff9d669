// NUPA at a glance: one row per task and representation, one column per range; for one model, or the difference of two.
const HEATMAP = { a: null, b: "", metric: "exact_match", reading: "strict" };
const ranged = () => withScores.map((one, place) => [place, one.label]).filter(([place]) => Object.keys(withScores[place].ranges).length);

function openHeatmap(_, chosen) {
  const state = HEATMAP, draw = () => fill("heatmap-view", async () => drawHeatmap());
  const changed = () => {
    keepInAddress("heatmap", "", { model: MODELS[state.a], minus: MODELS[state.b], metric: state.metric, reading: state.reading });
    draw();
  };
  const choosers = document.getElementById("heatmap-choosers"), options = ranged();
  if (!options.length) { choosers.replaceChildren(absent()); return; }
  if (!choosers.children.length || chosen.size) {
    const named = (key) => placesIn(chosen, key, MODELS)?.find((place) => options.some(([one]) => one === place));
    Object.assign(state, { b: named("minus") ?? "", metric: METRICS.find((key) => key === chosen.get("metric")) ?? "exact_match", reading: READINGS.find((name) => name === chosen.get("reading")) ?? "strict" });
    state.a = named("model") ?? telling(1).find((place) => options.some(([key]) => key === place)) ?? options[0][0];
    choosers.replaceChildren(
      choice("Model", options, state.a, (value) => { state.a = value; changed(); }),
      choice("Minus", [["", "nothing: the model itself"], ...options], state.b, (value) => { state.b = value; changed(); }),
      choice("Metric", DATA.metrics.map(({ key, name }) => [key, name]), state.metric, (value) => { state.metric = value; changed(); }),
      choice("Reading", READINGS.map((name) => [name, name]), state.reading, (value) => { state.reading = value; changed(); }));
  }
  draw();
}

function drawHeatmap() {
  const { metric, reading } = HEATMAP, a = withScores[HEATMAP.a], b = HEATMAP.b === "" ? null : withScores[HEATMAP.b];
  const tasks = [...TASKS.values()].filter((task) => Object.keys(task.ranges).length);
  const found = (one, task, range) => estimateIn(one?.ranges[task.key]?.[range], metric, reading);
  const all = tasks.flatMap((task) => DATA.ranges.flatMap((range) => [found(a, task, range), found(b, task, range)]));
  const scale = scaleOf(metric, all);
  const isMeasured = (task) => DATA.ranges.some((range) => found(a, task, range) && (!b || found(b, task, range)));
  const rows = tasks.map((task) => element("tr", { hidden: !isMeasured(task) }, element("th", { scope: "row" }, taskName(task.key)),
    DATA.ranges.map((range) => (b ? difference(found(a, task, range), found(b, task, range), metric, scale) : single(found(a, task, range), metric, scale)))));
  const title = `${metricName(metric)}${metric === "dlength" ? "" : ", %"}, ${reading} reading: ${a.label}${b ? ` minus ${b.label}` : ""}`;
  const measured = tasks.filter(isMeasured).length;
  const showAll = element("button", { type: "button", onclick: () => { rows.forEach((row) => { row.hidden = false; }); showAll.remove(); } }, "Show the others too");
  return [
    element("p", { class: "note", role: "status" }, `${measured} of ${tasks.length} tasks measured${b ? " in both. Blue: better, orange: worse; framed if the two intervals do not overlap" : ""}.`),
    element("table", {}, element("caption", {}, title),
      element("thead", {}, element("tr", {}, element("th", { scope: "col" }, "task"), DATA.ranges.map((range) => element("th", { scope: "col" }, range)))),
      element("tbody", {}, rows)),
    measured < tasks.length ? showAll : null,
  ].filter(Boolean);
}

const unmeasured = () => element("td", { class: "none" }, "not measured");

function single(found, metric, scale) {
  if (!found) return unmeasured();
  const strength = metric === "dlength" ? 1 - Math.min(1, scale.place(found[0])) : found[0];
  return tipped(element("td", { style: `--v: ${strength}` }, metric === "dlength" ? `${round(found[0])}` : percent(found[0])), scale.write(found));
}

function difference(a, b, metric, scale) {
  if (!a || !b) return unmeasured();
  const change = a[0] - b[0], better = metric === "dlength" ? change < 0 : change > 0;
  const apart = a[1] != null && b[1] != null && (a[1] > b[2] || a[2] < b[1]);
  const strength = metric === "dlength" ? Math.min(1, Math.abs(scale.place(a[0]) - scale.place(b[0]))) : Math.abs(change);
  const text = metric === "dlength" ? `${round(change)}` : percent(change);
  const kind = [better ? "better" : change ? "worse" : "", apart ? "apart" : ""].join(" ").trim();
  return tipped(element("td", { class: kind, style: `--v: ${strength}` }, change > 0 ? `+${text}` : text.replace("-", "−"), apart ? spoken(" intervals apart") : null),
    `${scale.write(a)}\nagainst ${scale.write(b)}`);
}
