"""What a source of papers is: a name, and a search that says how it went.

A service that is down, slow or out of credits is not one that found nothing: the status of an
answer tells them apart, and its reason says why in words.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Literal, Protocol, runtime_checkable

from deepera_graph.errors import InputError
from deepera_graph.judges.heuristic.roles import recognize_intent
from deepera_graph.papers.library.words import QUESTION_WORDS, search_words, split_words
from deepera_graph.papers.paper import Paper, PaperRecord
from deepera_graph.papers.results import Scope, SequenceAnswer
from deepera_graph.passages import check_question
from deepera_graph.schema import IntentFields
from deepera_graph.text.plain import count, describe_seconds

MOST_GROUPS, MOST_WORDS = 8, 3  # of a query, and of a group: a longer one finds nothing
_KIND = re.compile(r"[^:;]*:\s*")
_ASKED = frozenset(QUESTION_WORDS["asked"])
_BARRED = re.compile(r"\b(?:exclud\w+|except\w*|without|no|not|other than)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class SourceQuery:
    """A question, and the groups of words that papers on it have.

    Attributes:
        question: As it was asked.
        groups: What it is about, each in 1 to 3 words; 1 to 8 of them. What it
            excludes is in none: a service would look for it.
    """

    question: str
    groups: tuple[tuple[str, ...], ...]

    @classmethod
    def of(cls, query: "str | SourceQuery", intent: IntentFields | None = None) -> "SourceQuery":
        """Return the query for a question, by its *intent* if that is known, else by rules.

        Raises:
            InputError: It is no text, or has no letter and no digit.
        """
        if isinstance(query, SourceQuery):
            return query
        check_question(query, ())
        if not split_words(query):
            raise InputError(f"the query has no word to search for, got {query!r:.80}")
        entities = (
            recognize_intent({"question": query, "problem": ""}).entity_type
            if intent is None
            else intent["entity_type"]
        )
        named = (_KIND.sub("", one, count=1) for one in entities.split(";"))
        groups = _to_groups(search_words(one) for one in named if not _BARRED.search(one))
        words = search_words(query) or split_words(query)
        return cls(query, groups or _to_groups([word] for word in words))

    @property
    def words(self) -> tuple[str, ...]:
        """The words of all groups, each once, in order."""
        return tuple(dict.fromkeys(word for group in self.groups for word in group))

    def join(self, word: str = "{}") -> str:
        """Return the groups joined by operators: ``(green AND tea) OR glucose``.

        Args:
            word: What becomes of a word, e.g. ``all:{}``.
        """
        parts = []
        for group in self.groups:
            whole = " AND ".join(map(word.format, group))
            parts.append(f"({whole})" if len(group) > 1 and len(self.groups) > 1 else whole)
        return " OR ".join(parts)


def _to_groups(named: Iterable[Sequence[str]]) -> tuple[tuple[str, ...], ...]:
    """Return words in groups, in lower case so that none is an operator; a long one as pairs."""
    groups: dict[tuple[str, ...], None] = {}
    for one in named:
        words = [word for word in map(str.lower, one) if word not in _ASKED]
        pairs = [*pairwise(words)] if len(words) > MOST_WORDS else [tuple(words)]
        groups |= dict.fromkeys(filter(None, pairs))
    return tuple(groups)[:MOST_GROUPS]


SourceStatus = Literal["ok", "empty", "rate_limited", "failed", "not_asked"]
K = 30  # papers that are asked of a source


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceAnswer(SequenceAnswer[Paper]):
    """What a source answered; a sequence of its papers, best first.

    Attributes:
        source: Name of the source.
        status: ``ok``; ``empty``: it was asked and knows none; ``rate_limited``: it asks to wait
            for longer than there was time, see *retry_after*; ``failed``; ``not_asked``. Of the
            latter three *reason* says why. Papers of pages that came before are kept.
        records: The papers with their other ids and what they cite, best first, each once.
        reason: Why, in a sentence without any key; also what of an ``ok`` answer is missing.
        retry_after: Seconds, >= 0, after which a source that is rate limited may be asked again,
            if it said so.
        left_out: How many records were not used, by kind: ``no_title``, ``no_id``, ``repeated``
            (again on a later page), ``out_of_scope``, ``unreadable`` (of another form than the
            service documents).
        asked: The first address that was asked, without keys and contact address.
        cached: Whether all of it was kept from an earlier time.
        seconds: It took.
    """

    source: str
    status: SourceStatus
    records: tuple[PaperRecord, ...] = ()
    reason: str = ""
    retry_after: float | None = None
    left_out: Mapping[str, int] = field(default_factory=dict)
    asked: str = ""
    cached: bool = False
    seconds: float = 0.0

    @property
    def papers(self) -> tuple[Paper, ...]:
        """The papers, best first."""
        return tuple(one.paper for one in self.records)

    @property
    def is_complete(self) -> bool:
        """Whether nothing went wrong: it gave all that it has, or there was no use in asking."""
        return self.status not in ("rate_limited", "failed")

    @property
    def _listed(self) -> tuple[Paper, ...]:
        return self.papers

    def describe(self) -> dict[str, Any]:
        """Return how it went as JSON has it, without the papers."""
        names = ("source", "status", "papers", "reason", "retry_after", "left_out", "asked")
        plain = {name: getattr(self, name) for name in names}
        counted = {"papers": len(self.records), "left_out": dict(self.left_out)}
        return {**plain, **counted, "cached": self.cached}

    def __str__(self) -> str:
        """Return how it went in a line."""
        n = len(self.records)
        found = count(n, "paper") if n or self.status == "ok" else ""
        said = "" if self.status == "ok" else self.status.replace("_", " ")
        again = [f"again in {describe_seconds(self.retry_after)}"] if self.retry_after else []
        how = ", ".join(filter(None, (found, said, *again)))
        return f"{self.source}: {how}{f' ({self.reason})' if self.reason else ''}"


@runtime_checkable
class PaperSource(Protocol):
    """Where papers are searched for: a service, or whatever else has these three.

    Neither call raises because of the service: what goes wrong is the status of the answer.
    """

    @property
    def name(self) -> str:
        """What users call it, e.g. ``pubmed``."""

    def search(
        self, query: str | SourceQuery, k: int = K, scope: Scope | None = None
    ) -> SourceAnswer:
        """Return at most *k* papers in *scope* that fit a query, best first.

        Raises:
            SettingsError: *k* is below 1.
            InputError: The query is blank.
        """

    async def asearch(
        self, query: str | SourceQuery, k: int = K, scope: Scope | None = None
    ) -> SourceAnswer:
        """Return what `search` returns, in the running loop."""


@runtime_checkable
class CitationSource(PaperSource, Protocol):
    """A source that also knows which papers cite which."""

    def references(self, id: str, k: int = K, scope: Scope | None = None) -> SourceAnswer:
        """Return at most *k* papers that a paper cites; it is named by DOI, arXiv id or own id."""

    def citations(self, id: str, k: int = K, scope: Scope | None = None) -> SourceAnswer:
        """Return at most *k* papers that cite a paper."""

    async def areferences(self, id: str, k: int = K, scope: Scope | None = None) -> SourceAnswer:
        """Return what `references` returns, in the running loop."""

    async def acitations(self, id: str, k: int = K, scope: Scope | None = None) -> SourceAnswer:
        """Return what `citations` returns, in the running loop."""
