"""Typed answers in a chat model's replies: read leniently, mended, or refused with the cause.

A reply is one JSON object with the field asked for. What models write instead is read, too, where
it can mean one thing only: other names of the field, a list as text or with bullets, entities as
objects, yes or no within a sentence. Nothing of a reply is ever evaluated.

Source:
    The limits are those of BioASQ task 13b, "exact answers" and "ideal answers":
    http://participants-area.bioasq.org/general_information/Task13b
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, Self

from pydantic import Field, model_validator

from deepera_graph.bioasq.phase_b.shots import (
    BULLET,
    REFUSING,
    is_about,
    is_of_writer,
    read_list,
)
from deepera_graph.chat.parsing import ReplyModel, sanitize_line
from deepera_graph.text.words import split_sentences

MOST_CANDIDATES = 5  # of a factoid
MOST_ENTITIES = 100  # of a list
LONGEST_ENTITY = 100  # characters of an entity of a list
MOST_WORDS = 200  # of an ideal answer
_YES = re.compile(r"\byes\b", re.IGNORECASE)
_NO = re.compile(r"\bno\b", re.IGNORECASE)
_OPENING = re.compile(
    r"\W*(?P<said>yes|no)\b(?!\s+(?:evidence|data|information|snippets?)\b)"
    r"(?!\s*(?:and|or|/|,|but)\s*(?:yes|no)\b)",
    re.IGNORECASE,
)
_STATED = re.compile(
    r"\b(?:answer|conclusion|verdict)\b(?:\s+(?:is|would be|must be|to .{1,40} is))?\s*[:=]?\s*"
    r"[\"'*“]*(?P<said>yes|no)\b",
    re.IGNORECASE,
)
_BRACKETS = re.compile(r"\s+[(\[](?P<inside>[^()\[\]]{1,80})[)\]]$")
_LETTER = re.compile(r"[^\W_]")
_QUOTES = "\"'`“”‘’«»*"
_NO_NAME_TEXT = """
    none unknown n/a na null not-known nil unclear unspecified not-specified not-mentioned
    not-stated not-found not-available no-answer insufficient-evidence
    """
_NO_NAME = frozenset(_NO_NAME_TEXT.split())

YES_NO_FIELDS = ("answer", "exact_answer", "exactanswer", "yesno", "yes_no", "yes/no", "decision")
NAMES_FIELDS = (
    "names", "answers", "entities", "candidates", "exact_answer", "exactanswer", "answer", "list",
    "items", "factoid",
)  # fmt: skip
TEXT_FIELDS = ("text", "ideal_answer", "idealanswer", "summary", "answer", "paragraph", "response")
_NAME_IN_OBJECT = ("name", "entity", "answer", "text", "value", "candidate", "term")


class _TypedReply(ReplyModel):
    """A reply with one field, which is also found under the names other models give it."""

    @classmethod
    def from_words(cls, words: str, prompt: str = "") -> Self | None:
        """Return what a reply without an object says; None if that cannot be told."""
        raise NotImplementedError


class YesNoReply(_TypedReply):
    """The answer to a question for yes or no."""

    answer: Literal["yes", "no"] = Field(description="The answer.")

    @model_validator(mode="before")
    @classmethod
    def _find(cls, values: Any) -> Any:
        said = _find_field(values, YES_NO_FIELDS)
        return {"answer": read_yes_no(said)}

    @classmethod
    def from_words(cls, words: str, prompt: str = "") -> Self | None:
        """Read yes or no in prose."""
        try:
            return cls.model_validate({"answer": words})
        except ValueError:
            return None


class NamesReply(_TypedReply):
    """The entities that answer a question, the best first."""

    names: list[str] = Field(description="The entities, each once, the most likely first.")

    @model_validator(mode="before")
    @classmethod
    def _find(cls, values: Any) -> Any:
        return {"names": read_names(_find_field(values, NAMES_FIELDS))}

    @classmethod
    def from_words(cls, words: str, prompt: str = "") -> Self | None:
        """Read a JSON list, or a list as text; a paragraph is none."""
        try:
            return cls.model_validate({"names": read_list(words, prompt)})
        except ValueError:
            return None


class IdealReply(_TypedReply):
    """An answer in sentences."""

    text: str = Field(description="The answer, one paragraph of at most 200 words.")

    @model_validator(mode="before")
    @classmethod
    def _find(cls, values: Any) -> Any:
        return {"text": read_ideal(_find_field(values, TEXT_FIELDS))}

    @classmethod
    def from_words(cls, words: str, prompt: str = "") -> Self | None:
        """Take the words for the answer, unless they refuse one or are about something else."""
        try:
            found = cls.model_validate({"text": words})
        except ValueError:
            return None
        return found if not prompt or is_about(prompt, [found.text]) else None


def _find_field(values: Any, names: Sequence[str]) -> Any:
    """Return what stands under the first of the names, whatever its case; raise without any."""
    if not isinstance(values, Mapping):
        raise ValueError("this is not an object")
    plain = {str(name).lower().replace(" ", "_"): value for name, value in values.items()}
    for name in names:
        if name in plain:
            found = plain[name]
            if isinstance(found, Mapping):  # one object more around it
                return _find_field(found, names)
            return found
    raise ValueError(f"the field {names[0]!r} is missing")


def read_yes_no(said: Any) -> str:
    """Return ``yes`` or ``no``.

    Raises:
        ValueError: It is neither, or both.
    """
    if isinstance(said, bool):
        return "yes" if said else "no"
    if isinstance(said, list) and len(said) == 1:
        return read_yes_no(said[0])
    if not isinstance(said, str):
        raise ValueError("this is neither yes nor no")
    opening = _OPENING.match(said)
    if opening:
        return opening["said"].lower()
    stated = {one["said"].lower() for one in _STATED.finditer(said)}
    if len(stated) == 1:
        return stated.pop()
    has_yes, has_no = bool(_YES.search(said)), bool(_NO.search(said))
    if has_yes and not has_no:
        return "yes"
    raise ValueError("this says both yes and no" if has_yes else "this is neither yes nor no")


def read_names(said: Any) -> list[str]:
    """Return entities as they were written, in their order; of an inner list the first name.

    Raises:
        ValueError: There is none, it is no list, or an item is a sentence of the writer.
    """
    if isinstance(said, str):
        said = read_list(said)
    if not isinstance(said, list):
        raise ValueError("this is not a list of names")
    names = [name for one in said for name in _name_of(one)]
    if not names:
        raise ValueError("there is no name in it")
    return names


def _name_of(one: Any) -> list[str]:
    if isinstance(one, list):
        found = [name for each in one for name in _name_of(each)]
        return found[:1]
    if isinstance(one, Mapping):
        plain = {str(name).lower(): value for name, value in one.items()}
        found = [plain[name] for name in _NAME_IN_OBJECT if name in plain]
        return _name_of(found[0]) if found else []
    if isinstance(one, bool) or one is None:
        return []
    if isinstance(one, int | float):
        return [str(one)]
    if not isinstance(one, str):
        return []
    return _name_in(one)


def _name_in(text: str) -> list[str]:
    name = clean_name(text)
    is_name = bool(_LETTER.search(name)) and name.lower().replace(" ", "-") not in _NO_NAME
    if not is_name or REFUSING.match(name):
        return []
    if is_of_writer(name):
        raise ValueError("an item is a sentence, not a name")
    return [name]


def clean_name(text: str) -> str:
    """Return a name in one line, without its bullet, its quotes and a full stop at its end."""
    name = BULLET.sub("", sanitize_line(text)).strip().strip(_QUOTES).strip()
    if name.endswith(".") and name.count(".") == 1:
        name = name[:-1]
    return name.strip().strip(",;").strip()


def split_synonym(name: str) -> tuple[str, str]:
    """Return a name and the synonym in brackets after it; empty if there is none.

    What stands in brackets within a name, as in ``poly(ADP-ribose)``, is a part of it.
    """
    found = _BRACKETS.search(name)
    if found is None or not name[: found.start()].strip():
        return name, ""
    return name[: found.start()].strip(), found["inside"].strip()


def read_ideal(said: Any) -> str:
    """Return an answer in one paragraph.

    Raises:
        ValueError: It is empty, a refusal, or no text.
    """
    if isinstance(said, list) and said and all(isinstance(one, str) for one in said):
        said = " ".join(said)
    if not isinstance(said, str):
        raise ValueError("this is not a text")
    lines = [BULLET.sub("", one).strip() for one in said.splitlines()]
    text = sanitize_line(" ".join(one for one in lines if one)).strip().strip('"“”`')
    text = re.sub(
        r"^(?:\*\*)?(?:ideal answer|answer|summary)(?:\*\*)?\s*:\s*", "", text, flags=re.I
    )
    if not re.search(r"\w\W+\w", text):
        raise ValueError("an answer must have words")
    if REFUSING.match(text):
        raise ValueError("this refuses an answer")
    return text.replace("**", "")


def fit_names(names: Iterable[str], *, factoid: bool) -> tuple[list[str], list[str]]:
    """Return entities as a submission may have them, and what had to be changed for that.

    A synonym in brackets is left out, for the measures compare the whole text; so is what is given
    twice, and what is more or longer than BioASQ takes.
    """
    cleaned = [split_synonym(clean_name(one)) for one in names]
    notes = [f"left out the synonym in brackets: {one!r:.60}" for _, one in cleaned if one]
    short = [name for name, _ in cleaned if 0 < len(name) <= LONGEST_ENTITY]
    n_long = sum(len(name) > LONGEST_ENTITY for name, _ in cleaned)
    kept: dict[str, str] = {}
    for name in short:
        kept.setdefault(name.lower(), name)
    most = MOST_CANDIDATES if factoid else MOST_ENTITIES
    told = {
        f"left out {n_long} above {LONGEST_ENTITY} characters": n_long > 0,
        f"left out {len(short) - len(kept)} given twice": len(short) > len(kept),
        f"{len(kept)} names: the first {most} are kept": len(kept) > most,
    }
    return [*kept.values()][:most], [*notes, *(one for one, holds in told.items() if holds)]


def fit_ideal(text: str) -> tuple[str, list[str]]:
    """Return an ideal answer of at most 200 words, cut after a sentence, and whether it was cut.

    A first sentence above 200 words is cut after a word.
    """
    n_words = len(text.split())
    if n_words <= MOST_WORDS:
        return text, []
    end = 0
    for sentence in split_sentences(text, longest=len(text)):
        if len(text[: sentence.end].split()) > MOST_WORDS:
            break
        end = sentence.end
    note = f"cut from {n_words} words to {{}}: {MOST_WORDS} are allowed"
    kept = text[:end] if end else " ".join(text.split()[:MOST_WORDS])
    return kept, [note.format(len(kept.split()))]
