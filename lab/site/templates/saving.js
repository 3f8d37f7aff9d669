// Saves a table as CSV and a chart as PNG, from the page itself: nothing is sent anywhere.
const DRAWN = ["fill", "fill-opacity", "stroke", "stroke-width", "stroke-dasharray", "opacity", "font", "text-anchor"];
const SHARPNESS = 3;

function save(name, address) {
  const link = element("a", { href: address, download: name.toLowerCase().replace(/[^\p{L}\p{N}.]+/gu, "-") });
  link.click();
}

const saver = (text, spokenOf, press) => element("button", { class: "save", type: "button", onclick: press, "aria-label": `${text} of ${spokenOf}` }, text);

/** Rows of cells as CSV (RFC 4180); cells that were not measured are empty. */
function csv(columns, rows) {
  const cell = (value) => {
    const text = value == null ? "" : value instanceof Node ? value.textContent : `${value}`;
    return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  return [columns, ...rows].map((row) => row.map(cell).join(",")).join("\r\n") + "\r\n";
}

const saveCsv = (title, columns, rows) => saver("CSV", title, () => save(`${title}.csv`, `data:text/csv;charset=utf-8,${encodeURIComponent("\ufeff" + csv(columns, rows))}`));

/** A button that saves a chart as it looks now, in its colours, on the colour of its card. */
function savePng(svg, title) {
  return saver("PNG", title, async () => {
    const { width, height } = svg.viewBox.baseVal;
    const copy = svg.cloneNode(true);
    const [looks, copies] = [svg, copy].map((node) => [...node.querySelectorAll("*")]);
    looks.forEach((node, place) => {
      const style = getComputedStyle(node);
      for (const name of DRAWN) copies[place].style.setProperty(name, style.getPropertyValue(name));
    });
    Object.entries({ width: width * SHARPNESS, height: height * SHARPNESS }).forEach(([key, value]) => copy.setAttribute(key, value));
    const image = new Image();
    image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(new XMLSerializer().serializeToString(copy))}`;
    await image.decode();
    const canvas = element("canvas", { width: width * SHARPNESS, height: height * SHARPNESS });
    const paint = canvas.getContext("2d");
    paint.fillStyle = getComputedStyle(document.documentElement).getPropertyValue("--card");
    paint.fillRect(0, 0, canvas.width, canvas.height);
    paint.drawImage(image, 0, 0);
    save(`${title}.png`, canvas.toDataURL("image/png"));
  });
}
