// The overview of all runs, and the page of one run.
const MARKS = { finished: "✓", running: "●" };
const scored = (scores) => scores.map(([label, , text]) => `${label} ${text}`.trim()).join("; ");
/** What the overview says of a run, or of the seeds of a setting, whose runs are folded below it. */
function rowOf(one, below) {
  const minutes = one.minutes == null ? null : Math.round(10 * one.minutes) / 10;
  return { ...one, minutes, said: scored(one.scores), score: one.scores[0]?.[1] ?? null, ...(below ? { _children: below } : {}) };
}
function foldRow({ name, scores, runs }) {
  if (runs.length === 1) return rowOf(runs[0]);
  const done = runs.filter((run) => run.status === "finished").length, status = done === runs.length ? "finished" : `${done} of ${runs.length} finished`;
  return rowOf({ ...runs[0], name: `${name} (${runs.length} seeds)`, scores, seed: null, minutes: null, ended: runs.map((run) => run.ended).sort().at(-1), status, notes: [], folded: true }, runs.map((run) => rowOf(run)));
}

async function overview(_, chosen) {
  const wanted = (chosen.get("text") ?? "").toLowerCase(), words = (one) => `${one.name} ${one.command} ${one.model} ${one.status}`.toLowerCase();
  const folds = wanted ? FOLDS.flatMap((fold) => fold.runs.filter((run) => words(run).includes(wanted)).map((run) => ({ name: run.name, scores: run.scores, runs: [run] }))) : FOLDS;
  const count = folds.reduce((sum, fold) => sum + fold.runs.length, 0), text = (value) => element("bdi", {}, visible(String(value ?? "")));
  const name = (cell) => { const one = cell.getData(); return one.folded ? text(one.name) : element("a", { href: addressOf("run", one.name) }, text(one.name)); };
  const status = (cell) => element("span", { class: `status ${cell.getValue()}` }, `${MARKS[cell.getValue()] ?? "…"} ${cell.getValue()}`, cell.getData().notes.length ? element("small", { title: cell.getData().notes.join("\n") }, " ", visible(cell.getData().notes.join("; "))) : null);
  const last = { alignEmptyValues: "bottom" }, column = (title, field, more) => ({ title, field, sorterParams: last, ...more });
  const columns = [column("run", "name", { formatter: name, minWidth: 170 }), column("exact match, %", "score", { sorter: "number", formatter: (cell) => cell.getData().said, accessorDownload: (_, row) => row.said }), column("command", "command"), column("model", "model", { formatter: (cell) => text(cell.getValue()) }),
    column("seed", "seed", { sorter: "number" }), column("minutes", "minutes", { sorter: "number" }), column("ended", "ended"), column("status", "status", { formatter: status, maxWidth: 320 })];
  return [element("div", { class: "choosers" }, search("Search", "text", chosen.get("text") ?? "", "name, model, command, status"), element("p", { role: "status" }, `${number(count)} of ${number(RUNS.size)} runs`)),
    grid("Exact match in percent, strict reading, over all problems that were answered (95 % interval); for several seeds their means", columns, folds.map(foldRow), { dataTree: true, dataTreeStartExpanded: false })];
}

async function runPage(name) {
  const run = RUNS.get(name);
  if (!run) { location.hash = "#runs"; return []; }
  const said = await load(`runs/${run.number}/run`), list = (lines, kind) => (lines.length ? element("ul", { class: kind }, lines.map((line) => element("li", {}, visible(line)))) : null);
  const pictures = said.figures.map((file) => element("figure", { class: "left" }, element("a", { href: fileOf(file) }, element("img", { src: fileOf(file), alt: `Figure ${file.split("/").pop()} of this run`, loading: "lazy" }))));
  const answers = run.sets.map(([label, , n]) => [element("a", { href: addressOf("samples", label) }, `Samples of ${label} (${number(n)})`), " "]);
  return [element("p", { class: "lead" }, `${run.command}, ${run.status}${run.model ? `, ${run.model}` : ""}`), list(run.notes, "notes"), list(said.found, "found"),
    said.scores.length ? grid("Exact match in percent, strict reading (95 % interval)", ["problems", "exact match", "n"], said.scores.map(([label, text, n]) => [label || "all", text, n])) : null,
    element("p", {}, answers.length ? answers : element("span", { class: "absent" }, "No samples."), run.sets.some(([label]) => pairedWith(label)) ? [" ", element("a", { href: addressOf("compare", run.sets[0][0]) }, "compare")] : null,
      run.series.length ? [" ", element("a", { href: addressOf("performance", "", { model: run.series.map(([label]) => label) }) }, "charts")] : null, run.trained ? [" ", element("a", { href: addressOf("training", "", { run: name }) }, "training")] : null),
    said.page ? element("iframe", { src: fileOf(said.page), title: `Probing of ${name}`, loading: "lazy" }) : null, said.error ? [element("h2", {}, "Error"), element("pre", { tabindex: 0 }, visible(said.error))] : null,
    element("div", { class: "figures" }, pictures), said.tables.map(([file, html]) => written(file, html)),
    [["Config", said.config], ["Command", said.command], ["Environment", said.environment]].map(([title, text]) => [element("h2", {}, title), text ? element("pre", { tabindex: 0 }, visible(text)) : absent()])];
}
const pairedWith = (label) => [...SETS.values()].some((one) => one.label !== label && one.problems === SETS.get(label).problems);

/** A Markdown file of the run, in which everything except tables is plain text (lab/site/run_page.py). */
function written(name, html) {
  const box = element("div", { class: "wide", tabindex: 0, role: "region", "aria-label": name });
  box.innerHTML = html;
  return element("details", {}, element("summary", {}, `Table: ${name}`), box);
}
