"""A little library of abstracts on wax moths, and a chat model that sorts them; all invented."""

import json
import re

from langchain_core.documents import Document

from deepera_graph.stores.words import WordIndex
from deepera_graph.text.words import content_words, split_sentences

QUESTION = "Does wax moth venom lower blood pressure in rats?"
# id, title, abstract; heat is how good the chat model finds it
ABSTRACTS = {
    "101": (
        "Wax moth venom and blood pressure",
        "Wax moth venom was given to 40 rats. Blood pressure fell by 12 mmHg within an hour. "
        "Controls did not change.",
        9,
    ),
    "102": (
        "Venom of the greater wax moth",
        "We review the venom of wax moth larvae. Rats tolerate it well.",
        7,
    ),
    "103": (
        "Blood pressure in rats on a salty diet",
        "Salt raised the blood pressure of rats. No venom was given.",
        5,
    ),
    "104": (
        "A venom of bees",
        "Bee venom lowers blood pressure in dogs, and in rats at high doses.",
        8,
    ),
    "105": (
        "Wax moth farming",
        "The wax moth is raised on bran and honey. Rats eat the larvae.",
        1,
    ),
    "106": ("Rats", "Rats live in groups. Their pressure to breed is high in spring.", 2),
    "107": ("Moths at night", "A moth finds its mate at night. Venom plays no part in this.", 3),
    "108": ("Blood counts", "Blood of rats was counted by three readers, who agreed.", 4),
    "109": ("Wax", "Wax melts at 62 degrees. A moth can digest it.", 0),
    "110": ("Pressure of the air", "Air pressure falls with height. Rats do not notice.", 6),
    "111": ("Moth venom peptides", "Seven peptides of moth venom were sequenced in blood.", 10),
    "112": ("Lower doses", "Lower doses of venom had no effect on rats.", 11),
}
HEAT = {name: heat for name, (_, _, heat) in ABSTRACTS.items()}
_OF_TITLE = {title: name for name, (title, _, _) in ABSTRACTS.items()}


def documents(*ids):
    """The abstracts as they are indexed; all of them by default."""
    return [
        Document(id=one, page_content=ABSTRACTS[one][1], metadata={"title": ABSTRACTS[one][0]})
        for one in ids or ABSTRACTS
    ]


class Library:
    """A search by words that keeps what it was asked."""

    def __init__(self, *ids):
        self._index, self.asked = WordIndex(), []
        self._index.add(documents(*ids))

    def search(self, question, k=30):
        self.asked.append((question, k))
        return self._index.search(question, k)


def weigh_by_words(question, windows):
    """Weigh sentences by how many words of the question they have."""
    asked = {*content_words(question)}
    return [
        [float(len(asked & {*content_words(one.text)})) for one in split_sentences(window["text"])]
        for window in windows
    ]


def shown(request):
    """The ids of the documents that a prompt lists, in its order."""
    user = next(one["content"] for one in request.messages if one["role"] == "user")
    lines = re.findall(r"^\[\d+\] (.*)", user, re.MULTILINE)
    return [
        next(name for title, name in _OF_TITLE.items() if one.startswith(title)) for one in lines
    ]


def play(request):
    """Sort by heat, rewrite by adding a word, and judge by heat."""
    if request.system.startswith("You sort"):
        listed = shown(request)
        order = sorted(range(1, len(listed) + 1), key=lambda number: -HEAT[listed[number - 1]])
        return {"order": order}
    if request.system.startswith("You turn"):
        return {"query": "Galleria mellonella venom hypotension"}
    if "You read" in request.system:
        return {
            "topic": "zoology", "entity_type": f"animal: {request.user}",
            "intent": "causal inference", "expected_answer_type": "categorical",
        }  # fmt: skip
    title = re.search(r"^Title: (.*)$", request.user, re.MULTILINE)[1]
    return {"reason": "scripted", "evidence": [1], "score": HEAT[_OF_TITLE[title]] / 11}


def text_of(request):
    """What a careful model would say, as text."""
    return json.dumps(play(request))
