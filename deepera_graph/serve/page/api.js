// The server: plain calls, the stream of a run, and errors in words.

const KEY = "deepera-key"; // of this tab; gone when it is closed

export const hasKey = () => Boolean(sessionStorage.getItem(KEY));
export const useKey = (key) => sessionStorage.setItem(KEY, key.trim().replace(/[^\x21-\x7e]/g, "?")); // as headers may be
export const forgetKey = () => sessionStorage.removeItem(KEY);

/** Something that did not work, said for people. */
export class Trouble extends Error {
  constructor(message, { status = 0, hint = "" } = {}) {
    super(message);
    this.status = status;
    this.hint = hint;
  }
}

export const getJson = async (path) => (await ask(path)).json();

export async function post(path, body) {
  return ask(path, {
    method: "POST", body: JSON.stringify(body), headers: { "Content-Type": "application/json" },
  });
}

/** The passages that the server reads in a file. */
export async function readFile(file, name) {
  const answer = await ask(`v1/passages?name=${encodeURIComponent(name)}`, {
    method: "POST", body: file, headers: { "Content-Type": "application/octet-stream" },
  });
  return answer.json();
}

/** Ask for what comes event by event: `onEvent` hears of each, and the result is returned. What is aborted fails, too. */
export async function stream(path, body, { signal, onEvent }) {
  const answer = await ask(path, {
    method: "POST", signal, body: JSON.stringify(body),
    headers: { "Content-Type": "application/json", Accept: "text/event-stream" },
  });
  if (!answer.headers.get("Content-Type")?.startsWith("text/event-stream")) return answer.json();
  let result = null;
  for await (const { name, data } of events(answer.body)) {
    if (name === "error") throw new Trouble(data.error.message, { hint: HINTS[data.error.kind] });
    if (name === "result") result = data;
    else onEvent(name, data);
  }
  if (!result) throw new Trouble("The connection broke before the result came.", { hint: "Try again." });
  return result;
}

/** Server-sent events of a body, as the standard has them: data lines up to a blank line. */
async function* events(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "", name = "", data = [];
  for (;;) {
    const { value, done } = await read(reader);
    if (done) return;
    const lines = (rest + value).split(/\r\n|\n|\r(?!$)/);
    rest = lines.pop();
    for (const line of lines) {
      if (line.startsWith("data:")) data.push(line.slice(5).replace(/^ /, ""));
      else if (line.startsWith("event:")) name = line.slice(6).trim();
      else if (!line && data.length) {
        const plain = JSON.parse(data.join("\n"));
        yield { name: name || plain.event, data: plain };
        [name, data] = ["", []];
      }
    }
  }
}

async function read(reader) {
  try {
    return await reader.read();
  } catch {
    throw new Trouble("The connection broke before the result came.", { hint: "Is the server still running?" });
  }
}

async function ask(path, options = {}) {
  const key = sessionStorage.getItem(KEY);
  const headers = { ...options.headers, ...(key ? { Authorization: `Bearer ${key}` } : {}) };
  let answer;
  try {
    answer = await fetch(path, { ...options, headers });
  } catch {
    throw new Trouble(`The server at ${location.host} does not answer.`, { hint: "Is it still running?" });
  }
  if (answer.ok) return answer;
  throw await troubleOf(answer);
}

const HINTS = { // by status, and by kind where a stream has begun
  busy: "Wait a moment, then try again.",
  timeout: "Take fewer passages, or a faster judge.",
  backend: "Another judge may work.",
  413: "Take fewer or shorter passages.",
  429: "Wait a moment, then try again.",
  503: "Wait a moment, then try again.",
  504: "Take fewer passages, or a faster judge.",
};

async function troubleOf(answer) {
  let message = "";
  try {
    const { error, detail } = await answer.json();
    message = error?.message ?? (typeof detail === "string" ? detail : "");
  } catch { /* not JSON: the status has to do */ }
  const { status } = answer;
  if (status === 401) return new Trouble(message || "This server asks for a key.", { status });
  if (status === 413) message = `That is too much for this server${message ? `: ${message}` : ""}.`.replace(/\.\.$/, ".");
  return new Trouble(message || `The server answered with ${status} ${answer.statusText}.`, { status, hint: HINTS[status] });
}
