"""`deepera serve` and `deepera mcp`: the servers, from their options."""

from __future__ import annotations

import asyncio
import os
import signal
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from math import ceil, inf
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from deepera_graph.cli.opening.judges import (
    check_server,
    judge_kind,
    judgements_of,
    open_judge,
    open_reranker,
    settings_of,
)
from deepera_graph.cli.opening.sources import check_literature, open_literature
from deepera_graph.cli.opening.stores import (
    check_papers,
    find_papers,
    find_recorded,
    is_address,
    keep_with,
    list_papers,
    place_of,
    store_of,
)
from deepera_graph.cli.shared import options, places
from deepera_graph.cli.shared.console import INTERRUPTED, say
from deepera_graph.cli.shared.declaring import given, opt, opt_of, split_names
from deepera_graph.errors import MissingStoreError, SettingsError
from deepera_graph.packages import check_extra
from deepera_graph.serve.config import RequestLimits
from deepera_graph.settings import Settings
from deepera_graph.settings.ranges import check_positive

if TYPE_CHECKING:
    from langchain_core.embeddings import Embeddings

    from deepera_graph.papers.base import PaperBase
    from deepera_graph.schema import Backend
    from deepera_graph.serve.backing.stores import Collections, StoredCollections

DAILY = {
    "serve": (
        "host", "port", "workers", "library", "sources", "path", "qdrant_url", "backend", "model",
        "base_url", "threshold", "top_n", "timeout", "log_questions", "quiet",
    ),
    "mcp": (
        "library", "path", "qdrant_url", "http", "port", "backend", "model", "base_url",
        "threshold", "preset",
    ),
}  # fmt: skip
_MEGABYTE = 2**20
_limit = partial(opt, panel="Limits")
_of_requests = partial(opt_of, RequestLimits, panel="Limits", ranged=True, config=None)


@dataclass(frozen=True, kw_only=True)
class ListenOptions:
    """Where the server listens, and what it serves beside judging."""

    host: str = opt(
        "Address to listen at; 0.0.0.0 for all of this machine.",
        metavar="HOST",
        default="127.0.0.1",
    )
    port: int = opt("Port to listen at; 0 is any that is free.", metavar="N", default=8000, least=0)
    workers: int = opt(
        "Processes that share the address. Each loads the judge, and waits for the others where "
        "they search one folder; with --qdrant-url none waits.",
        brief="Processes that share the address.",
        metavar="N",
        default=1,
        least=1,
    )
    library: list[str] | None = opt(
        "Library that may be searched, by its name, no other then; or a file of papers, and no "
        "passages; [b]off[/b] for none. The papers of the file, or of the first library, are "
        "served below /papers, and are the source papers of requests. May be repeated.",
        "--library",
        "-l",
        brief="Library that may be searched, with its papers. May be repeated.",
        metavar="NAME|FILE|off",
        shown="all in the folder or on the server, without papers",
    )
    log_questions: bool = opt(
        "Write the question of each request into the log, and what errors say; passages are "
        "never logged.",
        brief="Write questions into the log.",
        default=False,
    )
    quiet: bool = opt("Log problems alone.", "--quiet", "-q", default=False)


@dataclass(frozen=True, kw_only=True)
class LimitOptions:
    """What one request may ask for."""

    timeout: float | None = _of_requests("seconds", ranged=False)
    grace: int = _limit(
        "At the end, longest time for requests in flight, in seconds.",
        metavar="S",
        default=30,
        least=0,
    )
    max_body: float = _limit("Largest body, in MB.", metavar="MB", default=10.0)
    max_documents: int | None = _of_requests("documents")
    max_characters: int | None = _of_requests("characters")
    at_once: int | None = _of_requests("at_once", shown="4; with a chat model 16")
    queue: int | None = _of_requests("queue")


def serve(
    *,
    server: ListenOptions,
    limits: LimitOptions,
    place: places.CollectionsOptions,
    keep: places.KeepOptions,
    literature: places.LiteratureOptions,
    judge: options.JudgingOptions,
) -> None:
    """Answer over HTTP, until interrupted."""
    from deepera_graph.serve.config import KEYS, ServeConfig, read_keys
    from deepera_graph.web import describe_address, is_this_machine, listen

    for package in ("fastapi", "uvicorn", "prometheus_client"):
        check_extra(package, extra="serve", what="deepera serve")
    of_request = _read_limits(limits, in_process=judge_kind(judge) != "llm")
    keys = read_keys()
    settings = Settings.of(settings_of(judge))
    names, papers = _choose_served(place, server.library)
    check_literature(literature)
    backend = open_judge(judge)
    if not keys and not is_this_machine(server.host):
        say(
            f"warning: anyone who can reach {server.host} may ask, without a key: {KEYS} is not set"
        )
    config = ServeConfig(
        backend=_for_workers(backend, server.workers),
        settings=settings.to_dict(),
        limits=of_request,
        keys=keys,
        judgements=partial(judgements_of, where=judge.cache),
        collections=None if names is None else find_collections(place, keep, names),
        literature=partial(open_literature, literature, judge.cache)
        if literature.sources
        else None,
        papers=papers,
        log_content=server.log_questions,
        workers=server.workers,
    )
    from deepera_graph.serve.app import run

    with listen(server.host, server.port) as listening:
        if not server.quiet:
            say(f"answering at http://{describe_address(listening)}: / is a page, /docs tells more")
        try:
            run(config, listening, grace=limits.grace, quiet=server.quiet)
        except SystemExit as end:  # 0 after SIGTERM
            if end.code:
                raise
    if not server.quiet:
        say("stopped")


def _choose_served(
    place: places.PlaceOptions, libraries: list[str] | None
) -> tuple[tuple[str, ...] | None, str | None]:
    """Return the names of libraries, as `_sort_libraries` does, and the file of their papers."""
    if libraries is None:
        return (), None
    from deepera_graph.papers import PaperBase

    for one in filter(is_address, libraries):
        raise SettingsError(f"--library must be a library or a file of papers, got {one!r}")
    names, bases = _sort_libraries(libraries, place)
    for missing in (one for one in names or () if one not in bases and place.qdrant_url is None):
        check_papers(place, missing)  # says why there are none
    files = [file for name, file in bases.items() if name not in (names or ())]
    if len(files) > 1:
        raise SettingsError(f"one file of papers can be served, got {', '.join(map(repr, files))}")
    file = next(iter([*files, *bases.values()]), None)
    if file is not None:
        PaperBase.open(file).close()  # each process opens its own
    return names, file


def _read_limits(limits: LimitOptions, *, in_process: bool) -> RequestLimits:
    if not 0 < limits.max_body < inf:
        raise SettingsError(f"--max-body must be > 0 and finite, got {limits.max_body}")
    if limits.timeout is not None:
        check_positive("--timeout", limits.timeout)
    others = {} if in_process else {"at_once": 16}
    chosen = given(limits)
    del chosen["grace"], chosen["max_body"]
    return RequestLimits(body_bytes=ceil(limits.max_body * _MEGABYTE), **{**others, **chosen})


def _for_workers(backend: Backend, workers: int) -> Backend | dict[str, object]:
    """Return a judge in a form that gets to other processes, if there are to be any."""
    if workers == 1:
        return backend
    if backend.spec is None:
        raise SettingsError(
            f"--workers {workers} needs a judge that each process can make; {backend.name!r} "
            "cannot be written down"
        )
    return dict(backend.spec)


def find_collections(
    place: places.CollectionsOptions, keep: places.KeepOptions, names: tuple[str, ...] = ()
) -> Collections:
    """Return where collections are, for a server; only those of *names* if any are given."""
    from deepera_graph.serve.backing.stores import Collections

    how = keep_with(Path(), keep)
    return Collections(
        **place_of(place),
        names=names,
        find_embeddings=partial(_find_embeddings, place),
        keep={name: value for name, value in how.items() if name != "keep_in"} if how else None,
    )


def _find_embeddings(
    place: places.CollectionsOptions, collection: str, recorded: str
) -> Embeddings | None:
    store = replace(store_of(place, collection), embeddings=place.embeddings)
    return find_recorded(store, recorded)


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
    names, files = _sort_libraries(serving.library, place)
    settings = _check_mcp(serving, judge)
    check_extra("mcp", extra="mcp", what="deepera mcp")
    from deepera_graph.serve.backing.library import Library
    from deepera_graph.serve.tools.mcp import PORT, serve_http, serve_stdio

    bases = {name: partial(_open_base, file) for name, file in files.items()}
    with ExitStack() as opened:
        library = Library(
            lambda: opened.enter_context(open_reranker(judge, settings))[0],
            collections=None if names is None else _choose(names, place),
            bases=bases,
        )
        if not serving.http:
            # End at once: a thread that waits for a line of stdin cannot be told to stop.
            before = signal.signal(signal.SIGINT, lambda *_: os._exit(INTERRUPTED))
            try:
                asyncio.run(serve_stdio(library))
            finally:
                signal.signal(signal.SIGINT, before)
            return
        port = PORT if serving.port is None else serving.port
        serve_http(library, port=port, on_start=lambda address: say(f"speaking MCP at {address}"))
    say("stopped")


def _check_mcp(serving: McpOptions, judge: options.JudgingOptions) -> dict[str, Any]:
    """Return the settings; raise `SettingsError` for what is wrong, before anything is loaded."""
    if judge_kind(judge) == "llm":
        check_server(judge)
    if serving.port is not None and not serving.http:
        raise SettingsError("--port goes with --http")
    return Settings.of(settings_of(judge)).to_dict()


def _sort_libraries(
    libraries: list[str] | None, place: places.PlaceOptions
) -> tuple[tuple[str, ...] | None, dict[str, str]]:
    """Return the names of libraries, none for all and None for no passages, and their papers."""
    if libraries is None:
        return (), list_papers(place)
    given = [
        one
        for text in libraries
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
    if is_address(place):
        return urlsplit(place).netloc.rpartition("@")[2]  # a password is no part of a name
    if not Path(place).exists():
        raise MissingStoreError(f"no such file of papers: {place!r}")
    return Path(place).stem


def _open_base(place: str) -> PaperBase:
    from deepera_graph.papers import PaperBase

    return PaperBase.connect(place) if is_address(place) else PaperBase.open(place)


def _choose(names: tuple[str, ...], place: places.CollectionsOptions) -> StoredCollections:
    from deepera_graph.serve.backing.stores import StoredCollections

    where = find_collections(place, places.KeepOptions(keep_vectors="off"), names)
    collections = StoredCollections(where)
    if names and place.qdrant_url is None:
        known = collections.names()
        for missing in (one for one in names if one not in known):
            say(f"note: no library {missing!r} in {where.path} yet; `deepera index` makes it")
    return collections
