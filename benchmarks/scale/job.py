"""A large job on paper: hours, money, memory and disk, by formulas from small measurements.

``python job.py separate=41,29000,11000,1900`` prints a row for a mode that takes 41 calls, 29 000
prompt tokens, of which 11 000 are in no prefix cache, and 1 900 output tokens a question. Servers,
prices and machine are options; ``--help`` lists them with their defaults.
"""

import argparse
import sys
from dataclasses import dataclass, fields
from math import ceil

_HOUR = 3600.0
_MILLION = 1e6
_GIB = 2**30
_MIB = 2**20


@dataclass(frozen=True, slots=True, kw_only=True)
class Mode:
    """What one question takes.

    Attributes:
        name: What the row is called.
        calls: Calls of the model.
        prompt: Prompt tokens.
        uncached: Those of them that are in no prefix cache of the server.
        output: Output tokens.
    """

    name: str
    calls: float
    prompt: float
    uncached: float
    output: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """Job, servers, prices and machine; the help of the command has the units."""

    questions: int = 300_000
    passages: int = 30
    servers: int = 8
    places: int = 64
    ttft: float = 0.25
    prefill: float = 4000.0
    decode: float = 80.0
    requests_per_minute: float = 0.0
    tokens_per_minute: float = 0.0
    price_in: float = 0.25
    price_cached: float = 0.025
    price_out: float = 2.0
    workers: int = 8
    worker_ms: float = 18.0
    driver_ms: float = 1.0
    driver_mib: float = 150.0
    worker_mib: float = 150.0
    ray_mib: float = 530.0
    kib_a_line: float = 28.0


_HELP = {
    "questions": "questions of the job",
    "passages": "passages a question",
    "servers": "servers of the model",
    "places": "calls a server is at, at the same time",
    "ttft": "seconds to the first token, without reading the prompt",
    "prefill": "prompt tokens a second, each call for itself",
    "decode": "output tokens a second, each call for itself",
    "requests_per_minute": "limit of all servers together; 0 is none",
    "tokens_per_minute": "limit of all servers together; 0 is none",
    "price_in": "money for a million prompt tokens that are not cached",
    "price_cached": "money for a million prompt tokens that are cached",
    "price_out": "money for a million output tokens",
    "workers": "worker processes, one core each",
    "worker_ms": "CPU milliseconds a question in a worker",
    "driver_ms": "CPU milliseconds a question in the command that writes",
    "driver_mib": "memory of the command, in MiB",
    "worker_mib": "memory of a worker, in MiB",
    "ray_mib": "memory of Ray's own processes on one machine, in MiB",
    "kib_a_line": "disk a question, in KiB: input, output and manifest",
}


def hours(mode: Mode, given: Given) -> dict[str, float]:
    """Return how long each part alone would take; the job takes as long as the longest."""
    own = mode.calls * given.ttft + mode.uncached / given.prefill + mode.output / given.decode
    tokens = mode.prompt + mode.output
    each = {
        "servers": own / (given.servers * given.places),
        "requests": _limited(mode.calls, given.requests_per_minute),
        "tokens": _limited(tokens, given.tokens_per_minute),
        "workers": given.worker_ms / 1000 / given.workers,
        "driver": given.driver_ms / 1000,
    }
    return {part: given.questions * seconds / _HOUR for part, seconds in each.items()}


def money(mode: Mode, given: Given) -> float:
    """Return what the tokens cost, in the currency of the prices."""
    cached = mode.prompt - mode.uncached
    each = (
        mode.uncached * given.price_in + cached * given.price_cached + mode.output * given.price_out
    )
    return given.questions * each / _MILLION


def row(mode: Mode, given: Given) -> str:
    """Return a Markdown row."""
    taken = hours(mode, given)
    longest = max(taken, key=lambda part: taken[part])
    in_flight = ceil(given.servers * given.places)
    cells = [
        mode.name,
        _short(given.questions * mode.calls),
        _short(given.questions * mode.prompt),
        _short(given.questions * mode.uncached),
        _short(given.questions * mode.output),
        f"{taken[longest]:.1f} ({longest})",
        f"{money(mode, given):,.0f}",
        f"{in_flight}",
    ]
    return f"| {' | '.join(cells)} |"


def main() -> None:
    """Print a table, and what the machine needs whatever the mode."""
    given, modes = _options()
    head = (
        "mode | calls | prompt tokens | uncached | output tokens | hours | money | calls in flight"
    )
    ruler = "|".join(["---", *["---:"] * 7])
    memory = (given.driver_mib + given.ray_mib + given.workers * given.worker_mib) * _MIB / _GIB
    disk = given.questions * given.kib_a_line * 1024 / _GIB
    lines = [f"| {head} |", f"|{ruler}|", *(row(mode, given) for mode in modes), ""]
    lines.append(
        f"{given.questions:,} questions x {given.passages} passages; memory {memory:.1f} GiB for "
        f"the command, {given.workers} workers and Ray on one machine; disk {disk:.1f} GiB."
    )
    sys.stdout.write("\n".join(lines) + "\n")


def _options() -> tuple[Given, list[Mode]]:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("modes", nargs="+", metavar="NAME=CALLS,PROMPT,UNCACHED,OUTPUT")
    for one in fields(Given):
        name = f"--{one.name.replace('_', '-')}"
        parser.add_argument(name, type=type(one.default), default=one.default, help=_HELP[one.name])
    plain = vars(parser.parse_args())
    return Given(**{name: plain[name] for name in _HELP}), [_mode(one) for one in plain["modes"]]


def _mode(text: str) -> Mode:
    name, _, numbers = text.partition("=")
    calls, prompt, uncached, output = map(float, numbers.split(","))
    return Mode(name=name, calls=calls, prompt=prompt, uncached=uncached, output=output)


def _limited(amount: float, per_minute: float) -> float:
    return 60 * amount / per_minute if per_minute else 0.0


def _short(amount: float) -> str:
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if amount >= size:
            return f"{amount / size:.3g} {unit}"
    return f"{amount:.0f}"


if __name__ == "__main__":
    main()
