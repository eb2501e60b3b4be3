"""The world's literature on the command line: `--source`, and what is told of how it went."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

from deepera_graph.cli.opening.judges import default_cache
from deepera_graph.cli.shared import places
from deepera_graph.cli.shared.console import progress_bar, say
from deepera_graph.errors import BackendError, SettingsError

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from deepera_graph.doctor.checks import Finding
    from deepera_graph.papers.results import Scope
    from deepera_graph.papers.sources import Literature, LiteratureAnswer

_TRIED = "Does green tea lower fasting glucose?"


def check_literature(chosen: places.LiteratureOptions) -> None:
    """Raise `SettingsError` unless the options on services can be; it loads none of them."""
    if chosen.sources is not None:
        from deepera_graph.papers.sources import read_names
        from deepera_graph.papers.sources.http import read_contact

        read_names(chosen.sources)
        read_contact(chosen.contact)
        return
    for name in ("contact", "source_seconds"):
        if getattr(chosen, name) is not None and name not in chosen.configured:
            raise SettingsError(f"--{name.replace('_', '-')} goes with --source")


def find_scope(
    literature: places.LiteratureOptions,
    conditions: Mapping[str, Any],
    **others: bool,
) -> Scope | None:
    """Return the limits within which the literature is searched; None if it is not."""
    # *others* are options that do not go with it, and whether they were given.
    if literature.sources is None:
        return None
    for option, is_given in others.items():
        if is_given:
            raise SettingsError(f"--{option} goes with a SOURCE or --library, not with --source")
    from deepera_graph.papers.results import Scope

    return Scope.of(conditions)


@contextmanager
def open_literature(chosen: places.LiteratureOptions, cache: str | None) -> Iterator[Literature]:
    """Open the services of a command, with the cache that it names."""
    from deepera_graph.papers.sources import open_sources
    from deepera_graph.stores.judgements import open_cache

    kept = default_cache() if cache is None else open_cache(cache)
    held: AbstractContextManager[Any] = nullcontext() if kept is None else closing(kept)
    with held:
        yield open_sources(
            chosen.sources or "",
            seconds=chosen.source_seconds,
            contact=chosen.contact,
            cache=kept,
        )


def search_literature(
    chosen: places.LiteratureOptions,
    question: str,
    *,
    k: int,
    scope: Scope,
    cache: str | None,
    quiet: bool,
) -> LiteratureAnswer:
    """Ask the services, and say on stderr what is missing."""
    with (
        open_literature(chosen, cache) as literature,
        progress_bar(f"asking {literature.name.replace('+', ', ')}", hidden=quiet),
    ):
        found = literature.search(question, k, scope)
    if found.has_failed:
        raise BackendError(f"the literature could not be searched: {found.cause}")
    for problem in found.problems:
        say(problem)
    return found


def check_sources(names: str, seconds: float) -> Iterator[Finding]:
    """Ask each service for one paper, and say how it went and what would help."""
    from deepera_graph.doctor.checks import Finding
    from deepera_graph.papers.sources import open_sources
    from deepera_graph.papers.sources.http import CONTACT_VARIABLE, read_contact

    literature = open_sources(names, seconds=seconds)
    services = {one.name: one for one in literature.sources}
    for answer in literature.search(_TRIED, k=1).answers:
        variable = getattr(services[answer.source], "key_variable", "")
        lacks = bool(variable and not os.environ.get(variable))
        found = f"{str(answer).partition(': ')[2]}, in {answer.seconds:.1f} s"
        advice = f"set {variable}, a key is free; without one there are few requests"
        well = {"ok": "ok", "failed": "fail"}.get(answer.status, "warn")
        yield Finding(
            f"source {answer.source}",
            well,  # type: ignore[arg-type]  # one of its values
            f"{found}{', without a key' * lacks}",
            advice * (lacks and answer.status != "ok"),
        )
    if not read_contact():
        yield Finding(
            "contact of sources",
            "skipped",
            "none: services cannot write to you before they shut you out",
            f"set {CONTACT_VARIABLE} to your address of mail",
        )
