"""Results for other programs and for reading: plain data, tables, references, and a page."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Any, Literal, get_args
from urllib.parse import quote

from deepera_graph.export.page import evidence_page
from deepera_graph.literature.citation import Citation
from deepera_graph.literature.reference_files import write_bibtex, write_ris
from deepera_graph.pipeline.shown import (
    are_retracted,
    count_bands,
    describe_failures,
    describe_uncited,
)
from deepera_graph.result import RankedPassage, RerankResult
from deepera_graph.schema import POSSIBLE
from deepera_graph.settings.ranges import check_choice
from deepera_graph.text.jsonl import format_json
from deepera_graph.text.plain import count, in_one_line, mark_markdown, write_sheet
from deepera_graph.text.questions import describe_directions, name_direction

ExportFormat = Literal["markdown", "html", "csv", "json", "bibtex", "ris"]
N_NEAREST = 3
BELOW = "below the threshold"
_USAGE = ("calls", "input_tokens", "output_tokens")  # failed and cached calls are in the report
_CITED = re.compile(r"\[([^\[\]]+)\]")
_NOTHING = "Say that no evidence was found; do not answer from other knowledge."
_OF_PASSAGE = (
    "id", "rank", "score", "kept", "status", "reason", "quote", "summary", "study",
)  # fmt: skip
_IF_KNOWN = ("band", "paper_status", "direction", "position")
_COLUMNS = (
    "decision", "rank", "score", "direction", "title", "authors", "year", "venue", "doi", "url",
    "section", "page", "quote", "summary", "reason", "id", "study", "paper_status",
    "version",
)  # fmt: skip


def export_result(
    result: RerankResult, format: ExportFormat, *, whole: bool = False, studies: str = ""
) -> str:
    """Return a result as text in a format that other programs read.

    Tables have a row a kept passage: score, source (title, year, venue, DOI as far as the metadata
    has them), quote and summary. Where nothing passed, they have the three best passages instead,
    marked as below the threshold, and those that could not be judged, with the reason; BibTeX and
    RIS then have none.

    Args:
        result: Of a rerank.
        format: ``"markdown"``, ``"html"`` (a page of its own), ``"csv"``, ``"json"`` (which
            `RerankResult.from_json` reads), ``"bibtex"`` or ``"ris"``.
        whole: Whether ``markdown`` and ``csv`` have all passages.
        studies: HTML that ``html`` shows above the passages, as it is.

    Raises:
        SettingsError: There is no such format.
    """
    check_choice("format", format, get_args(ExportFormat))
    if format == "json":
        return format_json(describe_result(result, whole=True))
    written = _write(result, format, whole=whole, studies=studies)
    return written.encode("utf-8", "replace").decode()  # a lone surrogate has no bytes


def _write(result: RerankResult, format: ExportFormat, *, whole: bool, studies: str) -> str:
    if format == "html":
        outcome, answer = describe_outcome(result), _describe_answer(result)
        return evidence_page(result, outcome=outcome, answer=answer, studies=studies)
    if format == "bibtex":
        return write_bibtex(_list_articles(result)) or f"% {describe_outcome(result)}\n"
    if format == "ris":
        return write_ris((source, note, "") for source, note in _list_articles(result))
    rows = result.passages if whole else list_shown(result)
    return _to_csv(result, rows) if format == "csv" else _to_markdown(result, rows)


def describe_evidence(result: RerankResult) -> str:
    """Return what an agent reads: an outcome line, then ``[1] (source; score 0.93) summary``.

    Where the judge says what passages say to the question, both lines have it.

    Line breaks inside a passage become spaces, so that no passage can forge a line of its own.
    """
    lines = [_outcome_line(result), *(f"Note: {one}." for one in result.warnings)]
    all_passages = count(len(result.all_passages), "passage")
    if result.failed and result.dropped + result.kept:
        lines.append(
            f"{len(result.failed)} of {all_passages} could not be judged "
            f"({in_one_line(result.failed[0].reason)}), so evidence may have been missed."
        )
    if result.not_needed:
        lines.append(
            f"Not read, as there was enough evidence: {len(result.not_needed)} of {all_passages}."
        )
    kept = enumerate(result.kept, start=1)
    lines += [_evidence_line(result, number, one) for number, one in kept]
    return "\n".join(lines)


def _outcome_line(result: RerankResult) -> str:
    n, least = len(result.all_passages), result.threshold
    cut = f"threshold {f'{least:.2f}' if least == round(least, 2) else f'{least:g}'}"
    if not n:
        return f"The search found no passages for this question. {_NOTHING}"
    if result.kept and result.fallback is not None:
        return f"No passage gives direct evidence ({cut}). The nearest of {n} are weak evidence:"
    n_sure, n_possible, n_gone = count_bands(result)
    gone = f"; {n_gone} more {are_retracted(n_gone)}" if n_gone else ""
    if n_sure:
        verb = "gives" if n_sure == 1 else "give"
        said = "; ".join(
            filter(None, (cut, describe_directions(result.direction_counts, result.positions)))
        )
        more = f"; {n_possible} more {_is_are(n_possible)} possible evidence" if n_possible else ""
        return f"{n_sure} of {count(n, 'passage')} {verb} direct evidence ({said}){more}{gone}:"
    if n_possible:
        found = f"{n_possible} of {n} {_is_are(n_possible)} possible evidence, not certain"
        return f"No passage gives direct evidence ({cut}). {found}{gone}:"
    if n_gone:
        found = f"what passed {are_retracted(n_gone)}"
        return f"No passage of {n} gives direct evidence ({cut}); {found}. {_NOTHING}"
    best = max((one.score for one in result.dropped if one.score is not None), default=None)
    rejected = "" if best is None else f"; best rejected score {result.show_score(best)}"
    return f"No passage of {n} gives direct evidence ({cut}{rejected}). {_NOTHING}"


def _evidence_line(result: RerankResult, number: int, one: RankedPassage) -> str:
    text = in_one_line(one.summary or one.text)
    said = f", {POSSIBLE}" if one.band == POSSIBLE else ""
    side = name_direction(one.direction) or one.position
    said += f", {side}" if side else ""
    source, shown = in_one_line(str(result.cite(one))), result.show_score(one.score)
    return f"[{number}] ({source}; score {shown}{said}) {text}"


def _is_are(n: int) -> str:
    return "is" if n == 1 else "are"


def list_shown(result: RerankResult) -> tuple[RankedPassage, ...]:
    """Return the passages that passed; if there are none, the nearest, and those that failed."""
    if result.kept and result.fallback is None:
        return result.kept
    return (*(result.kept or result.dropped[:N_NEAREST]), *result.failed)


def describe_result(result: RerankResult, *, whole: bool = False) -> dict[str, Any]:
    """Return a result as plain data, under the names that all commands use."""
    # The *whole* of it has the texts of the passages and their sources, the answer, times and the
    # manifest, too; `RerankResult.from_dict` reads that.
    if whole:
        return _describe_whole(result)
    plain: dict[str, Any] = {
        "question": result.question,
        "intent": _describe_intent(result),
        "outcome": result.outcome,
        "threshold": result.threshold,
        "ranking": [_describe_passage(one) for one in result.passages],
        "usage": {name: getattr(result.total_usage, name) for name in _USAGE},
    }
    if result.evidence_point is not None:
        plain["evidence_point"] = result.evidence_point
    if result.missing_words:
        plain["missing_words"] = list(result.missing_words)
    if result.left_out:
        plain["left_out"] = [_describe_passage(one) for one in result.left_out]
    if result.warnings:
        plain["warnings"] = list(result.warnings)
    if result.sources:
        plain["sources"] = list(result.sources)
    return plain


def _describe_whole(result: RerankResult) -> dict[str, Any]:
    plain = result.to_dict()
    ranking = zip(result.passages, plain.pop("passages"), strict=True)
    if result.answer is not None:
        plain["answer"]["sources"] = _list_sources(result)
    return {
        **plain,
        "intent": _describe_intent(result),
        "direction_counts": result.direction_counts,
        "positions": result.positions,
        "ranking": [
            {**one, **_describe_page(passage), "citation": describe_source(result.cite(passage))}
            for passage, one in ranking
        ],
        "usage": {**result.total_usage.record(), "stages": plain["usage"]},
    }


def _describe_intent(result: RerankResult) -> dict[str, Any]:
    intent = result.intent
    return {**intent["fields"], "status": intent["status"], "cause": intent["cause"]}


def _describe_passage(passage: RankedPassage) -> dict[str, Any]:
    fields: dict[str, Any] = {name: getattr(passage, name) for name in _OF_PASSAGE}
    said = {name: getattr(passage, name) for name in _IF_KNOWN}
    fields |= {name: value for name, value in said.items() if value}
    if passage.quote_status:
        fields["quote_status"], fields["quote_span"] = passage.quote_status, passage.quote_span
        fields |= _describe_page(passage)
    if passage.summary_status not in {"", "ok"}:
        fields["summary_status"] = passage.summary_status
    if passage.windowed:
        fields["windowed"] = True
    return fields


def _describe_page(passage: RankedPassage) -> dict[str, Any]:
    return {"quote_page": passage.quote_page} if passage.quote_page else {}


def describe_source(source: Citation) -> dict[str, Any]:
    """Return a source as JSON values: how it is cited, and those of its parts that are known."""
    known = {name: value for name, value in asdict(source).items() if value}
    return {"text": str(source), **known} | ({"version": source.version} if source.version else {})


def _list_sources(result: RerankResult) -> list[dict[str, Any]]:
    """Return the sources of the passages that an answer cites, in the order of its citations."""
    kept = {one.id: one for one in result.kept}
    cited = result.answer["citations"] if result.answer else []
    return [describe_source(result.cite(kept[name])) for name in list_cited(result, cited)]


def list_cited(result: RerankResult, citations: Iterable[str]) -> list[str]:
    """Return those of the kept passages that are cited, of each record of a study the first."""
    kept = {one.id: one for one in result.kept}
    firsts: dict[str, str] = {}
    for name in citations:
        if name in kept and name not in firsts:
            firsts |= {name: name} | {one.id: name for one in result.same_record(kept[name])}
    return list(dict.fromkeys(firsts[name] for name in citations if name in firsts))


def answer_with_numbers(result: RerankResult, *, as_listed: bool = False) -> str:
    """Return the answer with ``[1]`` where it cites ``[ID]``: the rank of the passage."""
    # *as_listed*: its number in `describe_evidence`, which another order of the kept ones changes.
    kept = enumerate(result.kept, start=1)
    numbers = {one.id: str(place if as_listed else one.rank) for place, one in kept}

    def to_numbers(match: re.Match[str]) -> str:
        names = [match[1]] if match[1] in numbers else match[1].split(", ")
        known = all(name in numbers for name in names)
        return f"[{', '.join(numbers[name] for name in names)}]" if known else match[0]

    return _CITED.sub(to_numbers, result.answer["text"]) if result.answer else ""


def _to_csv(result: RerankResult, passages: Iterable[RankedPassage]) -> str:
    rows: list[Sequence[Any]] = [_COLUMNS]
    for one in passages:
        source = result.cite(one)
        fields: dict[str, Any] = {**asdict(source), "url": source.link, "version": source.version}
        fields |= {"decision": _decide(one), "authors": "; ".join(source.authors)}
        fields |= {"section": one.metadata.get("section")}
        rows.append([fields.get(name, getattr(one, name, None)) for name in _COLUMNS])
    return write_sheet(rows)


def _decide(passage: RankedPassage) -> str:
    if passage.band is not None:
        return passage.band
    return passage.status.replace("_", " ") if passage.score is None else BELOW


def _decide_and_side(passage: RankedPassage) -> str:
    decision, side = _decide(passage), name_direction(passage.direction) or passage.position
    if passage.score is None:
        decision = escape_markdown(f"{decision}: {passage.reason}")
    return ", ".join(filter(None, (decision, side)))


def _to_markdown(result: RerankResult, passages: Iterable[RankedPassage]) -> str:
    said: dict[tuple[int, str], int | None] = {}  # by study, and the rank that says it first

    def tell(one: RankedPassage, text: str) -> str:
        first = said.setdefault((one.study, in_one_line(text)), one.rank)
        return escape_markdown(text) if first == one.rank or not text else f"as number {first}"

    rows = [
        f"| {one.rank} | {_decide_and_side(one)} | {_show(result, one)} "
        f"| {_cite_markdown(result.cite(one))} | {tell(one, one.quote)} "
        f"| {tell(one, one.summary)} |"
        for one in passages
    ]
    head = ("| # | decision | score | source | quote | summary |", "|--:|---|--:|---|---|---|")
    notes = (f"Note: {escape_markdown(one)}" for one in result.warnings)
    answer = "\n".join(map(escape_markdown, _describe_answer(result).splitlines()))
    outcome = escape_markdown(describe_outcome(result))
    parts = [f"# {escape_markdown(result.question)}", *notes, answer, outcome]
    table = "\n".join([*head, *rows]) if rows else ""
    return mark_markdown("\n\n".join(filter(None, [*parts, table])))


def _describe_answer(result: RerankResult) -> str:
    if result.answer is None:
        return ""
    if result.answer["status"] != "answered":
        return f"No answer: {result.answer['cause']}."
    below = "From passages below the threshold: " if result.fallback is not None else ""
    uncited = describe_uncited(result, {one.id: one.rank for one in result.kept})
    return below + answer_with_numbers(result) + (f"\n{uncited}." if uncited else "")


def describe_outcome(result: RerankResult) -> str:
    """Say in a sentence or two what was found, and how to read what is shown of it."""
    n, threshold = len(result.all_passages), f"{result.threshold:g}"
    passages = count(n, "passage")
    failures = describe_failures(result)
    if result.outcome == "nothing_retrieved":
        return "Nothing was retrieved."
    if result.fallback is not None or not result.kept:
        found = f"No evidence: none of {passages} reaches {threshold}."
        if failures:
            found = " ".join(filter(None, (failures, _describe_others(result))))
        is_near = result.kept or result.dropped
        return found + (" The nearest are shown; they are not evidence." if is_near else "")
    return f"{_describe_bands(result, passages)} {failures}".rstrip()


def _describe_bands(result: RerankResult, passages: str) -> str:
    """Say how many passages are evidence, and how many may be; as ``verdicts.js`` does."""
    n_sure, n_possible, n_gone = count_bands(result)
    from_on = f"{result.threshold:g}"
    gone = f"; {n_gone} more {are_retracted(n_gone)}" if n_gone else ""
    if not n_sure and not n_possible:
        return (
            f"No evidence: {n_gone} of {passages} reached {from_on}, and {are_retracted(n_gone)}."
        )
    if not n_sure:
        are = f"{_is_are(n_possible)} possible, reaching {from_on}"
        return f"No evidence: {n_possible} of {passages} {are}{gone}."
    said = describe_directions(result.direction_counts, result.positions)
    sides = f" ({said})" if said else ""
    if not n_possible:
        return f"Evidence: {n_sure} of {passages} reached {from_on}{sides}{gone}."
    more = f"{n_possible} more {_is_are(n_possible)} possible, reaching {from_on}"
    return f"Evidence: {n_sure} of {passages}{sides}; {more}{gone}."


def _describe_others(result: RerankResult) -> str:
    """Say that what could be judged passed no threshold; empty if nothing could be."""
    n = sum(one.score is not None for one in result.passages)
    if not n:
        return ""
    others = "The other does not reach" if n == 1 else f"None of the other {n} reaches"
    return f"{others} {result.threshold:g}."


def _cite_markdown(source: Citation) -> str:
    text = escape_markdown(str(source))
    if not source.link:
        return text
    link = _OF_NO_LINK.sub(lambda found: quote(found.group(), errors="replace"), source.link)
    return f"[{text}]({link})"


_OF_NO_LINK = re.compile(r"[^\w!#$%&'*+,./:;=?@~-]")  # what RFC 3986 allows, without brackets
_MARKDOWN = str.maketrans({**{letter: f"\\{letter}" for letter in "\\`*[]|"}, "<": "&lt;"})
_ESCAPED_CITATION = re.compile(r"\\\[([\d, ]+)\\\](?![(\[:])")  # alone it is no link


def escape_markdown(text: str) -> str:
    """Return a text in a line that Markdown shows as it is: no link, image, HTML or cell of it."""
    # Source: CommonMark 0.31, 2.4, and the tables of GitHub's Markdown.
    return _ESCAPED_CITATION.sub(r"[\1]", in_one_line(text).translate(_MARKDOWN))


def _show(result: RerankResult, passage: RankedPassage) -> str:
    return "" if passage.score is None else result.show_score(passage.score)


def _list_articles(result: RerankResult) -> list[tuple[Citation, str]]:
    """Return the sources of the evidence, each study once, with what its passages say."""
    studies = ([one for one in study if one.band is not None] for study in result.studies)
    return [_join_parts(result, parts) for parts in studies if parts]


def _join_parts(result: RerankResult, parts: list[RankedPassage]) -> tuple[Citation, str]:
    said: dict[str, RankedPassage] = {}
    for one in parts:
        said.setdefault(in_one_line(one.quote or one.summary), one)
    source, own = result.cite(parts[0]), {one.id for one in result.same_record(parts[0])}

    def describe(one: RankedPassage) -> str:
        other = "" if one.id in own else f"in {result.cite(one)}: "
        band = f"{POSSIBLE}, " if one.band == POSSIBLE else ""
        page = f", p. {one.quote_page}" if one.quote_page else ""
        return f"{other}{band}score {_show(result, one)}{page}: {one.quote or one.summary}"

    marks = (source.mark, source.version if source.version_of else "")
    return source, "; ".join(filter(None, (*marks, *map(describe, said.values()))))
