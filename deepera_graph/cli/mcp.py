"""`deepera mcp`: evidence, answers and papers for the models and agents of any host."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from deepera_graph.cli.shared import options, places
from deepera_graph.cli.shared.console import INTERRUPTED, say
from deepera_graph.cli.shared.declaring import opt, split_names
from deepera_graph.errors import MissingStoreError, SettingsError

if TYPE_CHECKING:
    from deepera_graph.papers.base import PaperBase
    from deepera_graph.reranker import EvidenceReranker
    from deepera_graph.serve.backing.stores import StoredCollections

_DAILY = (
    "library", "path", "qdrant_url", "http", "port", "backend", "model", "base_url",
    "threshold", "preset",
)  # fmt: skip
DAILY = {"mcp": _DAILY}


@dataclass(frozen=True, kw_only=True)
class McpOptions:
    """What may be seen, and how it is reached."""

    library: list[str] | None = opt(
        "Library that may be searched, by its name; a file of papers, or the address of `deepera "
        "papers serve`; [b]off[/b] for none: then passages are given. May be repeated.",
        "--library",
        "-l",
        brief="Library that may be searched. May be repeated.",
        metavar="NAME|FILE|URL|off",
        shown="all in the folder or on the server",
    )
    http: bool = opt("Answer over streamable HTTP, not on stdin and stdout.", default=False)
    port: int | None = opt(
        "With --http: port to listen at, 0 for any that is free.",
        metavar="PORT",
        least=0,
        shown="8090",
    )


def mcp(
    *,
    serving: McpOptions,
    place: places.CollectionsOptions,
    judge: options.JudgingOptions,
) -> None:
    """Serve until the host closes stdin, or until interrupted."""
    from deepera_graph.packages import check_extra

    names, files = _sort(serving, place)
    settings = _check(serving, judge)
    check_extra("mcp", extra="mcp", what="deepera mcp")
    from deepera_graph.serve.backing.library import Library
    from deepera_graph.serve.tools.mcp import PORT, serve_http, serve_stdio

    bases = {name: partial(_open_base, file) for name, file in files.items()}
    with ExitStack() as opened:
        library = Library(
            partial(_make_reranker, opened, judge, settings),
            collections=None if names is None else _choose(names, place),
            bases=bases,
        )
        if not serving.http:
            before = signal.signal(signal.SIGINT, _leave)
            asyncio.run(serve_stdio(library))
            signal.signal(signal.SIGINT, before)
            return
        port = PORT if serving.port is None else serving.port
        serve_http(library, port=port, on_start=_tell)


def _leave(*_: object) -> None:
    """End at once: a thread that waits for a line of stdin cannot be told to stop."""
    os._exit(INTERRUPTED)


def _tell(address: str) -> None:
    say(f"speaking MCP at {address}")


def _check(
    serving: McpOptions,
    judge: options.JudgingOptions,
) -> dict[str, Any]:
    """Return the settings; raise `SettingsError` for what is wrong, before anything is loaded."""
    from deepera_graph.cli.opening.judges import check_server, judge_kind, settings_of
    from deepera_graph.settings import Settings

    if judge_kind(judge) == "llm":
        check_server(judge)
    if serving.port is not None and not serving.http:
        raise SettingsError("--port goes with --http")
    return Settings.of(settings_of(judge)).to_dict()


def _make_reranker(
    opened: ExitStack,
    judge: options.CachedJudgeOptions,
    settings: Mapping[str, Any],
) -> EvidenceReranker:
    from deepera_graph.cli.opening.judges import open_reranker

    return opened.enter_context(open_reranker(judge, settings))[0]


def _sort(
    serving: McpOptions, place: places.PlaceOptions
) -> tuple[tuple[str, ...] | None, dict[str, str]]:
    """Return the names of libraries, none for all and None for no passages, and their papers."""
    from deepera_graph.cli.opening.stores import find_papers, is_address, list_papers

    if serving.library is None:
        return (), list_papers(place)
    given = [
        one
        for text in serving.library
        for one in ([text] if is_address(text) else split_names("--library", text))
        if one != "off"
    ]
    files = {one: find_papers(place, one) for one in given}
    names = tuple(one for one, file in files.items() if file != one)
    bases: dict[str, str] = {}
    for one, file in files.items():
        if one in names and not Path(file).is_file():
            continue
        name = one if one in names else _name_base(one)
        if name in bases:
            raise SettingsError(f"two libraries are called {name!r}; give files of different names")
        bases[name] = file
    return names or None, bases


def _name_base(place: str) -> str:
    if place.startswith(("http://", "https://")):
        return urlsplit(place).netloc.rpartition("@")[2]  # a password is no part of a name
    if not Path(place).exists():
        raise MissingStoreError(f"no such file of papers: {place!r}")
    return Path(place).stem


def _open_base(place: str) -> PaperBase:
    from deepera_graph.papers import PaperBase

    return PaperBase.connect(place) if "://" in place else PaperBase.open(place)


def _choose(names: tuple[str, ...], place: places.CollectionsOptions) -> StoredCollections:
    from deepera_graph.cli.serve import find_collections
    from deepera_graph.serve.backing.stores import StoredCollections

    where = find_collections(place, places.KeepOptions(keep_vectors="off"), names)
    collections = StoredCollections(where)
    if names and place.qdrant_url is None:
        known = collections.names()
        for missing in (one for one in names if one not in known):
            say(f"note: library {missing!r} does not exist yet; `deepera index` makes it")
    return collections
