"""The questions a ranker got most wrong: the passage that won, and the golden one."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import inf

from deepera_graph.bench.experiments.lab import Pass
from deepera_graph.bench.experiments.scored import Scored
from deepera_graph.bench.instance import Context, Instance
from deepera_graph.bench.rankers.ranker import RepeatedRanker

LONGEST = 1200
OUTSIDE = "not among the candidates"


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """A passage as the page shows it.

    Attributes:
        kind: ``golden``, the type of a look-alike, or ``other``.
        rank: Place in the ranking, from 1; None if it was not returned.
        first_rank: Place in the first stage, from 1.
        score: The ranker's, on its own scale; None if it was not returned.
        before, quote, after: The text, cut to 1 200 characters, with the quote in the middle.
        reason: Why, in the ranker's words; empty if it gave none.
    """

    kind: str
    rank: int | None
    first_rank: int
    score: float | None
    before: str
    quote: str
    after: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Worst:
    """One question that a ranker got wrong; `golden` is None if it was not among the candidates."""

    dataset: str
    ranker: str
    id: str
    question: str
    answer: str
    winner: Shown | None
    golden: Shown | None

    @property
    def golden_rank(self) -> str:
        """Where the golden passage stands, in words."""
        if self.golden is None:
            return OUTSIDE
        return "not returned" if self.golden.rank is None else f"rank {self.golden.rank}"


def worst_questions(passes: Iterable[Pass], n: int) -> list[Worst]:
    """Return the *n* worst questions of each pass, worst first.

    Those with the golden passage furthest down come first, then those in which the winner's score
    is furthest above. A ranker that differs from run to run is left out: its worst is chance.

    Args:
        passes: One a ranker and data set.
        n: How many of each, >= 0; fewer if the ranker got fewer wrong.

    Raises:
        DatasetError: The data cannot be read.
    """
    found = []
    by_data: dict[str, list[Pass]] = {}
    for one in passes:
        if not isinstance(one.ranker, RepeatedRanker):
            by_data.setdefault(one.material.name, []).append(one)
    for of in by_data.values():
        chosen = [(one, _worst(one.questions, n)) for one in of]
        places = {place for _, some in chosen for place in some}
        instances = {
            place: instance
            for place, instance in enumerate(of[0].material.dataset)
            if place in places
        }
        found += [
            _shown(one, one.questions[place], instances[place])
            for one, some in chosen
            for place in some
        ]
    return found


def _worst(questions: Sequence[Scored], n: int) -> list[int]:
    wrong = [place for place, one in enumerate(questions) if one.judged.golden_rank() > 1]
    return sorted(wrong, key=lambda place: _badness(questions[place]), reverse=True)[:n]


def _badness(question: Scored) -> tuple[bool, float, float]:
    """Questions whose golden passage can be reached come first: the ranker is to blame."""
    reachable = not question.judged.golden.keys().isdisjoint(question.first)
    scores = question.scores
    best = max(scores.values(), default=0.0)
    golden = max((scores[id] for id in question.judged.golden if id in scores), default=-inf)
    return reachable, question.judged.golden_rank(), best - golden


def _shown(one: Pass, question: Scored, instance: Instance) -> Worst:
    contexts = {context.id: context for context in instance.contexts}
    winner = next(iter(question.judged.ranked), None)
    return Worst(
        dataset=one.material.name,
        ranker=one.ranker.name,
        id=instance.id,
        question=instance.question,
        answer=_cut(instance.gold_answer),
        winner=None if winner is None else _passage(question, contexts[winner]),
        golden=next((_passage(question, contexts[id]) for id in _golden(question)), None),
    )


def _golden(question: Scored) -> Iterator[str]:
    """Yield the golden passages, best first, then those that were not returned."""
    yield from (id for id in question.judged.ranked if id in question.judged.golden)
    yield from (id for id in question.first if id in question.judged.golden)


def _passage(question: Scored, context: Context) -> Shown:
    id, returned = context.id, context.id in question.judged.ranked
    reason, quote = question.why(id) if returned else ("", "")
    before, quote, after = _around(context.text, quote)
    return Shown(
        kind="golden" if context.is_golden else question.labels.types.get(id, "other"),
        rank=question.judged.ranked.index(id) + 1 if returned else None,
        first_rank=question.first.index(id) + 1,
        score=question.scores.get(id),
        before=before,
        quote=quote,
        after=after,
        reason=reason,
    )


def _around(text: str, quote: str) -> tuple[str, str, str]:
    """Return the text cut in three, the quote in the middle if it is in what is shown."""
    shown = _cut(text)
    before, found, after = shown.partition(quote) if quote else (shown, "", "")
    return before, found, after


def _cut(text: str) -> str:
    if len(text) <= LONGEST:
        return text
    return f"{text[:LONGEST].rsplit(' ', 1)[0]} …"
