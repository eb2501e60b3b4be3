// What a result says, without any element of the page: who passes, what agrees, in which words.
import { count } from "./dom.js";

// As deepera_graph.schema words them; the sign is read beside the word, never instead of it.
export const DIRECTIONS = {
  supports: { sign: "✓", one: "supports", many: "support" },
  contradicts: { sign: "✕", one: "contradicts", many: "contradict" },
  no_difference: { sign: "=", one: "no difference", many: "no difference" },
  mixed: { sign: "±", one: "mixed", many: "mixed" },
  unclear: { sign: "?", one: "unclear", many: "unclear" },
};

const NEARLY = 0.2; // of a score, by which the article may be below its preprint and go first

/** The passages of a result at a threshold: kept, dropped, failed, notNeeded, best first.
 *
 * As the package does it: `top_n` at most are kept, and what was held back for want of a quote stays
 * out however low the line is.
 */
export function split(result, threshold) {
  const most = result.manifest?.settings?.top_n ?? Infinity;
  const settled = result.ranking.filter((one) => one.kept).length < most && !result.fallback;
  const parts = { kept: [], dropped: [], failed: [], notNeeded: [], why: new Map() };
  for (const one of result.ranking) {
    const heldBack = settled && !one.kept && one.score !== null && one.score >= result.threshold;
    if (one.score === null) parts[one.status === "not_needed" ? "notNeeded" : "failed"].push(one);
    else if (one.score < threshold) drop(parts, one, "below the threshold");
    else if (heldBack) drop(parts, one, "held back");
    else if (parts.kept.length >= most) drop(parts, one, `beyond the best ${most}`);
    else parts.kept.push(one);
  }
  parts.failed.push(...(result.left_out ?? []));
  return parts;
}

function drop(parts, passage, why) {
  parts.dropped.push(passage);
  parts.why.set(passage.id, why);
}

/** How sure the judge is of a passage that is kept, as deepera_graph.schema.find_band. */
export function bandOf(passage, { evidence_point: point = null, missing_words: missing = [] }) {
  return (point === null || passage.score >= point) && !missing.length ? "evidence" : "possible";
}

/** Say in a sentence what was found; as deepera_graph.export.describe_outcome. */
export function describe(result, parts, threshold) {
  const n = result.ranking.length + (result.left_out ?? []).length;
  if (!n) return "Nothing was retrieved.";
  const failures = describeFailures(parts, n);
  if (parts.kept.length) {
    return `${describeBands(result, parts.kept, count(n, "passage"), plain(threshold))} ${failures}`.trim();
  }
  const judged = parts.dropped.length;
  const none = failures ? `${failures} ${describeOthers(judged, threshold)}`.trim()
    : `No evidence: none of ${count(n, "passage")} reaches ${plain(threshold)}.`;
  return none + (judged ? " The nearest are shown; they are not evidence." : "");
}

function describeBands(result, kept, passages, threshold) {
  const standing = kept.filter((one) => one.paper_status !== "retracted");
  const sure = standing.filter((one) => bandOf(one, result) === "evidence");
  const n = standing.length - sure.length, are = n === 1 ? "is" : "are";
  const nGone = kept.length - standing.length, retracted = nGone === 1 ? "is of a retracted paper" : "are of retracted papers";
  const gone = nGone ? `; ${nGone} more ${retracted}` : "";
  if (!standing.length) return `No evidence: ${nGone} of ${passages} reached ${threshold}, and ${retracted}.`;
  if (!sure.length) return `No evidence: ${n} of ${passages} ${are} possible, reaching ${threshold}${gone}.`;
  const said = describeDirections(sure), sides = said ? ` (${said})` : "";
  if (!n) return `Evidence: ${sure.length} of ${passages} reached ${threshold}${sides}${gone}.`;
  return `Evidence: ${sure.length} of ${passages}${sides}; ${n} more ${are} possible, reaching ${threshold}${gone}.`;
}

function describeOthers(n, threshold) {
  if (!n) return "";
  return `${n === 1 ? "The other does not reach" : `None of the other ${n} reaches`} ${plain(threshold)}.`;
}

function describeFailures(parts, n) {
  const undone = parts.failed.filter((one) => one.status === "skipped_budget");
  const broken = parts.failed.filter((one) => one.status !== "skipped_budget");
  const said = [];
  if (broken.length) {
    const what = broken.length === n ? "Nothing could be judged" : `${broken.length} of ${count(n, "passage")} could not be judged`;
    said.push(`${what}: ${mainReason(broken)}.`);
  }
  if (undone.length) {
    const what = undone.length === n ? "nothing judged" : `${undone.length} of ${count(n, "passage")} not judged`;
    said.push(`The budget stopped the run with ${what} (${mainReason(undone)}).`);
  }
  return said.join(" ");
}

function mainReason(passages) {
  const counts = new Map();
  for (const { reason } of passages) counts.set(reason, (counts.get(reason) ?? 0) + 1);
  const [reason] = [...counts].reduce((best, one) => (one[1] > best[1] ? one : best));
  return reason.trim().replace(/\s+/g, " ").replace(/\.+$/, "") || "no reason was given";
}

/** Each study once, by its best passage, and none of a retracted paper; as `direction_counts` does. */
export function describeDirections(passages) {
  const best = new Map(), firsts = new Map();
  const isArticle = ({ citation }) => !citation?.version;
  for (const one of [...passages].sort((a, b) => b.score - a.score)) {
    const study = one.study || one.id;
    if (!best.has(study)) {
      best.set(study, one);
      firsts.set(study, one.score);
    } else if (!isArticle(best.get(study)) && isArticle(one) && one.score >= firsts.get(study) - NEARLY) best.set(study, one);
  }
  const counted = [...best.values()].filter((one) => one.paper_status !== "retracted");
  return Object.entries(DIRECTIONS)
    .map(([name, words]) => [counted.filter((one) => one.direction === name).length, words])
    .filter(([n]) => n)
    .map(([n, words]) => `${n} ${n === 1 ? words.one : words.many}`)
    .join(", ");
}

/** What became of a paper, in words that cannot be overlooked. */
export const PAPERS = {
  retracted: "RETRACTED",
  concern: "EXPRESSION OF CONCERN",
  corrected: "CORRECTED",
  preprint: "PREPRINT",
};

const SERVICES = {
  all: "all services together", papers: "the base of papers", pubmed: "PubMed", europe_pmc: "Europe PMC",
  openalex: "OpenAlex", arxiv: "arXiv", semantic_scholar: "Semantic Scholar",
};
export const nameSource = (name) => SERVICES[name] ?? name;

/** How it went with each service of literature; empty if none was asked. */
export function describeSources({ sources = [] }) {
  return sources.map(({ source, status, papers }) => {
    const found = papers || status === "ok" ? count(papers, "paper") : "";
    const how = [found, status === "ok" ? "" : status.replaceAll("_", " ")].filter(Boolean).join(", ");
    return `${nameSource(source)}: ${how}`;
  }).join(" · ");
}

/** A number as people write it: 0.28, 1, 0.2837. */
export const plain = (number) => String(Number(number.toPrecision(6)));

/** A score: two decimals, or as many as tell it from the threshold. */
export function showScore(score, threshold) {
  if (score === null) return "–";
  for (let digits = 2; digits < 7; digits += 1) {
    const shown = score.toFixed(digits);
    if ((Number(shown) >= Number(plain(threshold))) === (score >= threshold)) return shown;
  }
  return String(score);
}

/** A text cut at its quote: before, quote, after. Offsets count characters, not UTF-16 units. */
export function cutQuote(text, span) {
  if (!span) return [text, "", ""];
  const letters = Array.from(text);
  const [start, end] = span;
  return [letters.slice(0, start), letters.slice(start, end), letters.slice(end)].map((some) => some.join(""));
}

export function titleOf(passage) {
  const title = passage.citation?.title || passage.metadata?.title;
  return title ? String(title) : opening(passage.text) || passage.id;
}

function opening(text) {
  const words = text.trim().split(/\s+/);
  return words.slice(0, 9).join(" ") + (words.length > 9 ? " …" : "");
}

/** Where two judges agree, for the passages that both had. */
export function compare(one, other) {
  const decided = (parts) => new Map([
    ...parts.kept.map((passage) => [passage.id, "keeps"]),
    ...parts.dropped.map((passage) => [passage.id, "drops"]),
  ]);
  const first = decided(one), second = decided(other);
  const counts = { both: 0, neither: 0, onlyFirst: 0, onlySecond: 0, notBoth: 0, sides: 0 };
  for (const id of new Set([...allIds(one), ...allIds(other)])) {
    const [a, b] = [first.get(id), second.get(id)];
    if (!a || !b) counts.notBoth += 1;
    else if (a !== b) counts[a === "keeps" ? "onlyFirst" : "onlySecond"] += 1;
    else counts[a === "keeps" ? "both" : "neither"] += 1;
  }
  const sides = new Map(other.kept.map((passage) => [passage.id, passage.direction]));
  counts.sides = one.kept.filter(({ id, direction }) => direction && sides.get(id) && sides.get(id) !== direction).length;
  return counts;
}

const allIds = (parts) => ["kept", "dropped", "failed", "notNeeded"].flatMap((part) => parts[part].map(({ id }) => id));
