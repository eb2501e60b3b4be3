"""Pairs to tune a cross-encoder on: questions in three parts, golden documents, hard negatives.

Source:
    The system of BioASQ 13b that this follows: questions are split, so that none is in two parts;
    golden documents are labelled 1, what the index finds beside them 0. Its variants: as many
    negatives as positives, and questions of recent years alone.
"""

import json
import math
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from random import Random
from typing import Any, NamedTuple, cast

from langchain_core.documents import Document

from deepera_graph.bioasq.measures import average_precision
from deepera_graph.bioasq.phase_a.ordering import FoundDocument
from deepera_graph.bioasq.phase_a.steps import Retrieve, SearchState, document_id
from deepera_graph.bioasq.questions import BioasqQuestion, question_key, read_pmid
from deepera_graph.bioasq.runs import Run
from deepera_graph.bioasq.settings import MAX_DOCUMENTS, SearchSettings
from deepera_graph.calibration.statistics import find_groups
from deepera_graph.errors import InputError, SettingsError, StoreError
from deepera_graph.stores.words import title_of

PARTS = ("train", "validation", "test")
SHARES = (80.0, 10.0, 10.0)  # of questions, in per cent
N_CANDIDATES = 100
_OBJECT_ID = re.compile(r"[0-9a-f]{24}")
_FIRST_YEAR = 2012  # of BioASQ; an id that says an earlier one is no time


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionSplit:
    """Questions in three parts, none in two of them."""

    train: tuple[BioasqQuestion, ...]  # to learn from
    validation: tuple[BioasqQuestion, ...]  # to choose by
    test: tuple[BioasqQuestion, ...]  # to report on
    # questions that were joined with another of the same id or the same text; the one that is left
    # has the golden documents of all
    joined: int
    in_test: int  # questions left out since the test set that was given has them
    without_documents: int  # questions left out since they have no golden documents

    def parts(self) -> dict[str, tuple[BioasqQuestion, ...]]:
        """Return the parts by name."""
        return {name: getattr(self, name) for name in PARTS}


def split_questions(
    questions: Sequence[BioasqQuestion],  # with golden documents; those that have none are left out
    *,
    # what to report on, if that is a set of its own; none of it is trained on
    test: Sequence[BioasqQuestion] | None = None,
    # of the three parts, >= 0, the first two above 0; by default 80, 10 and 10, and 90, 10 and 0
    # beside a test set of its own
    shares: Sequence[float] | None = None,
    seed: int = 0,  # another one gives another split
) -> QuestionSplit:
    """Split questions into those to train on, to choose by and to report on."""
    # Two with the same id, or the same text but for case and punctuation, count as one. A hash of
    # the text decides, so that a question hardly changes its part when others are added.
    # Raises `SettingsError` if the shares are no such numbers; `InputError` if there are too few
    # questions.
    checked = check_shares(shares, has_test=test is not None)
    golden = [one for one in questions if one.documents]
    reserved = _join_alike([one for one in test or () if one.documents])
    left = _leave_out(golden, reserved)
    distinct = _join_alike(left)
    order = sorted(distinct, key=lambda one: _hash(f"{seed}:{question_key(one.body)}"))
    n_validation, n_test = (_size_of(share / sum(checked), len(order)) for share in checked[1:])
    n_train = len(order) - n_validation - n_test
    if n_train < 1:
        raise InputError(
            f"too few questions to split: {len(order)} of {len(questions)} are different ones with "
            "golden documents"
        )
    return QuestionSplit(
        train=tuple(order[:n_train]),
        validation=tuple(order[n_train : n_train + n_validation]),
        test=tuple(reserved if test is not None else order[n_train + n_validation :]),
        joined=len(left) - len(distinct),
        in_test=len(golden) - len(left),
        without_documents=len(questions) - len(golden),
    )


def check_shares(shares: Sequence[float] | None, *, has_test: bool) -> tuple[float, ...]:
    """Return the shares of the three parts; a `SettingsError` if they are none."""
    if shares is None:
        return (SHARES[0] + SHARES[2], SHARES[1], 0.0) if has_test else SHARES
    checked = tuple(map(float, shares))
    fits = len(checked) == len(PARTS) and all(math.isfinite(one) and one >= 0 for one in checked)
    if not fits or not checked[0] or not checked[1]:
        raise SettingsError(
            "shares must be three numbers >= 0, those of training and validation above 0, "
            f"got {shares!r}"
        )
    if has_test and checked[2]:
        raise SettingsError(
            f"with a test set of its own the last share must be 0, got {checked[2]:g}"
        )
    return checked


def _keys(one: BioasqQuestion) -> list[str]:
    return [f"id {one.id}", f"body {question_key(one.body)}"]


def _join_alike(questions: Sequence[BioasqQuestion]) -> list[BioasqQuestion]:
    """Return one question of each group that shares ids or texts, with all golden documents."""
    groups: dict[str, list[BioasqQuestion]] = {}
    for one, group in zip(questions, find_groups([*map(_keys, questions)]), strict=True):
        groups.setdefault(group, []).append(one)
    return [
        replace(
            its[0], documents=tuple(dict.fromkeys(name for one in its for name in one.documents))
        )
        for its in groups.values()
    ]


def _leave_out(
    questions: Sequence[BioasqQuestion], reserved: Sequence[BioasqQuestion]
) -> list[BioasqQuestion]:
    """Return the questions that share no group with a reserved one."""
    groups = find_groups([*map(_keys, [*reserved, *questions])])
    taken = {*groups[: len(reserved)]}
    rest = groups[len(reserved) :]
    return [one for one, group in zip(questions, rest, strict=True) if group not in taken]


def _hash(text: str) -> str:
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _size_of(share: float, n: int) -> int:
    return max(1, round(share * n)) if share else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionPool:
    """A question, what the index finds for it, and its golden documents."""

    id: str  # of the question
    question: str  # what is asked
    golden: frozenset[str]  # golden documents, by PMID, in the corpus or not
    found: tuple[FoundDocument, ...]  # what the index finds, best first, each document once
    held: tuple[FoundDocument, ...]  # the golden documents that the corpus has, found or not
    year: int | None = None  # when the question was asked, see `year_of`; None if nothing tells

    @property
    def negatives(self) -> list[FoundDocument]:
        """What was found and is not golden, nor has the text of a golden document."""
        golden = {one.abstract for one in self.held}
        return [
            one for one in self.found if one.pmid not in self.golden and one.abstract not in golden
        ]


def collect_pools(
    questions: Iterable[BioasqQuestion],  # with golden documents
    source: Any,  # a `PassageStore`, or a `WordIndex`: with `search` and `fetch`
    *,
    n_candidates: int = N_CANDIDATES,  # documents of a question, >= 1
    on_progress: Callable[[int], None] | None = None,  # called with the number of questions so far
) -> list[QuestionPool]:
    """Ask the index for each question, as phase A does."""
    # Raises `SettingsError` if *n_candidates* is out of range; `StoreError` if a search failed.
    retrieve = Retrieve(source, SearchSettings(depth=n_candidates))
    pools = []
    for place, one in enumerate(questions, start=1):
        asked = cast(SearchState, {"question": one.body, "query": ""})
        found = retrieve.invoke(asked)
        if found.get("failed"):
            raise StoreError(f"question {one.id!r}: {found['failed']}")
        pools.append(_build_pool(one, found["passages"], source))
        if on_progress is not None:
            on_progress(place)
    return pools


def _build_pool(question: BioasqQuestion, found: Sequence[Document], source: Any) -> QuestionPool:
    golden = {read_pmid(one): one for one in question.documents}
    known = {one.pmid: one for one in map(_to_document, found)}
    absent = [name for pmid in golden if pmid not in known for name in (pmid, golden[pmid])]
    others = source.fetch(list(dict.fromkeys(absent))) if absent else []
    known_or_held = {**{one.pmid: one for one in map(_to_document, others)}, **known}
    held = [known_or_held[pmid] for pmid in golden if pmid in known_or_held]
    years = [one.metadata.get("year") for one in (*found, *others) if _pmid_of(one) in golden]
    return QuestionPool(
        id=question.id,
        question=question.body,
        golden=frozenset(golden),
        found=tuple(known.values()),
        held=tuple(held),
        year=year_of(question.id, years),
    )


def _to_document(passage: Document) -> FoundDocument:
    return FoundDocument(_pmid_of(passage), title_of(passage), passage.page_content)


def _pmid_of(passage: Document) -> str:
    return read_pmid(document_id(passage))


def year_of(id: str, years: Iterable[object]) -> int | None:
    """Return when a question was asked: by its id, else the latest year of its golden documents."""
    # Ids of BioASQ are ObjectIds of MongoDB, which begin with the time in seconds since 1970.
    # Source: https://www.mongodb.com/docs/manual/reference/bson-types/#objectid
    if _OBJECT_ID.fullmatch(id):
        made = datetime.fromtimestamp(int(id[:8], 16), UTC).year
        if made >= _FIRST_YEAR:
            return made
    known = [int(one) for one in map(str, years) if one.isascii() and one.isdecimal()]
    return max(known, default=None)


class TrainingPair(NamedTuple):
    """A question and a document, and whether the one is evidence for the other."""

    question_id: str
    question: str
    document: FoundDocument
    label: int  # 1 for a golden document, 0 for a negative


def make_pairs(
    pools: Iterable[QuestionPool],  # of questions to train on
    *,
    # negatives for each golden document, > 0, drawn at random from those found; None takes all
    ratio: float | None = None,
    # only questions of this year and later; those whose year is not known are left out
    since: int | None = None,
    seed: int = 0,  # of the draw; that of a question does not depend on the other questions
) -> list[TrainingPair]:
    """Return pairs to train on: question by question, documents in the order they were found."""
    # A question of which the corpus has no golden document is left out.
    pairs = []
    for pool in pools:
        is_recent = since is None or (pool.year is not None and pool.year >= since)
        if pool.held and is_recent:
            pairs += _pairs_of(pool, ratio, Random(f"{seed}:{pool.id}"))
    return pairs


def _pairs_of(pool: QuestionPool, ratio: float | None, random: Random) -> list[TrainingPair]:
    negatives = pool.negatives
    if ratio is not None:
        n = min(len(negatives), max(1, round(ratio * len(pool.held))))
        negatives = random.sample(negatives, n)
    places = {one.pmid: place for place, one in enumerate(pool.found)}
    chosen = sorted([*pool.held, *negatives], key=lambda one: places.get(one.pmid, len(places)))
    return [
        TrainingPair(pool.id, pool.question, one, int(one.pmid in pool.golden)) for one in chosen
    ]


def write_pairs(path: Path, pairs: Iterable[TrainingPair]) -> int:
    """Write pairs as labelled questions, as `deepera-lab judge train` has them; return how many."""
    # A line is a question: ``{"id", "question", "passages": [{"id", "title", "text"}], "golden"}``.
    lines: dict[str, dict[str, Any]] = {}
    for one in pairs:
        empty = {"id": one.question_id, "question": one.question, "passages": [], "golden": []}
        line = lines.setdefault(one.question_id, empty)
        pmid, title, text = one.document
        line["passages"].append({"id": pmid, "title": title, "text": text})
        if one.label:
            line["golden"].append(pmid)
    text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines.values())
    path.write_text(text, encoding="utf-8")
    return len(lines)


def measure_map(pools: Sequence[QuestionPool], run: Run) -> float:
    """Return MAP of ten documents over questions; golden ones that were not found count, too."""
    values = [
        average_precision(
            [read_pmid(one.pmid) for one in run.get(pool.id, ())], pool.golden, MAX_DOCUMENTS
        )
        for pool in pools
    ]
    return math.fsum(values) / len(values)
