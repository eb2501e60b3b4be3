"""Other packages: those an extra brings, and what keeps onnxruntime quiet and in its threads."""

import json
import os
import re
from collections.abc import Callable
from importlib import import_module
from importlib.metadata import PackageNotFoundError, distribution
from importlib.util import find_spec
from typing import Any, TypeVar
from urllib.parse import urlsplit
from urllib.request import url2pathname

from deepera_graph.errors import DeepEraError, SettingsError

T = TypeVar("T")
OURS = "deepera-graph"
_LONGEST = 240
_ADDRESS = re.compile(r" (?:object )?at 0x[0-9a-f]+")  # differs from run to run


def import_extra(
    module: str,
    *,
    extra: str = "",
    install: str = "",
    what: str = "",
    error: type[DeepEraError] = SettingsError,
) -> Any:
    """Import a module that an *extra* brings, or what pip is to *install*; else raise *error*."""
    check_extra(module, extra=extra, install=install, what=what, error=error)
    return call_foreign(f"{module} cannot be imported", lambda: import_module(module), error=error)


def check_extra(
    module: str,
    *,
    extra: str = "",
    install: str = "",
    what: str = "",
    error: type[DeepEraError] = SettingsError,
) -> None:
    """Do what `import_extra` does without importing it: some packages take many seconds."""
    package = module.partition(".")[0]
    if find_spec(package) is None:
        needs = f"{what} needs {package}" if what else f"{package} is not installed"
        how = f"pip install '{install}'" if install else install_command(extra)
        raise error(f"{needs}: {how}")


def install_command(extra: str = "", *, flag: str = "") -> str:
    """Return the command that installs this package, or an *extra* of it, from where it came."""
    # pip writes down where a package came from unless it was an index. A checkout is not named by
    # its path, so that what a benchmark writes is the same on every machine.
    # Source: https://packaging.python.org/en/latest/specifications/direct-url/
    named, before = f"[{extra}]" if extra else "", f"pip install {flag} ".replace("  ", " ")
    try:
        origin = json.loads(distribution(OURS).read_text("direct_url.json") or "{}")
    except (PackageNotFoundError, ValueError):
        origin = {"dir_info": {}}  # its source alone is on the path
    if "dir_info" in origin:
        return f"{before}'.{named}' in the source folder"
    if "vcs_info" in origin:
        return f"{before}'{OURS}{named} @ {origin['vcs_info']['vcs']}+{origin['url']}'"
    if origin.get("url", "").startswith("file:"):
        return f"{before}'{url2pathname(urlsplit(origin['url']).path)}{named}'"
    return f"{before}'{OURS}{named}'"


def call_foreign(
    what: str, work: Callable[[], T], *, error: type[DeepEraError] = SettingsError
) -> T:
    """Let code of another package work, and report its errors in one line, after *what*."""
    try:
        return work()
    except DeepEraError:
        raise
    except Exception as cause:  # the boundary to foreign code
        raise error(f"{what}: {describe_error(cause)}") from cause


def describe_error(error: BaseException) -> str:
    """Return the kind of an error and what it says in one line, without memory addresses."""
    text = _ADDRESS.sub("", " ".join(str(error).split()))
    text = text if len(text) <= _LONGEST else text[:_LONGEST] + " …"
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def threads_here(threads: int | None = None) -> int:
    """Return *threads* if it is given, else what OMP_NUM_THREADS says; 0 is one a core."""
    # The variable is the one that numerical libraries agree on, and Ray sets it to 1 in its
    # workers, so that workers side by side do not fight for cores.
    said = os.environ.get("OMP_NUM_THREADS", "")
    return threads or (int(said) if said.isdecimal() else 0)


def send_nothing() -> None:
    """Have onnxruntime report nothing to its makers; called before it is imported."""
    # From version 1.29 on it does so on Linux and macOS, too, unless this variable is set: it
    # leaves an identifier in the user's cache folder, and sends names and hashes of models. Whoever
    # has set the variable is obeyed.
    # Source: https://github.com/microsoft/onnxruntime/pull/27379
    os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
