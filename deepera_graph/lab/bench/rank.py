"""Rank a data set, a few questions at a time; what is known of a question ranked, and its cache."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from itertools import islice
from pathlib import Path
from time import perf_counter
from typing import Any, Literal, NamedTuple, get_args

from pydantic import BaseModel, ConfigDict

from deepera_graph.agents.journal import Journal
from deepera_graph.calibration.instance import Instance
from deepera_graph.lab.metrics.ranking import DatasetSummary, JudgedRanking
from deepera_graph.lab.rankers.base import Job, Note, Ranker, Ranking, candidates_of, check_ranking
from deepera_graph.schema import IntentKind
from deepera_graph.settings import ThresholdRule
from deepera_graph.settings.thresholds import Threshold

QUESTIONS_AT_ONCE = 16
_FORMAT = 4  # of cached rankings


class Step(NamedTuple):
    """How far a run is: so many questions of a data set ranked."""

    dataset: str
    ranker: str
    n_done: int
    n_questions: int


Watch = Callable[[Step], None]


# Time, calls, tokens and failures are means over the questions that were ranked together.
class QuestionRanking(BaseModel):
    """What a ranker did with one question."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    id: str
    places: list[int]
    scores: list[float]
    seconds: float
    calls: float = 0.0
    input_tokens: float = 0.0
    output_tokens: float = 0.0
    failed: float = 0.0
    problem: str = ""  # the last reason why one of them failed
    reasons: list[str] = []  # of a ranker that says why; in the order of `places`
    quotes: list[str] = []
    unproven: list[int] = []  # places that no filter may pass
    summaries: list[str] = []  # that a judge gave along with its scores
    intent: dict[str, str] = {}  # what the question asks for, where the ranker read it


@dataclass(frozen=True, slots=True)
class RankedQuestion:
    """One question as a ranker ranked it; `first` holds the candidates in first-stage order."""

    judged: JudgedRanking
    first: tuple[str, ...]
    ranked: QuestionRanking

    @classmethod
    def of(cls, candidates: JudgedRanking, ranked: QuestionRanking) -> "RankedQuestion":
        """Join a ranking with the labels of its candidates, these in first-stage order."""
        return cls(candidates.reorder(ranked.places), candidates.ranked, ranked)

    @property
    def scores(self) -> dict[str, float]:
        """Passage to score, best first; a negative one of DeepEra's means it failed."""
        return dict(zip(self.judged.ranked, self.ranked.scores, strict=True))

    @property
    def intent(self) -> IntentKind:
        """What kind of relation the question asks about; ``other`` where the ranker said none."""
        kind = self.ranked.intent.get("intent")
        return next((one for one in get_args(IntentKind) if one == kind), "other")

    def lowest_kept(self, threshold: Threshold) -> float:
        """Return the lowest score that passes, in [0, 1]; a rule sets one for this question."""
        if not isinstance(threshold, ThresholdRule):
            return threshold
        return threshold.cut([score for score in self.ranked.scores if score >= 0], self.intent)

    def keep(
        self,
        *,
        threshold: Threshold | None,
        n: int | None = None,
        order: Literal["score", "retrieval"] = "score",
    ) -> JudgedRanking:
        """Return the first *n* a filter hands on; a threshold of None filters nothing."""
        # A passage in which no quote was found is held back whatever its score.
        scores = self.scores
        unproven = {self.first[place - 1] for place in self.ranked.unproven}
        place = {id: number for number, id in enumerate(self.first)}
        chosen = sorted(scores, key=lambda id: (-scores[id], place[id]))
        if threshold is not None:
            lowest = self.lowest_kept(threshold)
            chosen = [id for id in chosen if scores[id] >= lowest and id not in unproven]
        chosen = chosen[:n]
        if order == "retrieval":
            chosen.sort(key=place.__getitem__)
        return replace(self.judged, ranked=tuple(chosen))

    def note(self, passage: str) -> Note:
        """Return what the ranker said of a passage."""
        reason, quote = self.why(passage)
        summaries, place = self.ranked.summaries, self.judged.ranked.index(passage)
        return Note(reason, quote, proven=True, summary=summaries[place] if summaries else "")

    def why(self, passage: str) -> tuple[str, str]:
        """Return the reason and the quote for a passage; empty where the ranker gave none."""
        if not self.ranked.reasons:
            return "", ""
        place = self.judged.ranked.index(passage)
        return self.ranked.reasons[place], self.ranked.quotes[place]


def rank_dataset(ranker: Ranker, dataset: Iterable[Instance]) -> Iterator[QuestionRanking]:
    """Yield what the ranker does with each question; texts of a few questions are in memory."""
    rest = iter(dataset)
    while chunk := list(islice(rest, QUESTIONS_AT_ONCE)):
        yield from _rank_chunk(ranker, chunk)


def _rank_chunk(ranker: Ranker, instances: Sequence[Instance]) -> Iterator[QuestionRanking]:
    """Yield what the ranker does with a few questions, ranked together."""
    ranker.prepare()
    jobs: list[Job] = [(one.question, candidates_of(one)) for one in instances]
    before, failed_before = ranker.usage, ranker.problems.n_failed
    start = perf_counter()
    rankings = ranker.rank_many(jobs)
    share = 1 / len(instances)
    seconds = (perf_counter() - start) * share
    after = ranker.usage
    failed = (ranker.problems.n_failed - failed_before) * share
    notes = ranker.notes if ranker.says_why else [{}] * len(instances)
    intents = ranker.intents or [{}] * len(instances)
    for instance, (_, passages), ranking, noted, intent in zip(
        instances, jobs, rankings, notes, intents, strict=True
    ):
        check_ranking(ranker.name, passages, ranking)
        yield QuestionRanking(
            id=instance.id,
            places=[int(id) for id, _ in ranking],
            scores=[score for _, score in ranking],
            seconds=seconds,
            calls=(after.calls - before.calls) * share,
            input_tokens=(after.input_tokens - before.input_tokens) * share,
            output_tokens=(after.output_tokens - before.output_tokens) * share,
            failed=failed,
            problem=ranker.problems.reason if failed else "",
            intent=dict(intent),
            **_read_notes(ranking, noted),
        )


def _read_notes(ranking: Ranking, notes: Mapping[str, Note]) -> dict[str, Any]:
    if not notes:
        return {}
    in_order = [notes[id] for id, _ in ranking]
    return {
        "reasons": [note.reason for note in in_order],
        "quotes": [note.quote for note in in_order],
        "unproven": [int(id) for id, _ in ranking if not notes[id].proven],
        "summaries": summaries if any(summaries := [one.summary for one in in_order]) else [],
    }


def _names_a_function(fingerprint: Mapping[str, Any]) -> bool:
    """Tell whether a part of a ranker is known by no more than the function that makes it."""
    parts = [one for one in fingerprint.values() if isinstance(one, Mapping)]
    return fingerprint.get("kind") == "factory" or any(map(_names_a_function, parts))


def cached_rankings(
    ranker: Ranker, data: DatasetSummary, folder: Path | None, *, retry_failed: bool = False
) -> Iterator[QuestionRanking]:
    """Yield the rankings of a data set, from the cache in *folder* as far as they are there."""
    # New ones are written as they are made, so a run that was stopped goes on where it was. Nothing
    # is cached for a ranker without a fingerprint, or of which a function is all that is known, as
    # its code may change under the same name; and nothing is read back of one that could judge no
    # passage at all.
    if folder is None or ranker.fingerprint is None or _names_a_function(ranker.fingerprint):
        yield from rank_dataset(ranker, data.dataset)
        return
    made_of = {"format": _FORMAT, "ranker": ranker.fingerprint, "dataset": data.fingerprint}
    text = json.dumps(made_of, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{sha256(text.encode()).hexdigest()}.jsonl"
    with Journal(path, made_of).open(resume=True) as journal:
        kept = {
            name: QuestionRanking.model_validate({**one, "id": one["question"]})
            for name, one in journal.entries.items()
        }
        if all(one.failed >= len(one.places) for one in kept.values()):
            kept = {}
        if retry_failed:
            kept = {name: one for name, one in kept.items() if not one.failed}
        places = [str(place) for place in range(data.n_questions)]
        left = (one for place, one in zip(places, data.dataset, strict=True) if place not in kept)
        new = rank_dataset(ranker, left)
        for place in places:
            if place in kept:
                yield kept[place]
                continue
            ranked = next(new)
            fields = ranked.model_dump(exclude={"id"}, exclude_defaults=True)
            journal.put(place, {"question": ranked.id, **fields})
            yield ranked
