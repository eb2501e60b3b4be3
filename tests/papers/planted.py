"""A small planted world: papers made of attributes, questions with limits, and exact answers."""

import random

FIELDS = {
    "kelp counting": "estimating seaweed cover",
    "bell tuning": "adjusting the pitch of carillons",
    "orchard pruning": "cutting back of fruit trees",
    "harbour scheduling": "berth planning for ships",
    "glaze matching": "reproducing colours of pottery",
}
METHODS = {  # a second wording that has none of the first's words
    "swarm search": "many simple agents that follow the best",
    "decision tables": "curated lists of if-then cases",
    "spectral clustering": "grouping by eigenvectors of a similarity matrix",
    "reward learning": "policies that are trained by trial and reward",
    "wavelet filters": "multi-scale decomposition of the signal",
}
VENUES = ("NORDAI", "ICRS", "DAIC")


def make_world(n=100, *, seed=1):
    """Return papers; each knows its field, method and what it says it does without."""
    chance, papers = random.Random(seed), []
    fields, methods = list(FIELDS), list(METHODS)
    for number in range(n):
        field, method = fields[number % len(fields)], chance.choice(methods)
        others = [one for one in methods if one != method]
        spurned, rival = chance.sample(others, 2)
        year = 2012 + number * 12 // n
        word = method if chance.random() < 0.6 else METHODS[method]
        topic = field if chance.random() < 0.8 else FIELDS[field]
        lines = [
            f"Work on {field} has long been done by hand.",
            f"Our system relies on {word}.",
        ]
        if chance.random() < 0.5:
            lines.append(f"Unlike earlier work, it needs no {spurned}.")
        lines.append(f"It came out {chance.randint(2, 20)} points above {rival}.")
        earlier = [one for one in papers if one["field"] == field]
        cited = chance.sample(earlier, min(len(earlier), 5))
        papers.append(
            {
                "id": f"pl{number:03}",
                "title": f"{topic.capitalize()} with {word}",
                "abstract": " ".join(lines),
                "authors": ["Hana Ames", "Fay Gray"],
                "year": year,
                "date": str(year),
                "venue": chance.choice(VENUES),
                "references": [one["id"] for one in cited],
                "field": field,
                "method": method,
                "rival": rival,
            }
        )
    return papers


def plain(papers):
    """Return the papers as a file has them."""
    hidden = ("field", "method", "rival")
    return [{name: one[name] for name in one if name not in hidden} for one in papers]


def make_questions(papers):
    """Return questions with limits: text, test of a paper, and what is excluded."""
    made = []
    for place, field in enumerate(FIELDS):
        method = list(METHODS)[place]
        wordings = (
            f"Find papers on {field}, excluding approaches based on {method}.",
            f"Papers on {field} with approaches other than {method}.",
        )
        made.append((wordings[place % 2], _without(field, method)))
        made.append((f"Papers on {field}, published since 2018.", _since(field, 2018)))
        made.append((f"Papers on {field}, published before 2019.", _before(field, 2019)))
        made.append((f"Papers on {field}, not those at ICRS.", _not_at(field, "ICRS")))
    return [
        {
            "query": text,
            "gold": {one["id"] for one in papers if fits(one) == 2},
            "violating": {one["id"] for one in papers if fits(one) == 1},
        }
        for text, fits in made
    ]


def _grade(field, holds):
    return lambda one: 0 if one["field"] != field else 2 if holds(one) else 1


def _without(field, method):
    return _grade(field, lambda one: one["method"] != method)


def _since(field, year):
    return _grade(field, lambda one: one["year"] >= year)


def _before(field, year):
    return _grade(field, lambda one: one["year"] < year)


def _not_at(field, venue):
    return _grade(field, lambda one: one["venue"] != venue)
