// Training curves: any recorded quantity by step, and exact match during training by samples seen.
const TRAINING = { runs: new Set(), quantity: "valid_loss", scale: "log", colours: new Map() };
const trainedRuns = () => DATA.runs.map((run, place) => [place, run.name]).filter(([place]) => DATA.runs[place].training);

function openTraining() {
  const state = TRAINING, changed = () => fill("training-view", drawTraining), options = trainedRuns();
  const choosers = document.getElementById("training-choosers");
  if (!options.length) { choosers.replaceChildren(absent()); return; }
  if (!choosers.children.length) {
    const neural = options.filter(([place]) => DATA.runs[place].command !== "adder");
    (neural.length ? neural : options).slice(-4).forEach(([place]) => state.runs.add(place));
    choosers.replaceChildren(
      manyChecks("Runs", options, state.runs, changed, MOST),
      choice("Quantity", Object.entries(DATA.quantities), state.quantity, (value) => { state.quantity = value; changed(); }),
      choice("Scale", [["log", "logarithmic"], ["linear", "linear"]], state.scale, (value) => { state.scale = value; changed(); }));
  }
  changed();
}

async function drawTraining() {
  const { quantity } = TRAINING, name = DATA.quantities[quantity];
  const chosen = coloured([...TRAINING.runs].map((place) => DATA.runs[place]), TRAINING.colours).map((one) => ({ ...one, label: one.of.name }));
  if (!chosen.length) return [element("p", { class: "absent" }, "Choose a run.")];
  const loaded = await Promise.all(chosen.map((one) => load(`runs/${DATA.runs.indexOf(one.of)}/training`)));
  const series = chosen.map((one, place) => ({ ...one, points: (loaded[place].metrics?.[quantity] ?? []).map(([step, value]) => [step, [value, null, null, null]]) }));
  const missing = series.filter((one) => !one.points.length).map((one) => one.label);
  const values = series.flatMap((one) => one.points.map(([, [value]]) => value));
  const figure = lines({ title: name, note: "against steps", series, scale: spread(values, TRAINING.scale), across: "steps", size: LARGE });
  const rows = () => series.flatMap((one) => one.points.map(([step, [value]]) => [one.label, `${step}`, `${value}`]));
  const onTheWay = chosen.flatMap((one, place) => Object.entries(loaded[place].exact_match ?? {}).map(([task, lengths]) => wayChart(one, task, lengths)));
  return [legend(chosen, true), grid([figure]),
    missing.length ? element("p", { class: "note" }, `Not measured: ${name} of ${missing.join(", ")}.`) : null,
    tableOnDemand("The same as a table", () => table(name, ["run", "step", name], rows(), 1)),
    element("h2", {}, "Exact match while training"),
    onTheWay.length ? element("div", { class: "cards few" }, onTheWay) : element("p", { class: "absent" }, "Not measured in these runs (evaluation.while_training)."),
  ].filter(Boolean);
}

function wayChart(one, task, lengths) {
  const entries = Object.entries(lengths).slice(0, 8);
  const series = entries.map(([length, points], colour) => ({ label: `${length} digits`, colour, points }));
  const scale = scaleOf("exact_match", []);
  const figure = lines({ title: one.label, note: `${taskName(task)}, against samples seen`, series, scale, across: "samples", size: LARGE });
  figure.append(legend(series, true), tableOnDemand("As a table", () => table(`${one.label}, ${taskName(task)}`, ["digits", "samples", "exact match"], entries.flatMap(([length, points]) => points.map(([samples, found]) => [length, `${samples}`, scale.write(found)])), 1)));
  return figure;
}

/** A scale from the smallest to the largest value. */
function spread(values, kind) {
  const positive = values.filter((value) => value > 0), log = kind === "log" && positive.length;
  const [low, high] = [Math.min(...(log ? positive : values)), Math.max(...values)];
  const place = (value) => (log ? (Math.log(Math.max(value, low)) - Math.log(low)) / (Math.log(high / low) || 1) : (value - low) / (high - low || 1));
  const powers = [];
  if (log) for (let power = Math.ceil(Math.log10(low)); 10 ** power <= high; power += 1) powers.push(10 ** power);
  const ticks = (log && powers.length > 1 ? powers.filter((_, at) => at % Math.ceil(powers.length / 5) === 0) : [low, (low + high) / 2, high]).filter(Number.isFinite);
  return { place, ticks: ticks.map((tick) => [tick, `${Number(tick.toPrecision(2))}`]), write: ([value]) => `${value}` };
}
