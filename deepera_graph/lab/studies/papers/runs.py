"""Queries for papers, and runs of systems on them, read from files.

A query is ``{"id", "query", "intent", "gold": [ids]}`` and may have ``constraints`` (``year_from``,
``year_to``, ``venue``, ``not_venue``, ``exclude``), ``exclude`` (papers that are hidden from search
and traversal alike) and ``violating`` (papers that break its limits). A line of a run is ``{"id",
"ranked": [ids, best first]}`` and may have ``calls``, ``kept``, ``rounds``, ``tokens``, ``seconds``
and ``error``; a call is ``{"id": "S1", "tool": "search", "asked", "found": [ids]}``. A run of TREC
has the ranking alone.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, TypeAdapter

from deepera_graph.bioasq.runs import is_trec
from deepera_graph.errors import InputError
from deepera_graph.jobs.forms import read_run as read_trec
from deepera_graph.lab.data.lines import Plain, Text, read_line
from deepera_graph.literature.paper_keys import normalize_id
from deepera_graph.papers.results import Scope
from deepera_graph.text.jsonl import read_places

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
    """Read queries with answers; see the module for their form.

    Raises:
        InputError: A line is none, has no answer, or an id twice; the message names it.
    """
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
    """Read a run: lines as the module says, or those of a TREC run.

    Raises:
        InputError: A line is none, or an id comes twice; the message names it.
    """
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
