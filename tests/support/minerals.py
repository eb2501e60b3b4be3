"""Thirty invented records about minerals, and a question on each that one of them answers."""

import json

COLOURS = ("green", "amber", "violet", "grey", "ochre", "scarlet")
STONES = ("belkite", "dorvine", "fessal", "gannite", "hulvite")
CORPUS = [
    {
        "id": str(100 + 6 * place + shade),
        "title": f"A note on {stone} of type {shade}",
        "text": f"Samples of {stone} type {shade} were {colour} in daylight. Others were not seen.",
        "year": 2010 + shade,
    }
    for place, stone in enumerate(STONES)
    for shade, colour in enumerate(COLOURS)
]


def questions():
    """A question a record; its golden document is named as BioASQ does."""
    return [
        {
            "id": f"q{one['id']}",
            "type": "factoid",
            "body": f"Which colour has the {one['title'].removeprefix('A note on ')}?",
            "documents": [f"http://www.ncbi.nlm.nih.gov/pubmed/{one['id']}"],
            "snippets": [],
        }
        for one in CORPUS
    ]


def write_golden(path, given=None):
    whole = {"questions": questions() if given is None else given}
    path.write_text(json.dumps(whole), encoding="utf-8")
    return path


def write_corpus(path):
    path.write_text("".join(json.dumps(one) + "\n" for one in CORPUS), encoding="utf-8")
    return path
