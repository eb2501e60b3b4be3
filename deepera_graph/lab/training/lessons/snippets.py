"""Questions whose snippets experts marked, among the nearest snippets of other questions.

A folder of public pairs has them in ``bioasq_snippets.jsonl.gz``, a line each: ``query``,
``passage``, ``qid`` and ``pmid``. One question in `HELD_OUT_SHARE` is never taught.
"""

import gzip
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from random import Random
from typing import Any, Final, NamedTuple

from deepera_graph.calibration.instance import Context, Instance
from deepera_graph.packages import import_extra
from deepera_graph.text.jsonl import parse_object, read_raw_lines

Row = Mapping[str, Any]

SNIPPETS: Final = "bioasq_snippets"
HELD_OUT_SHARE: Final = 25  # one article, or one question of snippets, in so many
POOLS: Final = 300  # questions that teach a judge's trees; 900 made null results score lower
GOLDEN, OTHERS = (1, 1, 2, 3), (8, 12, 16, 20)  # snippets of a pool
N_FOUND: Final = 80  # by words


class AskedSnippets(NamedTuple):
    """A question, its golden snippets, and those of others that share most words with it."""

    id: str
    question: str
    golden: tuple[str, ...]
    near: tuple[str, ...]  # at most `N_FOUND`
    strange: tuple[str, ...]  # those of *near* from other papers than the golden ones


def digest(text: str) -> str:
    """Return 16 hexadecimal digits that name a text."""
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def is_held_out(name: str) -> bool:
    """Tell whether what has this name is measured on, and never taught."""
    return int(digest(name), 16) % HELD_OUT_SHARE == 0


def read_pairs(folder: Path, name: str) -> Iterator[dict[str, Any]]:
    """Yield the lines of a set of public pairs; none if the folder has no such set."""
    path = folder / f"{name}.jsonl.gz"
    if path.exists():
        with gzip.open(path, "rb") as file:
            for line in read_raw_lines(file):
                yield parse_object(line.text)


def read_questions(folder: Path) -> list[AskedSnippets]:
    """Return all questions of a folder that have snippets; none if it has fewer than two."""
    asked: dict[str, list[Row]] = defaultdict(list)
    for row in read_pairs(folder, SNIPPETS):
        asked[row["qid"]].append(row)
    if len(asked) < 2:
        return []
    rows = [row for its in asked.values() for row in its]
    texts = [row["passage"] for row in rows]
    found = find_near([its[0]["query"] for its in asked.values()], texts, N_FOUND)
    return [
        _gather(id, its, [rows[place] for place in places])
        for (id, its), places in zip(asked.items(), found, strict=True)
    ]


def read_snippets(path: Path) -> Iterator[Instance]:
    """Yield the pools that teach trees, of `POOLS` questions by chance, always the same ones."""
    chance = Random(0)
    taught = [one for one in read_questions(path.parent) if not is_held_out(one.id)]
    for one in chance.sample(taught, min(POOLS, len(taught))):
        golden = chance.sample(one.golden, min(chance.choice(GOLDEN), len(one.golden)))
        texts = [*golden, *one.strange[: chance.choice(OTHERS)]]
        chance.shuffle(texts)
        yield Instance(
            id=one.id,
            dataset=SNIPPETS,
            question=one.question,
            contexts=tuple(
                Context(id=str(place), text=text, is_golden=text in golden)
                for place, text in enumerate(texts)
            ),
        )


def _gather(id: str, rows: Sequence[Row], found: Sequence[Row]) -> AskedSnippets:
    golden = tuple(dict.fromkeys(row["passage"] for row in rows))
    papers = {row.get("pmid") for row in rows}
    others = [row for row in found if row["qid"] != id and row["passage"] not in golden]
    strange = (row["passage"] for row in others if row.get("pmid") not in papers)
    near = dict.fromkeys(row["passage"] for row in others)
    return AskedSnippets(id, rows[0]["query"], golden, tuple(near), tuple(dict.fromkeys(strange)))


def find_near(questions: Sequence[str], texts: Sequence[str], n: int) -> list[list[int]]:
    """Return the places of the *n* texts that share most words with each question."""
    bm25s = import_extra("bm25s", extra="train", what="training the judge")
    index = bm25s.BM25()
    index.index(bm25s.tokenize(list(texts), show_progress=False), show_progress=False)
    asked = bm25s.tokenize(list(questions), show_progress=False)
    places, _ = index.retrieve(asked, k=min(n, len(texts)), show_progress=False)
    return [[int(place) for place in row] for row in places]
