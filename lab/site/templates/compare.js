// Two models that were asked the same problems, or one before and after training: by how much they differ, in what their
// configs differ, and both answers to each problem.
const WANTED = { differ: "only one is right", lost: "only the first is right", gained: "only the second is right", neither: "both are wrong" };
/** Sets with the same problems as this one; the same run's come first. */
const partners = (set) => (SAME.get(set.problems) ?? []).filter((one) => one !== set).sort((a, b) => (b.run === set.run) - (a.run === set.run));
const SAME = new Map();

async function compare(what, chosen) {
  if (!SAME.size) for (const set of SETS.values()) SAME.set(set.problems, [...(SAME.get(set.problems) ?? []), set]);
  const own = (set) => Number(partners(set)[0]?.run === set.run), paired = [...SETS.values()].filter((set) => partners(set).length).sort((a, b) => own(b) - own(a));
  if (!paired.length) return [absent("No two of these runs were asked the same problems.")];
  const first = what ? SETS.get(what) : paired[0], others = first ? partners(first) : [], second = chosen.has("with") ? SETS.get(chosen.get("with")) : others[0];
  const open = (one, other) => { location.hash = addressOf("compare", one, { with: other }); };
  const pick = element("div", { class: "choosers" }, choice("First", "first", paired.map(({ label }) => [label, label]), first?.label, (value) => open(value, partners(SETS.get(value))[0].label)),
    others.length ? choice("Second", "with", others.map(({ label }) => [label, label]), second?.label, (value) => open(first.label, value)) : null);
  if (!others.includes(second)) return [pick, absent(`${[what, chosen.get("with")].filter(Boolean).join(" and ")}: no runs here that were asked the same problems.`)];
  const directories = await Promise.all([first, second].map((set) => load(`${set.file}/directory`)));
  return [pick, counted(...directories), await settings(first.run, second.run), await pairs([first, second], directories, chosen)];
}

function counted(first, second) {
  const counts = new Map(first.groups.map(([task]) => [task, { both: 0, gained: 0, lost: 0, neither: 0 }])), all = { both: 0, gained: 0, lost: 0, neither: 0 };
  for (const [, task, kind] of answeredPairs(first, second)) { counts.get(task)[kind] += 1; all[kind] += 1; }
  const found = [...[...counts].map(([task, one]) => [taskName(task), one]), ...(counts.size > 1 ? [["all", all]] : [])], adjusted = holm(found.map(([, one]) => mcnemar(one)));
  const rows = found.map(([name, { both, gained, lost, neither }], place) => [name, both + gained + lost + neither, both + lost, both + gained, lost, gained, adjusted[place] < 0.001 ? "<0.001" : adjusted[place].toFixed(3)]);
  return grid("Answers to the same problems, strict reading; p: McNemar’s exact test, adjusted over all rows (Holm)", ["task", "n", "first right", "second right", "only first", "only second", "p"], rows);
}

/** The keys of the two configs that differ. */
async function settings(...runs) {
  const [first, second] = await Promise.all(runs.map(async (run) => (await load(`runs/${run.number}/run`)).settings));
  const keys = [...new Set([...Object.keys(first), ...Object.keys(second)])].filter((key) => first[key] !== second[key]);
  return keys.length ? grid("In what their configs differ", ["key", "first", "second"], keys.map((key) => [key, first[key] ?? "not set", second[key] ?? "not set"])) : element("p", { class: "note" }, "Their configs do not differ.");
}

/** The place and the task of each problem that both models answered, and who was right. A problem without an answer, because the endpoint failed, is not a wrong answer. */
function* answeredPairs(first, second) {
  const failed = String(Object.keys(DATA.outcomes).indexOf("api_error"));
  let place = 0;
  for (const [task, , count] of first.groups) {
    for (const end = place + count; place < end; place += 1) {
      const [one, other] = [first.outcomes[place], second.outcomes[place]];
      if (one !== failed && other !== failed) yield [place, task, one === "0" ? (other === "0" ? "both" : "lost") : other === "0" ? "gained" : "neither"];
    }
  }
}

/** As lab/numbers/paired.py: how likely a split as unequal is if gain and loss are equally likely. */
function mcnemar({ gained, lost }) {
  let likely = -(gained + lost) * Math.LN2, sum = Math.exp(likely);
  for (let side = 1; side <= Math.min(gained, lost); side += 1) sum += Math.exp((likely += Math.log((gained + lost - side + 1) / side)));
  return Math.min(1, 2 * sum);
}

function holm(values) {
  const order = values.map((_, place) => place).sort((a, b) => values[a] - values[b]), adjusted = [];
  order.reduce((highest, place, rank) => (adjusted[place] = Math.max(highest, Math.min(1, (values.length - rank) * values[place]))), 0);
  return adjusted;
}

async function pairs(sets, directories, chosen) {
  const wanted = chosen.get("show") ?? "differ", task = chosen.get("task") ?? "", page = Number(chosen.get("page") ?? 0);
  const fits = (kind) => (wanted === "differ" ? kind === "gained" || kind === "lost" : kind === wanted);
  const places = [...answeredPairs(...directories)].filter(([, key, kind]) => fits(kind) && (!task || key === task)).map(([place]) => place);
  const at = (place) => Promise.all(sets.map((set, side) => sampleAt(set.file, directories[side], place)));
  const tasks = [...new Set(directories[0].groups.map(([key]) => key))].map((key) => [key, taskName(key)]);
  return element("section", { class: "pairs" }, element("h2", {}, "Both answers"), element("div", { class: "choosers" }, choice("Show", "show", Object.entries(WANTED), wanted), choice("Task", "task", [["", "all tasks"], ...tasks], task)),
    pager(page, PAGE, places.length), (await Promise.all(places.slice(page * PAGE, (page + 1) * PAGE).map(at))).map(pairCard));
}

/** Two answers to one problem, each with its digits under those of the truth. */
function pairCard(pair) {
  const side = (sample, name) => element("div", { class: "side" }, element("p", { class: "what" }, `${name}: `, outcomeOf(sample)), answerLine(sample), textBox(`Completion of the ${name}`, String(sample.text ?? "")));
  return element("details", { class: "sample pair", open: true }, element("summary", {}, headOf(pair[0]), element("span", { class: "what" }, visible((promptOf(pair[0]) ?? "").slice(-60)))),
    element("div", { class: "sides" }, side(pair[0], "first"), side(pair[1], "second")));
}
