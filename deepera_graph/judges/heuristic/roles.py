"""The roles by rules: a question read, a passage judged and summarized, at once, in any loop."""

import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, Self, TypeVar

from langchain_core.runnables import Runnable, RunnableConfig

from deepera_graph.judges.base import CountedJudge, Judge
from deepera_graph.judges.heuristic.analysis import (
    RuleFeatures,
    analyze_passage,
    explain,
    find_sought,
    sigmoid,
)
from deepera_graph.judges.heuristic.answer import answer
from deepera_graph.judges.heuristic.phrases import (
    COMPARATIVE,
    NO_ADJECTIVES,
    SUPERLATIVE,
    is_adjective,
    list_phrases,
)
from deepera_graph.judges.heuristic.topicality import (
    STATING,
    WORD_LISTS,
    find_topic,
    is_listed,
    names_any,
    read_question_terms,
    section_weight,
)
from deepera_graph.schema import (
    Backend,
    Batch,
    Intent,
    IntentTask,
    Judgement,
    PassageTask,
    Summary,
    Verdict,
    Window,
    passage_tasks,
)
from deepera_graph.text.words import STOP_WORDS, looks_english, rarity, stem, words
from deepera_graph.usage import Usage

_MOST_READ = 1000  # characters, from the end; the rules take up to the cube of their number
_PARTS = {
    "comparative": COMPARATIVE,
    "superlative": SUPERLATIVE,
    **{name: "".join(pieces) for name, pieces in WORD_LISTS["parts"].items()},
}


def _read_rules(name: str) -> list[tuple[Any, re.Pattern[str]]]:
    """Return the rules of the lexicon for kinds of questions, or of answers, in order."""
    return [
        (
            one["kind"],
            re.compile(
                re.sub(r"<<(\w+)>>", lambda part: _PARTS[part[1]], "".join(one["pattern"])),
                re.IGNORECASE,
            ),
        )
        for one in WORD_LISTS[name]
    ]


_KIND_RULES, _ANSWER_RULES = _read_rules("intents"), _read_rules("answers")


def recognize_intent(task: IntentTask) -> Intent:
    """Return topic, entities, kind and answer form of a question; no field is empty."""
    # The entities are the question's own words. A statement that cites a work asks for what was
    # done there, so its answer is procedural. Of a long question its end tells kind and answer
    # form. `problem` is not looked at: the rules would say the same.
    question = task["question"].strip()
    asked = question[-_MOST_READ:]
    return Intent(
        topic=find_topic(words(question)),
        entity_type="; ".join(find_entities(question)),
        intent=next((kind for kind, rule in _KIND_RULES if rule.search(asked)), "other"),
        expected_answer_type=next(
            (kind for kind, rule in _ANSWER_RULES if rule.search(asked)), "other"
        ),
        usage=Usage(),
    )


MOST_ENTITIES = 4
LONGEST_ENTITY = 80
UNKNOWN_KIND = "concept"
RARE = 0.9
_WORD = re.compile(r"[^\W_]+(?:[-‐‑–/'’.+][^\W_]+)*%?")
_GENERAL, _VAGUE, _ASKED = (
    frozenset(WORD_LISTS["names"][name].split()) for name in ("general", "vague", "asked")
)
_LONE_ADJECTIVE = re.compile(r"(?:ous|ful|ible|able|less|ic|[inr]al|ive|ient|equent|ary|ish|est)$")
_NOUN = re.compile(
    r"(?:[st]ion|ity|ness|ment|ance|ence|ancy|ency|ure|age|ism|[sx]is|tis|er|or|ist|cy|gy|phy|ium"
    r"|ide|ine|ene|ase|ose|oid|um|us)s?$"
)


def find_entities(question: str) -> list[str]:
    """List up to four entities as ``kind: name``, the longest names first chosen, in text order."""
    # A name is a noun phrase in the question's own words. Without one its last content word stands
    # for it, or the question itself.
    named: dict[str, str] = {}  # by their last words, which differ
    for phrase in list_phrases(question):
        name = _to_name(phrase)
        if _is_telling(name):
            named.setdefault(name.split()[-1].lower(), name)
    last = [word for word in _WORD.findall(question) if word.lower() not in STOP_WORDS][-1:]
    names = list(named.values()) or last
    chosen = sorted(names, key=len, reverse=True)[:MOST_ENTITIES]
    found = [name for name in names if name in chosen] or [" ".join(question.split())]
    return [f"{guess_kind(name)}: {name[:LONGEST_ENTITY]}" for name in found]


def _to_name(phrase: Sequence[str]) -> str:
    """Return a phrase without the end that any question may give one: "heat stress effects"."""
    kept = list(phrase)
    while kept and _says_little(kept):
        kept.pop()
        if kept and ("-" in kept[-1] or kept[-1].endswith("ed") or is_adjective(kept[-1].lower())):
            return ""
    return re.sub(r"['’]s?$", "", " ".join(kept))


def _says_little(phrase: Sequence[str]) -> bool:
    """Whether the last word of a phrase adds nothing to those before it."""
    last = phrase[-1].lower()
    if last in _VAGUE:
        return len(phrase) < 2 or is_adjective(phrase[-2].lower())
    return last in _ASKED or (last in _GENERAL and len(phrase) < 2)


def _is_telling(name: str) -> bool:
    """Whether a name says something: no letter alone, nor a lone word that may be no noun."""
    if len(name) < 2:
        return False
    if " " in name or not name.islower() or "-" in name:
        return True
    if guess_kind(name) != UNKNOWN_KIND:
        return True
    if _LONE_ADJECTIVE.search(name) and name not in NO_ADJECTIVES:
        return False
    plain = words(name)[-1:]
    return any(_NOUN.search(w) or is_listed(w) or rarity(stem(w)) > RARE for w in plain)


@lru_cache(maxsize=65_536)
def guess_kind(name: str) -> str:
    """Say what kind of thing a name names, by its last word; `UNKNOWN_KIND` if none fits."""
    # A number at the end is passed over: "grade 4" is of the kind of "grade".
    last = "".join(re.sub(r"\s\d\S*$", "", name).split()[-1:])
    return next((kind for kind, pattern in _KINDS if pattern.search(last)), UNKNOWN_KIND)


_KINDS = tuple(
    (
        one["name"],
        re.compile("".join(one["pattern"]), 0 if one.get("keeps_case") else re.IGNORECASE),
    )
    for one in WORD_LISTS["kinds"]
)


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
    """Score one passage as evidence, from nothing but the question, the intent and the passage."""
    # The score is the fitted probability where one passage in about 25 is evidence, rounded to four
    # digits. A blank text scores 0. The quote is the strongest sentence, word for word.
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
    """Return what the judge quoted, or the best sentence, and maybe one more; all word for word."""
    # Empty for a blank text. The other sentence joins if it is at least 0.7 as strong
    # (`SECOND_SHARE`) as the first and all have at most 450 characters (`MAX_SUMMARY`). Both are in
    # the passage's order.
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
    comes_first = other[1].start < inside[0][1].start
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


def find_question_problem(question: str, windows: Sequence[Window]) -> str:
    """Say why scores of a judge of English alone mean little; empty if they do mean much."""
    # The question is in another language, shares no telling word with any window, or is just a few
    # words that state and ask nothing.
    if not looks_english(question):
        return NOT_ENGLISH
    need = read_question_terms(question, "")
    if windows and not any(names_any(need, f"{one['title']} {one['text']}") for one in windows):
        return NOTHING_SHARED
    found = words(question)
    asks = "?" in question or STOP_WORDS.union(STATING).intersection(found)
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
            "judge_version": "1",
            "note": (
                "hand-written rules over words and numbers; it does not understand text, and its "
                "score is a rough probability"
            ),
        },
        spec={"kind": "local", "judge": "rules"},
    )
