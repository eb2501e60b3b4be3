"""Fields other than the natural sciences: what counts as evidence there, as data.

A field is a TOML file: ``intent``, ``score``, ``summarize`` and ``answer`` are lists of rules that
are added to the prompt of that role. ``law``, ``medicine`` and ``finance`` come with the package.

Source:
    The rules are ours. Whether the method carries over to other fields is an open question of the
    DeepEra study; this makes it one that can be tried.
"""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any

from langchain_core.messages import BaseMessage, HumanMessage, SystemMessage

from deepera_graph.errors import PromptError, SettingsError

NAMES = ("finance", "law", "medicine")
_ROLES_domains = ("intent", "score", "summarize", "answer")


@dataclass(frozen=True, slots=True, kw_only=True)
class Domain:
    """A field, and the rules each role follows in it.

    Raises:
        SettingsError: There is no rule, or one is not a text.
    """

    name: str
    intent: tuple[str, ...] = ()
    score: tuple[str, ...] = ()
    summarize: tuple[str, ...] = ()
    answer: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for role in _ROLES_domains:
            rules = getattr(self, role)
            if isinstance(rules, str) or not all(isinstance(one, str) and one for one in rules):
                raise SettingsError(f"domain {self.name!r}: {role} must be a list of rules")
            object.__setattr__(self, role, tuple(rules))
        if not any(getattr(self, role) for role in _ROLES_domains):
            raise SettingsError(f"domain {self.name!r} has no rule for {', '.join(_ROLES_domains)}")

    def to_dict(self) -> dict[str, Any]:
        """Return plain data that `load_domain` reads."""
        return {
            name: list(v) if name in _ROLES_domains else v for name, v in asdict(self).items() if v
        }

    def added_to(self, role: str, messages: Sequence[BaseMessage]) -> list[BaseMessage]:
        """Return the messages of a role with its rules at the end of the first, the system's."""
        rules = getattr(self, role)
        if not rules:
            return list(messages)
        first = messages[0]
        text = "\n".join((f"In this field ({self.name}):\n", *(f"- {rule}" for rule in rules)))
        return [first.model_copy(update={"content": f"{first.content}\n\n{text}"}), *messages[1:]]


def load_domain(domain: Domain | Mapping[str, Any] | str | Path) -> Domain:
    """Return a field by its name, from a TOML file, or from its plain form.

    Raises:
        SettingsError: There is no such field or file, or it cannot be read.
    """
    if isinstance(domain, Domain):
        return domain
    if isinstance(domain, Mapping):
        return _made(domain)
    if domain in NAMES:
        return _read(
            str(domain), files(__name__).joinpath("domains", f"{domain}.toml").read_text("utf-8")
        )
    path = Path(domain)
    if path.suffix != ".toml" or not path.is_file():
        raise SettingsError(
            f"domain must be one of {', '.join(NAMES)}, or a TOML file, got {str(domain)!r}"
        )
    return _read(path.stem, path.read_text("utf-8"))


def _read(name: str, text: str) -> Domain:
    try:
        return _made({"name": name, **tomllib.loads(text)})
    except tomllib.TOMLDecodeError as error:
        raise SettingsError(f"domain {name!r} is not TOML: {error}") from error


def _made(fields: Mapping[str, Any]) -> Domain:
    try:
        return Domain(**fields)
    except TypeError as error:
        raise SettingsError(f"domain: {error}") from error


_ROLES_prompts: dict[str, type[BaseMessage]] = {"system": SystemMessage, "user": HumanMessage}


def messages(node: str, /, **values: str) -> list[BaseMessage]:
    """Fill the templates of a node; the system message takes no values, so that it stays the same.

    Raises:
        PromptError: The values are not exactly the placeholders, or there is no such template.
    """
    return messages_of(__name__, node, **values)


def messages_of(package: str, node: str, /, **values: str) -> list[BaseMessage]:
    """Do what `messages` does with the templates of another package."""
    return [
        kind(text_of(package, f"{node}.{role}", **(values if role == "user" else {})))
        for role, kind in _ROLES_prompts.items()
    ]


def text_of(package: str, name: str, /, **values: str) -> str:
    """Fill one template of a package, ``<name>.md``.

    Raises:
        PromptError: The values are not exactly the placeholders, or there is no such template.
    """
    template = _template(package, f"{name}.md")
    wanted = set(template.get_identifiers())
    if wanted != set(values):
        raise PromptError(f"{name}.md takes {sorted(wanted)}, was given {sorted(values)}")
    return template.substitute(values)


def prompts_hash() -> str:
    """Return 12 hex digits that change when any template changes."""
    return hash_of(__name__)


@lru_cache(maxsize=8)
def hash_of(package: str) -> str:
    """Do what `prompts_hash` does with the templates of another package."""
    digest = sha256()
    for template in sorted(files(package).iterdir(), key=lambda one: one.name):
        if template.name.endswith(".md"):
            digest.update(template.name.encode() + b"\0" + template.read_bytes() + b"\0")
    return digest.hexdigest()[:12]


@lru_cache(maxsize=64)
def _template(package: str, name: str) -> Template:
    try:
        return Template(files(package).joinpath(name).read_text(encoding="utf-8").strip())
    except FileNotFoundError as error:
        raise PromptError(f"there is no template {name!r}") from error
