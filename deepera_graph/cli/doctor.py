"""`deepera doctor`: check an installation, a server, the store and the cache."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import typer
from rich.text import Text

from deepera_graph.cli.opening.sources import check_literature, check_sources
from deepera_graph.cli.opening.stores import (
    check_papers,
    data_folder,
    describe_unfinished,
    mark_of,
)
from deepera_graph.cli.shared import options, places
from deepera_graph.cli.shared.console import (
    OK,
    SOME_FAILED,
    UNREACHABLE,
    output_console,
    write_json,
)
from deepera_graph.cli.shared.declaring import A_KEY, opt
from deepera_graph.cli.shared.values import check_url
from deepera_graph.errors import MissingStoreError, SettingsError
from deepera_graph.packages import install_command
from deepera_graph.text.plain import count

if TYPE_CHECKING:
    from rich.console import Console

    from deepera_graph.doctor.checks import Finding

_STYLES = {"ok": "green", "warn": "yellow", "fail": "bold red", "skipped": "dim"}
_SOURCE, _SOURCE_SECONDS = "source ", 10.0  # findings of services, and their time together
_REMOTE = frozenset(
    {"key", "address", "model", "model answers", "structured answers"}
    | {"judgement of the model", "passage store", "server"}
    | {"server of papers", "server of vectors"}
)


@dataclass(frozen=True, kw_only=True)
class DoctorOptions(options.ServerOptions):
    """What is checked."""

    timeout: float = opt(
        "Longest wait for one answer of the model.", metavar="S", default=30.0, least=0.1
    )
    cache: str | None = opt(
        "Folder of the judgement cache to check; [b]off[/b] leaves it out.",
        config=A_KEY,
        metavar="DIR|off",
        shown="$XDG_CACHE_HOME/deepera or ~/.cache/deepera",
    )
    path: str | None = opt(
        "Folder of local collections.",
        config=A_KEY,
        metavar="FOLDER",
        shown="$XDG_DATA_HOME/deepera or ~/.local/share/deepera",
    )
    qdrant_url: str | None = opt(
        "A Qdrant server, instead of a folder.", config=A_KEY, metavar="URL"
    )
    sources: str | None = opt(
        "Also ask services of literature for one paper each, as `deepera ask --source` names them, "
        "or [b]all[/b]; nothing is sent to them otherwise.",
        "--source",
        metavar="NAME,NAME",
    )
    library: str | None = opt(
        "A library whose papers are checked, a file of papers, or the address of `deepera papers "
        "serve`.",
        "--library",
        "-l",
        metavar="NAME|FILE|URL",
        shown="none",
    )
    as_json: bool = opt("Write JSON, for programs.", "--json", default=False)


def doctor(*, chosen: DoctorOptions) -> None:
    """Check the installation, a model's server, the store and the cache; say what to do."""
    from deepera_graph.doctor import examine
    from deepera_graph.doctor.checks import STORE_KEY_VARIABLE

    _check_options(chosen)
    check_literature(places.LiteratureOptions(sources=chosen.sources))
    findings = examine(
        model=chosen.model,
        base_url=chosen.base_url,
        api_key_env=chosen.api_key_env,
        store=None if chosen.qdrant_url is not None else chosen.path or data_folder(),
        qdrant_url=chosen.qdrant_url,
        cache=chosen.cache,
        timeout=chosen.timeout,
    )
    if chosen.sources is not None:
        findings += check_sources(chosen.sources, min(chosen.timeout, _SOURCE_SECONDS))
    if chosen.library is not None:
        place = places.PlaceOptions(path=chosen.path, qdrant_url=chosen.qdrant_url)
        secret = os.environ.get(STORE_KEY_VARIABLE, "").strip()
        findings += [one.without([secret]) for one in _check_library(place, chosen.library)]
    failed = {finding.name for finding in findings if finding.status == "fail"}
    remote = {name for name in failed if name in _REMOTE or name.startswith(_SOURCE)}
    code = UNREACHABLE if remote else SOME_FAILED if failed else OK
    if chosen.as_json:
        write_json({"code": code, "findings": [finding.to_dict() for finding in findings]})
    else:
        _show(findings)
    raise typer.Exit(code)


def _check_library(place: places.PlaceOptions, library: str) -> Iterator[Finding]:
    """Yield findings on the papers of a library, and whether it was indexed to its end."""
    from deepera_graph.doctor.checks import Finding
    from deepera_graph.papers.library.checkup import BASE, check_base

    try:
        file = check_papers(place, library)
    except MissingStoreError as error:
        yield Finding(BASE, "fail", str(error))
        return
    if mark_of(place, library).is_file():
        yield Finding("library", "warn", describe_unfinished(library))
    yield from check_base(file)


def _check_options(chosen: DoctorOptions) -> None:
    model, base_url = chosen.model, chosen.base_url
    if base_url is not None:
        check_url(base_url)
    if chosen.api_key_env is not None and model is None and base_url is None:
        raise SettingsError("--api-key-env needs --model, --base-url or both")
    if model is not None and base_url is None and ":" not in model:
        raise SettingsError(f"--model must be 'provider:model' without --base-url, got {model!r}")
    if chosen.path is not None and chosen.qdrant_url is not None:
        raise SettingsError("a store is in a folder or on a server: give --path or --qdrant-url")


def _show(findings: Sequence[Finding]) -> None:
    """Show what is wrong first, then what was tried, then versions and extras in a line each."""
    # Lines with commands are not broken, whatever the width, so that they can be copied.
    from deepera_graph.doctor.checks import EXTRA, PACKAGES, Finding

    console = output_console()
    failed, warned = (
        [one for one in findings if one.status == status] for status in ("fail", "warn")
    )
    words = [count(len(failed), "problem")] * bool(failed)
    words += [count(len(warned), "warning")] * bool(warned)
    console.print(Text(", ".join(words) or "no problems", style="bold"))
    for finding in (*failed, *warned):
        _show_finding(console, finding)
    rest = [one for one in findings if one not in failed and one not in warned]
    extras = [one for one in rest if one.name.startswith(EXTRA)]
    versions = [one for one in rest if one.name in PACKAGES]
    for finding in rest:
        if finding not in (*extras, *versions):
            _show_finding(console, finding)
    listed = ", ".join(f"{one.name} {one.found}" for one in versions)
    _show_finding(console, Finding("packages", "ok", listed))
    missing = [one.name.removeprefix(EXTRA) for one in extras if one.status == "skipped"]
    here = [one.name.removeprefix(EXTRA) for one in extras if one.status == "ok"]
    installed = Finding("extras", "ok", f"installed: {', '.join(here) or 'none'}")
    _show_finding(console, installed)
    if missing:
        advice = f"if needed, {install_command('NAME')}"
        found = f"not installed: {', '.join(missing)}"
        _show_finding(console, Finding("extras", "skipped", found, advice))


def _show_finding(console: Console, finding: Finding) -> None:
    head = Text(f"{finding.status:<8}", style=_STYLES[finding.status])
    console.print(Text.assemble(head, (finding.name, "bold"), f": {finding.found}"), soft_wrap=True)
    if finding.advice:
        console.print(f"{'':<8}{finding.advice}", soft_wrap=True, markup=False)
