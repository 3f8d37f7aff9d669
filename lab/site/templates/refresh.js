// While a run is running, the page looks now and then whether it has been written anew (lab report watch=30), and shows that.
const LOOK_SECONDS = 5;

async function lookForNewer() {
  const script = element("script", { src: `written.js?${Date.now()}` });
  const written = await new Promise((resolve) => {
    waiting.set("written", { settle: resolve });
    script.onload = script.onerror = () => resolve(DATA.written); // while the site is being replaced
    document.head.append(script);
  });
  script.remove();
  const busy = document.hidden || document.activeElement?.matches("input, select, iframe");
  if (written !== DATA.written && !busy) location.reload(); // what the reader chose stands in the address
}

if (DATA.running) setInterval(lookForNewer, LOOK_SECONDS * 1000);
