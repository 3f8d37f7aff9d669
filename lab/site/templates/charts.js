// Charts by plotly, in the page's colours. An estimate is [value, low, high, n].
const COLOURS = [0, 1, 2, 3, 4, 5, 6, 7, 8];
const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
const shade = (place) => colour(`s${place % 8}`);

/** A figure that plotly draws; it can be pointed at, and saved as PNG. */
function chart(title, traces, layout = {}, height = 300) {
  const axis = { gridcolor: colour("line"), linecolor: colour("line"), zeroline: false, automargin: true };
  const looks = { height, margin: { l: 46, r: 12, t: traces.length > 1 ? 34 : 12, b: 40 }, paper_bgcolor: colour("card"), plot_bgcolor: colour("card"), font: { color: colour("soft"), size: 12 }, showlegend: traces.length > 1, legend: { orientation: "h", y: 1, yanchor: "bottom" }, barmode: "group" };
  const config = { responsive: true, displaylogo: false, displayModeBar: "hover", modeBarButtonsToRemove: ["select2d", "lasso2d"], toImageButtonOptions: { filename: title, scale: 3 } };
  const draw = async (box) => {
    if (!window.Plotly) await (window.plotting ??= runScript(fileOf("plotly.min.js")));
    if (box.isConnected) await Plotly.newPlot(box, traces, { ...looks, ...layout, xaxis: { ...axis, ...layout.xaxis }, yaxis: { ...axis, ...layout.yaxis } }, config);
  };
  return element("figure", {}, element("figcaption", {}, title), afterwards(element("div", { class: "chart", role: "img", "aria-label": `${title}; the table below has the values`, style: `min-height: ${height}px` }), draw));
}

/** Values in percent except digit lengths, with their intervals as text. */
const unit = (metric) => (metric === "dlength" ? 1 : 100);
const short = (value) => `${Math.abs(value) < 10 ? Math.round(10 * value) / 10 : Math.round(value)}`;
function said(found, metric) {
  if (!found) return null;
  const [value, low, high, n] = found, write = (one) => short(unit(metric) * one);
  return `${write(value)}${metric === "dlength" ? "" : " %"}${low == null ? "" : ` (${write(low)}-${write(high)})`}${n == null ? "" : `, n = ${n}`}`;
}
const yAxis = (metric) => (metric === "dlength" ? { type: "linear", rangemode: "tozero" } : { range: [0, 103], ticksuffix: " %" });
function estimates(kind, name, place, xs, found, metric) {
  const k = unit(metric), known = xs.map((x, at) => [x, found[at]]).filter(([, one]) => one);
  const arms = (side) => known.map(([, one]) => (one[side] == null ? 0 : k * Math.abs(one[side] - one[0])));
  return { type: kind === "bar" ? "bar" : "scatter", mode: "lines+markers", name, x: known.map(([x]) => x), y: known.map(([, one]) => k * one[0]), error_y: { array: arms(2), arrayminus: arms(1), symmetric: false, thickness: 1, width: 2 }, marker: { color: shade(place), symbol: place }, line: { color: shade(place), dash: place < 4 ? "solid" : "dot" }, text: known.map(([, one]) => said(one, metric)), textposition: "none", hovertemplate: `%{x}: %{text}<extra>${name.replaceAll("<", "&lt;")}</extra>` };
}

/** A heat map: rows of texts and values between -1 and 1, or null for what was not measured. */
function heat(title, columns, rows, values, texts, hover, diverging) {
  const scale = diverging ? [[0, colour("worse")], [0.5, colour("card")], [1, colour("heat")]] : [[0, colour("card")], [1, colour("heat")]];
  const trace = { type: "heatmap", x: columns, y: rows, z: values, text: texts, texttemplate: "%{text}", hovertext: hover, hoverinfo: "x+y+text", zmin: diverging ? -1 : 0, zmax: 1, colorscale: scale, showscale: false, xgap: 2, ygap: 2 };
  return chart(title, [trace], { yaxis: { autorange: "reversed", type: "category" }, xaxis: { side: "top", type: "category" }, margin: { l: 46, r: 12, t: 40, b: 12 } }, 60 + 24 * rows.length);
}
