"""Queries for papers, and runs of systems on them: read from files, or made over a base.

A query is ``{"id", "query", "intent", "gold": [ids]}`` and may have ``constraints`` (``year_from``,
``year_to``, ``venue``, ``not_venue``, ``exclude``), ``exclude`` (papers that are hidden from search
and traversal alike) and ``violating`` (papers that break its limits). A line of a run is ``{"id",
"ranked": [ids, best first]}`` and may have ``calls``, ``kept``, ``rounds``, ``tokens``, ``seconds``
and ``error``; a call is ``{"id": "S1", "tool": "search", "asked", "found": [ids]}``.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from hashlib import sha256
from itertools import chain, islice
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any, Literal, cast, get_args

from deepera_graph.agents.journal import Journal
from deepera_graph.budget import stream_many
from deepera_graph.errors import DeepEraError, InputError, SettingsError
from deepera_graph.literature.paper_keys import normalize_id
from deepera_graph.papers.base import PaperBase
from deepera_graph.papers.results import Scope, SearchMode
from deepera_graph.settings import check_at_least, suggest_value
from deepera_graph.text.files.jsonl import read_places

if TYPE_CHECKING:
    from deepera_graph.papers.agent.graph import PaperSearch

Limits = Literal["none", "years", "all"]
MODES: tuple[SearchMode, ...] = get_args(SearchMode)
DEPTH = 100
NO_INTENT = "any"
AGENT = "agent"
_NO_WORDS = "the query has no word to search for"
EXPANDING = ("expand", "references", "citations")
_VENUES = {"venue": "venues", "venues": "venues", "not_venue": "not_venues"}


@dataclass(frozen=True, slots=True, kw_only=True)
class PaperQuery:
    """A question for papers, and its answers.

    Attributes:
        gold: The answers; at least one.
        constraints: Limits as the data has them.
        hidden: Papers that no search and no citation may lead to.
        violating: Papers of the subject that break a limit, none of them in `gold`.
    """

    id: str
    text: str
    intent: str
    gold: frozenset[str]
    constraints: Mapping[str, Any] = field(default_factory=dict)
    hidden: tuple[str, ...] = ()
    violating: frozenset[str] = frozenset()

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
    """Read queries with answers; see the module for their form.

    Raises:
        InputError: A line is none, has no answer, or an id twice; the message names it.
    """
    queries: dict[str, PaperQuery] = {}
    for where, line in islice(read_places(path), limit):
        one = _read_query(line, where)
        if one.id in queries:
            raise InputError(f"{where}: the id {one.id!r} comes twice")
        queries[one.id] = one
    if not queries:
        raise InputError(f"{path}: there are no queries")
    return tuple(queries.values())


def _read_query(line: Mapping[str, Any], where: str) -> PaperQuery:
    gold = frozenset(_ids(line, "gold", where))
    violating = frozenset(_ids(line, "violating", where))
    if not gold:
        raise InputError(f"{where}: 'gold' must name at least one paper")
    if both := sorted(gold & violating):
        raise InputError(f"{where}: {both[0]!r} is in 'gold' and in 'violating'")
    constraints = line.get("constraints") or {}
    if not isinstance(constraints, dict):
        raise InputError(f"{where}: 'constraints' must be an object, got {constraints!r:.80}")
    return PaperQuery(
        id=_text(line, "id", where),
        text=_text(line, "query", where),
        intent=_text(line, "intent", where) if line.get("intent") else NO_INTENT,
        gold=gold,
        constraints=constraints,
        hidden=tuple(_ids(line, "exclude", where)),
        violating=violating,
    )


def _text(line: Mapping[str, Any], name: str, where: str) -> str:
    value = line.get(name)
    if not isinstance(value, str) or not value.strip():
        raise InputError(f"{where}: {name!r} must be a text, got {value!r:.80}")
    return value


def _ids(line: Mapping[str, Any], name: str, where: str) -> list[str]:
    """Return ids, each once; an entry may be ``[id, score]`` or ``{"id": ...}``."""
    value = line.get(name)
    if value is None:
        return []
    if not isinstance(value, list):
        raise InputError(f"{where}: {name!r} must be a list of ids, got {value!r:.80}")
    found: dict[str, None] = {}
    for one in value:
        bare = one.get("id") if isinstance(one, dict) else one
        bare = bare[0] if isinstance(bare, list) and bare else bare
        if not isinstance(bare, str) or not bare.strip():
            raise InputError(f"{where}: {name!r} must be a list of ids, got {one!r:.80} in it")
        found[normalize_id(bare)] = None
    return [*found]


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One use of a tool, and what it brought.

    Attributes:
        id: ``S1`` for a search, ``E6`` for an expansion.
        tool: ``search``, one of `EXPANDING`, or any other.
        asked: The words, or the paper.
        found: Papers it brought, seen before or not, in order.
        problem: Why it failed, or empty.
    """

    id: str
    tool: str
    asked: str = ""
    found: tuple[str, ...] = ()
    problem: str = ""

    @property
    def is_expansion(self) -> bool:
        """Whether it followed citations."""
        return self.tool in EXPANDING

    def to_dict(self) -> dict[str, Any]:
        """Return it as a line of a run has it."""
        plain = {"id": self.id, "tool": self.tool, "asked": self.asked, "found": [*self.found]}
        return {**plain, "problem": self.problem} if self.problem else plain


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryRun:
    """What a system returned for a query.

    Attributes:
        ranked: Papers, best first, each once.
        calls: What it did, in order; None if it does not say.
        kept: What a selector left standing; all of `ranked` if it does not say.
        rounds: Steps of the agent, None if it does not say.
        tokens: Of its planner, None if it does not say.
        seconds: None if nobody timed it.
        error: Why it failed as a whole, or empty; such a query counts 0.
    """

    ranked: tuple[str, ...] = ()
    calls: tuple[Call, ...] | None = None
    kept: tuple[str, ...] | None = None
    rounds: int | None = None
    tokens: int | None = None
    seconds: float | None = None
    error: str = ""

    @property
    def observed(self) -> tuple[str, ...]:
        """All papers that the system has seen, in that order: of its calls, then of its ranking."""
        found = (one for call in self.calls or () for one in call.found)
        return tuple(dict.fromkeys(chain(found, self.ranked)))

    def to_dict(self) -> dict[str, Any]:
        """Return it as a line of a run has it, without the query's id."""
        plain: dict[str, Any] = {"ranked": [*self.ranked]}
        if self.kept is not None:
            plain["kept"] = [*self.kept]
        if self.calls is not None:
            plain["calls"] = [one.to_dict() for one in self.calls]
        for name in ("rounds", "tokens", "seconds"):
            if (value := getattr(self, name)) is not None:
                plain[name] = value
        return {**plain, "error": self.error} if self.error else plain


Run = Mapping[str, QueryRun]  # by the query's id


def read_run(path: Path) -> dict[str, QueryRun]:
    """Read a run; see the module for the form of its lines.

    Raises:
        InputError: A line is none, or an id comes twice; the message names it.
    """
    run: dict[str, QueryRun] = {}
    is_journal = False
    for where, line in read_places(path):
        if not run and "ran" in line and "id" not in line:
            is_journal = True  # of `run_system`: its last line of a query counts
            continue
        name, one = _read_run_line(line, where)
        if name in run and not is_journal:
            raise InputError(f"{where}: the id {name!r} comes twice")
        run[name] = one
    return run


def _read_run_line(line: Mapping[str, Any], where: str) -> tuple[str, QueryRun]:
    calls = line.get("calls")
    if calls is not None and not isinstance(calls, list):
        raise InputError(f"{where}: 'calls' must be a list, got {calls!r:.80}")
    error = line.get("error") or ""
    if "ranked" not in line and not error:
        raise InputError(f"{where}: there must be 'ranked', a list of ids, or an 'error'")
    return _text(line, "id", where), QueryRun(
        ranked=tuple(_ids(line, "ranked", where)),
        calls=None if calls is None else tuple(_read_calls(calls, where)),
        kept=tuple(_ids(line, "kept", where)) if line.get("kept") is not None else None,
        rounds=cast("int | None", _number(line, "rounds", where, int)),
        tokens=cast("int | None", _number(line, "tokens", where, int)),
        seconds=_number(line, "seconds", where, float),
        error=str(error),
    )


def _read_calls(calls: Iterable[Any], where: str) -> Iterator[Call]:
    counts = {"S": 0, "E": 0}
    for one in calls:
        if not isinstance(one, dict):
            raise InputError(f"{where}: a call must be an object, got {one!r:.80}")
        tool = _text(one, "tool", where)
        letter = "E" if tool in EXPANDING else "S"
        counts[letter] += 1
        yield Call(
            id=str(one.get("id") or f"{letter}{counts[letter]}"),
            tool=tool,
            asked=str(one.get("asked") or ""),
            found=tuple(_ids(one, "found", where)),
            problem=str(one.get("problem") or ""),
        )


def _number(
    line: Mapping[str, Any], name: str, where: str, kind: type[int] | type[float]
) -> float | None:
    value = line.get(name)
    if value is None:
        return None
    allowed = (int,) if kind is int else (int, float)
    if isinstance(value, bool) or not isinstance(value, allowed) or value < 0:
        raise InputError(f"{where}: {name!r} must be a number >= 0, got {value!r:.80}")
    return value


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
        raise SettingsError(f"{base.place} has no vectors, so there is no search by {mode!r}")

    def system(query: PaperQuery) -> QueryRun:
        hits = base.search(query.text, mode=mode, k=depth, scope=query.scope(limits))
        found = tuple(dict.fromkeys(normalize_id(one.id) for one in hits.papers))
        problem = _NO_WORDS if hits.status == "no_words" else ""
        call = Call(id="S1", tool="search", asked=query.text, found=found, problem=problem)
        return QueryRun(ranked=found, calls=(call,), rounds=1)

    return system


def search_by_agent(
    search: "PaperSearch", *, depth: int | None = None, limits: Limits = "years"
) -> System:
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
            ranked=tuple(dict.fromkeys(map(normalize_id, found.ids)))[:depth],
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
                done[name] = _read_run_line(entry, f"{path}, query {name!r}")[1]
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
