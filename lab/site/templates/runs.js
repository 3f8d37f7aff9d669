// The list of runs, one run with how it was run, and pages of probing shown in place.
function openRuns() {}

function openRun(argument) {
  const run = DATA.runs[argument];
  if (!run) { location.hash = "#runs"; return; }
  document.getElementById("run-name").replaceChildren(element("bdi", {}, visible(run.name)));
  fill("run-view", async () => {
    const said = await load(`runs/${argument}/run`);
    const sets = DATA.sets.map((one, place) => [one, place]).filter(([one]) => one.run === Number(argument));
    return [
      element("p", { class: "lead" }, `${run.kind}, ${run.status}${run.model ? `, ${run.model}` : ""}`),
      run.notes.length ? element("ul", {}, run.notes.map((note) => element("li", {}, visible(note)))) : null,
      element("p", {}, sets.length ? sets.map(([one, place]) => [element("a", { href: `#samples/${place}` }, `Samples of ${one.label} (${one.n.toLocaleString("en")})`), " "]) : element("span", { class: "absent" }, "No samples.")),
      ...[["Config", said.config], ["Command", said.command], ["Environment", said.environment]].flatMap(([title, text]) => [element("h2", {}, title), text ? element("pre", { tabindex: 0 }, visible(text)) : absent()]),
    ].filter(Boolean);
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

filterRows(document.getElementById("runs-filter"), [...document.querySelectorAll("#runs-table tbody tr")], document.getElementById("runs-count"), "run");
if (document.getElementById("log-filter")) {
  filterRows(document.getElementById("log-filter"), [...document.querySelectorAll(".entry")], document.getElementById("log-count"), "experiment");
}
