"""Data sets: BEIR, instances, plain lines, articles, the sample, and questions of several hops."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, TypeVar

from langchain_core.documents import Document
from pydantic import BeforeValidator, Field, TypeAdapter, ValidationError

from deepera_graph.calibration.instance import (
    Context,
    Dataset,
    DatasetError,
    Instance,
    Labels,
    first_problem,
    read_labelled,
    read_rows,
)
from deepera_graph.demo import DemoQuestion, read_corpus, read_questions
from deepera_graph.errors import InputError
from deepera_graph.jobs.lines import QuestionLine, open_questions
from deepera_graph.lab.data.beir import read_beir
from deepera_graph.lab.data.documents import read_natural
from deepera_graph.lab.data.sectioned import read_articles
from deepera_graph.lab.rankers.retrieval import CorpusBM25, IndexHit
from deepera_graph.text.jsonl import parse_object, read_places, read_raw_lines

N_CANDIDATES = 30
SETTINGS = ("base", "ssli")
NAMES = tuple(f"sample-{kind}{setting}" for kind in ("", "hard-") for setting in SETTINGS)
T = TypeVar("T")


def open_dataset(
    path: Path, *, name: str = "", split: str = "test", n_candidates: int = 100
) -> Dataset:
    """Return the data set at a path; it is read when it is iterated.

    A folder with ``corpus.jsonl`` is a BEIR folder, one with ``passages.jsonl`` a folder of
    articles; a file with the suffix ``.json`` is PubMedQA's, whose questions get natural
    look-alikes; another file holds instances, or labelled questions. The names of
    `deepera_graph.lab.data.readers` stand for the data sets that come with this package. *name*
    heads the table, the name of the file or folder when empty; *split* says which judgements of a
    BEIR folder to use, and *n_candidates* how many documents BM25 finds for a query of it.
    """
    title = name or path.stem or path.resolve().stem  # of the current folder, too
    if (path / "corpus.jsonl").exists():
        read = partial(read_beir, path, split=split, n_candidates=n_candidates)
        return Dataset(title, read, f"BM25 over the corpus, best {n_candidates}")
    if (path / "passages.jsonl").exists():
        return Dataset(title, partial(read_articles, path), "order in the article")
    if path.is_file() and path.suffix == ".json" and not _is_list(path):
        return Dataset(title, partial(read_natural, path), "BM25 over all sections")
    if path.is_file():
        row = _first_row(path)
        if "golden" in row or "contexts" not in row:
            return Dataset(title, partial(read_plain, path), "order in the file")
        return Dataset(title, partial(read_instances, path), _name_order(row))
    if str(path) in NAMES:
        return sample(path.name.rpartition("-")[2], hard="-hard-" in path.name)
    raise DatasetError(
        f"{path} is not a data set: expected a JSON lines file, PubMedQA's JSON, a folder with "
        "corpus.jsonl, a folder with passages.jsonl, or one of " + ", ".join(NAMES)
    )


def name_paths(paths: Sequence[Path]) -> list[str]:
    """Return a name for each data set: that of its path, with as many folders as tell it apart."""
    whole = [(*one.parent.parts, one.stem) for one in (path.absolute() for path in paths)]
    found = []
    for parts in whole:
        others = {one for one in whole if one != parts}
        least = (n for n in range(1, len(parts)) if all(one[-n:] != parts[-n:] for one in others))
        found.append("/".join(parts[-next(least, 1) :]))
    return found


def _is_list(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(4096).lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"[")


def _name_order(row: Mapping[str, Any]) -> str:
    """Return what the candidates of an instance are ordered by: all of them have ranks, or none."""
    rows = row["contexts"] if isinstance(row["contexts"], list) else []
    ranked = any(isinstance(one, dict) and one.get("first_stage_rank") for one in rows)
    return "first_stage_rank of the file" if ranked else "order in the file"


_TREC_RUNS = "which bench table and study read with --queries, --corpus and --qrels"
_N_COLUMNS = 6  # of a TREC run


def _first_row(path: Path) -> dict[str, object]:
    try:
        with open_questions(path) as (source, _):
            line = next(read_raw_lines(source), None)
            if line is None:
                raise DatasetError(f"{path} is empty")
            if len(line.text.split()) == _N_COLUMNS and not line.text.startswith(b"{"):
                raise DatasetError(
                    f"{path} is no JSON lines, but looks like a TREC run, {_TREC_RUNS}"
                )
            row = parse_object(line.text)
    except InputError as error:
        raise DatasetError(f"{path}, line 1: {error}") from error
    if "ranking" in row and "passages" not in row:
        raise DatasetError(
            f"{path} holds rankings without labels and texts, as deepera rerank writes them; "
            f"what it writes with --trec is a TREC run, {_TREC_RUNS}"
        )
    return row


def sample(setting: str = "ssli", *, hard: bool = False) -> Dataset:
    """Return ten questions over 62 invented abstracts, 30 candidates each, found by BM25."""
    if setting not in SETTINGS:
        raise DatasetError(f"setting must be one of {', '.join(SETTINGS)}, got {setting!r}")
    name = f"sample-{'hard-' if hard else ''}{setting}"
    return Dataset(name, lambda: _read_sample(name, setting, hard=hard), first_stage="BM25")


def _read_sample(name: str, setting: str, *, hard: bool) -> Iterator[Instance]:
    documents = {document.id or "": document for document in read_corpus(hard=hard)}
    texts = {id: f"{one.metadata['title']} {one.page_content}" for id, one in documents.items()}
    index = CorpusBM25(texts)
    for question in read_questions(hard=hard):
        found = index.search(question.question, len(documents))
        chosen = _choose_hits(found, question, with_look_alikes=setting == "ssli")
        yield Instance(
            id=question.id,
            dataset=name,
            setting=setting,
            subject=question.science,
            question=question.question,
            contexts=tuple(
                _sample_context(documents[one.id], rank, one.score, question)
                for rank, one in enumerate(chosen, start=1)
            ),
        )


def _choose_hits(
    found: Sequence[IndexHit], question: DemoQuestion, *, with_look_alikes: bool
) -> list[IndexHit]:
    """Keep every labelled passage, and fill up with the best others; in order of their scores."""
    labelled = {*question.golden, *question.look_alikes}
    fit = [one for one in found if with_look_alikes or one.id not in question.look_alikes]
    needed = {one.id for one in fit if one.id in labelled}
    others = [one.id for one in fit if one.id not in labelled]
    taken = {*needed, *others[: N_CANDIDATES - len(needed)]}
    return [one for one in fit if one.id in taken]


def _sample_context(document: Document, rank: int, score: float, question: DemoQuestion) -> Context:
    kind = question.look_alikes.get(document.id or "")
    return Context(
        id=document.id or "",
        text=document.page_content,
        title=document.metadata["title"],
        is_golden=document.id in question.golden,
        is_distractor=kind is not None,
        distractor_type=kind,
        parent_id=question.golden[0] if kind else None,
        first_stage_rank=rank,
        first_stage_score=score,
    )


def read_instances(path: Path) -> Iterator[Instance]:
    """Yield the instances of a file, one in memory at a time."""
    seen: set[str] = set()
    for instance in read_rows(path, Instance):
        if instance.id in seen:
            raise DatasetError(f"{path}: instance id {instance.id!r} is used twice")
        seen.add(instance.id)
        yield instance


def read_plain(path: Path) -> Iterator[Instance]:
    """Yield instances from lines like ``{"question": ..., "passages": [...], "golden": ["1"]}``."""
    # A passage is a text, or an object with `text` and perhaps `id`, `title` and `section`; without
    # an id it is named by its place, from 1. `golden` lists ids of passages; see
    # `deepera_graph.calibration.instance`. Passages are in first-stage order.
    try:
        for line, passages, labels in read_labelled(path):
            yield _plain_instance(line, passages, labels, f"{path}, line {line.number}")
    except InputError as error:
        raise DatasetError(str(error)) from error


def make_context(passage: Document, rank: int, **more: Any) -> Context:
    """Return a passage as a candidate of an instance; *more* says what it is to the question."""
    return Context(
        id=str(passage.id),
        text=passage.page_content,
        title=str(passage.metadata.get("title") or ""),
        section=str(passage.metadata.get("section") or ""),
        first_stage_rank=rank,
        **more,
    )


def _plain_instance(
    line: QuestionLine, passages: Sequence[Document], labels: Labels, place: str
) -> Instance:
    try:
        return Instance(
            id=line.id,
            question=line.question,
            gold_answer=str(line.metadata.get("answer") or ""),
            subject=line.subject or "",
            contexts=tuple(
                make_context(passage, rank, is_golden=bool(labels[str(passage.id)]))
                for rank, passage in enumerate(passages, start=1)
            ),
        )
    except ValidationError as error:
        raise DatasetError(f"{place}: {first_problem(error)}") from error


PASSAGES, QUESTIONS = "passages.jsonl", "questions.jsonl"
_STEP = re.compile(r"#(\d+)")


def _read_text(value: object) -> str:
    if not isinstance(value, str) or not value.strip():
        raise ValueError(f"must be a text, got {value!r:.80}")
    return value


def _read_object(value: Any) -> Any:
    if not isinstance(value or {}, Mapping):
        raise ValueError(f"must be an object, got {value!r:.80}")
    return value or {}


def _read_texts(value: Any) -> tuple[str, ...]:
    if not isinstance(value or (), list | tuple):
        raise ValueError(f"must be a list, got {value!r:.80}")
    return tuple(map(str, value or ()))


Text = Annotated[str, BeforeValidator(_read_text)]  # not blank
Plain = Annotated[str, BeforeValidator(lambda one: str(one or ""))]
Object = Annotated[Mapping[str, Any], BeforeValidator(_read_object)]
Texts = Annotated[tuple[str, ...], BeforeValidator(_read_texts)]


def read_line(form: TypeAdapter[T], line: Mapping[str, Any], where: str = "") -> T:
    """Return a line in its form."""
    try:
        return form.validate_python(dict(line))
    except ValidationError as error:
        first = error.errors()[0]
        name = next((one for one in first["loc"] if isinstance(one, str)), "line")
        said = first.get("ctx", {}).get("error")
        why = f" {said}" if said else f": {first['msg']}, got {first['input']!r:.80}"
        why = " must be given" if first["type"] == "missing" else why
        raise InputError(f"{where}{where and ': '}{name!r}{why}") from error


@dataclass(frozen=True, slots=True)
class SubQuestion:
    """A step that the data gives: ``#1`` in its text stands for the answer of the first."""

    question: Text
    answer: Text


def _read_supporting(value: object) -> object:
    if not isinstance(value, list) or not value:
        raise ValueError(f"must be a list of ids, got {value!r:.80}")
    return value


@dataclass(frozen=True, slots=True)
class HopQuestion:
    """A question whose evidence lies in several passages, all of which are needed."""

    id: Text
    text: Annotated[Text, Field(validation_alias="question")]
    supporting: Annotated[frozenset[str], BeforeValidator(_read_supporting)]  # ids of passages
    steps: Annotated[
        tuple[SubQuestion, ...],
        BeforeValidator(lambda one: one or ()),
        Field(validation_alias="subquestions"),
    ] = ()
    answers: tuple[Text, ...] = ()  # right ones, any of which will do

    def filled_steps(self) -> list[str]:
        """Return the steps, with the answers of earlier ones in the place of their numbers."""
        return [
            _STEP.sub(partial(self._fill, before=place), step.question.replace(" >> ", " "))
            for place, step in enumerate(self.steps)
        ]

    def _fill(self, found: re.Match[str], *, before: int) -> str:
        number = int(found[1])
        return self.steps[number - 1].answer if 1 <= number <= before else found[0]


@dataclass(frozen=True, slots=True)
class _HopPassage:
    id: Text
    text: Text
    title: str | None = None


_HOP_PASSAGE, _HOP_QUESTION = TypeAdapter(_HopPassage), TypeAdapter(HopQuestion)


@dataclass(frozen=True)
class HopData:
    """Questions and the passages they are asked of."""

    name: str
    passages: dict[str, Document]
    questions: tuple[HopQuestion, ...]


def read_hop_data(folder: Path, *, limit: int | None = None) -> HopData:
    """Read ``passages.jsonl`` (`id`, `title`, `text`) and ``questions.jsonl``."""
    # A question has `id`, `question`, `supporting`, which are ids of passages, and may have
    # `subquestions` with `question` and `answer`, and an `answer` with `aliases`.
    lacking = [one for one in (PASSAGES, QUESTIONS) if not (folder / one).is_file()]
    if lacking:
        told = f"{folder / lacking[0]}: no such file"
        raise InputError(f"{told}; a data set has {PASSAGES}, {QUESTIONS}")
    passages: dict[str, Document] = {}
    for where, line in read_places(folder / PASSAGES):
        one = read_line(_HOP_PASSAGE, line, where)
        if one.id in passages:
            raise InputError(f"{where}: the id {one.id!r} comes twice")
        title = {"title": one.title} if one.title else {}
        passages[one.id] = Document(id=one.id, page_content=one.text, metadata=title)
    if not passages:
        raise InputError(f"{folder / PASSAGES}: no passages")
    lines = islice(read_places(folder / QUESTIONS), limit)
    questions = tuple(_read_hop_question(line, where, passages) for where, line in lines)
    if not questions:
        raise InputError(f"{folder / QUESTIONS}: no questions")
    return HopData(folder.resolve().name, passages, questions)


def _read_hop_question(
    line: dict[str, Any], where: str, passages: Mapping[str, Any]
) -> HopQuestion:
    right = [] if line.get("answer") is None else [line["answer"], *(line.get("aliases") or ())]
    asked = read_line(_HOP_QUESTION, {**line, "answers": right}, where)
    if missing := sorted(asked.supporting - passages.keys()):
        raise InputError(f"{where}: unknown passage {missing[0]!r:.80}")
    return asked
