"""The answerer of the rules: sentences of the evidence, word for word, by what they say."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import get_args

from deepera_graph.judges.heuristic.analysis import FAINT, analyze_passage
from deepera_graph.judges.heuristic.topicality import STATING, names_any, read_question_terms
from deepera_graph.schema import (
    Answer,
    AnswerTask,
    Direction,
    EvidenceItem,
    Window,
    passage_task,
)
from deepera_graph.text.questions import count_directions, describe_directions, name_direction
from deepera_graph.text.words import STOP_WORDS, drop_label, is_general, words
from deepera_graph.usage import Usage

MAX_SENTENCES = 5
NO_ANSWER = "insufficient evidence: no sentence quoted names anything that is asked about"
NO_OUTCOME = "insufficient evidence: no passage of the sentences quoted names the outcome asked for"
OFF_TOPIC = "the sentence quoted names nothing that is asked about"
SAID_BEFORE = "another study is quoted with the same sentence; it is counted"
TOO_MANY = f"{MAX_SENTENCES} others are quoted; it is counted"


def answer(task: AnswerTask) -> Answer:
    """Return up to five evidence sentences, one a passage, each with its ``[n]``."""
    # They are grouped by what they say, ``Supports: ...``, where that is known, else in the order
    # of the evidence; the best of each direction is among the five, and those that answer are
    # counted at the end. A sentence that an earlier passage already gave is not repeated, and a
    # study is quoted and counted once. White space within a sentence becomes one space, and the
    # label of a part of an abstract, ``Conclusions:``, is left out; nothing else changes.
    # A sentence that names nothing of the question is no answer to it, nor is one of a passage that
    # does not name its outcome; if all are such, there is none. Why a study is not quoted is told,
    # and what those say that are not counted.
    need = read_question_terms(task["question"], task["intent"]["entity_type"])
    named = find_outcome(task["question"])
    outcome = read_question_terms(named, "")
    sentences: dict[str, int] = {}
    directions: dict[int, Direction | None] = {}
    studies: set[int] = set()
    uncited: dict[int, str] = {}
    others: dict[int, Direction | None] = {}  # by study
    is_near = False  # a sentence is of what is asked about, but its passage not of the outcome
    for number, item in enumerate(task["evidence"], start=1):
        sentence = drop_label(" ".join(_sentence(task, item).split()))
        whole = f"{item['title']} {item['text']} {sentence}"
        study = item.get("study", -number)
        if study in studies:
            continue
        is_about = bool(sentence) and names_any(need, sentence)
        is_near = is_near or is_about
        if is_about and names_any(outcome, whole):
            studies.add(study)
            if sentences.setdefault(sentence, number) != number:
                uncited[number] = SAID_BEFORE
            directions[number] = item.get("direction")
        else:
            others.setdefault(study, item.get("direction"))
            uncited[number] = f"the passage does not name {named!r}" if is_about else OFF_TOPIC
    if not sentences:
        return Answer(text=NO_OUTCOME if is_near else NO_ANSWER, citations=[], usage=Usage())
    numbers = _pick_numbers(list(sentences.values()), directions)
    chosen = {number: one for one, number in sentences.items() if number in numbers}
    parts = [_write_side(side, chosen, directions) for side in (None, *get_args(Direction))]
    rest = (side for study, side in others.items() if study not in studies)
    if said := describe_directions(count_directions(directions.values())):
        more = describe_directions(count_directions(rest))
        parts.append(f"({said}{f'; not counted: {more}' if more else ''})")
    uncited |= {number: TOO_MANY for number in sentences.values() if number not in numbers}
    text = " ".join(filter(None, parts))
    return Answer(text=text, citations=numbers, uncited=uncited, usage=Usage())


_OF_WHOM = frozenset(("in", "among", "during", "after", "than", "when", "versus", "compared"))
_EMPTY = frozenset(
    """
    amount frequency incidence level levels likelihood number odds prevalence rate rates risk risks
    use
    """.split()  # noqa: SIM905
)
_FIRST_ASKED = 3  # words of a question before which no group is named


def find_outcome(question: str) -> str:
    """Return the word for what a question asks about its subject; empty if it names none."""
    # That is the last word of what its verb is about, or the one before an ``of``, and before those
    # in whom it is looked for: *growth* in ``Does A reduce the growth of B in C?``.
    found = words(question)
    verbs = (place for place, word in enumerate(found) if word in STATING - FAINT)
    verb = next(verbs, -1)
    asked = found[verb + 1 :]
    skipped = 0 if verb >= 0 else _FIRST_ASKED
    ends = (place for place, word in enumerate(asked) if place >= skipped and word in _OF_WHOM)
    asked = asked[: next(ends, len(asked))]
    before = [one for one, after in pairwise(asked) if after == "of" and one not in _EMPTY]
    telling = [
        one for one in (*asked, *before[:1]) if one not in STOP_WORDS and not is_general(one)
    ]
    return telling[-1] if telling else ""


def _write_side(
    side: Direction | None, sentences: Mapping[int, str], directions: Mapping[int, Direction | None]
) -> str:
    """Return the sentences that say the same, after a word for it; empty if none does."""
    said = [f"{one} [{number}]" for number, one in sentences.items() if directions[number] == side]
    head = [f"{name_direction(side).capitalize()}:"] if side else []
    return " ".join([*head, *said]) if said else ""


def _pick_numbers(numbers: Sequence[int], directions: Mapping[int, Direction | None]) -> list[int]:
    """Return at most five numbers of evidence, rising: the first of each direction, then others."""
    firsts: dict[Direction | None, int] = {}
    for number in numbers:
        firsts.setdefault(directions[number], number)
    wanted = [number for direction, number in firsts.items() if direction is not None]
    return sorted(list(dict.fromkeys([*wanted, *numbers]))[:MAX_SENTENCES])


def _sentence(task: AnswerTask, item: EvidenceItem) -> str:
    if item["quote"].strip():
        return item["quote"]
    window = Window(text=item["text"], title=item["title"], section=item["section"])
    found = analyze_passage(passage_task(task["question"], task["intent"], window))
    return found.best.sentence.text if found else ""
