"""The path of a question: its steps and evidence as roles see them, and answers as compared."""

import re
import unicodedata
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any, Literal

from langchain_core.documents import Document
from pydantic import BaseModel, ConfigDict, Field
from typing_extensions import TypedDict

from deepera_graph.chat.parsing import sanitize_line
from deepera_graph.judges.llm import prompt as show
from deepera_graph.pipeline.state import Span
from deepera_graph.stores.words import name_passage, title_of
from deepera_graph.text.questions import as_words, without_brackets
from deepera_graph.text.quotes import find_quote
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
    """Shows numbered sentences, and turns their numbers into words of the passages.

    A line of a passage begins with a number, so that none can begin another passage. Of a passage
    above `LONGEST_PASSAGE` characters the beginning is shown.
    """

    def __init__(self, task: Mapping[str, Any], path: str = "") -> None:
        lines: list[str] = []
        self._places: list[tuple[int, int]] = []  # passage and own number of each sentence
        self._texts: list[tuple[str, list[Sentence]]] = []
        for place, item in enumerate(task["evidence"]):
            text = item["text"][:LONGEST_PASSAGE]
            sentences = split_sentences(text)
            self._texts.append((text, sentences))
            lines.append(f"[{place + 1}] {show.one_line(item['title'])}")
            for own, sentence in enumerate(sentences, start=1):
                self._places.append((place, own))
                lines.append(f"{len(self._places)}: {sanitize_line(sentence.text)}")
            lines.append("")
        self.block = "\n".join(lines).strip()
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
    """Write the steps of a path, numbered from 1, each with its answer or that it has none."""
    # With *causes* also why it has none, and the titles of what was read for it.
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


def texts_of(passages: Sequence[Document]) -> list[EvidenceText]:
    """Return passages as roles see them."""
    return [
        {"title": str(one.metadata.get("title") or ""), "text": one.page_content}
        for one in passages
    ]


def question_with_path(question: str, path: Sequence[PathStep]) -> str:
    """Return a sub-question together with what is known, for who judges passages for it."""
    # A passage that answers the last hop only in the light of earlier answers is then evidence.
    # Source: DeepEra names evidence of several hops as an open question; this is our answer to it.
    known = [one for one in path if one["status"] in KNOWN][-_MOST_KNOWN:]
    if not known:
        return question
    told = "; ".join(f"{_without_mark(one['question'])}: {one['answer']}" for one in known)
    return f"{question} (Known from earlier steps: {told}.)"


def _without_mark(question: str) -> str:
    return question.strip().rstrip("?").strip()


class CitedRecord(TypedDict):
    """Words of a passage that carry an answer, and their character offsets in its text."""

    id: str
    title: str
    quote: str
    span: Span


def locate(
    cited: Sequence[CitedText], passages: Sequence[Document]
) -> tuple[list[CitedRecord], int]:
    """Return where cited words stand, and how many stand nowhere."""
    found: list[CitedRecord] = []
    for one in cited:
        if not 1 <= one.passage <= len(passages):
            continue
        passage = passages[one.passage - 1]
        text, quote = passage.page_content, one.text.strip()
        start = text.find(quote) if quote else -1
        end = start + len(quote)
        if start < 0:
            place = find_quote(text, quote)
            if place.start is None or place.end is None:
                continue
            start, end = place.start, place.end
        found.append(
            {
                "id": name_passage(passage),
                "title": str(passage.metadata.get("title") or ""),
                "quote": text[start:end],
                "span": [start, end],
            }
        )
    return found, len(cited) - len(found)


Form = tuple[str, ...]
_WORD = re.compile(r"[^\W_]+")
_NUMBER = re.compile(r"(?<![\w.,])[-−]?\d{1,3}(?:,\d{3})+(?:\.\d+)?(?![\w,])|[-−]?\d+(?:\.\d+)?")
_LITTLE = "a an the in on at of about approximately around circa it is was are were he she they"
_DROPPED = frozenset(_LITTLE.split())
_YEAR = "january february march april may june july august september october november december"
_MONTHS = frozenset(_YEAR.split())
_TO_TWELVE = "zero one two three four five six seven eight nine ten eleven twelve"
_NUMBER_WORDS = {word: str(number) for number, word in enumerate(_TO_TWELVE.split())}
_UNKNOWN = frozenset(
    {("unknown",), ("insufficient", "evidence"), ("not", "found"), ("not", "known"), ("none",)}
)


def normal_form(answer: str) -> Form:
    """Return what is compared of a short answer: its words without case, accents and articles."""
    # Numbers count by their value (``1,200`` is ``1200``, ``two`` is ``2``), dates in any order of
    # day, month and year, and an answer that begins with yes or no is that word alone. It is empty
    # if the answer says nothing.
    plain = unicodedata.normalize("NFKD", answer.casefold())
    bare = "".join(one for one in plain if not unicodedata.combining(one))
    numbers = _NUMBER.sub(lambda match: f" {_value(match.group())} ", bare)
    words = [_NUMBER_WORDS.get(one, one) for one in numbers.split()]
    found = [part for word in words for part in _parts(word)]
    kept = [word for word in found if word not in _DROPPED] or found
    is_number = len(kept) > 1 and kept[1][:1].isdigit()  # "No. 5"
    if kept and kept[0] in {"yes", "no"} and not is_number:
        return (kept[0],)
    if _MONTHS & set(kept) and any(word[:1].isdigit() for word in kept):
        return tuple(sorted(kept))
    form = tuple(_NUMBER_WORDS.get(word, word) for word in kept)
    return ("unknown",) if form in _UNKNOWN else form


def _parts(word: str) -> list[str]:
    """Return the words in a word; a number stays whole."""
    return [word] if re.fullmatch(r"-?\d+(?:\.\d+)?", word) else _WORD.findall(word)


def _value(number: str) -> str:
    """Write a number in one way: without separators, and without noughts at its end."""
    plain = number.replace(",", "").replace("−", "-")
    whole, _, rest = plain.partition(".")
    rest = rest.rstrip("0")
    digits = str(Decimal(whole).copy_abs())  # of any length, which `int` does not read
    sign = "-" if plain.startswith("-") and (rest or digits != "0") else ""
    return f"{sign}{digits}.{rest}" if rest else f"{sign}{digits}"


def written_title(passage: Document) -> str:
    """Return the title without brackets; nothing if there is none."""
    return without_brackets(title_of(passage))


def title_words(passage: Document) -> str:
    """Return the title as it is compared with names."""
    return as_words(written_title(passage))
