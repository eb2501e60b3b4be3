"""What a question asks for, by rules: its entities, its intent class, the form of its answer."""

import re
from collections.abc import Iterable
from typing import TypeVar

from deepera_graph.judges.heuristic.topicality import find_topic
from deepera_graph.schema import AnswerType, Intent, IntentKind, IntentTask
from deepera_graph.text.words import STOP_WORDS, words
from deepera_graph.usage import Usage

MOST_ENTITIES = 4
LONGEST_ENTITY = 80
UNKNOWN_KIND = "concept"
_WORD = re.compile(r"[^\W_]+(?:[-‐‑/'’.][^\W_]+)*")
_RELATIONS = """
    affect affects affected affecting effect effects effective effectively effectiveness influence
    influences influenced impact impacts cause causes caused causing lead leads leading associated
    association associations related relation relations relationship relationships predict predicts
    predictor predictors predicted prediction improve improves improved improving increase increases
    increased increasing decrease decreases decreased decreasing reduce reduces reduced reducing
    prevent prevents change changes changed differ differs different difference differences compare
    compared comparing comparison better worse best good useful usefulness useful necessary possible
    important significant role roles function functions purpose mechanism mechanisms play plays
    determine determines depend depends dependent many much often long large common define defined
    definition mean means describe explain contribute contributes help helps make makes need needed
    still really new way ways protect protects limit limits raise raises lower lowers higher alter
    alters trigger triggers control controls between among versus vs kind type types work works show
    shows happen happens occur occurs exist exists
    """
_RELATION_WORDS = frozenset(_RELATIONS.split())
_ENTITY_KINDS = tuple(
    (kind, re.compile(pattern, re.IGNORECASE if fold else 0))
    for kind, pattern, fold in (
        ("cell type", r"\bcells?\b|cyte|blast|\bneurons?\b|macrophage", True),
        ("procedure", r"surg|ectomy|plasty|otomy|scopy|screening|therapy|transplant|graft|biopsy"
                      r"|intervention|program|treatment|vaccin|training|imaging|tomograph", True),
        ("disease", r"itis\b|(?<!gn)osis\b|omas?\b|emia\b|disease|syndrome|cancer|disorder"
                    r"|tumou?r|diabetes|asthma|stroke|infection|injur|pathy\b|depress|hypertension"
                    r"|obesity|failure|dementia|epilepsy|fracture", True),
        ("population", r"patients?\b|child|women|\bmen\b|adult|adolescen|infant|elderly|people"
                       r"|students?\b|mothers?\b|nurses?\b|physicians?\b|population|workers", True),
        ("drug", r"(?:mab|statin|pril|olol|cillin|mycin|azole|vir|oxetine|idine|amide|azepam)s?\b"
                 r"|drug|aspirin|insulin|antibiotic|dose", True),
        ("gene or protein", r"\b[A-Z]{2,}[0-9]+[A-Za-z]?\b|\bp\d\d\b|protein|genes?\b"
                            r"|receptor|kinase|enzyme|antigen|antibod", False),
        ("organism", r"\bspecies\b|bacteri|virus|\bmice\b|\brats?\b|plants?\b|trees?\b|birds?\b"
                     r"|insect|fish\b|coral|yeast", True),
        ("celestial object", r"\bstars?\b|galax|planet|comet|asteroid|supernova|\bmoon\b", True),
        ("earth system", r"climate|glacier|\bice\b|\bocean|\bsea\b|soil|river|rain|forest|volcan"
                         r"|earthquake|sediment|atmospher", True),
        ("material", r"alloy|steel|ceramic|polymer|electrode|battery|batteries|graphene|crystal"
                     r"|glass|concrete|membrane|lithium|catalyst|oxide|perovskite", True),
        ("method", r"model|algorithm|method|parser|translation|corpus|classifier|network|test\b"
                   r"|score|scale|index|questionnaire|criteria|technique|system|learning", True),
        ("quantity", r"rate|level|temperature|pressure|concentration|time|weight|mortality|survival"
                     r"|incidence|prevalence|size|density|speed|cost|energy|quality|yield", True),
    )
)  # fmt: skip


def find_entities(question: str) -> list[str]:
    """List up to four entities as ``kind: name``, the longest names first chosen, in text order.

    A name is a run of the question's own words between function words and relation words; a
    question without any is its own name.
    """
    names = _list_names(question)
    chosen = sorted(names, key=lambda name: -len(name))[:MOST_ENTITIES]
    found = [name for name in names if name in chosen] or [" ".join(question.split())]
    return [f"{_guess_kind(name)}: {name[:LONGEST_ENTITY]}" for name in found]


def _list_names(question: str) -> list[str]:
    names: dict[str, None] = {}
    run: list[re.Match[str]] = []
    for word in _WORD.finditer(question):
        if run and (_is_plain(word.group()) or question[run[-1].end() : word.start()].strip()):
            names[question[run[0].start() : run[-1].end()]] = None
            run = []
        if not _is_plain(word.group()):
            run.append(word)
    if run:
        names[question[run[0].start() : run[-1].end()]] = None
    return [" ".join(name.split()) for name in names]


def _is_plain(word: str) -> bool:
    return word.lower() in STOP_WORDS or word.lower() in _RELATION_WORDS


def _guess_kind(name: str) -> str:
    return next((kind for kind, pattern in _ENTITY_KINDS if pattern.search(name)), UNKNOWN_KIND)


T = TypeVar("T")
_INTENT_KINDS: tuple[tuple[IntentKind, str], ...] = (
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
_KIND_RULES = tuple((name, re.compile(rule, re.IGNORECASE)) for name, rule in _INTENT_KINDS)
_ANSWER_RULES = tuple((name, re.compile(rule, re.IGNORECASE)) for name, rule in _ANSWERS)


def recognize_intent(task: IntentTask) -> Intent:
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
