"""A folder of weights: what is in it, and the checksums that are verified when it is loaded."""

import shutil
from contextlib import AbstractContextManager
from pathlib import Path

from deepera_graph.errors import SettingsError
from deepera_graph.judge.head import Head
from deepera_graph.judge.model import FILES, SUMS, check, sha256_of
from deepera_graph.judge.train.renew import renewed

ENCODER, TOKENIZER, HEAD = FILES
TRAINED_ON = "trained_on.json"
_SUMMED = (*FILES, TRAINED_ON)
_NOTES = ("MODEL_CARD.md", "NOTICE")


def encoder_files(folder: Path) -> tuple[Path, Path]:
    """Return the encoder and the tokenizer of a folder.

    Raises:
        SettingsError: One of them is missing.
    """
    if not folder.is_dir():
        raise SettingsError(f"there is no folder {str(folder)!r}")
    for name in (ENCODER, TOKENIZER):
        if not (folder / name).is_file():
            raise SettingsError(
                f"{str(folder)!r} holds no {name}; `deepera judge export` makes one"
            )
    return folder / ENCODER, folder / TOKENIZER


def renewed_weights(target: Path) -> AbstractContextManager[Path]:
    """Give an empty folder to write weights into, and put them into *target* at the end.

    Before and after the renames at the end, *target* holds the whole older weights or the whole
    newer ones. A kill between them leaves a folder without ``SHA256SUMS``, which `check` refuses,
    and the older weights in a folder ``.older-…`` in it: see `renewed`. An older head, or record of
    training, does not outlive its encoder.
    """
    return renewed(target, (*_SUMMED, SUMS))


def copy_encoder(source: Path, target: Path) -> None:
    """Copy encoder and tokenizer from one folder of weights to another.

    Raises:
        SettingsError: One of them is missing.
    """
    for file in encoder_files(source):
        shutil.copyfile(file, target / file.name)


def write_text(folder: Path, name: str, text: str) -> None:
    """Write a file of the folder, the same bytes on each system."""
    (folder / name).write_text(text, encoding="utf-8", newline="\n")


def head_of(folder: Path) -> Head | None:
    """Return the trained parts of a folder; None if it holds no judge.

    Raises:
        SettingsError: A file is not what its checksum says, or of another version.
    """
    if not (folder / HEAD).is_file():
        return None
    check(folder)
    try:
        return Head.load(folder / HEAD)
    except (KeyError, TypeError, ValueError) as error:
        raise SettingsError(f"{str(folder / HEAD)!r} is no head of a judge: {error}") from error


def write_sums(folder: Path) -> None:
    """Write the checksums of those files that are there, as ``sha256sum`` does."""
    there = [name for name in sorted(_SUMMED) if (folder / name).is_file()]
    write_text(folder, SUMS, "".join(f"{sha256_of(folder / name)}  {name}\n" for name in there))


def read_sums(folder: Path) -> dict[str, str]:
    """Return the recorded SHA-256 of each file of a folder of weights, by name.

    Raises:
        SettingsError: There is no record, or a line of it cannot be read.
    """
    if not folder.is_dir():
        raise SettingsError(f"there is no folder {str(folder)!r}")
    try:
        lines = (folder / SUMS).read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise SettingsError(f"{str(folder)!r} holds no {SUMS}: no trained judge") from error
    cells = [line.split("  ", 1) for line in lines]
    if any(len(pair) != 2 or Path(pair[1]).name != pair[1] for pair in cells):
        raise SettingsError(f"{str(folder / SUMS)!r} must have a checksum and a name a line")
    return {name: digest for digest, name in cells}


def copy_judge(source: Path, target: Path) -> None:
    """Copy a trained judge, and nothing else, from one folder to another, whole or not at all.

    Args:
        source: Holds the judge.
        target: May be there or not; its other files stay.

    Raises:
        SettingsError: *source* holds none, a file is not what its checksum says, or both are one.
    """
    sums = read_sums(source)
    missing = [name for name in (ENCODER, TOKENIZER, HEAD) if name not in sums]
    if missing:
        raise SettingsError(f"{str(source)!r} holds no {missing[0]}: no trained judge")
    if target.exists() and source.samefile(target):
        raise SettingsError(f"{str(target)!r} is where the weights are already")
    for name, digest in sums.items():
        if not (source / name).is_file() or sha256_of(source / name) != digest:
            raise SettingsError(f"{str(source / name)!r} is missing or not what {SUMS} says")
    with renewed_weights(target) as fresh:
        for name in (*sums, SUMS, *(one for one in _NOTES if (source / one).is_file())):
            shutil.copyfile(source / name, fresh / name)
