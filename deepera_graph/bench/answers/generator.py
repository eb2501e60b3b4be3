"""Who turns a question and the kept passages into an answer."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from pydantic import Field

from deepera_graph.backends.llm import show
from deepera_graph.backends.llm.answers import Filled
from deepera_graph.bench.chat import Chat, together
from deepera_graph.bench.prompts import messages
from deepera_graph.errors import AnswerError, CallError, SettingsError
from deepera_graph.text.sentences import split_sentences

Task = tuple[str, Sequence[str]]


class Produced(NamedTuple):
    """An answer; `problem` says why there is none, and is empty otherwise.

    An answer may be empty without a problem: then the generator found none in the passages.
    """

    text: str
    problem: str = ""


class Generator(Protocol):
    """Answers questions from passages."""

    @property
    def name(self) -> str:
        """What a table calls it."""

    @property
    def fingerprint(self) -> Mapping[str, Any] | None:
        """All that its answers depend on, as plain data; None if that is not known."""

    def answer_many(self, tasks: Sequence[Task]) -> list[Produced]:
        """Return an answer to each (question, passages, best first), in the same order."""


class Extractive:
    """Answers with the first sentences of the best passage; no model, for tests and dry runs.

    Args:
        n_sentences: How many, >= 1.

    Raises:
        SettingsError: The number is out of range.
    """

    def __init__(self, n_sentences: int = 1) -> None:
        if n_sentences < 1:
            raise SettingsError(f"n_sentences must be >= 1, got {n_sentences}")
        self._n_sentences = n_sentences
        count = "sentence" if n_sentences == 1 else f"{n_sentences} sentences"
        self.name = f"first {count} of the best passage"

    @property
    def fingerprint(self) -> Mapping[str, Any]:
        """It depends on the number of sentences."""
        return {"kind": "extractive", "n_sentences": self._n_sentences}

    def answer_many(self, tasks: Sequence[Task]) -> list[Produced]:
        """Return the beginning of each first passage; nothing where there is no passage."""
        return [Produced(self._beginning(passages[0]) if passages else "") for _, passages in tasks]

    def _beginning(self, passage: str) -> str:
        sentences = split_sentences(passage)[: self._n_sentences]
        return passage[sentences[0].start : sentences[-1].end] if sentences else passage.strip()


class FilledText(Filled):
    """An answer."""

    answer: str = Field(description="The answer, as brief as can be; empty if there is none.")


class ChatGenerator:
    """Has a chat model answer from the passages; without any passage the answer is empty."""

    def __init__(self, chat: Chat) -> None:
        self._chat = chat
        self.name = chat.name

    @property
    def fingerprint(self) -> Mapping[str, Any] | None:
        """It depends on the model and the prompt."""
        if self._chat.fingerprint is None:
            return None
        prompt = [one.content for one in _messages("$question", ["$passage"])]
        return {"kind": "chat", "model": self._chat.fingerprint, "prompt": prompt}

    def answer_many(self, tasks: Sequence[Task]) -> list[Produced]:
        """Return the answers of the model.

        Raises:
            BackendError: No call can succeed.
            BudgetError: The budget is spent.
        """
        return together(self._answer(*task) for task in tasks)

    async def _answer(self, question: str, passages: Sequence[str]) -> Produced:
        if not passages:
            return Produced("")
        try:
            filled = await self._chat.ask("generate", _messages(question, passages), FilledText)
        except (AnswerError, CallError) as error:
            return Produced("", str(error))
        return Produced(filled.answer.strip())


class FunctionGenerator:
    """Answers with a function of yours.

    Args:
        answer: Takes a question and the texts of the passages, best first.
        name: What a table calls it.
        fingerprint: What its answers depend on, as plain data; None if not known.
    """

    def __init__(
        self,
        answer: Callable[[str, Sequence[str]], str],
        *,
        name: str,
        fingerprint: Mapping[str, Any] | None = None,
    ) -> None:
        self._answer = answer
        self.name, self.fingerprint = name, fingerprint

    def answer_many(self, tasks: Sequence[Task]) -> list[Produced]:
        """Return what the function returns; its errors are raised as they are."""
        return [Produced(self._answer(*task)) for task in tasks]


def _messages(question: str, passages: Sequence[str]) -> list[Any]:
    block = "\n\n".join(
        f"[{number}] {' '.join(show.plain(one).split())}"
        for number, one in enumerate(passages, start=1)
    )
    values = {"question": show.one_line(question), "marker": show.marker(block), "passages": block}
    return list(messages("generate", **values))
