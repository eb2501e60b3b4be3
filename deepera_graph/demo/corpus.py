"""The built-in corpora: invented abstracts, questions, and labels that no judge sees.

The ordinary one reads like sections of everyday abstracts. The hard one was written against judges
that match words: its evidence avoids the words of the question, and its look-alikes repeat them.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from langchain_core.documents import Document

GOLDEN = "golden"


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoQuestion:
    """A question, and what the corpus says about its passages.

    Attributes:
        id: Of the question.
        science: Its field.
        question: What is asked.
        golden: Ids of the passages that hold the evidence; at least one.
        look_alikes: What kind of look-alike a passage is, by its id: ``background``, ``methods``,
            ``speculation``, ``other outcome``, ``other population``.
    """

    id: str
    science: str
    question: str
    golden: tuple[str, ...]
    look_alikes: dict[str, str]

    def label(self, passage_id: str) -> str:
        """Return ``golden``, ``look-alike (its kind)``, or nothing for any other passage."""
        if passage_id in self.golden:
            return GOLDEN
        kind = self.look_alikes.get(passage_id)
        return f"look-alike ({kind})" if kind else ""


def read_corpus(*, hard: bool = False) -> list[Document]:
    """Return the abstracts with their ids and titles, and nothing else of what is known of them."""
    return [
        Document(
            id=abstract["id"], page_content=abstract["text"], metadata={"title": abstract["title"]}
        )
        for abstract in _lines("corpus.jsonl", hard=hard)
    ]


def read_questions(*, hard: bool = False) -> list[DemoQuestion]:
    """Return the questions of one corpus in their order."""
    return [
        DemoQuestion(**{**fields, "golden": tuple(fields["golden"])})
        for fields in _lines("questions.jsonl", hard=hard)
    ]


def _lines(name: str, *, hard: bool) -> Iterator[dict[str, Any]]:
    file = files("deepera_graph.demo").joinpath(f"hard_{name}" if hard else name)
    with file.open(encoding="utf-8") as lines:
        yield from map(json.loads, lines)
