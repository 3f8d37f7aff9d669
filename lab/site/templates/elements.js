// Makes elements without parsing markup: a string is always text.
function element(name, attributes = {}, ...children) {
  return dress(document.createElement(name), attributes, children);
}

function drawn(name, attributes = {}, ...children) {
  return dress(document.createElementNS("http://www.w3.org/2000/svg", name), attributes, children);
}

function dress(node, attributes, children) {
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else if (value === true) node.setAttribute(key, "");
    else if (value !== false && value != null) node.setAttribute(key, value);
  }
  node.append(...children.flat(Infinity).filter((child) => child != null));
  return node;
}

/** Rows of cells as a table; the first cell of each row is its heading. A null cell was not measured. */
function table(caption, columns, rows, names = 1) {
  const kind = (place) => (place < names ? {} : { class: "figure" });
  const cell = (value, place) =>
    place ? element("td", kind(place), value ?? absent()) : element("th", { scope: "row" }, value);
  return element("div", { class: "wide", tabindex: 0, role: "region", "aria-label": caption },
    element("table", {},
      element("caption", {}, caption),
      element("thead", {}, element("tr", {}, columns.map((name, place) => element("th", { scope: "col", ...kind(place) }, name)))),
      element("tbody", {}, rows.map((row) => element("tr", {}, row.map(cell))))),
    saveCsv(caption, columns, rows));
}

/** A table that is made only when the reader opens it. */
function tableOnDemand(title, make) {
  const details = element("details", { class: "as-table" }, element("summary", {}, title));
  details.addEventListener("toggle", () => { if (details.open && details.children.length === 1) details.append(make()); });
  return details;
}

const absent = () => element("span", { class: "absent" }, "not measured");
const spoken = (text) => element("span", { class: "hidden" }, text);

const tip = document.getElementById("tip");
function tipped(node, text) {
  node.addEventListener("pointerenter", (event) => { tip.textContent = text; tip.hidden = false; moveTip(event); });
  node.addEventListener("pointermove", moveTip);
  node.addEventListener("pointerleave", () => { tip.hidden = true; });
  return node;
}
function moveTip(event) {
  const width = tip.offsetWidth, height = tip.offsetHeight;
  tip.style.left = `${Math.max(4, Math.min(event.clientX + 12, innerWidth - width - 4))}px`;
  tip.style.top = `${event.clientY + 16 + height > innerHeight ? event.clientY - height - 10 : event.clientY + 16}px`;
}
