"""Questions of BioASQ task B, with or without answers, and the files they stand in.

One form serves a test set, a golden set and a submission: they differ in what is filled in.
Source: http://participants-area.bioasq.org/general_information/Task13b (formats of task 13b).
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal, cast, get_args
from unicodedata import normalize

from deepera_graph.errors import InputError, SettingsError
from deepera_graph.passages import check_length
from deepera_graph.text.jsonl import naming_full_file

LONGEST_SNIPPETS = 1500  # characters of the snippets of an example
QuestionType = Literal["yesno", "factoid", "list", "summary"]
TYPES: tuple[QuestionType, ...] = get_args(QuestionType)
ExactAnswer = str | tuple[tuple[str, ...], ...]
PUBMED = "http://www.ncbi.nlm.nih.gov/pubmed/"
_SNIPPET = {  # our name to theirs
    "document": "document",
    "text": "text",
    "begin_section": "beginSection",
    "end_section": "endSection",
    "begin": "offsetInBeginSection",
    "end": "offsetInEndSection",
}
SNIPPET_KEYS = tuple(_SNIPPET.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class Snippet:
    """A piece of a document that answers a question."""

    document: str  # the document as the file names it, usually a URL of PubMed
    text: str
    begin_section: str  # where it begins: ``title`` or ``abstract`` (``sections.0`` in old files)
    begin: int  # offset of its first character in that section, from 0
    end_section: str  # where it ends
    end: int  # offset just past its last character, in that section

    def to_dict(self) -> dict[str, Any]:
        """Return it as it stands in a file."""
        return {theirs: getattr(self, ours) for ours, theirs in _SNIPPET.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class BioasqQuestion:
    """A question, and what is known or was answered.

    Raises:
        InputError: There is no such type.
    """

    id: str  # its id, unique in a file
    type: QuestionType  # ``yesno``, ``factoid``, ``list`` or ``summary``
    body: str  # what is asked
    documents: tuple[str, ...] = ()  # documents, best first, as the file names them
    snippets: tuple[Snippet, ...] = ()  # pieces of them, best first
    # ``yes`` or ``no``; for a factoid or list, entities, each with its synonyms (in a submission a
    # factoid has them best first); None if there is none
    exact_answer: ExactAnswer | None = None
    ideal_answers: tuple[str, ...] = ()  # answers in sentences; a golden set may have several

    def __post_init__(self) -> None:
        if self.type not in TYPES:
            raise InputError(f"type must be one of {', '.join(TYPES)}, got {self.type!r}")

    def to_dict(self) -> dict[str, Any]:
        """Return it as it stands in a file; what is empty and optional is left out."""
        filled: dict[str, Any] = {"id": self.id, "type": self.type, "body": self.body}
        filled["documents"] = [*self.documents]
        filled["snippets"] = [one.to_dict() for one in self.snippets]
        if self.exact_answer is not None:
            filled["exact_answer"] = plain_exact(self.exact_answer)
        if self.ideal_answers:
            several = len(self.ideal_answers) > 1
            filled["ideal_answer"] = [*self.ideal_answers] if several else self.ideal_answers[0]
        return filled


def plain_exact(exact: ExactAnswer | None) -> Any:
    """Return an exact answer as JSON has it."""
    return [[*one] for one in exact] if isinstance(exact, tuple) else exact


def read_pmid(document: str) -> str:
    """Return the PMID of a document however it is written, by which documents are compared."""
    # It is the last part of a URL of any scheme, without blanks and slashes at the end; an id of
    # another corpus is left as it is.
    plain = document.strip().rstrip("/")
    last = plain.rpartition("/")[2]
    return last if last.isdecimal() else plain


def document_url(pmid: str) -> str:
    """Return the URL by which BioASQ names a document of PubMed; other ids are left alone."""
    return PUBMED + pmid if pmid.isdecimal() else pmid


def as_question(given: object) -> BioasqQuestion:
    """Return a question as it is, and a text as a summary question without an id."""
    if isinstance(given, str):
        given = BioasqQuestion(id="", type="summary", body=given)
    if not isinstance(given, BioasqQuestion):
        raise InputError(f"question must be a BioasqQuestion or a text, got {type(given).__name__}")
    if not given.body.strip():
        raise InputError(f"question must not be empty, got {given.body!r}")
    check_length(given.body)
    return given


def list_questions(given: object, name: str = "questions") -> list[Any]:
    """Return the questions that were handed in as a list."""
    if isinstance(given, str | bytes | Mapping | BioasqQuestion) or not isinstance(given, Iterable):
        raise InputError(f"{name} must be a list of questions, got one {type(given).__name__}")
    return [*given]


def read_questions(path: Path | str) -> list[BioasqQuestion]:
    """Read a test set, a golden set or a submission: ``{"questions": [...]}``.

    Keys that are not known are passed over.

    Raises:
        InputError: The file is no such file, or a question lacks something or has it in another
            form; it names the file, the question and the field.
        OSError: The file cannot be read.
    """
    return _parse_all(Path(path), read_raw(path))


def read_submission(path: Path | str, asked: Iterable[BioasqQuestion]) -> list[BioasqQuestion]:
    """Read answers to questions, whose types and bodies hold, also where the file has others."""
    # Answers to questions that were not asked are left out.
    # Raises `InputError` if as of `read_questions`; `OSError` if the file cannot be read.
    known = {one.id: {"type": one.type, "body": one.body} for one in asked}
    answers = []
    for one in read_raw(path):
        name = one.get("id") if isinstance(one, Mapping) else None
        if not isinstance(name, str):
            answers.append(one)  # which is an error with its place
        elif name in known:
            answers.append({**one, **known[name]})
    return _parse_all(Path(path), answers)


def read_raw(path: Path | str) -> list[Any]:
    """Return the questions of a file as they stand in it."""
    # Raises `InputError` if it is no JSON, or has no questions; `OSError` if it cannot be read.
    try:
        whole = json.loads(Path(path).read_bytes())
    except ValueError as error:  # no JSON, or no UTF-8
        raise InputError(f"{path}: not a JSON file: {error}") from error
    asked = whole.get("questions") if isinstance(whole, dict) else None
    if not isinstance(asked, list):
        raise InputError(f'{path}: expected {{"questions": [...]}}, as BioASQ task B has it')
    return asked


def _parse_all(path: Path, asked: Iterable[Any]) -> list[BioasqQuestion]:
    questions: dict[str, BioasqQuestion] = {}
    for number, fields in enumerate(asked, start=1):
        try:
            one = parse_question(fields)
        except InputError as error:
            raise InputError(f"{path}: question {number}{_name(fields)}: {error}") from error
        if one.id in questions:
            raise InputError(f"{path}: question {number}: the id {one.id!r} stands there twice")
        questions[one.id] = one
    return [*questions.values()]


def write_questions(path: Path | str, questions: Iterable[BioasqQuestion]) -> None:
    """Write questions in the form `read_questions` reads, and BioASQ takes."""
    whole = {"questions": [one.to_dict() for one in questions]}
    text = json.dumps(whole, ensure_ascii=False, indent=1) + "\n"
    with naming_full_file(path):
        Path(path).write_text(text, encoding="utf-8")


def parse_question(fields: object) -> BioasqQuestion:
    """Make a question of what stands in a file."""
    if not isinstance(fields, Mapping):
        raise InputError(f"expected an object, got {fields!r:.80}")
    ideal, wanted = fields.get("ideal_answer"), "ideal_answer must be text or a list of texts"
    return BioasqQuestion(
        id=_text(fields, "id"),
        type=cast("QuestionType", _text(fields, "type")),
        body=_text(fields, "body"),
        documents=tuple(_texts(fields, "documents")),
        snippets=tuple(map(_parse_snippet, _items(fields, "snippets"))),
        exact_answer=_parse_exact(fields.get("exact_answer")),
        ideal_answers=() if ideal is None else _as_texts(ideal, wanted),
    )


def _name(fields: object) -> str:
    return f" ({fields['id']!r})" if isinstance(fields, Mapping) and fields.get("id") else ""


def _text(fields: Mapping[str, Any], name: str) -> str:
    value = fields.get(name)
    if not isinstance(value, str) or not value.strip():
        raise InputError(f"{name} must be text, got {value!r:.80}")
    return value


def _items(fields: Mapping[str, Any], name: str) -> list[Any]:
    value = fields.get(name)
    if value is None:
        return []
    if not isinstance(value, list):
        raise InputError(f"{name} must be a list, got {value!r:.80}")
    return value


def _texts(fields: Mapping[str, Any], name: str) -> list[str]:
    values = _items(fields, name)
    wrong = [one for one in values if not isinstance(one, str)]
    if wrong:
        raise InputError(f"{name} must hold texts alone, got {wrong[0]!r:.80}")
    return values


def _parse_snippet(fields: object) -> Snippet:
    if not isinstance(fields, Mapping):
        raise InputError(f"a snippet must be an object, got {fields!r:.80}")
    values = {ours: fields.get(theirs) for ours, theirs in _SNIPPET.items()}
    for ours, theirs in _SNIPPET.items():
        wanted = int if ours in ("begin", "end") else str
        if not isinstance(values[ours], wanted) or isinstance(values[ours], bool):
            kind = "a whole number" if wanted is int else "text"
            raise InputError(f"{theirs} of a snippet must be {kind}, got {values[ours]!r:.80}")
    return Snippet(**cast("dict[str, Any]", values))


def _parse_exact(value: object) -> ExactAnswer | None:
    if value is None or isinstance(value, str):
        return value
    if not isinstance(value, list):
        raise InputError(f"exact_answer must be text or a list, got {value!r:.80}")
    wanted = "an entity of exact_answer must be a list of texts"
    return tuple(_as_texts(one, wanted) for one in value)


def _as_texts(value: object, wanted: str) -> tuple[str, ...]:
    values = [value] if isinstance(value, str) else value
    if not isinstance(values, list) or not all(isinstance(one, str) for one in values):
        raise InputError(f"{wanted}, got {value!r:.80}")
    return tuple(values)


def choose_examples(
    training: Sequence[BioasqQuestion],
    asked: Iterable[BioasqQuestion],
    *,
    shots: int,
) -> dict[QuestionType, tuple[BioasqQuestion, ...]]:
    """Return for each type that is asked the first *shots* questions of a training file."""
    # An example has snippets, an ideal answer and, but for a summary, an exact one.
    # Raises `InputError` if a question of the training file is among those asked, by its id or its
    # words: its answer would stand in the prompt; `SettingsError` if the file has too few examples
    # of a type.
    questions = [*asked]
    refuse_overlap(training, questions)
    found: dict[QuestionType, tuple[BioasqQuestion, ...]] = {}
    for kind in dict.fromkeys(one.type for one in questions):
        usable = [one for one in training if one.type == kind and _is_usable(one)]
        if len(usable) < shots:
            raise SettingsError(
                f"shots must be at most {len(usable)}, the answered {kind} questions with snippets "
                f"of the training file, got {shots}"
            )
        found[kind] = tuple(usable[:shots])
    return found


def refuse_overlap(examples: Iterable[BioasqQuestion], asked: Iterable[BioasqQuestion]) -> None:
    """Raise `InputError` if an example is asked, too: by its id, or by its words."""
    questions = [*asked]
    ids = {one.id for one in questions}
    bodies = {question_key(one.body): one.id for one in questions}
    for one in examples:
        if one.id in ids:
            raise InputError(f"the example {one.id!r} is one of the questions asked")
        same = bodies.get(question_key(one.body))
        if same is not None:
            raise InputError(f"the example {one.id!r} asks the same as question {same!r}")


def question_key(body: str) -> str:
    """Return what two questions share that differ in case, white space and punctuation alone."""
    words = re.findall(r"\w+", normalize("NFKC", body).casefold())
    return " ".join(words) or body.strip()


def hash_examples(examples: Iterable[BioasqQuestion]) -> str:
    """Return 12 hex digits that change with the examples."""
    plain: list[Any] = [one.to_dict() for one in examples]
    return sha256(json.dumps(plain, sort_keys=True).encode()).hexdigest()[:12]


def example_texts(example: BioasqQuestion) -> list[str]:
    """Return the snippets of an example, as many as `LONGEST_SNIPPETS` characters hold."""
    texts: list[str] = []
    for one in example.snippets:
        if texts and sum(map(len, texts)) + len(one.text) > LONGEST_SNIPPETS:
            break
        texts.append(one.text)
    return texts


def _is_usable(one: BioasqQuestion) -> bool:
    is_answered = one.type == "summary" or bool(one.exact_answer)
    return bool(one.snippets and one.ideal_answers and is_answered)
