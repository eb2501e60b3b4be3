"""A folder of weights: what is in it, and the checksums that are verified when it is loaded."""

import shutil
from collections.abc import Iterable
from pathlib import Path

from deepera_graph.errors import SettingsError
from deepera_graph.judge.head import Head
from deepera_graph.judge.model import FILES, SUMS, check, sha256_of

ENCODER, TOKENIZER, HEAD = FILES
TRAINED_ON = "trained_on.json"
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


def copy_encoder(source: Path, target: Path) -> None:
    """Copy encoder and tokenizer from one folder of weights to another; nothing if it is the same.

    Raises:
        SettingsError: One of them is missing.
    """
    for file in encoder_files(source):
        aim = target / file.name
        if not (aim.exists() and aim.samefile(file)):
            beside = target / f"{file.name}.part"
            shutil.copyfile(file, beside)
            beside.replace(aim)


def write_text(folder: Path, name: str, text: str) -> None:
    """Write a file of the folder; a reader finds the old one or the new one, never half of one."""
    beside = folder / f"{name}.part"
    beside.write_text(text, encoding="utf-8", newline="\n")
    beside.replace(folder / name)


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


def write_head(folder: Path, head: Head) -> None:
    """Write the trained parts; a reader finds the old file or the new one, never half of one."""
    beside = folder / f"{HEAD}.part"
    head.save(beside)
    beside.replace(folder / HEAD)


def write_sums(folder: Path, names: Iterable[str] = (ENCODER, TOKENIZER, HEAD, TRAINED_ON)) -> None:
    """Write the checksums of those files that are there, as ``sha256sum`` does."""
    there = [name for name in sorted(names) if (folder / name).is_file()]
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
    if any(len(pair) != 2 for pair in cells):
        raise SettingsError(f"{str(folder / SUMS)!r} must have a checksum and a name a line")
    return {name: digest for digest, name in cells}


def copy_judge(source: Path, target: Path) -> None:
    """Copy a trained judge, and nothing else, from one folder to another.

    Raises:
        SettingsError: *source* holds none, a file is not what its checksum says, or both are one.
    """
    sums = read_sums(source)
    missing = [name for name in (ENCODER, TOKENIZER, HEAD) if name not in sums]
    if missing:
        raise SettingsError(f"{str(source)!r} holds no {missing[0]}: no trained judge")
    if source.samefile(target):
        raise SettingsError(f"{str(target)!r} is where the weights are already")
    for name, digest in sums.items():
        if not (source / name).is_file() or sha256_of(source / name) != digest:
            raise SettingsError(f"{str(source / name)!r} is missing or not what {SUMS} says")
    for name in (*sums, SUMS, *(one for one in _NOTES if (source / one).is_file())):
        shutil.copyfile(source / name, target / name)
