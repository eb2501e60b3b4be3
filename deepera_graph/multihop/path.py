"""The path of a question and its evidence: as roles see them, and as a model is shown them."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from langchain_core.documents import Document
from pydantic import BaseModel, ConfigDict, Field
from typing_extensions import TypedDict

from deepera_graph.chat.parsing import sanitize_line
from deepera_graph.judges.llm import prompt as show
from deepera_graph.text.words import Sentence, split_sentences

LONGEST_PASSAGE = 6000  # characters shown of one; about 1500 tokens
LONGEST_TITLE, LONGEST_CAUSE = 60, 200  # characters that the planner is shown of them
_NOT_FOUND = "(not found)"
_EMPTY_PATH = "(nothing was asked yet)"
_STATED: Mapping[str, str] = {
    "not_found": _NOT_FOUND,
    "failed": "(not known: this step failed)",
    "skipped_budget": "(not known: the budget was spent)",
}

KNOWN = ("answered", "uncited")  # a step that has an answer
_MOST_KNOWN = 6  # earlier answers that a judge is told

StepStatus = Literal["answered", "uncited", "not_found", "failed", "skipped_budget"]
Support = Literal["proven", "likely", "none"]


class PathStep(TypedDict):
    """A step of the path as a role sees it; `answer` is empty unless the step was answered.

    Of a step without an answer `cause` says why, and `titles` are those of the passages read.
    """

    question: str
    answer: str
    status: StepStatus
    support: Support
    cause: str
    titles: list[str]


class EvidenceText(TypedDict):
    """A passage as a role sees it; the title may be empty."""

    title: str
    text: str


class CitedText(BaseModel):
    """Words of a passage that carry an answer."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    passage: int = Field(ge=1, description="Which passage, counted from 1.")
    text: str = Field(description="Its words.")


class ShownEvidence:
    """Shows numbered sentences, and turns their numbers into words of the passages."""

    def __init__(self, task: Mapping[str, Any], path: str = "") -> None:
        self.block, self._places, self._texts = _number_sentences(task["evidence"])
        self.question = show.one_line(task["question"])
        self.marker = show.marker(f"{path}\n{self.block}", self.question)

    def cited(self, numbers: Sequence[int]) -> list[CitedText]:
        """Return the words of sentences, a run of neighbours for each passage."""
        found: dict[int, list[int]] = {}
        for number in numbers:
            if 1 <= number <= len(self._places):
                passage, own = self._places[number - 1]
                found.setdefault(passage, []).append(own)
        return [
            CitedText(passage=passage + 1, text=show.quoted(text, sentences, own))
            for passage, own in found.items()
            for text, sentences in [self._texts[passage]]
        ]


def path_block(path: Sequence[PathStep], *, causes: bool = False) -> str:
    """Write the steps of a path, numbered from 1, each with its answer or that it has none.

    With *causes* also why it has none, and the titles of what was read for it.
    """
    if not path:
        return _EMPTY_PATH
    return "\n".join(
        f"Step {number}: {show.one_line(step['question'])}\n"
        f"Answer {number}: {_stated(step)}{_why(step) if causes else ''}"
        for number, step in enumerate(path, start=1)
    )


def _stated(step: PathStep) -> str:
    said = _STATED.get(step["status"]) or show.one_line(step["answer"])
    if step["status"] == "uncited":
        return f"{said} (no sentence was named for it)"
    return f"{said} (likely, not proven)" if step["support"] == "likely" else said


def _why(step: PathStep) -> str:
    """Return why a step has no answer, and the titles of the passages read; empty if it has one."""
    if step["answer"]:
        return ""
    titles = "; ".join(_shorten(one) for one in step["titles"])
    told = f" {_shorten(step['cause'], LONGEST_CAUSE)}" if step["cause"] else ""
    return f"{told}\nRead: {titles}" if titles else told


def _shorten(text: str, n: int = LONGEST_TITLE) -> str:
    line = show.one_line(text)
    return line if len(line) <= n else f"{line[:n].rstrip()} ..."


_Text = tuple[str, list[Sentence]]


def _number_sentences(
    items: Sequence[EvidenceText],
) -> tuple[str, list[tuple[int, int]], list[_Text]]:
    """Write passages with their sentences numbered through; where each number belongs; the texts.

    A line of a passage begins with a number, so that none can begin another passage. Of a passage
    above `LONGEST_PASSAGE` characters the beginning is shown.
    """
    lines: list[str] = []
    places: list[tuple[int, int]] = []
    texts: list[_Text] = []
    for place, item in enumerate(items):
        text = item["text"][:LONGEST_PASSAGE]
        sentences = split_sentences(text)
        texts.append((text, sentences))
        lines.append(f"[{place + 1}] {show.one_line(item['title'])}")
        for own, sentence in enumerate(sentences, start=1):
            places.append((place, own))
            lines.append(f"{len(places)}: {sanitize_line(sentence.text)}")
        lines.append("")
    return "\n".join(lines).strip(), places, texts


def texts_of(passages: Sequence[Document]) -> list[EvidenceText]:
    """Return passages as roles see them."""
    return [
        {"title": str(one.metadata.get("title") or ""), "text": one.page_content}
        for one in passages
    ]


def question_with_path(question: str, path: Sequence[PathStep]) -> str:
    """Return a sub-question together with what is known, for who judges passages for it.

    A passage that answers the last hop only in the light of earlier answers is then evidence.

    Source:
        DeepEra names evidence of several hops as an open question; this is our answer to it.
    """
    known = [one for one in path if one["status"] in KNOWN][-_MOST_KNOWN:]
    if not known:
        return question
    told = "; ".join(f"{_without_mark(one['question'])}: {one['answer']}" for one in known)
    return f"{question} (Known from earlier steps: {told}.)"


def _without_mark(question: str) -> str:
    return question.strip().rstrip("?").strip()
