// A view as the part of an address behind "#": it never leaves the browser.

export const MOST_LETTERS = 8_000; // of a link; longer ones are cut by mail programs and chats
const MOST_BYTES = 2_000_000; // of the passages that a link may unfold to

/** The fragment of a view; an Error says why there is none. */
export async function writeView(view) {
  const fields = new URLSearchParams();
  for (const name of ["q", "judge", "t", "with", "t2", "library", "source", "k"]) {
    if (view[name] !== undefined && view[name] !== "") fields.set(name, String(view[name]));
  }
  if (view.passages) fields.set("p", await pack(JSON.stringify(view.passages)));
  const written = fields.toString();
  if (written.length > MOST_LETTERS) {
    throw new Error(
      `This view does not fit in a link: it would have ${written.length.toLocaleString("en")} letters of at most ` +
      `${MOST_LETTERS.toLocaleString("en")}. Take fewer passages or a library, or export the result.`);
  }
  return written;
}

/** The view of a fragment; null if it holds none. */
export async function readView(fragment) {
  const fields = new URLSearchParams(fragment.replace(/^#/, ""));
  if (!fields.has("q")) return null;
  const view = Object.fromEntries(fields);
  view.library ??= view.collection; // as links called it until 0.10
  if (fields.has("p")) view.passages = JSON.parse(await unpack(fields.get("p")));
  if (fields.has("p") && !Array.isArray(view.passages)) throw new Error("The link holds no passages.");
  return view;
}

async function pack(text) {
  const bytes = await drain(new Blob([text]).stream().pipeThrough(new CompressionStream("deflate-raw")));
  let letters = "";
  for (const byte of bytes) letters += String.fromCharCode(byte);
  return btoa(letters).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
}

async function unpack(packed) {
  const letters = atob(packed.replaceAll("-", "+").replaceAll("_", "/"));
  const bytes = Uint8Array.from(letters, (one) => one.charCodeAt(0));
  const unfolded = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
  return new TextDecoder().decode(await drain(unfolded));
}

async function drain(stream) {
  const parts = [];
  let size = 0;
  const reader = stream.getReader();
  for (;;) {
    const { value, done } = await reader.read();
    if (done) break;
    parts.push(value);
    size += value.length;
    if (size > MOST_BYTES) throw new Error("The link holds too much.");
  }
  return new Uint8Array(await new Blob(parts).arrayBuffer());
}
