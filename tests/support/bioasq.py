"""Questions of BioASQ task B, all invented, as they stand in files; and files of them."""

import json
import os
import random
from pathlib import Path

SHARED = Path(os.environ.get("DEEPERA_SHARED", Path(__file__).parents[3] / "shared"))
FIXTURES = SHARED / "bioasq" / "fixtures"
URL = "http://www.ncbi.nlm.nih.gov/pubmed/"


def docs(*numbers, scheme="http"):
    return [f"{scheme}://www.ncbi.nlm.nih.gov/pubmed/{one}" for one in numbers]


def piece(doc, begin, end, section="abstract", last="", scheme="http"):
    """A snippet; its text has the length that its offsets say."""
    return {
        "document": docs(doc, scheme=scheme)[0],
        "text": "x" * max(end - begin, 0),
        "beginSection": section,
        "endSection": last or section,
        "offsetInBeginSection": begin,
        "offsetInEndSection": end,
    }


def question(name, kind="summary", documents=(), snippets=(), exact=None, ideal=None):
    """A question; the answers that are None are left out."""
    answers = {"exact_answer": exact, "ideal_answer": ideal}
    return {
        "id": name,
        "type": kind,
        "body": f"What about moss {name}?",
        "documents": [*documents],
        "snippets": [*snippets],
        **{key: value for key, value in answers.items() if value is not None},
    }


def write_set(path, *questions):
    text = json.dumps({"questions": questions}, ensure_ascii=False)
    path.write_text(text, encoding="utf-8")
    return path


FIVE_GOLDEN = (
    question("q1", "factoid", docs(*range(15)), [piece(0, 0, 99)], [["uveal melanoma", "UM"]]),
    question(
        "q2",
        "list",
        docs(1, 2, 3),
        [piece(1, 0, 99), piece(1, 50, 149)],
        [["EGF", "epidermal growth factor"], ["TGF-alpha"], ["betacellulin"]],
    ),
    question("q3", "yesno", docs(1), [piece(1, 0, 9)], "yes"),
    question("q4", "yesno", docs(7), [piece(7, 0, 9)], "no"),
    question("q5", "yesno", docs(7), [piece(7, 0, 9)], "yes"),
)
FIVE_GIVEN = (
    question(
        "q1",
        "factoid",
        docs(0, 91, 2, 93, 4, 95, 6, 97, 8, 99),
        [piece(0, 50, 149), piece(5, 0, 9)],
        [["Melanoma"], ["um"], ["uveal melanoma"]],
    ),
    question(
        "q2",
        "list",
        docs(1, 9),
        [piece(1, 0, 99)],
        [["EGF"], ["epidermal growth factor"], ["tgf-alpha"], ["foo"]],
    ),
    question("q3", "yesno", docs(9, 1, 1), [], "Yes"),
    question("q4", "yesno", docs(7), [piece(7, 0, 9)], "yes"),
    question("q5", "yesno", docs(7), [piece(7, 0, 9)], "yes"),
)

_KINDS = ("yesno", "factoid", "list", "summary")
_METALS = ("iron", "Zinc", "copper", "lead ", "TIN", "gold", "silver", "nickel", "cobalt", "α-tin")


def draw_sets(seed, n=25):
    """Golden and given questions at random, with what the official evaluator stumbles over."""
    draw = random.Random(seed)
    golden = [_draw_golden(draw, f"q{number}") for number in range(n)]
    given = [_draw_given(draw, one) for one in golden]
    draw.shuffle(given)
    return golden, given


def _draw_golden(draw, name):
    kind, found = draw.choice(_KINDS), draw.sample(range(40), draw.randint(1, 14))
    snippets = _draw_pieces(draw, found, 8) or [piece(found[0], 0, 9)]
    exact = draw.choice(["yes", "no"]) if kind == "yesno" else _draw_names(draw, kind == "list")
    return question(name, kind, docs(*found), snippets, None if kind == "summary" else exact)


def _draw_given(draw, golden):
    known = [int(one.rpartition("/")[2]) for one in golden["documents"]]
    found = [
        draw.choice(known) if draw.random() < 0.6 else draw.randrange(40)
        for _ in range(draw.randint(0, 13))
    ]
    kind = golden["type"]
    said = draw.choice(["yes", "no", "No", "perhaps", "not known"])
    exact = said if kind == "yesno" else _draw_names(draw, True)
    return question(
        golden["id"],
        kind,
        docs(*found, scheme=draw.choice(["http"] * 5 + ["https"])),
        _draw_pieces(draw, found or [99], 9),
        None if kind == "summary" else exact,
    )


def _draw_pieces(draw, pool, most):
    pieces = []
    for _ in range(draw.randint(0, most)):
        begin = draw.randrange(120)
        section = draw.choice(["title", "abstract", "abstract", "abstract", "sections.0"])
        scheme = draw.choice(["http"] * 5 + ["https"])
        pieces.append(
            piece(draw.choice(pool), begin, begin + draw.randrange(120), section, "", scheme)
        )
    return pieces


def _draw_names(draw, several):
    n_entities = draw.randint(1, 5 if several else 1)
    return [[draw.choice(_METALS) for _ in range(draw.randint(1, 3))] for _ in range(n_entities)]


# A corpus for searches: two records a plant, of which the one with its number answers.
PLANTS = ("moss", "fern", "lichen", "clover", "yarrow", "sorrel")
CORPUS = [
    record
    for number, plant in enumerate(PLANTS, start=1)
    for record in (
        {
            "id": str(10 * number),
            "title": f"Water in {plant}",
            "text": f"The {plant} held {number} litres of water in a trial of thirty days.",
        },
        {
            "id": str(10 * number + 1),
            "title": f"Where {plant} is found",
            "text": f"Walls and meadows with {plant} are often visited. Water was not measured.",
        },
    )
]


def plant_questions():
    """A yes/no, a factoid, a list and a summary question in turn, each with its record."""
    asked = []
    for number, plant in enumerate(PLANTS, start=1):
        kind = _KINDS[number % len(_KINDS)]
        text = CORPUS[2 * (number - 1)]["text"]
        names = [[f"{number} litres"]]
        exact = {"yesno": "yes", "factoid": names, "list": names, "summary": None}[kind]
        asked.append(
            {
                **question(f"q{number}", kind, docs(10 * number), exact=exact, ideal=text),
                "body": f"How much water did the {plant} hold in a trial?",
                "snippets": [{**piece(10 * number, 0, len(text)), "text": text}],
            }
        )
    return asked
