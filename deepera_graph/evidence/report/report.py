"""What a report is: paragraphs of checked sentences, its studies, and what is said of them all."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any, Literal, get_args

from langchain_core.documents import Document

from deepera_graph.agents.run import AgentResult
from deepera_graph.evidence.check.library import CitedWork
from deepera_graph.evidence.plain import PlainRecord
from deepera_graph.evidence.table.rows import fill_by_rules, in_order
from deepera_graph.export import escape_markdown
from deepera_graph.export.page import build_page, head_html, link_html
from deepera_graph.literature.paper_keys import RETRACTED, name_status
from deepera_graph.pipeline.shown import describe_calls, describe_failures
from deepera_graph.result import RankedPassage, RerankResult
from deepera_graph.schema import EVIDENCE, POSSIBLE, read_direction
from deepera_graph.settings.ranges import check_choice
from deepera_graph.text.plain import in_one_line, mark_markdown, replace_controls
from deepera_graph.text.questions import describe_directions, name_direction
from deepera_graph.usage import Usage

_SIDES = ("supports", "contradicts", "no_difference")
_NULL = "no_difference"
_HEADS = {
    "supports": "Support",
    "contradicts": "Contradiction",
    "no_difference": "No difference",
    "mixed": "Mixed results",
}
_GONE = "retracted, and counted for nothing"
ReportFormat = Literal["text", "markdown", "html", "json"]
_GAPS, _STUDIES = "Limits and gaps", "Studies"  # headings


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportStudy:
    """A study that a report rests on, or that it names and does not count."""

    number: int  # by which it is cited, from 1
    source: str  # how it is cited, in a line; what became of it comes first
    link: str  # where it can be looked up; empty if not known
    year: str  # four digits; empty if not known
    status: str  # ``retracted``, ``concern``, ``corrected`` or ``preprint``; empty if not known
    band: str  # ``evidence``, ``possible``, or ``retracted``, which counts for nothing
    says: str  # what it says to a yes/no question or a claim; empty for others
    design: str  # how it was made, as it says; empty if it does not
    size: str  # of how many it is, as it says; empty if it does not
    extent: str  # what was read of it: ``abstract`` or ``full text``
    quote: str  # its sentence that decides, verbatim; empty if the judge named none
    page: str  # that it stands on, if known


def list_studies(result: RerankResult) -> list[tuple[ReportStudy, CitedWork]]:
    """Return the kept studies with what there is to read of them: evidence, possible, retracted."""
    groups = result.studies if result.fallback is None else ()
    order = (EVIDENCE, POSSIBLE, RETRACTED)
    ranked = sorted(groups, key=lambda group: order.index(_find_band(group)))
    return [_read_study(result, number, group) for number, group in enumerate(ranked, start=1)]


def _find_band(group: Sequence[RankedPassage]) -> str:
    is_gone = any(one.paper_status == RETRACTED for one in group)
    return RETRACTED if is_gone else group[0].band or POSSIBLE


def _read_study(
    result: RerankResult, number: int, group: Sequence[RankedPassage]
) -> tuple[ReportStudy, CitedWork]:
    best = group[0]
    source = result.cite(best)
    passages = in_order(result.same_record(best))
    held = tuple(
        Document(id=one.id, page_content=one.text, metadata=one.metadata) for one in passages
    )
    work = CitedWork(passages=held, source=source, status=best.paper_status, study=number)
    cells = fill_by_rules(passages, ("n", "design"))
    start, end = best.quote_span or (0, 0)
    study = ReportStudy(
        number=number,
        source=str(source),
        link=source.link,
        year=source.year,
        status=best.paper_status or "",
        band=_find_band(group),
        says=best.direction or "",
        design=cells["design"].value if "design" in cells else "",
        size=cells["n"].value if "n" in cells else "",
        extent=work.extent,
        quote=best.text[start:end],
        page=best.quote_page,
    )
    return study, work


def mark(numbers: Iterable[int]) -> str:
    """Return how studies are cited: ``[1, 3]``."""
    return f"[{', '.join(map(str, numbers))}]"


def group_by_side(studies: Iterable[ReportStudy]) -> dict[str, list[int]]:
    """Return the numbers of studies by what they say, the most frequent first."""
    groups: dict[str, list[int]] = defaultdict(list)
    for one in studies:
        groups[one.says].append(one.number)
    return dict(sorted(groups.items(), key=lambda pair: -len(pair[1])))


def describe_sides(studies: Sequence[ReportStudy]) -> str:
    """Return e.g. ``2 support [1, 3], 1 contradicts [2]``; empty if no study has a direction."""
    said = []
    for side, numbers in group_by_side(studies).items():
        direction = read_direction(side)
        if direction is not None:
            said.append(f"{describe_directions({direction: len(numbers)})} {mark(numbers)}")
    return ", ".join(said)


def name_group(studies: Sequence[ReportStudy]) -> str:
    """Return the heading of what some studies found, by what they say to the question."""
    sides, n = {one.says for one in studies}, len(studies)
    if len(sides & {*_SIDES}) > 1:
        return "Where studies disagree"
    side = sides.pop() if len(sides) == 1 else ""
    counted = "one study" if n == 1 else f"{n} studies agree" if side in _SIDES else f"{n} studies"
    return f"{_HEADS.get(side, 'What was found')}: {counted}"


def describe_all(studies: Sequence[ReportStudy]) -> list[str]:
    """Return what is to be known first: how many studies there are, and what they say."""
    sure = [one for one in studies if one.band == EVIDENCE]
    sides = describe_sides(sure)
    counted = f"{_count(sure)} evidence{f': {sides}' if sides else ''}."
    lines = [counted if sure else "No study was judged to be evidence for this question."]
    if len({one.says for one in sure} & {*_SIDES}) > 1:
        lines.append("They do not agree.")
    if years := sorted(one.year for one in sure if one.year):
        lines.append(f"Published {' to '.join(dict.fromkeys((years[0], years[-1])))}.")
    for status, numbers in _group(sure, "status").items():
        if status:
            lines.append(f"{name_status(status).lower().capitalize()}: {mark(numbers)}.")  # type: ignore[arg-type]  # it is one
    for band, rest in ((POSSIBLE, "possible evidence, and not counted"), (RETRACTED, _GONE)):
        if others := [one for one in studies if one.band == band]:
            lines.append(f"{_count(others)} {rest} {mark(one.number for one in others)}.")
    return lines


def list_gaps(result: RerankResult, studies: Sequence[ReportStudy]) -> list[str]:
    """Return what is missing, and what the studies are: each a sentence."""
    sure = [one for one in studies if one.band == EVIDENCE]
    lines = []
    if result.missing_words:
        lines.append(f"No passage names: {', '.join(result.missing_words)}.")
    if len(sure) == 1:
        lines.append("All rests on one study.")
    if nulls := [one.number for one in sure if one.says == _NULL]:
        lines.append(f"No difference was found by {len(nulls)} of {len(sure)} {mark(nulls)}.")
    for name, head in (("design", "Design"), ("size", "Size")):
        found = _group(sure, name)
        without = found.pop("", [])
        parts = [f"{value} {mark(numbers)}" for value, numbers in found.items()]
        parts += [f"not stated {mark(without)}"] if without else []
        lines += [f"{head}: {', '.join(parts)}."] if parts else []
    if brief := [one.number for one in sure if one.extent == "abstract"]:
        lines.append(f"Only the abstract was read of {mark(brief)}.")
    return [*lines, *filter(None, (describe_failures(result), *map(_stop, result.warnings)))]


def _stop(sentence: str) -> str:
    return f"{sentence[:1].upper()}{sentence[1:].rstrip('.')}."


def _group(studies: Iterable[ReportStudy], name: str) -> dict[str, list[int]]:
    groups: dict[str, list[int]] = {}
    for one in studies:
        groups.setdefault(getattr(one, name), []).append(one.number)
    return groups


def _count(studies: Sequence[ReportStudy]) -> str:
    return "1 study is" if len(studies) == 1 else f"{len(studies)} studies are"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportSentence:
    """A sentence that was checked."""

    text: str  # without citation marks; a quote is in quotation marks
    studies: tuple[int, ...]  # numbers of the studies that it cites, each of which says all of it
    by: str  # ``model``, or ``quote``: the words of the study itself


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportParagraph:
    """What some studies found."""

    heading: str  # in fixed words, by what the studies that it cites say to the question
    lead: str  # who of them says what, in fixed words; empty for one study, or without directions
    sentences: tuple[ReportSentence, ...]  # at least one


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidenceReport(PlainRecord, AgentResult):
    """Several paragraphs on a question, of which every sentence was checked.

    Attributes:
        question: What was asked.
        overview: How many studies there are and what they say, in fixed words, a sentence each.
        paragraphs: Of studies that are evidence, then of possible ones, which say so.
        gaps: What is missing, and what the studies are, in fixed words, a sentence each.
        studies: By their numbers.
        left_out: Why each sentence was left out that no study it cites says; not its words.
        n_rewritten: How many of those shown were written anew, as a study did not say all of them.
        problems: All that went wrong on the way, in words.
        usage: What judging, writing and checking cost, by step.
        seconds: How long writing took.
        manifest: Who judged and who wrote, with settings and versions.
    """

    kind = "report"
    question: str
    overview: tuple[str, ...]
    paragraphs: tuple[ReportParagraph, ...]
    gaps: tuple[str, ...]
    studies: tuple[ReportStudy, ...]
    left_out: tuple[str, ...]
    n_rewritten: int
    problems: tuple[str, ...]
    usage: Mapping[str, Usage]
    seconds: float
    manifest: Mapping[str, Any]

    @property
    def sentences(self) -> tuple[ReportSentence, ...]:
        """All that is shown but what stands in fixed words."""
        return tuple(one for part in self.paragraphs for one in part.sentences)


def export_report(report: EvidenceReport, form: ReportFormat) -> str:
    """Return a report as text.

    Args:
        report: On a question.
        form: ``"text"``, ``"markdown"``, ``"html"`` (a page of its own) or ``"json"`` (which
            `EvidenceReport.from_dict` reads).

    Raises:
        SettingsError: There is no such form.
    """
    check_choice("form", form, get_args(ReportFormat))
    if form == "json":
        return report.to_json()
    if form == "html":
        return _to_page(report)
    text = replace_controls("\n".join(_to_lines(report, markdown=form == "markdown")) + "\n")
    return mark_markdown(text) if form == "markdown" else text


def describe_writing(report: EvidenceReport) -> Iterator[str]:
    """Yield what is to be known of the writing: what was left out and why, and what went wrong."""
    became = {
        "left out, as a study cited does not say it, or it could not be checked": len(
            report.left_out
        ),
        "rewritten, as a study cited did not say all of it, and then passed": report.n_rewritten,
    }
    for what, n in became.items():
        if n:
            yield f"{'1 sentence was' if n == 1 else f'{n} sentences were'} {what}."
    yield from (f"Not as planned: {one}." for one in report.problems)


def _describe_making(report: EvidenceReport) -> str:
    about, said = report.manifest, [f"judged by {report.manifest['judge']}"]
    if any(one.by == "model" for one in report.sentences):
        writer = about.get("model") or about["backend"]
        said.append(f"written by {writer}, every sentence checked")
    elif report.sentences:
        said.append("every sentence is a quote")
    return "; ".join([*said, describe_calls(report.total_usage)])


def _to_lines(report: EvidenceReport, *, markdown: bool) -> Iterator[str]:
    head, show = ("## ", escape_markdown) if markdown else ("", in_one_line)
    bullet = "- " if markdown else "  "
    yield f"# {show(report.question)}" if markdown else show(report.question)
    yield from ("", show(" ".join(report.overview)))
    for part in report.paragraphs:
        yield from ("", f"{head}{show(part.heading)}", *([""] if markdown else []))
        yield " ".join(filter(None, (show(part.lead), *_to_sentences(part, markdown=markdown))))
    if notes := [*report.gaps, *describe_writing(report)]:
        yield from ("", f"{head}{_GAPS}", *([""] if markdown else []))
        yield from (f"{bullet}{show(one)}" for one in notes)
    if report.studies:
        yield from ("", f"{head}{_STUDIES}", *([""] if markdown else []))
        yield from (f"{bullet}{show(_describe_study(one))}" for one in report.studies)
    yield from ("", show(_describe_making(report)))


def _to_sentences(part: ReportParagraph, *, markdown: bool) -> Iterator[str]:
    show = escape_markdown if markdown else in_one_line
    for one in part.sentences:
        yield _cite(show(one.text), mark(one.studies))


def _cite(text: str, marks: str) -> str:
    """Put the studies that a sentence cites before its full stop."""
    return f"{text[:-1]} {marks}." if text.endswith(".") else f"{text} {marks}"


def _describe_study(one: ReportStudy) -> str:
    band = "" if one.band == EVIDENCE else one.band
    page = f"p. {one.page}" if one.page else ""
    facts = ", ".join(filter(None, (band, name_direction(read_direction(one.says)), page)))
    return f"[{one.number}] {one.source}{f' ({facts})' if facts else ''}"


def _to_page(report: EvidenceReport) -> str:
    head = head_html(" ".join(report.overview), _describe_making(report))
    parts = "".join(map(_paragraph_html, report.paragraphs))
    notes = "".join(
        f"<li>{escape(one)}</li>\n" for one in (*report.gaps, *describe_writing(report))
    )
    gaps = f'<h2>{_GAPS}</h2>\n<ul class="note">\n{notes}</ul>\n' if notes else ""
    cards = "".join(map(_study_html, report.studies))
    studies = f"<h2>{_STUDIES}</h2>\n<ol>\n{cards}</ol>\n" if cards else ""
    style = "ul.note { margin: 0; padding-left: 2rem; }\n"
    return build_page(report.question, head, f"{parts}{gaps}{studies}", more_style=style)


def _paragraph_html(part: ReportParagraph) -> str:
    said = [escape(part.lead)] if part.lead else []
    for one in part.sentences:
        links = ", ".join(f'<a href="#study-{n}">{n}</a>' for n in one.studies)
        said.append(_cite(escape(one.text), f"[{links}]"))
    return f'<h2>{escape(part.heading)}</h2>\n<p class="answer">{" ".join(said)}</p>\n'


def _study_html(one: ReportStudy) -> str:
    states: dict[str, str] = {EVIDENCE: " is-kept", POSSIBLE: " is-kept is-possible"}
    state, side = states.get(one.band, ""), name_direction(read_direction(one.says))
    facts = [f'<span class="side {escape(one.says)}">{side}</span>'] if one.says else []
    size = f"n = {one.size}" if one.size else ""
    facts += [f"<span>{escape(fact)}</span>" for fact in (one.design, size) if fact]
    facts += [f"<span>{one.band}</span>"] if one.band != EVIDENCE else []
    facts += [f"<span>page {escape(one.page)}</span>"] if one.page else []
    quote = f'<p class="text"><mark>{escape(one.quote)}</mark></p>\n' if one.quote else ""
    return (
        f'<li class="card{state}" id="study-{one.number}">\n'
        f"<h3>{one.number}. {link_html(one.source, one.link)}</h3>\n"
        f'<p class="facts">{" ".join(facts)}</p>\n{quote}</li>\n'
    )
