"""A statement or a sentence as clauses: what each says of what, what it leaves out or denies.

The words are in ``clauses.toml``.
"""

import re
from itertools import pairwise
from typing import NamedTuple

from deepera_graph.evidence.table.effects import mask_brackets
from deepera_graph.judges.trained.direction.wording import read_words
from deepera_graph.text.drift.parts import hide_designs
from deepera_graph.text.plain import read_lists
from deepera_graph.text.words import GENERAL_STEMS, LONGEST, content_words, stem_verb

PATTERNS = {
    name: re.compile(one, re.IGNORECASE | re.VERBOSE)
    for name, one in read_lists(__file__)["patterns"].items()
}
NOTHING = PATTERNS["nothing"]
CONTROL = "control"
MOST_READ = 2 * LONGEST  # characters: time is quadratic in them
DENIES = {"not", "null"}  # signs of words
LEAST_SHARED = 2  # stems of a statement in what is set against it


def stems(text: str) -> set[str]:
    """Return the stems of what a text is about; all groups that are compared with are controls."""
    found = set(map(stem_verb, content_words(text)))
    return {CONTROL if one in _CONTROLS else one for one in found}


_CONTROLS = frozenset(map(stem_verb, "placebo controls sham comparator".split()))  # noqa: SIM905
GROUPED = stems("arms groups treatments conditions between differ differed difference")
MEASURES = stems("risk odds rate rates chance likelihood incidence number level levels")
_TOLD = stems(
    "observed seen reported noted detected known clear time overall "
    "people patients participants persons given receiving taking treated"
)
GENERAL = frozenset(GENERAL_STEMS | GROUPED | MEASURES | _TOLD)  # no outcome, and no group


class Clause(NamedTuple):
    """A clause, with the subject of an earlier one if it has none, and what it leaves out."""

    text: str
    subject: str
    borrowed: str = ""  # of an earlier one: "and B did not", "but lowered it in men"
    exception: str = ""  # "in those with bolus doses", behind "but not"

    @property
    def about(self) -> set[str]:
        """The stems of all that it says, and of what it says it of."""
        return stems(f"{self.subject} {self.text} {self.borrowed}")

    @property
    def whole(self) -> str:
        """Its text behind its subject."""
        return f"{self.subject} {self.text}"


def cut_clauses(sentence: str) -> list[Clause]:
    """Cut a sentence into what it finds: "fell, but did not change Y" are two, with one subject."""
    masked = mask_brackets(sentence)
    cuts = [0]
    for one in PATTERNS["bounds"].finditer(masked):
        said = masked[cuts[-1] : one.start()]
        if PATTERNS["predicate"].search(said) and one.start() > cuts[-1]:
            cuts.append(one.start())
    parts: list[Clause] = []
    subject = ""
    for start, end in pairwise([*cuts, len(sentence)]):
        text = PATTERNS["joint"].sub("", sentence[start:end], count=1)
        if parts and (found := PATTERNS["exception"].match(text)):
            parts[-1] = parts[-1]._replace(exception=found[0].strip())
            continue
        told = PATTERNS["predicate"].search(mask_brackets(text))
        own = text[: told.start()] if told else ""
        is_elliptic = parts and PATTERNS["elliptic"].match(mask_brackets(text))
        borrowed = _find_predicate(parts[-1].text) if is_elliptic else ""
        if parts and not content_words(own) and PATTERNS["pronoun"].search(text):
            borrowed = PATTERNS["within"].split(_find_predicate(parts[-1].text))[0]
        text = f"{text.rstrip(' .;,')} do" if is_elliptic else text
        parts.append(Clause(text, "" if content_words(own) else subject, borrowed))
        subject = own if content_words(own) else subject
    return parts


def _find_predicate(text: str) -> str:
    found = PATTERNS["predicate"].search(text)
    return text[found.start() :] if found else ""


def acts_where_nothing_does(one: Clause, other: Clause) -> bool:
    """Tell whether a part says that one thing acts on another, and the other finds no effect."""
    found = PATTERNS["no_effect"].search(mask_brackets(other.text))
    if not found or PATTERNS["tells_no_effect"].search(one.text):
        return False
    if DENIES & {*read_words(one.text).signs}:
        return False
    before = stems(f"{other.subject} {other.text[: found.start()]}")
    after = stems(other.text[found.end() :])
    if one.about <= before or not all(side & one.about for side in (before, after) if side):
        return False
    return len((before | after) & one.about) >= LEAST_SHARED


def list_denials(statement: str) -> list[str]:
    """Return what a statement says that nothing changes of: "mortality" in "but not mortality"."""
    found: list[str] = []
    for n, part in enumerate(cut_clauses(hide_designs(statement[:MOST_READ]))):
        before, *after = NOTHING.split(part.text, maxsplit=1)
        said = after[0] if after and content_words(after[0]) else before
        is_added = n and DENIES & {*read_words(part.text).signs}
        found += [said] if is_added or said is not before else []
        found += [part.exception] if part.exception else []
    return found
