"""What keeps packages below us from telling others how they are used."""

import os

_VARIABLE_threads = "OMP_NUM_THREADS"


def threads_here(threads: int | None = None) -> int:
    """Return *threads* if it is given, else what OMP_NUM_THREADS says; 0 is one a core.

    The variable is the one that numerical libraries agree on, and Ray sets it to 1 in its workers,
    so that workers side by side do not fight for cores.
    """
    said = os.environ.get(_VARIABLE_threads, "")
    return threads or (int(said) if said.isdecimal() else 0)


_VARIABLE_telemetry = "ORT_DISABLE_TELEMETRY"


def send_nothing() -> None:
    """Have onnxruntime report nothing to its makers; called before it is imported.

    From version 1.29 on it does so on Linux and macOS, too, unless this variable is set: it leaves
    an identifier in the user's cache folder, and sends names and hashes of models. Whoever has set
    the variable is obeyed.

    Source: https://github.com/microsoft/onnxruntime/pull/27379
    """
    os.environ.setdefault(_VARIABLE_telemetry, "1")
