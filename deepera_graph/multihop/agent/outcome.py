"""What comes out of the agent: the path, step by step, and the answer with its citations."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from langchain_core.documents import Document

from deepera_graph.agents.result import AgentResult
from deepera_graph.chat.parsing import sanitize_line
from deepera_graph.multihop.agent.state import (
    AnswerStatus,
    CitedRecord,
    FinalRecord,
    StepRecord,
    StopReason,
)
from deepera_graph.multihop.path import Support
from deepera_graph.stores.words import name_passage
from deepera_graph.usage import Usage


@dataclass(frozen=True, slots=True)
class MultiHopResult(AgentResult):
    """A question of several hops, the path that was gone, and the answer.

    Attributes:
        question: What was asked.
        answer: The final answer with its citations; its `status` says whether there is one.
        steps: The sub-questions in order, each with its answer, passages and quotes.
        evidence: The passages that the final answer was drawn from.
        stopped: Why the path ended: ``complete``, ``max_steps``, ``repetition``, ``plan_failed`` or
            ``budget``.
        problems: All that went wrong on the way, in words.
        usage: Calls and tokens by role.
        seconds: How long it took; of a resumed question what was done now.
        manifest: Who answered, with which settings and versions.
    """

    question: str
    answer: FinalRecord
    steps: tuple[StepRecord, ...]
    evidence: tuple[Document, ...]
    stopped: StopReason
    problems: tuple[str, ...]
    usage: Mapping[str, Usage]
    seconds: float
    manifest: Mapping[str, Any]

    @property
    def text(self) -> str:
        """The answer; ``insufficient evidence`` if the evidence does not suffice."""
        return self.answer["text"]

    @property
    def support(self) -> Support:
        """How well the evidence supports the answer: ``proven``, ``likely`` or ``none``."""
        return self.answer["support"]

    @property
    def outcome(self) -> AnswerStatus:
        """``answered``, ``insufficient_evidence``, ``failed`` or ``budget_stop``."""
        return self.answer["status"]

    def to_documents(self) -> list[Document]:
        """Return copies of the passages that steps or the answer cite, in the order of the path.

        Each has under its key ``deepera_path`` the numbers of the steps that it answers and the
        words that were quoted of it.
        """
        passages = {name_passage(one): one for step in self.steps for one in step["passages"]}
        cited: dict[str, dict[str, Any]] = {}
        for number, evidence in self._cited():
            for one in evidence:
                about = cited.setdefault(one["id"], {"steps": [], "quotes": []})
                if number and number not in about["steps"]:
                    about["steps"].append(number)
                if one["quote"] not in about["quotes"]:
                    about["quotes"].append(one["quote"])
        return [
            passages[name].model_copy(
                update={"metadata": {**passages[name].metadata, "deepera_path": about}}
            )
            for name, about in cited.items()
        ]

    def _cited(self) -> list[tuple[int, list[CitedRecord]]]:
        return [
            *((one["number"], one["evidence"]) for one in self.steps),
            (0, self.answer["evidence"]),
        ]

    def to_text(self, *, closing: bool = True) -> str:
        """Return the path and the answer for a reader, a step after the other.

        Args:
            closing: Whether a last line tells how it ended, with calls, tokens and seconds.
        """
        lines = [sanitize_line(self.question), ""]
        for step in self.steps:
            lines += _step_lines(step)
        lines += _answer_lines(self.answer)
        lines += [f"note: {sanitize_line(one)}" for one in self.problems]
        return "\n".join([*lines, *([self._closing_line()] if closing else [])])

    def _closing_line(self) -> str:
        n, used = len(self.steps), self.total_usage
        plural = "" if n == 1 else "s"
        calls = "1 call" if used.calls == 1 else f"{used.calls} calls"
        return (
            f"{self.outcome}: {n} step{plural} ({self.stopped}), {calls}, "
            f"{used.tokens} tokens, {self.seconds:.1f} s"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, as ``deepera ask --multihop --json`` writes it."""
        return {
            "question": self.question,
            "answer": self.answer,
            "outcome": self.outcome,
            "stopped": self.stopped,
            "steps": [{**one, "passages": _plain(one["passages"])} for one in self.steps],
            "evidence": _plain(self.evidence),
            **self.plain_end(),
        }


def _plain(passages: Sequence[Document]) -> list[dict[str, Any]]:
    return [
        {"id": name_passage(one), "text": one.page_content, "metadata": one.metadata}
        for one in passages
    ]


_WIDTH = 8  # of what stands before a line
_LIKELY = " (likely, not proven)"


def _step_lines(step: StepRecord) -> list[str]:
    head = f"step {step['number']}".ljust(_WIDTH)
    lines = [f"{head}{sanitize_line(step['question'])}"]
    if step["status"] in ("answered", "uncited"):
        lines.append(f"{'':{_WIDTH}}{_marked(step['answer'], step['support'])}")
    if step["status"] != "answered":
        words = step["status"].replace("_", " ")
        lines.append(f"{'':{_WIDTH}}{words}: {sanitize_line(step['cause'])}")
    if measured := step["uncertainty"]:
        sets = ", ".join(str(one["n_sets"] or "unknown") for one in measured)
        lines.append(f"{'':{_WIDTH}}meanings of sampled answers, by batch: {sets}")
    return [*lines, *map(_cited_line, step["evidence"]), ""]


def _marked(answer: str, support: Support) -> str:
    return sanitize_line(answer) + (_LIKELY if support == "likely" else "")


def _cited_line(one: CitedRecord) -> str:
    title = f"{sanitize_line(one['title'])}: " if one["title"] else ""
    return f"{'':{_WIDTH}}[{one['id']}] {title}“{sanitize_line(one['quote'])}”"


def _answer_lines(answer: FinalRecord) -> list[str]:
    if answer["status"] != "answered":
        words = answer["status"].replace("_", " ")
        return [f"{'answer':{_WIDTH}}none ({words}: {sanitize_line(answer['cause'])})", ""]
    lines = [f"{'answer':{_WIDTH}}{_marked(answer['text'], answer['support'])}"]
    if answer["cause"]:
        lines.append(f"{'':{_WIDTH}}{sanitize_line(answer['cause'])}")
    lines += [
        f"{'':{_WIDTH}}corrects step {one['step']}: {one['before'] or 'nothing'} -> {one['after']}"
        for one in answer["corrections"]
    ]
    return [*lines, *map(_cited_line, answer["evidence"]), ""]
