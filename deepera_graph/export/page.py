"""A result as a page of its own, which looks like that of `deepera serve`."""

from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path

from deepera_graph.pipeline.shown import (
    SHOWN_DROPPED,
    SHOWN_UNASKED,
    describe_calls,
    describe_cut,
    describe_kept,
    list_cut,
    source_html,
)
from deepera_graph.result import RankedPassage, RerankResult
from deepera_graph.schema import POSSIBLE
from deepera_graph.text.plain import MARK_OF_PAGES, in_one_line, replace_controls
from deepera_graph.text.questions import name_direction

_LONG, _AROUND = 700, 220  # characters of a passage shown whole; else those around its quote
_STYLE = Path(__file__).with_suffix(".css").read_text(encoding="utf-8")


def evidence_page(result: RerankResult, *, outcome: str, answer: str, studies: str = "") -> str:
    """Return a page with question, *outcome*, *answer* and passages; no text of others is HTML."""
    # *studies* is HTML.
    cut = list_cut(result)
    dropped = [one for one in result.dropped if one not in cut]
    n_hidden = len(dropped) - SHOWN_DROPPED
    sections = (
        studies,
        _section("Kept" if result.fallback is None else "The nearest", result, result.studies),
        _section("Left out, as top_n others are kept", result, _alone(cut[:SHOWN_DROPPED])),
        _section("Below the threshold", result, _alone(dropped[:SHOWN_DROPPED])),
        f'<p class="soft">and {n_hidden} more below the threshold</p>\n' if n_hidden > 0 else "",
        _section("Not judged", result, _alone(result.failed)),
        _section("Not needed", result, _alone(result.not_needed[:SHOWN_UNASKED])),
    )
    notes = [f"Note: {one}" for one in result.warnings]
    answered = f'<p class="answer">{escape(answer)}</p>\n' if answer else ""
    head = head_html(outcome, _describe_run(result), notes) + answered
    return build_page(result.question, head, "".join(sections))


def build_page(title: str, head: str, main: str, *, more_style: str = "") -> str:
    """Return a page in the style of all; *head* and *main* are HTML, the title is text."""
    return replace_controls(
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">\n{MARK_OF_PAGES}\n'
        f"<title>{escape(in_one_line(title))}</title>\n<style>\n{_STYLE}{more_style}</style>\n</head>\n"
        f"<body>\n<header>\n<h1>{escape(title)}</h1>\n{head}</header>\n"
        f"<main>\n{main}</main>\n</body>\n</html>\n"
    )


def head_html(outcome: str, about: str, notes: Iterable[str] = ()) -> str:
    """Return the head of a page, of texts: what came out, how it was made, and notes."""
    said = "".join(f'<p class="note">{escape(one)}</p>\n' for one in notes)
    return f'<p class="outcome">{escape(outcome)}</p>\n<p class="soft">{escape(about)}</p>\n{said}'


def link_html(text: str, address: str) -> str:
    """Return a text as a link, if there is an address."""
    said = escape(text)
    return f'<a href="{escape(address)}">{said}</a>' if address else said


def _describe_run(result: RerankResult) -> str:
    fields = result.intent["fields"]
    said = [
        f"{describe_kept(result)}, dropped {len(result.dropped)}{describe_cut(result)}, "
        f"failed {len(result.failed)}",
        f"threshold {result.threshold:g}",
        describe_calls(result.total_usage),
        f"{result.seconds.get('total', 0):.2f} s",
    ]
    if fields["topic"] and not result.reads_by_rules:
        said.insert(0, f"{fields['intent']}, {fields['entity_type']}")
    return " · ".join(said)


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
