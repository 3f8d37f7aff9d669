// Outcomes of answers by length, for one file of samples: stacked bars, one chart per task.
const ERRORS = { set: withScores[telling(1)[0]]?.set ?? 0 };
const setOptions = () => DATA.sets.map((one, place) => [place, `${one.label} (${one.n.toLocaleString("en")})`]);

function openErrors() {
  const choosers = document.getElementById("errors-choosers");
  if (!DATA.sets.length) { choosers.replaceChildren(absent()); return; }
  if (!choosers.children.length) {
    choosers.replaceChildren(choice("Answers of", setOptions(), ERRORS.set, (value) => { ERRORS.set = value; draw(); }));
  }
  const draw = () => fill("errors-view", drawErrors);
  draw();
}

async function drawErrors() {
  const counts = await load(`${DATA.sets[ERRORS.set].file}/errors`);
  const tasks = [...new Set([...TASKS.keys(), ...Object.keys(counts)])].filter((key) => key in counts);
  const kinds = Object.fromEntries(Object.entries(DATA.outcomes).filter(([kind]) => tasks.some((task) => Object.values(counts[task]).some((found) => found[kind]))));
  const rowsOf = (task) => Object.entries(counts[task]).sort(([a], [b]) => a - b).map(([name, found]) => ({ name, counts: found }));
  const cards = tasks.map((task) => stacks({ title: taskName(task), rows: rowsOf(task), kinds, across: "digits", size: sizeFor(tasks) }));
  const list = Object.keys(kinds).map((kind) => ({ label: kinds[kind], colour: KIND_COLOURS[kind] }));
  const rows = () => tasks.flatMap((task) => rowsOf(task).map(({ name, counts: found }) => [taskName(task), name, ...Object.keys(kinds).map((kind) => `${found[kind] ?? 0}`)]));
  return [element("p", { class: "note" }, DATA.sets[ERRORS.set].label), legend(list), grid(cards),
    tableOnDemand("The same as a table", () => table("Number of answers by outcome", ["task", "digits", ...Object.values(kinds)], rows(), 2))];
}
