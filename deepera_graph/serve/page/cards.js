// One passage with its verdict, as an item of a list; and two rankings side by side.
import { count, el, link, svg } from "./dom.js";
import { DIRECTIONS, PAPERS, cutQuote, showScore, titleOf } from "./verdicts.js";

const LONG = 700, AROUND = 220; // letters of a passage shown whole; else those around its quote

/** A card; `place` sets what depends on the threshold. */
export function makeCard(passage, own) {
  const facts = el("p", { class: "facts" });
  const decision = el("span", { class: "decision" });
  const beside = el("p", { class: "beside", hidden: true });
  const others = el("details", { class: "others", hidden: true }, el("summary", {}), el("ol", { class: "cards" }));
  const node = el("li", { class: "card", "data-id": passage.id, "data-direction": passage.direction },
    el("div", { class: "head" },
      el("span", { class: "rank" }, el("span", { class: "unseen" }, "Rank "), passage.score === null ? "–" : String(passage.rank)),
      el("h4", {}, link(addressOf(passage), titleOf(passage)))),
    el("p", { class: "source soft small" }, sourceOf(passage)),
    facts,
    showText(passage),
    lostQuote(passage),
    ownSummary(passage),
    el("p", { class: "why" }, el("span", { class: "soft" }, "Why: "), passage.reason || "no reason was given"),
    beside,
    others);
  facts.append(meter(passage, own), ...side(passage), decision, moved(passage), ...remarks(passage));
  return { node, passage, decision, beside, others };
}

/** Show the other passages of a study folded under its best one; return that one's node. */
export function fold({ node, others: rest }, others) {
  const list = rest.querySelector("ol");
  const nodes = others.map((one) => one.node);
  if (nodes.length !== list.children.length || nodes.some((one, n) => one !== list.children[n])) list.replaceChildren(...nodes);
  rest.querySelector("summary").textContent = `${count(nodes.length, "more passage")} of this study`;
  rest.hidden = !nodes.length;
  return node;
}

/** Tell on a card what a threshold decides. */
export function decide(card, kept, why, threshold) {
  card.node.classList.toggle("is-kept", kept);
  card.node.classList.toggle("is-possible", kept && why === "possible");
  card.decision.textContent = why;
  const shown = card.node.querySelector("b.score");
  if (shown) shown.textContent = showScore(card.passage.score, threshold);
  card.node.style.setProperty("--line", threshold);
}

function meter({ score, status }) {
  if (score === null) return el("span", { class: "score none" }, STATUS[status] ?? status);
  const bar = el("span", { class: "meter", "aria-hidden": "true" }, el("i"));
  bar.style.setProperty("--score", score);
  return el("span", { class: "scored" }, bar, el("span", { class: "unseen" }, "Score "), el("b", { class: "score" }));
}

const STATUS = {
  failed: "not judged: the judge failed", skipped_budget: "not judged: the budget is spent",
  not_needed: "not needed: there was enough without it", repaired: "judged at the second try",
};

function side({ direction }) {
  const words = DIRECTIONS[direction];
  if (!words) return [];
  return [el("span", { class: `side ${direction}` }, el("span", { "aria-hidden": "true" }, words.sign), ` ${words.one}`)];
}

function moved({ rank, retrieval_rank: was, score }) {
  if (score === null || !rank) return el("span", { class: "moved" }, `was ${was}`);
  const sign = was === rank ? "" : was > rank ? ` ▲${was - rank}` : ` ▼${rank - was}`;
  const said = was === rank ? "as before" : `${was > rank ? "up" : "down"} ${Math.abs(was - rank)}`;
  return el("span", { class: "moved" }, `was ${was}`, el("span", { "aria-hidden": "true" }, sign), el("span", { class: "unseen" }, `, ${said}`));
}

function remarks(passage) {
  const said = [];
  if (passage.status === "repaired") said.push(STATUS.repaired);
  if (passage.windowed) said.push("long: its best part counts");
  return said.map((one) => el("span", {}, one));
}

function showText({ text, quote_span: span }) {
  const [before, quote, after] = cutQuote(text, span);
  const whole = () => [before, ...marked(quote), after];
  const node = el("p", { class: "text" });
  const short = [lastOf(before), firstOf(after)];
  if (text.length <= LONG || (!quote && text.length <= LONG + AROUND)) {
    node.append(...whole());
    return node;
  }
  const clipped = () => (quote ? [short[0], ...marked(quote), short[1]] : [firstOf(text, LONG)]);
  const more = el("button", { type: "button", class: "plain more", "aria-expanded": "false" }, "Show the whole passage");
  const words = el("span", {}, ...clipped());
  more.addEventListener("click", () => {
    const open = more.getAttribute("aria-expanded") !== "true";
    more.setAttribute("aria-expanded", String(open));
    more.textContent = open ? "Show less" : "Show the whole passage";
    words.replaceChildren(...(open ? whole() : clipped()));
  });
  node.append(words, " ", more);
  return node;
}

const marked = (quote) => (quote ? [el("span", { class: "unseen" }, " the sentence that counts: "), el("mark", {}, quote)] : []);
const firstOf = (text, most = AROUND) => (text.length <= most ? text : `${text.slice(0, most).replace(/\S*$/, "")}…`);
const lastOf = (text) => (text.length <= AROUND ? text : `…${text.slice(-AROUND).replace(/^\S*/, "")}`);

function lostQuote({ quote, quote_span: span }) {
  return quote && !span ? el("p", { class: "lost small" }, "The judge quotes words that are not in the passage: ", el("q", {}, quote)) : null;
}

function ownSummary({ summary, quote, text }) {
  return summary && summary !== quote && summary !== text ? el("p", { class: "summary" }, el("span", { class: "soft" }, "In short: "), summary) : null;
}

function addressOf({ citation = {} }) {
  if (citation.doi) return `https://doi.org/${citation.doi}`;
  if (citation.pmid) return `https://pubmed.ncbi.nlm.nih.gov/${citation.pmid}/`;
  return citation.url ?? "";
}

function sourceOf({ id, citation = {}, metadata = {}, quote_page: quoted, paper_status: became }) {
  const authors = (citation.authors ?? []).map((name) => (name.includes(",") ? name.split(",")[0] : name.split(" ").at(-1)));
  const who = authors.length > 2 ? `${authors[0]} et al.` : authors.join(" and ");
  const where = [citation.venue, citation.year].filter(Boolean).join(", ");
  const part = [metadata.section, (quoted || metadata.page) && `page ${quoted || metadata.page}`].filter(Boolean).join(", ");
  const parts = [PAPERS[became], who, where, citation.doi && `doi:${citation.doi}`, citation.pmid && `PMID ${citation.pmid}`, citation.version, part];
  return [...parts.filter(Boolean), `passage ${id}`].join(" · ");
}

/** Two rankings of the same passages with a line from place to place; lists to a screen reader. */
export function drawOrder(left, right, [leftName, rightName]) {
  const at = new Map(right.map(({ id }, place) => [id, place]));
  const rows = Math.max(left.length, right.length, 1);
  const lines = left.flatMap(({ id }, place) => {
    if (!at.has(id)) return [];
    const [y, z] = [place + 0.5, at.get(id) + 0.5];
    const keep = Number(left[place].kept) + Number(right[at.get(id)].kept);
    const way = `M0 ${y} C50 ${y} 50 ${z} 100 ${z}`;
    return [svg("path", { d: way, class: ["is-dropped", "is-one", "is-kept"][keep], "vector-effect": "non-scaling-stroke" })];
  });
  const drawn = svg("svg", { viewBox: `0 0 100 ${rows}`, preserveAspectRatio: "none", "aria-hidden": "true" }, ...lines);
  const drawing = el("div", { class: "lines" }, drawn);
  drawing.style.setProperty("--rows", rows);
  return el("div", { class: "bump" }, ranked(left, leftName), drawing, ranked(right, rightName));
}

function ranked(items, name) {
  return el("div", {}, el("p", { class: "name", "aria-hidden": "true" }, name), el("ol", { "aria-label": name },
    items.map(({ label, note, kept }) => el("li", { class: kept ? "is-kept" : "is-dropped", title: `${label}: ${note}` },
      el("span", { class: "label" }, label), el("span", { class: "unseen" }, `, ${note}`)))));
}
