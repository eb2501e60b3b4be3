"""The local roles as LangChain runnables: each calls its rule at once, with no thread between."""

import re
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Self, TypeVar, get_args

from langchain_core.runnables import Runnable, RunnableConfig

from deepera_graph.judges.base import CountedJudge, Judge
from deepera_graph.judges.heuristic.analysis import (
    CUE_WEIGHTS,
    RuleAnalysis,
    RuleFeatures,
    SentenceReading,
    Sought,
    analyze_passage,
    find_sought,
    sigmoid,
)
from deepera_graph.judges.heuristic.intent import recognize_intent
from deepera_graph.judges.heuristic.topicality import (
    CUE_NAMES,
    is_general,
    names_any,
    read_question_terms,
    section_weight,
    words_of_cue,
)
from deepera_graph.schema import (
    Answer,
    AnswerTask,
    Backend,
    Batch,
    Direction,
    EvidenceItem,
    Intent,
    IntentTask,
    Judgement,
    PassageTask,
    Summary,
    Verdict,
    Window,
    count_directions,
    describe_directions,
    name_direction,
    passage_task,
    passage_tasks,
)
from deepera_graph.text.words import STOP_WORDS, looks_english, words
from deepera_graph.usage import Usage

MAX_SENTENCES = 5
NO_ANSWER = "insufficient evidence: no sentence quoted names anything that is asked about"


def answer(task: AnswerTask) -> Answer:
    """Return up to five evidence sentences, one a passage, each with its ``[n]``.

    They are grouped by what they say, ``Supports: ...``, where that is known, else in the order of
    the evidence; the best of each direction is among the five, and those that answer are counted at
    the end. A sentence that an earlier passage already gave is not repeated, and a study is quoted
    and counted once. White space within a sentence becomes one space; nothing else changes.

    A sentence that names nothing of the question is no answer to it, nor is one of a passage that
    does not name its outcome; if all are such, there is none.
    """
    need = read_question_terms(task["question"], task["intent"]["entity_type"])
    outcome = read_question_terms(find_outcome(task["question"]), "")
    sentences: dict[str, int] = {}
    directions: dict[int, Direction | None] = {}
    studies: set[int] = set()
    for number, item in enumerate(task["evidence"], start=1):
        sentence = " ".join(_sentence(task, item).split())
        whole = f"{item['title']} {item['text']} {sentence}"
        study = item.get("study", -number)
        if study in studies:
            continue
        if sentence and names_any(need, sentence) and names_any(outcome, whole):
            studies.add(study)
            sentences.setdefault(sentence, number)
            directions[number] = item.get("direction")
    if not sentences:
        return Answer(text=NO_ANSWER, citations=[], usage=Usage())
    numbers = _pick_numbers(list(sentences.values()), directions)
    chosen = {number: one for one, number in sentences.items() if number in numbers}
    parts = [_write_side(side, chosen, directions) for side in (None, *get_args(Direction))]
    if said := describe_directions(count_directions(directions.values())):
        parts.append(f"({said})")
    return Answer(text=" ".join(filter(None, parts)), citations=numbers, usage=Usage())


_OF_WHOM = frozenset(("in", "among", "during", "after", "than", "when", "versus", "compared"))
_EMPTY = frozenset(
    """
    amount frequency incidence level levels likelihood number odds prevalence rate rates risk risks
    use
    """.split()  # noqa: SIM905
)
_FIRST_ASKED = 3  # words of a question before which no group is named


def find_outcome(question: str) -> str:
    """Return the word for what a question asks about its subject; empty if it names none.

    That is the last word of what its verb is about, or the one before an ``of``, and before those
    in whom it is looked for: *growth* in ``Does A reduce the growth of B in C?``.
    """
    found = words(question)
    verbs = (place for place, word in enumerate(found) if word in _STATING - _FAINT)
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


GROUNDED = 0.5
_TELLING = ("direction", "relation", "mechanism", "report")
_FAINT = frozenset(("least", "most", "same", "more", "less", "later", "earlier", "older"))
_NUMBER = re.compile(
    r"\b[pP]\s?[<>=≤≥]\s?\d?[.·]\d+|\b(?:OR|RR|HR|aOR)\b[^\d;]{0,4}\d+[.·]\d+|\d+(?:[.·]\d+)?\s?%"
)
_INSTEAD = {
    "aim": "an aim",
    "intention": "an aim",
    "method": "a method",
    "background": "background",
    "speculation": "a supposition",
}


def explain(study: RuleAnalysis, kind: Sought) -> str:
    """Say what the best sentence states and how much of the question the passage names.

    For instance ``states a result: 'decreased', p = 0.02; names 5 of 6 question terms``.
    """
    topic = study.topic
    named = f"names {topic.n_found} of {topic.n_terms} question terms"
    stated = _describe(study.best) if kind in ("result", "figure") else f"read for a {kind}"
    return f"{stated}; {named}"


def _describe(reading: SentenceReading) -> str:
    if reading.grounding < GROUNDED:
        return _describe_lack(reading)
    signs = list_signs(reading)
    return f"states a result: {', '.join(signs)}" if signs else "states a result"


def list_signs(reading: SentenceReading) -> list[str]:
    """Return the word that tells of a result, in quotation marks, and a number; as far as found."""
    found = words(reading.sentence.text)
    told = [word for cue in _TELLING for word in found if word in words_of_cue(cue)]
    telling = [word for word in told if word not in _FAINT] or told
    number = _NUMBER.search(reading.sentence.text)
    return [f"'{word}'" for word in telling[:1]] + ([number.group()] if number else [])


def _describe_lack(reading: SentenceReading) -> str:
    pulls = {
        _INSTEAD[name]: CUE_WEIGHTS[name] * count
        for name, count in zip(CUE_NAMES, reading.cues, strict=True)
        if count and name in _INSTEAD
    }
    if not pulls:
        return "states no result"
    return f"states no result, reads like {min(pulls, key=pulls.__getitem__)}"


# Fitted by logistic regression and rounded, on golden passages against all others of the same
# question: the PubMedQA development half (486 questions) with other sections of the same abstract
# as look-alikes, 150 of them with written look-alikes too, and 682 SciFact claims against
# three-sentence pieces of abstracts.
WEIGHTS = RuleFeatures(
    strength=6.5,
    grounded_coverage=2.7,
    grounded_strength=4.0,
    opening=1.0,
    closing=0.9,
    peak=1.3,
    names=0.3,
)
INTERCEPT = -7.2
DIGITS = 4


def judge(task: PassageTask) -> Judgement:
    """Score one passage as evidence, from nothing but the question, the intent and the passage.

    The score is the fitted probability where one passage in about 25 is evidence, rounded to four
    digits. A blank text scores 0. The quote is the strongest sentence, word for word.
    """
    kind = find_sought(task["intent"])
    found = analyze_passage(task)
    if found is None:
        return Judgement(score=0.0, reason="the passage has no text", usage=Usage())
    weighed = zip(WEIGHTS, found.features, strict=True)
    total = INTERCEPT + sum(weight * value for weight, value in weighed)
    if kind in ("result", "figure"):
        total += section_weight(task["section"])
    return Judgement(
        score=round(sigmoid(total), DIGITS),
        reason=explain(found, kind),
        quote=found.best.sentence.text,
        usage=Usage(),
    )


SECOND_SHARE = 0.7
MAX_SUMMARY = 450


def summarize(task: PassageTask) -> Summary:
    """Return what the judge quoted, or the best sentence, and maybe one more; all word for word.

    Empty for a blank text. The other sentence joins if it is at least 0.7 as strong
    (`SECOND_SHARE`) as the first and all have at most 450 characters (`MAX_SUMMARY`). It comes
    after a quote; without one, both are in the passage's order.
    """
    found = analyze_passage(task)
    if found is None:
        return Summary(text="", usage=Usage())
    pairs = zip(found.evidence, found.readings, strict=True)
    ranked = [(share, one.sentence) for share, one in sorted(pairs, key=lambda pair: -pair[0])]
    quote = task.get("quote", "").strip()
    inside = [pair for pair in ranked if pair[1].text in quote]
    rest = [pair for pair in ranked if pair[1].text not in quote] if inside else ranked[1:]
    inside = inside or ranked[:1]
    first = quote or inside[0][1].text
    other = rest[0] if rest else None
    if other is None or not _joins(other[0] / max(inside[0][0], 1e-9), first + other[1].text):
        return Summary(text=first, usage=Usage())
    comes_first = not quote and other[1].start < inside[0][1].start
    both = (other[1].text, first) if comes_first else (first, other[1].text)
    return Summary(text=" ".join(both), usage=Usage())


def _joins(share: float, text: str) -> bool:
    return share >= SECOND_SHARE and len(text) <= MAX_SUMMARY


TaskT = TypeVar("TaskT")
AnswerT = TypeVar("AnswerT")


class LocalRole(Runnable[TaskT, AnswerT]):
    """A role that makes no calls."""

    asks_model = False

    @abstractmethod
    def _work(self, task: TaskT) -> AnswerT:
        """Answer at once, in the running loop."""

    def counting(self) -> Self:
        """Return this role itself: asking it costs nothing."""
        return self

    def invoke(
        self, input: TaskT, config: RunnableConfig | None = None, **kwargs: object
    ) -> AnswerT:
        """Do the work."""
        return self._work(input)

    async def ainvoke(
        self, input: TaskT, config: RunnableConfig | None = None, **kwargs: object
    ) -> AnswerT:
        """Do the work."""
        return self._work(input)


class RulesIntent(LocalRole[IntentTask, Intent]):
    """Reads a question with word lists."""

    reads_by_rules = True

    def _work(self, task: IntentTask) -> Intent:
        return recognize_intent(task)


NOT_ENGLISH = (
    "the question does not look English, the only language that the local judge reads: ask in "
    "English, or let a chat model judge"
)
NOTHING_SHARED = (
    "no passage names anything that the question asks about, at least not in its words: they may "
    "be about something else"
)
A_FEW_WORDS = (
    "a few words are no question: ask a whole one, as passages are judged by whether they answer it"
)
FEW = 3
_STATING = frozenset().union(*map(words_of_cue, ("direction", "relation", "mechanism")))


def find_question_problem(question: str, windows: Sequence[Window]) -> str:
    """Say why scores of a judge that reads English alone mean little; empty if they do mean much.

    The question is in another language, shares no telling word with any window, or is just a few
    words that state and ask nothing.
    """
    if not looks_english(question):
        return NOT_ENGLISH
    need = read_question_terms(question, "")
    if windows and not any(names_any(need, f"{one['title']} {one['text']}") for one in windows):
        return NOTHING_SHARED
    found = words(question)
    asks = "?" in question or STOP_WORDS.union(_STATING).intersection(found)
    return "" if asks or len(found) > FEW else A_FEW_WORDS


class HeuristicJudge(Judge):
    """Scores passages by rules, each by itself."""

    asks_model = False

    def question_problem(self, question: str, windows: Sequence[Window]) -> str:
        """Say whether rules for English can read the question, and find its words."""
        return find_question_problem(question, windows)

    def judge(self, batch: Batch, config: RunnableConfig | None = None) -> list[Verdict]:
        """Judge the windows one after the other."""
        return [judge(task) for task in passage_tasks(batch)]

    def counting(self) -> CountedJudge:
        """Return a judge that costs as much, nothing, and does nothing."""
        return CountedJudge(self, Usage())


class ExtractiveSummarizer(LocalRole[PassageTask, Summary]):
    """Picks a passage's own best sentences."""

    def _work(self, task: PassageTask) -> Summary:
        return summarize(task)


class QuotingAnswerer(LocalRole[AnswerTask, Answer]):
    """Answers with the evidence sentences themselves."""

    def _work(self, task: AnswerTask) -> Answer:
        return answer(task)


JUDGE_VERSION = "1"


def heuristic_backend() -> Backend:
    """Return a backend of hand-written rules in all roles; it loads nothing."""
    return Backend(
        name="rules",
        intent=RulesIntent(),
        judge=HeuristicJudge(),
        summarizer=ExtractiveSummarizer(),
        answerer=QuotingAnswerer(),
        about={
            "judge": "rules",
            "judge_version": JUDGE_VERSION,
            "note": (
                "hand-written rules over words and numbers; it does not understand text, and its "
                "score is a rough probability"
            ),
        },
        spec={"kind": "local", "judge": "rules"},
    )
