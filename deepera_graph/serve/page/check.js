// The page for manuscripts: reads the form, has citations checked, shows each verdict beside its sentence.
import { getJson, post, readFile, stream } from "./api.js";
import { byId, count, download, el, link, waitFor } from "./dom.js";
import { clearTrouble, complain, frame, say, tell } from "./said.js";
import { nameSource } from "./verdicts.js";

const WORDS = {
  supported: "supported", partly: "partly supported", contradicted: "contradicted", not_found: "not found",
  unavailable: "unavailable", retracted: "retracted", missing: "missing reference", method: "method", not_judged: "not judged",
};
const SIDES = { supported: ["supports", "✓"], contradicted: ["contradicts", "✗"], retracted: ["contradicts", "✗"], method: ["unclear", "–"] };
const FINE = ["supported", "method"];
const FILES = { html: ["html", "text/html"], markdown: ["md", "text/markdown"], csv: ["csv", "text/csv"], json: ["json", "application/json"] };
const MOST_NAMES = 3;
const here = { manuscript: null, references: null, works: [], reading: null, running: null, report: null };

// The form

const checked = () => document.querySelector("[name=from]:checked").value;
const cards = () => byId("claims").children;

/** A file as a request has it. */
async function pack(file) {
  const bytes = new Uint8Array(await file.arrayBuffer());
  let letters = "";
  for (let at = 0; at < bytes.length; at += 0x8000) letters += String.fromCharCode(...bytes.subarray(at, at + 0x8000));
  return { name: file.name, content: btoa(letters) };
}

/** Show what was taken in place of a field, or the field again. */
function showTaken(name, words) {
  const box = byId(`${name}-loaded`);
  box.querySelector("p").textContent = words;
  box.hidden = !words;
  const field = name === "manuscript" ? byId("manuscript") : byId(`${name}-file`);
  field.hidden = Boolean(words);
}

/** Take what is read in a file; a check that is asked for meanwhile waits for it, and is not made without. */
function take(read) {
  waitFor(here, read().then(() => true, (error) => { tell(error, () => take(read)); return false; }));
}

async function takeOne(name, file) {
  here[name] = await pack(file);
  showTaken(name, file.name);
  complain("manuscript", "");
}

async function takeWorks(files) {
  const taken = [];
  for (const file of files) {
    say(`Reading ${file.name}`, { shown: true });
    const { passages } = await readFile(file, file.name);
    taken.push(...passages.map((one) => ({ ...one, id: `${file.name}: ${one.id}` })));
  }
  here.works = taken;
  const names = [...files].slice(0, MOST_NAMES).map(({ name }) => name).join(", ");
  showTaken("works", `${count(taken.length, "passage")} of ${names}${files.length > MOST_NAMES ? " …" : ""}`);
  say("");
}

function showChoice() {
  for (const one of ["files", "library"]) byId(`from-${one}`).hidden = one !== checked();
}

function readForm() {
  const manuscript = here.manuscript ?? byId("manuscript").value;
  const missing = typeof manuscript === "string" && !manuscript.trim() ? "Give a manuscript first." : "";
  complain("manuscript", missing);
  if (missing) return null;
  const request = { manuscript, judge: byId("judge").value };
  if (here.references) request.references = here.references;
  if (checked() === "library") request.library = byId("library").value;
  else if (here.works.length) request.passages = here.works;
  if (byId("source").value) request.source = byId("source").value;
  return request;
}

async function showExample() {
  try {
    const { manuscript, works } = await getJson("page/manuscript.json");
    drop("manuscript");
    byId("manuscript").value = manuscript;
    document.querySelector("[name=from][value=files]").checked = true;
    showChoice();
    here.works = works;
    showTaken("works", `${count(works.length, "passage")} of invented works`);
    await run();
  } catch (error) { tell(error, showExample); }
}

// A run

async function run() {
  if (here.reading && !await here.reading) return undefined;
  if (here.running) return undefined;
  const request = readForm();
  if (!request) return undefined;
  clearTrouble();
  const running = (here.running = new AbortController());
  const seen = { n: 0, of: 0 };
  begin();
  try {
    here.report = await stream("v1/check", request, { signal: running.signal, onEvent: (name, event) => hear(seen, name, event) });
    show();
  } catch (error) {
    if (running.signal.aborted) say(`Cancelled after ${count(seen.n, "pair")}.`, { shown: true });
    else tell(error, run);
  } finally {
    here.running = null;
    byId("progress").hidden = byId("cancel").hidden = true;
    byId("run").disabled = false;
    byId("results").removeAttribute("aria-busy");
  }
  return undefined;
}

function begin() {
  for (const id of ["welcome", "found"]) byId(id).hidden = true;
  byId("progress").hidden = byId("cancel").hidden = false;
  byId("run").disabled = true;
  byId("bar").removeAttribute("value");
  byId("results").setAttribute("aria-busy", "true");
  byId("progress-words").textContent = "Reading the manuscript";
  say("Reading the manuscript");
  byId("progress").scrollIntoView({ block: "nearest" });
}

function hear(seen, name, { n_pairs: n }) {
  if (name === "read") seen.of = n;
  if (name === "pair") seen.n += 1;
  Object.assign(byId("bar"), { max: seen.of || 1, value: seen.n });
  byId("progress-words").textContent = `Checked ${seen.n} of ${count(seen.of, "pair")} of sentence and reference`;
}

function show() {
  const { manuscript, pairs, counts, notes, judge } = here.report;
  const groups = Map.groupBy ? [...Map.groupBy(pairs, (one) => one.claim.number).values()] : group(pairs);
  byId("checked").textContent = manuscript.title || manuscript.path;
  document.title = `${byId("checked").textContent} – DeepEra`;
  const nOpposed = (verdict) => pairs.filter((one) => one.verdict === verdict && one.notes.some(mayOppose)).length;
  const said = Object.entries(counts)
    .map(([verdict, n]) => `${n} ${WORDS[verdict]}${nOpposed(verdict) ? ` (${nOpposed(verdict)} may say the opposite)` : ""}`).join(", ");
  byId("outcome").textContent = `${count(groups.length, "sentence")} with citations, judged by ${judge}: ${said}.`;
  const missing = [...new Set(pairs.filter(({ verdict, key }) => key && verdict === "missing").map(({ key }) => key))];
  const more = [...notes, missing.length && `Not in the list of references: ${missing.join(", ")}.`,
    ...manuscript.duplicates.flatMap((keys) => describeSame(keys, manuscript.references)),
    manuscript.uncited.length && `In the list, but not cited: ${manuscript.uncited.join(", ")}.`].filter(Boolean);
  byId("notes").replaceChildren(...more.map((one) => el("p", { class: "note" }, one)));
  byId("claims").replaceChildren(...groups.map(makeCard));
  showDoubtful();
  byId("found").hidden = false;
  say(byId("outcome").textContent);
  byId("checked").focus({ preventScroll: innerWidth > 900 });
}

function describeSame(keys, references) {
  const drafts = new Set(references.filter(({ source }) => source.is_preprint).map(({ key }) => key));
  const others = keys.filter((key) => !drafts.has(key));
  const earlier = others.length ? keys.filter((key) => drafts.has(key)) : [];
  const of = earlier.length > 1 ? "are preprints of" : "is the preprint of";
  const same = earlier.length ? others : keys;
  return [earlier.length && `${earlier.join(", ")} ${of} ${others.join(", ")}.`,
    same.length > 1 && `The same work is in the list ${same.length} times: ${same.join(", ")}.`].filter(Boolean);
}

function group(pairs) {
  const groups = new Map();
  for (const one of pairs) groups.set(one.claim.number, [...(groups.get(one.claim.number) ?? []), one]);
  return [...groups.values()];
}

function showDoubtful() {
  const only = byId("only-doubtful").checked;
  for (const card of cards()) card.hidden = only && card.dataset.fine === "yes";
}

function makeCard(pairs) {
  const [{ claim, other }] = pairs, verdicts = pairs.map(({ verdict }) => verdict);
  const fine = verdicts.every((one) => FINE.includes(one));
  const bad = verdicts.some((one) => SIDES[one]?.[0] === "contradicts");
  const section = claim.section === here.report.manuscript.title ? "" : claim.section;
  const place = [section, claim.page && `page ${claim.page}`, claim.purpose !== "finding" && `cited as ${claim.purpose}`];
  return el("li", { class: `card${fine ? " is-kept" : ""}${bad ? " is-bad" : ""}`, "data-fine": fine ? "yes" : "no" },
    el("div", { class: "pairs" }, el("h3", { class: "text" }, claim.sentence),
      el("p", { class: "small soft" }, place.filter(Boolean).join(" · "))),
    el("div", { class: "pairs" }, pairs.map(makePair), other && makeOther(other)));
}

function makePair(pair) {
  const [side, sign] = SIDES[pair.verdict] ?? ["unclear", "?"];
  const source = pair.source || pair.reference || "not in the list of references";
  const facts = [pair.read && pair.verdict !== "method" && `read: ${pair.read}`, pair.page && `page ${pair.page}`,
    pair.quote && pair.score !== null && `relevance ${pair.score.toFixed(2)}`].filter(Boolean);
  const near = pair.verdict === "not_found" ? "Nearest: " : "";
  return el("div", { class: "pair-part" },
    el("h4", {}, `[${pair.key || "none"}] `, pair.link ? link(pair.link, source) : source),
    el("p", { class: "facts" }, el("span", { class: `side ${side}` }, el("span", { "aria-hidden": "true" }, sign), ` ${WORDS[pair.verdict]}`),
      ...facts.map((one) => el("span", {}, one))),
    pair.quote && pair.verdict !== "method" && el("p", { class: "text" }, near, el("mark", {}, pair.quote)),
    ...pair.notes.map((one) => el("p", { class: mayOppose(one) ? "note" : "small" }, one)));
}

const mayOppose = (note) => note.includes("may say the opposite");

const makeOther = ({ source, link: address, quote }) => el("div", { class: "pair-part" },
  el("h4", {}, "Best other study: ", address ? link(address, source) : source), el("p", { class: "text" }, el("mark", {}, quote)));

async function exportAs(format) {
  const [suffix, type] = FILES[format];
  try {
    const answer = await post("v1/export", { result: here.report, format });
    download(`citations.${suffix}`, await answer.text(), type);
  } catch (error) { tell(error, () => exportAs(format)); }
}

// The server's lists

const fill = (id, items, first = []) => byId(id).replaceChildren(...first,
  ...items.map(({ value, words }) => el("option", { value }, words ?? value)));

async function begins() {
  try {
    const [{ judges }, { libraries }, { sources }] = await Promise.all(["v1/judges", "v1/libraries", "v1/sources"].map(getJson));
    fill("judge", judges.map(({ name }) => ({ value: name })));
    fill("library", libraries.map((one) => ({ value: one.name, words: `${one.name} (${count(one.n_passages, "passage")})` })));
    byId("choices").hidden = !libraries.length;
    const services = sources.map(({ name }) => name).filter((one) => one !== "papers");
    const offered = services.length > 1 ? ["all", ...services] : services;
    fill("source", offered.map((value) => ({ value, words: nameSource(value) })), [el("option", { value: "" }, "nowhere")]);
    byId("from-source").hidden = !services.length;
  } catch (error) { return tell(error, begins); }
  return showChoice();
}

function drop(name) {
  here[name] = name === "works" ? [] : null;
  byId(`${name}-file`).value = "";
  showTaken(name, "");
}

function listen() {
  const on = (id, event, then) => byId(id).addEventListener(event, then);
  on("form", "submit", (event) => { event.preventDefault(); run(); });
  on("form", "change", (event) => { if (event.target.name === "from") showChoice(); });
  on("form", "keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) byId("form").requestSubmit();
  });
  document.addEventListener("keydown", (event) => { if (event.key === "Escape") here.running?.abort(); });
  on("cancel", "click", () => here.running?.abort());
  for (const name of ["manuscript", "references"]) {
    on(`${name}-file`, "change", ({ target: { files: [file] } }) => { if (file) take(() => takeOne(name, file)); });
  }
  on("works-file", "change", ({ target: { files } }) => {
    if (files.length) take(() => takeWorks(files));
  });
  for (const name of ["manuscript", "references", "works"]) {
    byId(`${name}-loaded`).querySelector("button").addEventListener("click", () => drop(name));
  }
  on("only-doubtful", "change", showDoubtful);
  for (const id of ["example", "example-too"]) on(id, "click", showExample);
  for (const button of document.querySelectorAll("[data-format]")) {
    button.addEventListener("click", () => exportAs(button.dataset.format));
  }
}

frame();
listen();
showChoice();
begins();
