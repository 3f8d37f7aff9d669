// Losses by step, and exact match during training. Of a group of seeds, the best seed at each step.
async function training(_, chosen) {
  const known = [...RUNS.values()].filter((run) => run.trained);
  if (!known.length) return [absent("Not measured: none of these runs trained a model.")];
  const picked = chosen.getAll("run").filter((name) => RUNS.get(name)?.trained), runs = (picked.length ? picked.map((name) => RUNS.get(name)) : known.slice(0, 3)).slice(0, MOST);
  const curves = await Promise.all(runs.map(async (run) => (await load(`runs/${run.number}/run`)).training));
  const quantity = chosen.get("quantity") ?? (curves.some((one) => one.metrics.valid_loss) ? "valid_loss" : "loss"), scale = chosen.get("scale") ?? "log", name = DATA.quantities[quantity];
  const missing = runs.filter((_, place) => !curves[place].metrics[quantity]).map((run) => run.name);
  const line = (label, points, place) => ({ type: "scatter", mode: "lines+markers", name: label, x: points.map(([x]) => x), y: points.map(([, y]) => y), line: { color: shade(place) }, marker: { color: shade(place), symbol: place, size: points.length > 40 ? 1 : 6 } });
  const traces = runs.flatMap((run, place) => (curves[place].metrics[quantity] ? [line(run.name, curves[place].metrics[quantity], place)] : []));
  const rising = runs.flatMap((run, place) => Object.entries(curves[place].exact_match).map(([task, lengths]) => chart(`${run.name}: exact match while training, ${taskName(task)}`,
    Object.entries(lengths).slice(0, MOST).map(([length, points], at) => estimates("line", `${length} digits`, at, points.map(([x]) => x), points.map(([, found]) => found), "exact_match")), { yaxis: yAxis("exact_match"), xaxis: { title: { text: "samples" } } })));
  return [element("div", { class: "choosers" }, picker("Runs", "run", known.map((run) => [run.name, run.name]), runs.map((run) => run.name), MOST), choice("Quantity", "quantity", Object.entries(DATA.quantities), quantity), choice("Scale", "scale", [["log", "logarithmic"], ["linear", "linear"]], scale)),
    missing.length ? element("p", { class: "note" }, `Not measured: ${name} of ${missing.join(", ")}.`) : null,
    element("div", { class: "cards few" }, traces.length ? chart(`${name} against steps`, traces, { yaxis: { type: scale, dtick: scale === "log" ? 1 : null }, xaxis: { title: { text: "steps" } } }, 380) : null, rising),
    grid(`${name}, the last values`, ["run", "step", name], traces.map((one) => [one.name, one.x.at(-1), one.y.at(-1)]))];
}
