"""How many threads one call of a local model may have."""

import os

_VARIABLE = "OMP_NUM_THREADS"


def threads_here(threads: int | None = None) -> int:
    """Return *threads* if it is given, else what OMP_NUM_THREADS says; 0 is one a core.

    The variable is the one that numerical libraries agree on, and Ray sets it to 1 in its workers,
    so that workers side by side do not fight for cores.
    """
    said = os.environ.get(_VARIABLE, "")
    return threads or (int(said) if said.isdecimal() else 0)
