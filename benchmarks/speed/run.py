"""Measures time, calls and tokens of DeepEra and other LLM rerankers over one simulated server.

Every ranker is asked the same questions about the same passages, in a process of its own, by a
server that takes as long as a model of the stated speed would. No model, no key, no network.
Prints Markdown; ratios are to RankGPT with windows of 20 and step 10.
"""

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from figures import Figures
from options import read_options, scene_of
from rankers import RANKERS
from scene import Scene
from table import tables

Json = dict[str, Any]
_HERE = Path(__file__).parent
_ENCODING_FOLDERS = (
    "litellm/litellm_core_utils/tokenizers",
    "llama_index/core/_static/tiktoken_cache",
)


class MeasureError(Exception):
    """A ranker or the server failed; the text says how."""


def measure(key: str, scene: Scene, python: str, pythons: Sequence[str]) -> Json:
    """Return the result of one ranker at one number of passages, as plain data."""
    ranker = RANKERS[key]
    result = _unmeasured(key, scene)
    with TemporaryDirectory() as folder:
        log = Path(folder) / "calls.jsonl"
        with _running(scene, log, pythons) as url:
            found = _asked(key, scene, url, python)
        lines = [json.loads(line) for line in log.read_text("utf-8").splitlines()]
    if "missing" in found:
        return result | {"skipped": f"not installed: {found['missing']}"}
    figures = [
        Figures.of(asked, lines, scene.speed.at_once, in_turn=ranker.in_turn)
        for asked in found["questions"]
    ]
    return result | {
        "questions": [asdict(one) for one in figures],
        "right": all(asked["right"] for asked in found["questions"]),
        "peak_mb": found["peak_mb"],
        "versions": found["versions"],
    }


def main() -> None:
    """Read the options, measure or merge, print; Ctrl-C prints what there is."""
    options = read_options(__doc__)
    results: list[Json] = _merged(options.merge) if options.merge else []
    try:
        for result in () if options.merge else _measured(options):
            results.append(result)
    except KeyboardInterrupt:
        sys.stderr.write("\nstopped; what was measured:\n")
    if options.json:
        Path(options.json).write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    sys.stdout.write(f"{tables(results)}\n\n{_told(results)}\n")


def _measured(options: argparse.Namespace) -> Iterator[Json]:
    """Measure what was chosen; a ranker that fails or is nowhere installed says so in its row."""
    pythons = [sys.executable, *options.rival_python]
    homes = {key: _home(key, pythons) for key in options.rankers}
    for n_passages in options.n:
        scene = scene_of(options, n_passages)
        for key in options.rankers:
            sys.stderr.write(f"{n_passages:>5} passages  {RANKERS[key].name}: ")
            sys.stderr.flush()
            try:
                result = measure(key, scene, homes[key], pythons)
            except MeasureError as error:
                result = _unmeasured(key, scene) | {"skipped": f"failed: {error}"}
            sys.stderr.write(f"{_short(result)}\n")
            yield result


def _unmeasured(key: str, scene: Scene) -> Json:
    """Return what is known of a result before it is measured."""
    return {
        "ranker": key,
        "name": RANKERS[key].name,
        "passages": scene.passages,
        "server": _served(scene),
        "skipped": "",
    }


def _asked(key: str, scene: Scene, url: str, python: str) -> Json:
    """Run `measure.py`, and return what it printed."""
    numbers = {"seed": scene.seed, "questions": scene.questions, "passages": scene.passages}
    order = {"ranker": key, "url": url, "at_once": scene.speed.at_once, "scene": numbers}
    run = subprocess.run(
        [python, str(_HERE / "measure.py"), json.dumps(order)],
        capture_output=True,
        text=True,
        check=False,
    )
    try:
        found: Json = json.loads(run.stdout.splitlines()[-1])
    except (IndexError, ValueError):
        last = [line for line in run.stderr.splitlines() if line.strip()][-1:]
        raise MeasureError("".join(last)[:200] or f"ended with code {run.returncode}") from None
    return found


@contextmanager
def _running(scene: Scene, log: Path, pythons: Sequence[str]) -> Iterator[str]:
    """Run the server, and give its address."""
    environment = dict(os.environ)
    if folder := _encodings(pythons):
        environment.setdefault("TIKTOKEN_CACHE_DIR", folder)
    server = subprocess.Popen(
        [sys.executable, str(_HERE / "server.py"), scene.write(), str(log)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
    )
    try:
        url = server.stdout.readline().strip() if server.stdout else ""
        if not url:
            raise MeasureError("the server did not start; its error is above")
        yield url
    finally:
        server.communicate()  # closes its standard input, which ends it


def _home(key: str, pythons: Sequence[str]) -> str:
    """Return the first interpreter that has the ranker's packages; the first if none has."""
    code = "import sys; from importlib.metadata import version; [version(p) for p in sys.argv[1:]]"
    for python in pythons:
        order = [python, "-c", code, *RANKERS[key].packages]
        if not subprocess.run(order, capture_output=True, check=False).returncode:
            return python
    return pythons[0]


def _encodings(pythons: Sequence[str]) -> str:
    """Return a folder in which `tiktoken` finds its encodings without a network, if there is."""
    for python in pythons:
        for folder in _ENCODING_FOLDERS:
            found = sorted(Path(python).parent.parent.glob(f"lib/python*/site-packages/{folder}"))
            if found:
                return str(found[0])
    return ""


def _merged(paths: Iterable[str]) -> list[Json]:
    """Read the results of several runs; of the same ranker and number the last one counts."""
    found: dict[tuple[str, int], Json] = {}
    for path in paths:
        try:
            for one in json.loads(Path(path).read_text(encoding="utf-8")):
                found[one["ranker"], one["passages"]] = one
        except (ValueError, TypeError, KeyError) as error:
            sys.exit(f"run.py: {path} was not written by --json: {error!r}")
    served = {json.dumps(one["server"], sort_keys=True) for one in found.values()}
    if len(served) > 1:
        sys.exit(f"run.py: these runs had different servers: {' and '.join(sorted(served))}")
    order = {key: place for place, key in enumerate(RANKERS)}  # a ranker may be gone since
    return sorted(
        found.values(), key=lambda one: (one["passages"], order.get(one["ranker"], len(order)))
    )


def _told(results: Sequence[Json]) -> str:
    """Say what was measured, and with what."""
    server = results[0]["server"] if results else {}
    versions = dict.fromkeys(name for one in results for name in one.get("versions", []))
    late = max(
        (asked["late"] for one in results for asked in one.get("questions", [])), default=0.0
    )
    told = ", ".join(f"{name} {value}" for name, value in server.items())
    return (
        f"Server: {told}; at the latest {late * 1000:.0f} ms late with an answer.\n"
        f"Measured: {', '.join(versions) or 'nothing'}."
    )


def _short(result: Json) -> str:
    if not result.get("questions"):
        return str(result["skipped"])
    walls = ", ".join(f"{one['wall']:.2f}" for one in result["questions"])
    return f"{walls} s" + ("" if result["right"] else "  WRONG RANKING")


def _served(scene: Scene) -> Json:
    """Return what results must have in common to stand in one table."""
    plain = asdict(scene)
    return {**plain.pop("speed"), **{k: v for k, v in plain.items() if k not in _MAY_DIFFER}}


_MAY_DIFFER = ("passages", "questions")


if __name__ == "__main__":
    main()
