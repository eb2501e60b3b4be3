// What one judge found: its threshold as a slider, what is kept, dropped and failed, and exports.
import { byId, count, download, el } from "./dom.js";
import { decide, drawOrder, fold, makeCard } from "./cards.js";
import { bandOf, describe, plain, showScore, split, titleOf } from "./verdicts.js";
import { post } from "./api.js";

const FILES = {
  json: ["json", "application/json"], csv: ["csv", "text/csv"],
  bibtex: ["bib", "application/x-bibtex"], ris: ["ris", "application/x-research-info-systems"],
};
const MOST_LINES = 40; // of the drawing that is open at first
let made = 0;

export class Column {
  /** `hears.moved()` after every change of the threshold, `hears.trouble(error)` of what fails. */
  constructor({ judge, result, threshold = null }, hears) {
    Object.assign(this, { judge, result, hears });
    this.threshold = threshold ?? result.threshold;
    this.node = byId("column").content.cloneNode(true).firstElementChild;
    this.cards = new Map([...result.ranking, ...(result.left_out ?? [])].map((one) => [one.id, makeCard(one)]));
    this.#fill();
    this.#listen();
    this.show();
    const { dropped, kept } = this.parts;
    this.#find(".dropped-part").open = !kept.length && dropped.length > 0;
  }

  #find = (selector) => this.node.querySelector(selector);

  #fill() {
    const { result } = this;
    this.#find(".judge-name").textContent = this.judge;
    const notes = [...(result.warnings ?? [])];
    if (result.fallback) notes.push("Nothing passed: the nearest passages were kept all the same. They are not evidence.");
    this.#find(".notes").append(...notes.map((one) => el("p", { class: "note" }, one)));
    const slider = this.#find(".slider");
    slider.id = `threshold-${(made += 1)}`;
    this.#find(".threshold-label").htmlFor = slider.id;
    this.#find(".threshold-label").append(el("span", { class: "unseen" }, ` of ${this.judge}`));
    this.#find(".exact").setAttribute("aria-label", `Threshold of ${this.judge} as a number`);
    this.#find(".reset").textContent = `Back to ${plain(result.threshold)}`;
    this.dots = new Map(result.ranking.filter(({ score }) => score !== null).map((one) => [one.id, dot(one)]));
    const own = el("b");
    own.style.setProperty("--at", result.threshold);
    this.#find(".strip").append(own, ...this.dots.values());
    this.#find(".line").hidden = !this.dots.size;
    this.#find(".export").setAttribute("aria-label", `Export what ${this.judge} found`);
  }

  #listen() {
    const exact = this.#find(".exact"), slider = this.#find(".slider");
    slider.addEventListener("input", () => this.moveTo(Number(slider.value)));
    exact.addEventListener("change", () => {
      const value = Number(exact.value);
      this.moveTo(exact.value !== "" && value >= 0 && value <= 1 ? value : this.threshold);
    });
    this.#find(".reset").addEventListener("click", () => { this.moveTo(this.result.threshold); slider.focus(); });
    this.#find(".order-part").addEventListener("toggle", () => this.#draw());
    this.#find(".studies-part").addEventListener("toggle", () => this.#tabulate());
    for (const button of this.node.querySelectorAll("[data-format]")) {
      button.addEventListener("click", () => this.#export(button.dataset.format));
    }
  }

  moveTo(threshold) {
    this.threshold = threshold;
    this.show();
    this.hears.moved();
  }

  /** Sort the cards as the threshold has it; they are made once. */
  show() {
    const { result, threshold } = this;
    const parts = (this.parts = split(result, threshold));
    const failed = [...parts.failed, ...parts.notNeeded];
    this.#place(".kept", parts.kept, true);
    this.#place(".dropped", parts.dropped, false);
    this.#place(".failed", failed, false);
    this.#find(".outcome").textContent = describe(result, parts, threshold);
    this.#find(".outcome").classList.toggle("is-empty", !parts.kept.length);
    this.#find(".dropped-part").hidden = !parts.dropped.length;
    this.#find(".dropped-part summary").textContent = `Dropped: ${count(parts.dropped.length, "passage")}, and why`;
    this.#find(".failed-part").hidden = !failed.length;
    this.#find(".failed-part h4").textContent = `Not judged: ${count(failed.length, "passage")}, no score`;
    this.#find(".order-part").hidden = result.ranking.length < 2;
    this.#tellThreshold();
    this.#draw();
    this.#find(".studies-part").hidden = !parts.kept.length;
    clearTimeout(this.waiting);
    this.waiting = setTimeout(() => this.#tabulate(), 300); // the line may be moving
  }

  #place(selector, passages, kept) {
    const studies = new Map();
    for (const { id } of passages) {
      const card = this.cards.get(id), { study } = card.passage;
      const band = bandOf(card.passage, this.result);
      decide(card, kept, kept ? band : this.parts.why.get(id) ?? "", this.threshold);
      this.dots.get(id)?.classList.toggle("is-kept", kept);
      const name = kept && study ? `study ${study}` : `passage ${id}`;
      studies.set(name, [...(studies.get(name) ?? []), card]);
    }
    const nodes = [...studies.values()].map(([best, ...others]) => {
      for (const one of others) fold(one, []);
      return fold(best, others);
    });
    const list = this.#find(selector);
    if (nodes.length !== list.children.length || nodes.some((one, n) => one !== list.children[n])) list.replaceChildren(...nodes);
    list.hidden = !nodes.length;
  }

  #tellThreshold() {
    const { threshold } = this, slider = this.#find(".slider"), exact = this.#find(".exact");
    slider.value = threshold;
    exact.value = plain(threshold);
    slider.setAttribute("aria-valuetext", `${plain(threshold)}: ${this.parts.kept.length} of ${this.result.ranking.length} kept`);
    this.#find(".reset").hidden = threshold === this.result.threshold;
    this.node.style.setProperty("--threshold", threshold);
  }

  #draw() {
    const part = this.#find(".order-part");
    if (!part.open) return;
    const before = [...this.result.ranking].sort((one, other) => one.retrieval_rank - other.retrieval_rank);
    part.querySelector(".order").replaceChildren(drawOrder(this.#labelled(before), this.items(), ["Before", "After"]));
  }

  /** Have the server tabulate the studies that are kept; its page has no text of others as HTML. */
  async #tabulate() {
    const { result, threshold } = this, part = this.#find(".studies-part");
    if (!part.open || this.tabulated === threshold) return;
    this.tabulated = threshold;
    try {
      const answer = await post("v1/table", { result, threshold });
      const [, main] = (await answer.text()).split("</header>"); // this page has styles of its own
      const { body } = new DOMParser().parseFromString(main, "text/html");
      if (threshold === this.threshold) part.querySelector(".studies").replaceChildren(...body.firstElementChild.children);
    } catch (error) {
      this.tabulated = null;
      this.hears.trouble(error, () => this.#tabulate());
    }
  }

  /** Show what moved, unless that is a long list. */
  openOrder() {
    this.#find(".order-part").open = this.result.ranking.length <= MOST_LINES;
  }

  /** The ranking as `drawOrder` takes it. */
  items() {
    return this.#labelled(this.result.ranking);
  }

  #labelled(passages) {
    const kept = new Set(this.parts.kept.map(({ id }) => id));
    return passages.map((one) => ({
      id: one.id, label: titleOf(one), kept: kept.has(one.id),
      note: one.score === null ? "not judged" : `${showScore(one.score, this.threshold)}, ${kept.has(one.id) ? "kept" : this.parts.why.get(one.id)}`,
    }));
  }

  /** Say on each card what another judge does with it; null for none. */
  tellOther(other) {
    const kept = new Set(other?.parts.kept.map(({ id }) => id));
    const own = new Set(this.parts.kept.map(({ id }) => id));
    for (const [id, card] of this.cards) {
      const there = other?.cards.get(id)?.passage;
      card.beside.hidden = !there;
      if (there) card.beside.replaceChildren(...beside(other, there, own.has(id), kept.has(id), card.passage));
    }
  }

  async #export(format) {
    const [suffix, type] = FILES[format];
    try {
      const answer = await post("v1/export", { result: this.result, format, threshold: this.threshold });
      download(`evidence.${suffix}`, await answer.text(), type);
    } catch (error) {
      this.hears.trouble(error, () => this.#export(format));
    }
  }
}

function beside(other, there, keepsHere, keepsThere, here) {
  if (there.score === null || here.score === null) return [`${other.judge} `, there.score === null ? "could not judge it." : `has rank ${there.rank}.`];
  const agree = keepsHere === keepsThere;
  const change = there.rank === here.rank ? "the same rank" : `rank ${there.rank}`;
  const verb = keepsThere ? "keeps" : "drops";
  return [
    el("span", { class: agree ? "agree" : "disagree" }, el("span", { "aria-hidden": "true" }, agree ? "= " : "≠ "), agree ? "agree" : "disagree"),
    `: ${other.judge} ${verb} it${agree ? ", too" : ""} (${change}, ${showScore(there.score, other.threshold)})`,
  ];
}

function dot({ score }) {
  const made = el("i");
  made.style.setProperty("--at", score);
  return made;
}
