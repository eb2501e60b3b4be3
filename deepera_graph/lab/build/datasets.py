"""Data sets of a build as they grow: rows go to files at once, and only numbers stay in memory."""

from collections import Counter
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from random import Random
from typing import Any

from deepera_graph.calibration.instance import Context, Instance
from deepera_graph.lab.build.corpus import DropRecord
from deepera_graph.lab.build.writing.answers import contains_answer
from deepera_graph.lab.build.writing.distractors import Drafts, InstanceDraft
from deepera_graph.lab.build.writing.questions import fold
from deepera_graph.lab.construction import ReasonLog, RowSink
from deepera_graph.lab.settings import BuildPlan, Setting

DROPPED = "dropped.jsonl"
REJECTED = "rejected.jsonl"
_SHOWN = 200  # characters of an example in a message


def list_files(names: Sequence[str], plan: BuildPlan) -> list[str]:
    """Return the files of data sets, in the order of the manifest."""
    return [
        *(_name_file(name, setting) for name in names for setting in plan.settings),
        DROPPED,
        REJECTED,
    ]


def _name_file(name: str, setting: Setting) -> str:
    return f"{name}.{setting}.jsonl"


class DraftedSet:
    """The data set of one generator: its drafts are written as they come, and counted."""

    def __init__(
        self, name: str, plan: BuildPlan, rows: Mapping[str, RowSink], dropped: ReasonLog
    ) -> None:
        self.name, self._plan, self._dropped = name, plan, dropped
        self._files = {one: rows[_name_file(name, one)] for one in plan.settings}
        self._rejections = rows[REJECTED]
        self._questions: set[bytes] = set()
        self._n: Counter[str] = Counter()
        self._types: Counter[str] = Counter()
        self._rejected_by: Counter[str] = Counter()

    @property
    def n_drafts(self) -> int:
        """How many drafts it has."""
        return self._n["drafts"]

    def add(self, done: Drafts) -> None:
        """Take in the drafts of a document, but no question twice and no more than wanted."""
        self._n["documents"] += 1
        for drop in done.drops:
            self._dropped.append(drop)
        for row in done.rejected:
            self._n["rejected"] += 1
            self._rejected_by.update(reason.partition(":")[0] for reason in row.reasons)
            self._rejections.append(row)
        for draft in done.drafts:
            asked = _digest(draft.pair.question)
            if asked in self._questions:
                self._dropped.append(
                    DropRecord(
                        stage=draft.dataset,
                        document=draft.pair.golden.document,
                        reason="question-asked-twice",
                        detail=draft.pair.question,
                    )
                )
            elif self.n_drafts < self._plan.n_questions:
                self._questions.add(asked)
                self._keep(draft)

    def _keep(self, draft: InstanceDraft) -> None:
        self._n["drafts"] += 1
        self._n["found"] += draft.was_found
        self._n["elsewhere"] += _has_answer_elsewhere(draft)
        self._n["left out"] += draft.n_left_out
        self._n["small"] += len(draft.pool) < self._plan.n_contexts
        self._types.update(one.type for one in draft.distractors)
        for setting, file in self._files.items():
            file.append(make_instance(draft, setting, self._plan))

    def explain_empty(self) -> str:
        """Say what became of the documents, e.g. ``7 asked about, unusable-reply 7 (L3: ...)``."""
        counts = self._dropped.counts.get(self.name, Counter()).most_common()
        reasons = _list_counts(counts) or "none gave any"
        first = self._dropped.first[self.name, counts[0][0]] if counts else None
        example = f" ({first.document}: {first.detail[:_SHOWN] or first.reason})" if first else ""
        rejected = _list_counts(self._rejected_by.most_common())
        tail = f"; distractors rejected: {rejected}" if rejected else ""
        return f"{self._n['documents']} documents asked about, {reasons}{example}{tail}"

    def describe(self) -> dict[str, Any]:
        """Return what the manifest says of it."""
        plan, n, found = self._plan, self.n_drafts, self._n["found"]
        record: dict[str, Any] = {
            "questions": n,
            "wanted": plan.n_questions,
            "documents_asked": self._n["documents"],
            "golden": {
                "found_by_retrieval": found,
                "ceiling_of_retrieval": round(found / n, 6) if n else None,
                "inserted": n - found if plan.golden == "insert" else 0,
                "outside": n - found if plan.golden == "record" else 0,
                "answer_elsewhere": self._n["elsewhere"],
                "chunks_left_out": self._n["left out"],
            },
            "pools_below_size": self._n["small"],
        }
        if "ssli" in plan.settings:
            record["distractors"] = {
                "passed": self._types.total(),
                "by_type": dict(sorted(self._types.items())),
                "places_not_filled": n * plan.n_distractors - self._types.total(),
                "rejected": self._n["rejected"],
                "rejected_by": dict(sorted(self._rejected_by.items())),
            }
        return record


def _digest(question: str) -> bytes:
    return blake2b(fold(question).encode("utf-8", "surrogatepass"), digest_size=16).digest()


def _list_counts(counts: Sequence[tuple[str, int]]) -> str:
    return ", ".join(f"{name} {n}" for name, n in counts)


def _has_answer_elsewhere(draft: InstanceDraft) -> bool:
    """Tell whether a passage that is not golden has the words of the answer."""
    golden, pair = draft.pair.golden, draft.pair
    others = (one.chunk.text for one in draft.pool if one.chunk != golden)
    return any(contains_answer(text, pair.answer, pair.question) for text in others)


def make_instance(draft: InstanceDraft, setting: Setting, plan: BuildPlan) -> Instance:
    """Return the instance of a draft in one setting."""
    golden = draft.pair.golden
    contexts = [
        Context(
            id=one.chunk.id,
            text=one.chunk.text,
            is_golden=one.chunk == golden,
            first_stage_rank=one.rank,
            first_stage_score=one.score,
        )
        for one in draft.pool
    ]
    if setting != "base":
        contexts = _with_distractors(contexts, draft, plan)
    return Instance(
        id=draft.id,
        dataset=draft.dataset,
        setting=setting,
        subject=draft.subject,
        question=draft.pair.question,
        gold_answer=draft.pair.answer,
        contexts=tuple(contexts),
        golden_outside={} if any(one.is_golden for one in contexts) else {golden.id: 1},
    )


def _with_distractors(
    natural: list[Context], draft: InstanceDraft, plan: BuildPlan
) -> list[Context]:
    """Put distractors at random places, in the room of the last passages that are not golden."""
    n = len(draft.distractors)
    room = max(0, len(natural) + n - plan.n_contexts)
    leaving = [one for one in reversed(natural) if not one.is_golden][:room]
    pool = [one for one in natural if one not in leaving]
    rng = Random(f"{plan.seed} places {draft.id}")
    places = rng.sample(range(len(pool) + n), n)
    for place, number in sorted(zip(places, range(n), strict=True)):
        distractor = draft.distractors[number]
        context = Context(
            id=f"{draft.id}~{number + 1}",
            text=distractor.text,
            is_distractor=True,
            distractor_type=distractor.type,
            parent_id=draft.pair.golden.id,
        )
        pool.insert(place, context)
    return pool
