"""`deepera serve`: the server, from its options."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from math import ceil, inf
from pathlib import Path
from typing import TYPE_CHECKING

from deepera_graph.cli.shared import options, places
from deepera_graph.cli.shared.console import say
from deepera_graph.cli.shared.declaring import opt
from deepera_graph.errors import SettingsError

if TYPE_CHECKING:
    from langchain_core.embeddings import Embeddings

    from deepera_graph.schema import Backend
    from deepera_graph.serve.backing.stores import Collections
    from deepera_graph.serve.config import RequestLimits

DAILY = {
    "serve": (
        "host", "port", "workers", "library", "sources", "path", "qdrant_url", "backend", "model",
        "base_url", "threshold", "top_n", "timeout", "log_questions", "quiet",
    )
}  # fmt: skip
_MEGABYTE = 2**20
_limit = partial(opt, panel="Limits")


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
    library: str | None = opt(
        "Library whose papers are served below /papers, and searched by requests with the source "
        "papers; or a file of papers. Passages of all libraries are served anyway.",
        "--library",
        "-l",
        brief="Library whose papers are served below /papers.",
        metavar="NAME|FILE",
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

    timeout: float = _limit(
        "Longest time for a request, in seconds; then it ends with HTTP 504.",
        metavar="S",
        default=120.0,
    )
    grace: int = _limit(
        "At the end, longest time for requests in flight, in seconds.",
        metavar="S",
        default=30,
        least=0,
    )
    max_body: float = _limit("Largest body, in MB.", metavar="MB", default=10.0)
    max_documents: int = _limit("Most passages of a request.", metavar="N", default=1000, least=1)
    max_characters: int = _limit(
        "Most characters of a request's passages together.", metavar="N", default=4_000_000, least=1
    )
    at_once: int | None = _limit(
        "Requests judged at the same time; others wait.",
        metavar="N",
        least=1,
        shown="4; with a chat model 16",
    )
    queue: int = _limit("Requests that may wait.", metavar="N", default=256, least=0)


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
    from deepera_graph.cli.judging.literature import check_literature, open_literature
    from deepera_graph.cli.opening.judges import judge_kind, judgements_of, open_judge, settings_of
    from deepera_graph.packages import check_extra
    from deepera_graph.serve.config import KEYS, ServeConfig, read_keys
    from deepera_graph.settings import Settings
    from deepera_graph.web import describe_address, is_this_machine, listen

    for package in ("fastapi", "uvicorn", "prometheus_client"):
        check_extra(package, extra="serve", what="deepera serve")
    of_request = _read_limits(limits, in_process=judge_kind(judge) != "llm")
    keys = read_keys()
    collections = find_collections(place, keep)
    settings = Settings.of(settings_of(judge))
    papers = _check_papers(place, server.library)
    check_literature(literature)
    backend = open_judge(judge)
    if not keys and not is_this_machine(server.host):
        say(f"warning: whoever reaches {server.host} may ask, without a key: {KEYS} is not set")
    config = ServeConfig(
        backend=_for_workers(backend, server.workers),
        settings=settings.to_dict(),
        limits=of_request,
        keys=keys,
        judgements=partial(judgements_of, where=judge.cache),
        collections=collections,
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
        run(config, listening, grace=limits.grace, quiet=server.quiet)


def _check_papers(place: places.PlaceOptions, library: str | None) -> str | None:
    """Return the file of a library's papers, opened once: each process opens its own."""
    if library is None:
        return None
    from deepera_graph.cli.opening.stores import check_papers, is_address
    from deepera_graph.papers import PaperBase

    if is_address(library):
        raise SettingsError(f"--library must be a library or a file of papers, got {library!r}")
    file = check_papers(place, library)
    PaperBase.open(file).close()
    return file


def _read_limits(limits: LimitOptions, *, in_process: bool) -> RequestLimits:
    from deepera_graph.serve.config import RequestLimits

    if not 0 < limits.max_body < inf:
        raise SettingsError(f"--max-body must be > 0 and finite, got {limits.max_body}")
    if not limits.timeout > 0:
        raise SettingsError(f"--timeout must be > 0, got {limits.timeout}")
    return RequestLimits(
        body_bytes=ceil(limits.max_body * _MEGABYTE),
        documents=limits.max_documents,
        characters=limits.max_characters,
        seconds=limits.timeout,
        at_once=limits.at_once or (RequestLimits().at_once if in_process else 16),
        queue=limits.queue,
    )


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
    from deepera_graph.cli.opening.stores import keep_with, place_of
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
    from deepera_graph.cli.opening.stores import find_recorded

    store = places.StoreOptions(
        library=collection,
        path=place.path,
        qdrant_url=place.qdrant_url,
        embeddings=place.embeddings,
    )
    return find_recorded(store, recorded)
