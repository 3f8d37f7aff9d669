// Shows any sample: a directory gives the place and outcome of each, and samples are loaded in chunks.
const SAMPLES = { set: ERRORS.set, task: "", length: "", outcome: "", sought: "", page: 0 };
const PAGE = 20;

function openSamples(what, chosen) {
  if (!DATA.sets.length) { document.getElementById("samples-choosers").replaceChildren(absent()); return; }
  const said = (key) => chosen.get(key) ?? "";
  if (SETS.includes(what)) Object.assign(SAMPLES, { set: SETS.indexOf(what), task: said("task"), length: said("length"), outcome: said("outcome"), sought: said("text"), page: 0 });
  chooseSamples();
}

async function chooseSamples() {
  const state = SAMPLES, again = (change) => {
    Object.assign(state, { page: 0 }, change);
    keepInAddress("samples", SETS[state.set], { task: state.task, length: state.length, outcome: state.outcome, text: state.sought });
    chooseSamples();
  };
  const draw = () => fill("samples-view", drawSamples);
  let directory;
  try { directory = await load(`${DATA.sets[state.set].file}/directory`); } catch { draw(); return; }
  const tasks = [...new Set(directory.groups.map(([task]) => task))];
  const lengths = [...new Set(directory.groups.filter(([task]) => !state.task || task === state.task).map(([, length]) => length))].sort((a, b) => a - b);
  const kinds = Object.entries(DATA.outcomes).filter((_, place) => directory.outcomes.includes(String(place)));
  const inRange = state.task && TASKS.has(state.task) ? Object.entries(TASKS.get(state.task).ranges).filter(([, [from, to]]) => lengths.some((length) => length >= from && length <= to)) : [];
  const focused = document.activeElement?.closest?.("#samples-choosers :is(select, input)")?.labels[0].textContent;
  document.getElementById("samples-choosers").replaceChildren(
    choice("Answers of", setOptions(), state.set, (value) => again({ set: Number(value), task: "", length: "", outcome: "" })),
    choice("Task", [["", "all tasks"], ...tasks.map((key) => [key, taskName(key)])], state.task, (value) => again({ task: value, length: "" })),
    choice("Length", { "": [["", "all lengths"]], ...(inRange.length ? { Ranges: inRange.map(([name, [from, to]]) => [`${from}-${to}`, `${name}: ${from} to ${to} digits`]) } : {}), Digits: lengths.map((length) => [`${length}-${length}`, `${length} digits`]) }, state.length, (value) => again({ length: value })),
    choice("Outcome", [["", "all outcomes"], ["not right", "all except right"], ...kinds.map(([kind, words]) => [kind, words])], state.outcome, (value) => again({ outcome: value })),
    element("div", { class: "choice" }, element("label", { for: "samples-sought" }, "Text"), element("input", { type: "search", id: "samples-sought", placeholder: "in prompt or answer", value: state.sought, onchange: (event) => again({ sought: event.target.value.trim().toLowerCase() }) })));
  // the choosers are made anew, because the options depend on what was chosen; the focus stays on the same one
  if (focused) [...document.querySelectorAll("#samples-choosers label")].find((label) => label.textContent === focused)?.control.focus();
  draw();
}

function placesOf(directory) {
  const { task, length, outcome } = SAMPLES, kinds = Object.keys(DATA.outcomes);
  const [from, to] = length ? length.split("-").map(Number) : [-Infinity, Infinity];
  const right = String(kinds.indexOf("correct")), wanted = String(kinds.indexOf(outcome));
  const places = [];
  let start = 0;
  for (const [name, digits, count] of directory.groups) {
    if ((!task || name === task) && digits >= from && digits <= to) {
      for (let place = start; place < start + count; place += 1) {
        const ended = directory.outcomes[place];
        if (!outcome || (outcome === "not right" ? ended !== right : ended === wanted)) places.push(place);
      }
    }
    start += count;
  }
  return places;
}

/** The sample at a place of the directory. */
async function sampleAt(file, directory, place) {
  const chunk = directory.starts.findLastIndex((start) => start <= place);
  return (await load(`${file}/${chunk}`))[place - directory.starts[chunk]];
}

/** The places whose samples contain the text that is looked for. Of a text in a file of its own, only the start counts. */
async function sought(file, directory, places) {
  if (!SAMPLES.sought) return places;
  const found = [];
  for (const place of places) {
    const sample = await sampleAt(file, directory, place);
    const texts = [sample.prompt, sample.reasoning, sample.text, sample.answer, ...Object.values(sample.given)];
    if (texts.some((text) => String(text?.start ?? text ?? "").toLowerCase().includes(SAMPLES.sought))) found.push(place);
  }
  return found;
}

async function drawSamples() {
  const file = DATA.sets[SAMPLES.set].file, directory = await load(`${file}/directory`);
  const places = await sought(file, directory, placesOf(directory)), pages = Math.max(1, Math.ceil(places.length / PAGE));
  const shown = places.slice(SAMPLES.page * PAGE, (SAMPLES.page + 1) * PAGE);
  const cards = await Promise.all(shown.map(async (place) => sampleCard(await sampleAt(file, directory, place))));
  const turn = (by) => { SAMPLES.page += by; fill("samples-view", drawSamples).then(() => { const view = document.getElementById("samples"); view.scrollIntoView(); document.getElementById("samples-said").focus(); }); };
  const said = places.length ? `${(SAMPLES.page * PAGE + 1).toLocaleString("en")} to ${(SAMPLES.page * PAGE + shown.length).toLocaleString("en")} of ${places.length.toLocaleString("en")}` : "No sample fits";
  const pager = (id) => element("div", { class: "pager" },
    element("button", { type: "button", disabled: SAMPLES.page === 0, onclick: () => turn(-1) }, "Previous"),
    element("button", { type: "button", disabled: SAMPLES.page >= pages - 1, onclick: () => turn(1) }, "Next"),
    element("p", { id, role: id ? "status" : null, tabindex: id ? -1 : null }, said));
  return [pager("samples-said"), ...cards, places.length > 5 ? pager(null) : null].filter(Boolean);
}

/** The digits of the answer under those of the truth, or why there are none. */
const answerLine = (sample) => (sample.aligned ? digits(sample.aligned) : element("span", { class: "what" }, sample.error ? "the endpoint failed" : "no number in the answer"));

function sampleCard(sample) {
  const [task, length] = sample.place;
  const right = sample.outcome === "correct";
  const card = element("details", { class: "sample" }, element("summary", {},
    element("span", {}, element("span", { class: right ? "outcome right" : "outcome" }, DATA.outcomes[sample.outcome]),
      element("br"), element("span", { class: "what" }, `${taskName(task)}, ${length} digits, #${sample.index}`)), answerLine(sample)));
  card.addEventListener("toggle", () => { if (card.open && card.children.length === 1) card.append(sampleBody(sample)); });
  return card;
}

function sampleBody(sample) {
  const part = (title, text) => (text === "" ? [] : [element("h3", {}, title), ...(text == null ? [element("p", { class: "absent" }, "not recorded")] : textBox(title, text))]);
  const facts = { "true answer": sample.answer, ...Object.fromEntries(Object.entries(sample.given).map(([reading, text]) => [`read (${reading})`, text ?? "no number"])), ...sample.facts };
  const size = (value) => (typeof value === "number" ? round(value).toLocaleString("en") : visible(String(value)));
  return element("div", { class: "body" },
    part("Prompt", sample.prompt), part("Reasoning", sample.reasoning), part("Completion", sample.text === "" ? null : sample.text), part("Error of the endpoint", sample.error),
    element("h3", {}, "Facts"),
    element("dl", { class: "facts" }, Object.entries(facts).map(([key, value]) => [element("dt", {}, visible(key.replaceAll("_", " "))), element("dd", {}, element("bdi", {}, size(value)))])));
}
