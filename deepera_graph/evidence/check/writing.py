"""The report of a check in the forms that people and programs read it in."""

from collections.abc import Iterable, Iterator, Sequence
from html import escape
from itertools import groupby
from typing import Literal, get_args

from deepera_graph.evidence.check.report import (
    BAD,
    DOUBTFUL,
    CheckedPair,
    CheckReport,
    name_verdict,
)
from deepera_graph.export.page import build_page
from deepera_graph.pipeline.shown import describe_calls
from deepera_graph.settings import check_choice
from deepera_graph.text.plain import in_one_line, replace_controls, write_sheet

CheckFormat = Literal["text", "markdown", "html", "csv", "json"]
_COLUMNS = (
    "claim", "section", "manuscript_page", "sentence", "statement", "purpose", "key", "reference",
    "verdict", "read", "score", "quote", "page", "source", "link", "notes", "other", "other_quote",
    "other_link",
)  # fmt: skip
_KINDS = {"supported": "supports", "contradicted": "contradicts", "retracted": "contradicts"}


def export_check(report: CheckReport, form: CheckFormat) -> str:
    """Return a report as text.

    Args:
        report: Of a check.
        form: ``"text"``, ``"markdown"``, ``"html"`` (a page to read beside the manuscript),
            ``"csv"`` (a row a pair) or ``"json"`` (which `CheckReport.from_dict` reads).

    Raises:
        SettingsError: There is no such form.
    """
    check_choice("form", form, get_args(CheckFormat))
    if form == "json":
        return report.to_json()
    if form == "csv":
        return write_sheet([_COLUMNS, *map(_to_row, report.pairs)])
    if form == "html":
        return _to_page(report)
    return replace_controls("\n".join(_to_lines(report, markdown=form == "markdown")) + "\n")


def _to_row(pair: CheckedPair) -> Sequence[object]:
    claim, other = pair.claim, pair.other
    return (
        claim.number, claim.section, claim.page, claim.sentence, claim.statement, claim.purpose,
        pair.key, pair.reference, pair.verdict, pair.read, _show_score(pair.score), pair.quote,
        pair.page, pair.source, pair.link, "; ".join(pair.notes),
        other.source if other else "", other.quote if other else "", other.link if other else "",
    )  # fmt: skip


def _show_score(score: float | None) -> str:
    return "" if score is None else f"{score:.2f}"


def describe_report(report: CheckReport) -> Iterator[str]:
    """Yield what holds for all of a report, a line each: counts first."""
    n_claims, n_pairs = len(report.manuscript.claims), len(report.pairs)
    yield (
        f"{_count(n_claims, 'claim')}, {_count(n_pairs, 'pair')} of claim and reference: "
        f"{report.describe_counts()}"
    )
    yield from report.notes
    if missing := _name_keys(one.key for one in report.pairs if one.verdict == "missing"):
        yield f"not in the list of references: {missing}"
    for group in report.manuscript.duplicates:
        yield f"the same work is in the list of references {len(group)} times: {', '.join(group)}"
    if uncited := _name_keys(report.manuscript.uncited):
        yield f"in the list, but not cited: {uncited}"


def _name_keys(keys: Iterable[str], most: int = 20) -> str:
    each = list(dict.fromkeys(keys))
    more = f" and {len(each) - most} more" if len(each) > most else ""
    return ", ".join(each[:most]) + more


def _count(n: int, what: str) -> str:
    return f"{n} {what}{'' if n == 1 else 's'}"


def _by_claim(pairs: Iterable[CheckedPair]) -> Iterator[list[CheckedPair]]:
    for _, group in groupby(pairs, key=lambda one: one.claim.number):
        yield list(group)


def _to_lines(report: CheckReport, *, markdown: bool) -> Iterator[str]:
    title = report.manuscript.title or report.manuscript.path.name
    yield f"# Citations of {in_one_line(title)}" if markdown else in_one_line(title)
    yield ""
    yield from (
        f"- {one}" if markdown else one for one in map(in_one_line, describe_report(report))
    )
    for group in _by_claim(report.pairs):
        claim = group[0].claim
        yield ""
        said = f"{claim.number}. {in_one_line(claim.sentence)}"
        yield f"## {said}" if markdown else f"{said}{_place(group[0])}"
        if markdown:
            yield ""
            if _place(group[0]):
                yield f"{_place(group[0]).strip()}\n"
        for pair in group:
            yield from _describe_pair(pair, markdown=markdown)
        if other := group[0].other:
            page = f", p. {other.page}" if other.page else ""
            head = (
                f"{'- ' if markdown else '   '}best other study: {in_one_line(other.source)}{page}"
            )
            yield f"{head}: “{in_one_line(other.quote)}”"


def _place(pair: CheckedPair) -> str:
    claim = pair.claim
    parts = [claim.section, f"page {claim.page}" if claim.page else ""]
    said = ", ".join(filter(None, parts))
    return f"  ({said})" if said else ""


def _describe_pair(pair: CheckedPair, *, markdown: bool) -> Iterator[str]:
    verdict = (
        name_verdict(pair.verdict).upper() if pair.verdict in BAD else name_verdict(pair.verdict)
    )
    shown = f"**{verdict}**" if markdown else verdict
    read = f" (read: {pair.read})" if pair.read and pair.verdict != "method" else ""
    source = in_one_line(pair.source or pair.reference)
    lead = "- " if markdown else "   "
    yield f"{lead}[{in_one_line(pair.key)}] {shown}{read}{': ' if source else ''}{source}"
    inner = "  " if markdown else "      "
    if pair.quote and pair.verdict != "method":
        page = f" (p. {pair.page})" if pair.page else ""
        near = "nearest: " if pair.verdict == "not_found" else ""
        yield f"{inner}{near}“{in_one_line(pair.quote)}”{page}"
    for note in pair.notes:
        yield f"{inner}{in_one_line(note)}"


def _to_page(report: CheckReport) -> str:
    title = report.manuscript.title or report.manuscript.path.name
    first, *rest = describe_report(report)
    notes = "".join(f'<p class="note">{escape(one)}</p>\n' for one in rest)
    about = f"judged by {report.judge}; {describe_calls(report.usage)}"
    head = f'<p class="outcome">{escape(first)}</p>\n<p class="soft">{escape(about)}</p>\n{notes}'
    cards = "".join(map(_card, _by_claim(report.pairs)))
    return build_page(f"Citations of {title}", head, f"<ol>\n{cards}</ol>\n")


def _card(group: Sequence[CheckedPair]) -> str:
    claim = group[0].claim
    verdicts = {one.verdict for one in group}
    state = "" if verdicts & {*BAD, *DOUBTFUL} else " is-kept"
    parts = [
        f'<li class="card{state}" id="claim-{claim.number}">',
        f"<h2>{claim.number}. {escape(claim.sentence)}</h2>",
    ]
    if place := _place(group[0]).strip(" ()"):
        parts.append(f'<p class="soft">{escape(place)}</p>')
    parts += map(_pair_html, group)
    if other := group[0].other:
        link = f'<a href="{escape(other.link)}">{escape(other.source)}</a>' if other.link else None
        parts.append(
            f"<p>Best other study: {link or escape(other.source)}</p>\n"
            f'<p class="text"><mark>{escape(other.quote)}</mark></p>'
        )
    return "\n".join([*parts, "</li>\n"])


def _pair_html(pair: CheckedPair) -> str:
    kind = _KINDS.get(pair.verdict, "unclear")
    source = escape(pair.source or pair.reference or "not in the list of references")
    named = f'<a href="{escape(pair.link)}">{source}</a>' if pair.link else source
    facts = [f'<span class="side {kind}">{escape(name_verdict(pair.verdict))}</span>']
    if pair.read and pair.verdict != "method":
        facts.append(f"<span>read: {pair.read}</span>")
    if pair.page:
        facts.append(f"<span>page {escape(pair.page)}</span>")
    if pair.score is not None:
        facts.append(f"<b>{pair.score:.2f}</b>")
    parts = [f"<h3>[{escape(pair.key)}] {named}</h3>", f'<p class="facts">{" ".join(facts)}</p>']
    if pair.quote and pair.verdict != "method":
        near = "nearest: " if pair.verdict == "not_found" else ""
        parts.append(f'<p class="text">{near}<mark>{escape(pair.quote)}</mark></p>')
    parts += [f'<p class="soft">{escape(one)}</p>' for one in pair.notes]
    return "\n".join(parts)
