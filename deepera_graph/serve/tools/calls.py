"""The tools of the MCP server: each is a function, from which hosts are told what it is.

What judges and tabulates is imported at the first call, as it takes a second: a host that lists the
tools waits for nothing.
"""

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from inspect import getdoc, signature
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from pydantic import BaseModel

from deepera_graph.errors import BackendError, DeepEraError, InputError
from deepera_graph.papers.calls import answer_call, describe_error
from deepera_graph.serve.backing.library import Library, check_backend
from deepera_graph.serve.replies import rename_fields
from deepera_graph.serve.tools.forms import (
    MOST_TEXT,
    AnswerResult,
    AskedArguments,
    CheckArguments,
    CheckResult,
    EvidenceResult,
    GivenPassage,
    Held,
    NoArguments,
    QuestionArguments,
    TableArguments,
    TableResult,
)

if TYPE_CHECKING:
    from deepera_graph.evidence.check.library import WorkLibrary
    from deepera_graph.result import RankedPassage, RerankResult

Report = Callable[[float, float, str], Awaitable[None]]
_logger = logging.getLogger(__name__)
_AT_MOST = 20  # reports of a call


class Reply(NamedTuple):
    """What a call gives: text for the model, plain data for the program."""

    text: str
    plain: dict[str, Any] | None
    has_failed: bool = False


class OwnTool(NamedTuple):
    """A tool as hosts are told of it; what it takes and says of itself is in its signature."""

    title: str
    about: str
    takes: type[BaseModel]
    gives: type[BaseModel]
    run: Callable[[Library, Any, Report], Awaitable[Reply]]


OWN_TOOLS: dict[str, OwnTool] = {}
ToolT = TypeVar("ToolT", bound=Callable[[Library, Any, Report], Awaitable[Reply]])


def _tool(gives: type[BaseModel], title: str = "") -> Callable[[ToolT], ToolT]:
    """Offer a function as a tool: its docstring is what a model reads of it."""

    def offer(run: ToolT) -> ToolT:
        name, takes = run.__name__, signature(run).parameters["given"].annotation
        about = " ".join((getdoc(run) or "").split())
        named = title or name.replace("_", " ").capitalize()
        OWN_TOOLS[name] = OwnTool(named, about, takes, gives, run)
        return run

    return offer


@_tool(EvidenceResult)
async def find_evidence(library: Library, given: QuestionArguments, report: Report) -> Reply:
    """Find passages that give direct evidence for a scientific question, in a library or among
    passages you give. Returns numbered evidence with quotes, sources and whether it supports or
    contradicts, or says that there is none.
    """
    from deepera_graph.export import describe_evidence  # noqa: PLC0415 - takes a second

    result = await _judge(library, given, report)
    return Reply(describe_evidence(result), _describe(result, given))


@_tool(AnswerResult, "Answer from evidence")
async def ask(library: Library, given: QuestionArguments, report: Report) -> Reply:
    """Answer a scientific question from the evidence in a library, or among passages you give.
    Returns a short answer that cites numbered evidence, or says that the evidence does not suffice.
    find_evidence is enough if you write the answer yourself.
    """
    from deepera_graph.export import answer_with_numbers, describe_evidence  # noqa: PLC0415
    from deepera_graph.pipeline.shown import describe_uncited, list_uncited  # noqa: PLC0415

    result = await _judge(library, given, report, answer=True)
    answer = result.answer or {"text": "", "citations": [], "status": "failed", "cause": ""}
    numbers = {one.id: number for number, one in enumerate(result.kept, start=1)}
    text = answer_with_numbers(result, as_listed=True)
    said = text if answer["status"] == "answered" else f"No answer: {answer['cause']}."
    plain = _describe(result, given)
    plain["answer"] = {
        "text": text,
        "status": answer["status"],
        "cause": answer["cause"],
        "cites": [numbers[one] for one in answer["citations"] if one in numbers],
        "uncited": [
            {"number": numbers[one["id"]], "direction": one["direction"], "cause": one["cause"]}
            for one in list_uncited(result)
        ],
    }
    parts = (said, describe_uncited(result, numbers), describe_evidence(result))
    return Reply("\n\n".join(filter(None, parts)), plain)


@_tool(TableResult)
async def tabulate_studies(library: Library, given: TableArguments, report: Report) -> Reply:
    """Tabulate the studies that answer a scientific question: n, design, effect, interval, p and
    direction of each, with the words of the study that say so, and how they stand to a yes/no
    question.
    """
    from deepera_graph.evidence.table.rows import chat_of  # noqa: PLC0415 - takes a second
    from deepera_graph.evidence.table.table import EvidenceTabulator  # noqa: PLC0415
    from deepera_graph.evidence.table.writing import export_table  # noqa: PLC0415

    result = await _judge(library, given, report, content="passage")
    reranker = library.reranker()
    extractor = chat_of(reranker.backend)
    tabulator = EvidenceTabulator(reranker, columns=given.columns, extractor=extractor)
    table = await tabulator.atabulate_result(result)
    plain = table.to_dict()
    is_mapped = given.with_map and any(one.says for one in table.rows)
    kept = {name: plain[name] for name in ("question", "columns", "rows", "notes")}
    drawn = export_table(table, "svg") if is_mapped else None
    return Reply(export_table(table, "markdown"), {**kept, "map": drawn})


@_tool(CheckResult)
async def check_citations(library: Library, given: CheckArguments, report: Report) -> Reply:
    """Check whether the works that a text cites say what they are cited for: a verdict on each pair
    of sentence and reference, with the sentence of the work that decides.
    """
    from deepera_graph.evidence.check.graph import ManuscriptCheck  # noqa: PLC0415 - takes a second
    from deepera_graph.evidence.check.manuscript import BIB_HINT  # noqa: PLC0415
    from deepera_graph.evidence.check.report import describe_report, export_check  # noqa: PLC0415

    await report(0, 1, "loading the judge")
    judge = (await asyncio.to_thread(library.reranker)).with_settings(content="passage")
    try:
        works = await asyncio.to_thread(_find_works, library, given)
        await report(0.5, 1, "checking")
        found = await ManuscriptCheck(judge, library=works).acheck_text(given.manuscript)
    except InputError as error:
        hint = "; end the manuscript with its list of references"
        raise InputError(str(error).replace(BIB_HINT, hint)) from error
    plain = found.to_dict()
    pairs = [{**one, "claim": one["claim"]["sentence"]} for one in plain["pairs"]]
    notes = [*describe_report(found)][1:]
    return Reply(
        export_check(found, "text"), {"counts": {**found.counts}, "pairs": pairs, "notes": notes}
    )


def _find_works(library: Library, given: CheckArguments) -> "WorkLibrary":
    """Return what passages, or a library, have of works."""
    from deepera_graph.evidence.check.library import WorkLibrary  # noqa: PLC0415
    from deepera_graph.evidence.check.manuscript import as_file, read_manuscript  # noqa: PLC0415
    from deepera_graph.passages import read_passages  # noqa: PLC0415

    if given.passages is None:
        with as_file(given.manuscript) as path:
            manuscript = read_manuscript(path)
        return library.find_works(given.library, manuscript)
    return WorkLibrary(read_passages(map(_read_passage, given.passages)))


@_tool(Held, "List what can be searched")
async def list_libraries(library: Library, given: NoArguments, report: Report) -> Reply:
    """List the libraries that can be searched: their passages, their papers, or both."""
    sizes = await asyncio.to_thread(library.sizes)
    held = [
        {
            "name": name,
            "n_passages": sizes.get(name),
            "has_passages": name in sizes,
            "has_papers": name in library.bases,
        }
        for name in dict.fromkeys((*sizes, *library.bases))
    ]
    lines = map(_describe_library, held)
    return Reply(
        "\n".join(lines) or "There is nothing to search; give passages.", {"libraries": held}
    )


def _describe_library(held: Mapping[str, Any]) -> str:
    n = held["n_passages"]
    parts = [
        *([f"{'' if n is None else f'{n} '}passage{'' if n == 1 else 's'}"] * held["has_passages"]),
        *(["papers"] * held["has_papers"]),
    ]
    return f"library {held['name']!r} with {' and '.join(parts)}"


async def ask_base(library: Library, call: str, given: Mapping[str, Any]) -> Reply:
    """Answer a call of a base of papers with the text that every other way gives, too."""
    given, note = rename_fields(dict(given), ("library",))
    if note:
        _logger.warning("%s: %s", call, note)
    plain = {name: value for name, value in given.items() if value is not None}
    name = plain.pop("library", None)
    try:
        base = await asyncio.to_thread(library.base, name)
    except DeepEraError as error:
        answer = describe_error(error)
    else:
        answer = await asyncio.to_thread(answer_call, base, call, plain)
    has_failed = answer.text.startswith('{"error"')
    return Reply(answer.text, None if has_failed else json.loads(answer.text), has_failed)


async def _judge(
    library: Library, given: AskedArguments, report: Report, **how: Any
) -> "RerankResult":
    await report(0, 1, "loading the judge")
    reranker = await asyncio.to_thread(library.reranker)
    asked = {"top_n": given.n, "threshold": given.threshold, **how}
    changes: Any = {name: value for name, value in asked.items() if value is not None}
    chosen = reranker.with_settings(**changes)
    passages: list[Any]
    notes: tuple[str, ...] = ()
    if given.passages is None:
        await report(0.5, 1, "searching")
        found = await asyncio.to_thread(
            library.search, given.library, given.question, given.k, given.where
        )
        passages, notes = found.passages, found.notes
    else:
        passages = [_read_passage(one) for one in given.passages]
    result = await _follow(chosen.astream(given.question, passages), len(passages), report)
    check_backend(result)
    if result.failed and all(one.score is None for one in result.all_passages):
        from deepera_graph.pipeline.shown import describe_failures  # noqa: PLC0415

        raise BackendError(describe_failures(result))  # or a host would tell of no evidence
    return replace(result, warnings=(*notes, *result.warnings))


async def _follow(events: Any, n: int, report: Report) -> "RerankResult":
    """Follow a rerank to its end, and report how far it is, now and then."""
    n_judged, step = 0, max(1, n // _AT_MOST)
    async for event in events:
        if event["event"] == "scored":
            n_judged += 1
            if n_judged % step == 0 or n_judged == n:
                await report(n_judged, n + 1, f"judged {n_judged} of {n} passages")
        elif event["event"] == "result":
            result: RerankResult = event["result"]
    await report(n + 1, n + 1, "done")
    return result


def _read_passage(given: str | GivenPassage) -> Any:
    if isinstance(given, str):
        return given
    metadata = {**(given.metadata or {}), **({"title": given.title} if given.title else {})}
    named = {} if given.id is None else {"id": given.id}
    return {**named, "text": given.text, "metadata": metadata}


def _describe(result: "RerankResult", given: QuestionArguments) -> dict[str, Any]:
    evidence = [
        _describe_piece(result, number, one, with_text=given.with_text)
        for number, one in enumerate(result.kept, start=1)
    ]
    return {
        "question": result.question,
        "outcome": result.outcome,
        "threshold": result.threshold,
        "evidence": evidence,
        "is_weak": any(one.band is None for one in result.kept),
        "direction_counts": result.direction_counts,
        "n_passages": len(result.all_passages),
        "n_dropped": len(result.dropped),
        "dropped": [_describe_other(result, one) for one in result.dropped]
        if given.with_dropped
        else [],
        "failed": [_describe_other(result, one) for one in result.failed],
        "warnings": list(result.warnings),
    }


def _describe_piece(
    result: "RerankResult", number: int, one: "RankedPassage", *, with_text: bool
) -> dict[str, Any]:
    from deepera_graph.export import describe_source  # noqa: PLC0415

    source = describe_source(result.cite(one))
    known = {name: source[name] for name in _SOURCE if source.get(name)}
    return {
        "number": number,
        "id": one.id,
        "score": one.score,
        "band": one.band,
        "direction": one.direction,
        "summary": one.summary or one.text[:MOST_TEXT],
        "quote": one.quote,
        "reason": one.reason,
        "source": known,
        "text": one.text[:MOST_TEXT] if with_text else None,
        "is_cut": with_text and len(one.text) > MOST_TEXT,
    }


_SOURCE = ("text", "title", "authors", "year", "venue", "doi", "pmid", "url", "page", "version")


def _describe_other(result: "RerankResult", one: "RankedPassage") -> dict[str, Any]:
    return {"id": one.id, "score": one.score, "reason": one.reason, "source": str(result.cite(one))}
