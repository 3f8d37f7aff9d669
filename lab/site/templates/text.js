// Text of models and prompts: invisible characters are made visible, and long texts are cut.
const UNSEEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff]/gu;
const SHOWN = 1000;

/** Nodes for a text in which control characters, direction marks and half surrogate pairs are shown as codes. */
function visible(text) {
  const nodes = [];
  let end = 0;
  for (const match of text.matchAll(UNSEEN)) {
    nodes.push(text.slice(end, match.index));
    const code = match[0].charCodeAt(0);
    const name = code < 32 ? String.fromCharCode(0x2400 + code) : `U+${code.toString(16).toUpperCase().padStart(4, "0")}`;
    nodes.push(element("span", { class: "unseen", title: `U+${code.toString(16).toUpperCase().padStart(4, "0")}` }, name));
    end = match.index + match[0].length;
  }
  return [...nodes, text.slice(end)];
}

/** A text in a box. `given` is a string, or {start, characters, file} if the complete text is in a file of its own. */
function textBox(label, given) {
  const start = given.start ?? given, characters = given.characters ?? given.length;
  const box = element("pre", { tabindex: 0, role: "region", "aria-label": label }, element("bdi", {}, visible(start.slice(0, SHOWN))));
  if (characters <= SHOWN) return [box];
  const button = element("button", { type: "button" }, `Show all ${characters.toLocaleString("en")} characters`);
  button.addEventListener("click", async () => {
    button.disabled = true;
    try {
      const whole = given.file ? await load(given.file) : given;
      box.replaceChildren(element("bdi", {}, visible(whole)));
      button.remove();
      box.focus();
    } catch (error) { button.textContent = error.message; }
  });
  return [box, button];
}

/** Truth and answer in columns; differences are marked by more than colour. */
function digits(aligned) {
  const [truth, given] = [aligned.truth, aligned.given];
  const state = (place) => (given[place] === truth[place] ? "right" : given[place] === " " ? "missing" : truth[place] === " " ? "surplus" : "wrong");
  const states = [...truth].map((_, place) => state(place));
  const count = (name) => states.filter((found, place) => found === name && truth[place] + given[place] !== "  ").length;
  const said = ["right", "wrong", "missing", "surplus"].map((name) => [count(name), name]).filter(([n]) => n);
  const marked = [];
  for (let place = 0; place < given.length; ) {
    let end = place;
    while (end < given.length && states[end] === states[place]) end += 1;
    const part = given.slice(place, end);
    marked.push(element("span", { class: `digit ${states[place]}` }, states[place] === "missing" ? "·".repeat(part.length) : part));
    place = end;
  }
  return element("div", { class: "digits", role: "img", "aria-label": `truth ${truth.trim()}, answer ${given.trim()}: ${said.map((part) => part.join(" ")).join(", ")}` },
    element("div", {}, element("span", { class: "of" }, "truth"), truth),
    element("div", {}, element("span", { class: "of" }, aligned.reading === "strict" ? "answer" : aligned.reading), marked));
}
