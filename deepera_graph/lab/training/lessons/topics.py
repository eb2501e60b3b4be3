"""Topics written for training: sibling questions, the evidence of several studies, look-alikes."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random

from pydantic import BaseModel, ConfigDict, Field

from deepera_graph.calibration.instance import Context, DatasetError, Instance, read_rows
from deepera_graph.text.jsonl import has_fields

_N_OTHERS = 12  # passages of other topics beside a question's own
_BREAK = re.compile(r"(?<=[.!?])\s+")


class _Evidence(BaseModel):
    model_config = ConfigDict(extra="ignore")

    text: str = Field(min_length=1)
    proof: int | None = Field(default=None, ge=0)  # the sentence that answers, from 0


class _Question(BaseModel):
    model_config = ConfigDict(extra="ignore")

    question: str = Field(min_length=1)
    evidence: list[_Evidence] = Field(min_length=1)
    near_misses: list[str] = []  # findings in the question's words that do not answer it


class _Topic(BaseModel):
    model_config = ConfigDict(extra="ignore")

    topic: str
    field: str = ""
    questions: list[_Question] = Field(min_length=1)
    background: str = ""
    protocol: str = ""
    speculation: str = ""


def is_topics(path: Path) -> bool:
    """Tell whether a file holds topics: its first line has a topic and its questions."""
    return has_fields(path, "topic", "questions")


def read_topics(path: Path) -> Iterator[Instance]:
    """Yield each question with its evidence, that of its siblings, and passages of other topics.

    The other topics' are drawn by chance, always the same ones for the same file.
    """
    topics = list(read_rows(path, _Topic))
    texts = [(number, text) for number, one in enumerate(topics) for text in _all_texts(one)]
    chance = Random(len(texts))
    for number, topic in enumerate(topics):
        strange = [text for place, text in texts if place != number]
        for question in topic.questions:
            others = chance.sample(strange, min(_N_OTHERS, len(strange)))
            contexts = [*_own_contexts(topic, question)]
            contexts += [Context(id="0", text=text) for text in others]
            yield _instance(path, topic, question, contexts)


def _instance(
    path: Path, topic: _Topic, question: _Question, contexts: Sequence[Context]
) -> Instance:
    named = [one.model_copy(update={"id": str(place)}) for place, one in enumerate(contexts)]
    try:
        return Instance(
            id=f"{topic.topic}: {question.question}",
            dataset=path.stem,
            subject=topic.field,
            question=question.question,
            contexts=tuple(named),
        )
    except ValueError as error:
        raise DatasetError(f"{path}: question {question.question!r}: {error}") from error


def _own_contexts(topic: _Topic, question: _Question) -> Iterator[Context]:
    for one in question.evidence:
        yield Context(id="0", text=one.text, is_golden=True)
    siblings = [one for other in topic.questions if other is not question for one in other.evidence]
    kinds = {
        "near miss": question.near_misses,
        "sibling": [one.text for one in siblings],
        "setting": _setting(topic),
    }
    for kind, texts in kinds.items():
        for text in texts:
            yield Context(id="0", text=text, is_distractor=True, distractor_type=kind)


def _all_texts(topic: _Topic) -> list[str]:
    return [one.text for question in topic.questions for one in question.evidence] + _setting(topic)


def _setting(topic: _Topic) -> list[str]:
    return [text for text in (topic.background, topic.protocol, topic.speculation) if text]


def read_proofs(path: Path) -> Iterator[tuple[str, tuple[str, ...], frozenset[int]]]:
    """Yield question, sentences and the place of the one that is marked as the proof."""
    for topic in read_rows(path, _Topic):
        for question in topic.questions:
            for one in question.evidence:
                sentences = tuple(_BREAK.split(one.text))
                if one.proof is not None and one.proof < len(sentences) > 1:
                    yield question.question, sentences, frozenset([one.proof])
