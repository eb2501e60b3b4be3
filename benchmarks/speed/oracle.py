"""What a good model answers: it knows the worth of every passage, and writes as it is asked to.

Who asks is seen from the prompt. A JSON schema (of a response format or a tool) is filled in field
by field; the rankers that describe their form in words are known by these words.
"""

import json
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from texts import CODE, Question
from tokens import Split, as_long_as, shortened

Json = dict[str, Any]
_TOP = 10
_LISTED = 6  # ratings from here up are relevant
_REASON = (
    "The passage names the treatment and the organism of the question and reports how the measured "
    "outcome moved in that series, so its weight follows from the stated figures and the controls "
    "beside them, not from what the words have in common with the question that was asked here"
)
_FIXED = {
    "topic": "plant science",
    "intent": "causal inference",
    "form": "categorical",
}
_LABELS = ("id", "index", "number", "passage", "label", "document")


class UnknownPromptError(ValueError):
    """No ranker that is known asks like this."""


@dataclass(frozen=True, slots=True)
class Shown:
    """A passage as a prompt shows it.

    Attributes:
        label: Its number in the prompt, from 1.
        worth: Its relevance, in [0, 1].
        finding: The sentence that holds its code.
        sentence: The number of that sentence, where sentences are numbered, else 1.
    """

    label: int
    worth: float
    finding: str
    sentence: int

    @property
    def is_relevant(self) -> bool:
        """Whether it answers the question."""
        return self.worth > 0.8

    @property
    def rating(self) -> int:
        """Its worth as a whole number in [1, 10]."""
        return max(1, round(self.worth * _TOP))


@dataclass(frozen=True, slots=True)
class Answer:
    """What is written, and what kind of call it answers."""

    kind: str
    text: str
    is_tool_call: bool = False
    tool: str = ""


class Oracle:
    """Answers the prompts of every ranker about some questions.

    Args:
        questions: All that will be asked.
        split: What cuts a text into tokens.
        reason: Tokens of a reason, where the schema allows that many.
        summary: Most tokens of a summary.
    """

    def __init__(
        self, questions: Iterable[Question], split: Split, reason: int = 25, summary: int = 40
    ) -> None:
        self._questions = list(questions)
        self._worth = {code: w for one in self._questions for code, w in one.worth.items()}
        self._split, self._summary = split, summary
        self._reason = as_long_as(_REASON, reason, split)

    def answer(self, body: Json, prompt: str) -> Answer:
        """Answer one request; *prompt* is the text of all its messages.

        Raises:
            UnknownPromptError: Nobody known asks like this.
        """
        shown = self._shown(prompt)
        tools, form = body.get("tools"), body.get("response_format") or {}
        if tools:
            called = tools[0]["function"]
            text = self._filled(called["parameters"], prompt, shown)
            return Answer(called["name"], text, is_tool_call=True, tool=called["name"])
        if form.get("type") == "json_schema":
            asked = form["json_schema"]
            return Answer(asked["name"], self._filled(asked["schema"], prompt, shown))
        for sign, kind, write in _IN_WORDS:
            if sign in prompt:
                return Answer(kind, write(shown, partial(self._cut, limit=None)))
        raise UnknownPromptError(f"no ranker known here asks like this: {prompt[:300]!r}")

    def question_of(self, prompt: str) -> str:
        """Return the question that a prompt is about, empty if it is about none."""
        return next((one.text for one in self._questions if one.text in prompt), "")

    def _shown(self, prompt: str) -> list[Shown]:
        codes = list(dict.fromkeys(CODE.findall(prompt)))
        return [self._one(label, code, prompt) for label, code in enumerate(codes, start=1)]

    def _one(self, label: int, code: str, prompt: str) -> Shown:
        place = prompt.index(code)
        start = max(prompt.rfind(". ", 0, place) + 2, prompt.rfind("\n", 0, place) + 1)
        ends = (prompt.find(". ", place), prompt.find("\n", place))
        end = min((one + 1 for one in ends if one >= 0), default=len(prompt))
        sentence = prompt[start:end].strip()
        numbered = re.match(r"(\d+): ", sentence)
        if numbered is None:
            return Shown(label, self._worth[code], sentence, 1)
        return Shown(label, self._worth[code], sentence[numbered.end() :], int(numbered[1]))

    def _filled(self, schema: Json, prompt: str, shown: Sequence[Shown]) -> str:
        entities = next((one.entities for one in self._questions if one.text in prompt), "")
        first = 0 if "Document ID: 0" in prompt else 1
        form = _Form(schema.get("$defs", {}), entities, first, shown, self._reason, self._cut)
        return json.dumps(form.fill("", schema, shown[0] if len(shown) == 1 else None))

    def _cut(self, text: str, limit: int | None) -> str:
        short = shortened(text, self._summary, self._split)
        return short if limit is None else short[:limit]


@dataclass(frozen=True, slots=True)
class _Form:
    """Fills in a JSON schema: what a field holds follows from its name and its type."""

    definitions: Json
    entities: str
    first_label: int
    shown: Sequence[Shown]
    reason: str
    cut: Callable[[str, int | None], str]

    def fill(self, name: str, schema: Json, one: Shown | None) -> Any:
        if "$ref" in schema:
            return self.fill(name, self.definitions[schema["$ref"].split("/")[-1]], one)
        if "anyOf" in schema:
            return self._chosen(name, schema["anyOf"], one)
        if "enum" in schema:
            wanted = _FIXED.get(name)
            return wanted if wanted in schema["enum"] else schema["enum"][0]
        write = {
            "object": self._object,
            "array": self._array,
            "string": self._string,
            "integer": self._number,
            "number": self._number,
            "boolean": self._boolean,
        }[schema["type"]]
        return write(name, schema, one)

    def _chosen(self, name: str, kinds: Sequence[Json], one: Shown | None) -> Any:
        """Fill in the shortest of several forms where a passage fails, else the longest."""
        forms = sorted(kinds, key=lambda kind: len(kind.get("properties", ())))
        written = [kind for kind in forms if kind.get("type") != "null"]
        if one is None or one.is_relevant:
            return self.fill(name, written[-1], one)
        return self.fill(name, written[0], one) if written == forms else None

    def _object(self, name: str, schema: Json, one: Shown | None) -> Json:
        return {field: self.fill(field, part, one) for field, part in schema["properties"].items()}

    def _array(self, name: str, schema: Json, one: Shown | None) -> list[Any]:
        kind = schema["items"]
        if "$ref" in kind or "anyOf" in kind or kind.get("type") == "object":
            return [self.fill(name, kind, each) for each in ([one] if one else self.shown)]
        if one is not None:
            return [one.sentence] if kind.get("type") == "integer" and one.is_relevant else []
        return [each.label - 1 + self.first_label for each in _best_first(self.shown)]

    def _string(self, name: str, schema: Json, one: Shown | None) -> str:
        limit = schema.get("maxLength")
        if "reason" in name:
            return self.reason[:limit]
        if name == "direction":
            return "supports" if one is not None and one.is_relevant else "none"
        if name == "entities":
            return self.entities
        if name in _LABELS and one is not None:
            return str(one.label)
        if one is not None:
            return self.cut(one.finding, limit) if one.is_relevant else ""
        return _FIXED.get(name, "plants")

    def _number(self, name: str, schema: Json, one: Shown | None) -> float:
        if one is None:
            return 1
        if name in _LABELS:
            return one.label - 1 + self.first_label
        if schema["type"] == "integer":
            return round(one.worth * schema.get("maximum", _TOP))
        return round(one.worth * schema.get("maximum", 1), 2)

    def _boolean(self, name: str, schema: Json, one: Shown | None) -> bool:
        return one is not None and one.is_relevant


def _best_first(shown: Sequence[Shown]) -> list[Shown]:
    return sorted(shown, key=lambda one: -one.worth)


def _permutation(shown: Sequence[Shown], cut: Callable[[str], str]) -> str:
    return " > ".join(f"[{one.label}]" for one in _best_first(shown))


def _yes_or_no(shown: Sequence[Shown], cut: Callable[[str], str]) -> str:
    return "YES" if shown[0].is_relevant else "NO"


def _relevances(shown: Sequence[Shown], cut: Callable[[str], str]) -> str:
    """Write the relevant documents only, as the prompt says."""
    return "\n".join(
        f"Doc: {one.label}, Relevance: {one.rating}"
        for one in _best_first(shown)
        if one.rating >= _LISTED
    )


def _indices(shown: Sequence[Shown], cut: Callable[[str], str]) -> str:
    """Write the relevant documents only, as the prompt says."""
    listed = [{"index": one.label} for one in _best_first(shown) if one.rating >= _LISTED]
    return json.dumps({"documents": listed})


def _scored_summary(shown: Sequence[Shown], cut: Callable[[str], str]) -> str:
    (one,) = shown
    text, rating = (cut(one.finding), one.rating) if one.is_relevant else ("", 0)
    return json.dumps({"summary": text, "relevance_score": rating})


_IN_WORDS: list[tuple[str, str, Callable[[Sequence[Shown], Callable[[str], str]], str]]] = [
    ("You are RankGPT", "permutation", _permutation),
    ("> Relevant (YES / NO):", "yes or no", _yes_or_no),
    ("Doc: 9, Relevance: 7", "relevances", _relevances),
    ('{"index": 1}', "indices", _indices),
    ("relevance_score", "scored summary", _scored_summary),
]
