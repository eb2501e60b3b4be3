"""Files of a folder are renewed together: the older ones stay until all newer ones are written."""

import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp


@contextmanager
def renewed(target: Path, names: Sequence[str]) -> Iterator[Path]:
    """Give an empty folder to write files into, and put them into *target* at the end.

    The empty folder has a hidden name and is inside *target*, or, where there is no such folder,
    inside the nearest one above it that is there: that is on the same file system, and can be
    written to. After an error or a Ctrl-C it is gone, and *target* is as it was.

    A folder that was not there appears by one rename, with all its files. In one that was, older
    files are set aside, the last of *names* first, and newer ones moved in, the last of *names*
    last. So, if that one holds the checksums of the others, a process killed at any time leaves all
    older files, all newer ones, or, in the less than a millisecond of the renames, files without
    checksums, which are not taken for good. The older files that are then missing are in a folder
    ``.older-…`` in *target*, from which they can be moved back. A kill may also leave a folder
    ``.new-…``. After a power cut files may be empty as well, which their checksums tell.

    Args:
        target: May be there or not; other files in it stay.
        names: Files that belong together; those that are not written anew are removed. Others that
            are written take the place of older ones, too.

    Raises:
        OSError: A folder cannot be made, or a file cannot be moved.
    """
    aim = target.resolve()
    place = next(one for one in (aim, *aim.parents) if one.is_dir())
    missing = aim.relative_to(place)
    with TemporaryDirectory(dir=place, prefix=".new-") as hidden:
        fresh = Path(hidden, "files", missing)
        fresh.mkdir(parents=True)
        yield fresh
        if aim == place:
            _swap(fresh, aim, names)
        else:
            top = missing.parts[0]
            Path(hidden, "files", top).replace(place / top)


def _swap(fresh: Path, target: Path, names: Sequence[str]) -> None:
    """Move files from one folder to the other, in place of those that are there; or move none."""
    newer = {one.name for one in fresh.iterdir()}
    order = [*sorted(newer.difference(names)), *names]
    older = Path(mkdtemp(dir=target, prefix=".older-"))
    try:
        _move(reversed(order), target, older)
        _move(order, fresh, target)
    except BaseException:
        moved = (name for name in reversed(order) if name in newer and not (fresh / name).exists())
        _move(moved, target, fresh)
        _move(order, older, target)
        older.rmdir()
        raise
    shutil.rmtree(older, ignore_errors=True)


def _move(names: Iterable[str], source: Path, target: Path) -> None:
    """Move those files that are there, in order."""
    for name in names:
        if (source / name).is_file():
            (source / name).replace(target / name)
