"""The quoting answer: evidence sentences, each with the number of its passage."""

from deepera_graph.backends.local.measures import study
from deepera_graph.roles import AnswerTask, EvidenceItem, PassageTask
from deepera_graph.schema import Answer
from deepera_graph.usage import Usage

MOST_SENTENCES = 5


def answer(task: AnswerTask) -> Answer:
    """Return up to five evidence sentences in the order of the evidence, each with its ``[n]``.

    A sentence that an earlier passage already gave is not repeated. White space within a sentence
    becomes one space; nothing else changes.
    """
    sentences: dict[str, int] = {}
    for number, item in enumerate(task["evidence"], start=1):
        sentence = " ".join(_sentence(task, item).split())
        if sentence and len(sentences) < MOST_SENTENCES:
            sentences.setdefault(sentence, number)
    text = " ".join(f"{sentence} [{number}]" for sentence, number in sentences.items())
    return Answer(text=text, citations=list(sentences.values()), usage=Usage())


def _sentence(task: AnswerTask, item: EvidenceItem) -> str:
    if item["quote"].strip():
        return item["quote"]
    passage = PassageTask(
        question=task["question"],
        intent=task["intent"],
        text=item["text"],
        title=item["title"],
        section=item["section"],
    )
    found = study(passage)
    return found.best.sentence.text if found else ""
