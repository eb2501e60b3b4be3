// The page: reads the form, runs the judges, shows what they find.
import { Trouble, getJson, readFile, stream } from "./api.js";
import { drawOrder } from "./cards.js";
import { Column } from "./column.js";
import { byId, count, el, waitFor } from "./dom.js";
import { MOST_LETTERS, readView, writeView } from "./link.js";
import { clearTrouble, complain, frame, say, tell } from "./said.js";
import { DIRECTIONS, compare, describeSources, nameSource } from "./verdicts.js";

const BLANK_LINES = /\n[^\S\n]*(?:\n[^\S\n]*)+/;
const here = { loaded: null, reading: null, columns: [], asked: null, running: null };

// The form

const checked = () => document.querySelector("[name=from]:checked").value;
const pasted = () => byId("passages").value.split(BLANK_LINES).map((one) => one.trim()).filter(Boolean);

/** Whether a text is JSON or JSON lines; a passage may well begin with a bracket. */
function isJson(text) {
  const parses = (one) => { try { return typeof JSON.parse(one) === "object"; } catch { return false; } };
  return /^\s*[[{]/.test(text) && (parses(text) || parses(text.trim().split("\n", 1)[0]));
}

function showChoice() {
  const from = checked();
  for (const one of ["text", "library", "source"]) byId(`from-${one}`).hidden = one !== from;
  byId("how-many").hidden = from === "text";
  byId("leaves").hidden = byId("source").value === "papers"; // it lies beside the server
}

function showCount() {
  const n = here.loaded ? here.loaded.passages.length : pasted().length;
  byId("passages-count").textContent = n ? count(n, "passage") : "No passage yet";
}

function load(passages, name, notes = []) {
  here.loaded = { passages, name };
  byId("loaded-name").textContent = [`${count(passages.length, "passage")} of ${name}`, ...notes].join(". ");
  showLoaded(true);
}

function showLoaded(there) {
  if (!there) here.loaded = null;
  byId("loaded").hidden = !there;
  byId("passages").hidden = there;
  document.querySelector("label[for=passages]").hidden = there;
  showCount();
}

/** Read a text as UTF-8; one that is none as Windows-1252, which Latin-1 is part of. */
function decode(bytes) {
  try { return new TextDecoder("utf-8", { fatal: true }).decode(bytes); }
  catch { return new TextDecoder("windows-1252").decode(bytes); }
}

/** Take the passages of a file; what is asked meanwhile waits for them, and is not asked without. */
function takeFile(file, name = file.name) { return waitFor(here, readIn(file, name)); }

async function readIn(file, name) {
  clearTrouble();
  complain("passages", "");
  try {
    if (/\.txt$/i.test(name)) {
      const text = decode(await file.arrayBuffer());
      showLoaded(false);
      byId("passages").value = text;
      showCount();
      return true;
    }
    const { passages, skipped = [] } = await readFile(file, name);
    const notes = skipped.length ? [`${count(skipped.length, "record")} left out: ${skipped[0]}${skipped.length > 1 ? " …" : ""}`] : [];
    load(passages, name, notes);
    return true;
  } catch (error) {
    tell(error, () => takeFile(file, name));
    return false;
  }
}

async function showExample() {
  try {
    const example = await getJson("page/example.json");
    byId("question").value = example.question;
    document.querySelector("[name=from][value=text]").checked = true;
    showChoice();
    load(example.passages, `the example. ${example.note.replace(/\.$/, "")}`);
    await run();
  } catch (error) { tell(error, showExample); }
}

/** What is asked for, or null: what is missing is said beside its field. */
function readForm() {
  const from = checked(), question = byId("question").value.trim();
  const request = { question };
  if (from === "text") request.passages = here.loaded ? here.loaded.passages : pasted();
  else Object.assign(request, { [from]: byId(from).value, k: Number(byId("k").value) || 30 });
  const missing = from === "text" && !request.passages.length ? "Give at least one passage." : "";
  complain("passages", missing, from === "text" && !here.loaded);
  complain("question", question ? "" : "Ask something first.");
  return question && !missing ? request : null;
}

// A run

async function run(thresholds = []) {
  if (here.reading && !await here.reading) return;
  if (here.running) return;
  if (checked() === "text" && !here.loaded && isJson(byId("passages").value)) {
    if (!await takeFile(new Blob([byId("passages").value]), "pasted.json")) return;
  }
  const request = readForm();
  if (!request || !await listsAreThere() || here.running) return;
  const judges = [...new Set([byId("judge").value, byId("other").value].filter(Boolean))];
  const running = (here.running = new AbortController());
  begin(request, judges);
  const runs = judges.map((judge) => stream("v1/evidence", judge ? { ...request, judge } : request, {
    signal: running.signal, onEvent: (name, event) => hear(judge, name, event),
  }));
  const ends = await Promise.allSettled(runs);
  here.running = null;
  end();
  if (running.signal.aborted) return cancelled();
  const broken = ends.find(({ status }) => status === "rejected");
  if (broken) tell(broken.reason, () => run(thresholds));
  const found = ends.flatMap(({ value: result }, n) => (result ? [{ judge: judges[n], result, threshold: thresholds[n] }] : []));
  if (found.length) show(request, found);
  return undefined;
}

/** Wait for the lists of the server, which say who judges; `begins` tells what went wrong. */
async function listsAreThere() {
  if (!byId("judge").value) say("Waiting for the server.", { shown: true });
  return here.lists.then(() => true, () => false);
}

function begin(request, judges) {
  clearTrouble();
  const n = (request.passages?.length ?? request.k) * judges.length;
  here.progress = { n, known: Boolean(request.passages), seen: new Map(), several: judges.length > 1, titles: titles(request.passages ?? []) };
  here.cameFrom = document.activeElement;
  for (const id of ["welcome", "found"]) byId(id).hidden = true;
  byId("judged").replaceChildren();
  byId("progress").hidden = byId("cancel").hidden = false;
  byId("run").disabled = true;
  byId("bar").removeAttribute("value");
  byId("results").setAttribute("aria-busy", "true");
  byId("progress-words").textContent = request.passages ? `Judging ${count(request.passages.length, "passage")}` : "Searching, then judging";
  say(byId("progress-words").textContent);
  byId("progress").scrollIntoView({ block: "nearest" });
}

const titles = (passages) => new Map(passages.map((one, n) => {
  const id = one.id ?? String(n + 1), text = one.text ?? one;
  return [id, one.metadata?.title ?? one.title ?? `${text.slice(0, 80)}${text.length > 80 ? " …" : ""}`];
}));

function hear(judge, name, event) {
  const { progress } = here;
  if (name === "retrieved") {
    progress.known = true;
    progress.n = (event.passages?.length ?? event.n ?? progress.n) * (progress.several ? 2 : 1);
    progress.titles = titles(event.passages ?? []);
  }
  if (name !== "scored") return;
  const key = `${judge}\n${event.id}`, before = progress.seen.get(key);
  if (before && (before.score ?? -1) >= (event.score ?? -1)) return; // another window of a long passage
  before?.node.remove();
  const made = { score: event.score, node: judgedRow(progress.several ? judge : "", event) };
  progress.seen.set(key, made);
  const list = byId("judged"), rows = [...list.children];
  list.insertBefore(made.node, rows.find((one) => Number(one.dataset.score) < (event.score ?? -1)) ?? null);
  if (progress.known) {
    Object.assign(byId("bar"), { max: progress.n, value: progress.seen.size });
    byId("progress-words").textContent = `Judged ${progress.seen.size} of ${progress.n}`;
  } else byId("progress-words").textContent = `Judged ${progress.seen.size}`;
}

function judgedRow(judge, { id, score, direction, reason }) {
  const words = DIRECTIONS[direction];
  return el("li", { "data-score": score ?? -1, "data-id": id },
    el("b", {}, score === null ? "failed" : score.toFixed(2)),
    el("span", { class: "label" }, here.progress.titles.get(id) ?? id),
    words && el("span", { class: `side ${direction}` }, el("span", { "aria-hidden": "true" }, words.sign), ` ${words.one}`),
    score === null && el("span", { class: "small" }, reason),
    judge && el("span", { class: "soft small" }, judge));
}

function end() {
  byId("progress").hidden = byId("cancel").hidden = true;
  byId("run").disabled = false;
  byId("found").hidden = !here.columns.length; // of the run before
  byId("results").removeAttribute("aria-busy");
}

function cancelled() {
  const { seen } = here.progress;
  say(`Cancelled after ${count(seen.size, "judgement")}.`, { shown: true });
  byId("progress").hidden = !seen.size; // what was judged stays to be read
  byId("progress-words").textContent = "Judged before it was cancelled";
  byId("bar").hidden = true;
  byId("run").focus();
}

function show(request, found) {
  here.asked = request;
  const hears = { moved: afterMove, trouble: tell };
  const several = found.length > 1;
  here.columns = found.map((one) => new Column({ ...one, threshold: one.threshold ?? null }, hears));
  byId("columns").replaceChildren(...here.columns.map(({ node }) => node));
  byId("columns").classList.toggle("two", several);
  if (!several) here.columns[0].openOrder();
  byId("asked").textContent = request.question;
  document.title = `${request.question} – DeepEra`;
  byId("intent").textContent = describeRun(here.columns[0].result);
  byId("found").hidden = false;
  byId("link-text").hidden = true;
  byId("link-said").textContent = "";
  afterMove();
  say(here.columns.map((one) => `${one.judge}: ${one.node.querySelector(".outcome").textContent}`).join(" "));
  byId("asked").focus({ preventScroll: innerWidth > 900 });
}

function describeRun(result) {
  const { intent = {}, manifest = {}, usage = {}, seconds = {} } = result;
  const reads = intent.topic && !["local", "rules"].includes(manifest.backend);
  const n = here.columns[0].cards.size;
  const parts = [`${count(n, "passage")} judged by ${here.columns.map((one) => one.judge).join(" and ")}`,
    reads && `intent: ${intent.intent} · ${intent.entity_type}`,
    usage.calls && `${count(usage.calls, "call")}${usage.failed_calls ? `, ${usage.failed_calls} more failed` : ""}`,
    seconds.total && `${seconds.total.toFixed(2)} s`, describeSources(result)];
  return parts.filter(Boolean).join(" · ");
}

function afterMove() {
  const [one, other] = here.columns;
  byId("agreement").hidden = !other;
  one.tellOther(other ?? null);
  if (!other) return;
  other.tellOther(one);
  const { both, neither, onlyFirst, onlySecond, notBoth, sides } = compare(one.parts, other.parts);
  const all = both + neither + onlyFirst + onlySecond;
  const said = [`The judges agree on ${both + neither} of ${count(all, "passage")}: both keep ${both}, both drop ${neither}.`,
    onlyFirst ? `Only ${one.judge} keeps ${onlyFirst}.` : "", onlySecond ? `Only ${other.judge} keeps ${onlySecond}.` : "",
    sides ? `They read ${sides} of those that both keep in another direction.` : "",
    notBoth ? `${count(notBoth, "passage")} not judged by both.` : ""];
  const open = byId("agreement").querySelector("details")?.open ?? true;
  byId("agreement").replaceChildren(el("p", {}, said.filter(Boolean).join(" ")),
    el("details", { open }, el("summary", {}, "Both rankings side by side"), drawOrder(one.items(), other.items(), [one.judge, other.judge])));
}

// Links

function viewOf() {
  const { asked, columns: [one, other] } = here;
  const moved = (column) => (column && column.threshold !== column.result.threshold ? column.threshold : undefined);
  return { q: asked.question, judge: one.judge, t: moved(one), with: other?.judge, t2: moved(other),
    library: asked.library, source: asked.source, k: asked.k, passages: asked.passages };
}

async function copyLink() {
  const said = byId("link-said"), field = byId("link-text");
  try {
    const url = `${location.origin}${location.pathname}#${await writeView(viewOf())}`;
    Object.assign(field, { value: url, hidden: false });
    field.select();
    const copied = await navigator.clipboard?.writeText(url).then(() => true, () => false);
    said.textContent = `${copied ? "Copied" : "Here it is, to be copied"}: ${url.length.toLocaleString("en")} of at most ` +
      `${MOST_LETTERS.toLocaleString("en")} letters. ${here.asked.passages ? "It holds the passages" : "It names where passages come from, and holds none"}; no server is sent what stands behind #.`;
  } catch (error) {
    field.hidden = true;
    said.textContent = error.message;
  }
}

async function followLink() {
  let view;
  try {
    view = await readView(location.hash);
  } catch {
    return tell(new Trouble("This link is damaged: it may have been cut on its way."));
  }
  if (!view) return undefined;
  byId("question").value = view.q;
  const from = ["library", "source"].find((one) => view[one]) ?? "text";
  const missing = [choose("judge", view.judge ?? ""), choose("other", view.with ?? ""), from !== "text" && choose(from, view[from])];
  document.querySelector(`[name=from][value=${from}]`).checked = true;
  if (view.k) byId("k").value = view.k;
  if (view.passages) takePassages(view.passages);
  showChoice();
  const gone = missing.filter(Boolean);
  if (gone.length) return tell(new Trouble(`This server does not have what the link names: ${gone.join(", ")}.`));
  const thresholds = [view.t, view.t2].map((one) => (Number(one) >= 0 && Number(one) <= 1 ? Number(one) : null));
  if (from !== "source" && [view.judge, view.with].every((one) => here.judges.get(one)?.in_process ?? !one)) return run(thresholds);
  here.thresholds = thresholds;
  say("The link is filled in. It asks a service that may cost money: press “Find the evidence” to run it.", { shown: true });
  byId("welcome").hidden = true;
  byId("run").focus();
  return undefined;
}

function takePassages(passages) {
  const isText = Array.isArray(passages) && passages.every((one) => typeof one === "string" && !BLANK_LINES.test(one));
  showLoaded(false);
  if (isText) byId("passages").value = passages.join("\n\n");
  else load(passages, "the link");
  showCount();
}

/** Choose by value; returns what is not there, else nothing. */
function choose(id, value) {
  const field = byId(id);
  if (value === "" && id === "judge") return "";
  if (![...field.options].some((one) => one.value === value)) return value;
  field.value = value;
  if (id === "judge") showAbout();
  return "";
}

// The server's lists

const fill = (id, items, first = []) => byId(id).replaceChildren(...first,
  ...items.map(({ value, words, about = "" }) => el("option", { value, "data-about": about }, words ?? value)));
const showAbout = () => { byId("judge-about").textContent = byId("judge").selectedOptions[0]?.dataset.about ?? ""; };

async function begins() {
  try {
    await (here.lists = readLists());
  } catch (error) {
    return tell(error, begins);
  }
  showAbout();
  showChoice();
  return followLink();
}

function aboutOf({ about = {}, threshold, in_process: isFree }) {
  const parts = [about.note, threshold === null ? "" : `Keeps from ${threshold}.`, isFree ? "" : "May cost money."];
  return parts.filter(Boolean).map((one) => one[0].toUpperCase() + one.slice(1)).map((one) => (one.endsWith(".") ? one : `${one}.`)).join(" ");
}

async function readLists() {
  const [{ judges }, { libraries }, { sources }] = await Promise.all(
    ["v1/judges", "v1/libraries", "v1/sources"].map(getJson));
  here.judges = new Map(judges.map((one) => [one.name, one]));
  const named = judges.map((one) => ({ value: one.name, about: aboutOf(one) }));
  fill("judge", named);
  fill("other", named, [el("option", { value: "" }, "none")]);
  fill("library", libraries.map((one) => ({ value: one.name, words: `${one.name} (${count(one.n_passages, "passage")})` })));
  const names = sources.map(({ name }) => name), services = names.filter((one) => one !== "papers");
  const offered = services.length > 1 ? ["all", ...names] : names;
  fill("source", offered.map((value) => ({ value, words: nameSource(value) })));
  byId("choice-library").hidden = !libraries.length;
  byId("choice-source").hidden = !sources.length;
  byId("choices").hidden = !libraries.length && !sources.length;
}

/** A file may be dropped anywhere: the browser would else leave the page and show it. */
function listenToDrops() {
  const mark = (over) => byId("from-text").classList.toggle("over", over);
  document.addEventListener("dragover", (event) => { event.preventDefault(); mark(true); });
  document.addEventListener("dragleave", (event) => { if (!event.relatedTarget) mark(false); });
  document.addEventListener("drop", (event) => {
    event.preventDefault();
    mark(false);
    const [file] = event.dataTransfer.files;
    if (!file) return;
    document.querySelector("[name=from][value=text]").checked = true;
    showChoice();
    takeFile(file);
  });
}

function listen() {
  const on = (id, event, then) => byId(id).addEventListener(event, then);
  on("form", "submit", (event) => { event.preventDefault(); const { thresholds } = here; here.thresholds = null; run(thresholds ?? []); });
  on("form", "change", (event) => { if (event.target.name === "from" || event.target.id === "source") showChoice(); });
  on("form", "keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) byId("form").requestSubmit();
  });
  document.addEventListener("keydown", (event) => { if (event.key === "Escape") here.running?.abort(); });
  on("cancel", "click", () => here.running?.abort());
  on("passages", "input", showCount);
  on("judge", "change", showAbout);
  on("unload", "click", () => { showLoaded(false); byId("passages").focus(); });
  on("file", "change", async () => { const [file] = byId("file").files; if (file) await takeFile(file); byId("file").value = ""; });
  listenToDrops();
  for (const id of ["example", "example-too"]) on(id, "click", showExample);
  on("link", "click", copyLink);
  addEventListener("hashchange", followLink);
}

frame();
listen();
showChoice();
begins();
