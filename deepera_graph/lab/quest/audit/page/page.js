"use strict";
const at = (id) => document.getElementById(id);
let audit, rater = "", labels = {}, place = 0, busy = false, saving = Promise.resolve();

async function call(method, path, body) {
  let answer;
  try {
    answer = await fetch(path, {
      method,
      headers: body ? { "content-type": "application/json" } : {},
      body: body && JSON.stringify(body),
    });
  } catch {
    throw new Error("not saved: the command that serves this page has ended; start it again, open its new address");
  }
  const found = await answer.json();
  if (!answer.ok) throw new Error(found.error.message);
  return found;
}

function warn(error) {
  at("alert").textContent = error ? error.message : "";
  at("alert").hidden = !error;
}

const by = (name) => `?rater=${encodeURIComponent(name)}`;
const pathOf = (pair) => `v1/labels/${encodeURIComponent(pair)}`;
const current = () => audit.pairs[place];
const said = (pair) => labels[pair] || { label: null, failure: "", note: "", shown: false };
const isLabelled = (pair) => said(pair.id).label !== null;
const disagrees = (pair) => said(pair.id).judge && said(pair.id).judge.grade !== said(pair.id).label;

/* One request after the other, so that the last word of a pair is the last that is written. */
function save(pair, change) {
  const work = saving.then(async () => {
    labels[pair] = await call("PUT", pathOf(pair) + by(rater), change);
    warn();
  });
  saving = work.catch(warn);
  return work;
}

function saveNote() {
  const { id } = current(), note = at("note").value;
  if (note === said(id).note) return;
  save(id, { note }).then(() => { at("status").textContent = `The note on ${id} is saved.`; }, () => {});
}

/* A key pressed while a label is on its way is not taken for the next pair, nor for this one. */
async function label(value) {
  if (busy) return;
  busy = true;
  await keep(value).finally(() => { busy = false; });
}

async function keep(value) {
  const pair = current();
  const before = said(pair.id);
  if (before.shown && before.label !== value) {
    at("status").textContent = `You have seen the judge’s grade: the label ${before.label} stands.`;
    return;
  }
  mark(value);
  try {
    await save(pair.id, { label: value, note: at("note").value });
  } catch {
    if (current() === pair) mark(before.label);
    return;
  }
  tellCount();
  if (current() !== pair) return;
  const left = findUnlabelled();
  const saved = `${pair.id} is saved as ${value}.`;
  if (left === -1) {
    show(place, { focus: false });
    at("status").textContent = `${saved} All pairs have a label.${audit.blind ? "" : " Now look at where the judge differs."}`;
  } else {
    show(left);
    at("status").textContent = saved;
  }
}

function mark(value) {
  for (const button of document.querySelectorAll("[data-label]")) {
    button.setAttribute("aria-pressed", String(Number(button.dataset.label) === value && value !== null));
  }
}

function findUnlabelled() {
  return find((pair) => !isLabelled(pair));
}

/* The next pair after this one, around the end; -1 if there is none. */
function find(fits) {
  const n = audit.pairs.length;
  for (let step = 1; step <= n; step += 1) {
    const one = (place + step) % n;
    if (fits(audit.pairs[one])) return one;
  }
  return -1;
}

function tellCount() {
  const n = audit.pairs.length, done = audit.pairs.filter(isLabelled).length;
  at("bar").max = n;
  at("bar").value = done;
  at("count").textContent = `${done} of ${n} labelled`;
  at("unlabelled").textContent = done === n && !audit.blind ? "Disagreements" : "Unlabelled";
  at("unlabelled").disabled = done === n && audit.blind;
}

async function goOn() {
  saveNote();
  const left = findUnlabelled();
  if (left !== -1) return show(left);
  if (audit.blind) return undefined;
  try {
    await saving;
    ({ labels } = await call("POST", `v1/judge${by(rater)}`));
  } catch (error) {
    return warn(error);
  }
  const open = find((pair) => disagrees(pair) && !said(pair.id).failure);
  const next = open === -1 ? find(disagrees) : open;
  show(next === -1 ? place : next);
  const n = audit.pairs.filter(disagrees).length;
  const named = audit.pairs.filter((pair) => disagrees(pair) && said(pair.id).failure).length;
  at("status").textContent = `You and the judge differ on ${n} pairs; ${named} have a type of failure.`;
  return undefined;
}

function show(number, { focus = true } = {}) {
  place = number;
  const pair = current(), mine = said(pair.id);
  at("place").textContent = `Pair ${place + 1} of ${audit.pairs.length}${mine.label === null ? "" : `, labelled ${mine.label}`}`;
  at("question").textContent = pair.question;
  at("limits").hidden = !pair.constraints.length;
  at("constraints").replaceChildren(...pair.constraints.flatMap(([name, value]) => {
    const dt = document.createElement("dt"), dd = document.createElement("dd");
    dt.textContent = name.replaceAll("_", " ");
    dd.textContent = value;
    return [dt, dd];
  }));
  at("title").textContent = pair.title;
  at("venue").textContent = pair.venue;
  at("venue").hidden = !pair.venue;
  at("abstract").textContent = pair.abstract || "There is no abstract: go by the title.";
  at("note").value = mine.note;
  at("back").disabled = place === 0;
  at("next").disabled = place === audit.pairs.length - 1;
  at("show").disabled = mine.label === null || Boolean(mine.judge);
  at("status").textContent = "";
  mark(mine.label);
  showJudge(pair);
  if (focus) {
    at("place").focus({ preventScroll: true });
    scrollTo(0, 0);
  }
}

function showJudge(pair) {
  const { judge, label: mine, failure } = said(pair.id);
  at("judge").hidden = !judge;
  if (!judge) return;
  const differs = judge.grade !== mine;
  at("judge-heading").textContent = `The judge says ${judge.grade}, you say ${mine}`;
  const each = Object.entries(judge.grades).map(([name, grade]) => `${name} ${grade}`).join(", ");
  at("judge-facts").textContent = [each, judge.adjudicated ? "decided after the judges disagreed" : ""].filter(Boolean).join("; ");
  at("evidence").replaceChildren(...judge.evidence.map((quote) => {
    const item = document.createElement("li");
    item.textContent = quote;
    return item;
  }));
  at("why").hidden = !differs;
  at("failure").value = failure;
}

function move(to) {
  if (to < 0 || to >= audit.pairs.length) return;
  saveNote();
  show(to);
}

async function ask() {
  const pair = current();
  if (audit.blind || at("show").disabled) return;
  try {
    await saving;
    labels[pair.id] = await call("POST", `${pathOf(pair.id)}/judge${by(rater)}`);
  } catch (error) {
    warn(error);
    return;
  }
  if (current() !== pair) return;
  show(place, { focus: false });
  at("judge-heading").focus();
  at("judge").scrollIntoView({ block: "center" });
  if (disagrees(pair)) at("status").textContent = "You differ: please name the type of failure above.";
}

async function begin(name) {
  const found = await call("GET", `v1/labels${by(name)}`);
  ({ rater, labels } = found);
  warn();
  history.replaceState(null, "", `#rater=${encodeURIComponent(rater)}`);
  at("who").textContent = rater;
  at("sign-in").hidden = true;
  for (const id of ["standing", "pair", "desk"]) at(id).hidden = false;
  place = audit.pairs.length - 1;
  tellCount();
  show(Math.max(findUnlabelled(), 0));
}

async function leave() {
  saveNote();
  await saving;
  history.replaceState(null, "", location.pathname);
  rater = "";
  labels = {};
  for (const id of ["standing", "pair", "desk"]) at(id).hidden = true;
  audit = await call("GET", "v1/audit");
  signIn();
}

function signIn() {
  at("sign-in").hidden = false;
  const known = Object.entries(audit.raters);
  at("known").hidden = !known.length;
  at("raters").replaceChildren(...known.map(([name, n]) => {
    const item = document.createElement("li"), button = document.createElement("button");
    button.type = "button";
    button.textContent = `${name} (${n} of ${audit.pairs.length})`;
    button.addEventListener("click", () => begin(name).catch(warn));
    item.append(button);
    return item;
  }));
  at("rater").focus();
}

const KEYS = {
  b: () => move(place - 1),
  n: () => move(place + 1),
  u: goOn,
  j: ask,
  t: () => at("note").focus(),
  0: () => label(0),
  1: () => label(1),
  2: () => label(2),
};

function press(event) {
  if (!rater || event.ctrlKey || event.altKey || event.metaKey || event.repeat) return;
  const where = event.target;
  if (event.key === "Escape" && where === at("note")) where.blur();
  if (!at("keys").checked || where.matches("input, textarea, select")) return;
  const work = KEYS[event.key.toLowerCase()];
  if (!work) return;
  event.preventDefault();
  work();
}

async function start() {
  audit = await call("GET", "v1/audit");
  at("loading").hidden = true;
  for (const [name, about] of Object.entries(audit.failures)) at("failure").append(new Option(about, name));
  at("note").maxLength = audit.longest_note;
  for (const id of ["show", "key-show", "key-review"]) at(id).hidden = audit.blind;
  const named = new URLSearchParams(location.hash.slice(1)).get("rater");
  if (!named) return signIn();
  return begin(named).catch((error) => {
    warn(error);
    signIn();
  });
}

for (const button of document.querySelectorAll("[data-label]")) {
  button.addEventListener("click", () => label(Number(button.dataset.label)));
}
at("back").addEventListener("click", KEYS.b);
at("next").addEventListener("click", KEYS.n);
at("unlabelled").addEventListener("click", KEYS.u);
at("show").addEventListener("click", ask);
at("leave").addEventListener("click", () => leave().catch(warn));
at("note").addEventListener("change", saveNote);
at("failure").addEventListener("change", () => {
  const { id } = current();
  save(id, { failure: at("failure").value }).then(() => { at("status").textContent = `The failure type of ${id} is saved.`; }, () => {});
});
at("sign-in").addEventListener("submit", (event) => {
  event.preventDefault();
  begin(at("rater").value).catch(warn);
});
addEventListener("keydown", press);
start().catch((error) => {
  at("loading").hidden = true;
  warn(error);
});
