"""A small world of invented papers, and bases of it."""

import gzip
import json
import random
from pathlib import Path

TOPICS = (
    "crop disease detection", "query autocompletion", "bridge inspection", "birdsong transcription",
    "tide forecasting", "recipe retrieval", "glacier mapping", "proof checking",
)  # fmt: skip
METHODS = (
    "contrastive pretraining", "graph kernels", "active learning", "symbolic regression",
    "sparse attention", "random forests", "curriculum training", "program synthesis",
)  # fmt: skip
VENUES = ("NORDAI", "ICRS", "DAIC", "Journal of Invented Results", "")


def invent_papers(n: int, *, seed: int = 0) -> list[dict]:
    """Return papers with citations among them; some without year, abstract or venue."""
    chance = random.Random(seed)
    papers: list[dict] = []
    for number in range(n):
        topic, method = chance.choice(TOPICS), chance.choice(METHODS)
        year = None if chance.random() < 0.1 else chance.randint(2005, 2024)
        month = chance.choice(("", f"-{chance.randint(1, 12):02}"))
        name = f"{topic.capitalize()} by {method}: study {number}"
        abstract = (
            f"We look at {topic} and compare {method} with {chance.choice(METHODS)}. "
            f"Trials with {chance.randint(2, 90)} sites of Lintel-{number} show a gain."
        )
        earlier = [one["id"] for one in papers]
        papers.append(
            {
                "id": f"w{number:04}",
                "title": name,
                "abstract": "" if chance.random() < 0.1 else abstract,
                "authors": [f"Hana Ames{number}", "Fay Gray"],
                "year": year,
                "date": f"{year}{month}" if year and chance.random() < 0.7 else "",
                "venue": chance.choice(VENUES),
                "doi": f"10.5555/World.{number}" if chance.random() < 0.5 else "",
                "references": chance.sample(earlier, min(len(earlier), chance.randint(0, 5))),
            }
        )
    return papers


def write_lines(path: Path, papers: list[dict]) -> Path:
    """Write papers as JSON lines, compressed if the name ends in .gz."""
    text = "".join(json.dumps(one) + "\n" for one in papers).encode()
    path.write_bytes(gzip.compress(text, mtime=0) if path.suffix == ".gz" else text)
    return path
