// Elements of the page. Texts become text nodes and nothing else: no string is ever read as HTML.

export const byId = (id) => document.getElementById(id);

/** An element with attributes and children; what is null, false or empty is left out. */
export function el(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    made.setAttribute(name, value === true ? "" : String(value));
  }
  made.append(...children.flat().filter((one) => one || one === 0));
  return made;
}

/** A drawing's element. */
export function svg(tag, attributes = {}, ...children) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, String(value));
  made.append(...children);
  return made;
}

/** A link, if the address is one of the web; else its text. */
export function link(address, text) {
  let url;
  try { url = new URL(address); } catch { return text; }
  if (url.protocol !== "https:" && url.protocol !== "http:") return text;
  return el("a", { href: url.href, rel: "noreferrer noopener", target: "_blank" }, text);
}

/** Hand a text to the reader as a file. */
export function download(name, text, type) {
  const url = URL.createObjectURL(new Blob([text], { type }));
  el("a", { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

/** "1 passage", "2 passages". */
export const count = (n, noun) => `${n} ${noun}${n === 1 ? "" : "s"}`;

/** Have what is asked meanwhile wait until a file is read, true or false, and those begun before: `here.reading`. */
export function waitFor(here, begun) {
  const before = here.reading ?? true;
  const reading = begun.then((isRead) => isRead && before)
    .finally(() => { if (here.reading === reading) here.reading = null; });
  return (here.reading = reading);
}
