"""Queries for papers, systems that answer them, and their runs: made here, or read from files.

A query is ``{"id", "query", "intent", "gold": [ids]}`` and may have ``constraints`` (``year_from``,
``year_to``, ``venue``, ``not_venue``, ``exclude``), ``exclude`` (papers that are hidden from search
and traversal alike) and ``violating`` (papers that break its limits). A line of a run is ``{"id",
"ranked": [ids, best first]}`` and may have ``calls``, ``kept``, ``rounds``, ``tokens``, ``seconds``
and ``error``; a call is ``{"id": "S1", "tool": "search", "asked", "found": [ids]}``. A run of TREC
has the ranking alone.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from hashlib import sha256
from itertools import chain, islice
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args

from pydantic import AfterValidator, BeforeValidator, Field, TypeAdapter

from deepera_graph.agents.journal import Journal
from deepera_graph.bioasq.runs import is_trec
from deepera_graph.errors import DeepEraError, InputError, SettingsError
from deepera_graph.jobs.forms import read_run as read_trec
from deepera_graph.lab.data.readers import Plain, Text, read_line
from deepera_graph.literature.paper_keys import normalize_id
from deepera_graph.papers.base import PaperBase
from deepera_graph.papers.results import Scope, SearchMode
from deepera_graph.settings.budget import stream_many
from deepera_graph.settings.ranges import check_at_least, suggest_value
from deepera_graph.text.jsonl import read_places

if TYPE_CHECKING:
    from deepera_graph.papers.agent.graph import PaperSearch

Limits = Literal["none", "years", "all"]
NO_INTENT = "any"
EXPANDING = ("expand", "references", "citations")
_VENUES = {"venue": "venues", "venues": "venues", "not_venue": "not_venues"}


def _read_ids(value: object) -> list[str]:
    """Return ids, each once; an entry may be ``[id, score]`` or ``{"id": ...}``."""
    if value is None:
        return []
    if not isinstance(value, list):
        raise ValueError(f"must be a list of ids, got {value!r:.80}")
    found: dict[str, None] = {}
    for one in value:
        bare = one.get("id") if isinstance(one, dict) else one
        bare = bare[0] if isinstance(bare, list) and bare else bare
        if not isinstance(bare, str) or not bare.strip():
            raise ValueError(f"must be a list of ids, got {one!r:.80} in it")
        found[normalize_id(bare)] = None
    return [*found]


_Ids = Annotated[tuple[str, ...], BeforeValidator(_read_ids)]
_Kept = Annotated[
    tuple[str, ...] | None, BeforeValidator(lambda one: None if one is None else _read_ids(one))
]
_IdSet = Annotated[frozenset[str], BeforeValidator(_read_ids)]
_Intent = Annotated[Text, BeforeValidator(lambda one: one or NO_INTENT)]
_Count = Annotated[int, Field(ge=0, strict=True)]
_Limits = Annotated[Mapping[str, Any], BeforeValidator(lambda one: one or {})]


@dataclass(frozen=True, slots=True, kw_only=True)
class PaperQuery:
    """A question for papers, and its answers."""

    id: Text
    text: Annotated[Text, Field(validation_alias="query")]
    intent: _Intent = NO_INTENT
    gold: _IdSet  # the answers; at least one
    constraints: _Limits = field(default_factory=dict)  # limits as the data has them
    # papers that no search and no citation may lead to
    hidden: Annotated[_Ids, Field(validation_alias="exclude")] = ()
    # papers of the subject that break a limit, none of them in `gold`
    violating: _IdSet = frozenset()

    def scope(self, limits: Limits = "years") -> Scope:
        """Return what may be found: never what is hidden, and within limits as far as is asked.

        Raises:
            SettingsError: A limit is none, e.g. the first year is after the last.
        """
        years = {"year_from", "year_to"} if limits != "none" else set()
        chosen = {name: one for name, one in self.constraints.items() if name in years}
        if limits == "all":
            for name, limit in _VENUES.items():
                if value := self.constraints.get(name):
                    chosen[limit] = (value,) if isinstance(value, str) else tuple(value)
        return Scope(hide=self.hidden, **chosen)


def read_queries(path: Path, *, limit: int | None = None) -> tuple[PaperQuery, ...]:
    """Read queries with answers; see the module for their form."""
    queries: dict[str, PaperQuery] = {}
    for where, line in islice(read_places(path), limit):
        one = read_line(_QUERY, line, where)
        if not one.gold:
            raise InputError(f"{where}: 'gold' must name at least one paper")
        if both := sorted(one.gold & one.violating):
            raise InputError(f"{where}: {both[0]!r} is in 'gold' and in 'violating'")
        if one.id in queries:
            raise InputError(f"{where}: the id {one.id!r} comes twice")
        queries[one.id] = one
    if not queries:
        raise InputError(f"{path}: no queries found")
    return tuple(queries.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One use of a tool, and what it brought."""

    id: Plain = ""  # ``S1`` for a search, ``E6`` for an expansion
    tool: Text  # ``search``, one of `EXPANDING`, or any other
    asked: Plain = ""  # the words, or the paper
    found: _Ids = ()  # papers it brought, seen before or not, in order
    problem: Plain = ""  # why it failed, or empty

    @property
    def is_expansion(self) -> bool:
        """Whether it followed citations."""
        return self.tool in EXPANDING


def _number_calls(calls: tuple[Call, ...] | None) -> tuple[Call, ...] | None:
    """Give calls without an id the next one of their kind."""
    counts = {"S": 0, "E": 0}
    numbered = []
    for one in calls or ():
        letter = "E" if one.is_expansion else "S"
        counts[letter] += 1
        numbered.append(replace(one, id=one.id or f"{letter}{counts[letter]}"))
    return None if calls is None else tuple(numbered)


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryRun:
    """What a system returned for a query."""

    ranked: _Ids = ()  # papers, best first, each once
    kept: _Kept = None  # what a selector left standing; all of `ranked` if it does not say
    # what it did, in order; None if it does not say
    calls: Annotated[tuple[Call, ...] | None, AfterValidator(_number_calls)] = None
    rounds: _Count | None = None  # steps of the agent, None if it does not say
    tokens: _Count | None = None  # of its planner, None if it does not say
    seconds: Annotated[float, Field(ge=0, strict=True)] | None = None  # none if nobody timed it
    error: Plain = ""  # why it failed as a whole, or empty; such a query counts 0

    @property
    def observed(self) -> tuple[str, ...]:
        """All papers that the system has seen, in that order: of its calls, then of its ranking."""
        found = (one for call in self.calls or () for one in call.found)
        return tuple(dict.fromkeys(chain(found, self.ranked)))

    def to_dict(self) -> dict[str, Any]:
        """Return it as a line of a run has it, without the query's id."""
        plain: dict[str, Any] = _RUN.dump_python(self, mode="json", exclude_none=True)
        problems = [(call, "problem") for call in plain.get("calls", ())]
        for one, name in [*problems, (plain, "error")]:
            if not one[name]:
                del one[name]
        return plain


Run = Mapping[str, QueryRun]  # by the query's id


@dataclass(frozen=True)
class _Named:
    id: Text


_QUERY, _RUN, _NAMED = TypeAdapter(PaperQuery), TypeAdapter(QueryRun), TypeAdapter(_Named)


def read_run(path: Path) -> dict[str, QueryRun]:
    """Read a run: lines as the module says, or those of a TREC run."""
    if is_trec(path):
        return {
            name: QueryRun(ranked=tuple(_read_ids([one for one, _ in ranked])))
            for name, ranked in read_trec(path).items()
        }
    run: dict[str, QueryRun] = {}
    is_journal = False
    for where, line in read_places(path):
        if not run and "ran" in line and "id" not in line:
            is_journal = True  # of `run_system`: its last line of a query counts
            continue
        name, one = read_run_line(line, where)
        if name in run and not is_journal:
            raise InputError(f"{where}: the id {name!r} comes twice")
        run[name] = one
    return run


def read_run_line(line: Mapping[str, Any], where: str) -> tuple[str, QueryRun]:
    """Return the query's id of a line, and the run; an `InputError` names *where* it is wrong."""
    if "ranked" not in line and not line.get("error"):
        raise InputError(f"{where}: there must be 'ranked', a list of ids, or an 'error'")
    return read_line(_NAMED, line, where).id, read_line(_RUN, line, where)


MODES: tuple[SearchMode, ...] = get_args(SearchMode)
DEPTH = 100
AGENT = "agent"
_NO_WORDS = "the query has no word to search for"
System = Callable[[PaperQuery], QueryRun]


def search_once(
    base: PaperBase, mode: SearchMode, *, depth: int = DEPTH, limits: Limits = "years"
) -> System:
    """Return the system that searches once, with the query as it stands."""
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
    """Return the system that searches in several steps; it reads further limits by itself."""
    # A search whose plan failed before anything was found is a failed query; what else went wrong
    # on the way is a problem of its call.

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
    planner: Any = None,  # who plans for an agent, see `deepera_graph.papers.agent.PaperSearch`
    # of an agent: its `selector`, `max_actions` and others
    settings: Mapping[str, Any] | None = None,
) -> System:
    """Return the system of a name, over a base: a mode of search, or ``agent:STYLE``."""
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
    path: Path | None = None,  # where each query is written as soon as it is done
    # what the run depends on; a file of another is not continued
    about: Mapping[str, Any] | None = None,
    # go on with *path*: queries that are there and did not fail are not asked again
    resume: bool = False,
    at_once: int = 1,  # queries that are asked at the same time, >= 1
    # called with the number of queries that are done
    on_progress: Callable[[int], None] | None = None,
) -> dict[str, QueryRun]:
    """Ask a system every query; one that fails is kept as failed, with its reason."""
    # Raises `InputError` if a line of the file to be continued is no run; `SettingsError` if the
    # file is of another run, or cannot be read.
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
