"""Intent node: what the question asks for, guarded against empty and off-topic readings."""

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

from langchain_core.documents import Document
from langchain_core.runnables import Runnable, RunnableConfig

from deepera_graph.agents.twin import TwinRunnable, Work, ask
from deepera_graph.errors import AnswerError, InputError, RoleError
from deepera_graph.judges.base import window_key
from deepera_graph.passages import check_question, judged_windows, read_passages, shown_text
from deepera_graph.pipeline.state import State, Update
from deepera_graph.schema import Intent, IntentFields, IntentTask, Window
from deepera_graph.settings import Settings
from deepera_graph.settings.budget import carried
from deepera_graph.settings.ranges import suggest_name
from deepera_graph.text.records import CANDIDATE_FIELDS, QUESTION_FIELDS
from deepera_graph.text.words import STOP_WORDS, is_general, rarity, stem
from deepera_graph.usage import Usage

UNKNOWN: IntentFields = {
    "topic": "",
    "entity_type": "",
    "intent": "other",
    "expected_answer_type": "other",
}
_PLACEHOLDERS = frozenset(
    {"n/a", "na", "none", "null", "unknown", "unspecified", "string", "topic", "entity", "other"}
    | {"general", "various", "not specified", "entity_type", "kind: name"}
)
_ANY_TOPIC = frozenset(
    {"science", "sciences", "scientific", "research", "study", "studies", "academic", "knowledge"}
    | {"literature", "information", "question", "general", "topic", "domain", "field"}
)
# By `rarity`: in more than 7 % of 22,613 documents of several sciences, and in less than 3 %.
_COMMON, _TELLING = 0.27, 0.35
_MOST_NAMED = 5
_STEM_LENGTH = 4
_KEYS = {"question": QUESTION_FIELDS, "passages": CANDIDATE_FIELDS}  # and what others call them


def record(state: State, intent: Intent) -> Update:
    """Keep the intent."""
    fields = intent.model_dump(include=set(UNKNOWN))
    status = "repaired" if intent.repaired else "recognised"
    return {"intent": {"fields": fields, "status": status, "cause": intent.problem}}


def on_failure(state: State, error: RoleError) -> Update:
    """Go on with the raw question alone."""
    return {"intent": {"fields": UNKNOWN, "status": "fallback", "cause": str(error)}}


def find_problem(question: str, intent: Intent) -> str:
    """Say why an intent is useless, or nothing.

    Fields are blank or placeholders, entities are none of the question's, or both are so general
    that they would fit any question: a topic such as "scientific research", entities such as
    "population: patients" where the question names something rarer.
    """
    for name in ("topic", "entity_type"):
        value = getattr(intent, name).strip().lower()
        if value in _PLACEHOLDERS or not re.search(r"\w", value):
            return f"{name} is empty or a placeholder: {getattr(intent, name)!r}"
    topic = _words(intent.topic)
    if topic and topic <= _ANY_TOPIC:
        return f"topic fits any question: {intent.topic!r}"
    asked, named = _words(question), _words(intent.entity_type)
    # beginnings survive plural and derived forms; a script that sets no spaces is looked up whole
    beginnings = {word[:_STEM_LENGTH] for word in named}
    shared = [word for word in asked if word[:_STEM_LENGTH] in beginnings]
    if not shared and not any(word in question.lower() for word in named if not word.isascii()):
        return f"entity_type names nothing from the question: {intent.entity_type!r}"
    telling = _find_telling(asked, shared)
    if telling:
        return (
            f"entity_type is too general: {intent.entity_type!r} names none of {', '.join(telling)}"
        )
    return ""


def _find_telling(asked: Iterable[str], shared: Collection[str]) -> list[str]:
    """Return the telling words of a question whose entities *shared* nothing but common ones."""
    if not shared or not all(is_general(one) or rarity(stem(one)) < _COMMON for one in shared):
        return []
    telling = (
        one
        for one in asked
        if one.isalpha() and one.isascii() and not is_general(one) and rarity(stem(one)) > _TELLING
    )
    return sorted(telling)[:_MOST_NAMED]


def _words(text: str) -> set[str]:
    return set(re.findall(r"\w+", text.lower())) - STOP_WORDS


class GuardedIntent(TwinRunnable[IntentTask, Intent]):
    """An intent role that is asked once more when its first intent is useless."""

    def __init__(self, role: Runnable[IntentTask, Intent]) -> None:
        self._role = role

    def work(self, task: IntentTask, config: RunnableConfig | None) -> Work[Intent]:
        """Return the work of recognising the intent."""
        first: Intent = yield ask(self._role, task, config)
        problem = find_problem(task["question"], first)
        if not problem:
            return first
        try:
            again: Intent = yield ask(self._role, {**task, "problem": problem}, config)
        except RoleError as error:
            error.usage = _cost(first) + error.usage
            raise
        return _second(task, first, again, problem)


def _second(task: IntentTask, first: Intent, again: Intent, problem: str) -> Intent:
    usage = _cost(first) + _cost(again)
    still = find_problem(task["question"], again)
    if still:
        raise AnswerError(f"useless intent, asked twice: {still}", usage=usage)
    return again.model_copy(update={"usage": usage, "repaired": True, "problem": problem})


def _cost(intent: Intent) -> Usage:
    return intent.usage or Usage()


def check_keys(given: Any) -> Any:
    """Return the input of the graph; name a key that was meant to be one that is missing.

    LangGraph drops unknown keys silently, and has to: a graph around this one has keys of its own.

    Raises:
        InputError: A key is missing, and another is near it, or another's name for it.
    """
    if isinstance(given, Mapping):
        for key, others in _KEYS.items():
            if key in given:
                continue
            for name in given:
                if name not in _KEYS and (name in others or suggest_name(name, (key,))):
                    raise InputError(
                        f"the input has no {key!r}, but an unknown key {name!r}; "
                        f"did you mean {key!r}?"
                    )
    return given


def receive(
    state: State,
    config: RunnableConfig,
    *,
    settings: Settings,
    prepare: Callable[[Sequence[Window]], None] | None = None,
) -> Update:
    """Check the question, cut the passages, and forget an earlier turn on the same thread.

    A judge that can *prepare* begins while the intent is asked for; not if the budget is spent.
    """
    given = state.get("passages")
    check_question(state.get("question"), given)
    if not isinstance(given, list | tuple):
        raise InputError(f"passages must be a list, got {given!r:.80}")
    passages = [*given]
    if not all(isinstance(passage, Document) for passage in given):  # as they come over HTTP
        passages = read_passages(given)
    cuts = judged_windows(passages, settings.max_passage_chars)
    if prepare is not None and not carried(config).meter.reached():
        shown = (shown_text(passages[one["index"]], one["start"], one["end"]) for one in cuts)
        prepare(list({window_key(window): window for window in shown}.values()))
    return {
        "passages": passages,
        "windows": cuts,
        "intent": {"fields": UNKNOWN, "status": "fallback", "cause": "no passages"},
        "judgements": None,
        "candidates": None,
        "summaries": None,
        "usage": None,
        "ranking": [],
        "left_out": [],
        "warnings": [],
        "documents": [],
        "evidence_point": None,
        "missing_words": [],
        "answer": None,
        "fallback": None,
    }
