"""Code of the user's, which may lie in the current directory."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from deepera_graph.packages import call_foreign

T = TypeVar("T")


def load_foreign(what: str, build: Callable[[], T]) -> T:
    """Call the user's code with the current directory on the path; its errors get one line."""
    search_here()
    return call_foreign(f"{what} cannot be built", build)


def search_here() -> None:
    """Put the current directory on the path, where modules of the user's are looked for too."""
    here = str(Path.cwd())
    if here not in sys.path and "" not in sys.path:
        sys.path.append(here)
