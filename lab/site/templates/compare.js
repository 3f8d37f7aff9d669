// Puts two models side by side that were asked the same problems: by how much they differ, in what their configs differ,
// and both answers to each problem.
const COMPARE = { first: null, second: null, task: "", wanted: "differ", page: 0 };
const WANTED = { "differ": "only one is right", "lost": "only the first is right", "gained": "only the second is right", "neither": "both are wrong" };
const partners = (place) => DATA.sets.map((one, other) => [other, one]).filter(([other, one]) => other !== place && one.problems === DATA.sets[place].problems).map(([other]) => other);

function openCompare(what, chosen) {
  const paired = DATA.sets.map((_, place) => place).filter((place) => partners(place).length);
  const choosers = document.getElementById("compare-choosers");
  if (!paired.length) { choosers.replaceChildren(element("p", { class: "absent" }, "No two of these runs were asked the same problems.")); return; }
  const first = SETS.indexOf(what), second = SETS.indexOf(chosen.get("with"));
  if (paired.includes(first)) Object.assign(COMPARE, { first, second: partners(first).includes(second) ? second : null, task: "", page: 0 });
  const unpaired = what && (!paired.includes(first) || (chosen.get("with") && COMPARE.second === null));
  COMPARE.first ??= paired[0];
  COMPARE.second ??= partners(COMPARE.first)[0];
  const name = (place) => [place, DATA.sets[place].label];
  const choose = (pair) => { location.hash = addressOf("compare", SETS[pair.first], { with: SETS[pair.second] }); };
  choosers.replaceChildren(
    choice("First", paired.map(name), COMPARE.first, (value) => choose({ first: Number(value), second: partners(Number(value))[0] })),
    choice("Second", partners(COMPARE.first).map(name), COMPARE.second, (value) => choose({ ...COMPARE, second: value })));
  if (unpaired) {
    const asked = [what, chosen.get("with")].filter(Boolean).join(" and ");
    for (const part of ["compare-view", "compare-pairs"]) document.getElementById(part).replaceChildren();
    document.getElementById("compare-view").append(element("p", { class: "absent" }, `${visible(asked)}: no runs here that were asked the same problems.`));
    return;
  }
  fill("compare-view", drawCompare);
  drawPairs();
}

async function drawCompare() {
  const sides = [COMPARE.first, COMPARE.second].map((place) => DATA.sets[place]);
  const [first, second] = await Promise.all(sides.map((one) => load(`${one.file}/directory`)));
  const counts = pairedCounts(first, second), tasks = [...counts.keys()];
  const whole = tasks.map((task) => counts.get(task)).reduce((sum, found) => Object.fromEntries(Object.entries(sum).map(([key, value]) => [key, value + found[key]])));
  const row = (name, found, p) => {
    const n = found.both + found.gained + found.lost + found.neither;
    return [name, n, found.both + found.lost, found.both + found.gained, found.lost, found.gained, p].map((value) => (typeof value === "number" ? value.toLocaleString("en") : value));
  };
  const shown = tasks.map((task) => [taskName(task), counts.get(task)]);
  if (tasks.length > 1) shown.push(["all", whole]);
  const adjusted = holm(shown.map(([, found]) => mcnemar(found)));
  const rows = shown.map(([name, found], place) => row(name, found, probability(adjusted[place])));
  const columns = ["task", "n", "first right", "second right", "only first", "only second", "p"];
  return [table("Answers to the same problems, strict reading; p: McNemar’s exact test, adjusted over all rows (Holm)", columns, rows), await settings(sides)];
}

/** The keys of the two configs that differ. */
async function settings(sides) {
  const [first, second] = await Promise.all(sides.map(async (one) => (await load(`runs/${one.run}/run`)).settings));
  const keys = [...new Set([...Object.keys(first), ...Object.keys(second)])].filter((key) => first[key] !== second[key]);
  if (!keys.length) return element("p", { class: "note" }, "Their configs do not differ.");
  const said = (value) => element("bdi", {}, value === undefined ? "not set" : visible(value));
  return table("In what their configs differ", ["key", "first", "second"], keys.map((key) => [key, said(first[key]), said(second[key])]), 3);
}

/** How many problems of each task both models solve, only one, or none. Both directories list the same problems. */
function pairedCounts(first, second) {
  const counts = new Map(first.groups.map(([task]) => [task, { both: 0, gained: 0, lost: 0, neither: 0 }]));
  for (const [, task, pair] of answeredPairs(first, second)) counts.get(task)[pair] += 1;
  return counts;
}

/** The place and the task of each problem that both models answered, and who was right. A problem without an answer, because the endpoint failed, is not a wrong answer. */
function* answeredPairs(first, second) {
  const letter = (outcome) => String(Object.keys(DATA.outcomes).indexOf(outcome)), right = letter("correct"), failed = letter("api_error");
  let place = 0;
  for (const [task, , count] of first.groups) {
    for (const end = place + count; place < end; place += 1) {
      const [one, other] = [first.outcomes[place], second.outcomes[place]];
      if (one !== failed && other !== failed) yield [place, task, pairOf(one === right, other === right)];
    }
  }
}

const pairOf = (first, second) => (first ? (second ? "both" : "lost") : second ? "gained" : "neither");

/** As lab/numbers/paired.py: how likely a split as unequal is if gain and loss are equally likely. */
function mcnemar({ gained, lost }) {
  const discordant = gained + lost;
  let likely = -discordant * Math.LN2, sum = Math.exp(likely);
  for (let side = 1; side <= Math.min(gained, lost); side += 1) {
    likely += Math.log((discordant - side + 1) / side);
    sum += Math.exp(likely);
  }
  return Math.min(1, 2 * sum);
}

function holm(values) {
  const order = values.map((_, place) => place).sort((a, b) => values[a] - values[b]), adjusted = [];
  let highest = 0;
  order.forEach((place, rank) => { highest = Math.max(highest, Math.min(1, (values.length - rank) * values[place])); adjusted[place] = highest; });
  return adjusted;
}

const probability = (p) => (p < 0.001 ? "<0.001" : p.toFixed(3));

async function drawPairs() {
  const { first, second } = COMPARE, again = (change) => { Object.assign(COMPARE, { page: 0 }, change); drawPairs(); };
  fill("compare-pairs", async () => {
    const files = [first, second].map((place) => DATA.sets[place].file);
    const directories = await Promise.all(files.map((file) => load(`${file}/directory`)));
    const tasks = [...new Set(directories[0].groups.map(([task]) => task))];
    const places = pairPlaces(...directories);
    const pages = Math.max(1, Math.ceil(places.length / PAGE));
    const shown = places.slice(COMPARE.page * PAGE, (COMPARE.page + 1) * PAGE);
    const cards = await Promise.all(shown.map(async (place) => pairCard(await Promise.all(files.map((file, side) => sampleAt(file, directories[side], place))))));
    const turn = (by) => again({ page: COMPARE.page + by });
    return [element("h2", {}, "Both answers"),
      element("div", { class: "choosers" },
        choice("Show", Object.entries(WANTED), COMPARE.wanted, (value) => again({ wanted: value })),
        choice("Task", [["", "all tasks"], ...tasks.map((key) => [key, taskName(key)])], COMPARE.task, (value) => again({ task: value }))),
      element("div", { class: "pager" },
        element("button", { type: "button", disabled: COMPARE.page === 0, onclick: () => turn(-1) }, "Previous"),
        element("button", { type: "button", disabled: COMPARE.page >= pages - 1, onclick: () => turn(1) }, "Next"),
        element("p", { role: "status" }, places.length ? `${(COMPARE.page * PAGE + 1).toLocaleString("en")} to ${(COMPARE.page * PAGE + shown.length).toLocaleString("en")} of ${places.length.toLocaleString("en")}` : "No problem fits")),
      ...cards];
  });
}

function pairPlaces(first, second) {
  const wanted = (pair) => (COMPARE.wanted === "differ" ? pair === "gained" || pair === "lost" : pair === COMPARE.wanted);
  return [...answeredPairs(first, second)].filter(([, task, pair]) => wanted(pair) && (!COMPARE.task || task === COMPARE.task)).map(([place]) => place);
}

/** The last words of a prompt, which are the question. */
const endOf = (prompt) => (prompt.length <= SHOWN_PROMPT ? prompt : `… ${prompt.slice(-SHOWN_PROMPT).replace(/^\S*\s/, "")}`);
const SHOWN_PROMPT = 60;

/** Two answers to one problem, each with its digits under those of the truth. */
function pairCard(pair) {
  const [task, length] = pair[0].place;
  const side = (sample, name) => element("div", { class: "side" },
    element("p", { class: "what" }, `${name}: `, element("span", { class: sample.outcome === "correct" ? "outcome right" : "outcome" }, DATA.outcomes[sample.outcome])), answerLine(sample), textBox(`Completion of the ${name}`, sample.text));
  return element("details", { class: "sample pair", open: true },
    element("summary", {}, element("span", { class: "what" }, `${taskName(task)}, ${length} digits, #${pair[0].index}`), element("span", { class: "what" }, visible(endOf(String(pair[0].prompt?.start ?? pair[0].prompt ?? ""))))),
    element("div", { class: "sides" }, side(pair[0], "first"), side(pair[1], "second")));
}
