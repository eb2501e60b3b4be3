"""What prompts and readers take from other questions and texts: examples, and written lists."""

import json
import re
from collections.abc import Iterable, Sequence
from hashlib import sha256
from typing import Any

from deepera_graph.bioasq.questions import Question, QuestionType
from deepera_graph.errors import InputError, SettingsError
from deepera_graph.text.words import STOP_WORDS, content_words, split_sentences, stem, stems, words

BULLET = re.compile(r"^\s*(?:[-*•–·]|\(?\d{1,3}[.):]|\(?[a-z][.)])\s+", re.IGNORECASE)
REFUSING = re.compile(
    r"^(?:i(?:['’]m| am)\s+(?:sorry|unable|not able)|(?:sorry|unfortunately|apologies)\b|"
    r"as an ai\b|"
    r"i\s+(?:cannot|can['’]t|could not|do not|don['’]t)\b|"
    r"(?:the|these)\s+(?:provided\s+)?snippets\s+(?:do|does)\s+not\b)",
    re.IGNORECASE,
)
_IN_TEXT = re.compile(r"\s*(?:;|\n|\|)\s*")
_BY_COMMA = re.compile(r"\s*,\s*(?:and\s+|or\s+)?|\s+(?:and|or)\s+")
_LEAD = re.compile(  # what ends with the one colon there is, or with such a word and a colon
    r"^[^:\n]{0,80}\b(?:answers?|list|entities|candidates|names|are|is)\s*:\s*|"
    r"^[^\W\d][^:\n]{0,80}:\s+(?!.*:\s)",
    re.IGNORECASE | re.DOTALL,
)
# "The genes are BRCA1, BRCA2 and TP53." is a list; "The answer is not known" is none.
_LEAD_OF_SENTENCE = re.compile(
    r"^(?:the|these|they|it)\b(?![^:,;.\n]*\b(?:that|which|who|whose|whom|where|when)\b)"
    r"[^:,;.\n]{0,60}?\b(?:are|is|include|includes)\s+"
    r"(?!(?:not|no|never|un\w+|that|because|hard|difficult|to|in|on|of|at|as)\b)",
    re.I,
)
_IN_NAME = 2  # words of one item with a full stop; with more it is a sentence
_STOP_WORDS_IN_NAME = 2
_STOP_WORDS_BESIDE = 2  # with a relative clause, as in "proteins that are degraded by ZIR3"
_LONGEST_NAME = 12  # words of an item of a list in text; what is longer is a sentence

_ADVERBS = r"(?:really|also|just|only|never|always|still|do|did|would|could|can|will|have|had)"
_VERBS = (
    r"(?:like|love|hate|think|believe|know|guess|hope|see|mean|feel|want|need|say|suppose|assume|"
    r"suggest|recommend|prefer|agree|understand|wonder|am|was|cannot)"
)
# "I" is a number, too: it is the writer at the beginning, or after a conjunction, before a verb.
_WRITER = re.compile(
    r"^(?:.*\b(?:and|but|so|because|if|that|as|though|what)\s+)?"
    rf"I(?:['’](?:m|ve|d|ll)\b|\s+(?:{_ADVERBS}n?['’]?t?\s+[a-z]|{_VERBS}\b))"
)
_OTHERS = re.compile(r"^(?:[Ww]e|[Yy]ou|[Tt]hey|[Ss]he)\s+[a-z]{2,}")
# Lower-case words that only a clause has between two others; "WAS", "CAN" and "IS" are names.
_FINITE = re.compile(
    r"\S\s+(?:(?:is|are|was|were|has|have|had|does|cannot|could|would|should)|"
    r"(?:is|are|was|were|has|have|had|do|does|did|ca|could|would|should|wo)n['’]t|"
    r"(?:can|may|might|must|will|do|did)\s+(?:not|be|have|also|cause|lead|occur))\b"
)
_RELATIVE = re.compile(r"\b(?:that|which|who|whose|whom|when|where|if|whether)\b")
_NUMBER_TEXT = """
    three four five six seven eight nine ten eleven twelve twenty thirty forty fifty hundred
    thousand million billion half third quarter once twice
    """
_NUMBER_WORDS = frozenset(_NUMBER_TEXT.split())
_SYMBOL = re.compile(r"\d|\w[A-Z]|[Α-ω]")
_COMMON = 4  # letters that two stems share at their beginning to count as one


def read_list(text: str, prompt: str = "") -> list[Any]:
    """Return the items of a list written as text: JSON, bullets, lines, semicolons or commas.

    Args:
        text: What was written.
        prompt: What it answers, empty if not known. A list that is neither JSON nor has bullets
            must repeat a word of it, or have a symbol, such as that of a gene, or a number.

    Raises:
        ValueError: It is prose, a refusal, or about something else.
    """
    written = text.strip()
    found = re.search(r"\[.*\]", written, re.DOTALL)
    as_json = _read_json_list(found.group()) if found else None
    if as_json is not None:
        return as_json
    if found and written.startswith("["):
        return [one for one in _BY_COMMA.split(found.group()[1:-1]) if one.strip()]
    if REFUSING.match(written):
        raise ValueError("this refuses an answer")
    bullets = [one for one in written.splitlines() if BULLET.match(one)]
    if bullets:
        return [*bullets]
    items = _split_list(_LEAD_OF_SENTENCE.sub("", _LEAD.sub("", written)))
    if prompt and items and not is_about(prompt, items):
        raise ValueError("no name in it has a word of the question or the snippets")
    return [*items]


def _read_json_list(text: str) -> list[Any] | None:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, list) else None


def _split_list(text: str) -> list[str]:
    """Cut at semicolons and lines or, where there are none, at commas; prose is refused."""
    items = [one for one in _IN_TEXT.split(text) if one.strip()]
    if len(items) == 1:
        items = [one for one in _BY_COMMA.split(text) if one.strip()]
    is_sentence = text.rstrip().endswith(".") and len(items) == 1 and len(text.split()) > _IN_NAME
    is_clause = any(map(_is_clause, items)) or text.rstrip().endswith(("?", "!"))
    if is_sentence or is_clause or len(split_sentences(text)) > 1:
        raise ValueError("this is prose, not a list of names")
    return items


def _is_clause(item: str) -> bool:
    """Tell whether an item of a list in text is a part of prose."""
    words = item.lower().split()
    if len(words) > _LONGEST_NAME or is_of_writer(item):
        return True
    is_relative = bool(_RELATIVE.search(item))
    most = _STOP_WORDS_IN_NAME + _STOP_WORDS_BESIDE * is_relative
    if sum(word in STOP_WORDS for word in words) > most:
        return True
    return bool(_FINITE.search(item)) and not is_relative


def is_of_writer(item: str) -> bool:
    """Tell whether it is a sentence of the writer or to the reader, as "I like it", and no name."""
    return bool(_WRITER.match(item.strip()) or _OTHERS.match(item.strip()))


def is_about(prompt: str, items: Sequence[str]) -> bool:
    """Tell whether one of the items repeats a word of the prompt, or is a symbol or a number."""
    if any(_SYMBOL.search(one) for one in items):
        return True
    named = {word for one in items for word in content_words(one)}
    shown = {one[:_COMMON] for one in stems(prompt)}
    return not named or bool(
        named & _NUMBER_WORDS or shown & {stem(one)[:_COMMON] for one in named}
    )


LONGEST_SNIPPETS = 1500  # characters of the snippets of an example


def choose_examples(
    training: Sequence[Question],
    asked: Iterable[Question],
    *,
    shots: int,
) -> dict[QuestionType, tuple[Question, ...]]:
    """Return for each type that is asked the first *shots* questions of a training file.

    An example has snippets, an ideal answer and, but for a summary, an exact one.

    Raises:
        InputError: A question of the training file is among those asked, by its id or its words:
            its answer would stand in the prompt.
        SettingsError: The file has too few examples of a type.
    """
    questions = [*asked]
    refuse_overlap(training, questions)
    found: dict[QuestionType, tuple[Question, ...]] = {}
    for kind in dict.fromkeys(one.type for one in questions):
        usable = [one for one in training if one.type == kind and _is_usable(one)]
        if len(usable) < shots:
            raise SettingsError(
                f"shots must be at most {len(usable)}, the answered {kind} questions with snippets "
                f"of the training file, got {shots}"
            )
        found[kind] = tuple(usable[:shots])
    return found


def refuse_overlap(examples: Iterable[Question], asked: Iterable[Question]) -> None:
    """Raise `InputError` if an example is asked, too: by its id, or by its words."""
    questions = [*asked]
    ids = {one.id for one in questions}
    bodies = {normal_body(one.body): one.id for one in questions}
    for one in examples:
        if one.id in ids:
            raise InputError(f"the example {one.id!r} is one of the questions asked")
        same = bodies.get(normal_body(one.body))
        if same is not None:
            raise InputError(f"the example {one.id!r} asks the same as question {same!r}")


def normal_body(body: str) -> str:
    """Return the words of a question, by which two are the same."""
    return " ".join(words(body))


def hash_examples(examples: Iterable[Question]) -> str:
    """Return 12 hex digits that change with the examples."""
    plain: list[Any] = [one.to_dict() for one in examples]
    return sha256(json.dumps(plain, sort_keys=True).encode()).hexdigest()[:12]


def example_texts(example: Question) -> list[str]:
    """Return the snippets of an example, as many as `LONGEST_SNIPPETS` characters hold."""
    texts: list[str] = []
    for one in example.snippets:
        if texts and sum(map(len, texts)) + len(one.text) > LONGEST_SNIPPETS:
            break
        texts.append(one.text)
    return texts


def _is_usable(one: Question) -> bool:
    is_answered = one.type == "summary" or bool(one.exact_answer)
    return bool(one.snippets and one.ideal_answers and is_answered)
