"""The rules recognizer: what a question asks for, from its own words."""

import re
from collections.abc import Iterable
from typing import TypeVar

from deepera_graph.backends.local.entities import find_entities
from deepera_graph.backends.local.topics import find_topic
from deepera_graph.roles import IntentTask
from deepera_graph.schema import AnswerType, Intent, IntentKind
from deepera_graph.text.words import words
from deepera_graph.usage import Usage

T = TypeVar("T")
_KINDS: tuple[tuple[IntentKind, str], ...] = (
    ("functional role", r"\b(?:roles?|functions?|purpose) (?:of|for|does|do|in)\b|\bplays? an?\b"),
    ("mechanism", r"^how (?:do|does|did|is|are|can)\b|\bmechanis|\bpathway|^why\b|\bby which\b"),
    ("comparison", r"\bcompar|\bversus\b|\bvs\b|\bthan\b|\bdiffer|\b(?:superior|inferior)\b"
                   r"|\bequivalent\b|\bbetter\b|\bsimilar\b|\bas \w+ as\b"),
    ("causal inference", r"\b(?:affect|effect|influenc|impact|caus|lead|risk|associat|relat|predict"
                         r"|improv|increas|decreas|reduc|prevent|correlat|chang|depend|determin"
                         r"|benefit|protect|contribut|induc|promot|limit|rais|lower|slow|alter"
                         r"|trigger|link|explain|justif|matter)|^(?:do|does|did|can|could)\b"),
    ("definition", r"^(?:what (?:is|are|was|were)|define|which)\b|\bdefin|\bmean(?:ing)?\b"),
)  # fmt: skip
_ANSWERS: tuple[tuple[AnswerType, str], ...] = (
    ("numeric", r"\bhow (?:many|much|often|long|large|fast|high|far|old|big|strong|common)\b"
                r"|\bwhat (?:(?:is|was|are|were) the )?(?:\w+ )?(?:percentage|proportion|rate"
                r"|number|prevalence|incidence|frequency|value|temperature|dose|amount|share"
                r"|size)\b"),
    ("procedural", r"^how (?:to|can|should)\b|\b(?:what|which) (?:steps|methods?|protocol)\b"
                   r"|^[^?]*(?:\bet al\b|\b(?:19|20)\d\d[a-z]?\))[^?]*$"),
    ("categorical", r"(?:^|[-,:;.] ?)(?:is|are|was|were|do|does|did|can|could|should|will|would"
                    r"|has|have|had|may|which|who|where)\b.*\?|\bor not\b"),
    ("descriptive", r"^(?:what|how|why|describe|explain)\b|\?"),
)  # fmt: skip
_KIND_RULES = tuple((name, re.compile(rule, re.IGNORECASE)) for name, rule in _KINDS)
_ANSWER_RULES = tuple((name, re.compile(rule, re.IGNORECASE)) for name, rule in _ANSWERS)


def recognize(task: IntentTask) -> Intent:
    """Return topic, entities, kind and answer form of a question; no field is empty.

    The entities are the question's own words. A statement that cites a work asks for what was done
    there, so its answer is procedural. `problem` is not looked at: the rules would say the same.
    """
    question = task["question"].strip()
    return Intent(
        topic=find_topic(words(question)),
        entity_type="; ".join(find_entities(question)),
        intent=_first(_KIND_RULES, question) or "other",
        expected_answer_type=_first(_ANSWER_RULES, question) or "other",
        usage=Usage(),
    )


def _first(rules: Iterable[tuple[T, "re.Pattern[str]"]], question: str) -> T | None:
    return next((name for name, rule in rules if rule.search(question)), None)
