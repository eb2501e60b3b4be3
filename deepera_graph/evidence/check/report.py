"""What a check of a manuscript found, and the forms that people and programs read it in."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from html import escape
from itertools import groupby
from typing import Any, Literal, Self, get_args

from deepera_graph.evidence.check.citing import Claim
from deepera_graph.evidence.check.library import CitedWork
from deepera_graph.evidence.check.manuscript import Manuscript
from deepera_graph.evidence.check.references import Reference
from deepera_graph.evidence.check.verdict import AGAINST, Decision, Verdict
from deepera_graph.evidence.contrast import MAY_OPPOSE
from deepera_graph.evidence.plain import PlainRecord
from deepera_graph.evidence.table.designs import PLANNED
from deepera_graph.export.page import build_page, head_html, link_html
from deepera_graph.literature.citation import Citation
from deepera_graph.literature.paper_keys import PaperStatus
from deepera_graph.pipeline.shown import describe_calls
from deepera_graph.result import RerankResult
from deepera_graph.settings.ranges import check_choice
from deepera_graph.text.plain import (
    count,
    in_one_line,
    mark_markdown,
    name_some,
    replace_controls,
    write_sheet,
)
from deepera_graph.usage import Usage

_MOST_NAMED = 20  # keys, in a line
_MOST_NAMESAKES = 5
_FREE = Usage()
BAD: tuple[Verdict, ...] = ("contradicted", "retracted")
DOUBTFUL: tuple[Verdict, ...] = ("not_found", "missing", "unavailable", "not_judged", "partly")
_LONGER_NAMES = {"partly": "partly supported", "missing": "missing reference"}
CheckFormat = Literal["text", "markdown", "html", "csv", "json"]
_COLUMNS = (
    "claim", "section", "manuscript_page", "sentence", "statement", "purpose", "key", "reference",
    "verdict", "read", "score", "quote", "page", "source", "link", "notes", "other", "other_quote",
    "other_link",
)  # fmt: skip
_KINDS = {"supported": "supports", "contradicted": "contradicts", "retracted": "contradicts"}


def name_verdict(verdict: Verdict) -> str:
    """Return a verdict in words, e.g. ``not found``."""
    return _LONGER_NAMES.get(verdict, verdict.replace("_", " "))


@dataclass(frozen=True, slots=True, kw_only=True)
class Alternative:
    """The best other study of the library for a claim that nothing cited supports."""

    source: str  # how it is cited, in a line
    link: str  # where it can be looked up; empty if not known
    quote: str  # its sentence that says so
    page: str  # that the sentence stands on, if known
    score: float  # in [0, 1]

    @classmethod
    def of(cls, result: RerankResult) -> Self | None:
        """Return the best study that was kept, is not against the claim, planned or retracted."""
        kept = result.kept if result.fallback is None else ()
        for one in kept:
            source, quote = result.cite(one), one.quote or one.text
            is_planned = PLANNED.search(source.title) or PLANNED.search(quote)
            if one.direction in AGAINST or one.paper_status == "retracted" or is_planned:
                continue
            return cls(
                source=str(source),
                link=source.link,
                quote=quote,
                page=one.quote_page,
                score=one.score or 0.0,
            )
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedPair(PlainRecord):
    """A claim, a reference that it cites, and the verdict."""

    claim: Claim
    key: str  # of the reference
    reference: str  # as it is printed; empty if the list does not have it
    source: str  # how the work that was read is cited; empty if there was none
    link: str  # where it can be looked up; empty if not known
    read: str  # ``abstract`` or ``full text``, of which the verdict was drawn; else empty
    # ``supported``, ``partly``, ``contradicted``, ``not_found``; ``unavailable``: there was nothing
    # to read; ``retracted``; ``missing``: the list does not have it; ``method``: nothing is to be
    # proven; ``not_judged``: the judge failed
    verdict: Verdict
    # how far what decides is about the claim, in [0, 1], and not how sure the verdict is; None if
    # nothing was judged
    score: float | None
    quote: str  # the sentence that decides, in the words of the work
    page: str  # that it stands on, if known
    notes: tuple[str, ...]  # what else is to be known, a sentence each
    # the best other study, where nothing that the claim cites supports it
    other: Alternative | None = None

    @classmethod
    def of(cls, claim: Claim, key: str, found: Decision, **about: str) -> Self:
        """Join a claim with a decision."""
        plain: dict[str, Any] = {"reference": "", "source": "", "link": "", "read": "", **about}
        plain |= {name: getattr(found, name) for name in Decision.__dataclass_fields__}
        return cls(claim=claim, key=key, **plain)


def settle_pair(
    claim: Claim,
    key: str,
    reference: Reference | None,
    work: CitedWork | None,
    *,
    status: PaperStatus | None = None,
    namesakes: Sequence[Citation] = (),
) -> CheckedPair | None:
    """Return the verdict that needs no judge, if there is one; *status* is that of the work."""
    # *namesakes* are works that names and a year may stand for.
    text = "" if reference is None else reference.text
    about = {"reference": text, **({} if work is None else describe_work(work))}
    if reference is None:
        note = f"the list of references has no {key!r}" if key else "it names no reference"
        return CheckedPair.of(claim, key, Decision(verdict="missing", notes=(note,)))
    if work is None:
        gone = status == "retracted"
        note = "it is in no place that was searched, or has no abstract there"
        if reference.source.title == key:  # a cell that is no entry
            note += "; looked up are DOI, PMID, arXiv id, key, id, title, or names and year"
        if namesakes:
            note = f"it may be any of {len(namesakes)} works; a DOI or a title would tell: "
            note += "; ".join(map(str, namesakes[:_MOST_NAMESAKES]))
        verdict = Decision(verdict="retracted" if gone else "unavailable", notes=(note,))
    elif claim.purpose == "method":
        gone = work.status == "retracted"
        verdict = Decision(verdict="retracted" if gone else "method")
    else:
        return None
    if claim.purpose == "method" and verdict.verdict == "unavailable":
        verdict = Decision(verdict="method")
    return CheckedPair.of(claim, key, verdict, **about)


def describe_work(work: CitedWork) -> dict[str, str]:
    """Return how a work is cited, where it can be looked up, and what was read of it."""
    source = replace(work.source, status=work.status)
    return {"source": str(source), "link": source.link, "read": work.extent}


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckReport(PlainRecord):
    """Everything that a check of a manuscript found.

    Attributes:
        manuscript: What was read.
        pairs: In the order of the manuscript.
        notes: What holds for all of it, a sentence each.
        usage: What the judge cost.
        judge: Who judged.
    """

    kind = "check"
    manuscript: Manuscript
    pairs: tuple[CheckedPair, ...]
    notes: tuple[str, ...] = ()
    usage: Usage = _FREE
    judge: str = ""

    @property
    def counts(self) -> dict[Verdict, int]:
        """How many pairs have each verdict; those that do not occur are left out."""
        found = Counter(one.verdict for one in self.pairs)
        return {one: found[one] for one in get_args(Verdict) if found[one]}

    @property
    def has_errors(self) -> bool:
        """Whether a claim is contradicted, or rests on a retracted work."""
        return any(one.verdict in BAD for one in self.pairs)

    def describe_counts(self) -> str:
        """Return e.g. ``3 supported, 2 not found (1 may say the opposite)``."""
        opposed = Counter(
            one.verdict for one in self.pairs if any(MAY_OPPOSE in note for note in one.notes)
        )
        return ", ".join(
            f"{n} {name_verdict(one)}" + f" ({opposed[one]} {MAY_OPPOSE})" * (opposed[one] > 0)
            for one, n in self.counts.items()
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON data that `from_dict` reads, with the counts."""
        plain = PlainRecord.to_dict(self)
        return (
            {one: plain[one] for one in ("format", "manuscript")} | {"counts": self.counts} | plain
        )


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
    text = replace_controls("\n".join(_to_lines(report, markdown=form == "markdown")) + "\n")
    return mark_markdown(text) if form == "markdown" else text


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
        f"{count(n_claims, 'claim')}, {count(n_pairs, 'pair')} of claim and reference: "
        f"{report.describe_counts()}"
    )
    yield from report.notes
    if missing := dict.fromkeys(
        one.key for one in report.pairs if one.key and one.verdict == "missing"
    ):
        yield f"not in the list of references: {name_some([*missing], _MOST_NAMED)}"
    yield from _describe_duplicates(report.manuscript)
    if uncited := dict.fromkeys(report.manuscript.uncited):
        yield f"in the list, but not cited: {name_some([*uncited], _MOST_NAMED)}"


def _describe_duplicates(manuscript: Manuscript) -> Iterator[str]:
    """Say which references are of one work; an article and its preprint are two that differ."""
    drafts = {one.key for one in manuscript.references if one.source.is_preprint}
    for group in manuscript.duplicates:
        others = [key for key in group if key not in drafts]
        earlier = [key for key in group if key in drafts] if others else []
        if earlier:
            of = "is the preprint of" if len(earlier) == 1 else "are preprints of"
            yield f"{', '.join(earlier)} {of} {', '.join(others)}"
        same = others if earlier else group
        if len(same) > 1:
            yield f"the same work is in the list of references {len(same)} times: {', '.join(same)}"


def _by_claim(pairs: Sequence[CheckedPair]) -> Iterator[tuple[list[CheckedPair], str]]:
    """Yield the pairs of each claim, with what is judged where that is one of several clauses."""
    said = Counter(one.sentence for one in {one.claim.number: one.claim for one in pairs}.values())
    for _, found in groupby(pairs, key=lambda one: one.claim.number):
        group = list(found)
        claim = group[0].claim
        yield group, claim.statement if said[claim.sentence] > 1 else ""


def _to_lines(report: CheckReport, *, markdown: bool) -> Iterator[str]:
    title = report.manuscript.title or report.manuscript.path.name
    yield f"# Citations of {in_one_line(title)}" if markdown else in_one_line(title)
    yield ""
    yield from (
        f"- {one}" if markdown else one for one in map(in_one_line, describe_report(report))
    )
    for group, clause in _by_claim(report.pairs):
        claim = group[0].claim
        yield ""
        said = f"{claim.number}. {in_one_line(claim.sentence)}"
        yield f"## {said}" if markdown else f"{said}{_place(group[0])}"
        if markdown:
            yield ""
            if _place(group[0]):
                yield f"{_place(group[0]).strip()}\n"
        if clause:
            yield f"{'- ' if markdown else '   '}judged: “{in_one_line(clause)}”"
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
    yield f"{lead}[{in_one_line(pair.key) or 'none'}] {shown}{read}{': ' if source else ''}{source}"
    inner = "  " if markdown else "      "
    if pair.quote and pair.verdict != "method":
        page = f" (p. {pair.page})" if pair.page else ""
        near = "nearest: " if pair.verdict == "not_found" else ""
        yield f"{inner}{near}“{in_one_line(pair.quote)}”{page}"
    for note in pair.notes:
        yield f"{inner}{in_one_line(note)}"


def _to_page(report: CheckReport) -> str:
    title = report.manuscript.title or report.manuscript.path.name
    first, *notes = describe_report(report)
    head = head_html(first, f"judged by {report.judge}; {describe_calls(report.usage)}", notes)
    cards = "".join(_card(*one) for one in _by_claim(report.pairs))
    return build_page(f"Citations of {title}", head, f"<ol>\n{cards}</ol>\n")


def _card(group: Sequence[CheckedPair], clause: str) -> str:
    claim = group[0].claim
    verdicts = {one.verdict for one in group}
    state = "" if verdicts & {*BAD, *DOUBTFUL} else " is-kept"
    parts = [
        f'<li class="card{state}" id="claim-{claim.number}">',
        f"<h2>{claim.number}. {escape(claim.sentence)}</h2>",
    ]
    if place := _place(group[0]).strip(" ()"):
        parts.append(f'<p class="soft">{escape(place)}</p>')
    if clause:
        parts.append(f'<p class="soft">judged: {escape(clause)}</p>')
    parts += map(_pair_html, group)
    if other := group[0].other:
        parts.append(
            f"<p>Best other study: {link_html(other.source, other.link)}</p>\n"
            f'<p class="text"><mark>{escape(other.quote)}</mark></p>'
        )
    return "\n".join([*parts, "</li>\n"])


def _pair_html(pair: CheckedPair) -> str:
    kind = _KINDS.get(pair.verdict, "unclear")
    source = pair.source or pair.reference or "not in the list of references"
    facts = [f'<span class="side {kind}">{escape(name_verdict(pair.verdict))}</span>']
    if pair.read and pair.verdict != "method":
        facts.append(f"<span>read: {pair.read}</span>")
    if pair.page:
        facts.append(f"<span>page {escape(pair.page)}</span>")
    if pair.quote and pair.score is not None:
        facts.append(f"<span>relevance <b>{pair.score:.2f}</b></span>")
    parts = [
        f"<h3>[{escape(pair.key) or 'none'}] {link_html(source, pair.link)}</h3>",
        f'<p class="facts">{" ".join(facts)}</p>',
    ]
    if pair.quote and pair.verdict != "method":
        near = "nearest: " if pair.verdict == "not_found" else ""
        parts.append(f'<p class="text">{near}<mark>{escape(pair.quote)}</mark></p>')
    parts += [
        f'<p class="{"note" if MAY_OPPOSE in one else "soft"}">{escape(one)}</p>'
        for one in pair.notes
    ]
    return "\n".join(parts)
