// Shows any sample: a directory gives the place and outcome of each, and samples are loaded in chunks.
const PAGE = 20;
const setOptions = (names) => names.map((name) => [name, `${name} (${number(SETS.get(name).n)})`]);
/** Fields of a sample that have a place of their own on its card; the others are its facts. */
const PLACED = new Set(["index", "task", "task_key", "representation", "length", "digits", "prompt", "text", "reasoning", "answer", "outcome", "given", "exact_match", "asked", "success", "digit_match", "dlength", "api_error", "error", "model"]);

async function samples(what, chosen) {
  if (!SETS.size) return [absent("No samples: none of these runs has answers.")];
  const name = SETS.has(what) ? what : SETS.keys().next().value, said = (key) => chosen.get(key) ?? "";
  const set = SETS.get(name), directory = await load(`${set.file}/directory`), task = said("task"), page = Number(said("page"));
  const groups = directory.groups.filter(([key]) => !task || key === task), lengths = [...new Set(groups.map(([, length]) => length))].sort((a, b) => a - b);
  const inRange = Object.entries(TASKS.get(task)?.ranges ?? {}).filter(([, [from, to]]) => lengths.some((length) => length >= from && length <= to));
  const kinds = Object.entries(DATA.outcomes).filter((_, place) => directory.outcomes.includes(String(place)));
  const choosers = element("div", { class: "choosers" },
    choice("Answers of", "set", setOptions([...SETS.keys()]), name, (value) => { location.hash = addressOf("samples", value); }),
    choice("Task", "task", [["", "all tasks"], ...[...new Set(directory.groups.map(([key]) => key))].map((key) => [key, taskName(key)])], task, (value) => go({ task: value, length: "", page: "" })),
    choice("Length", "length", [["", "all lengths"], ...inRange.map(([range, [from, to]]) => [`${from}-${to}`, `${range}: ${from} to ${to} digits`]), ...lengths.map((length) => [`${length}`, `${length} digits`])], said("length")),
    choice("Outcome", "outcome", [["", "all outcomes"], ["not right", "all except right"], ...kinds], said("outcome")), search("Text", "text", said("text"), "in prompt or answer"));
  const places = placesOf(directory, { task, length: said("length"), outcome: said("outcome") });
  const [shown, total] = said("text") ? await sought(set, directory, places, said("text").toLowerCase(), page) : [places.slice(page * PAGE, (page + 1) * PAGE), places.length];
  const cards = await Promise.all(shown.map(async (place) => sampleCard(await sampleAt(set.file, directory, place))));
  return [choosers, pager(page, PAGE, total, typeof total === "string" || (page + 1) * PAGE < total), cards];
}

function placesOf(directory, { task, length, outcome }) {
  const kinds = Object.keys(DATA.outcomes), [from, to = from] = length ? length.split("-").map(Number) : [-Infinity, Infinity];
  const fits = (ended) => !outcome || (outcome === "not right" ? ended !== "0" : ended === String(kinds.indexOf(outcome)));
  const places = [];
  let start = 0;
  for (const [name, digits, count] of directory.groups) {
    if ((!task || name === task) && digits >= from && digits <= to) for (let place = start; place < start + count; place += 1) if (fits(directory.outcomes[place])) places.push(place);
    start += count;
  }
  return places;
}

/** The sample at a place of the directory, with its outcome. */
async function sampleAt(file, directory, place) {
  const chunk = directory.starts.findLastIndex((start) => start <= place);
  return { ...(await load(`${file}/${chunk}`))[place - directory.starts[chunk]], outcome: Object.keys(DATA.outcomes)[directory.outcomes[place]] };
}

/** A page of the places whose samples contain a text, and how many there are; the search ends once the page is full. */
async function sought(set, directory, places, text, page) {
  const found = [], words = (sample) => [promptOf(sample), sample.reasoning, sample.text, sample.answer, ...Object.values(givenBy(sample))];
  for (const place of places) {
    if (found.length > (page + 1) * PAGE) return [found.slice(page * PAGE, -1), `${found.length} or more`];
    const sample = await sampleAt(set.file, directory, place);
    if (words(sample).some((one) => String(one ?? "").toLowerCase().includes(text))) found.push(place);
  }
  return [found.slice(page * PAGE), found.length];
}

const promptOf = ({ prompt }) => (Array.isArray(prompt) ? prompt.map((one) => `${one.role}: ${one.content}`).join("\n\n") : prompt == null ? null : String(prompt));
const readingsOf = (sample) => DATA.readings.filter((name) => sample[name] && typeof sample[name] === "object");
/** What each reading took for the answer. */
const givenBy = (sample) => Object.fromEntries(readingsOf(sample).length ? readingsOf(sample).map((name) => [name, sample[name].given ?? null]) : [["strict", sample.given ?? null]]);

/** The digits of the answer under those of the truth, or why there are none. */
function answerLine(sample) {
  const [reading, given] = Object.entries(givenBy(sample)).find(([, text]) => text != null) ?? [];
  const columns = reading && align(String(given), String(sample.answer));
  return columns ? digits(columns, reading) : element("span", { class: "what" }, sample.api_error ? "the endpoint failed" : given == null ? "no number in the answer" : visible(String(given).slice(0, SHOWN)));
}
const outcomeOf = (sample) => element("span", { class: sample.outcome === "correct" ? "outcome right" : "outcome" }, DATA.outcomes[sample.outcome]);
const headOf = (sample) => element("span", { class: "what" }, `${taskName(sample.task_key)}, ${sample.length} digits, #${sample.index}`);

function sampleCard(sample) {
  const card = element("details", { class: "sample" }, element("summary", {}, element("span", {}, outcomeOf(sample), element("br"), headOf(sample)), answerLine(sample)));
  card.addEventListener("toggle", () => { if (card.open && card.children.length === 1) card.append(sampleBody(sample)); });
  return card;
}

function sampleBody(sample) {
  const part = (title, text) => (text === "" ? [] : [element("h3", {}, title), ...(text == null ? [absent("not recorded")] : textBox(title, String(text)))]);
  const read = Object.entries(givenBy(sample)).map(([reading, text]) => [`read (${reading})`, text ?? "no number"]), measured = sample.strict && typeof sample.strict === "object" ? sample.strict : sample;
  const others = Object.entries(sample).filter(([key, value]) => !PLACED.has(key) && !DATA.readings.includes(key) && value != null && value !== "");
  const facts = [["true answer", sample.answer], ...read, ...others, ...["digit_match", "dlength"].filter((key) => key in measured).map((key) => [key, measured[key]])];
  const shown = (value) => visible(typeof value === "number" ? number(value) : String(typeof value === "object" ? JSON.stringify(value) : value).slice(0, 10 * SHOWN));
  return element("div", { class: "body" }, part("Prompt", promptOf(sample)), part("Reasoning", sample.reasoning ?? ""), part("Completion", sample.text === "" ? null : sample.text), part("Error of the endpoint", sample.api_error ?? ""),
    element("h3", {}, "Facts"), element("dl", { class: "facts" }, facts.map(([key, value]) => [element("dt", {}, visible(key.replaceAll("_", " "))), element("dd", {}, element("bdi", {}, shown(value)))])));
}
