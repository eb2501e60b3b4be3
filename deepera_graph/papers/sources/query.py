"""What a source is asked for: the groups of words that a question is about.

Services read a pasted question in different ways: arXiv, PubMed and OpenAlex ask for all of its
words, so that each further word narrows the search to nothing. Here the words of one entity belong
together, and a paper may be about any of the entities; the service's own order by relevance puts
those first that are about several.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from deepera_graph.errors import InputError
from deepera_graph.judges.heuristic.intent import recognize_intent
from deepera_graph.papers.library.words import search_words, split_words
from deepera_graph.passages import check_question
from deepera_graph.schema import IntentFields

MOST_GROUPS, MOST_WORDS = 8, 3  # of a query, and of a group: a longer one finds nothing
_KIND = re.compile(r"[^:;]*:\s*")
# Words of a question that name what is asked, not what it is about.
_ASKED_TEXT = """
    effect effects evidence impact including influence mechanism mechanisms outcome outcomes recent
    relationship role
    """
_ASKED = frozenset(_ASKED_TEXT.split())
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

    def join(self, *, word: str = "{}", every: str = " AND ", any_of: str = " OR ") -> str:
        """Return the groups joined by operators: ``(green AND tea) OR glucose``.

        Args:
            word: What becomes of a word, e.g. ``all:{}``.
            every: Between the words of a group.
            any_of: Between groups.
        """
        parts = []
        for group in self.groups:
            whole = every.join(word.format(one) for one in group)
            parts.append(f"({whole})" if len(group) > 1 and len(self.groups) > 1 else whole)
        return any_of.join(parts)


def _to_groups(named: Iterable[Sequence[str]]) -> tuple[tuple[str, ...], ...]:
    """Return words in groups, in lower case so that none is an operator; a long one as pairs."""
    groups: dict[tuple[str, ...], None] = {}
    for one in named:
        words = [word for word in map(str.lower, one) if word not in _ASKED]
        pairs = [*pairwise(words)] if len(words) > MOST_WORDS else [tuple(words)]
        groups |= dict.fromkeys(filter(None, pairs))
    return tuple(groups)[:MOST_GROUPS]
