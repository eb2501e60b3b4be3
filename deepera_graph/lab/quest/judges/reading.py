"""Questions and candidates from files."""

import json
from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path

from deepera_graph.errors import InputError
from deepera_graph.lab.quest.plan import QuestQuestion
from deepera_graph.literature.paper_keys import normalize_id
from deepera_graph.text.files.jsonl import read_places


def read_questions(path: Path) -> tuple[QuestQuestion, ...]:
    """Read questions, as ``questions.jsonl`` has them; those of `deepera-lab bench papers` do, too.

    Raises:
        InputError: A line is none, or an id comes twice; the message names the place.
    """
    found: dict[str, QuestQuestion] = {}
    for where, line in read_places(path):
        try:
            one = QuestQuestion.from_dict(line)
        except InputError as error:
            raise InputError(f"{where}: {error}") from error
        if one.id in found:
            raise InputError(f"{where}: the id {one.id!r} comes twice")
        found[one.id] = one
    if not found:
        raise InputError(f"{path}: there are no questions")
    return tuple(found.values())


def read_candidates(path: Path, questions: Sequence[QuestQuestion]) -> dict[str, list[str]]:
    """Read papers by question: lines ``{"id" or "query_id", "ranked" or "paper_ids": [ids]}``.

    A run that `deepera-lab bench papers` has written begins with a line of its own, which is passed
    over; of a query that was searched twice the last line counts.

    Raises:
        InputError: A line is none, its question is not among those given, or a question has no
            papers at all; the message names it.
    """
    known = {one.id for one in questions}
    found: dict[str, list[str]] = {}
    is_run = False
    for where, line in read_places(path):
        if not found and "ran" in line and "id" not in line:
            is_run = True
            continue
        id = line.get("query_id", line.get("id"))
        if not isinstance(id, str) or id not in known:
            raise InputError(f"{where}: there is no question with the id {id!r:.80}")
        ids = line.get("paper_ids", line.get("ranked", [line.get("paper_id")]))
        if not isinstance(ids, list) or not all(isinstance(one, str) and one for one in ids):
            raise InputError(f"{where}: 'ranked' must be a list of ids, got {ids!r:.80}")
        papers = [normalize_id(one) for one in ids]
        found[id] = papers if is_run else [*found.get(id, ()), *papers]
    if missing := sorted(known - found.keys()):
        raise InputError(f"{path}: no papers for the question {missing[0]!r}")
    return found


def hash_candidates(candidates: Mapping[str, Sequence[str]]) -> str:
    """Return the SHA-256 of papers by question, whatever their order."""
    plain = {id: sorted(set(papers)) for id, papers in candidates.items()}
    return sha256(json.dumps(plain, sort_keys=True).encode()).hexdigest()
