"""How rare a stem is in scientific abstracts."""

import json
import math
from collections.abc import Mapping
from functools import cache
from importlib.resources import files

TABLE = "term_counts.json"


def rarity(stem: str) -> float:
    """Weight of a stem: 0 for one found in every document, 1 for one the table does not know.

    Source:
        Inverse document frequency, Robertson and Sparck Jones (1976), scaled to [0, 1]; the counts
        are those of `TABLE`, which names its documents.
    """
    n_documents, counts = _table()
    n_with = counts.get(stem, 0)
    return math.log((n_documents + 1) / (n_with + 1)) / math.log(n_documents + 1)


@cache
def _table() -> tuple[int, Mapping[str, int]]:
    text = files(__package__).joinpath(TABLE).read_text(encoding="utf-8")
    table = json.loads(text)
    return table["documents"], table["counts"]
