// Text of models and prompts: invisible characters are made visible, long texts are cut, digits stand below digits.
const UNSEEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff]/gu;
const SHOWN = 1000;

/** Nodes for a text in which control characters, direction marks and half surrogate pairs are shown as codes. */
function visible(text) {
  const code = (found) => `U+${found.charCodeAt(0).toString(16).toUpperCase().padStart(4, "0")}`;
  const name = (found) => (found.charCodeAt(0) < 32 ? String.fromCharCode(0x2400 + found.charCodeAt(0)) : code(found));
  const seen = text.split(UNSEEN), unseen = text.match(UNSEEN) ?? [];
  return seen.flatMap((part, place) => (place < unseen.length ? [part, element("span", { class: "unseen", title: code(unseen[place]) }, name(unseen[place]))] : [part]));
}

/** A text in a box, cut unless the reader asks for all of it. */
function textBox(label, text) {
  const box = element("pre", { tabindex: 0, role: "region", "aria-label": label }, element("bdi", {}, visible(text.slice(0, SHOWN))));
  const all = element("button", { onclick: () => { box.replaceChildren(element("bdi", {}, visible(text))); all.remove(); box.focus(); } }, `Show all ${number(text.length)} characters`);
  return text.length > SHOWN ? [box, all] : [box];
}

/** Two numbers in columns, part by part, as lab/numbers/metrics.py aligns them: decimals from the left, all else from the right. */
function align(given, truth) {
  const shape = (text) => /^[+-]?\d*([./e]\d+)*$/.test(text) && text.replaceAll(/[^./e]/g, "");
  if (shape(given) === false || shape(given) !== shape(truth)) return null;
  const parts = [truth, given].map((text) => text.match(/[./e]?[^./e]*/g).filter(Boolean));
  const columns = parts[0].map((part, place) => {
    const [sign, width] = [place ? part[0] : "", Math.max(part.length, parts[1][place].length)];
    return [part, parts[1][place]].map((one) => (sign === "." ? one.padEnd(width) : place ? one[0] + one.slice(1).padStart(width - 1) : signed(one, [truth, given], width)));
  });
  return [0, 1].map((side) => columns.map((column) => column[side]).join(""));
}
const signed = (one, both, width) => (both.some((text) => /^[+-]/.test(text)) ? (/^[+-]/.test(one) ? one[0] : " ") + one.replace(/^[+-]/, "").padStart(Math.max(...both.map((text) => text.match(/^[+-]?(\d*)/)[1].length))) : one.padStart(width));

/** Truth and answer in columns; differences are marked by more than colour. */
function digits([truth, given], reading) {
  const state = (place) => (given[place] === truth[place] ? "right" : given[place] === " " ? "missing" : truth[place] === " " ? "surplus" : "wrong");
  const runs = [];
  for (let place = 0; place < given.length; place += 1) {
    if (runs.at(-1)?.[0] === state(place)) runs.at(-1)[1] += given[place];
    else runs.push([state(place), given[place]]);
  }
  const counts = ["right", "wrong", "missing", "surplus"].map((kind) => [runs.filter(([one]) => one === kind).reduce((sum, [, part]) => sum + part.length, 0), kind]);
  const said = counts.filter(([n]) => n).map((part) => part.join(" ")).join(", ");
  return element("div", { class: "digits", role: "img", "aria-label": `truth ${truth.trim()}, answer ${given.trim()}: ${said}` },
    element("div", {}, element("span", { class: "of" }, "truth"), truth),
    element("div", {}, element("span", { class: "of" }, reading === "strict" ? "answer" : reading), runs.map(([kind, part]) => element("span", { class: `digit ${kind}` }, kind === "missing" ? "·".repeat(part.length) : part))));
}
