"""Typed answers in a chat model's replies: read leniently, mended, or refused with the cause.

A reply is one JSON object with the field asked for. What models write instead is read, too, where
it can mean one thing only: other names of the field, a list as text or with bullets, entities as
objects, yes or no within a sentence. Nothing of a reply is ever evaluated.

Source:
    The limits are those of BioASQ task 13b, "exact answers" and "ideal answers":
    http://participants-area.bioasq.org/general_information/Task13b
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, Self

from pydantic import Field, model_validator

from deepera_graph.bioasq.phase_b import compile_lines
from deepera_graph.bioasq.settings import (
    MAX_CANDIDATES,
    MAX_ENTITIES,
    MAX_IDEAL_WORDS,
    MAX_NAME_CHARS,
)
from deepera_graph.chat.parsing import ReplyModel, sanitize_line
from deepera_graph.text.plain import read_lists
from deepera_graph.text.words import STOP_WORDS, content_words, split_sentences, stem, stems

_WORDS = read_lists(__file__, "words.toml")["replies"]
_FIELDS: Mapping[str, Sequence[str]] = _WORDS["fields"]
_NUMBER_WORDS, _NO_NAME = frozenset(_WORDS["numbers"]), frozenset(_WORDS["no_names"])
REFUSING = compile_lines(_WORDS["refusing"])
BULLET = re.compile(r"^\s*(?:[-*•–·]|\(?\d{1,3}[.):]|\(?[a-z][.)])\s+", re.IGNORECASE)
_IN_TEXT = re.compile(r"\s*(?:;|\n|\|)\s*")
_BY_COMMA = re.compile(r"\s*,\s*(?:and\s+|or\s+)?|\s+(?:and|or)\s+")
_LEAD = compile_lines(_WORDS["lead"], flags=re.IGNORECASE | re.DOTALL)
_LEAD_OF_SENTENCE = compile_lines(_WORDS["lead_of_sentence"])
_WRITER, _OTHERS, _FINITE, _RELATIVE = (
    compile_lines(_WORDS[name], flags=0) for name in ("writer", "others", "finite", "relative")
)
_OPENING, _STATED = compile_lines(_WORDS["opening"]), compile_lines(_WORDS["stated"])
_YES, _NO = (re.compile(rf"\b{said}\b", re.IGNORECASE) for said in ("yes", "no"))
_SYMBOL = re.compile(r"\d|\w[A-Z]|[Α-ω]")
_BRACKETS = re.compile(r"\s+[(\[](?P<inside>[^()\[\]]{1,80})[)\]]$")
_LETTER = re.compile(r"[^\W_]")
_QUOTES = "\"'`“”‘’«»*"
_IN_NAME = 2  # words of one item with a full stop; with more it is a sentence
_STOP_WORDS_IN_NAME = 2
_STOP_WORDS_BESIDE = 2  # with a relative clause, as in "proteins that are degraded by ZIR3"
_LONGEST_NAME = 12  # words of an item of a list in text; what is longer is a sentence
_COMMON = 4  # letters that two stems share at their beginning to count as one


class _TypedReply(ReplyModel):
    """A reply with one field, which is also found under the names other models give it."""

    @model_validator(mode="before")
    @classmethod
    def _find(cls, values: Any) -> Any:
        [field] = cls.model_fields
        return {field: cls._read(_find_field(values, _FIELDS[field]))}

    @classmethod
    def from_words(cls, words: str, prompt: str = "") -> Self | None:
        """Return what a reply without an object says; None if that cannot be told."""
        [field] = cls.model_fields
        try:
            return cls.model_validate({field: cls._read_prose(words, prompt)})
        except ValueError:
            return None

    @classmethod
    def _read(cls, said: Any) -> Any:
        """Return the value of the field; raise `ValueError` if it cannot be told."""
        raise NotImplementedError

    @classmethod
    def _read_prose(cls, words: str, prompt: str) -> Any:
        """Return what of a reply without an object is read as the field."""
        return words


class YesNoReply(_TypedReply):
    """The answer to a question for yes or no."""

    answer: Literal["yes", "no"] = Field(description="The answer.")

    @classmethod
    def _read(cls, said: Any) -> str:
        return read_yes_no(said)


class NamesReply(_TypedReply):
    """The entities that answer a question, the best first."""

    names: list[str] = Field(description="The entities, each once, the most likely first.")

    @classmethod
    def _read(cls, said: Any) -> list[str]:
        return read_names(said)

    @classmethod
    def _read_prose(cls, words: str, prompt: str) -> list[Any]:
        """Read a JSON list, or a list as text; a paragraph is none."""
        return read_list(words, prompt)


class IdealReply(_TypedReply):
    """An answer in sentences."""

    text: str = Field(description="The answer, one paragraph of at most 200 words.")

    @classmethod
    def _read(cls, said: Any) -> str:
        return read_ideal(said)

    @classmethod
    def _read_prose(cls, words: str, prompt: str) -> str:
        """Take the words for the answer, unless they refuse one or are about something else."""
        if prompt and not is_about(prompt, [read_ideal(words)]):
            raise ValueError("it has no word of the question or the snippets")
        return words


def _find_field(values: Any, names: Sequence[str]) -> Any:
    """Return what stands under the first of the names, whatever its case; raise without any."""
    if not isinstance(values, Mapping):
        raise ValueError("this is not an object")
    plain = {str(name).lower().replace(" ", "_"): value for name, value in values.items()}
    for name in names:
        if name in plain:
            found = plain[name]  # perhaps with one object more around it
            return _find_field(found, names) if isinstance(found, Mapping) else found
    raise ValueError(f"the field {names[0]!r} is missing")


def read_yes_no(said: Any) -> str:
    """Return ``yes`` or ``no``; `ValueError` if it is neither, or both."""
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
    """Return entities as they were written, in their order; of an inner list the first name."""
    if isinstance(said, str):
        said = read_list(said)
    if not isinstance(said, list):
        raise ValueError("this is not a list of names")
    names = [name for one in said for name in _name_of(one)]
    if not names:
        raise ValueError("it contains no name")
    return names


def _name_of(one: Any) -> list[str]:
    if isinstance(one, list):
        return [name for each in one for name in _name_of(each)][:1]
    if isinstance(one, Mapping):
        plain = {str(name).lower(): value for name, value in one.items()}
        found = [plain[name] for name in _WORDS["name_in_object"] if name in plain]
        return _name_of(found[0]) if found else []
    if isinstance(one, int | float) and not isinstance(one, bool):
        return [str(one)]
    return _name_in(one) if isinstance(one, str) else []


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
    """Return a name and the synonym in brackets after it; empty if there is none."""
    # What stands in brackets within a name, as in ``poly(ADP-ribose)``, is a part of it.
    found = _BRACKETS.search(name)
    if found is None or not name[: found.start()].strip():
        return name, ""
    return name[: found.start()].strip(), found["inside"].strip()


def read_ideal(said: Any) -> str:
    """Return an answer in one paragraph; `ValueError` if it is empty, a refusal, or no text."""
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
    """Return entities as a submission may have them, and what had to be changed for that."""
    # A synonym in brackets is left out, for the measures compare the whole text; so is what is
    # given twice, and what is more or longer than BioASQ takes.
    cleaned = [split_synonym(clean_name(one)) for one in names]
    notes = [f"left out the synonym in brackets: {one!r:.60}" for _, one in cleaned if one]
    short = [name for name, _ in cleaned if 0 < len(name) <= MAX_NAME_CHARS]
    n_long = sum(len(name) > MAX_NAME_CHARS for name, _ in cleaned)
    kept: dict[str, str] = {}
    for name in short:
        kept.setdefault(name.lower(), name)
    most = MAX_CANDIDATES if factoid else MAX_ENTITIES
    told = {
        f"left out {n_long} above {MAX_NAME_CHARS} characters": n_long > 0,
        f"left out {len(short) - len(kept)} given twice": len(short) > len(kept),
        f"{len(kept)} names: the first {most} are kept": len(kept) > most,
    }
    return [*kept.values()][:most], [*notes, *(one for one, holds in told.items() if holds)]


def fit_ideal(text: str) -> tuple[str, list[str]]:
    """Return an ideal answer of at most 200 words, cut after a sentence, and whether it was cut."""
    # A first sentence above 200 words is cut after a word.
    n_words = len(text.split())
    if n_words <= MAX_IDEAL_WORDS:
        return text, []
    end = 0
    for sentence in split_sentences(text, longest=len(text)):
        if len(text[: sentence.end].split()) > MAX_IDEAL_WORDS:
            break
        end = sentence.end
    kept = text[:end] if end else " ".join(text.split()[:MAX_IDEAL_WORDS])
    return kept, [f"cut from {n_words} words to {len(kept.split())}: {MAX_IDEAL_WORDS} are allowed"]


def read_list(text: str, prompt: str = "") -> list[Any]:
    """Return the items of a list written as text: JSON, bullets, lines, semicolons or commas."""
    # One that is neither JSON nor has bullets must repeat a word of the prompt that it answers, or
    # have a symbol, such as that of a gene, or a number. `ValueError` for prose and refusals.
    written = text.strip()
    found = re.search(r"\[.*\]", written, re.DOTALL)
    as_json = _read_json_list(found.group()) if found else None
    if as_json is not None:
        return as_json
    if found and written.startswith("["):
        return [one for one in _BY_COMMA.split(found.group()[1:-1]) if one.strip()]
    if REFUSING.match(written):
        raise ValueError("this refuses an answer")
    if bullets := [one for one in written.splitlines() if BULLET.match(one)]:
        return [*bullets]
    items = _split_list(_LEAD_OF_SENTENCE.sub("", _LEAD.sub("", written)))
    if prompt and items and not is_about(prompt, items):
        raise ValueError("no name in it has a word of the question or the snippets")
    return [*items]


def _read_json_list(text: str) -> list[Any] | None:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, list) else None


def _split_list(text: str) -> list[str]:
    """Cut at semicolons and lines or, where there are none, at commas; prose is refused."""
    items = [one for one in _IN_TEXT.split(text) if one.strip()]
    if len(items) == 1:
        items = [one for one in _BY_COMMA.split(text) if one.strip()]
    is_sentence = text.rstrip().endswith(".") and len(items) == 1 and len(text.split()) > _IN_NAME
    is_clause = any(map(_is_clause, items)) or text.rstrip().endswith(("?", "!"))
    if is_sentence or is_clause or len(split_sentences(text)) > 1:
        raise ValueError("this is prose, not a list of names")
    return items


def _is_clause(item: str) -> bool:
    """Tell whether an item of a list in text is a part of prose."""
    words = item.lower().split()
    if len(words) > _LONGEST_NAME or is_of_writer(item):
        return True
    is_relative = bool(_RELATIVE.search(item))
    most = _STOP_WORDS_IN_NAME + _STOP_WORDS_BESIDE * is_relative
    if sum(word in STOP_WORDS for word in words) > most:
        return True
    return bool(_FINITE.search(item)) and not is_relative


def is_of_writer(item: str) -> bool:
    """Tell whether it is a sentence of the writer or to the reader, as "I like it", and no name."""
    return bool(_WRITER.match(item.strip()) or _OTHERS.match(item.strip()))


def is_about(prompt: str, items: Sequence[str]) -> bool:
    """Tell whether one of the items repeats a word of the prompt, or is a symbol or a number."""
    if any(_SYMBOL.search(one) for one in items):
        return True
    named = {word for one in items for word in content_words(one)}
    shown = {one[:_COMMON] for one in stems(prompt)}
    return not named or bool(
        named & _NUMBER_WORDS or shown & {stem(one)[:_COMMON] for one in named}
    )
