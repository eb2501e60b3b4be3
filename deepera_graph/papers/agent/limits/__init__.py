"""What a question asks of papers and does not want, how rules read it, and what breaks it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from deepera_graph.errors import SettingsError
from deepera_graph.papers.paper import list_set_fields
from deepera_graph.papers.results import Scope


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What a question asks for, and what it does not want.

    Attributes:
        question: As it was asked.
        topic: What is searched for: the question without its limits.
        exclude: What a paper must not be about, use or be evaluated on, in the question's words.
        year_from: Earliest year, inclusive.
        year_to: Latest year, inclusive.
        not_years: Years left out.
        venues: Only these.
        not_venues: None of these.
        types: Only these kinds of documents: ``review``, ``meta-analysis``, ``trial`` ...
        not_types: None of these.
        better: What has to come out ahead, and of what: ``("A", "B")``; empty if nothing has to.
        notes: What could not be read, in words.
    """

    question: str
    topic: str
    exclude: tuple[str, ...] = ()
    year_from: int | None = None
    year_to: int | None = None
    not_years: tuple[int, ...] = ()
    venues: tuple[str, ...] = ()
    not_venues: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    not_types: tuple[str, ...] = ()
    better: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def narrow(self, scope: Scope, venues: Sequence[str] = ()) -> tuple[Scope, tuple[str, ...]]:
        """Return a scope with the question's years and venues in it, and notes on what was not.

        What the caller limited stays limited: the narrower of two limits holds. Limits that leave
        no year are an error of `Scope`, unless the question alone causes it: then its years are
        left out, with a note. A venue that the base does not know cannot be asked for.
        """
        notes: list[str] = []
        low = max(filter(None, (scope.year_from, self.year_from)), default=None)
        high = min(filter(None, (scope.year_to, self.year_to)), default=None)
        if low is not None and high is not None and low > high:
            notes.append(f"no year is from {low} and up to {high}: the question's are left out")
            low, high = scope.year_from, scope.year_to
        known = {one.casefold(): one for one in venues}
        only = tuple(one for one in self.venues if one.casefold() in known)
        barred = tuple(one for one in self.not_venues if one.casefold() in known)
        unknown = [one for one in (*self.venues, *self.not_venues) if one.casefold() not in known]
        notes += [f"no paper of the base is from the venue {one!r}" for one in unknown]
        if scope.venues and only:
            asked = {one.casefold() for one in only}
            only = tuple(one for one in scope.venues if one.casefold() in asked)
            if not only:
                notes.append("the question's venues are not among those searched: left out")
        narrowed = replace(
            scope,
            year_from=low,
            year_to=high,
            venues=only or scope.venues,
            not_venues=tuple(dict.fromkeys((*scope.not_venues, *barred))),
        )
        return narrowed, tuple(notes)

    def to_dict(self) -> dict[str, Any]:
        """Return the limits that are set, with question and topic, as JSON has them."""
        return list_set_fields(self)

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> "Limits":
        """Return the limits of `to_dict`."""
        lists = {name: tuple(value) for name, value in plain.items() if isinstance(value, list)}
        return cls(**{**plain, **lists})


def check_limits(limits: Limits) -> Limits:
    """Return limits that were written by a model or a caller, or raise."""
    if limits.year_from and limits.year_to and limits.year_from > limits.year_to:
        raise SettingsError(f"no year is from {limits.year_from} and up to {limits.year_to}")
    if len(limits.better) not in (0, 2):
        raise SettingsError(f"a comparison has two sides, got {list(limits.better)!r}")
    return limits
