"""Questions: four of each topic, reviewed, the same only once; or those of a file."""

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b, sha256
from pathlib import Path

import numpy as np
from langchain_core.embeddings import Embeddings

from deepera_graph.errors import AnswerError, CallError, InputError
from deepera_graph.lab.asking import StepModel
from deepera_graph.lab.quest.asking import ask_classes, ask_questions, ask_review
from deepera_graph.lab.quest.records import QuestQuestion, Rejection, Topic
from deepera_graph.lab.settings import QuestPlan
from deepera_graph.literature.paper_keys import normalize_id, title_key
from deepera_graph.settings.budget import ado_many
from deepera_graph.stores.embeddings import unit_rows
from deepera_graph.text.jsonl import read_places


def read_questions(path: Path) -> tuple[QuestQuestion, ...]:
    """Read questions, as ``questions.jsonl`` has them; those of `deepera-lab study papers` do, too.

    Raises:
        InputError: A line is none, or an id comes twice; the message names the place.
    """
    found: dict[str, QuestQuestion] = {}
    for where, line in read_places(path):
        try:
            one = QuestQuestion.from_dict(line)
        except InputError as error:
            raise InputError(f"{where}: {error}") from error
        if one.id in found:
            raise InputError(f"{where}: the id {one.id!r} comes twice")
        found[one.id] = one
    if not found:
        raise InputError(f"{path}: no questions found")
    return tuple(found.values())


def read_candidates(path: Path, questions: Sequence[QuestQuestion]) -> dict[str, list[str]]:
    """Read papers by question: lines ``{"id" or "query_id", "ranked" or "paper_ids": [ids]}``."""
    # A run that `deepera-lab study papers` has written begins with a line of its own, which is
    # passed over; of a query that was searched twice the last line counts.
    known = {one.id for one in questions}
    found: dict[str, list[str]] = {}
    is_run = False
    for where, line in read_places(path):
        if not found and "ran" in line and "id" not in line:
            is_run = True
            continue
        id = line.get("query_id", line.get("id"))
        if not isinstance(id, str) or id not in known:
            raise InputError(f"{where}: unknown question id {id!r:.80}")
        ids = line.get("paper_ids", line.get("ranked", [line.get("paper_id")]))
        if not isinstance(ids, list) or not all(isinstance(one, str) and one for one in ids):
            raise InputError(f"{where}: 'ranked' must be a list of ids, got {ids!r:.80}")
        papers = [normalize_id(one) for one in ids]
        found[id] = papers if is_run else [*found.get(id, ()), *papers]
    if missing := sorted(known - found.keys()):
        raise InputError(f"{path}: no papers for the question {missing[0]!r}")
    return found


def hash_candidates(candidates: Mapping[str, Sequence[str]]) -> str:
    """Return the SHA-256 of papers by question, whatever their order."""
    plain = {id: sorted(set(papers)) for id, papers in candidates.items()}
    return sha256(json.dumps(plain, sort_keys=True).encode()).hexdigest()


_DIGITS = 4


@dataclass(slots=True)
class Written:
    """The questions of topics, in their order, and what was rejected."""

    questions: list[QuestQuestion] = field(default_factory=list)  # those that passed
    # topics and questions that did not, each with its reason
    rejected: list[Rejection] = field(default_factory=list)
    n_written: int = 0  # how many questions were written
    # topics whose calls failed, with the cause; another run asks again
    failed: dict[str, str] = field(default_factory=dict)

    def add(self, other: "Written") -> None:
        """Take in those of another topic."""
        self.questions += other.questions
        self.rejected += other.rejected
        self.n_written += other.n_written
        self.failed |= other.failed


async def write_questions(
    topics: Sequence[Topic],
    model: StepModel,
    plan: QuestPlan,
    *,
    embeddings: Embeddings | None,
    at_once: int,
    on_topic: Callable[[], None] = lambda: None,
) -> Written:
    """Write the questions of topics, have them reviewed, and leave out what is asked twice.

    Raises:
        BackendError: The model can be asked nothing.
        BudgetError: The budget is spent; what is in flight ends.
    """

    async def write(topic: Topic) -> Written:
        found = await _write_topic(topic, model, plan)
        on_topic()
        return found

    whole = Written()
    for one in await ado_many(write, topics, at_once, paid=Exception):
        whole.add(one)
    kept, repeated = await asyncio.to_thread(drop_repeated, whole.questions, plan, embeddings)
    whole.questions, whole.rejected = kept, whole.rejected + repeated
    return whole


async def _write_topic(topic: Topic, model: StepModel, plan: QuestPlan) -> Written:
    found = Written()
    try:
        categories: tuple[str, ...] = ()
        if plan.categories:
            categories, others = await ask_classes(model, topic, plan.categories)
            if not categories:
                named = f"not in the list: {', '.join(others):.200}" if others else "none fits"
                found.rejected.append(_reject_topic(topic, "no_category", named))
                return found
        written = await ask_questions(model, topic, categories)
        found.n_written = len(written)
        found.rejected += [
            Rejection.of("question", one, "bad_question", problem)
            for one, problem in written
            if problem
        ]
        await _review([one for one, problem in written if not problem], model, found)
    except AnswerError as error:
        found.rejected.append(_reject_topic(topic, "unusable_reply", str(error)))
    except CallError as error:
        found.failed[topic.id] = str(error)
    return found


def _reject_topic(topic: Topic, reason: str, detail: str = "") -> Rejection:
    return Rejection(stage="topic", topic=topic.path, reason=reason, detail=detail)


async def _review(questions: Sequence[QuestQuestion], model: StepModel, found: Written) -> None:
    if not questions:
        return
    said = await ask_review(model, questions)
    for one in questions:
        flaw, why = said.get(one.id, ("not_reviewed", "the review left it out"))
        if flaw == "ok":
            found.questions.append(one)
        else:
            found.rejected.append(Rejection.of("review", one, flaw, why))


def drop_repeated(
    questions: Sequence[QuestQuestion], plan: QuestPlan, embeddings: Embeddings | None
) -> tuple[list[QuestQuestion], list[Rejection]]:
    """Return the questions without those that an earlier one asks already."""
    # Two are the same if they are equal but for case and punctuation (by a hash of what is left),
    # or if they have the same intent and the cosine of their embeddings is at least that of the
    # plan. Embeddings hardly tell "with X" from "without X", and these are of different intents.
    kept: list[QuestQuestion] = []
    rejected: list[Rejection] = []
    first: dict[bytes, QuestQuestion] = {}
    for one in questions:
        asked = blake2b(title_key(one.query).encode(), digest_size=16).digest()
        same = first.setdefault(asked, one)
        if same is one:
            kept.append(one)
        else:
            rejected.append(
                Rejection.of("duplicate", one, "duplicate", f"asks what {same.id} asks")
            )
    if embeddings is None or len(kept) < 2:
        return kept, rejected
    return _drop_near(kept, rejected, plan.duplicate, embeddings)


def _drop_near(
    questions: list[QuestQuestion], rejected: list[Rejection], least: float, embeddings: Embeddings
) -> tuple[list[QuestQuestion], list[Rejection]]:
    rows = np.asarray(unit_rows(embeddings.embed_documents([one.query for one in questions])))
    kept: dict[str, list[int]] = {}
    passed = []
    for place, one in enumerate(questions):
        earlier = kept.setdefault(one.intent, [])
        cosines = np.round(rows[earlier] @ rows[place], _DIGITS)
        if earlier and float(cosines.max()) >= least:
            same = questions[earlier[int(cosines.argmax())]]
            detail = f"cosine {float(cosines.max()):.3f} with {same.id}"
            rejected.append(Rejection.of("duplicate", one, "duplicate", detail))
        else:
            earlier.append(place)
            passed.append(one)
    return passed, rejected
