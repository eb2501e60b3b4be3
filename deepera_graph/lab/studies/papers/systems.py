"""Systems that search a base of papers, and the runs that they make."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import replace
from functools import partial
from hashlib import sha256
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any, get_args

from deepera_graph.agents.journal import Journal
from deepera_graph.budget import stream_many
from deepera_graph.errors import DeepEraError, SettingsError
from deepera_graph.lab.studies.papers.runs import Call, Limits, PaperQuery, QueryRun, read_run_line
from deepera_graph.literature.paper_keys import normalize_id
from deepera_graph.papers.base import PaperBase
from deepera_graph.papers.results import SearchMode
from deepera_graph.ranges import check_at_least, suggest_value

if TYPE_CHECKING:
    from deepera_graph.papers.agent.graph import PaperSearch

MODES: tuple[SearchMode, ...] = get_args(SearchMode)
DEPTH = 100
AGENT = "agent"
_NO_WORDS = "the query has no word to search for"
System = Callable[[PaperQuery], QueryRun]


def search_once(
    base: PaperBase, mode: SearchMode, *, depth: int = DEPTH, limits: Limits = "years"
) -> System:
    """Return the system that searches once, with the query as it stands.

    Raises:
        SettingsError: There is no such mode, or the base has no vectors for it.
    """
    if mode not in MODES:
        hint = suggest_value(str(mode), MODES)
        raise SettingsError(f"mode must be one of {', '.join(MODES)}, got {mode!r}{hint}")
    if mode != "sparse" and not base.has_vectors:
        raise SettingsError(f"{base.place} has no vectors, which a search by {mode!r} needs")

    def system(query: PaperQuery) -> QueryRun:
        hits = base.search(query.text, mode=mode, k=depth, scope=query.scope(limits))
        found = tuple(dict.fromkeys(normalize_id(one.id) for one in hits.papers))
        problem = _NO_WORDS if hits.status == "no_words" else ""
        call = Call(id="S1", tool="search", asked=query.text, found=found, problem=problem)
        return QueryRun(ranked=found, calls=(call,), rounds=1)

    return system


def search_by_agent(search: "PaperSearch", *, limits: Limits = "years") -> System:
    """Return the system that searches in several steps; it reads further limits by itself.

    A search whose plan failed before anything was found is a failed query; what else went wrong on
    the way is a problem of its call.
    """

    def system(query: PaperQuery) -> QueryRun:
        found = search.search(query.text, scope=query.scope(limits))
        calls = tuple(
            Call(
                id=one["id"],
                tool=one["tool"],
                asked=one["text"],
                found=tuple(dict.fromkeys(map(normalize_id, one["ids"]))),
                problem=_NO_WORDS if one["status"] == "no_words" else one["cause"],
            )
            for one in found.actions
        )
        failed = found.stopped in ("plan_failed", "budget") and not found.papers
        usage = found.usage.get("plan")
        fitting = [normalize_id(one.id) for one in found.papers if one.fits is not False]
        return QueryRun(
            ranked=tuple(dict.fromkeys(map(normalize_id, found.ids))),
            calls=calls,
            kept=tuple(fitting) if len(fitting) < len(found.papers) else None,
            rounds=max((one["step"] for one in found.actions), default=0),
            tokens=None if usage is None else usage.input_tokens + usage.output_tokens,
            error="; ".join(found.problems) or found.stopped if failed else "",
        )

    return system


def find_system(
    base: PaperBase,
    name: str,
    *,
    depth: int = DEPTH,
    limits: Limits = "years",
    planner: Any = None,
    settings: Mapping[str, Any] | None = None,
) -> System:
    """Return the system of a name, over a base: a mode of search, or ``agent:STYLE``.

    Args:
        planner: Who plans for an agent, see `deepera_graph.papers.agent.PaperSearch`.
        settings: Of an agent: its `selector`, `max_actions` and others.

    Raises:
        SettingsError: There is none, the base has no vectors for it, or an agent has no planner.
    """
    head, _, style = name.partition(":")
    if head == AGENT and style:
        from deepera_graph.papers.agent.graph import PaperSearch  # noqa: PLC0415 - takes a second

        chosen: Any = style
        alone = style in ("rules", *MODES)
        search = PaperSearch(
            base, style=chosen, planner=None if alone else planner, **(settings or {})
        )
        return search_by_agent(search, limits=limits)
    if name not in MODES:
        hint = suggest_value(name, MODES)
        known = f"{', '.join(MODES)} and {AGENT}:STYLE"
        raise SettingsError(f"systems are {known}, got {name!r}{hint}")
    return search_once(base, name, depth=depth, limits=limits)


def describe_run(
    base: PaperBase | None,
    name: str,
    queries: Path,
    *,
    depth: int = DEPTH,
    limits: Limits = "years",
    model: str | None = None,
    settings: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Return what a run depends on, as plain data; runs that differ in it are not continued."""
    return {
        "system": name,
        "depth": depth,
        "limits": limits,
        "planner": model,
        "settings": dict(settings or {}),
        "queries": sha256(queries.read_bytes()).hexdigest(),
        "base": {} if base is None else base.describe(),
    }


def run_system(
    system: System,
    queries: Sequence[PaperQuery],
    *,
    path: Path | None = None,
    about: Mapping[str, Any] | None = None,
    resume: bool = False,
    at_once: int = 1,
    on_progress: Callable[[int], None] | None = None,
) -> dict[str, QueryRun]:
    """Ask a system every query; one that fails is kept as failed, with its reason.

    Args:
        path: Where each query is written as soon as it is done.
        about: What the run depends on; a file of another is not continued.
        resume: Go on with *path*: queries that are there and did not fail are not asked again.
        at_once: Queries that are asked at the same time, >= 1.
        on_progress: Called with the number of queries that are done.

    Raises:
        InputError: A line of the file to be continued is no run.
        SettingsError: The file is of another run, or cannot be read.
    """
    check_at_least("at_once", at_once, 1)
    done: dict[str, QueryRun] = {}
    with ExitStack() as stack:
        journal = None if path is None else stack.enter_context(_open_journal(path, about, resume))
        if journal is not None:
            for name, entry in journal.entries.items():
                done[name] = read_run_line(entry, f"{path}, query {name!r}")[1]
        left = [one for one in queries if one.id not in done or done[one.id].error]
        n_done = len(queries) - len(left)
        ask = partial(_ask, system)  # one at a time nothing is begun that an interrupt would lose
        for query, run in stream_many(ask, left, at_once) if at_once > 1 else map(ask, left):
            done[query.id] = run
            if journal is not None:
                journal.put(query.id, run.to_dict())
            n_done += 1
            if on_progress is not None:
                on_progress(n_done)
    return {one.id: done[one.id] for one in queries}


def _open_journal(
    path: Path, about: Mapping[str, Any] | None, resume: bool
) -> AbstractContextManager[Journal]:
    path.parent.mkdir(parents=True, exist_ok=True)
    return Journal(path, about or {}).open(resume=resume)


def _ask(system: System, query: PaperQuery) -> tuple[PaperQuery, QueryRun]:
    started = perf_counter()
    try:
        found = system(query)
    except DeepEraError as error:
        return query, QueryRun(error=str(error) or type(error).__name__)
    if found.seconds is None:
        found = replace(found, seconds=round(perf_counter() - started, 4))
    return query, found
