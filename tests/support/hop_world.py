"""A little world whose questions take several hops, and a chat model that knows how to answer them.

`play` answers every prompt of the agent as a careful model would: it plans by the path it is shown,
and answers from the sentences it is shown, so that a passage that was not found is not known.
"""

import re

from langchain_core.documents import Document

from deepera_graph.stores.words import WordIndex

PASSAGES = {
    "versus": (
        "Versus Books",
        "Versus Books is a publisher of strategy guides. It was founded in 1998 by Anna Berg.",
    ),
    "anna": (
        "Anna Berg",
        "Anna Berg is a publisher who was born in Lund. Her father, Nils Berg, kept a bakery.",
    ),
    "nils": ("Nils Berg", "Nils Berg was a baker. He was born in Falun in 1931."),
    "falun": ("Falun", "Falun lies in Dalarna. The copper mine of Falun closed in 1992."),
    "tarn": (
        "Tarn Press",
        "Tarn Press is a publisher of maps. It was founded in 2004 by Ole Dahl.",
    ),
    "ole": ("Ole Dahl", "Ole Dahl is a surveyor who was born in Bergen."),
    "lund": ("Lund", "Lund is a town in Skåne. Its cathedral was built in the twelfth century."),
    "mine": ("Copper mining", "A copper mine closes when its ore no longer pays for the work."),
}
DOCUMENTS = [
    Document(id=name, page_content=text, metadata={"title": title})
    for name, (title, text) in PASSAGES.items()
]

TWO = "Where was the founder of Versus Books born?"
FOUR = "When did the mine close in the birthplace of the father of the founder of Versus Books?"
COMPARE = "Which was founded first, Versus Books or Tarn Press?"
NOWHERE = "Who designed the logo of Tarn Press?"

# The sub-questions of a question, all in one plan.
PLANS = {
    TWO: ["Who founded Versus Books?", "Where was #1 born?"],
    FOUR: [
        "Who founded Versus Books?",
        "Who is the father of #1?",
        "Where was #2 born?",
        "When did the mine of #3 close?",
    ],
    COMPARE: ["When was Versus Books founded?", "When was Tarn Press founded?"],
    NOWHERE: ["Who designed the logo of Tarn Press?"],
}
# What is asked in other words, where that found nothing.
AGAIN = {NOWHERE: ["Who drew the emblem of Tarn Press?"]}
# What answers a sub-question, and words of the sentence that says so.
FACTS = {
    "Who founded Versus Books?": ("Anna Berg", "founded in 1998 by Anna Berg"),
    "Where was Anna Berg born?": ("Lund", "born in Lund"),
    "Who is the father of Anna Berg?": ("Nils Berg", "father, Nils Berg"),
    "Where was Nils Berg born?": ("Falun", "born in Falun"),
    "When did the mine of Falun close?": ("1992", "closed in 1992"),
    "When was Versus Books founded?": ("1998", "founded in 1998"),
    "When was Tarn Press founded?": ("2004", "founded in 2004"),
}
# The answer of a question, and words of all sentences that carry it.
ANSWERS = {
    TWO: ("Lund", ["founded in 1998 by Anna Berg", "born in Lund"]),
    FOUR: (
        "1992",
        ["founded in 1998 by Anna", "father, Nils Berg", "born in Falun", "closed in 1992"],
    ),
    COMPARE: ("Versus Books", ["founded in 1998", "founded in 2004"]),
}


class Search:
    """A search by words that keeps its questions."""

    def __init__(self, documents=DOCUMENTS, k=3):
        self._index, self._k = WordIndex(), k
        self._index.add(documents)
        self.asked = []

    def __call__(self, question):
        self.asked.append(question)
        return self._index.search(question, k=self._k)


def asked(request):
    """What was asked, also where it is asked again after an unusable reply."""
    return next(one["content"] for one in request.messages if one["role"] == "user")


def play(request):
    """Answer a prompt of the agent; *request* has its texts."""
    user = asked(request)
    if request.system.startswith("You plan"):
        return play_plan(user)
    if request.system.startswith("You answer one step"):
        return play_step(user)
    if request.system.startswith("You answer a question that took several steps"):
        return play_reason(user)
    if request.system.startswith("You compare two answers"):
        return {"label": "entailment" if "Lund" in user else "neutral"}
    assert request.system.startswith("You answer a question from passages")
    return {"reason": "read", "answer": play_step(user)["answer"] or "unknown"}


def play_plan(user):
    """Plan all steps that the path does not have, and once more what it did not find."""
    question, n_asked = question_in(user), len(re.findall(r"^Answer", user, re.MULTILINE))
    planned = PLANS[question]
    again = [*planned, *AGAIN.get(question, [])][n_asked:]
    return {
        "thought": "next" if again else "all known",
        "questions": planned[n_asked:] or again,
        "is_retry": n_asked >= len(planned) and bool(again),
        "is_complete": True,
    }


def play_step(user):
    answer, words = FACTS.get(question_in(user), ("", "no such words"))
    numbers = sentences_with(user, words)
    if not numbers:
        return {"reason": "no sentence says it", "answer": "", "evidence": [], "support": "none"}
    found = {"reason": "a sentence says it", "answer": answer, "evidence": numbers[:1]}
    return {**found, "support": "proven"}


def play_reason(user):
    answer, needed = ANSWERS.get(question_in(user), ("", ["no such words"]))
    numbers = [one for words in needed for one in sentences_with(user, words)[:1]]
    is_sufficient = len(numbers) == len(needed)
    return {
        "check": "the path holds" if is_sufficient else "a step is not in the passages",
        "corrections": [],
        "answer": answer if is_sufficient else "",
        "evidence": numbers if is_sufficient else [],
        "support": "proven" if is_sufficient else "none",
    }


def question_in(user):
    return re.match(r"Question: (.*)", user)[1]


def sentences_with(user, words):
    """The numbers of the sentences that hold some words."""
    return [int(n) for n, text in re.findall(r"^(\d+): (.*)$", user, re.MULTILINE) if words in text]
