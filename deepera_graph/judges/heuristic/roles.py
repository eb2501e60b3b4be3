"""The local roles as LangChain runnables: each calls its rule at once, with no thread between."""

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Self, TypeVar, get_args

from langchain_core.runnables import Runnable, RunnableConfig

from deepera_graph.judges.base import CountedJudge, Judge
from deepera_graph.judges.heuristic.analysis import (
    FAINT,
    RuleFeatures,
    analyze_passage,
    explain,
    find_sought,
    sigmoid,
)
from deepera_graph.judges.heuristic.intent import recognize_intent
from deepera_graph.judges.heuristic.topicality import (
    CUE_FORMS,
    names_any,
    read_question_terms,
    section_weight,
)
from deepera_graph.schema import (
    Answer,
    AnswerTask,
    Backend,
    Batch,
    Direction,
    EvidenceItem,
    Judgement,
    PassageTask,
    Summary,
    Verdict,
    Window,
    passage_task,
    passage_tasks,
)
from deepera_graph.text.questions import count_directions, describe_directions, name_direction
from deepera_graph.text.words import STOP_WORDS, is_general, looks_english, words
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
    verbs = (place for place, word in enumerate(found) if word in _STATING - FAINT)
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
    share = other[0] / max(inside[0][0], 1e-9) if other else 0.0
    if other is None or share < SECOND_SHARE or len(first + other[1].text) > MAX_SUMMARY:
        return Summary(text=first, usage=Usage())
    comes_first = not quote and other[1].start < inside[0][1].start
    both = (other[1].text, first) if comes_first else (first, other[1].text)
    return Summary(text=" ".join(both), usage=Usage())


TaskT = TypeVar("TaskT")
AnswerT = TypeVar("AnswerT")


class LocalRole(Runnable[TaskT, AnswerT]):
    """A role that makes no calls: *work* answers at once, in the running loop."""

    asks_model = False

    def __init__(self, work: Callable[[TaskT], AnswerT], *, reads_by_rules: bool = False) -> None:
        self._work, self.reads_by_rules = work, reads_by_rules

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
_STATING = CUE_FORMS["direction"] | CUE_FORMS["relation"] | CUE_FORMS["mechanism"]


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


JUDGE_VERSION = "1"


def heuristic_backend() -> Backend:
    """Return a backend of hand-written rules in all roles; it loads nothing."""
    return Backend(
        name="rules",
        intent=LocalRole(recognize_intent, reads_by_rules=True),
        judge=HeuristicJudge(),
        summarizer=LocalRole(summarize),
        answerer=LocalRole(answer),
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
