"""Processes of a run: their memory and CPU time, and which of them are workers (Linux)."""

import os
import re
from collections.abc import Iterable
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")
_WORKER = "ray::Worker"


def tree(root: int) -> list[int]:
    """Return the numbers of a process and of all below it."""
    parents = {int(one.name): _parent(one) for one in Path("/proc").iterdir() if one.name.isdigit()}
    found = [root]
    for number in found:
        found.extend(child for child, parent in parents.items() if parent == number)
    return found


def workers(root: int) -> list[int]:
    """Return the numbers of the Ray workers below a process."""
    return [number for number in tree(root) if _read(number, "cmdline").startswith(_WORKER)]


def resident(number: int) -> int:
    """Return the memory of a process, in bytes; 0 if it has ended."""
    sizes = _read(number, "statm").split()
    return int(sizes[1]) * _PAGE if sizes else 0


def busy(numbers: Iterable[int]) -> list[float]:
    """Return the CPU time of processes so far, in seconds."""
    found = []
    for number in numbers:
        times = _read(number, "stat").rpartition(")")[2].split()[11:13]
        found.append(sum(map(int, times)) / _TICKS)
    return found


def _parent(folder: Path) -> int:
    found = re.search(r"\) \S (\d+)", _read(int(folder.name), "stat"))
    return int(found.group(1)) if found else 0


def _read(number: int, name: str) -> str:
    try:
        return Path(f"/proc/{number}/{name}").read_text(errors="replace")
    except OSError:
        return ""
