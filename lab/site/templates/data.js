// The data in the page, and side files: a page opened from disk may not fetch files, but it may add scripts.
const DATA = JSON.parse(document.getElementById("data").textContent);
const waiting = new Map();

window.receive = (name, value) => waiting.get(name)?.settle(value);

/** The address of a file of the version of the site to which this page belongs. */
const fileOf = (name) => `${DATA.written}/${name}`;

/** The value of a side file, loaded only once. Rejects if there is no such file. */
function load(name) {
  if (!waiting.has(name)) {
    const entry = {};
    entry.promise = new Promise((resolve, reject) => {
      entry.settle = resolve;
      const script = document.createElement("script");
      script.src = fileOf(`${name}.js`);
      script.onload = () => { script.remove(); reject(new Error(`${name}.js contains something else`)); };
      script.onerror = () => { script.remove(); reject(new Error(`${name}.js is missing: reload the page if the site was written again, or copy the whole folder of the site`)); };
      document.head.append(script);
    });
    waiting.set(name, entry);
  }
  return waiting.get(name).promise;
}

/** Fills a part of the page once its side files are loaded. If it is called again meanwhile, the last call wins. */
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
