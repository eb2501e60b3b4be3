"""From the options of a command to a backend."""

import os
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any, TypeVar

from deepera_graph.errors import DeepEraError, SettingsError
from deepera_graph.judges import load_backend
from deepera_graph.judges.cascade import cascade_backend
from deepera_graph.judges.llm.backend import Mode, llm_backend
from deepera_graph.schema import Backend

T = TypeVar("T")
_KNOWN = ("local", "rules", "llm", "encoder:MODEL")
_LOCAL = ("local", "rules")
_PLAIN_VARIABLE = re.compile(r"[A-Z][A-Z0-9_]{0,39}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Judge:
    """The options that say who judges, as they were given."""

    name: str | None
    model: str | None
    base_url: str | None
    api_key_env: str | None
    limits: Mapping[str, float] = field(default_factory=dict)
    domain: str | None = None
    mode: Mode | None = None
    group_size: int | None = None
    cascade: int | None = None

    @property
    def calls(self) -> dict[str, Any]:
        """What a call does, as far as that was said: options of `llm_backend`."""
        given = {"mode": self.mode, "group_size": self.group_size}
        return {name: value for name, value in given.items() if value is not None}

    @property
    def kind(self) -> str:
        """``local``, ``llm``, ``encoder`` or ``factory``.

        Raises:
            SettingsError: The options do not go together, or no backend has this name.
        """
        given = {
            "--model": self.model,
            "--base-url": self.base_url,
            "--api-key-env": self.api_key_env,
            "--domain": self.domain,
            "--mode": self.mode,
            "--group-size": self.group_size,
            "--cascade": self.cascade,
            **{f"--{name.replace('_', '-')}": value for name, value in self.limits.items()},
        }
        for_llm = [option for option, value in given.items() if value is not None]
        name = self.name or ("llm" if for_llm else "local")
        if name == "llm":
            if not self.model:
                raise SettingsError("--backend llm needs --model, e.g. --model openai:gpt-5-mini")
            return name
        if for_llm:
            raise SettingsError(f"{for_llm[0]} goes with --backend llm, not with {name!r}")
        return "local" if name in _LOCAL else _named_kind(name)

    def build(self) -> Backend:
        """Build the backend.

        Raises:
            SettingsError: It cannot be built.
        """
        kind = self.kind
        if kind == "local":
            return load_backend(self.name or "local")
        if kind == "llm":
            return cascaded(_llm(self), self.cascade)
        path = str(self.name)
        if kind == "encoder":
            return load_backend(path)
        return call_foreign(
            f"--backend {path}", lambda: load_backend({"kind": "factory", "path": path})
        )


def cascaded(backend: Backend, keep: int | None) -> Backend:
    """Put the local judge in front of a backend, which reads the best *keep* then; None: do not.

    Raises:
        SettingsError: *keep* is not at least 1.
    """
    return backend if keep is None else cascade_backend(load_backend("local"), backend, keep)


def call_foreign(what: str, build: Callable[[], T]) -> T:
    """Call the user's code with the current directory on the path; its errors get one line.

    Raises:
        SettingsError: It raised.
    """
    search_here()
    try:
        return build()
    except DeepEraError:
        raise
    except Exception as error:  # the boundary to foreign code
        raise SettingsError(f"{what} cannot be built: {type(error).__name__}: {error}") from error


def search_here() -> None:
    """Put the current directory on the path, where modules of the user's are looked for too."""
    here = str(Path.cwd())
    if here not in sys.path and "" not in sys.path:
        sys.path.append(here)


def check_base_url(base_url: str | None) -> None:
    """Raise `SettingsError` unless this is an address, or none was given."""
    if base_url is not None and not re.match(r"https?://[^/]", base_url):
        raise SettingsError(f"--base-url must start with http:// or https://, got {base_url!r}")


def check_key_variable(variable: str | None) -> None:
    """Raise `SettingsError` unless this variable holds a key, or none was named."""
    if variable is not None and not os.environ.get(variable):
        raise SettingsError(_no_key(variable))


def _named_kind(name: str) -> str:
    module, colon, factory = name.partition(":")
    if module == "encoder" and factory:
        return "encoder"
    if colon and module and factory:
        return "factory"
    close = get_close_matches(name, _KNOWN, n=1)
    hint = f"; did you mean {close[0]!r}?" if close else ""
    raise SettingsError(
        "--backend must be 'local', 'rules', 'llm', 'encoder:MODEL' or "
        f"'package.module:factory', got {name!r}{hint}"
    )


def _llm(judge: Judge) -> Backend:
    name = str(judge.model)
    check_key_variable(judge.api_key_env)
    check_base_url(judge.base_url)
    if judge.base_url is not None:
        name = "openai:" + name.removeprefix("openai:")
    elif ":" not in name:
        raise SettingsError(
            f"--model must be 'provider:model', e.g. openai:{name}, got {name!r}; "
            "with --base-url the bare name is enough"
        )
    return call_foreign(
        f"--model {name}",
        lambda: llm_backend(
            name,
            base_url=judge.base_url,
            api_key_env=judge.api_key_env,
            limits=judge.limits,
            domain=judge.domain,
            **judge.calls,
        ),
    )


def _no_key(variable: str) -> str:
    """Name the variable, unless the key itself was given in its place."""
    if _PLAIN_VARIABLE.fullmatch(variable):
        return f"no API key: the environment variable {variable} (--api-key-env) is not set"
    return (
        "no API key: --api-key-env takes the name of an environment variable that is set, "
        "not the key itself"
    )
