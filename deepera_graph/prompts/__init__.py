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


def messages(node: str, **values: str) -> list[BaseMessage]:
    """Fill the templates of a node; the system message takes no values, so that it stays the same.

    Raises:
        PromptError: The values are not exactly the placeholders, or there is no such template.
    """
    filled: list[BaseMessage] = []
    for role, kind in _ROLES.items():
        template = _template(f"{node}.{role}.md")
        given = values if role == "user" else {}
        wanted = set(template.get_identifiers())
        if wanted != set(given):
            raise PromptError(f"{node}.{role}.md takes {sorted(wanted)}, was given {sorted(given)}")
        filled.append(kind(template.substitute(given)))
    return filled


@lru_cache(maxsize=1)
def prompts_hash() -> str:
    """Return 12 hex digits that change when any template changes."""
    digest = sha256()
    for template in sorted(files(__name__).iterdir(), key=lambda one: one.name):
        if template.name.endswith(".md"):
            digest.update(template.name.encode() + b"\0" + template.read_bytes() + b"\0")
    return digest.hexdigest()[:12]


@lru_cache(maxsize=32)
def _template(name: str) -> Template:
    try:
        return Template(files(__name__).joinpath(name).read_text(encoding="utf-8").strip())
    except FileNotFoundError as error:
        raise PromptError(f"there is no template {name!r}") from error
