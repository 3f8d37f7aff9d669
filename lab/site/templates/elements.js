// Makes elements without parsing markup: a string is always text. What needs its place in the page is drawn once it is there.
let drawings = [];
const afterwards = (node, draw) => { drawings.push(() => draw(node)); return node; };

function element(name, attributes = {}, ...children) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else if (value === true) node.setAttribute(key, "");
    else if (value !== false && value != null) node.setAttribute(key, value);
  }
  node.append(...children.flat(Infinity).filter((child) => child != null));
  return node;
}
const absent = (text = "not measured") => element("p", { class: "absent" }, text);
const number = (value) => value.toLocaleString("en");

/** A table that is sorted by any column, saved as CSV and scrolls if it is large; columns: names, or Tabulator's own. */
function grid(caption, columns, rows, options = {}) {
  const named = columns.map((one, place) => (typeof one === "string" ? { title: one, field: `c${place}` } : one));
  const data = rows.map((row) => (Array.isArray(row) ? Object.fromEntries(row.map((value, place) => [`c${place}`, value])) : row));
  const box = element("div", { role: "region", "aria-label": caption });
  let table;
  const make = () => { table = new Tabulator(box, { data, columns: named.map((one) => ({ sorter: "alphanum", formatter: "plaintext", headerSortTristate: true, ...one })), layout: "fitDataFill", height: data.length > 60 ? "75vh" : false, placeholder: "None", ...options }); return new Promise((built) => table.on("renderComplete", built)); };
  return element("div", { class: "grid" }, element("p", { class: "note" }, caption, " ", element("button", { class: "save", onclick: () => table.download("csv", `${caption.slice(0, 60)}.csv`, { bom: true }) }, "CSV")), afterwards(box, make));
}

/** A choice among a few values is a select, one among many a field that completes names. What is chosen stands in the address. */
function choice(label, key, options, value, to = (chosen) => go({ [key]: chosen, page: "" })) {
  const id = `choice-${key}`, many = options.length > 300;
  const list = options.map(([one, text]) => element("option", { value: one, selected: String(one) === String(value) }, many ? null : text));
  const told = (event) => { if (options.some(([one]) => String(one) === event.target.value)) to(event.target.value); };
  const field = many ? [element("input", { id, list: `${id}-list`, value, onchange: told }), element("datalist", { id: `${id}-list` }, list)] : element("select", { id, onchange: told }, list);
  return element("div", { class: "choice" }, element("label", { for: id }, label), field);
}
const search = (label, key, value, placeholder) => element("div", { class: "choice" }, element("label", { for: `choice-${key}` }, label), element("input", { type: "search", id: `choice-${key}`, value, placeholder, onchange: (event) => go({ [key]: event.target.value.trim(), page: "" }) }));

/** Several names of many: folded, with a filter; the chosen ones and the first that fit are listed. */
const unfolded = new Set();
function picker(label, key, names, chosen, most = Infinity) {
  const list = element("div", { class: "options" }), all = new Set(chosen);
  const box = ([name, text]) => element("label", {}, element("input", { type: "checkbox", checked: all.has(name), disabled: !all.has(name) && all.size >= most, onchange: (event) => { if (event.target.checked) all.add(name); else all.delete(name); go({ [key]: [...all], page: "" }); } }), element("bdi", {}, text));
  const filter = element("input", { type: "search", "aria-label": `Filter ${label.toLowerCase()}`, placeholder: "filter", oninput: () => fit() });
  const fit = () => { const found = names.filter(([name, text]) => all.has(name) || text.toLowerCase().includes(filter.value.toLowerCase())); list.replaceChildren(...found.sort(([a], [b]) => all.has(b) - all.has(a)).slice(0, 80).map(box)); };
  fit();
  const said = all.size > 3 || !all.size ? `${all.size || "all"} of ${names.length}` : names.filter(([name]) => all.has(name)).map(([, text]) => text).join(", ");
  return element("details", { class: "many", open: unfolded.has(key), ontoggle: (event) => unfolded[event.target.open ? "add" : "delete"](key) }, element("summary", {}, `${label}: ${said}`), filter, element("button", { onclick: () => go({ [key]: "", page: "" }) }, "None"), list);
}

/** Buttons that turn pages; `total` is a number, or a text such as "20 or more". */
function pager(page, size, total, more = (page + 1) * size < total) {
  const turn = (by) => go({ page: page + by || "" }).then(() => scrollTo({ top: 0 }));
  return element("div", { class: "pager" }, element("button", { disabled: page === 0, onclick: () => turn(-1) }, "Previous"), element("button", { disabled: !more, onclick: () => turn(1) }, "Next"),
    element("p", { role: "status" }, total === 0 ? "None fits" : `${number(page * size + 1)} to ${number(Math.min((page + 1) * size, typeof total === "number" ? total : Infinity))} of ${typeof total === "number" ? number(total) : total}`));
}
