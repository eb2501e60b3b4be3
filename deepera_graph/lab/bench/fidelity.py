"""Whether a chat model does what the prompts ask, on a few questions with known outputs.

Every question of the set has what each prompt is to bring out: the intent, a score on the right
side of the threshold for each passage, the sentence that proves it, the direction of the evidence,
and a summary with nothing of its own.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from importlib.resources import files
from typing import NamedTuple

from langchain_core.runnables import RunnableConfig
from pydantic import BaseModel, ConfigDict

from deepera_graph.lab.studies.experiment import About, StudyResult
from deepera_graph.lab.tables import Column, Grid
from deepera_graph.reranker import EvidenceReranker
from deepera_graph.result import RankedPassage, RerankResult
from deepera_graph.schema import AnswerType, Direction, IntentKind

INTENT, ANSWER_TYPE, ENTITIES = "intent", "answer type", "entities of the question"
EVIDENCE, LOOK_ALIKE, QUOTE = "evidence passes", "look-alike is dropped", "sentence that proves it"
DIRECTION, SUMMARY = "direction", "summary in the passage's words"
FIDELITY = About.named("prompts")
_ROLES: Mapping[str, str] = {
    INTENT: "intent", ANSWER_TYPE: "intent", ENTITIES: "intent", EVIDENCE: "score",
    LOOK_ALIKE: "score", QUOTE: "score", DIRECTION: "score", SUMMARY: "summarize",
}  # fmt: skip


class GoldenPassage(BaseModel):
    """A passage, and what is to be said of it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    text: str
    evidence: bool
    says: str = ""  # words of the sentence that proves it
    direction: Direction | None = None


class GoldenOutput(BaseModel):
    """A question, and what the prompts are to bring out."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str
    question: str
    intent: IntentKind
    answer_type: AnswerType
    entities: tuple[str, ...]  # beginnings of words, one of which is to be named
    passages: tuple[GoldenPassage, ...]


class Fidelity(NamedTuple):
    """How often one thing that a prompt asks for was done."""

    role: str
    what: str
    n_right: int
    n_asked: int
    first_wrong: str  # where it was not done first, and what came instead; empty if always


class _Check(NamedTuple):
    what: str
    is_right: bool
    found: str


def golden_outputs() -> tuple[GoldenOutput, ...]:
    """Return the questions of the set."""
    text = files(__package__).joinpath("fidelity.json").read_text("utf-8")
    return tuple(GoldenOutput.model_validate(one) for one in json.loads(text))


# Source: NC-1 of the follow-up study of DeepEra, a check of the fidelity of prompts on a small set.
def check_fidelity(
    reranker: EvidenceReranker, *, config: RunnableConfig | None = None
) -> list[Fidelity]:
    """Ask about every question of the set, and count what came out as it should, by prompt."""
    # A passage that failed is wrong in all that it was asked.
    # Raises `BackendError` if the model cannot be reached or refuses the key.
    cases = golden_outputs()
    asking = reranker.with_settings(content="both", on_empty="empty", order="score", answer=False)
    jobs = [(one.question, [passage.text for passage in one.passages]) for one in cases]
    results = asking.batch(jobs, config=config)
    checks: dict[str, list[tuple[str, _Check]]] = {what: [] for what in _ROLES}
    for case, result in zip(cases, results, strict=True):
        for check in _check_case(case, result):
            checks[check.what].append((case.id, check))
    return [_count(what, found) for what, found in checks.items() if found]


def _count(what: str, found: Sequence[tuple[str, _Check]]) -> Fidelity:
    wrong = next((f"{id}: {check.found}" for id, check in found if not check.is_right), "")
    return Fidelity(
        _ROLES[what],
        what,
        sum(one.is_right for _, one in found),
        len(found),
        " ".join(wrong.split()),
    )


def _check_case(case: GoldenOutput, result: RerankResult) -> Iterator[_Check]:
    fields = result.intent["fields"]
    yield _Check(INTENT, fields["intent"] == case.intent, fields["intent"])
    kind = fields["expected_answer_type"]
    yield _Check(ANSWER_TYPE, kind == case.answer_type, kind)
    named = fields["entity_type"].lower()
    yield _Check(ENTITIES, any(one in named for one in case.entities), fields["entity_type"])
    by_text = {one.text: one for one in result.all_passages}
    for passage in case.passages:
        yield from _check_passage(passage, by_text[passage.text])


def _check_passage(wanted: GoldenPassage, found: RankedPassage) -> Iterator[_Check]:
    said = "failed" if found.score is None else f"{found.score:g}"
    if not wanted.evidence:
        yield _Check(LOOK_ALIKE, found.score is not None and not found.kept, said)
        return
    yield _Check(EVIDENCE, found.kept, f"{said}; {found.reason}")
    yield _Check(QUOTE, wanted.says in found.quote, found.quote or "none")
    if wanted.direction is not None:
        yield _Check(DIRECTION, found.direction == wanted.direction, str(found.direction))
    if found.kept:
        yield _Check(SUMMARY, found.summary_status in ("ok", "repaired"), f"{found.summary_status}")


def tabulate(found: Sequence[Fidelity]) -> StudyResult:
    """Return what was done as a table."""
    grid = Grid(
        name="fidelity",
        title="What was done as asked",
        columns=(
            *Column.several("text", "prompt", "asks for"),
            *Column.several("count", "done", "asked"),
            Column("first not done"),
        ),
        rows=tuple(found),
    )
    return StudyResult(grids=(grid,))
