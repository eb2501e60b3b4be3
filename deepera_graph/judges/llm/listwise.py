"""Sorting a list of passages with a chat model: what it is shown, and how its order is read."""

import re
from collections.abc import Iterable, Sequence
from typing import Annotated, NamedTuple

from langchain_core.messages import BaseMessage
from pydantic import BeforeValidator, Field

from deepera_graph import prompts
from deepera_graph.chat.parsing import ReplyModel
from deepera_graph.judges.llm import prompt as show
from deepera_graph.schema import Window

MAX_WORDS = 300  # of a passage: RankGPT, Sun et al. (2023), in their code


_NUMBER = re.compile(r"\W*(\d{1,9})\W*")
NO_NUMBER = -1


def read_number(said: object) -> object:
    """Read a number however it is written, as ``[3]``; what is none becomes that of no passage."""
    if isinstance(said, str):
        found = _NUMBER.fullmatch(said)
        return int(found[1]) if found else NO_NUMBER
    return said if isinstance(said, int) and not isinstance(said, bool) else NO_NUMBER


class FilledOrder(ReplyModel):
    """An order; one entry that is no number spoils no other."""

    order: list[Annotated[int, BeforeValidator(read_number)]] = Field(
        description="Numbers of all passages, the most relevant first."
    )


class ReadOrder(NamedTuple):
    """A permutation of 1 to n that was made of what a model said, and what was wrong with that."""

    order: list[int]
    n_missing: int  # passages that it did not name; they come last, in their former order
    n_repeated: int  # numbers that it gave again
    n_invented: int  # numbers of no passage, those given again not counted

    @property
    def names_none(self) -> bool:
        """Whether nothing that was said is of use."""
        return self.n_missing == len(self.order) > 0


def read_order(said: Iterable[int], n: int) -> ReadOrder:
    """Make a permutation of 1 to *n*: unknown numbers and repeats go, missing ones come last.

    Source:
        Sun et al. (2023), Is ChatGPT Good at Search?, code: `clean_response` and
        `receive_permutation`.
    """
    numbers = list(said)
    distinct = dict.fromkeys(numbers)
    named = [place for place in distinct if 1 <= place <= n]
    missing = [place for place in range(1, n + 1) if place not in distinct]
    return ReadOrder(
        order=[*named, *missing],
        n_missing=len(missing),
        n_repeated=len(numbers) - len(distinct),
        n_invented=len(distinct) - len(named),
    )


def fill_listwise(
    question: str, passages: Sequence[Window], *, max_words: int = MAX_WORDS
) -> list[BaseMessage]:
    """Ask for the order of passages, which are numbered from 1, a line each."""
    block = "\n\n".join(
        f"[{number}] {format_line(one, max_words=max_words)}"
        for number, one in enumerate(passages, start=1)
    )
    shown = {"question": show.one_line(question), "marker": show.marker(block)}
    return prompts.messages("listwise", passages=block, n=str(len(passages)), **shown)


def format_line(passage: Window, *, max_words: int) -> str:
    """Return a passage in one line, its title and section first, cut after so many words."""
    head = [f"{text}." for _, text in list_headings(passage)]
    words = show.plain(passage["text"]).split()
    tail = " …" if len(words) > max_words else ""
    return " ".join([*head, *words[:max_words]]) + tail


def list_headings(passage: Window) -> list[tuple[str, str]]:
    """Return the title and the section of a passage, as far as it has them."""
    pairs = (("Title", passage["title"]), ("Section", passage["section"]))
    return [(name, show.one_line(text)) for name, text in pairs if text.strip()]
