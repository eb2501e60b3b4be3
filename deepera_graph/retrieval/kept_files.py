"""Which passages of a library are of which file, by whatever path the file is named."""

import os
from collections.abc import Iterable, Mapping
from pathlib import Path, PurePath
from typing import Any, NamedTuple

from deepera_graph.retrieval.files import KNOWN_SUFFIXES, ZIP
from deepera_graph.text.jsonl import suffix_of


class Origin(NamedTuple):
    """The file of a passage."""

    path: str  # absolute, links followed
    name: str  # as it was first given; what has no id of its own is named by it


class FiledPassage(NamedTuple):
    """A passage of a library, and its file if that can be told."""

    id: str
    origin: Origin | None


def read_origin(id: str, file: Any, source: object) -> Origin | None:
    """Return the file of a stored passage; of one stored by 0.9 or before what its source says."""
    if isinstance(file, Mapping) and "path" in file:
        return Origin(str(file["path"]), str(file.get("name") or file["path"]))
    if not isinstance(source, str) or not source or "://" in source:
        return None
    is_named_so = id == source or id.startswith((f"{source}#", f"{source}:"))
    is_file = suffix_of(Path(source)) in KNOWN_SUFFIXES
    return Origin(os.path.realpath(source), source) if is_named_so or is_file else None


class KeptFiles:
    """The files of a library while it is filled: what each was called, and what it has no more."""

    def __init__(self, held: Iterable[FiledPassage] = ()) -> None:
        self._file_of: dict[str, str] = {}  # the paths of passages, until they are written anew
        self._names: dict[str, str] = {}  # by path
        self._paths: dict[str, str] = {}  # by name
        self._moved: dict[str, str] = {}  # where a file was, and where it is
        self._found: dict[Path, Origin] = {}
        for id, origin in held:
            if origin is not None:
                self._file_of[id] = origin.path
                self._names.setdefault(origin.path, origin.name)
                self._paths.setdefault(origin.name, origin.path)

    def find(self, path: Path) -> Origin:
        """Return what a file is called in the library, whether it is there already or not."""
        if path not in self._found:
            self._found[path] = self._find(path)
        return self._found[path]

    def _find(self, path: Path) -> Origin:
        # One that was moved, with the name of one that is nowhere now, is the same file; another
        # file that merely has its name is called by its whole path.
        real, name = os.path.realpath(path), path.as_posix()
        before = self._paths.get(name)
        if before == real:  # of several, as older versions gave them
            self._names[real] = name
        elif real not in self._names:
            if before is not None and _is_there(before):
                name = real
            elif before is not None:
                self._moved[before] = real
            self._names[real], self._paths[name] = name, real
        return Origin(real, self._names[real])

    def note_written(self, id: str) -> None:
        """Take a passage as written anew."""
        self._file_of.pop(id, None)

    def list_stale(self, read: Iterable[str]) -> list[str]:
        """Return the passages of files, by their paths, that are not in them any more."""
        files = {*read}
        return [id for id, path in self._file_of.items() if self._moved.get(path, path) in files]

    def list_missing(self, sources: Iterable[str], read: Iterable[str]) -> list[str]:
        """Return the names of files that are gone from sources they were in."""
        wanted, files = [os.path.realpath(one) for one in sources], {*read}
        archives = {one for path in files if (one := _find_archive(path))}
        gone = (
            path
            for path in dict.fromkeys(self._file_of.values())
            if path not in files and path not in self._moved
            if not _is_there(path) or _find_archive(path) in archives
        )
        return [self._names[path] for path in gone if any(_holds(one, path) for one in wanted)]

    def list_passages(self, source: str) -> list[str]:
        """Return the passages of a file or folder, or of what a record is called."""
        real = os.path.realpath(source)
        return [
            id
            for id, path in self._file_of.items()
            if _holds(real, path)
            or _holds(source, self._names[path])
            or id == source
            or id.rpartition("#")[0] == source
        ]


def _holds(source: str, path: str) -> bool:
    """Tell whether a file, folder, archive or pattern names a file."""
    if path == source or path.startswith(f"{source.rstrip('/')}/"):
        return True
    return not {"*", "?", "["}.isdisjoint(source) and PurePath(path).match(source)


def _is_there(path: str) -> bool:
    """Tell whether a file is there, or the archive that it is in."""
    return Path(path).exists() or bool(_find_archive(path))


def _find_archive(path: str) -> str:
    """Return the archive that a file is in; empty if it is in none."""
    parents = (one for one in Path(path).parents if one.suffix.lower() == ZIP)
    return next((str(one) for one in parents if one.is_file()), "")
