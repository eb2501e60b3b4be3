"""Prompts as text files: ``<node>.<role>.md``, filled with `string.Template`.

Source:
    Our own wording of the rules of DeepEra, sections 3.1 and 3.2; the paper prints no prompt text
    for scoring and summarizing.
"""

from functools import lru_cache
from hashlib import sha256
from importlib.resources import files
from string import Template

from langchain_core.messages import BaseMessage, HumanMessage, SystemMessage

from deepera_graph.errors import PromptError

_ROLES: dict[str, type[BaseMessage]] = {"system": SystemMessage, "user": HumanMessage}


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
        for role, kind in _ROLES.items()
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
