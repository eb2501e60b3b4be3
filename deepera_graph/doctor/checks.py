"""Checks of an installation; one that breaks is itself a finding, and the others go on.

Every check imports what it looks at when it runs, as that may be missing or broken.
"""

import os
import platform
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from functools import cache
from importlib import import_module
from importlib.metadata import PackageNotFoundError, metadata, requires, version
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

from deepera_graph import __version__
from deepera_graph.errors import BackendError, DeepEraError, RoleError, SettingsError, StoreError
from deepera_graph.packages import OURS, install_command
from deepera_graph.text.plain import count, hide_secrets, read_lists

if TYPE_CHECKING:
    from deepera_graph.schema import Backend, PassageTask, Window

Status = Literal["ok", "warn", "fail", "skipped"]
KEY_VARIABLE = "OPENAI_API_KEY"
STORE_KEY_VARIABLE = "QDRANT_API_KEY"
_LONGEST = 240
_SHORTEST_SECRET = 4  # replacing anything shorter would eat ordinary words


@dataclass(frozen=True, slots=True)
class Finding:
    """What one check found; both texts are one line.

    A *status* of ``warn`` works but not as well as it could; what is ``skipped`` was not looked at,
    or is not installed and not needed.
    """

    name: str  # what was looked at, e.g. ``"judgement cache"``
    status: Status
    found: str
    advice: str = ""  # what to do; empty if nothing is to be done

    def without(self, secrets: Sequence[str]) -> "Finding":
        """Return the same finding, with *secrets* and what a terminal would obey taken out."""
        return replace(self, found=_clean(self.found, secrets), advice=_clean(self.advice, secrets))

    def to_dict(self) -> dict[str, str]:
        """Return plain data."""
        return asdict(self)


def _clean(text: str, secrets: Sequence[str]) -> str:
    text = hide_secrets(text, secrets, _SHORTEST_SECRET)
    text = " ".join("".join(one if one.isprintable() else " " for one in text).split())
    return text if len(text) <= _LONGEST else text[:_LONGEST] + " …"


_SAY = (OURS, "langchain-openai", "langchain-qdrant")  # whose metadata names the ranges
_FOR_DEVELOPERS = frozenset({"lint", "test"})
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
PACKAGES = frozenset({"python", OURS, *_NEEDED})  # findings on versions
EXTRA = "extra "  # begins the name of a finding on one


def check_versions() -> Iterator[Finding]:
    """Yield one finding a package: its version, whether it is in range and can be imported."""
    from deepera_graph.packages import send_nothing

    send_nothing()
    yield _check_python()
    yield Finding(OURS, "ok", __version__)
    for name, module in _NEEDED.items():
        yield _check_package(name, module)


def allowed_versions(name: str) -> SpecifierSet:
    """Return the versions of a package that this one, and those right below it, can work with."""
    ranges = SpecifierSet()
    for one in _SAY:
        for requirement in _select(_read_requirements(one)):
            if canonicalize_name(requirement.name) == name and not requirement.extras:
                ranges &= requirement.specifier
    return ranges


def installed_version(name: str) -> str | None:
    """Return the version of an installed package, or None."""
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _read_requirements(name: str) -> list[Requirement]:
    """Return what an installed package requires, here or elsewhere, alone or with an extra."""
    try:
        return [_parse_requirement(line) for line in requires(name) or []]
    except PackageNotFoundError:
        return []


_parse_requirement = cache(Requirement)  # every extra looks at all lines


def _select(required: Iterable[Requirement], extra: str = "") -> list[Requirement]:
    """Return what of it applies here; with *extra*, only what that adds."""
    return [one for one in required if _applies(one, extra)]


def _applies(one: Requirement, extra: str) -> bool:
    if one.marker is None:
        return not extra
    with_it = one.marker.evaluate({"extra": extra})
    return with_it and (not extra or not one.marker.evaluate({"extra": ""}))


def _check_python() -> Finding:
    here = platform.python_version()
    try:
        wanted = SpecifierSet(metadata(OURS)["Requires-Python"] or "")
    except PackageNotFoundError:
        return Finding("python", "warn", f"{here}; {OURS} is not installed, only its source is")
    if wanted.contains(here, prereleases=True):
        return Finding("python", "ok", here)
    return Finding("python", "fail", here, f"use a Python {wanted}")


def _check_package(name: str, module: str) -> Finding:
    here, wanted = installed_version(name), allowed_versions(name)
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


def check_extras() -> Iterator[Finding]:
    """Yield one finding an extra; one that is not installed is no failure."""
    try:
        extras = metadata(OURS).get_all("Provides-Extra") or []
    except PackageNotFoundError:
        return
    required, find_version = _read_requirements(OURS), cache(installed_version)
    for extra in sorted(set(extras) - _FOR_DEVELOPERS):
        added = _select(required, extra)
        yield _check_extra(extra, {one: find_version(one.name) for one in added})


def _check_extra(extra: str, here: Mapping[Requirement, str | None]) -> Finding:
    """Say of an extra which of its requirements are *here*, in a version that fits."""
    missing = [one.name for one, found in here.items() if found is None]
    old = [
        f"{one.name} {found}, not {one.specifier}"
        for one, found in here.items()
        if found is not None and not one.specifier.contains(found, prereleases=True)
    ]
    name, install = f"{EXTRA}{extra}", install_command(extra)
    if old:
        return Finding(name, "warn", ", ".join(old), install)
    if not missing:
        return Finding(name, "ok", "installed")
    return Finding(name, "skipped", f"not installed: {', '.join(missing)}", f"if needed, {install}")


_LOCAL = "local judgement"
_LOCAL_ADVICE = f"{install_command(flag='--force-reinstall')}; until then, --backend rules judges"
_JUDGE_ADVICE = "see the findings above; others would fail, too"
_LOW = 0.5
_TEXTS = read_lists(__file__, "sample.toml")
SAMPLE: "PassageTask" = _TEXTS["sample"]
LOOK_ALIKES: "tuple[Window, ...]" = tuple(_TEXTS["look_alikes"])


def check_local() -> Iterator[Finding]:
    """Yield what the local backend makes of the sample; loading checks the weights."""
    from deepera_graph.judges import load_backend

    try:
        backend = load_backend("local")
    except SettingsError as error:
        yield Finding(_LOCAL, "fail", str(error), _LOCAL_ADVICE)
        return
    finding = judge_sample(_LOCAL, backend, beside=LOOK_ALIKES)
    if finding.status == "fail":
        yield replace(finding, advice=_LOCAL_ADVICE)
        return
    which = f"{backend.about['judge']} {backend.about['judge_version']}"
    yield replace(finding, found=f"{which}: {finding.found}")


def judge_sample(name: str, backend: "Backend", *, beside: "Sequence[Window]" = ()) -> Finding:
    """Have a backend judge the sample, *beside* others; a low score of it is a warning."""
    from deepera_graph.judges.base import as_judge, judge_all
    from deepera_graph.schema import Unjudged

    started = time.monotonic()
    sample: Window = {
        "text": SAMPLE["text"],
        "title": SAMPLE["title"],
        "section": SAMPLE["section"],
    }
    judge = as_judge(backend.judge)
    try:
        judgement, *_ = judge_all(judge, SAMPLE["question"], SAMPLE["intent"], [sample, *beside])
    except (RoleError, BackendError) as error:
        return Finding(name, "fail", str(error), _JUDGE_ADVICE)
    if isinstance(judgement, Unjudged):
        return Finding(name, "fail", judgement.cause, _JUDGE_ADVICE)
    found = (
        f"a passage that is plain evidence scores {judgement.score:g}, "
        f"in {time.monotonic() - started:.1f} s"
    )
    if judgement.score < min(_LOW, judge.operating_point):
        advice = "the answer has the right form but is wrong: the model may be too small to judge"
        return Finding(name, "warn", found, advice)
    if not judgement.quote:
        found += ", without naming a sentence as its evidence"
        advice = "such a passage is kept by its score alone unless require_evidence is True"
        return Finding(name, "warn", found, advice)
    return Finding(name, "ok", found)


_CACHE = "judgement cache"
_PROBE = "doctor"
_OTHER_CACHE = "name another folder (--cache DIR), turn it off (--cache off), or free this one"


def check_cache(where: str | Path | None) -> Iterator[Finding]:
    """Yield whether the cache can be written; nothing is left behind where there was none."""
    from deepera_graph.stores.judgements import FILE_NAME, OFF, default_cache_folder

    if where == OFF:
        yield Finding(_CACHE, "skipped", "off")
        return
    if where == "":
        yield Finding(_CACHE, "fail", "its folder has no name", _OTHER_CACHE)
        return
    try:
        folder = default_cache_folder() if where is None else Path(where).expanduser()
        if (folder / FILE_NAME).exists():
            yield _check_existing_cache(folder / FILE_NAME)
        elif why := _why_unwritable(folder):
            found = f"none yet, and {folder} cannot be made: {why}"
            yield Finding(_CACHE, "fail", found, _OTHER_CACHE)
        else:
            yield Finding(_CACHE, "ok", f"none yet; it will be made in {folder}")
    except (DeepEraError, OSError, RuntimeError) as error:
        yield Finding(_CACHE, "fail", str(error), _OTHER_CACHE)


def _check_existing_cache(file: Path) -> Finding:
    from deepera_graph.stores.judgements import JUDGEMENTS, JudgementCache

    with closing(JudgementCache(file).open()) as cache:
        cache.forget(_PROBE)
        written = cache.put(_PROBE, _PROBE, {})
        cache.forget(_PROBE)
        stats = cache.stats()
    found = (
        f"{stats.n_entries} answers, {stats.n_bytes / 1_000_000:.1f} MB, format {JUDGEMENTS.form}, "
        f"in {file.parent}"
    )
    if not written:
        return Finding(_CACHE, "fail", f"{found}; it cannot be written to", _OTHER_CACHE)
    return Finding(_CACHE, "ok", found)


def _why_unwritable(folder: Path) -> str:
    """Say why *folder* could not be made and written to; empty if it could."""
    # A file is made in the nearest folder that exists and is removed again: permission bits alone
    # say nothing of a read-only or full disk.
    try:
        nearest = folder
        while not nearest.exists() and nearest != nearest.parent:
            nearest = nearest.parent
        with tempfile.TemporaryFile(dir=nearest):
            return ""
    except OSError as error:
        return error.strerror or str(error)


def check_sqlite() -> Iterator[Finding]:
    """Yield one finding on the SQLite of this Python, whose FTS5 indexes the words of papers."""
    import sqlite3

    name, version = "SQLite", sqlite3.sqlite_version
    try:
        with closing(sqlite3.connect(":memory:")) as db:
            db.execute("CREATE VIRTUAL TABLE words USING fts5(text)")
    except sqlite3.OperationalError as error:
        found = f"{version} without FTS5, which a base of papers needs ({error})"
        yield Finding(name, "warn", found, "if needed, take a Python whose SQLite has FTS5")
    else:
        yield Finding(name, "ok", f"{version} with FTS5")


_STORE = "passage store"


def check_store(path: str | Path | None, url: str | None) -> Iterator[Finding]:
    """Yield one finding on a folder, a server, or with neither on a store in memory."""
    from deepera_graph.retrieval.collections.connection import IN_MEMORY

    if url is not None:
        state = "is set" if os.environ.get(STORE_KEY_VARIABLE) else "is not set"
        advice = f"see whether Qdrant runs and --qdrant-url is its address; {STORE_KEY_VARIABLE} "
        yield _open_store(None, url, advice + state)
        return
    folder = None if path is None or str(path) == IN_MEMORY else Path(path).expanduser()
    if folder is None or (folder / "meta.json").is_file():
        yield _open_store(folder, None, "index the passages again into another folder (--path)")
        return
    broken = _open_store(None, None, "pip install --force-reinstall qdrant-client")
    if broken.status == "fail":
        yield broken
    elif why := _why_unwritable(folder):
        found = f"none yet, and the folder '{folder}' cannot be made: {why}"
        yield Finding(_STORE, "fail", found, "name a folder that can be written to (--path)")
    else:
        yield Finding(_STORE, "ok", f"none yet; `deepera index` will make it in {folder}")


def _open_store(path: Path | None, url: str | None, advice: str) -> Finding:
    from deepera_graph.retrieval.collections import connection

    api_key = None if url is None else os.environ.get(STORE_KEY_VARIABLE)
    try:
        place = connection.describe_place(path, url)
        client = connection.connect(path, url, api_key=api_key, must_exist=path is not None)
        with closing(client), connection.wrap_errors(place):
            names = sorted(one.name for one in client.get_collections().collections)
    except StoreError as error:
        locked = "another process" in str(error)
        return Finding(_STORE, "fail", str(error), "close that process" if locked else advice)
    except DeepEraError as error:
        advice = "correct --qdrant-url, e.g. http://localhost:6333"
        return Finding(_STORE, "fail", str(error), advice)
    listed = f": {', '.join(names)}" if names else ""
    found = f"{count(len(names), 'library')} in {place}{listed}"
    if path is not None and (why := _why_unwritable(path)):
        asked = "it can be searched; deepera index needs a folder that can be written to (--path)"
        return Finding(_STORE, "warn", f"{found}; it cannot be written to: {why}", asked)
    return Finding(_STORE, "ok", found)
