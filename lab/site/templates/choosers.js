// The controls with which a reader chooses: native selects, check boxes and buttons, each with its label.
/** A select; `options`: [[value, text]] or {group: [[value, text]]}. */
function choice(label, options, value, changed) {
  const made = (list) => list.map(([key, text]) => element("option", { value: key, selected: String(key) === String(value) }, text));
  const content = Array.isArray(options) ? made(options) : Object.entries(options).map(([group, list]) => element("optgroup", { label: group }, made(list)));
  const id = `choice-${(choices += 1)}`;
  const select = element("select", { id, onchange: () => changed(select.value) }, content);
  return element("div", { class: "choice" }, element("label", { for: id }, label), select);
}
let choices = 0;

/** Check boxes in a row; `chosen` is a Set that is changed in place. */
function checks(legend, options, chosen, changed) {
  return element("fieldset", {}, element("legend", {}, legend), element("div", { class: "options" }, boxes(options, chosen, changed)));
}

function boxes(options, chosen, changed, most = Infinity) {
  return options.map(([key, text]) => {
    const box = element("input", { type: "checkbox", checked: chosen.has(key) });
    box.addEventListener("change", () => {
      if (box.checked && chosen.size >= most) { box.checked = false; changed(); return; }
      if (box.checked) chosen.add(key); else chosen.delete(key);
      changed();
    });
    return element("label", {}, box, element("bdi", {}, text));
  });
}

/** Check boxes for many options: folded, with a filter. At most `most` can be chosen; the summary says which are. */
function manyChecks(legend, options, chosen, changed, most = Infinity) {
  const names = new Map(options);
  const summary = element("summary", {});
  const list = element("div", { class: "options", role: "group", "aria-label": legend });
  const describe = () => {
    const said = [...chosen].map((key) => names.get(key));
    const some = said.length > 3 ? `${said.slice(0, 3).join(", ")} and ${said.length - 3} more` : said.join(", ");
    const all = chosen.size === options.length && options.length > 3;
    summary.replaceChildren(`${legend}: ${all ? `all ${options.length}` : some || "none"}`, chosen.size >= most ? ` (at most ${most})` : "");
  };
  const told = () => { describe(); changed(); };
  const fillList = () => list.replaceChildren(...boxes(options, chosen, told, most));
  const narrow = () => {
    const sought = filter.value.toLowerCase();
    [...list.children].forEach((label) => { label.hidden = !label.textContent.toLowerCase().includes(sought); });
  };
  const filter = element("input", { type: "search", "aria-label": `Filter ${legend.toLowerCase()}`, placeholder: "filter", oninput: narrow });
  const set = (keys) => { chosen.clear(); keys.forEach((key) => chosen.add(key)); fillList(); narrow(); told(); };
  const row = element("div", { class: "row" }, filter,
    most === Infinity ? element("button", { type: "button", onclick: () => set(options.map(([key]) => key)) }, "All") : null,
    element("button", { type: "button", onclick: () => set([]) }, "None"));
  fillList();
  describe();
  return element("details", { class: "many" }, summary, row, list);
}

const counted = (number, noun) => `${number.toLocaleString("en")} ${noun}${number === 1 ? "" : "s"}`;

/** Hides rows that do not contain the text of the filter, and shows how many are left. */
function filterRows(input, rows, count, noun) {
  const texts = rows.map((row) => row.textContent.toLowerCase());
  const weight = (list) => list.reduce((sum, row) => sum + Number(row.dataset.runs ?? 1), 0);
  const narrow = () => {
    const sought = input.value.toLowerCase().trim();
    rows.forEach((row, place) => { row.hidden = !texts[place].includes(sought); });
    count.textContent = `${weight(rows.filter((row) => !row.hidden))} of ${counted(weight(rows), noun)}`;
  };
  input.addEventListener("input", narrow);
  narrow();
}
