// What the page was made with, and side files: a page from disk may not fetch, but it may add a script.
const DATA = JSON.parse(document.getElementById("data").textContent);
const waiting = new Map();

window.receive = (name, value) => waiting.get(name)?.settle(value);

/** The value of a side file, loaded once. Rejects where there is no such file. */
function load(name) {
  if (!waiting.has(name)) {
    const entry = {};
    entry.promise = new Promise((resolve, reject) => {
      entry.settle = resolve;
      const script = document.createElement("script");
      script.src = `${name}.js`;
      script.onload = () => { script.remove(); reject(new Error(`${name}.js holds something else`)); };
      script.onerror = () => { script.remove(); reject(new Error(`${name}.js is not there: copy the whole folder of the site`)); };
      document.head.append(script);
    });
    waiting.set(name, entry);
  }
  return waiting.get(name).promise;
}

/** A piece of the page that waits for side files; the last call wins, whatever comes first. */
const latest = new Map();
async function fill(id, make) {
  const place = document.getElementById(id), call = {};
  latest.set(id, call);
  place.setAttribute("aria-busy", "true");
  let content;
  try {
    content = await make();
  } catch (error) {
    content = [element("p", { class: "absent" }, String(error.message ?? error))];
  }
  if (latest.get(id) !== call) return;
  place.replaceChildren(...content);
  place.removeAttribute("aria-busy");
}
