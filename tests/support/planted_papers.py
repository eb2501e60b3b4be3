"""A small planted world of papers: what each is about is known, so queries have exact answers.

Half of the papers that do without a method say so by its name, and some that use it never name it.
"""

import json
import random
from pathlib import Path

FIELDS = {
    "kite steering": "control of tethered wings",
    "bread proofing": "timing of dough rise",
    "harbour scheduling": "berth planning",
    "owl counting": "census of night birds",
}
METHODS = {
    "random forests": "bagged decision trees",
    "spectral clustering": "cuts along eigenvectors",
    "tabu search": "local moves with a memory",
}
VENUES = ("Workshop on Quiet Systems", "Annals of Small Trials")
N_PAPERS = 96


def plant_world(seed=3):
    """Return papers with what is true of them under `about`."""
    chance = random.Random(seed)
    papers = []
    for number in range(N_PAPERS):
        field = [*FIELDS][number % len(FIELDS)]
        method = chance.choice([*METHODS])
        spurned = chance.choice([one for one in METHODS if one != method])
        year = chance.randint(2015, 2024)
        names = chance.choice((field, FIELDS[field]))
        uses = chance.choice((method, METHODS[method]))
        without = f" Unlike others we avoid {spurned}." if chance.random() < 0.5 else ""
        earlier = [one["id"] for one in papers if one["year"] <= year]
        papers.append(
            {
                "id": f"pp-{number:03}",
                "title": f"{names.capitalize()}: trial {number}",
                "abstract": f"Our approach to {names} is based on {uses}.{without} It was run "
                f"for {chance.randint(2, 60)} days.",
                "authors": ["Ida Moor"],
                "year": year,
                "venue": chance.choice(VENUES),
                "references": chance.sample(earlier, min(len(earlier), 3)),
                "about": {"field": field, "method": method, "year": year},
            }
        )
    return papers


def grade(paper, condition):
    """Return 0 off topic, 1 against a limit, 2 where all holds."""
    about = paper["about"]
    if about["field"] != condition["field"]:
        return 0
    holds = (
        about["method"] == condition.get("method", about["method"])
        and about["method"] != condition.get("not_method")
        and about["year"] >= condition.get("year_from", 0)
    )
    return 2 if holds else 1


def plant_queries(papers):
    """Return queries of two intents with their answers, and what breaks their limits."""
    conditions = [{"field": field, "method": "tabu search"} for field in FIELDS]
    conditions += [{"field": field, "not_method": name} for field in FIELDS for name in METHODS]
    conditions += [{"field": field, "year_from": 2020} for field in FIELDS]
    queries = []
    for number, one in enumerate(conditions):
        grades = {paper["id"]: grade(paper, one) for paper in papers}
        queries.append(
            {
                "id": f"plan-{number:02}",
                "query": _ask(one),
                "intent": "method" if "method" in one else "scope",
                "constraints": {k: v for k, v in one.items() if k == "year_from"},
                "condition": one,
                "gold": [name for name, mark in grades.items() if mark == 2],
                "violating": [name for name, mark in grades.items() if mark == 1],
            }
        )
    return queries


def _ask(condition):
    text = f"Papers on {condition['field']}"
    if "method" in condition:
        return f"{text} that use {condition['method']}."
    if "not_method" in condition:
        return f"{text}, excluding those based on {condition['not_method']}."
    return f"{text}, since {condition['year_from']}."


def write_world(folder: Path):
    """Write papers.jsonl and queries.jsonl, and return both paths."""
    papers = plant_world()
    for name, lines in (("papers", papers), ("queries", plant_queries(papers))):
        bare = [{k: v for k, v in one.items() if k != "about"} for one in lines]
        text = "".join(json.dumps(one) + "\n" for one in bare)
        (folder / f"{name}.jsonl").write_text(text, encoding="utf-8")
    return folder / "papers.jsonl", folder / "queries.jsonl"
