"""What keeps packages below us from telling others how they are used."""

import os

_VARIABLE = "ORT_DISABLE_TELEMETRY"


def send_nothing() -> None:
    """Have onnxruntime report nothing to its makers; called before it is imported.

    From version 1.29 on it does so on Linux and macOS, too, unless this variable is set: it leaves
    an identifier in the user's cache folder, and sends names and hashes of models. Whoever has set
    the variable is obeyed.

    Source: https://github.com/microsoft/onnxruntime/pull/27379
    """
    os.environ.setdefault(_VARIABLE, "1")
