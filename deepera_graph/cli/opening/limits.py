"""What may be found: the conditions of `--where`, and the limits that a question has in words."""

from __future__ import annotations

import json
from collections.abc import Sequence, Set
from datetime import date
from typing import TYPE_CHECKING, Any

from deepera_graph.cli.shared import places
from deepera_graph.errors import SettingsError
from deepera_graph.literature.citation import Citation
from deepera_graph.text.plain import count

if TYPE_CHECKING:
    from langchain_core.documents import Document

    from deepera_graph.papers.agent.limits import Limits
    from deepera_graph.papers.results import Scope

_YEARS = {"year_from": "gte", "year_to": "lte"}
_SIGNS = {"gt": ">", "gte": ">=", "lt": "<", "lte": "<="}
_NAMED = 5  # of what the limits of a question leave out


def read_conditions(where: Sequence[str]) -> dict[str, Any]:
    """Read ``year>=2015``, ``year=2015``, ``year={"gte": 2015}`` and ``since 2015``."""
    from deepera_graph.retrieval import read_where

    return read_where(where, read_words=_read_years)


def to_scope(limits: places.WhereOptions) -> Scope:
    """Return the limits that were given."""
    from deepera_graph.papers import Scope

    return Scope.of(read_conditions(limits.where or []))


def _read_years(condition: str) -> dict[str, Any]:
    """Read years in words; whatever else is asked in words, metadata cannot tell."""
    from deepera_graph.papers.agent.limits.reading import read_limits

    plain = read_limits(condition, year=date.today().year).to_dict()
    topic = plain.pop("topic")
    rest = {name: value for name, value in plain.items() if name not in ("question", *_YEARS)}
    bounds = {_YEARS[name]: plain[name] for name in _YEARS if name in plain}
    if not bounds or rest or topic != " ".join(condition.split()):
        read = [*(f"year{_SIGNS[sign]}{year}" for sign, year in bounds.items())]
        hint = f"; understood was {' and '.join(read)}, and nothing else" if read else ""
        if {"types", "not_types"} & rest.keys():
            hint += "; kinds of papers go at the end of the question: '..., excluding reviews?'"
        raise SettingsError(
            "--where must be FIELD=VALUE, e.g. 'year>=2015', or years in words, e.g. 'since 2015', "
            f"in quotes, got {condition!r}{hint}"
        )
    return {"year": bounds}


def _write_years(limits: Limits, but: Set[int | None] = frozenset()) -> list[str]:
    """Return the bounds of years as conditions, such as ``year>=2015``, but for some years."""
    bounds = [(_SIGNS[sign], getattr(limits, name)) for name, sign in _YEARS.items()]
    return [f"year{sign}{year}" for sign, year in bounds if year and year not in but]


def note_search(query: str) -> str:
    """Say that a search does not read the years in a query; empty if there are none."""
    wheres = " ".join(f"--where '{one}'" for one in _write_years(read_question(query, apart=True)))
    told = f"a limit in words is searched for as words; {wheres} leaves papers out, and so does "
    return f"{told}`deepera papers ask`" if wheres else ""


def note_limits(question: str, applied: Limits) -> str:
    """Say that limits in a question leave no paper out, but for years and kinds applied."""
    # "Deaths since 2015" may well be what is asked; what stands apart at the end is a limit.
    from deepera_graph.papers.agent.limits.patterns import MANY
    from deepera_graph.papers.agent.limits.reading import find_other_kinds, find_sizes

    limits = read_question(question)
    years = _write_years(limits, but={getattr(applied, name) for name in _YEARS})
    kinds = [MANY[one] for one in limits.types if one not in applied.types]
    kinds += [f"no {MANY[one]}" for one in limits.not_types if one not in applied.not_types]
    others = [f"no {one}" for one in limits.exclude]
    others += [*find_other_kinds(limits.topic), *find_sizes(question)]
    if not years and not kinds and not others:
        return ""
    wheres = " ".join(f"--where '{one}'" for one in years)
    advice = (
        'to leave some out, set them apart at the end ("..., since 2015, excluding '
        f'reviews?"){f", or take {wheres}" if wheres else ""}'
        if years or kinds
        else f"only years and kinds of papers do: {', '.join(MANY.values())}"
    )
    return (
        f"limits in the question ({', '.join([*years, *kinds, *others])}) are judged as words, and "
        f"leave no paper out; {advice}"
    )


def read_question(question: str, *, apart: bool = False) -> Limits:
    """Read the limits that a question asked today has in words; see `read_limits`."""
    from deepera_graph.papers.agent.limits.reading import read_limits

    return read_limits(question, year=date.today().year, apart=apart)


def describe_left_out(
    limits: Limits, out: Sequence[tuple[Document, str]], n_found: int, *, whole: bool = False
) -> str:
    """Say which limits a question has, and what they leave out of what was found."""
    # The first few are named, or the *whole* of it.
    from deepera_graph.papers.agent.limits import name_kinds
    from deepera_graph.papers.agent.limits.patterns import MANY

    said = _write_years(limits)
    said += [f"not from {year}" for year in limits.not_years]
    said += [f"only {name_kinds(limits.types)}"] if limits.types else []
    said += [f"no {MANY[one]}" for one in limits.not_types]
    head = f"limits of the question ({', '.join(said)})"
    if not out:
        return f"{head} leave out none of {count(n_found, 'passage')}"
    named = dict.fromkeys(_name(one, why) for one, why in out)
    most = len(named) if whole else _NAMED
    more = f"; and {len(named) - most} more: -v names them" if len(named) > most else ""
    listed = "; ".join([*named][:most])
    return f"{head} leave out {len(out)} of {count(n_found, 'passage')}: {listed}{more}"


def _name(passage: Document, why: str) -> str:
    about = Citation.of(passage.metadata, passage.id or "")
    return f"{about.title or about.id} ({', '.join(filter(None, (about.year, why)))})"


def describe_condition(name: str, value: Any) -> list[str]:
    """Return a condition as it is written: ``year>2015``, or a range as two of them."""
    if isinstance(value, dict) and value and value.keys() <= _SIGNS.keys():
        return [f"{name}{_SIGNS[bound]}{value[bound]}" for bound in value]
    shown = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return [f"{name}={shown}"]
