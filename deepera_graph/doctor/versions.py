"""Versions: Python, this package, and the packages it stands on."""

import platform
from collections.abc import Iterator
from importlib import import_module
from importlib.metadata import PackageNotFoundError, metadata, requires, version

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

from deepera_graph import __version__
from deepera_graph.doctor.finding import Finding
from deepera_graph.judges.onnx import send_nothing

OURS = "deepera-graph"
_SAY = (OURS, "langchain-openai", "langchain-qdrant")  # whose metadata names the ranges
_NEEDED = {
    "langgraph": "langgraph.graph",
    "langchain-core": "langchain_core.runnables",
    "langchain-openai": "langchain_openai",
    "langchain-qdrant": "langchain_qdrant",
    "numpy": "numpy",
    "onnxruntime": "onnxruntime",
    "openai": "openai",
    "pydantic": "pydantic",
    "qdrant-client": "qdrant_client",
    "tokenizers": "tokenizers",
}


def look() -> Iterator[Finding]:
    """Yield one finding a package: its version, whether it is in range and can be imported."""
    send_nothing()
    yield _python()
    yield Finding(OURS, "ok", __version__)
    for name, module in _NEEDED.items():
        yield _package(name, module)


def allowed(name: str) -> SpecifierSet:
    """Return the versions of a package that this one, and those right below it, can work with."""
    ranges = SpecifierSet()
    for one in _SAY:
        for requirement in needs(one):
            if canonicalize_name(requirement.name) == name and not requirement.extras:
                ranges &= requirement.specifier
    return ranges


def needs(name: str, extra: str = "") -> list[Requirement]:
    """Return what an installed package requires here; none if it is not installed.

    With *extra*, only what that extra adds.
    """
    try:
        lines = requires(name) or []
    except PackageNotFoundError:
        return []
    return [one for one in map(Requirement, lines) if _counts(one, extra)]


def installed(name: str) -> str | None:
    """Return the version of an installed package, or None."""
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _counts(requirement: Requirement, extra: str) -> bool:
    if requirement.marker is None:
        return not extra
    with_it = requirement.marker.evaluate({"extra": extra})
    return with_it and (not extra or not requirement.marker.evaluate({"extra": ""}))


def _python() -> Finding:
    here = platform.python_version()
    try:
        wanted = SpecifierSet(metadata(OURS)["Requires-Python"] or "")
    except PackageNotFoundError:
        return Finding("python", "warn", f"{here}; {OURS} is not installed, only its source is")
    if wanted.contains(here, prereleases=True):
        return Finding("python", "ok", here)
    return Finding("python", "fail", here, f"use a Python {wanted}")


def _package(name: str, module: str) -> Finding:
    here, wanted = installed(name), allowed(name)
    install = f"pip install '{name}{wanted}'"
    if here is None:
        return Finding(name, "fail", "not installed", install)
    if not wanted.contains(here, prereleases=True):
        return Finding(name, "fail", f"{here}, but {wanted} is needed", install)
    try:
        import_module(module)
    except Exception as error:  # noqa: BLE001 - a broken package raises anything
        found = f"{here}, but importing it fails: {type(error).__name__}: {error}"
        return Finding(name, "fail", found, f"pip install --force-reinstall '{name}{wanted}'")
    return Finding(name, "ok", here)
