"""The embeddings that an option names, or a collection was made with."""

from __future__ import annotations

from typing import TYPE_CHECKING

from deepera_graph.cli.opening.foreign import search_here
from deepera_graph.cli.shared import options
from deepera_graph.errors import SettingsError

if TYPE_CHECKING:
    from langchain_core.embeddings import Embeddings

_OPTION = "--embeddings"


def find_embeddings(embeddings: str | None) -> Embeddings | None:
    """Build the embeddings that `--embeddings` names; None if it was not given."""
    if embeddings is None:
        return None
    from deepera_graph.judges import embeddings as named

    search_here()
    return named.find_embeddings(embeddings, what=_OPTION)


def find_recorded(store: options.StoreOptions, recorded: str) -> Embeddings | None:
    """Return the embeddings that a collection was made with: ours, or those that are configured."""
    from deepera_graph.judges.embeddings import LOCAL, name_recorded

    name = name_recorded(recorded)
    if store.embeddings is None and name != LOCAL:
        shown = name or "MODULE:FACTORY, a function that makes them"
        raise SettingsError(
            f"library {store.library!r} was made with {recorded}: give {_OPTION} {shown}"
        )
    return find_embeddings(store.embeddings or LOCAL)


def check_name(embeddings: str) -> None:
    """Raise `SettingsError` unless this may be the name of embeddings."""
    from deepera_graph.judges.embeddings import split_name

    split_name(embeddings, _OPTION)
