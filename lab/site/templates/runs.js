// The list of runs, the page of one run, and probing pages shown in place.
function openRuns() {}

function openRun(name) {
  const place = RUNS.indexOf(name), run = DATA.runs[place];
  if (!run) { location.hash = "#runs"; return; }
  document.getElementById("run-name").replaceChildren(element("bdi", {}, visible(run.name)));
  fill("run-view", async () => {
    const said = await load(`runs/${place}/run`);
    const sets = DATA.sets.map((one, set) => [one, set]).filter(([one]) => one.run === place);
    return [
      element("p", { class: "lead" }, `${run.command}, ${run.status}${run.model ? `, ${run.model}` : ""}`),
      run.notes.length ? element("ul", {}, run.notes.map((note) => element("li", {}, visible(note)))) : null,
      said.found.length ? element("ul", { class: "found" }, said.found.map((line) => element("li", {}, visible(line)))) : null,
      said.scores.length ? table("Exact match in percent, strict reading (95 % interval)", ["problems", "exact match", "n"], said.scores.map(([label, text, n]) => [label || "all", text, n.toLocaleString("en")])) : null,
      said.error ? [element("h2", {}, "Error"), element("pre", { tabindex: 0 }, visible(said.error))] : null,
      element("div", { class: "figures" }, said.figures.map(fileOf).map((file) => element("figure", { class: "left" }, element("a", { href: file }, element("img", { src: file, alt: `Figure ${file.split("/").pop()} of this run`, loading: "lazy" }))))),
      said.tables.map(([name, html]) => written(name, html)),
      element("p", {}, sets.length ? sets.map(([one, set]) => [element("a", { href: addressOf("samples", SETS[set]) }, `Samples of ${one.label} (${one.n.toLocaleString("en")})`), " ", partners(set).length ? [element("a", { href: addressOf("compare", SETS[set], { with: SETS[partners(set)[0]] }) }, "compare"), " "] : null]) : element("span", { class: "absent" }, "No samples.")),
      ...[["Config", said.config], ["Command", said.command], ["Environment", said.environment]].flatMap(([title, text]) => [element("h2", {}, title), text ? element("pre", { tabindex: 0 }, visible(text)) : absent()]),
    ].flat().filter(Boolean);
  });
}

/** Opens the finding of that id, such as F-018, once the view is shown. */
function openFinding(id) {
  const entry = id && document.getElementById(id);
  if (!entry?.matches(".entry")) return;
  entry.open = true;
  setTimeout(() => entry.scrollIntoView({ behavior: "instant" }));
}

/** A Markdown file of the run, in which everything except tables is plain text (lab/site/run_page.py). */
function written(name, html) {
  const box = element("div", { class: "wide", tabindex: 0, role: "region", "aria-label": name });
  box.innerHTML = html;
  for (const found of box.querySelectorAll("table")) found.prepend(element("caption", { class: "hidden" }, name));
  return element("details", {}, element("summary", {}, `Table: ${name}`), box);
}

/** Sorts the bodies of a table by their first rows: numbers by value, others as text, empty cells last. */
function sortBy(header) {
  const found = header.closest("table"), place = header.cellIndex, down = header.getAttribute("aria-sort") === "ascending";
  const key = (body) => { const cell = body.rows[0].cells[place]; return cell.dataset.sort ?? cell.textContent.trim(); };
  const compare = (a, b) => (Number.isNaN(Number(a)) || Number.isNaN(Number(b)) ? a.localeCompare(b, "en", { numeric: true }) : a - b);
  const bodies = [...found.tBodies].sort((a, b) => (key(a) === "") - (key(b) === "") || (down ? -1 : 1) * compare(key(a), key(b)));
  found.append(...bodies);
  for (const other of found.tHead.rows[0].cells) other.removeAttribute("aria-sort");
  header.setAttribute("aria-sort", down ? "descending" : "ascending");
}

for (const button of document.querySelectorAll("#runs-table .sort")) button.addEventListener("click", () => sortBy(button.closest("th")));

for (const button of document.querySelectorAll("#runs-table .unfold")) {
  button.addEventListener("click", () => {
    const open = button.closest("tbody").classList.toggle("open");
    button.setAttribute("aria-expanded", String(open));
  });
}

for (const button of document.querySelectorAll(".embed")) {
  button.addEventListener("click", () => {
    const article = button.closest("article"), there = article.querySelector("iframe");
    if (there) there.remove();
    else article.append(element("iframe", { src: button.dataset.page, title: `Probing of ${button.dataset.name}`, loading: "lazy" }));
    button.setAttribute("aria-expanded", String(!there));
    button.textContent = there ? "Show it here" : "Hide it";
  });
}

filterRows(document.getElementById("runs-filter"), [...document.querySelectorAll("#runs-table tbody")], document.getElementById("runs-count"), "run");
if (document.getElementById("findings-filter")) {
  filterRows(document.getElementById("findings-filter"), [...document.querySelectorAll(".entry")], document.getElementById("findings-count"), "finding");
}
