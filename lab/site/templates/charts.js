// Small charts in SVG. Everything that a chart shows is also in a table beside it.
const LEFT = 34, RIGHT = 6, TOP = 8, BOTTOM = 22;
const SMALL = { width: 270, height: 150 }, LARGE = { width: 620, height: 260 };
const MARKERS = ["circle", "square", "triangle", "diamond", "circle", "square", "triangle", "diamond"];

const round = (value) => Math.round(value * 100) / 100;
const percent = (value) => `${round(100 * value) % 1 && Math.abs(value) < 0.1 ? (100 * value).toFixed(1) : Math.round(100 * value)}`;

/** A scale for a metric: the place of a value between 0 and 1, the ticks, and how an estimate is written. */
function scaleOf(metric, estimates) {
  const write = (pattern) => (found) => {
    if (!found) return null;
    const [value, low, high, n] = found;
    return `${pattern(value)}${low == null ? "" : ` (${pattern(low)}-${pattern(high)})`}${n == null ? "" : `, n = ${n}`}`;
  };
  if (metric !== "dlength") {
    return { place: (value) => value, ticks: [[0, "0"], [0.5, "50"], [1, "100 %"]], write: (found) => write((v) => percent(v))(found)?.replace(/^([\d.-]+)/, "$1 %") ?? null };
  }
  const largest = Math.max(1, ...estimates.filter(Boolean).map(([value, , high]) => Math.min(high ?? value, 4 * value + 1)));
  const place = (value) => Math.min(1.02, Math.log2(value + 1) / Math.log2(largest + 1));
  const ticks = [0, 1, 3, 7, 15, 31, 63, 127, 255].filter((tick) => tick <= largest).map((tick) => [tick, `${tick}`]);
  return { place, ticks, write: write((v) => `${round(v)}`) };
}

function frame(title, note, scale, { width, height }, label) {
  const bottom = height - BOTTOM, y = (value) => bottom - scale.place(value) * (bottom - TOP);
  const svg = drawn("svg", { class: "chart", viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label });
  for (const [value, text] of scale.ticks) {
    svg.append(drawn("line", { class: "grid", x1: LEFT, x2: width - RIGHT, y1: y(value), y2: y(value) }),
      drawn("text", { x: LEFT - 4, y: y(value) + 3.5, "text-anchor": "end" }, text));
  }
  const figure = element("figure", {}, element("figcaption", {}, title, note ? element("small", {}, ` ${note}`) : null), savePng(svg, title), svg);
  return { figure, svg, y, bottom };
}

function whisker(x, found, y) {
  if (found[1] == null || found[2] == null) return [];
  return [drawn("line", { class: "whisker", x1: x, x2: x, y1: y(found[1]), y2: y(found[2]) })];
}

/** Groups of bars with intervals. `series`: {label, colour, cells}; cells has an estimate or null for each group. */
function bars({ title, note, groups, series, scale, size = SMALL }) {
  const said = series.map((one) => `${one.label}: ${groups.map((group, place) => `${group.name} ${scale.write(one.cells[place]) ?? "not measured"}`).join("; ")}`);
  const { figure, svg, y, bottom } = frame(title, note, scale, size, `${title}. ${said.join(". ")}`);
  const step = (size.width - LEFT - RIGHT) / Math.max(1, groups.length), wide = (step * 0.82) / series.length;
  groups.forEach((group, at) => {
    const start = LEFT + at * step + step * 0.09;
    svg.append(drawn("text", { x: LEFT + (at + 0.5) * step, y: bottom + 13, "text-anchor": "middle" }, group.text ?? group.name));
    if (series.every((one) => !one.cells[at])) {
      const x = LEFT + (at + 0.5) * step;
      svg.append(drawn("text", { class: "absent", y: bottom - 16, "text-anchor": "middle" }, drawn("tspan", { x }, "not "), drawn("tspan", { x, dy: 10 }, "measured")));
      return;
    }
    series.forEach((one, place) => {
      const found = one.cells[at], x = start + place * wide;
      const bar = drawn("g", { class: `bar c${one.colour}` });
      if (found) {
        const top = Math.min(y(found[0]), bottom - 1);
        bar.append(drawn("rect", { class: "fill", x: x + 0.5, width: Math.max(1, wide - 1), y: top, height: bottom - top }), ...whisker(x + wide / 2, found, y));
      } else {
        bar.append(drawn("text", { class: "absent", x: x + wide / 2, y: bottom - 3, "text-anchor": "middle" }, "–"));
      }
      bar.append(drawn("rect", { class: "hit", x, width: wide, y: TOP, height: bottom - TOP }));
      svg.append(tipped(bar, `${one.label}\n${title}, ${group.name}: ${scale.write(found) ?? "not measured"}`));
    });
  });
  return figure;
}

/** Lines with bands. `series`: {label, colour, points: [[x, estimate or null]]}; `shade`: [from, to] of x. */
function lines({ title, note, series, scale, across, shade, size = SMALL }) {
  const points = series.flatMap((one) => one.points.filter(([, found]) => found));
  const { figure, svg, y, bottom } = frame(title, note, scale, size, `${title}: ${series.length} lines against ${across}; the table below has every point`);
  const xs = series.flatMap((one) => one.points.map(([x]) => x));
  if (!points.length) {
    svg.append(drawn("text", { x: size.width / 2, y: size.height / 2, "text-anchor": "middle" }, "not measured"));
    return figure;
  }
  const first = Math.min(...xs), last = Math.max(...xs);
  const x = (value) => LEFT + 6 + ((value - first) / (last - first || 1)) * (size.width - LEFT - RIGHT - 12);
  if (shade) {
    const [from, to] = [Math.max(first, shade[0]), Math.min(last, shade[1])];
    if (from <= to) svg.prepend(drawn("rect", { class: "trained", x: x(from) - 5, width: x(to) - x(from) + 10, y: TOP, height: bottom - TOP }));
  }
  for (const tick of niceTicks(first, last)) {
    svg.append(drawn("text", { x: x(tick), y: bottom + 13, "text-anchor": "middle" }, short(tick)));
  }
  for (const one of series) {
    const found = one.points.filter(([, estimate]) => estimate);
    const group = drawn("g", { class: `series c${one.colour}` });
    const banded = found.filter(([, e]) => e[1] != null && e[2] != null);
    if (banded.length > 1) {
      const edge = [...banded.map(([at, e]) => [at, e[2]]), ...banded.reverse().map(([at, e]) => [at, e[1]])];
      group.append(drawn("path", { class: "band", d: path(edge.map(([at, v]) => [x(at), y(v)])) + "Z" }));
    } else if (banded.length) group.append(...whisker(x(banded[0][0]), banded[0][1], y));
    group.append(drawn("path", { class: "line", "stroke-dasharray": dash(one.colour), d: path(found.map(([at, e]) => [x(at), y(e[0])])) }));
    const marks = found.length <= 40;
    for (const [at, e] of found) {
      const dot = drawn("g", { class: "point" });
      if (marks) dot.append(marker(MARKERS[one.colour], x(at), y(e[0])));
      dot.append(drawn("circle", { class: "hit", cx: x(at), cy: y(e[0]), r: 7 }));
      group.append(tipped(dot, `${one.label}\n${at.toLocaleString("en")} ${across}: ${scale.write(e)}`));
    }
    svg.append(group);
  }
  return figure;
}

/** Bars stacked to 100 %. `rows`: [{name, counts: {kind: n}}]; `kinds`: {kind: words}. */
function stacks({ title, rows, kinds, across, size = SMALL }) {
  const scale = scaleOf("share", []);
  const names = Object.keys(kinds);
  const { figure, svg, bottom } = frame(title, "", scale, size, `${title}: outcomes by ${across}; the table below has the counts`);
  const step = (size.width - LEFT - RIGHT) / rows.length, every = Math.ceil(rows.length / 12);
  rows.forEach(({ name, counts }, at) => {
    const all = names.reduce((sum, kind) => sum + (counts[kind] ?? 0), 0);
    let base = bottom;
    for (const kind of names) {
      const n = counts[kind] ?? 0, tall = ((bottom - TOP) * n) / all;
      if (!n) continue;
      base -= tall;
      const part = drawn("rect", { class: `fill ${kindClass(kind)}`, x: LEFT + at * step + step * 0.06, width: step * 0.88, y: base + 0.4, height: Math.max(0.4, tall - 0.8) });
      svg.append(tipped(part, `${name} ${across}: ${kinds[kind]}\n${n} of ${all} (${percent(n / all)} %)`));
    }
    if (at % every === 0) svg.append(drawn("text", { x: LEFT + (at + 0.5) * step, y: bottom + 13, "text-anchor": "middle" }, `${name}`));
  });
  return figure;
}

const KIND_COLOURS = { correct: 2, carry_1d: 1, sub_1d: 5, order_2d: 6, value_nd: 3, other_form: 4, wrong: 7, parse_error: 8, api_error: 0 };
const kindClass = (kind) => `c${KIND_COLOURS[kind]}`;
const dash = (colour) => (colour < 4 ? null : "5 3");
const path = (points) => points.map(([x, y], place) => `${place ? "L" : "M"}${round(x)} ${round(y)}`).join("");

function marker(kind, x, y, r = 2.8) {
  const shapes = {
    circle: () => drawn("circle", { class: "fill", cx: x, cy: y, r }),
    square: () => drawn("rect", { class: "fill", x: x - r + 0.3, y: y - r + 0.3, width: 2 * r - 0.6, height: 2 * r - 0.6 }),
    triangle: () => drawn("path", { class: "fill", d: `M${x} ${y - r - 0.6}L${x + r + 0.6} ${y + r}L${x - r - 0.6} ${y + r}Z` }),
    diamond: () => drawn("path", { class: "fill", d: `M${x} ${y - r - 1}L${x + r + 1} ${y}L${x} ${y + r + 1}L${x - r - 1} ${y}Z` }),
  };
  return shapes[kind]();
}

function niceTicks(first, last) {
  if (first === last) return [first];
  const rough = (last - first) / 5, power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((m) => m * power).find((s) => s >= rough);
  const whole = Number.isInteger(first) && Number.isInteger(last) ? Math.max(1, step) : step;
  const ticks = [];
  for (let tick = Math.ceil(first / whole) * whole; tick <= last + whole * 1e-9; tick += whole) ticks.push(tick);
  return ticks;
}

function short(value) {
  const size = Math.abs(value);
  return size >= 1e6 ? `${round(value / 1e6)}M` : size >= 1e4 ? `${round(value / 1e3)}k` : `${round(value)}`;
}

/** The legend: which colour and marker stand for which label. */
function legend(series, lined) {
  return element("ul", { class: "legend", "aria-label": "Legend" }, series.map((one) => element("li", {},
    drawn("svg", { viewBox: "0 0 22 12", "aria-hidden": "true", class: `c${one.colour}` },
      lined ? [drawn("line", { class: "line", "stroke-dasharray": dash(one.colour), x1: 0, x2: 22, y1: 6, y2: 6 }), marker(MARKERS[one.colour], 11, 6, 3.4)] : drawn("rect", { class: "fill", x: 2, y: 1, width: 18, height: 10 })),
    element("bdi", {}, one.label))));
}
