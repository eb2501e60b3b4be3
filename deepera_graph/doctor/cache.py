"""The judgement cache: whether it can be written, its format, its size."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from deepera_graph.cache.connection import FORMAT
from deepera_graph.cache.store import FILE_NAME, OFF, JudgementCache, default_cache_folder
from deepera_graph.doctor.finding import Finding
from deepera_graph.doctor.folder import why_unwritable
from deepera_graph.errors import DeepEraError

_NAME = "judgement cache"
_PROBE = "doctor"
_ELSEWHERE = "name another folder (--cache DIR), turn it off (--cache off), or free this one"
_BYTES_PER_MB = 1_000_000


def look(where: str | Path | None) -> Iterator[Finding]:
    """Yield one finding; nothing is left behind where there was no cache."""
    if where == OFF:
        yield Finding(_NAME, "skipped", "off")
        return
    if where == "":
        yield Finding(_NAME, "fail", "it is to be in a folder without a name", _ELSEWHERE)
        return
    try:
        folder = default_cache_folder() if where is None else Path(where).expanduser()
        yield _existing(folder) if (folder / FILE_NAME).exists() else _future(folder)
    except (DeepEraError, OSError, RuntimeError) as error:
        yield Finding(_NAME, "fail", str(error), _ELSEWHERE)


def _existing(folder: Path) -> Finding:
    with closing(JudgementCache(folder / FILE_NAME).open()) as cache:
        cache.forget(_PROBE)
        written = cache.put(_PROBE, _PROBE, {})
        cache.forget(_PROBE)
        stats = cache.stats()
    found = (
        f"{stats.n_entries} answers, {stats.n_bytes / _BYTES_PER_MB:.1f} MB, format {FORMAT}, "
        f"in {folder}"
    )
    if not written:
        return Finding(_NAME, "fail", f"{found}; it cannot be written to", _ELSEWHERE)
    return Finding(_NAME, "ok", found)


def _future(folder: Path) -> Finding:
    why = why_unwritable(folder)
    if why:
        return Finding(_NAME, "fail", f"none yet, and {folder} cannot be made: {why}", _ELSEWHERE)
    return Finding(_NAME, "ok", f"none yet; it will be made in {folder}")
