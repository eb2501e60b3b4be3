"""Passages as the caller hands them in: strings, dicts or documents; and windows of long ones."""

from collections.abc import Container, Iterable, Mapping, Sequence
from copy import deepcopy
from functools import lru_cache
from math import isfinite
from numbers import Real
from typing import Any

from langchain_core.documents import Document
from typing_extensions import TypedDict

from deepera_graph.errors import InputError
from deepera_graph.schema import Window

PassageLike = str | Mapping[str, Any] | Document
WINDOW_OVERLAP = 0.1
MOST_QUESTION = 10_000  # characters; a long abstract has 3,000
# Names that a field may have in a passage or a record of a file, in any case; the best first.
TEXT_FIELDS = (
    "text", "page_content", "contents", "content", "abstract", "abstract_note", "passage",
    "segment", "body",
)  # fmt: skip
ID_FIELDS = ("id", "_id", "docid")
_SCALARS = (*"biufU",)  # NumPy's kinds of numbers, truth values and texts
RETRIEVAL_KEYS = ("retrieval_rank", "retrieval_score")  # of the first stage, in metadata


def check_length(question: str) -> None:
    """Raise `InputError` for a question of more than `MOST_QUESTION` characters."""
    if len(question) > MOST_QUESTION:
        raise InputError(
            f"question must have at most {MOST_QUESTION} characters, got {len(question)}"
        )


def check_question(question: object, passages: object) -> None:
    """Raise `InputError` unless the question is a text, not blank, and not too long."""
    if isinstance(question, str):
        if question.strip():
            if len(question) > MOST_QUESTION:
                check_length(question)
            return
        raise InputError(f"question must not be empty, got {question!r}")
    swapped = isinstance(passages, str) and isinstance(question, Iterable)
    hint = ": are question and passages swapped?" if swapped else ""
    what = repr(question) if isinstance(question, Real | None) else type(question).__name__
    raise InputError(f"question must be a text, got {what}{hint}")


def read_passages(items: Iterable[PassageLike]) -> list[Document]:
    """Return what the caller handed in as it travels in the graph, in order, copied.

    Each has an id that no other has: its place, counted from 1, where the caller gave none. Among
    its metadata is its place in the first stage, >= 1, and its score there, if known.

    Strings and dicts are the caller's own, so a missing text or an id used twice is an error.
    Documents come out of retrievers: one without text is judged as failed later, and an id used
    twice is told apart as ``id#2``.

    Raises:
        InputError: An item is of another type, a string or dict has no text, or two dicts share
            an id.
    """
    if isinstance(items, str | bytes | Mapping | Document) or not isinstance(items, Iterable):
        raise InputError(f"passages must be a list, got one {type(items).__name__}")
    passages: dict[str, Document] = {}
    for place, item in enumerate(items, start=1):
        passage = _read(item, place)
        name = passage.id or str(place)
        if name in passages:
            if not isinstance(item, Document):
                raise InputError(f"passage {place}: id {name!r} is used twice")
            name = _make_unique(name, passages)
        passage.id = name
        passages[name] = passage
    return [*passages.values()]


@lru_cache(maxsize=4096)
def field_key(name: str) -> str:
    """Return what is compared of a field's name: "Abstract Note" and "abstract_note" are one."""
    return "".join(letter for letter in str(name).casefold() if letter.isalnum())


def take_field(fields: dict[str, Any], names: Sequence[str]) -> Any:
    """Take out the first of the named fields that has a value, in any case; None if none has."""
    for name in names:
        if name in fields and has_value(fields[name]):
            return fields.pop(name)
    keys: dict[str, str] = {}
    for given, value in fields.items():
        if has_value(value):
            keys.setdefault(field_key(given), given)
    found = next((keys[key] for key in map(field_key, names) if key in keys), None)
    return None if found is None else fields.pop(found)


def has_value(value: object) -> bool:
    """Tell whether a field was filled in."""
    return value is not None and not (isinstance(value, str) and not value.strip())


def join_sentences(text: Any) -> Any:
    """Return a list of sentences as one text; anything else as it is."""
    if isinstance(text, list) and text and all(isinstance(sentence, str) for sentence in text):
        return " ".join(text)
    return text


def find_text_field(fields: Mapping[str, Any]) -> str | None:
    """Return the name of a field that is there for the text, whatever it holds; None if none is."""
    keys = {*map(field_key, TEXT_FIELDS)}
    return next((name for name in fields if field_key(name) in keys), None)


def describe_no_text(fields: Mapping[str, Any]) -> str:
    """Say that a passage has no text, where it was looked for, and which fields there are."""
    if name := find_text_field(fields):
        return f"has no text; its {name} is {fields[name]!r:.80}"
    names = ", ".join(map(str, fields)) or "nothing"
    return f"has no text; expected one of {', '.join(TEXT_FIELDS)}, found {names:.120}"


def retrieval_place(document: Document, index: int) -> tuple[int, float | None]:
    """Return first-stage rank and score of a document: from its metadata, else its place."""
    rank, score = document.metadata.get("retrieval_rank"), document.metadata.get("retrieval_score")
    return (
        rank if isinstance(rank, int) and not isinstance(rank, bool) and rank >= 1 else index + 1,
        None if score is None else _to_finite(score),
    )


def windows(text: str, size: int) -> list[tuple[int, int]]:
    """Cut a text into overlapping windows of at most *size* characters, at spaces if possible."""
    # Returns (start, end) offsets in order, shape (n_windows, 2); one window if the text fits.
    if len(text) <= size:
        return [(0, len(text))]
    step_back = int(size * WINDOW_OVERLAP)
    cuts: list[tuple[int, int]] = []
    start = 0
    while True:
        end = _cut_at_space(text, start, start + size, step_back)
        cuts.append((start, end))
        if end >= len(text):
            return cuts
        start = _after_space(text, end - step_back, end)


def _cut_at_space(text: str, start: int, end: int, slack: int) -> int:
    if end >= len(text):
        return len(text)
    space = text.rfind(" ", max(start + 1, end - slack), end)
    return space if space > 0 else end


def _after_space(text: str, start: int, end: int) -> int:
    space = text.find(" ", start, end)
    return space + 1 if space >= 0 else start


def _read(item: PassageLike, place: int) -> Document:
    if isinstance(item, Document):
        known = dict(zip(RETRIEVAL_KEYS, retrieval_place(item, place - 1), strict=True))
        metadata = {**_copy(item.metadata), **known}
        return Document(id=item.id, page_content=item.page_content, metadata=metadata)
    if isinstance(item, str):
        metadata = {"retrieval_rank": place, "retrieval_score": None}
        return Document(page_content=_check_text(item, place), metadata=metadata)
    if isinstance(item, Mapping):
        return _read_mapping(item, place)
    raise InputError(f"passage {place} must be a string, dict or Document, got {item!r:.80}")


def _read_mapping(item: Mapping[str, Any], place: int) -> Document:
    fields = dict(item)
    text = join_sentences(take_field(fields, TEXT_FIELDS))
    if text is None:
        raise InputError(f"passage {place} {describe_no_text(item)}")
    metadata = fields.pop("metadata", None)
    if not isinstance(metadata, Mapping | None):
        raise InputError(f"passage {place}: metadata must be an object, got {metadata!r:.80}")
    given = fields.pop("score", None)
    score = _to_finite(given)
    if score is None and given is not None:
        raise InputError(f"passage {place}: score must be a finite number, got {given!r:.80}")
    name = read_id(_take_id(fields), place, f"passage {place}: ")
    known = {"retrieval_rank": place, "retrieval_score": score}
    return Document(
        id=name,
        page_content=_check_text(text, place),
        metadata={**_copy({**fields, **(metadata or {})}), **known},
    )


def _copy(value: Any) -> Any:
    """Copy metadata whole; NumPy's scalars become Python's, as a checkpointer saves no others."""
    if type(value) is dict:
        return {name: _copy(one) for name, one in value.items()}
    if type(value) is list:
        return [*map(_copy, value)]
    is_scalar = getattr(value, "shape", None) == ()
    if is_scalar and getattr(getattr(value, "dtype", None), "kind", None) in _SCALARS:
        return value.item()
    return deepcopy(value)


def _take_id(fields: dict[str, Any]) -> object:
    """Take out the id; an empty one is not passed over, as it may name a passage twice."""
    return fields.pop("id") if fields.get("id") is not None else take_field(fields, ID_FIELDS)


def read_id(value: object, place: int, where: str = "") -> str:
    """Return an id as a string, its *place* if it is None; the error begins with *where*."""
    if value is None:
        return str(place)
    if isinstance(value, bool) or not isinstance(value, str | int) or value == "":
        raise InputError(f"{where}id must be a string, got {value!r:.80}")
    return str(value)


def _check_text(text: object, place: int) -> str:
    if not isinstance(text, str) or not text.strip():
        raise InputError(f"passage {place} has no text, got {text!r:.80}")
    return text


def _to_finite(score: object) -> float | None:
    """Return a score as a float, NumPy's too; None if it is no finite number."""
    if isinstance(score, bool) or not isinstance(score, Real):
        return None
    try:
        number = float(score)
    except OverflowError:
        return None
    return number if isfinite(number) else None


def _make_unique(name: str, seen: Container[str]) -> str:
    times = 2
    while f"{name}#{times}" in seen:
        times += 1
    return f"{name}#{times}"


class WindowRecord(TypedDict):
    """A passage to be judged, or a window of a long one: whose it is, and offsets into its text."""

    index: int
    id: str
    start: int
    end: int


def judged_windows(passages: Sequence[Document], size: int) -> list[WindowRecord]:
    """Return what is judged, in order: each passage, or its windows; a blank one is not judged."""
    return [
        {"index": index, "id": passage.id or str(index + 1), "start": start, "end": end}
        for index, passage in enumerate(passages)
        for start, end in windows(passage.page_content, size)
        if passage.page_content[start:end].strip()
    ]


def shown_text(passage: Document, start: int, end: int) -> Window:
    """Return all that a role is shown of a stretch of a passage."""
    return {
        "text": passage.page_content[start:end],
        "title": str(passage.metadata.get("title") or ""),
        "section": str(passage.metadata.get("section") or ""),
    }
