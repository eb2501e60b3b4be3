"""A report in the forms that people and programs read it in."""

from collections.abc import Iterator, Sequence
from html import escape
from typing import Literal, get_args

from deepera_graph.evidence.report.report import EvidenceReport, ReportParagraph, ReportStudy, mark
from deepera_graph.export.page import build_page
from deepera_graph.export.tables import escape_markdown
from deepera_graph.pipeline.shown import describe_calls
from deepera_graph.ranges import check_choice
from deepera_graph.schema import EVIDENCE, POSSIBLE, read_direction
from deepera_graph.text.plain import in_one_line, replace_controls
from deepera_graph.text.questions import name_direction

ReportFormat = Literal["text", "markdown", "html", "json"]
_GAPS, _STUDIES = "Limits and gaps", "Studies"


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
    return replace_controls("\n".join(_to_lines(report, markdown=form == "markdown")) + "\n")


def describe_writing(report: EvidenceReport) -> Iterator[str]:
    """Yield what is to be known of the writing: what was left out and why, and what went wrong."""
    n = len(report.left_out)
    if n:
        what = "1 sentence was" if n == 1 else f"{n} sentences were"
        yield f"{what} left out, as a study cited does not say it, or it could not be checked."
    if report.n_rewritten:
        what = (
            "1 sentence was" if report.n_rewritten == 1 else f"{report.n_rewritten} sentences were"
        )
        yield f"{what} rewritten, as a study cited did not say all of it, and then passed."
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
    facts = ", ".join(_list_facts(one))
    return f"[{one.number}] {one.source}{f' ({facts})' if facts else ''}"


def _list_facts(one: ReportStudy) -> Sequence[str]:
    band = "" if one.band == EVIDENCE else one.band
    page = f"p. {one.page}" if one.page else ""
    return [*filter(None, (band, name_direction(read_direction(one.says)), page))]


def _to_page(report: EvidenceReport) -> str:
    head = (
        f'<p class="outcome">{escape(" ".join(report.overview))}</p>\n'
        f'<p class="soft">{escape(_describe_making(report))}</p>\n'
    )
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
    source = escape(one.source)
    named = f'<a href="{escape(one.link)}">{source}</a>' if one.link else source
    side = (
        f'<span class="side {escape(one.says)}">{name_direction(read_direction(one.says))}</span>'
    )
    facts = [side] if one.says else []
    size = f"n = {one.size}" if one.size else ""
    facts += [f"<span>{escape(fact)}</span>" for fact in (one.design, size) if fact]
    facts += [f"<span>{one.band}</span>"] if one.band != EVIDENCE else []
    facts += [f"<span>page {escape(one.page)}</span>"] if one.page else []
    quote = f'<p class="text"><mark>{escape(one.quote)}</mark></p>\n' if one.quote else ""
    return (
        f'<li class="card{state}" id="study-{one.number}">\n<h3>{one.number}. {named}</h3>\n'
        f'<p class="facts">{" ".join(facts)}</p>\n{quote}</li>\n'
    )
