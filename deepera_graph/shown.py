"""What the roles are shown of the passages: the stretches that are judged, with their titles."""

from collections.abc import Sequence
from typing import NamedTuple

from langchain_core.documents import Document

from deepera_graph.passages import windows
from deepera_graph.roles import PassageText


class Window(NamedTuple):
    """A stretch of one passage: the place of that, from 0, and offsets into its text."""

    place: int
    start: int
    end: int


def judged_windows(passages: Sequence[Document], size: int) -> list[Window]:
    """Return what is judged, in order: each passage, or its windows; a blank one is not judged.

    Args:
        passages: As they travel in the graph.
        size: Longest window, in characters.
    """
    return [
        Window(place, start, end)
        for place, passage in enumerate(passages)
        for start, end in windows(passage.page_content, size)
        if passage.page_content[start:end].strip()
    ]


def shown_text(passage: Document, start: int, end: int) -> PassageText:
    """Return all that a role is shown of a stretch of a passage."""
    return {
        "text": passage.page_content[start:end],
        "title": str(passage.metadata.get("title") or ""),
        "section": str(passage.metadata.get("section") or ""),
    }
