"""The subject of a question without the words that only ask, and labels that titles share."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence

_ASKED = """
could can would are is do does what which where how please give show provide find suggest
recommend tell any me some i am looking for there you point direct towards toward share
know of list help with research researches paper papers study studies work works article
articles publication publications literature that explore explores explored investigate
investigates investigated discuss discusses discussed examine examines examined focus
focuses focused focusing propose proposes proposed present presents introduce introduces
introduced address addresses analyse analyses analyze analyzes describe describes top-tier
journal recent latest cutting-edge advancements technological expand my ideas the an a on
about to in into have has been done search searching need want get it idea ideas related
i'd i'm like read possible after anything everything please has written known published
"""
_ASKING = frozenset(_ASKED.split())
_FEWEST_LEFT = 3  # words that a subject keeps at least
_LABEL = re.compile(
    r"\b(?P<name>[A-Z][\w-]*(?:[\s-]+(?:19|20)\d\d)(?:\s+Shared)?\s+Task)[\s-]*(?P<number>\d{1,2})\b",
    re.I,
)
_YEAR = re.compile(r"\b(?:19|20)\d\d\b")


def subject_of(question: str) -> str:
    """Return a question from its first word that does not only ask.

    ``Are there papers that explore word order in parsing?`` is about ``word order in parsing?``.
    """
    words = question.split()
    first = 0
    while first < len(words) - _FEWEST_LEFT and words[first].strip(",.?!").lower() in _ASKING:
        first += 1
    return " ".join(words[first:])


def find_labels(titles: Iterable[str]) -> list[str]:
    """Return the labels of shared tasks that titles have, the commonest first.

    ``SemEval-2018 Task 3`` is one. Labels that differ in case, spaces or hyphens are the same;
    equally common ones are in the order of their first title.
    """
    counts: Counter[str] = Counter()
    written: dict[str, str] = {}
    for title in titles:
        for found in {_plain(one[0]): one[0] for one in _LABEL.finditer(title)}.items():
            counts[found[0]] += 1
            written.setdefault(found[0], " ".join(found[1].split()))
    return [written[name] for name, _ in counts.most_common()]


def count_label(label: str, titles: Sequence[str]) -> int:
    """Return how many titles have a label."""
    wanted = _plain(label)
    return sum(wanted in {_plain(one[0]) for one in _LABEL.finditer(title)} for title in titles)


def _plain(label: str) -> str:
    return " ".join(re.sub(r"[\s-]+", " ", label).lower().split())
