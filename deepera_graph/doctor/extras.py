"""Extras: what can be installed on top, and whether it is."""

from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, metadata

from packaging.requirements import Requirement

from deepera_graph.doctor.finding import Finding
from deepera_graph.doctor.versions import OURS, installed, needs

_FOR_DEVELOPERS = frozenset({"lint", "test"})


def look() -> Iterator[Finding]:
    """Yield one finding an extra; one that is not installed is no failure."""
    try:
        extras = metadata(OURS).get_all("Provides-Extra") or []
    except PackageNotFoundError:
        return
    for extra in sorted(set(extras) - _FOR_DEVELOPERS):
        yield _extra(extra)


def _extra(extra: str) -> Finding:
    wanted = needs(OURS, extra)
    missing = [one.name for one in wanted if installed(one.name) is None]
    old = [one for one in wanted if one.name not in missing and not _in_range(one)]
    name, install = f"extra {extra}", f"pip install 'deepera-graph[{extra}]'"
    if old:
        found = ", ".join(f"{one.name} {installed(one.name)}, not {one.specifier}" for one in old)
        return Finding(name, "warn", found, install)
    if not missing:
        return Finding(name, "ok", "installed")
    return Finding(name, "skipped", f"not installed: {', '.join(missing)}", f"if needed, {install}")


def _in_range(requirement: Requirement) -> bool:
    return requirement.specifier.contains(installed(requirement.name) or "", prereleases=True)
