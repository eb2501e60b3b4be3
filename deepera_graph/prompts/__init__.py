"""Prompts as text files, what several of them share, and rules for other fields than science.

`<node>.<role>.md` is the template of a message. A system template may name parts, which are the
same wherever they stand: `$rubric` and `$summary_rules` are files, `$intent_kinds` and
`$answer_types` are written from the classes in `deepera_graph.schema`.

A field (`law.toml`, `medicine.toml`, `finance.toml`, or a file of your own) has lists of rules for
the roles ``intent``, ``score``, ``summarize`` and ``answer``; they are added to the prompts. Its
``vocabulary`` has, by intent class, the words with which the field asks for it.

Source:
    The rules of the fields are ours. Whether the method carries over to other fields is an open
    question of the DeepEra study; this makes it one that can be tried.
"""

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import lru_cache, partial
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any

from langchain_core.messages import BaseMessage, HumanMessage, SystemMessage

from deepera_graph.errors import PromptError, SettingsError
from deepera_graph.schema import ANSWER_TYPES, INTENT_KINDS, IntentKind
from deepera_graph.settings.ranges import suggest_value

NAMES = ("finance", "law", "medicine")
NODES = ("intent", "score", "summarize", "answer")
_MESSAGE_OF: dict[str, type[BaseMessage]] = {"system": SystemMessage, "user": HumanMessage}
_SHARED = ("rubric", "summary_rules")


def messages_of(package: str, node: str, /, **values: str) -> list[BaseMessage]:
    """Fill the templates of a node; the system message takes no values: it stays the same."""
    return [
        kind(text_of(package, f"{node}.{role}", **(values if role == "user" else {})))
        for role, kind in _MESSAGE_OF.items()
    ]


messages = partial(messages_of, __name__)


def text_of(package: str, name: str, /, **values: str) -> str:
    """Fill one template of a package, ``<name>.md``, and the parts that it names."""
    template, parts = _template(package, f"{name}.md"), shared_parts()
    wanted = set(template.get_identifiers()) - parts.keys()
    if wanted != set(values):
        raise PromptError(f"{name}.md takes {sorted(wanted)}, was given {sorted(values)}")
    return template.substitute({**parts, **values})


def prompts_hash(*nodes: str, package: str = __name__) -> str:
    """Return 12 hex digits that change when what these nodes show changes; by default `NODES`."""
    digest, parts = sha256(), shared_parts()
    for name in sorted(f"{node}.{role}.md" for node in nodes or NODES for role in _MESSAGE_OF):
        text = _template(package, name).safe_substitute(parts)
        digest.update(f"{name}\0{text}\n\0".encode())
    return digest.hexdigest()[:12]


@lru_cache(maxsize=1)
def shared_parts() -> Mapping[str, str]:
    """Return by name what stands in several prompts, or is written from the schema."""
    return {
        **{name: _template(__name__, f"{name}.md").template for name in _SHARED},
        "intent_kinds": _list_classes(INTENT_KINDS),
        "answer_types": _list_classes(ANSWER_TYPES),
    }


def _list_classes(meanings: Mapping[Any, str]) -> str:
    *most, last = [
        f'"{name}" ({meaning})' if meaning else f'"{name}"' for name, meaning in meanings.items()
    ]
    return f"{', '.join(most)}, or {last}"


@lru_cache(maxsize=64)
def _template(package: str, name: str) -> Template:
    try:
        return Template(files(package).joinpath(name).read_text(encoding="utf-8").strip())
    except FileNotFoundError as error:
        raise PromptError(f"template {name!r} does not exist") from error


@dataclass(frozen=True, slots=True, kw_only=True)
class Domain:
    """A field, and the rules each role follows in it.

    Attributes:
        name: Of the field; stands in the prompts.
        intent: Rules for reading a question.
        score: Rules for judging a passage.
        summarize: Rules for shortening one.
        answer: Rules for answering.
        vocabulary: Words and phrases of the field by the intent class that they ask for; added to
            the rules for reading a question.

    Raises:
        SettingsError: There is no rule, one is not a text, or an intent class is unknown.
    """

    name: str
    intent: tuple[str, ...] = ()
    score: tuple[str, ...] = ()
    summarize: tuple[str, ...] = ()
    answer: tuple[str, ...] = ()
    vocabulary: Mapping[IntentKind, Sequence[str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._check_vocabulary()
        for role in NODES:
            rules = getattr(self, role)
            if isinstance(rules, str) or not all(isinstance(one, str) and one for one in rules):
                raise SettingsError(f"domain {self.name!r}: {role} must be a list of rules")
            object.__setattr__(self, role, tuple(rules))
        if not (self.vocabulary or any(getattr(self, role) for role in NODES)):
            raise SettingsError(f"domain {self.name!r} has no rule for {', '.join(NODES)}")

    def _check_vocabulary(self) -> None:
        given: object = self.vocabulary
        if not isinstance(given, Mapping):
            raise SettingsError(f"domain {self.name!r}: vocabulary must be words by intent class")
        for kind, words in given.items():
            if kind not in INTENT_KINDS:
                raise SettingsError(
                    f"domain {self.name!r}: intent classes are {', '.join(INTENT_KINDS)}, got "
                    f"{kind!r}"
                )
            if isinstance(words, str) or not all(isinstance(one, str) and one for one in words):
                raise SettingsError(f"domain {self.name!r}: vocabulary[{kind!r}] must be a list")
        kept = {kind: tuple(words) for kind, words in given.items()}
        object.__setattr__(self, "vocabulary", kept)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data that `load_domain` reads."""
        plain = {
            name: list(value) if name in NODES else value
            for name, value in asdict(self).items()
            if value
        }
        if self.vocabulary:
            plain["vocabulary"] = {kind: list(words) for kind, words in self.vocabulary.items()}
        return plain

    def find_intent(self, question: str) -> IntentKind | None:
        """Return the intent class whose words stand first in a question; None if none does."""
        text = " ".join(question.lower().split())
        places = {
            kind: min(found)
            for kind, words in self.vocabulary.items()
            if (found := [at.start() for one in words if (at := _find_phrase(one, text))])
        }
        return min(places, key=places.__getitem__, default=None)

    def add_rules(self, role: str, messages: Sequence[BaseMessage]) -> list[BaseMessage]:
        """Return the messages of a role with its rules at the end of the first, the system's."""
        rules = [*getattr(self, role), *(self._explain_vocabulary() if role == "intent" else [])]
        if not rules:
            return list(messages)
        first = messages[0]
        text = "\n".join((f"In this field ({self.name}):\n", *(f"- {rule}" for rule in rules)))
        return [first.model_copy(update={"content": f"{first.content}\n\n{text}"}), *messages[1:]]

    def _explain_vocabulary(self) -> list[str]:
        """Return the vocabulary as rules for reading a question, one an intent class."""
        return [
            f'"{kind}" is asked for with words such as: {", ".join(words)}.'
            for kind, words in self.vocabulary.items()
        ]


def _find_phrase(phrase: str, text: str) -> "re.Match[str] | None":
    """Find a phrase at the beginning of a word, whatever its ending."""
    return re.search(rf"\b{re.escape(phrase.lower())}", text)


def load_domain(domain: Domain | Mapping[str, Any] | str | Path) -> Domain:
    """Return a field by its name, from a TOML file, or from its plain form."""
    if isinstance(domain, Domain):
        return domain
    if isinstance(domain, Mapping):
        return _make_domain(domain)
    if domain in NAMES:
        return read_rules(str(domain))
    path = Path(domain)
    if path.suffix != ".toml" or not path.is_file():
        raise SettingsError(
            f"domain must be one of {', '.join(NAMES)}, or a TOML file, got {str(domain)!r}"
            f"{suggest_value(domain, NAMES)}"
        )
    return _parse_domain(path.stem, path.read_text("utf-8"))


def read_rules(name: str) -> Domain:
    """Return the rules of ``name.toml`` beside this file."""
    return _parse_domain(name, files(__name__).joinpath(f"{name}.toml").read_text("utf-8"))


def _parse_domain(name: str, text: str) -> Domain:
    try:
        return _make_domain({"name": name, **tomllib.loads(text)})
    except tomllib.TOMLDecodeError as error:
        raise SettingsError(f"domain {name!r} is not TOML: {error}") from error


def _make_domain(fields: Mapping[str, Any]) -> Domain:
    try:
        return Domain(**fields)
    except TypeError as error:
        raise SettingsError(f"domain: {error}") from error
