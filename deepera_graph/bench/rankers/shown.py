"""How a chat model is shown passages: as data, without what could hide in them."""

from deepera_graph.backends.llm import show
from deepera_graph.bench.rankers.ranker import Passage


def one_block(passage: Passage) -> str:
    """Return a passage with its title and section, on lines of their own where there are any."""
    head = [f"{name}: {text}" for name, text in _named(passage)]
    return "\n".join([*head, show.plain(passage["text"])])


def one_line(passage: Passage, *, max_words: int) -> str:
    """Return a passage in one line, cut after so many words of its text."""
    head = [f"{text}." for _, text in _named(passage)]
    words = show.plain(passage["text"]).split()
    tail = " …" if len(words) > max_words else ""
    return " ".join([*head, *words[:max_words]]) + tail


def _named(passage: Passage) -> list[tuple[str, str]]:
    pairs = (("Title", passage["title"]), ("Section", passage["section"]))
    return [(name, show.one_line(text)) for name, text in pairs if text.strip()]
