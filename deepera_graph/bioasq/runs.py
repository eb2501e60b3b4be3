"""Runs: for every question the documents that a system ranks, best first; files and journals."""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from deepera_graph.agents.journal import Journal
from deepera_graph.bioasq.questions import BioasqQuestion, document_url, parse_question, read_pmid
from deepera_graph.errors import InputError, SettingsError
from deepera_graph.jobs.forms import read_run as read_trec
from deepera_graph.jobs.forms import trec_lines
from deepera_graph.text.jsonl import parse_object, read_raw_lines


class ScoredDocument(NamedTuple):
    """A document of a run."""

    pmid: str  # or the document's id in another corpus, see `name_document`
    score: float  # finite; higher is better, comparable within one question alone


Ranking = Sequence[ScoredDocument]  # of one question, best first, each document once
Run = Mapping[str, Ranking]  # by the id of the question


def read_run(path: Path) -> dict[str, list[ScoredDocument]]:
    """Read a run, best first: JSON lines as `write_run` writes them, or the lines of a TREC run."""
    # The spelling of a document makes no difference, see `name_document`. The order is that of the
    # file; of a TREC run, that of its scores.
    # Raises `InputError` if the file is no run, or names a question or a document twice; it names
    # the file, the line, and what is wrong; `OSError` if the file cannot be read.
    if is_trec(path):
        return {
            name: _check(((one, score) for one, score in ranked), f"{path}, question {name!r}")
            for name, ranked in read_trec(path).items()
        }
    run: dict[str, list[ScoredDocument]] = {}
    with path.open("rb") as file:
        for line in read_raw_lines(file):
            place = f"{path}, line {line.number}"
            try:
                name, ranked = _parse_line(parse_object(line.text))
            except InputError as error:
                raise InputError(f"{place}: {error}") from error
            if name in run:
                raise InputError(f"{place}: question {name!r} stands there twice")
            run[name] = _check(ranked, place)
    return run


def write_run(path: Path, run: Run) -> None:
    """Write a run, best first: as `trec_eval` reads it if the name ends with ``.trec``."""
    # Else as JSON lines: ``{"id": ..., "ranked": [[pmid, score], ...]}``.
    if path.suffix == ".trec":
        with path.open("w", encoding="utf-8") as out:
            for name, ranking in run.items():
                out.writelines(trec_lines(name, ranking))
    else:
        lines = (format_line(name, ranking) for name, ranking in run.items())
        path.write_text("".join(lines), encoding="utf-8")


def format_line(name: str, ranking: Ranking) -> str:
    """Return the line of a question in the file of a run."""
    fields = {"id": name, "ranked": [[one.pmid, one.score] for one in ranking]}
    return json.dumps(fields, ensure_ascii=False, allow_nan=False) + "\n"


def name_document(document: str) -> str:
    """Return how a run names a document: a URL's PMID, or the id of another corpus as it is."""
    return read_pmid(document) if "://" in document else document.strip()


def rank_scores(scores: Mapping[str, float]) -> list[ScoredDocument]:
    """Return documents with their scores, best first; equal scores stay in the order given."""
    order = sorted(scores, key=lambda pmid: -scores[pmid])
    return [ScoredDocument(pmid, scores[pmid]) for pmid in order]


def submit_run(run: Run, questions: Iterable[BioasqQuestion]) -> list[BioasqQuestion]:
    """Return questions with the documents of a run, as a submission has them."""
    # Snippets that a question has are kept where their document is among them; answers are not.
    made = []
    for one in questions:
        pmids = {name_document(ranked.pmid): ranked.pmid for ranked in run.get(one.id, ())}
        kept = tuple(piece for piece in one.snippets if name_document(piece.document) in pmids)
        documents = tuple(map(document_url, pmids))
        bare = replace(one, exact_answer=None, ideal_answers=())
        made.append(replace(bare, documents=documents, snippets=kept))
    return made


def is_trec(path: Path) -> bool:
    """Tell a TREC run by its first line; that of a run of ours is an object."""
    with path.open("rb") as file:
        first = next(read_raw_lines(file), None)
    return first is not None and not first.text.lstrip().startswith(b"{")


def _parse_line(fields: Mapping[str, Any]) -> tuple[str, list[tuple[str, float]]]:
    name, ranked = fields.get("id"), fields.get("ranked")
    if not isinstance(name, str) or not name.strip():
        raise InputError(f"id must be text, got {name!r:.80}")
    if not isinstance(ranked, list):
        raise InputError(f"ranked must be a list of [pmid, score], got {ranked!r:.80}")
    return name, [_parse_pair(one) for one in ranked]


def _parse_pair(pair: object) -> tuple[str, float]:
    match pair:
        case [str(pmid), int() | float() as score] if pmid.strip() and not isinstance(score, bool):
            return pmid, float(score)
    raise InputError(f"ranked must hold pairs [pmid, score], got {pair!r:.80}")


def _check(ranked: Iterable[tuple[str, float]], place: str) -> list[ScoredDocument]:
    """Return a ranking in which every document stands once, with a finite score."""
    found: dict[str, ScoredDocument] = {}
    for document, score in ranked:
        pmid = name_document(document)
        if pmid in found:
            raise InputError(f"{place}: document {document!r} stands there twice")
        if not math.isfinite(score):
            raise InputError(f"{place}: the score of {document!r} must be finite, got {score}")
        found[pmid] = ScoredDocument(pmid, score)
    return [*found.values()]


DONE = ("ok", "nothing_retrieved")  # outcomes that another run would not better


class SearchJournal(Journal):
    """Holds of each question its rankings and what went wrong; if something did, it is not done."""

    def is_done(self, question: BioasqQuestion) -> bool:
        """Tell whether a question is there, as it stands now, and nothing went wrong."""
        entry = self.entries.get(question.id)
        if entry is None:
            return False
        before = entry["question"]["body"]
        if before != question.body:
            raise SettingsError(
                f"question {question.id!r} is not the one that was searched for: {before!r:.80} "
                f"then, {question.body!r:.80} now"
            )
        return entry["outcome"] in DONE

    def add(self, found: Mapping[str, Any], **more: Any) -> None:
        """Write what `DocumentResult.to_dict` says of a question, and *more*, plain data."""
        fields = ("question", "outcome", "problems", "usage", "runs")
        self.put(found["question"]["id"], {**{name: found[name] for name in fields}, **more})

    def question(self, asked: BioasqQuestion) -> BioasqQuestion:
        """Return a question with what was found for it; as it is, without answers, if nothing."""
        entry = self.entries.get(asked.id)
        if entry is None:
            return BioasqQuestion(id=asked.id, type=asked.type, body=asked.body)
        return parse_question({**entry["question"], "type": asked.type})

    def run(
        self, name: str, questions: Sequence[BioasqQuestion]
    ) -> dict[str, list[ScoredDocument]]:
        """Return one ranking of every question that has it, by its name in `DocumentResult`."""
        # ``whole`` is the final one, followed by all others that were retrieved.
        found = {
            one.id: self.entries[one.id]["runs"] for one in questions if one.id in self.entries
        }
        if name == "whole":
            return {one: _join(runs["final"], runs["judged"]) for one, runs in found.items()}
        return {one: [ScoredDocument(*pair) for pair in runs[name]] for one, runs in found.items()}


def _join(first: Sequence[Any], rest: Sequence[Any]) -> list[ScoredDocument]:
    """Return a ranking, then what another has beside it, with scores that only fall."""
    named = {pmid for pmid, _ in first}
    found = [ScoredDocument(*pair) for pair in first]
    below = min((one.score for one in found), default=1.0)
    others = [pmid for pmid, _ in rest if pmid not in named]
    n = len(others)
    return [
        *found,
        *(ScoredDocument(pmid, below - (place + 1) / n) for place, pmid in enumerate(others)),
    ]
