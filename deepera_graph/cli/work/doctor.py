"""What `deepera doctor` does."""

import re
from collections.abc import Sequence

import typer
from rich.table import Table
from rich.text import Text

from deepera_graph.cli.exits import OK, SOME_FAILED, UNREACHABLE
from deepera_graph.cli.work.data_folder import data_folder
from deepera_graph.cli.work.terminal import output_console, write_json
from deepera_graph.doctor.examine import examine
from deepera_graph.doctor.finding import Finding
from deepera_graph.errors import SettingsError

_LOOK = {"ok": "green", "warn": "yellow", "fail": "bold red", "skipped": "dim"}
_REMOTE = frozenset(
    {"key", "address", "model", "model answers", "structured answers"}
    | {"judgement of the model", "passage store", "server"}
)


def run(
    *,
    model: str | None,
    base_url: str | None,
    api_key_env: str | None,
    timeout: float,
    cache: str | None,
    path: str | None,
    qdrant_url: str | None,
    as_json: bool,
) -> None:
    """Check, show what was found, and leave with the code for it.

    Raises:
        SettingsError: The options do not go together.
    """
    _check_options(model, base_url, api_key_env, path, qdrant_url)
    findings = examine(
        model=model,
        base_url=base_url,
        api_key_env=api_key_env,
        store=None if qdrant_url is not None else path or data_folder(),
        qdrant_url=qdrant_url,
        cache=cache,
        timeout=timeout,
    )
    code = _code(findings)
    if as_json:
        write_json({"code": code, "findings": [finding.to_dict() for finding in findings]})
    else:
        _show(findings)
    raise typer.Exit(code)


def _check_options(
    model: str | None,
    base_url: str | None,
    api_key_env: str | None,
    path: str | None,
    qdrant_url: str | None,
) -> None:
    if base_url is not None and not re.match(r"https?://[^/]", base_url):
        raise SettingsError(f"--base-url must start with http:// or https://, got {base_url!r}")
    if api_key_env is not None and model is None and base_url is None:
        raise SettingsError("--api-key-env needs --model, --base-url or both")
    if model is not None and base_url is None and ":" not in model:
        raise SettingsError(f"--model must be 'provider:model' without --base-url, got {model!r}")
    if path is not None and qdrant_url is not None:
        raise SettingsError("a store is in a folder or on a server: give --path or --qdrant-url")


def _code(findings: Sequence[Finding]) -> int:
    failed = {finding.name for finding in findings if finding.status == "fail"}
    if failed & _REMOTE:
        return UNREACHABLE
    return SOME_FAILED if failed else OK


def _show(findings: Sequence[Finding]) -> None:
    table = Table(box=None, pad_edge=False)
    table.add_column("")
    table.add_column("check", no_wrap=True)
    table.add_column("found", ratio=3)
    table.add_column("what to do", ratio=2)
    for finding in findings:
        table.add_row(
            Text(finding.status, style=_LOOK[finding.status]),
            Text(finding.name),
            Text(finding.found, overflow="fold"),
            Text(finding.advice, overflow="fold"),
        )
    output_console().print(table)
