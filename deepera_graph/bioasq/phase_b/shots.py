"""Examples for few-shot prompts: answered questions of a training file, never those asked."""

import json
from collections.abc import Iterable, Sequence
from hashlib import sha256
from typing import Any

from deepera_graph.bioasq.questions import Question, QuestionType
from deepera_graph.errors import InputError, SettingsError
from deepera_graph.text.words import words

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
