"""A result as a page of its own, which looks like that of `deepera serve`."""

from collections.abc import Sequence
from html import escape

from deepera_graph.pipeline.shown import (
    SHOWN_DROPPED,
    SHOWN_UNASKED,
    describe_calls,
    describe_kept,
    source_html,
)
from deepera_graph.result import RankedPassage, RerankResult
from deepera_graph.schema import POSSIBLE
from deepera_graph.text.plain import in_one_line, replace_controls
from deepera_graph.text.questions import name_direction

_LONG, _AROUND = 700, 220  # characters of a passage shown whole; else those around its quote
_STYLE = """
:root {
  color-scheme: light dark;
  --back: #f6f7f9; --sheet: #ffffff; --fore: #1a1d21; --soft: #59626d; --line: #d6dbe1;
  --link: #0b5cad; --mark: #fff0ae; --mark-edge: #d8a500;
  --good: #00694c; --good-back: #e3f4ed; --bad: #a83204; --bad-back: #fdeae2; --mild-back: #eceff2;
  --dropped: #a4adb7; --radius: 10px;
  --read: Charter, "Bitstream Charter", "Iowan Old Style", Georgia, serif;
}
@media (prefers-color-scheme: dark) {
  :root {
    --back: #101316; --sheet: #191d22; --fore: #e6e9ec; --soft: #a3adb8; --line: #343c45;
    --link: #84bcff; --mark: #57470d; --mark-edge: #e0b94a;
    --good: #63d3ab; --good-back: #15332a; --bad: #ff9f78; --bad-back: #3b2117;
    --mild-back: #262c33; --dropped: #66717d;
  }
}
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1.25rem; max-width: 56rem; background: var(--back);
  color: var(--fore); font: 16px/1.5 system-ui, sans-serif; overflow-wrap: anywhere; }
h1, h2, h3, p, ol { margin: 0; padding: 0; }
h1 { font-size: 1.375rem; line-height: 1.3; text-wrap: balance; }
h2 { font-size: 1.1rem; margin: 1.25rem 0 .5rem; }
h3 { font-size: 1rem; line-height: 1.35; }
a { color: var(--link); }
header { display: grid; gap: .5rem; }
ol { list-style: none; display: grid; gap: .75rem; }
.soft { color: var(--soft); font-size: .875rem; }
.outcome { font-weight: 600; font-size: 1.05rem; }
.answer { background: var(--sheet); border: 1px solid var(--line); border-radius: var(--radius);
  padding: .8rem 1rem; font: 1.0625rem/1.55 var(--read); white-space: pre-line; }
.note { background: var(--mild-back); border-left: 4px solid var(--mark-edge); border-radius: 4px;
  padding: .6rem .9rem; }
.card { background: var(--sheet); border: 1px solid var(--line);
  border-left: 5px solid var(--dropped); border-radius: var(--radius); padding: .8rem 1rem;
  display: grid; gap: .35rem; min-width: 0; }
.card.is-kept { border-left-color: var(--good); }
.card.is-possible { border-left-style: dashed; }
.facts { display: flex; flex-wrap: wrap; gap: .3rem .75rem; align-items: center;
  color: var(--soft); font-size: .875rem; }
.facts b { color: var(--fore); font-variant-numeric: tabular-nums; }
.side { border-radius: 1rem; padding: .05rem .6rem; font-weight: 600; color: var(--fore);
  background: var(--mild-back); }
.side.supports { background: var(--good-back); color: var(--good); }
.side.contradicts { background: var(--bad-back); color: var(--bad); }
.text { font: 1.0625rem/1.55 var(--read); white-space: pre-line; }
.card:not(.is-kept) .text { color: var(--soft); }
mark { background: var(--mark); color: inherit; box-shadow: 0 2px 0 var(--mark-edge); }
.card:not(.is-kept) mark { background: none; color: var(--fore); box-shadow: none;
  text-decoration: underline dotted; }
.figures { columns: 22rem 2; column-gap: 1rem; margin: 1rem 0; }
figure { break-inside: avoid; margin: 0 0 1rem; padding: .8rem 1rem;
  background: var(--sheet); border: 1px solid var(--line); border-radius: var(--radius); }
figure:only-child { column-span: all; max-width: 36rem; }
figure svg { display: block; width: 100%; max-width: 34rem; height: auto; margin-top: .6rem; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; overflow-wrap: break-word; background: var(--sheet);
  font-size: .9375rem; }
th, td { border: 1px solid var(--line); padding: .4rem .6rem; text-align: left;
  vertical-align: top; }
th[scope=row] { font-weight: 400; min-width: 12rem; }
td q { display: block; color: var(--soft); font: .875rem/1.4 var(--read); min-width: 10rem; }
td.empty { color: var(--soft); font-style: italic; }
summary { cursor: pointer; color: var(--link); font-size: .9375rem; padding: .3rem 0; }
@media (max-width: 30rem) { body { padding: .75rem; } .card { padding: .7rem .8rem; } }
@media print { body { max-width: none; padding: 0; background: none; }
  .card, figure, tr { break-inside: avoid; } .wide { overflow: visible; }
  table { font-size: 8pt; } td q { font-size: 7pt; }
  th, td, th[scope=row], td q { min-width: 0; padding: 2pt; }
  details::details-content { content-visibility: visible; block-size: auto; } }
"""


def evidence_page(result: RerankResult, *, outcome: str, answer: str, studies: str = "") -> str:
    """Return a page with question, *outcome*, *answer* and passages; no text of others is HTML.

    *studies* is HTML.
    """
    dropped = result.dropped
    sections = (
        studies,
        _section("Kept" if result.fallback is None else "The nearest", result, result.studies),
        _section("Below the threshold", result, _alone(dropped[:SHOWN_DROPPED])),
        _count_hidden(len(dropped) - SHOWN_DROPPED),
        _section("Not judged", result, _alone(result.failed)),
        _section("Not needed", result, _alone(result.not_needed[:SHOWN_UNASKED])),
    )
    notes = "".join(f'<p class="note">Note: {escape(one)}</p>\n' for one in result.warnings)
    head = (
        f'<p class="outcome">{escape(outcome)}</p>\n<p class="soft">{_describe_run(result)}</p>\n'
        f"{notes}{_answer(answer)}"
    )
    return build_page(result.question, head, "".join(sections))


def build_page(title: str, head: str, main: str, *, more_style: str = "") -> str:
    """Return a page in the style of all; *head* and *main* are HTML, the title is text."""
    return replace_controls(
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(in_one_line(title))}</title>\n<style>{_STYLE}{more_style}</style>\n</head>\n"
        f"<body>\n<header>\n<h1>{escape(title)}</h1>\n{head}</header>\n"
        f"<main>\n{main}</main>\n</body>\n</html>\n"
    )


def _answer(text: str) -> str:
    return f'<p class="answer">{escape(text)}</p>\n' if text else ""


def _describe_run(result: RerankResult) -> str:
    fields = result.intent["fields"]
    said = [
        f"{describe_kept(result)}, dropped {len(result.dropped)}, failed {len(result.failed)}",
        f"threshold {result.threshold:g}",
        describe_calls(result.total_usage),
        f"{result.seconds.get('total', 0):.2f} s",
    ]
    if fields["topic"] and not result.reads_by_rules:
        said.insert(0, f"{fields['intent']}, {fields['entity_type']}")
    return escape(" · ".join(said))


def _count_hidden(n: int) -> str:
    return f'<p class="soft">and {n} more below the threshold</p>\n' if n > 0 else ""


def _alone(passages: Sequence[RankedPassage]) -> list[Sequence[RankedPassage]]:
    return [[one] for one in passages]


def _section(title: str, result: RerankResult, studies: Sequence[Sequence[RankedPassage]]) -> str:
    if not studies:
        return ""
    cards = "".join(_card(result, best, others) for best, *others in studies)
    return f"<h2>{title}</h2>\n<ol>\n{cards}</ol>\n"


def _card(result: RerankResult, one: RankedPassage, others: Sequence[RankedPassage] = ()) -> str:
    """Return a passage, with the others of its study folded under it."""
    state = " is-kept" * (one.band is not None) + " is-possible" * (one.band == POSSIBLE)
    said = one.summary if one.summary not in {"", one.quote, one.text} else ""
    parts = [
        f'<li class="card{state}">',
        f"<h3>{one.rank or '–'}. {source_html(result.cite(one))}</h3>",
        f'<p class="facts">{" ".join(_facts(result, one))}</p>',
        f'<p class="text">{_text(one)}</p>',
        f"<p>In short: {escape(said)}</p>" if said else "",
        f'<p class="soft">Why: {escape(one.reason)}</p>' if one.reason else "",
        _fold(result, others),
        "</li>\n",
    ]
    return "\n".join(filter(None, parts))


def _fold(result: RerankResult, others: Sequence[RankedPassage]) -> str:
    if not others:
        return ""
    said = "1 more passage" if len(others) == 1 else f"{len(others)} more passages"
    cards = "".join(_card(result, one) for one in others)
    return f"<details><summary>{said} of this study</summary>\n<ol>\n{cards}</ol></details>"


def _facts(result: RerankResult, one: RankedPassage) -> list[str]:
    facts = [f"<b>{result.show_score(one.score)}</b>"]
    if one.direction:
        facts.append(f'<span class="side {one.direction}">{name_direction(one.direction)}</span>')
    if one.band == POSSIBLE:
        facts.append(f"<span>{POSSIBLE}</span>")
    if one.quote_page:
        facts.append(f"<span>page {one.quote_page}</span>")
    return [*facts, f"<span>retrieved as number {one.retrieval_rank}</span>"]


def _text(one: RankedPassage) -> str:
    """Return the text with its quote marked; of a long one what is around the quote."""
    start, end = one.quote_span or (0, 0)
    before, quote, after = one.text[:start], one.text[start:end], one.text[end:]
    if len(one.text) > _LONG:
        before = before if len(before) <= _AROUND else "… " + before[-_AROUND:].lstrip()
        most = _AROUND if quote else _LONG
        after = after if len(after) <= most else after[:most].rstrip() + " …"
    marked = f"<mark>{escape(quote)}</mark>" if quote else ""
    lost = f"<br>Quoted: “{escape(one.quote)}”" if one.quote and not one.quote_span else ""
    return f"{escape(before)}{marked}{escape(after)}{lost}"
