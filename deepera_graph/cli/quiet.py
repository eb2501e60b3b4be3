"""Keeps to itself what a run that was cut off leaves behind.

LangGraph drops coroutines it has not started yet; Python then tells of each on stderr, with a
traceback that says nothing to whoever pressed Ctrl-C or closed the pipe.
"""

import sys
import warnings
from collections.abc import Coroutine
from typing import Any

_DROPPED = "coroutine .* was never awaited"


def quiet_dropped_coroutines() -> None:
    """Say nothing of coroutines that are dropped, and all as before of anything else."""
    warnings.filterwarnings("ignore", message=_DROPPED, category=RuntimeWarning)
    told = sys.unraisablehook

    def tell(unraisable: Any) -> None:
        if not isinstance(unraisable.object, Coroutine):
            told(unraisable)

    sys.unraisablehook = tell
